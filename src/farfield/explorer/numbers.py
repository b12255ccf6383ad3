"""What the page draws: weights, partial sums, the heat map and what `draw()` claims, in double precision.

These describe; what is proven (the sum, the receptive fields, the window) comes from theory/.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from farfield.formula import Formula
from farfield.theory.fields.drawn import claims, paper_curve
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.verdict.horizon import affordable, weights

CELLS = 64  # of a side of the heat map


def curves(formula: Formula, start: int, context: int) -> dict[str, Any]:
    """Weights and partial sums of a formula without open parameters, and the heat map of a context."""
    count = _count(formula, start, context)
    found = weights(formula, start, count)  # the i-th is that of the distance start + i
    with np.errstate(all="ignore"):
        sums = np.cumsum(found)
    places = _steps(1, count) - 1
    stride = -(-context // CELLS)
    cells = np.arange(0, context, stride)
    shown = np.full(len(cells), np.nan)
    shown[cells >= start] = found[cells[cells >= start] - start]
    return {
        "sums": {"tokens": (places + start + 1).tolist(), "values": _finite(sums[places])},
        "weights": {"distances": (places + start).tolist(), "values": _finite(found[places])},
        "heat": {"stride": stride, "context": context, "values": _finite(shown)},
    }


def paper_claims(formula: Formula, start: int, context: int, epsilon: str) -> dict[str, Any]:
    """What `draw()` says of `context` weights, and of twice as many: a claim that grows with them is no property."""
    found = weights(formula, start, _count(formula, start, context))
    share = [float(exact_epsilon(epsilon))]
    once, twice = found[: max(0, context - start)], found[: max(0, 2 * context - start)]
    if not len(once) or not np.isfinite(twice).all() or not once.sum() > 0:
        return {"claim": None, "twice": None, "curve": None}
    fields, at = paper_curve(once, 101)
    return {
        "claim": int(claims(once, share)[0]) + start,
        "twice": int(claims(twice, share)[0]) + start,
        "curve": {"epsilons": [round(float(e), 6) for e in at], "share": [round(float(f), 6) for f in fields]},
    }


def _count(formula: Formula, start: int, context: int) -> int:
    """How many weights are drawn: at least twice the context."""
    count = affordable(formula)
    if 2 * context - start > count:
        count = affordable(formula, 2 * context)
        if count < 2 * context:
            raise ValueError(f"so long a formula is drawn for a context of at most {count // 2} tokens, not {context}")
    return count


def _steps(first: int, last: int) -> np.ndarray:
    """Whole numbers from `first` to `last`, at most 64, evenly spaced as logarithms."""
    return np.unique(np.round(np.geomspace(first, max(first, last), 64)).astype(int))


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]
