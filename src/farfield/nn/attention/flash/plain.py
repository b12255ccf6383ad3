"""Calls with nothing but a bias, short or of one query: one look-up, then torch's own kernel.

What happens around the kernel costs as much as the kernel here. That the tensors fit together is checked when a mask is
made; what was checked is the key by which it is found again. Nothing but NaN can reach a row from a key that its mask
hides, so the output is looked at afterwards; a NaN sends the call the long way.

Shapes: B samples, H query heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn.attention.flash.short import SHORT
from farfield.nn.attention.kept import KeptBias, dense_mask, kept_of
from farfield.nn.attention.validation import check_bias, check_call, windows_of

if TYPE_CHECKING:
    from jaxtyping import Float

TINY = 32  # keys, up to which torch's own gradient of a learned bias is cheaper than ours
FEW = 2048  # numbers, up to which torch.equal finds a NaN sooner than a sum
PLANS = 64  # kept for learned biases; the oldest goes first


class _Ready(NamedTuple):
    """What is known of a call before it comes."""

    mask: Tensor  # of a learned bias: 0, or minus infinity where a key is hidden
    group: int  # query heads that share a key head
    hides: bool  # whether some query does not see some key
    distance: Tensor | None = None  # of each pair, for a learned bias of more than one key


_plans: dict[Any, _Ready | None] = {}


def plain(
    q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"], window: Any, scale: float | None
) -> Float[Tensor, "B H M D"] | None:
    """The output; None if another way is better, something must be refused, or a hidden key holds NaN or infinity."""
    if not q.is_cpu or not (window is None or type(window) is int):
        return None
    key = (q.shape, k.shape, v.shape, bias.shape, q.dtype, k.dtype, v.dtype, bias.dtype, window)
    learned = bias.requires_grad
    if learned:
        ready = _plans[key] if key in _plans else _plan(key, q, k, v, bias)
    else:
        known = kept_of(bias)
        if known is None:
            return None
        kept, base = known
        place = (key, bias.stride(), bias.data_ptr())
        ready = kept.masks.get(place)
        if ready is None:
            ready = _made(q, k, v, bias, window, kept, base)
            if ready is not None:
                kept.keep(place, ready)
    if ready is None:
        return None
    mask, group, hides, distance = ready
    if distance is not None:  # its gradient is a sum by distance, in fixed order
        mask = bias.gather(1, distance).view(mask.shape) + mask
    elif learned:
        mask = (bias if bias.shape[1] == 1 else bias.narrow(1, 0, 1)).unsqueeze(2)
    if group > 1:
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()) and not (
        q.stride(3) == k.stride(3) == v.stride(3) == 1  # else torch's flash kernel would not take them
    ):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    if scale is None:  # an option costs time
        out = scaled_dot_product_attention(q, k, v, mask)
    else:
        out = scaled_dot_product_attention(q, k, v, mask, scale=scale)
    return out if not (hides or learned) or _has_no_nan(out) else None


def _has_no_nan(out: Tensor) -> bool:
    """False if there is a NaN; may be False for infinity too."""
    if out.numel() <= FEW:
        return torch.equal(out, out)
    return math.isfinite((out.detach() if out.requires_grad else out).sum().item())


def _made(
    q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"], window: int | None, kept: KeptBias, base: Tensor
) -> _Ready | None:
    """The mask of a short call or of one query, for a bias that is fixed."""
    if k.dim() != 4 or q.dim() != 4 or (k.shape[2] > SHORT and q.shape[2] > 1):
        return None
    check_call(q, k, v, bias, None, None)
    n, group = k.shape[2], q.shape[1] // k.shape[1]
    windows = windows_of(window, q.shape[1], n)
    if n > SHORT:
        line = _line(bias, windows, kept, base)
        return None if line is None else _Ready(line, group, bool(line.isinf().any()))
    check_bias(bias, n)
    mask = dense_mask(bias[:, :n].to(torch.promote_types(q.dtype, torch.float32)), q.shape[2], windows)[None]
    return _Ready(mask, group, bool(mask.isinf().any()))


def _line(bias: Tensor, windows: list[int], kept: KeptBias, base: Tensor) -> Tensor | None:
    """The mask of one query, a view of what is kept; None where a window makes pieces faster, or it is no such bias."""
    n = bias.shape[1]
    whole = base.dim() == 2 and base.shape[0] == bias.shape[0] and bias.storage_offset() == base.storage_offset()
    if min(windows) < n or not whole or base.stride() != bias.stride() or bias.dtype != torch.float32:
        return None
    if base.shape not in kept.good:
        check_bias(base, base.shape[1])
        kept.good.add(base.shape)
    return kept.line(base)[None, :, None, base.shape[1] - n :]


def _plan(key: Any, q: Tensor, k: Tensor, v: Tensor, bias: Float[Tensor, "H T"]) -> _Ready | None:
    """What does not change of the mask of a learned bias: a NaN in the bias itself is seen in the output."""
    if k.dim() != 4 or k.shape[2] > TINY or not q.dtype == bias.dtype == torch.float32:
        return None
    check_call(q, k, v, bias, None, None)
    (heads, m), n, window = q.shape[1:3], k.shape[2], key[-1]
    mask = dense_mask(torch.zeros(heads, n), m, windows_of(window, heads, n))[None]
    place = torch.arange(n)
    distance = (place[n - m :, None] - place).clamp(min=0).view(1, -1).expand(heads, -1) if n > 1 else None
    if len(_plans) >= PLANS:
        del _plans[next(iter(_plans))]
    _plans[key] = plan = _Ready(mask, heads // k.shape[1], True, distance)
    return plan
