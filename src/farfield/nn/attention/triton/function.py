"""The Triton kernels as a function of torch with a gradient.

Shapes: B samples, H query heads, M queries, D width of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from farfield.nn.attention.problem import Problem
from farfield.nn.attention.triton.launch import backward, forward
from farfield.nn.attention.validation import first_gradient_only

if TYPE_CHECKING:
    from jaxtyping import Float


def triton_attention(problem: Problem) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp."""
    if problem.q.dtype == torch.float64:
        raise ValueError("the Triton kernels compute in float32; for float64 give implementation='flex' or 'reference'")
    return _TritonAttention.apply(problem.q, problem.k, problem.v, problem.bias, problem.sink, problem)


class _TritonAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, problem: Problem
    ) -> tuple[Tensor, Tensor]:
        problem = problem._replace(learned=ctx.needs_input_grad[3])
        out, lse, ctx.left_out = forward(problem)
        ctx.save_for_backward(q, k, v, bias, sink, out, lse)
        ctx.problem = problem._replace(q=None, k=None, v=None, bias=None, sink=None)  # saved above
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @first_gradient_only
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        q, k, v, bias, sink, out, lse = ctx.saved_tensors
        problem = ctx.problem._replace(q=q, k=k, v=v, bias=bias, sink=sink)
        d_out = torch.zeros_like(out) if d_out is None else d_out
        grads = backward(problem, out, lse, ctx.left_out, d_out, d_lse)
        return grads.q, grads.k, grads.v, grads.bias, grads.sink, None
