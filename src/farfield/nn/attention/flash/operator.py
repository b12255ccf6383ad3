"""Attention with a bias by distance on torch's CPU flash kernel, in O(n) memory, forward and backward.

A bias r(i - j) needs no n x n mask. Take the queries of a chunk in reverse order: entry (i', j) of the mask is then
`line[offset + i' + j]`, a view with strides (1, 1) of one vector for each head, which the kernel reads without a copy.
A mask switches off the kernel's own causal skipping, so the queries go in chunks, each with only the keys that it may
see; a window shortens that range on the far side, and so does lossless skipping (skip.py).

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from farfield.nn.attention.contract import exact_type, first_gradient_only
from farfield.nn.attention.flash.short import capped_rows, flash_forward, is_finite, with_sink
from farfield.nn.attention.flash.skip import BiasSums, SkipCertificate, worth
from farfield.nn.attention.flash.threads import ThreadTask, share, threads_for
from farfield.nn.attention.flash.work_items import LARGEST_CHUNK, WorkItem, line_of, mask_of, plan, shares, spans_of
from farfield.nn.attention.reference import reference
from farfield.nn.attention.validation import Problem

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

SHARES_PER_THREAD = 2  # more would balance better, but calls with few heads are slower
KEYS_PER_BACKWARD = 2048  # bounds the gradients that the backward kernel returns for one chunk


class Computed(NamedTuple):
    """What the backward pass starts from."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B Hk N D"]
    v: Float[Tensor, "B Hk N D"]
    line: Float[Tensor, "H L"]
    out: Float[Tensor, "B H M D"]
    lse: Float[Tensor, "B H M"]
    scale: float
    softcap: float | None


class GradientSums(NamedTuple):
    """What the backward pass adds to; `line` is None unless the bias is learned."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B Hk N D"]
    v: Float[Tensor, "B Hk N D"]
    line: Float[Tensor, "H L"] | None


def flash(problem: Problem) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp."""
    q, k, bias, windows = problem.q, problem.k, problem.bias, problem.windows
    queries, keys = q.shape[2], k.shape[2]
    skip = problem.skip and max(windows) == keys and worth(keys - queries / 2, queries)
    sums = BiasSums(bias, q.dtype, bias.requires_grad) if skip else None
    items = plan(spans_of(problem.mask, len(q), keys), queries, keys, windows, k.shape[1], sums)
    problem = problem.with_unit_stride()
    nothing = None
    if problem.mask is not None or bool((bias.detach()[:, 0] == -math.inf).any()):
        nothing = _sees_nothing(bias, windows, problem.mask, queries)
    out, lse = Flash.apply(
        problem.q, problem.k, problem.v, bias, problem.sink, windows, items, sums, problem.scale, problem.softcap,
        nothing,
    )  # fmt: skip
    if nothing is not None and problem.sink is None:
        lse = lse.masked_fill(nothing, -math.inf)
    elif problem.mask is not None:
        lse = lse.masked_fill(~problem.mask[:, None, keys - queries :], -math.inf)
    return out, lse


def _sees_nothing(bias: Tensor, windows: list[int], mask: Tensor | None, queries: int) -> Bool[Tensor, "B H M"]:
    """The queries that are padding, or to which every key in sight has a bias of minus infinity."""
    keys = bias.shape[1]
    t = torch.arange(keys)
    seen = (bias.detach() > float("-inf")) & (t < torch.tensor(windows)[:, None])
    nearest = torch.where(seen.any(-1), seen.int().argmax(-1), keys)
    real = torch.ones(1, keys, dtype=torch.bool) if mask is None else mask
    position = real.cumsum(-1)[:, keys - queries :] - 1  # among the real tokens
    return ~real[:, None, keys - queries :] | (position[:, None] < nearest[:, None])


class Flash(torch.autograd.Function):
    """The output and the log-sum-exp of attention with `bias` (H, N), as the work items cut it."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor,
        sink: Tensor | None,
        windows: list[int],
        items: list[WorkItem],
        sums: BiasSums | None,
        scale: float,
        softcap: float | None,
        nothing: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        line = line_of(bias, windows)
        lse = line.new_zeros(q.shape[:3])  # the kernel's convention: 0 where a query sees nothing
        padding = sum(item.at_queries(lse).numel() for item in items) < lse.numel()
        out = (torch.zeros_like if padding else torch.empty_like)(q, memory_format=torch.contiguous_format)
        done = Computed(q, k, v, line, out, lse, scale, softcap)
        ctx.first_keys = first_keys = [list[int]() for _ in items]  # the backward must follow them

        def act(i: int, item: WorkItem) -> None:
            first_keys[i] = _forward_item(item, done, sums)

        _share(items, act)
        if sink is not None:
            out, lse = with_sink(out, lse, sink, nothing)
        ctx.save_for_backward(q, k, v, line, sink, out, lse)
        ctx.items, ctx.scale, ctx.softcap = items, scale, softcap
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @first_gradient_only
    def backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        from farfield.nn.attention.flash.diagonals import backward_with_bias

        q, k, v, line, sink, out, lse = ctx.saved_tensors
        done = Computed(q, k, v, line, out, lse, ctx.scale, ctx.softcap)
        number = exact_type(q.dtype)  # gradients are summed in float32 at least
        dq, dk, dv = (torch.zeros_like(x, dtype=number, memory_format=torch.contiguous_format) for x in (q, k, v))
        d_line = torch.zeros_like(line, dtype=torch.float64) if ctx.needs_input_grad[3] else None
        grad = GradientSums(dq, dk, dv, d_line)
        d_out = torch.zeros_like(out) if d_out is None else d_out.contiguous()

        def act(i: int, item: WorkItem) -> None:
            if d_line is None and d_lse is None and ctx.softcap is None:
                _backward_item(item, ctx.first_keys[i], done, d_out, grad)
            else:
                backward_with_bias(item, ctx.first_keys[i], done, d_out, d_lse, grad)

        _share(ctx.items, act)
        d_bias = None if d_line is None else d_line[:, : k.shape[2]].flip(-1).to(line.dtype)
        d_sink = None
        if sink is not None and ctx.needs_input_grad[4]:  # the sink's weight times its gradient; its value is 0
            shift = (d_out.to(number) * out).sum(-1)
            shift = shift if d_lse is None else shift - d_lse
            d_sink = -(torch.exp(sink[:, None] - lse) * shift).sum((0, 2))
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), d_bias, d_sink, *[None] * 6


def _share(items: list[WorkItem], act: Callable[[int, WorkItem], None]) -> None:
    """Let torch's threads share the items; those that add to the same gradients stay in one thread and in order."""

    def task(part: list[tuple[int, WorkItem]]) -> ThreadTask:
        def run() -> None:
            for i, item in part:
                act(i, item)

        return ThreadTask(sum(item.size for _, item in part), run)

    threads = threads_for(sum(item.size for item in items))
    share([task(part) for part in shares(items, SHARES_PER_THREAD * threads if threads > 1 else 1)])


def _forward_item(item: WorkItem, done: Computed, sums: BiasSums | None) -> list[int]:
    """Fill `out` and `lse` of one item; return the first key that each chunk touched."""
    q, out, lse = (item.at_queries(x) for x in (done.q, done.out, done.lse))
    k, v = (item.at_keys(x).expand(-1, q.shape[1], -1, -1) for x in (done.k, done.v))
    proof = None
    if sums is not None and item.skips:
        proof = SkipCertificate(sums.of(item.heads), q[0], k[0], v[0], done.scale, done.softcap)

    def kernel(a: int, b: int, s: int) -> tuple[Tensor, Tensor]:
        mask = mask_of(done.line, item.heads, a, b, s, b)
        rows, keys, values = q[:, :, a - item.first : b - item.first].flip(2), k[:, :, s:b], v[:, :, s:b]
        if done.softcap is None:
            o, norm = flash_forward(rows, keys, values, 0.0, False, attn_mask=mask, scale=done.scale)
        else:
            o, norm = capped_rows(rows, keys, values, mask, done.scale, done.softcap)
        if not is_finite(o, norm):  # NaN or infinity in a token must not reach the rows before it
            bias = done.line[item.heads, done.line.shape[1] - LARGEST_CHUNK - b + s :][:, : b - s].flip(-1)
            o, norm = reference(rows.flip(2), keys, values, bias, scale=done.scale, softcap=done.softcap)
            return o, norm.masked_fill(norm == -math.inf, 0.0)
        return o.flip(2), norm.flip(2)

    first_keys = []
    for a, b, s in item.chunks():
        s = s if proof is None else max(s, proof.first_key(a))
        o, norm = kernel(a, b, s)
        again = None if proof is None else proof.uncertain(a, b, s, norm[0])
        if again is not None:
            s = 0
            full, full_norm = kernel(a, b, s)
            o, norm = torch.where(again[..., None], full, o), torch.where(again, full_norm, norm)
        rows = slice(a - item.first, b - item.first)
        out[:, :, rows], lse[:, :, rows] = o, norm
        first_keys.append(s)
    return first_keys


def _backward_item(item: WorkItem, first_keys: list[int], done: Computed, d_out: Tensor, grad: GradientSums) -> None:
    """Add the gradients of one item, for a bias that is not learned."""
    q, out, lse, d_out, dq = (item.at_queries(x) for x in (done.q, done.out, done.lse, d_out, grad.q))
    k, v = (item.at_keys(x).expand(-1, q.shape[1], -1, -1) for x in (done.k, done.v))
    dk, dv = item.at_keys(grad.k), item.at_keys(grad.v)
    for (a, b, _), start in zip(item.chunks(), first_keys, strict=True):
        rows = slice(a - item.first, b - item.first)
        g, query, output, norm = (x[:, :, rows].flip(2) for x in (d_out, q, out, lse))
        for s in range(start, b, KEYS_PER_BACKWARD):
            e = min(b, s + KEYS_PER_BACKWARD)
            x, y, z = _backward(
                g, query, k[:, :, s:e], v[:, :, s:e], output, norm, 0.0, False,
                attn_mask=mask_of(done.line, item.heads, a, b, s, e), scale=done.scale,
            )  # fmt: skip
            dq[:, :, rows] += x.flip(2)
            for total, part in ((dk, y), (dv, z)):  # grouped queries share a key head: their gradients add up
                total[:, :, s:e] += part if part.shape[1] == total.shape[1] else part.sum(1, keepdim=True)
