"""Short calls on a CPU: one kernel call with a small dense mask, because pieces and Python would cost more.

With nothing but a fixed bias, or a learned one of a few keys, `plain.py` has done it already. With a longer learned
bias, a sink, a soft cap or a gradient of the log-sum-exp, all weights are computed again in the backward pass, at once.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from farfield.nn.attention.kept import dense_mask, sums_by_distance
from farfield.nn.attention.problem import Problem
from farfield.nn.attention.validation import first_gradient_only

if TYPE_CHECKING:
    from jaxtyping import Float

SHORT = 384  # keys, up to which this is no slower than pieces
_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def is_short(problem: Problem) -> bool:
    """Whether one call is best."""
    return problem.mask is None and problem.k.shape[2] <= SHORT


def short(problem: Problem) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp."""
    group = problem.q.shape[1] // problem.k.shape[1]
    k, v = (x if group == 1 else x.repeat_interleave(group, 1) for x in (problem.k, problem.v))
    return Short.apply(
        problem.q, k, v, problem.bias, problem.sink, problem.windows, problem.scale, problem.softcap
    )  # fmt: skip


def capped_rows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, cap: float) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of a few rows whose scores are softly capped: cap * tanh(score / cap)."""
    number = torch.promote_types(q.dtype, torch.float32)
    x = torch.tanh((q.to(number) @ k.to(number).mT) * (scale / cap)) * cap + mask
    lse = x.logsumexp(-1)
    lse = lse.masked_fill_(lse == -math.inf, 0.0)
    return (x.sub_(lse[..., None]).exp_() @ v.to(number)).to(q.dtype), lse


def with_sink(out: Tensor, lse: Tensor, sink: Float[Tensor, " H"], nothing: Tensor | None) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp after one more logit, without a value, joined each row; `nothing`: rows without keys."""
    seen = lse if nothing is None else lse.masked_fill(nothing, -math.inf)
    return out * torch.sigmoid(seen - sink[:, None])[..., None].to(out.dtype), torch.logaddexp(seen, sink[:, None])


class Short(torch.autograd.Function):
    """All rows at once; k and v have as many heads as q."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None,
        windows: list[int], scale: float, softcap: float | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        mask = dense_mask(bias.detach(), q.shape[2], windows)
        if softcap is None:
            out, lse = _forward(q, k, v, 0.0, False, attn_mask=mask[None], scale=scale)
        else:
            out, lse = capped_rows(q, k, v, mask, scale, softcap)
        blind = (mask == -math.inf).all(-1) if bool((bias[:, 0] == -math.inf).any()) else None  # rows without keys
        if sink is not None:
            out, lse = with_sink(out, lse, sink, blind)
        ctx.save_for_backward(q, k, v, sink, mask, out, lse)
        ctx.scale, ctx.softcap = scale, softcap
        ctx.set_materialize_grads(False)
        return out, lse if blind is None or sink is not None else lse.masked_fill(blind, -math.inf)

    @staticmethod
    @first_gradient_only
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        q, k, v, sink, mask, out, lse = ctx.saved_tensors
        number, cap = lse.dtype, ctx.softcap
        query, key, value = (x.to(number) for x in (q, k, v))
        g = torch.zeros_like(query) if d_out is None else d_out.to(number)
        query = query * ctx.scale
        score = query @ key.mT
        if cap is not None:
            score = torch.tanh(score.div_(cap)).mul_(cap)
        weight = (score.add_(mask) if cap is None else score + mask).sub_(lse[..., None]).exp_()
        dv = weight.mT @ g
        shift = (g * out).sum(-1, keepdim=True)
        if d_lse is not None:
            shift = shift - d_lse[..., None]
        d_logit = (g @ value.mT).sub_(shift).mul_(weight)
        d_bias = sums_by_distance(d_logit) if ctx.needs_input_grad[3] else None
        d_sink = None
        if sink is not None and ctx.needs_input_grad[4]:
            d_sink = -(torch.exp(sink[:, None] - lse) * shift[..., 0]).sum((0, 2))
        if cap is not None:
            d_logit = d_logit.mul_(1 - (score / cap).square_())
        dq, dk = (d_logit @ key).mul_(ctx.scale), d_logit.mT @ query
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), d_bias, d_sink, None, None, None
