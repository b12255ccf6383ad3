"""Pictures of receptive fields: TRF against epsilon, the reach within a context, and the partial sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.receptive import exact_epsilon, field_of
from farfield.theory.figures import finished, look, plain, style
from farfield.theory.sums.partial import Row
from farfield.theory.verdict.biases import upper_envelope


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
    """The curve of a formula without open parameters; of a class of biases the worst case, and its upper envelope."""
    epsilons = [f"{m}e-{n}" for n in range(1, 13) for m in (5, 2, 1)]
    tokens: list[int] = []
    try:
        field = field_of(formula)
        for e in epsilons:
            tokens.append(field(exact_epsilon(e)))
    except (DivergenceError, UndecidedError):
        pass
    reach = field_of(formula, context)
    shares = [f"{i / 50:.2f}" for i in range(1, 50)]
    near = [reach(exact_epsilon(s)) / context for s in shares]
    lengths = [2**i for i in range(17)]
    with ctx.workprec(64):
        far = Row(upper_envelope(formula, formula) if formula.is_class else formula, lengths[-1])
        sums = [float((far.B() - far.tail(n)).mid()) if n < lengths[-1] else float(arb(far.B()).mid()) for n in lengths]
    return Curve(
        label, [float(e) for e in epsilons[: len(tokens)]], tokens, [float(s) for s in shares], near, lengths, sums
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
