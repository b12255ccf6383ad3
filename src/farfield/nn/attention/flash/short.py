"""Short calls on a CPU: one kernel call with a small dense mask, because pieces and Python would cost more.

What happens around the kernel costs as much as the kernel here. With nothing but a bias (`plain`) it is one look-up of
a mask, then torch's own kernel: that the tensors fit together is checked when a mask is made, and what was checked is
the key by which it is found again, while the numbers of the bias still are those that it was made of. A bias may be
written to in ways that torch does not count (`.data`, numpy, memory that processes share), so the numbers themselves
are compared: 1 to 4 microseconds, where making a mask takes up to a thousand. With a longer learned bias, a sink, a
soft cap or a gradient of the log-sum-exp (`short`), all weights are computed again in the backward pass, at once.

Nothing but NaN can reach a row from a key that its mask hides, so the output is looked at afterwards: one that is not
finite sends the call the long way.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn.attention.contract import exact_type, first_gradient_only, without_autocast
from farfield.nn.attention.validation import Problem, check_bias, check_call, windows_of

if TYPE_CHECKING:
    from jaxtyping import Float

SHORT = 384  # keys, up to which this is no slower than pieces
TINY = 32  # keys, up to which torch's own gradient of a learned bias is cheaper than ours
BYTES = 1 << 27  # of all masks in the cache; the oldest goes first
PLANS = 64  # of calls with biases that are learned or long; the oldest goes first
flash_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class _Mask(NamedTuple):
    """A mask, whether it hides any key from any query, and the bias that it was made of."""

    mask: Tensor
    hides: bool
    bias: Tensor


class _Plan(NamedTuple):
    """What of a call does not depend on the numbers of its bias."""

    distance: Tensor | None = None  # of each pair, for a learned bias of more than one key
    mask: Any = None  # of a learned bias: 0, or minus infinity where a key is hidden


_masks: dict[Hashable, _Mask] = {}
_plans: dict[Hashable, _Plan] = {}


def is_finite(x: Tensor, lse: Tensor | None = None) -> bool:
    """Whether an output holds neither NaN nor infinity; false at worst for float32 numbers near the end of its range.

    In float16 and bfloat16 the kernel gives 0 to a row that sees an infinite logit: there the log-sum-exp tells.
    """
    x = x.detach()
    finite = math.isfinite(x.sum().item())
    if x.dtype.itemsize > 2:
        return finite
    if not finite:  # the sum itself soon overflows in a narrow type
        least, largest = x.aminmax()
        finite = math.isfinite(least.item()) and math.isfinite(largest.item())
    return finite and (lse is None or lse.amax().item() < math.inf)


def plain(
    q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"], window: Any, scale: float | None
) -> Float[Tensor, "B H M D"] | None:
    """The output; None if another way is better, something must be refused, or a hidden key holds NaN or infinity."""
    if not q.is_cpu or not (window is None or type(window) is int) or not q.dim() == k.dim() == 4:
        return None
    if torch.is_autocast_enabled("cpu"):  # torch's own gradient of a learned bias would be rounded
        with without_autocast("cpu"):
            return None if bias.requires_grad else plain(q, k, v, bias, window, scale)
    key = (q.shape, k.shape, v.shape, bias.shape, q.dtype, k.dtype, v.dtype, bias.dtype, window)
    learned, n = bias.requires_grad, k.shape[2]
    hides = True
    if learned or n > SHORT:
        if (n > TINY) if learned else (q.shape[2] > 1 or (window is not None and window < n)):  # pieces are faster
            return None
        plan = _plans.get((key, learned)) or _make_plan(key, q, k, v, bias)
        if plan is None:
            return None
        distance, mask = plan
        if not learned:  # one query: the bias from far to near, too quickly turned round to be worth a cache
            mask = bias[:, :n].flip(-1).view(1, -1, 1, n).to(exact_type(q.dtype))
        elif distance is not None:  # its gradient is a sum by distance, in fixed order
            mask = bias.gather(1, distance).view(mask.shape) + mask
        else:
            mask = (bias if bias.shape[1] == 1 else bias.narrow(1, 0, 1)).unsqueeze(2)
    else:
        place = (key, bias.data_ptr())
        entry = _masks.get(place)
        if entry is None or not torch.equal(entry.bias, bias):
            entry = _make_mask(place, q, k, v, bias, window)
        mask, hides, _ = entry
    group = q.shape[1] // k.shape[1]
    if group > 1:
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()) and not (
        q.stride(3) == k.stride(3) == v.stride(3) == 1  # else torch's flash kernel would not take them
    ):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if q.dtype.itemsize == 2:
        out, lse = flash_forward(q, k, v, 0.0, False, attn_mask=mask, scale=scale)
        return out if is_finite(out, lse) else None
    if scale is None:  # an option costs time
        out = scaled_dot_product_attention(q, k, v, mask)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, scale=scale)
    return out if not hides or is_finite(out) else None


@torch.inference_mode(False)  # what is cached may take part in a training step later
def _make_mask(
    place: Hashable, q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"], window: int | None
) -> _Mask:
    """The mask of a short call, for a bias that is fixed."""
    check_call(q, k, v, bias, None, None)
    n, windows = k.shape[2], windows_of(window, q.shape[1], k.shape[2])
    check_bias(bias, n)
    mask = dense_mask(bias[:, :n].to(exact_type(q.dtype)), q.shape[2], windows)[None]
    _masks.pop(place, None)
    _masks[place] = entry = _Mask(mask, bool(mask.isinf().any()), bias.detach().clone())
    while len(_masks) > 1 and sum(m.mask.numel() * m.mask.element_size() for m in list(_masks.values())) > BYTES:
        _masks.pop(next(iter(_masks)), None)
    return entry


@torch.inference_mode(False)
def _make_plan(key: Any, q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"]) -> _Plan | None:
    """What does not change with the numbers of a bias: a NaN in the bias itself is seen in the output."""
    (heads, m), n, window, learned = q.shape[1:3], k.shape[2], key[-1], bias.requires_grad
    if learned and not q.dtype == bias.dtype == torch.float32:
        return None
    check_call(q, k, v, bias, None, None)
    plan = _Plan()
    if learned:
        mask = dense_mask(torch.zeros(heads, n), m, windows_of(window, heads, n))[None]
        place = torch.arange(n)
        distance = (place[n - m :, None] - place).clamp(min=0).view(1, -1).expand(heads, -1) if n > 1 else None
        plan = _Plan(distance, mask)
    if len(_plans) >= PLANS:
        _plans.pop(next(iter(_plans)), None)
    _plans[key, learned] = plan
    return plan


def dense_mask(bias: Float[Tensor, "H N"], queries: int, windows: list[int]) -> Float[Tensor, "H M N"]:
    """The mask of a short call: the bias at each distance, minus infinity for the future and beyond the window."""
    heads, keys = bias.shape
    if min(windows) < keys:
        far = torch.arange(keys, device=bias.device) >= torch.tensor(windows, device=bias.device)[:, None]
        bias = bias.masked_fill(far, float("-inf"))
    line = torch.nn.functional.pad(bias.flip(-1), (0, queries - 1), value=float("-inf")).contiguous()
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
    number = exact_type(q.dtype)
    x = torch.tanh((q.to(number) @ k.to(number).mT) * (scale / cap)) * cap + mask
    lse = x.logsumexp(-1)
    lse = lse.masked_fill_(lse == -math.inf, 0.0)
    return (x.sub_(lse[..., None]).exp_() @ v.to(number)).to(q.dtype), lse


def with_sink(out: Tensor, lse: Tensor, sink: Float[Tensor, " H"], nothing: Tensor | None) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp after one more logit, without a value, joined each row; `nothing`: rows without keys."""
    seen = lse if nothing is None else lse.masked_fill(nothing, -math.inf)
    out = (out * torch.sigmoid(seen - sink[:, None])[..., None]).to(out.dtype)
    return out, torch.logaddexp(seen, sink[:, None])


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
            out, lse = flash_forward(q, k, v, 0.0, False, attn_mask=mask[None], scale=scale)
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
