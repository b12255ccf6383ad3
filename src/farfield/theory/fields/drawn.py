"""What the paper's `draw()` would have claimed: the receptive field of the pseudocode in its appendix.

It is kept as it was printed, with its faults (docs/errata.md, E23), so that its claims can be shown beside the proven
fields: it divides by the sum of the m weights that it is given, so that a divergent encoding looks as good as any and
no field exceeds m; its inequality is not strict, which is one too few at ties; and its last entry is always m.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate


def claims(weights: Iterable[float], epsilons: Iterable[float]) -> list[int]:
    """For each epsilon the first j with S_j >= (1 - epsilon) * S_m, S_j the sum of the first j of m weights."""
    running = [0.0, *accumulate(float(w) for w in weights)]
    return [bisect_left(running, (1 - e) * running[-1] * (1 - 1e-15)) for e in epsilons]


def paper_curve(mass: Iterable[float], points: int = 50) -> tuple[list[float], list[float]]:
    """The curve that the paper plots for weights by distance: (j / m, epsilon), with epsilon from 1 to 0."""
    given = list(mass)
    epsilons = [1 - i / (points - 1) for i in range(points)]
    fields = [*claims(given, epsilons)[:-1], len(given)]
    return [j / len(given) for j in fields], epsilons
