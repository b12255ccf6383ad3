"""What the page draws: weights, partial sums, the heat map and the claims of `draw()`, in double precision.

These describe; what is proven (the sum, the receptive fields, the window) comes from theory/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from farfield.formula import Formula
from farfield.theory.fields.drawn import claims, paper_curve
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.verdict.horizon import affordable, weights

CELLS = 64  # of a side of the heat map


def described(formula: Formula, start: int, context: int, epsilons: Sequence[str]) -> dict[str, Any]:
    """The curves of a formula without open parameters, and what `draw()` would say of a window of `context` tokens."""
    count = affordable(formula)
    if 2 * context - start > count:
        count = affordable(formula, 2 * context)
        if count < 2 * context:
            raise ValueError(f"so long a formula is drawn for a context of at most {count // 2} tokens, not {context}")
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
        "draw": _draw(found, start, context, epsilons),
    }


def _draw(found: np.ndarray, start: int, context: int, epsilons: Sequence[str]) -> dict[str, Any] | None:
    """The claims for `context` weights and for twice as many: a claim that grows with the window is no property."""
    shares = [float(exact_epsilon(e)) for e in epsilons]
    once, twice = found[: max(0, context - start)], found[: max(0, 2 * context - start)]
    if not len(once) or not np.isfinite(twice).all() or not once.sum() > 0:
        return None
    fields, at = paper_curve(once, 101)
    return {
        "window": context,
        "claims": (claims(once, shares) + start).tolist(),
        "twice": (claims(twice, shares) + start).tolist(),
        "curve": {"epsilons": [round(float(e), 6) for e in at], "share": [round(float(f), 6) for f in fields]},
    }


def _steps(first: int, last: int) -> np.ndarray:
    """Whole numbers from `first` to `last`, at most 64, evenly spaced as logarithms."""
    return np.unique(np.round(np.geomspace(first, max(first, last), 64)).astype(int))


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]
