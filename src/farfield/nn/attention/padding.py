"""Where the real tokens of each sample lie: padding is cut away, never masked.

Shapes: B samples, N keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool


@dataclass(frozen=True)
class Span:
    """Neighbouring samples whose real tokens are the keys `start` to `end` (excluded)."""

    samples: slice
    start: int
    end: int


def spans_of(mask: Bool[Tensor, "B N"] | None, samples: int, keys: int) -> list[Span]:
    """Where the real tokens of each sample lie, neighbours alike taken together."""
    if mask is None:
        return [Span(slice(0, samples), 0, keys)]
    place = torch.arange(keys, device=mask.device)
    count = mask.sum(-1)
    start = mask.int().argmax(-1)
    block = (place >= start[:, None]) & (place < (start + count)[:, None])
    if not bool((block == mask).all()):
        sample = int((block != mask).any(-1).int().argmax())
        raise ValueError(
            f"the padding mask of sample {sample} has gaps; the real tokens of a sample must stand together, "
            "with padding before or after them"
        )
    spans: list[Span] = []
    for b, (s, c) in enumerate(zip(start.tolist(), count.tolist(), strict=True)):
        if spans and (spans[-1].start, spans[-1].end) == (s, s + c):
            spans[-1] = Span(slice(spans[-1].samples.start, b + 1), s, s + c)
        else:
            spans.append(Span(slice(b, b + 1), s, s + c))
    return spans
