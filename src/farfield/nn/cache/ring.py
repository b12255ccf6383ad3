"""The last keys and values of a few heads, in a buffer that never grows beyond the window.

While the text is shorter than the window, keys stand in order and a full buffer grows by a quarter. From then on it
is a ring: a new key takes the place of the one that leaves the window, and nothing else moves. The bias of every place
is a slice of one vector, the biases from far to near written twice, so a step copies one key and one value.

Shapes: B samples, H heads, M new tokens, W window, C places, D width of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

FIRST_PLACES = 64


class Ring:
    """The keys and values of the last `window` tokens."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.held = 0  # keys in the buffer
        self.next = 0  # the place of the next key
        self.keys: Float[Tensor, "B H C D"] | None = None
        self.values: Float[Tensor, "B H C D"] | None = None

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
        if not self.full:
            self._make_room(k, v)
        keys, values = self.both()
        place = self.next
        keys[:, :, place] = k[:, :, 0]
        values[:, :, place] = v[:, :, 0]
        self.held = min(self.held + 1, self.window)
        self.next = (place + 1) % self.window
        return place

    def _make_room(self, k: Tensor, v: Tensor) -> None:
        places = 0 if self.keys is None else self.keys.shape[2]
        if self.held < places:
            return
        self._fill(*self.ordered(k, v), min(self.window, max(places + places // 4, FIRST_PLACES)))

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
        places = min(self.window, max(held, FIRST_PLACES))
        self._fill(keys[:, :, first:], values[:, :, first:], places)

    def widen(self, window: int) -> None:
        """A larger window from now on; what was dropped is gone."""
        assert window >= self.window
        if self.keys is not None and self.values is not None:
            keys, values = self.ordered(self.keys, self.values)
            self.window = window
            self.replace(keys, values)
        self.window = window

    def select(self, samples: Tensor) -> None:
        """Keep these samples, in this order; one may appear several times."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[samples], self.values[samples]

    def bytes(self) -> int:
        """Memory of the two buffers."""
        return 0 if self.keys is None else sum(x.numel() * x.element_size() for x in self.both())

    def _fill(self, keys: Tensor, values: Tensor, places: int) -> None:
        self.held = keys.shape[2]
        self.next = self.held % self.window
        buffers = []
        for x in (keys, values):
            buffer = x.new_empty(*x.shape[:2], places, x.shape[3])
            buffer[:, :, : self.held] = x
            buffers.append(buffer)
        self.keys, self.values = buffers


def doubled_line(bias: Float[Tensor, "H W"]) -> Float[Tensor, "H 2W"]:
    """The biases from far to near, twice."""
    return bias.flip(-1).repeat(1, 2)


def mask_at(line: Float[Tensor, "H 2W"], place: int, held: int) -> Float[Tensor, "1 H 1 C"]:
    """The bias of every place when the newest key stands at `place`: a slice of the doubled line."""
    window = line.shape[1] // 2
    first = window - 1 - place
    return line[None, :, None, first : first + held]
