"""What the paper's `draw()` would have claimed: the receptive field of the pseudocode in its appendix.

It is kept as it was printed, with its faults (docs/errata.md, E23), so that its claims can be shown beside the proven
fields: it divides by the sum of the m weights that it is given, so that a divergent encoding looks as good as any and
no field exceeds m; its inequality is not strict, which is one too few at ties; and its last entry is always m.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def claims(weights: Sequence[float] | np.ndarray, epsilons: Sequence[float] | np.ndarray) -> np.ndarray:
    """For each epsilon the first j with S_j >= (1 - epsilon) * S_m, S_j the sum of the first j of m weights."""
    running = np.concatenate([[0.0], np.asarray(weights, dtype=float).cumsum()])
    return np.searchsorted(running, (1 - np.asarray(epsilons, dtype=float)) * running[-1] * (1 - 1e-15))


def paper_curve(mass: Sequence[float] | np.ndarray, points: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """The curve that the paper plots for weights by distance: (j / m, epsilon), with epsilon from 1 to 0."""
    epsilons = np.linspace(1, 0, points)
    fields = claims(mass, epsilons)
    fields[-1] = len(mass)
    return fields / len(mass), epsilons
