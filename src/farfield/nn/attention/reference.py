"""Attention in two dozen obvious lines: what every fast path must equal. It stores n x n numbers, so keep n small.

Shapes: B samples, H heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.attention.contract import autocasts, exact_type, without_autocast
from farfield.nn.attention.validation import Windows

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def reference(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = None,
    *,
    window: Windows = None,
    mask: Bool[Tensor, "B N"] | None = None,
    sink: Float[Tensor, " H"] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    dtype: torch.dtype | None = None,
) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp of causal attention with a bias, computed from the definition.

    A key that a query does not see has no part in its result, whatever it holds, NaN and infinity included. The sink is
    one more logit of each head, without a value; the log-sum-exp counts it. A query that sees no key gives 0 and the
    sink, or minus infinity; so does padding, always minus infinity. Everything is computed in float32, or in float64
    for float64, and the output is rounded once, to the type of q; with `dtype` it is computed and given in that type.
    Autocast changes nothing (contract.py).
    """
    if autocasts(q.device.type):
        with without_autocast(q.device.type):
            return reference(
                q, k, v, bias, window=window, mask=mask, sink=sink, softcap=softcap, scale=scale, dtype=dtype
            )
    heads, m, n, kind = q.shape[1], q.shape[2], k.shape[2], dtype or q.dtype
    q, k, v = (x.to(dtype or exact_type(kind)) for x in (q, k, v))
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    position = torch.arange(n, device=q.device)
    t = position[n - m :, None] - position  # (M, N): the last query stands at the last key
    tokens = torch.as_tensor(n if window is None else window, device=q.device).reshape(-1, 1, 1)
    seen = ((t >= 0) & (t < tokens))[None]  # (1, 1 or H, M, N): a window of j tokens is t < j
    if mask is not None:
        seen = seen & mask[:, None, None, :] & mask[:, None, n - m :, None]
    logits = q @ k.mT * (q.shape[3] ** -0.5 if scale is None else scale)
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    if bias is not None:
        added = bias.to(logits.dtype)[:, t.clamp(min=0)]
        seen = seen & (added != float("-inf"))  # a bias of minus infinity hides the key
        logits = logits + added.masked_fill(~seen, 0)
    logits = logits.masked_fill(~seen, float("-inf"))
    lse = logits.logsumexp(-1)
    if sink is not None:
        lse = torch.logaddexp(lse, sink.to(lse.dtype)[:, None])
        if mask is not None:
            lse = lse.masked_fill(~mask[:, None, n - m :], float("-inf"))
    weight = (logits - lse.masked_fill(lse == float("-inf"), 0)[..., None]).exp()
    if bool(v.isfinite().all()):
        return (weight @ v).to(kind), lse
    out = [(weight[..., i, :, None] * v).masked_fill(~seen[..., i, :, None], 0).sum(-2) for i in range(m)]
    return torch.stack(out, 2).to(kind), lse
