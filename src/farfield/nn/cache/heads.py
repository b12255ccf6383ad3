"""Heads with like windows share one buffer of keys and values.

Shapes: B samples, H heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from torch import Tensor

from farfield.nn.cache.ring import Ring

Heads: TypeAlias = slice | list[int]
JOIN = 256  # a head joins a wider one's buffer if that costs it at most so many tokens


class HeadGroup:
    """Heads that share one buffer, because their windows are alike."""

    def __init__(self, heads: Sequence[int], window: int) -> None:
        self.heads = list(heads)
        first, count = self.heads[0], len(self.heads)
        together = self.heads == list(range(first, first + count))
        self.at: Heads = slice(first, first + count) if together else self.heads
        self.ring = Ring(window)
        self.line: Tensor | None = None  # the biases of the buffer's places
        self.log_held: tuple[int, Tensor] | None = None  # keys held, and the log of the sum of their weights
        self.sees = 0  # keys that every row of the last call with dropped keys saw, at least
        self.proven = 0  # the window of the sums that the certificate uses: at most that many
        self.span = window  # keys that are dropped in an age, at least: an older key lies so much farther away
        self.dropped = 0  # keys dropped in the present age

    def of(self, x: Tensor) -> Tensor:
        """The part of a tensor (B, H, ...) that belongs to these heads."""
        return x[:, self.at]


def grouped(windows: Sequence[int]) -> list[HeadGroup]:
    """Heads with like windows together: each group has the window of its widest head."""
    order = sorted(range(len(windows)), key=lambda h: -windows[h])
    groups: list[list[int]] = []
    for h in order:
        if groups and windows[groups[-1][0]] - windows[h] <= JOIN:
            groups[-1].append(h)
        else:
            groups.append([h])
    return [HeadGroup(sorted(heads), max(windows[h] for h in heads)) for heads in groups]
