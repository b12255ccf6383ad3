"""How far out a divergent series behaves as if it converged.

rho(n) = (B_2n - B_n) / B_n, the growth of the partial sums from n to 2n terms, tends to 0 for a convergent series.
For one that diverges late, such as Sandwich, it falls to a minimum and climbs back: the n of the minimum is the
practical horizon. Double precision: this is a description, not a proof.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import isfinite

from farfield.formula import Formula, expanded_size
from farfield.formula.functions import ROUGH

TERMS = 1 << 16
COST = 1 << 26  # parts times terms, at most
NOISE = 1e-15
CLIMB = 1.5  # how much the growth must rise again behind its minimum
FEW = 8  # a pause among the first tokens says nothing
SLOW = 0.5  # growth at the minimum, below which the sums look convergent at all


@dataclass(frozen=True)
class Horizon:
    """The n at which the partial sums look most convergent, and how much they still grow from there to 2n."""

    tokens: int
    growth: float
    certain: bool  # False: the minimum is below the precision of a double, so the horizon lies further out

    def sentence(self) -> str:
        if not self.certain:
            return f"up to {self.tokens} tokens the partial sums cannot be told from those of a convergent series"
        return (
            f"in practice: up to about {self.tokens} tokens it behaves as if it converged (from {self.tokens} to "
            f"{2 * self.tokens} tokens the sum grows by {self.growth:.2g} of itself), then it climbs"
        )

    def json(self) -> dict[str, object]:
        return {"tokens": self.tokens, "growth": self.growth, "certain": self.certain}


def affordable(formula: Formula, terms: int = TERMS) -> int:
    """How many of these weights are worth their time in double precision."""
    return max(1024, min(terms, COST // expanded_size(formula.node)))


def _by_numpy(formula: Formula, start: int, terms: int) -> array[float]:
    import numpy as np

    with np.errstate(all="ignore"):
        return array("d", np.exp(formula.array(np.arange(start, start + terms, dtype=float))).tobytes())


evaluate = _by_numpy  # in a browser, which has no numpy, another function takes this place


@lru_cache(maxsize=8)
def weights(formula: Formula, start: int, terms: int) -> array[float]:
    """b(t) for start <= t < start + terms in double precision; nobody may change it."""
    return evaluate(formula, start, terms)


def horizon(formula: Formula, start: int = 0, terms: int = TERMS) -> Horizon | None:
    """The practical horizon of a divergent series, or None if the growth has no minimum in sight."""
    if not any(n.op in ROUGH for n in formula.node.walk()):
        return None  # without pieces and waves the growth falls or rises for good
    terms = affordable(formula, terms)
    sums = list(accumulate(weights(formula, start, terms)))
    if not isfinite(sums[-1]) or sums[0] <= 0:
        return None
    growth = [(sums[2 * n - 1] - sums[n - 1]) / sums[n - 1] for n in range(1, terms // 2 + 1)]
    least = min(growth)
    if least < NOISE:
        tokens = max(n for n, g in enumerate(growth, 1) if g < NOISE)
        return Horizon(tokens, least, tokens < terms // 2) if tokens > FEW else None
    tokens = growth.index(least) + 1
    if tokens >= terms // 2 or tokens <= FEW or growth[-1] < CLIMB * least or least > SLOW:
        return None
    return Horizon(tokens, least, True)
