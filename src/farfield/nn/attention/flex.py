"""Attention with a bias by distance on FlexAttention: the path of GPUs.

The bias vector is read inside the kernel as a score_mod, and a block mask says which blocks of 128 x 128 are in sight,
so windows save time. The block mask is made from positions alone, never from an n x n mask. On a GPU the kernel is
compiled, forward and backward, and the bias may be learned. On a CPU it runs eagerly (for tests: it is slow and stores
n x n numbers), or compiled without gradients.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from farfield.nn.attention.flash.short import with_sink
from farfield.nn.attention.validation import Problem

try:
    from torch.nn.attention.flex_attention import AuxRequest
except ImportError:  # torch 2.8 hands the log-sum-exp over in its own way
    AuxRequest = None

if TYPE_CHECKING:
    from jaxtyping import Float

BLOCK = 128


@functools.cache
def compiled() -> Callable[..., Any]:
    """FlexAttention as one fused kernel."""
    return torch.compile(flex_attention, dynamic=False)


def flex(problem: Problem, fused: bool | None = None) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp; fused by the compiler on every device but the CPU, unless told so."""
    q, k, v, bias, windows, mask = problem.q, problem.k, problem.v, problem.bias, problem.windows, problem.mask
    m, n = q.shape[2], k.shape[2]
    fused = q.device.type != "cpu" if fused is None else fused
    # Lengths that are no multiple of 128 gave NaN in the compiled backward pass (pytorch 153799), and every new length
    # a compilation: so tokens are added at the end, which no real query sees, and the queries stand where they stood.
    q_more, k_more = (-m % BLOCK, -n % BLOCK) if fused else (0, 0)
    if q_more or k_more:
        pad = torch.nn.functional.pad
        q, k, v = pad(q, (0, 0, 0, q_more)), pad(k, (0, 0, 0, k_more)), pad(v, (0, 0, 0, k_more))
        bias = pad(bias, (0, max(q_more, k_more) + BLOCK))
        mask = torch.ones(len(q), n, dtype=torch.bool, device=q.device) if mask is None else mask
        mask = pad(mask, (0, k_more))
    offset, cap = n - m, problem.softcap
    size = bias.shape[1]

    def add_bias(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        if cap is not None:
            score = cap * torch.tanh(score / cap)
        return score + bias[h, (i + offset - j).clamp(min=0, max=size - 1)]

    if mask is None:
        blocks = _blocks(m, n, tuple(windows), q.device)
    else:
        start = mask.int().argmax(-1)
        blocks = block_mask(q.shape[2], k.shape[2], windows, start, start + mask.sum(-1), offset)
    run = compiled() if fused else flex_attention
    grouped = q.shape[1] != k.shape[1]
    if AuxRequest is None:
        out, lse = run(q, k, v, add_bias, blocks, problem.scale, grouped, return_lse=True)
    else:
        out, extra = run(q, k, v, add_bias, blocks, problem.scale, grouped, return_aux=AuxRequest(lse=True))
        lse = extra.lse
    out, lse = out[:, :, :m], lse[:, :, :m]
    if problem.sink is None:
        return out, lse
    out, lse = with_sink(out, lse, problem.sink, None)
    if problem.mask is not None:
        lse = lse.masked_fill(~problem.mask[:, None, offset:], float("-inf"))
    return out, lse


@functools.lru_cache(maxsize=32)
def _blocks(m: int, n: int, windows: tuple[int, ...], device: torch.device) -> BlockMask:
    start = torch.zeros(1, dtype=torch.long, device=device)
    return block_mask(m, n, list(windows), start, start + n)


def block_mask(m: int, n: int, windows: list[int], start: Tensor, end: Tensor, offset: int | None = None) -> BlockMask:
    """What each query may see: itself and the past, within its head's window, among the sample's keys start..end-1.

    The first query stands at `offset`, by default so that the last one stands at the last key.
    """
    device = start.device
    each = sorted(set(windows))
    width = torch.tensor(windows if len(each) > 1 else each, device=device)
    offset = n - m if offset is None else offset

    def seen(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        t = i + offset - j
        row, head = (b if start.numel() > 1 else 0), (h if width.numel() > 1 else 0)
        inside = (j >= start[row]) & (i + offset < end[row])  # with t >= 0, both ends of both
        return (t >= 0) & (t < width[head]) & inside

    first = torch.arange(0, m, BLOCK, device=device)[:, None] + offset  # positions of the queries of a block
    last = (first + BLOCK - 1).clamp(max=n - 1)
    key = torch.arange(0, n, BLOCK, device=device)
    key_last = (key + BLOCK - 1).clamp(max=n - 1)
    w, s, e = width[None, :, None, None], start[:, None, None, None], end[:, None, None, None]
    some = (key <= last) & (first - key_last < w) & (key_last >= s) & (first < e)
    every = (key_last <= first) & (last - key < w) & (key >= s) & (last < e) & some
    return BlockMask.from_kv_blocks(
        *_listed(some & ~every), *_listed(every), BLOCK_SIZE=BLOCK, mask_mod=seen, seq_lengths=(m, n)
    )


def _listed(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks of each row are chosen, and their indices, the chosen ones first."""
    order = chosen.int().argsort(dim=-1, descending=True, stable=True)
    return chosen.sum(-1).int(), order.int().contiguous()
