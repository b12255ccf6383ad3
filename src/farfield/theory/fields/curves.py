"""Curves of receptive fields: TRF against epsilon, the reach within a context, the partial sums, and their figure.

`weight_curves` and `paper_claims` are in double precision: they describe, and prove nothing.

`paper_curve` is what the paper's `draw()` would have claimed, the pseudocode in its appendix. It is kept as it was
printed, with its faults (docs/errata.md, E23), so that its claims can be shown beside the proven fields: it divides by
the sum of the m weights that it gets, so that a divergent encoding looks as good as any and no field exceeds m; its
inequality is not strict, which is one too few at ties; and its last entry is always m.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite
from pathlib import Path
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.receptive import exact_epsilon, field_of
from farfield.theory.figures import finished, look, plain, style
from farfield.theory.sums.partial import Row
from farfield.theory.verdict.horizon import affordable, weights

CURVE = tuple(f"{m}e-{n}" for n in range(1, 13) for m in (5, 2, 1))  # the epsilons of a curve
CELLS = 64  # of a side of the heat map
POINTS = 64  # of a curve
Values = list[float | None]  # None where a double holds none


@dataclass(frozen=True)
class Curve:
    """What one encoding contributes to a figure of receptive fields."""

    label: str
    epsilons: Sequence[float]
    tokens: Sequence[int]  # TRF at each epsilon; empty if the sum diverges
    shares: Sequence[float]  # epsilons of the normalised panel
    normalised: Sequence[float]  # reach within a context, over the context, at each of these
    lengths: Sequence[int]
    partial_sums: Sequence[float]


def curve(label: str, formula: Formula, context: int = 512) -> Curve:
    """The curve of a formula without open parameters; of a bounded family the worst case, and its upper bound."""
    tokens: list[int] = []
    try:
        field = field_of(formula)
        for e in CURVE:
            tokens.append(field(exact_epsilon(e)))
    except (DivergenceError, UndecidedError):
        pass
    reach = field_of(formula, context)
    shares = [f"{i / 50:.2f}" for i in range(1, 50)]
    near = [reach(exact_epsilon(s)) / context for s in shares]
    lengths = [2**i for i in range(17)]
    with ctx.workprec(64):
        far = Row(formula.upper_bound, lengths[-1])
        sums = [float((far.B() - far.tail(n)).mid()) if n < lengths[-1] else float(arb(far.B()).mid()) for n in lengths]
    return Curve(
        label, [float(e) for e in CURVE[: len(tokens)]], tokens, [float(s) for s in shares], near, lengths, sums
    )


def fields_figure(curves: Sequence[Curve], path: str | Path | None = None, *, context: int = 512) -> Any:
    """TRF against epsilon in tokens, normalised as in the paper, and the partial sums of the weights.

    Returns:
        The figure; with a path it is also written, as its ending says.
    """
    with style() as pyplot:
        figure, (tokens, normalised, sums) = pyplot.subplots(1, 3, figsize=(11, 3.4))
        for i, curve in enumerate(curves):
            shown = [(e, n) for e, n in zip(curve.epsilons, curve.tokens, strict=False) if n < 10**300]
            if shown:
                tokens.loglog([e for e, _ in shown], [float(n) for _, n in shown], label=plain(curve.label), **look(i))
            line = look(i) | {"marker": ""}
            normalised.plot(curve.shares, curve.normalised, label=plain(curve.label), **line)
            sums.loglog(curve.lengths, curve.partial_sums, label=plain(curve.label), **look(i))
        tokens.invert_xaxis()
        tokens.set(xlabel="epsilon", ylabel="TRF (tokens)", title="receptive field")
        normalised.set(
            xlabel="epsilon", ylabel=f"reach / {context}", title=f"within {context} tokens, normalised", ylim=(0, 1.02)
        )
        sums.set(xlabel="tokens", ylabel="sum of the weights", title="partial sums")
        sums.legend(fontsize=7)
        figure.tight_layout()
        return finished(figure, path)


def weight_curves(formula: Formula, start: int, context: int) -> dict[str, dict[str, int | list[int] | Values]]:
    """Weights and partial sums of a formula without open parameters, and the heat map of a context."""
    values = weights(formula, start, _count(formula, start, context))  # the i-th is that of the distance start + i
    sums = list(accumulate(values))
    places = sorted({round(len(values) ** (i / (POINTS - 1))) - 1 for i in range(POINTS)})  # evenly as logarithms
    stride = -(-context // CELLS)
    cells = [values[t - start] if t >= start else None for t in range(0, context, stride)]
    return {
        "sums": {"tokens": [i + start + 1 for i in places], "values": _finite(sums[i] for i in places)},
        "weights": {"distances": [i + start for i in places], "values": _finite(values[i] for i in places)},
        "heat": {"stride": stride, "context": context, "values": _finite(cells)},
    }


def paper_claims(formula: Formula, start: int, context: int, epsilon: float) -> dict[str, object]:
    """What `draw()` says of `context` weights, and of twice as many: a claim that grows with them is no property."""
    values = weights(formula, start, _count(formula, start, context))
    once, twice = values[: max(0, context - start)], values[: max(0, 2 * context - start)]
    if not once or not isfinite(sum(twice)) or not sum(once) > 0:
        return {"claim": None, "twice": None, "curve": None}
    fields, epsilons = paper_curve(once, 101)
    return {
        "claim": claims(once, [epsilon])[0] + start,
        "twice": claims(twice, [epsilon])[0] + start,
        "curve": {"epsilons": [round(e, 6) for e in epsilons], "share": [round(f, 6) for f in fields]},
    }


def _count(formula: Formula, start: int, context: int) -> int:
    """How many weights are drawn: at least twice the context."""
    count = affordable(formula)
    if 2 * context - start > count:
        count = affordable(formula, 2 * context)
        if count < 2 * context:
            raise ValueError(f"so long a formula is drawn for a context of at most {count // 2} tokens, not {context}")
    return count


def _finite(values: Iterable[float | None]) -> Values:
    return [v if v is not None and isfinite(v) else None for v in values]


def claims(mass: Iterable[float], epsilons: Iterable[float]) -> list[int]:
    """For each epsilon the first j with S_j >= (1 - epsilon) * S_m, S_j the sum of the first j of m weights."""
    running = [0.0, *accumulate(float(w) for w in mass)]
    return [bisect_left(running, (1 - e) * running[-1] * (1 - 1e-15)) for e in epsilons]


def paper_curve(mass: Iterable[float], points: int = 50) -> tuple[list[float], list[float]]:
    """The curve that the paper plots for weights by distance: (j / m, epsilon), with epsilon from 1 to 0."""
    values = list(mass)
    epsilons = [1 - i / (points - 1) for i in range(points)]
    fields = [*claims(values, epsilons)[:-1], len(values)]
    return [j / len(values) for j in fields], epsilons
