"""The Triton kernels as a function of torch with a gradient: what they are given, and what is put together afterwards.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, X blocks of queries.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
from torch import Tensor

from farfield.experiments.triton.backward import keys_kernel, queries_kernel, shift_kernel
from farfield.experiments.triton.forward import forward_kernel
from farfield.nn.attention.contract import first_gradient_only
from farfield.nn.attention.validation import Problem

if TYPE_CHECKING:
    from jaxtyping import Int

PROGRAMS = 512  # that keep a GPU busy; the bias's gradient is summed by no more than that
LEAST_SKIP = 512  # keys, below which looking for keys to leave out costs more than it saves


def padded(width: int) -> int:
    """The width of a head up to a power of two, at least 16: what a matrix product takes."""
    return max(16, 1 << (width - 1).bit_length())


def tile_of(width: int, dtype: torch.dtype) -> dict[str, int]:
    """The tile of every kernel: square, because diagonals are summed, and small enough for registers anywhere."""
    side = 16 if dtype == torch.float32 or width > 128 else 32
    return {"BM": side, "BN": side, "num_warps": 4, "num_stages": 1}


class Arguments(NamedTuple):
    """What every kernel is given about a problem."""

    window: Tensor  # (H,) int32
    start: Tensor  # (B,) int32: the first real key of each sample
    end: Tensor  # (B,) int32: the key after its last real one
    sizes: tuple[float, float, int, int, int]  # scale, soft cap, H, M, N
    constants: dict[str, Any]


def arguments_of(problem: Problem) -> Arguments:
    """The arguments that the kernels share."""
    q, k = problem.q, problem.k
    if problem.mask is None:
        start = torch.zeros(len(q), dtype=torch.int32, device=q.device)
        end = start + k.shape[2]
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
        **tile_of(padded(q.shape[3]), q.dtype),
    }
    window = torch.tensor(problem.windows, dtype=torch.int32, device=q.device)
    sizes = problem.scale, problem.softcap or 1.0, q.shape[1], q.shape[2], k.shape[2]
    return Arguments(window, start, end, sizes, constants)


class TritonAttention(torch.autograd.Function):
    """The output and the log-sum-exp."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        problem = problem.with_unit_stride()
        q, k, v, bias, keys = problem.q, problem.k, problem.v, problem.bias, problem.k.shape[2]
        window, start, end, sizes, constants = arguments_of(problem)
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
        blocks = triton.cdiv(q.shape[2], constants["BM"])
        skips = problem.skip and keys >= LEAST_SKIP
        tail, key_norm, value_norm = _skip_tables(problem) if skips else (lse, lse, lse)
        first = torch.empty(*q.shape[:2], blocks, dtype=torch.int32, device=q.device) if skips else None
        # The share of attention that cannot change a result: half a unit in the last place. For a learned bias less:
        # the gradient of its parameters sums t * weight, so the tail may count N times as much.
        limit = -24 * math.log(2) - (math.log(keys) if ctx.needs_input_grad[3] else 0.0)
        forward_kernel[(blocks, len(q) * q.shape[1])](
            q, k, v, bias, lse if sink is None else sink, window, start, end,
            tail, key_norm, value_norm, out, lse, start if first is None else first,
            *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3], limit, *sizes,
            **constants, SINKS=sink is not None, SKIPS=skips,
        )  # fmt: skip
        ctx.save_for_backward(q, k, v, bias, sink, out, lse, first)
        ctx.problem = problem._replace(q=None, k=None, v=None, bias=None, sink=None)  # saved above
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @first_gradient_only
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        q, k, v, bias, sink, out, lse, first = ctx.saved_tensors
        window, start, end, sizes, constants = arguments_of(ctx.problem._replace(q=q, k=k, v=v, bias=bias))
        d_out = torch.zeros_like(out) if d_out is None else d_out
        d_out = d_out if d_out.stride(-1) == 1 else d_out.contiguous()
        heads, queries, keys = sizes[2:]
        blocks, key_blocks = (triton.cdiv(count, constants["BM"]) for count in (queries, keys))
        shift = torch.empty_like(lse)
        shift_kernel[(blocks, len(q) * heads)](
            out, d_out, lse if d_lse is None else d_lse.contiguous().float(), shift,
            *out.stride()[:3], *d_out.stride()[:3], heads, queries,
            D=constants["D"], DP=constants["DP"], BM=constants["BM"], WITH_LSE=d_lse is not None,
        )  # fmt: skip
        dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
        skips, learned = first is not None, ctx.needs_input_grad[3]
        strides = (*q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *d_out.stride()[:3])
        last = _last_rows(first, keys - queries, key_blocks, constants["BM"]) if skips else start
        keys_kernel[(key_blocks, len(q) * k.shape[1])](
            q, k, v, bias, window, start, end, d_out, lse, shift, last, dk, dv, *strides, *sizes,
            **constants, SKIPS=skips,
        )  # fmt: skip
        programs = min(blocks, triton.cdiv(PROGRAMS, len(q) * heads)) if learned else blocks
        d_bias = torch.zeros(*q.shape[:2], programs, keys if learned else 0, dtype=torch.float32, device=q.device)
        queries_kernel[(programs, len(q) * heads)](
            q, k, v, bias, window, start, end, d_out, lse, shift, first if skips else start, dq, d_bias,
            *strides, *sizes, **constants, SKIPS=skips, LEARNED=learned,
        )  # fmt: skip
        d_sink = None
        if sink is not None:  # the sink's weight times its gradient, which is -shift: its value is 0
            weight = torch.exp(sink[:, None] - lse).masked_fill(lse == -math.inf, 0.0)
            d_sink = -(weight * shift).sum((0, 2))
        return dq, dk, dv, d_bias.sum((0, 2), dtype=torch.float64).float() if learned else None, d_sink, None


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


def _last_rows(first: Int[Tensor, "B H X"], offset: int, blocks: int, side: int) -> Int[Tensor, "B H K"]:
    """For each block of keys the position after the last row that touched it, or a row that touched less far keys.

    `first` holds the first key that each block of rows touched, `offset` is the position of the first row.
    """
    # the smallest of all later rows makes `first` rise, and leaves nothing out
    rising = first.flip(-1).cummin(-1).values.flip(-1)
    ends = torch.arange(1, blocks + 1, dtype=torch.int32, device=rising.device) * side - 1
    count = torch.searchsorted(rising.contiguous(), ends.expand(*rising.shape[:2], blocks).contiguous(), right=True)
    return (count * side + offset).int()
