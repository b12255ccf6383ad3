"""Attention from its formula, dense and in float64: what tests hold every path against, without a line of farfield."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def dense(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None = None, *, window: int | Sequence[int] | None = None,
    mask: Tensor | None = None, sink: Tensor | None = None, softcap: float | None = None, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Output and log-sum-exp, head by head; the sink is one more column of logits, with a value of 0."""
    (batch, heads, m, width), n = q.shape, k.shape[2]
    shared = heads // k.shape[1]
    i, j = torch.arange(n - m, n)[:, None], torch.arange(n)[None]
    outputs, sums = [], []
    for h in range(heads):
        x, y, z = q[:, h].double(), k[:, h // shared].double(), v[:, h // shared].double()
        logits = torch.einsum("bid,bjd->bij", x, y) * (width**-0.5 if scale is None else scale)
        if softcap is not None:
            logits = softcap * torch.tanh(logits / softcap)
        if bias is not None:
            logits = logits + bias[h].double()[(i - j).clamp(min=0)]
        tokens = n if window is None else window if isinstance(window, int) else window[h]
        hidden = ((j > i) | (i - j >= tokens)).expand(batch, m, n)
        if mask is not None:
            hidden = hidden | ~mask[:, None, :] | ~mask[:, n - m :, None]
        logits = logits.masked_fill(hidden, float("-inf"))
        last = logits.new_full((batch, m, 1), float("-inf")) if sink is None else sink[h].double().expand(batch, m, 1)
        logits = torch.cat([logits, last], -1)
        if mask is not None:
            logits = logits.masked_fill(~mask[:, n - m :, None], float("-inf"))
        blind = (logits == float("-inf")).all(-1, keepdim=True)
        weights = logits.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)[..., :n]
        outputs.append(torch.einsum("bij,bjd->bid", weights, z))
        sums.append(logits.masked_fill(blind, 0.0).logsumexp(-1).masked_fill(blind[..., 0], float("-inf")))
    return torch.stack(outputs, 1), torch.stack(sums, 1)
