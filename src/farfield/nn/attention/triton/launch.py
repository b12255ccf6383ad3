"""The call of the Triton kernels: what they are given, how many programs run, and what is put together afterwards.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
from torch import Tensor

from farfield.nn.attention.problem import Gradients, Problem, Saved
from farfield.nn.attention.triton.backward import keys_kernel, queries_kernel, shift_kernel
from farfield.nn.attention.triton.decode import join_kernel, split_kernel
from farfield.nn.attention.triton.forward import forward_kernel
from farfield.nn.attention.triton.sizes import (
    SHIFT_ROWS,
    decode_tiles,
    forward_tiles,
    keys_tiles,
    padded,
    queries_tiles,
)

if TYPE_CHECKING:
    from jaxtyping import Float

SPLIT_ROWS = 64  # queries of the heads that share a key head, up to which the keys are split
SPLIT_KEYS = 512  # keys, from which splitting them pays
PROGRAMS = 512  # that keep a GPU busy; the bias's gradient is summed by no more than that
LEAST_SKIP = 512  # keys, below which looking for keys to leave out costs more than it saves


class Arguments(NamedTuple):
    """What every kernel is given about a problem."""

    window: Tensor  # (H,) int32
    start: Tensor  # (B,) int32: the first real key of each sample
    end: Tensor  # (B,) int32: the key after its last real one
    scale: float
    cap: float
    heads: int
    queries: int
    keys: int
    constants: dict[str, Any]


def arguments_of(problem: Problem) -> Arguments:
    """The arguments that all kernels share."""
    q, k = problem.q, problem.k
    if problem.mask is None:
        start, end = _bounds(len(q), k.shape[2], q.device)
    else:
        start = problem.mask.int().argmax(-1).int()
        end = start + problem.mask.sum(-1).int()
    precise = q.dtype != torch.float32 or torch.get_float32_matmul_precision() == "highest"
    widened = q.dtype == torch.bfloat16 and triton.knobs.runtime.interpret
    constants = {
        "GROUP": q.shape[1] // k.shape[1],
        "D": q.shape[3],
        "DP": padded(q.shape[3]),
        "CAPPED": problem.softcap is not None,
        "PRECISION": "widened" if widened else "ieee" if precise else "tf32",
    }
    return Arguments(
        _windows(tuple(problem.windows), q.device), start, end, problem.scale, problem.softcap or 1.0,
        q.shape[1], q.shape[2], k.shape[2], constants,
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _windows(windows: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(windows, dtype=torch.int32, device=device)


@functools.lru_cache(maxsize=64)
def _bounds(samples: int, keys: int, device: torch.device) -> tuple[Tensor, Tensor]:
    start = torch.zeros(samples, dtype=torch.int32, device=device)
    return start, start + keys


def forward(problem: Problem) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"], Saved]:
    """The output, the log-sum-exp, and what the backward pass must know besides."""
    problem = problem.with_unit_stride()
    q, k, v = problem.q, problem.k, problem.v
    given = arguments_of(problem)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    rows = given.constants["GROUP"] * given.queries
    if rows <= SPLIT_ROWS and given.keys >= SPLIT_KEYS:
        _decode(problem, given, rows, out, lse)
        return out, lse, Saved()
    tiles = forward_tiles(given.constants["DP"], q.dtype)
    blocks = triton.cdiv(given.queries, tiles.rows)
    skips = problem.skip and given.keys >= LEAST_SKIP
    tail, key_norm, value_norm = _skip_tables(problem) if skips else (lse, lse, lse)
    first = torch.empty(*q.shape[:2], blocks, dtype=torch.int32, device=q.device) if skips else given.start
    forward_kernel[(blocks, len(q) * given.heads)](
        q, k, v, problem.bias, lse if problem.sink is None else problem.sink, given.window, given.start, given.end,
        tail, key_norm, value_norm, out, lse, first,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3],
        given.scale, given.cap, problem.limit, given.heads, given.queries, given.keys,
        **given.constants, **tiles.options(), SINKS=problem.sink is not None, SKIPS=skips,
    )  # fmt: skip
    return out, lse, Saved(first=first, rows=tiles.rows) if skips else Saved()


def _skip_tables(problem: Problem) -> tuple[Tensor, Tensor, Tensor]:
    """The log of the tail of the weights from each distance on, and the largest norms of keys and values so far."""
    bias = problem.bias.detach().double()
    tail = bias.flip(-1).logcumsumexp(-1).flip(-1)
    tail = torch.nn.functional.pad(tail, (0, 1), value=-math.inf).float() + 1e-5  # rounded up
    norms = [
        (torch.linalg.vector_norm(x.float(), dim=-1) * 1.0001 + 1e-18).cummax(-1).values.contiguous()
        for x in (problem.k, problem.v)
    ]
    return (tail + 1e-6 * tail.abs().nan_to_num(posinf=0.0)).contiguous(), *norms


def _decode(problem: Problem, given: Arguments, rows: int, out: Tensor, lse: Tensor) -> None:
    """Few queries: the keys are split among programs, then their shares are put together."""
    q, k, v = problem.q, problem.k, problem.v
    tiles = decode_tiles(rows, given.constants["DP"], q.dtype)
    widest = max(problem.windows)
    keys = given.keys - max(0, given.keys - given.queries - widest + 1) // tiles.keys * tiles.keys
    programs = len(q) * k.shape[1]
    splits = max(1, min(triton.cdiv(keys, 4 * tiles.keys), triton.cdiv(PROGRAMS, programs), 128))
    size = triton.cdiv(triton.cdiv(keys, splits), tiles.keys) * tiles.keys
    splits = triton.cdiv(keys, size)
    part = torch.empty(*q.shape[:3], splits, q.shape[3], dtype=torch.float32, device=q.device)
    top, total = (torch.empty(part.shape[:4], dtype=torch.float32, device=q.device) for _ in range(2))
    split_kernel[(splits, programs)](
        q, k, v, problem.bias, given.window, given.start, given.end, part, top, total,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        given.scale, given.cap, given.heads, given.queries, given.keys, widest, size,
        **given.constants, **tiles.options(),
    )  # fmt: skip
    join_kernel[(lse.numel(),)](
        part, top, total, lse if problem.sink is None else problem.sink, given.start, given.end, out, lse,
        *out.stride()[:3], given.heads, given.queries, given.keys, splits,
        D=given.constants["D"], DP=given.constants["DP"], BS=triton.next_power_of_2(splits),
        SINKS=problem.sink is not None,
    )  # fmt: skip


def backward(
    problem: Problem, out: Tensor, lse: Tensor, saved: Saved, d_out: Tensor, d_lse: Tensor | None
) -> Gradients:
    """The gradients of q, k, v, the bias and the sinks."""
    problem = problem.with_unit_stride()
    q, k, v = problem.q, problem.k, problem.v
    d_out = d_out if d_out.stride(-1) == 1 else d_out.contiguous()
    given = arguments_of(problem)
    grid_heads = len(q) * given.heads
    shift = torch.empty_like(lse)
    shift_kernel[(triton.cdiv(given.queries, SHIFT_ROWS), grid_heads)](
        out, d_out, lse if d_lse is None else d_lse.contiguous().float(), shift, *out.stride()[:3], *d_out.stride()[:3],
        given.heads, given.queries, D=given.constants["D"], DP=given.constants["DP"], BM=SHIFT_ROWS,
        WITH_LSE=d_lse is not None,
    )  # fmt: skip
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    skips = saved.first is not None
    strides = (*q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *d_out.stride()[:3])
    sizes = (given.scale, given.cap, given.heads, given.queries, given.keys)
    tiles = keys_tiles(given.constants["DP"], q.dtype)
    key_blocks = triton.cdiv(given.keys, tiles.keys)
    keys_kernel[(key_blocks, len(q) * k.shape[1])](
        q, k, v, problem.bias, given.window, given.start, given.end, d_out, lse, shift,
        _last_rows(saved, given, key_blocks, tiles.keys) if skips else given.start, dk, dv,
        *strides, *sizes, **given.constants, SKIPS=skips, **tiles.options(),
    )  # fmt: skip
    tiles = queries_tiles(given.constants["DP"], q.dtype, problem.learned)
    assert not skips or saved.rows % tiles.rows == 0, (
        f"blocks of {tiles.rows} rows, but {saved.rows} in the forward pass"
    )
    blocks = triton.cdiv(given.queries, tiles.rows)
    programs = min(blocks, triton.cdiv(PROGRAMS, grid_heads)) if problem.learned else blocks
    vectors = given.keys if problem.learned else 0
    d_bias = torch.zeros(*q.shape[:2], programs, vectors, dtype=torch.float32, device=q.device)
    queries_kernel[(programs, grid_heads)](
        q, k, v, problem.bias, given.window, given.start, given.end, d_out, lse, shift,
        saved.first if skips else given.start, dq, d_bias,
        *strides, *sizes, saved.rows, **given.constants, SKIPS=skips, LEARNED=problem.learned, **tiles.options(),
    )  # fmt: skip
    d_sink = None
    if problem.sink is not None:  # the sink's weight times its gradient, which is -shift: its value is 0
        weight = torch.exp(problem.sink[:, None] - lse).masked_fill(lse == -math.inf, 0.0)
        d_sink = -(weight * shift).sum((0, 2))
    return Gradients(dq, dk, dv, d_bias.sum((0, 2), dtype=torch.float64).float() if problem.learned else None, d_sink)


def _last_rows(saved: Saved, given: Arguments, blocks: int, size: int) -> Tensor:
    """For each block of keys the position after the last row that touched it, or a row that touched less far keys."""
    assert saved.first is not None
    # rows touch keys from `first` on; the smallest of all later rows makes it rise, and leaves nothing out
    rising = saved.first.flip(-1).cummin(-1).values.flip(-1)
    ends = torch.arange(1, blocks + 1, dtype=torch.int32, device=rising.device) * size - 1
    count = torch.searchsorted(rising.contiguous(), ends.expand(*rising.shape[:2], blocks).contiguous(), right=True)
    return (count * saved.rows + given.keys - given.queries).int()
