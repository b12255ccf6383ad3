"""The attention weights themselves, for whoever wants to look at them: n x n numbers, so for short texts only.

Shapes: B samples, H query heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.attention.reference import reference
from farfield.nn.attention.validation import Windows

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

LARGEST = 1 << 28  # numbers that are handed out at most: 1 GB of float32
ROWS = 1 << 22  # numbers of a block of rows


def attention_weights(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = None,
    *,
    window: Windows = None,
    mask: Bool[Tensor, "B N"] | None = None,
    scale: float | None = None,
) -> Float[Tensor, "B H M N"]:
    """The weight of every key in every row, computed a block of rows at a time; 0 where nothing is seen."""
    batch, heads, m, _ = q.shape
    n = k.shape[2]
    if batch * heads * m * n > LARGEST:
        raise ValueError(
            f"the weights of {heads} heads over {m} x {n} pairs were asked for, more than {LARGEST:,} numbers; "
            "leave output_attentions out for long texts"
        )
    out = q.new_empty(batch, heads, m, n)
    unit = torch.eye(n, dtype=q.dtype, device=q.device).expand(batch, k.shape[1], n, n)
    step = max(1, ROWS // (batch * heads * n))
    for b in range(m, 0, -step):  # the last row of a block must stand at the last of its keys
        a, keys = max(0, b - step), n - m + b
        part = None if mask is None else mask[:, :keys]
        block, _ = reference(
            q[:, :, a:b], k[:, :, :keys], unit[:, :, :keys, :keys], bias, window=window, mask=part, scale=scale
        )
        out[:, :, a:b] = torch.nn.functional.pad(block, (0, n - keys))
    return out
