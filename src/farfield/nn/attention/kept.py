"""What is kept of a bias that does not change: that it holds no NaN, its line for decoding, and small dense masks.

Short calls are ruled by what happens around the kernel, not in it. A fixed bias is usually a part of one vector that a
module keeps (`Bias`), so what was made of that vector is found again by the vector itself: by identity and version,
never by address alone. Nothing is kept of a bias that is learned, nor of a parameter, which optimizers and averages may
write to behind that version (`.data`).

Shapes: H heads, T distances, M queries, N keys.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

MASKS = 16  # kept for one bias; the oldest goes first


class KeptBias:
    """What was made of one vector."""

    def __init__(self, base: Tensor) -> None:
        self.version = base._version  # how often it was written to
        self.masks: dict[Hashable, Any] = {}
        self.good: set[Hashable] = set()  # parts that were looked through and hold numbers
        self._line: Tensor | None = None
        number = id(base)
        self.base = weakref.ref(base, lambda _: _kept.pop(number, None))

    def line(self, base: Tensor) -> Tensor:
        """The whole vector from far to near: the mask of a single query is a part of it."""
        if self._line is None:
            self._line = base.detach().flip(-1)
        return self._line

    def keep(self, key: Hashable, mask: Any) -> None:
        if len(self.masks) >= MASKS:
            del self.masks[next(iter(self.masks))]
        self.masks[key] = mask


_kept: dict[int, KeptBias] = {}


def kept_of(bias: Tensor) -> tuple[KeptBias, Tensor] | None:
    """What is kept of the vector that this bias is a part of, and the vector; None if it may change unnoticed."""
    base = bias._base
    if base is None:
        base = bias
    kept = _kept.get(id(base))
    if kept is None or kept.base() is not base or kept.version != base._version:  # type: ignore[union-attr]
        if bias.requires_grad or base.is_inference() or type(base) is not Tensor:
            return None
        kept = _kept[id(base)] = KeptBias(base)
    return kept, base


def dense_mask(bias: Float[Tensor, "H N"], queries: int, windows: list[int]) -> Float[Tensor, "H M N"]:
    """The mask of a short call: the bias at each distance, minus infinity for the future and beyond the window."""
    heads, keys = bias.shape
    if min(windows) < keys:
        far = torch.arange(keys, device=bias.device) >= torch.tensor(windows, device=bias.device)[:, None]
        bias = bias.masked_fill(far, float("-inf"))
    line = torch.nn.functional.pad(bias.flip(-1), (0, queries - 1), value=float("-inf"))
    size = line.shape[1]
    # with the queries from last to first, entry (i, j) is line[i + j]
    return line.as_strided((heads, queries, keys), (size, 1, 1)).flip(1)


def sums_by_distance(x: Float[Tensor, "B H M N"]) -> Float[Tensor, "H N"]:
    """The sum over samples and each diagonal, of all pairs of a query and a key at distance 0, ..., N - 1.

    The pairs of a query and a later key must hold 0: read with one more step from row to row, a diagonal is a column,
    and what stands before the beginning of a row is the end of the row above.
    """
    _, heads, m, n = x.shape
    begin, end, wide = m - 1, m - 1 + m * n, n + -n % 64  # whole vectors: the order of a sum must not depend on n
    memory = x.new_empty(heads, end + wide - n)
    memory[:, :begin] = 0
    memory[:, end:] = 0
    torch.sum(x, 0, out=memory[:, begin:end].view(heads, m, n))
    return memory.as_strided((heads, m, wide), (memory.stride(0), n + 1, 1)).sum(1)[:, :n].flip(-1)
