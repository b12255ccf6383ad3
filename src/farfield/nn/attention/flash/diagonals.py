"""The backward pass with a learned bias: its gradient at distance t is the sum of dS over the diagonal i - j = t.

The flash kernel gives no gradient for its mask, so the weights are computed again, tile by tile, from the saved
log-sum-exp. A tile of r rows and m keys is kept *skewed*: it is a view with row stride r + m - 1 of a buffer whose rows
have r + m places, so that every diagonal of the tile is a column of the buffer. Hence the bias of the whole tile is one
vector added to every row, its gradient is one sum over rows, and the matrix products work on the tile where it lies.

Shapes: B samples, R rows, M keys, D width of a head; one head at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from farfield.nn.attention.flash.work_items import LARGEST_CHUNK

if TYPE_CHECKING:
    from jaxtyping import Float

    from farfield.nn.attention.flash.operator import Computed, GradientSums
    from farfield.nn.attention.flash.work_items import WorkItem

ROWS, KEYS = 256, 1024  # of a tile
TILES = 4  # at once, as samples allow: what fits a cache
SMALLEST = {torch.float32: -87.0, torch.float64: -708.0}  # below, exp would be denormal; such a weight counts as zero


class _Tile(NamedTuple):
    """A skewed tile and the rows of the buffer around it, in which its diagonals are columns."""

    view: Float[Tensor, "B R M"]
    around: Float[Tensor, "B R W"]  # W = R + M - 1


class _Buffers:
    """Memory for a tile of weights and one of gradients; what lies around the tile of gradients stays zero."""

    def __init__(self, samples: int, rows: int, keys: int, number: torch.dtype):
        self.full = (rows, keys)
        self.memory = torch.zeros(3, samples, rows * (rows + keys), dtype=number)

    def tiles(self, rows: int, keys: int) -> tuple[_Tile, _Tile]:
        full = (rows, keys) == self.full
        gradients = self.memory[1 if full else 2]
        if not full:
            gradients[:, : rows * (rows + keys)] = 0
        return _skewed(self.memory[0], rows, keys), _skewed(gradients, rows, keys)


def _skewed(memory: Tensor, rows: int, keys: int) -> _Tile:
    samples, stride, offset = memory.shape[0], memory.stride(0), memory.storage_offset()
    return _Tile(
        memory.as_strided((samples, rows, keys), (stride, rows + keys - 1, 1), offset + rows - 1),
        memory.as_strided((samples, rows, rows + keys - 1), (stride, rows + keys, 1), offset),
    )


class _Head(NamedTuple):
    """One head of a few samples: what is needed of it and what is added to."""

    q: Float[Tensor, "B M D"]  # scaled
    k: Float[Tensor, "B N D"]
    v: Float[Tensor, "B N D"]
    line: Float[Tensor, " L"]
    lse: Float[Tensor, "B M 1"]
    d_out: Float[Tensor, "B M D"]
    shift: Float[Tensor, "B M 1"]  # sum_j of weight times its gradient, less the gradient of the log-sum-exp
    dk: Float[Tensor, "B N D"]
    dv: Float[Tensor, "B N D"]
    d_line: Float[Tensor, " L"] | None
    softcap: float | None


def backward_with_bias(
    item: WorkItem, first_keys: list[int], done: Computed, d_out: Tensor, d_lse: Tensor | None, grad: GradientSums
) -> None:
    """Add the gradients of one item to those of q, k, v and of the bias."""
    group, number = done.q.shape[1] // done.k.shape[1], done.line.dtype
    rows, keys = min(ROWS, item.keys - item.first), min(KEYS, item.keys)
    samples = max(1, TILES * ROWS * KEYS // (rows * keys))
    for begin in range(item.samples.start, item.samples.stop, samples):
        chosen = slice(begin, min(begin + samples, item.samples.stop))
        buffers = _Buffers(chosen.stop - chosen.start, rows, keys, number)
        for h in range(item.heads.start, item.heads.stop):
            at_queries, at_keys = (chosen, h, item.queries), (chosen, h // group, item.real)
            g = d_out[at_queries].to(number)
            shift = (g * done.out[at_queries]).sum(-1, keepdim=True)
            if d_lse is not None:
                shift -= d_lse[at_queries][..., None]
            head = _Head(
                q=done.q[at_queries].to(number) * done.scale,
                k=done.k[at_keys].to(number),
                v=done.v[at_keys].to(number),
                line=done.line[h],
                lse=done.lse[at_queries][..., None],
                d_out=g,
                shift=shift,
                dk=grad.k[at_keys],
                dv=grad.v[at_keys],
                d_line=None if grad.line is None else grad.line[h],
                softcap=done.softcap,
            )
            dq = grad.q[at_queries]
            for (a, b, _), start in zip(item.chunks(), first_keys, strict=True):
                for row in range(a, b, ROWS):
                    end = min(b, row + ROWS)
                    part = slice(row - item.first, end - item.first)
                    torch.mul(_rows(head, part, end, start, buffers), done.scale, out=dq[:, part])


def _rows(head: _Head, rows: slice, end: int, start: int, buffers: _Buffers) -> Float[Tensor, "B R D"]:
    """The gradient of some scaled queries, the last of which stands at end - 1; adds to the other gradients."""
    q, g, lse, shift = head.q[:, rows], head.d_out[:, rows], head.lse[:, rows], head.shift[:, rows]
    n, count = head.line.shape[0] - LARGEST_CHUNK, q.shape[1]
    dq = torch.zeros_like(q)
    for s in range(start, end, KEYS):
        e = min(end, s + KEYS)
        k, v = head.k[:, s:e], head.v[:, s:e]
        weight, d_logit = buffers.tiles(count, e - s)
        # The part of the line under this tile: its column x holds the distance end - 1 - s - x.
        columns = slice(n - end + s, n - end + e + count - 1)
        torch.sub(head.line[columns], lse, out=weight.around)
        p, ds = weight.view, d_logit.view
        if head.softcap is None:
            p.baddbmm_(q, k.mT)
        else:
            score = torch.bmm(q, k.mT).div_(head.softcap).tanh_()  # over the cap
            p.add_(score, alpha=head.softcap)
        torch.threshold_(p, SMALLEST[p.dtype], float("-inf")).exp_()
        torch.bmm(g, v.mT, out=ds).sub_(shift).mul_(p)
        if head.d_line is not None:
            head.d_line[columns] += d_logit.around.sum((0, 1))
        if head.softcap is not None:
            ds.mul_(1 - score.square_())
        dq.baddbmm_(ds, k)
        head.dk[:, s:e].baddbmm_(ds.mT, q)
        head.dv[:, s:e].baddbmm_(p.mT, g)
    return dq
