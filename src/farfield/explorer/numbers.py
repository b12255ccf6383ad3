"""What the page draws: weights, partial sums, the heat map and what `draw()` claims, in double precision.

These describe; what is proven (the sum, the receptive fields, the window) comes from theory/.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from math import isfinite
from typing import Any

from farfield.formula import Formula
from farfield.theory.fields.drawn import claims, paper_curve
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.verdict.horizon import affordable, weights

CELLS = 64  # of a side of the heat map
POINTS = 64  # of a curve


def curves(formula: Formula, start: int, context: int) -> dict[str, Any]:
    """Weights and partial sums of a formula without open parameters, and the heat map of a context."""
    values = weights(formula, start, _count(formula, start, context))  # the i-th is that of the distance start + i
    sums = list(accumulate(values))
    last = len(values)
    places = sorted({round(last ** (i / (POINTS - 1))) - 1 for i in range(POINTS)})  # evenly spaced as logarithms
    stride = -(-context // CELLS)
    cells = [values[t - start] if t >= start else None for t in range(0, context, stride)]
    return {
        "sums": {"tokens": [i + start + 1 for i in places], "values": _finite(sums[i] for i in places)},
        "weights": {"distances": [i + start for i in places], "values": _finite(values[i] for i in places)},
        "heat": {"stride": stride, "context": context, "values": _finite(cells)},
    }


def paper_claims(formula: Formula, start: int, context: int, epsilon: str) -> dict[str, Any]:
    """What `draw()` says of `context` weights, and of twice as many: a claim that grows with them is no property."""
    values = weights(formula, start, _count(formula, start, context))
    share = [float(exact_epsilon(epsilon))]
    once, twice = values[: max(0, context - start)], values[: max(0, 2 * context - start)]
    if not once or not isfinite(sum(twice)) or not sum(once) > 0:
        return {"claim": None, "twice": None, "curve": None}
    fields, epsilons = paper_curve(once, 101)
    return {
        "claim": claims(once, share)[0] + start,
        "twice": claims(twice, share)[0] + start,
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


def _finite(values: Iterable[float | None]) -> list[float | None]:
    return [v if v is not None and isfinite(v) else None for v in values]
