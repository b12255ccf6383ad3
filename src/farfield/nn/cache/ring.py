"""Heads with like windows share one buffer of their last keys and values, which never grows beyond the window.

While the text is shorter than the window, keys stand in order and a full buffer grows by a quarter. From then on it
is a ring: a new key takes the place of the one that leaves the window, and nothing else moves. The bias of every place
is a slice of one vector, the biases from far to near written twice, so a step copies one key and one value.

Shapes: B samples, H heads, M new tokens, W window, C places, D width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

Heads: TypeAlias = slice | list[int]
JOIN = 256  # a head joins a wider one's buffer if that costs it at most so many tokens
FIRST_PLACES = 64


class Ring:
    """The keys and values of the last `window` tokens, for a few heads."""

    def __init__(self, heads: Sequence[int], window: int) -> None:
        self.heads = list(heads)
        first, count = self.heads[0], len(self.heads)
        together = self.heads == list(range(first, first + count))
        self.at: Heads = slice(first, first + count) if together else self.heads
        self.window = window
        self.held = 0  # keys in the buffer
        self.next = 0  # the place of the next key
        self.keys: Float[Tensor, "B H C D"] | None = None
        self.values: Float[Tensor, "B H C D"] | None = None
        self.line: Float[Tensor, "H 2C"] | None = None  # the biases of the buffer's places, from far to near, twice
        self.log_held: tuple[int, Tensor] | None = None  # keys held, and the log of the sum of their weights
        self.sees = 0  # keys that every row of the last call with dropped keys saw, at least
        self.proven = 0  # the window of the sums that the certificate uses: at most that many
        self.span = window  # keys that are dropped in an age, at least: an older key lies so much farther away
        self.dropped = 0  # keys dropped in the present age

    @property
    def full(self) -> bool:
        """Whether the next key will push one out."""
        return self.held >= self.window

    def leaving(self) -> tuple[Tensor, Tensor]:
        """The key and the value that the next token pushes out, each (B, H, D)."""
        assert self.full
        keys, values = self.both()
        return keys[:, :, self.next], values[:, :, self.next]

    def push(self, k: Float[Tensor, "B H 1 D"], v: Float[Tensor, "B H 1 D"]) -> int:
        """Take in one token; the place where it stands."""
        places = 0 if self.keys is None else self.keys.shape[2]
        if not self.full and self.held >= places:
            self._fill(*self.ordered(k, v), min(self.window, max(places + places // 4, FIRST_PLACES)))
        keys, values = self.both()
        place = self.next
        keys[:, :, place] = k[:, :, 0]
        values[:, :, place] = v[:, :, 0]
        self.held = min(self.held + 1, self.window)
        self.next = (place + 1) % self.window
        return place

    def ordered(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """What is held, from the oldest to the newest; k and v say of which kind, if nothing is held yet."""
        if self.keys is None or self.values is None:
            return k[:, :, :0], v[:, :, :0]
        if self.held == self.window and self.next:
            return tuple(torch.cat([x[:, :, self.next : self.held], x[:, :, : self.next]], 2) for x in self.both())
        return self.keys[:, :, : self.held], self.values[:, :, : self.held]

    def both(self) -> tuple[Tensor, Tensor]:
        """The two buffers."""
        assert self.keys is not None
        assert self.values is not None
        return self.keys, self.values

    def replace(self, keys: Tensor, values: Tensor) -> None:
        """Hold the last `window` of these keys and values, which stand in order."""
        held = min(self.window, keys.shape[2])
        first = keys.shape[2] - held
        self._fill(keys[:, :, first:], values[:, :, first:], min(self.window, max(held, FIRST_PLACES)))

    def widen(self, window: int) -> None:
        """A larger window from now on; what was dropped is gone."""
        assert window >= self.window
        both = None if self.keys is None else self.ordered(*self.both())
        self.window = window
        if both is not None:
            self.replace(*both)

    def mask(self, place: int) -> Float[Tensor, "1 H 1 C"]:
        """The bias of every place when the newest key stands at `place`: a slice of the line."""
        assert self.line is not None
        first = self.line.shape[1] // 2 - 1 - place
        return self.line[None, :, None, first : first + self.held]

    def log_weights(self) -> Float[Tensor, "H 1"]:
        """The log of the sum of the weights of the keys that are held."""
        assert self.line is not None
        if self.log_held is None or self.log_held[0] != self.held:
            near = self.line.shape[1] // 2
            self.log_held = self.held, self.line[:, near - self.held : near].logsumexp(-1, keepdim=True)
        return self.log_held[1]

    def select(self, samples: Tensor) -> None:
        """Keep these samples, in this order; one may appear several times."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[samples], self.values[samples]

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        return sum(x.numel() * x.element_size() for x in (self.keys, self.values, self.line) if x is not None)

    def _fill(self, keys: Tensor, values: Tensor, places: int) -> None:
        self.held = keys.shape[2]
        self.next = self.held % self.window
        buffers = []
        for x in (keys, values):
            buffer = x.new_empty(*x.shape[:2], places, x.shape[3])
            buffer[:, :, : self.held] = x
            buffers.append(buffer)
        self.keys, self.values = buffers


def rings_of(windows: Sequence[int]) -> list[Ring]:
    """Heads with like windows together: each ring has the window of its widest head."""
    order = sorted(range(len(windows)), key=lambda h: -windows[h])
    groups: list[list[int]] = []
    for h in order:
        if groups and windows[groups[-1][0]] - windows[h] <= JOIN:
            groups[-1].append(h)
        else:
            groups.append([h])
    return [Ring(sorted(heads), max(windows[h] for h in heads)) for heads in groups]
