"""The encodings that are no bias: sinusoidal positions, added to the embedding, and rotary ones, which turn q and k.

Angles are computed in float64 from the position and rounded once, whatever the type of the model.

Shapes: B samples, N tokens, H heads, D width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def _angles(positions: Tensor, width: int, base: float) -> Tensor:
    """position / base**(2i/width) for i below width/2."""
    if width % 2:
        raise ValueError(f"the width is {width}; sines and cosines come in pairs, so it must be even")
    rate = base ** -(torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width)
    return positions.to(torch.float64)[..., None] * rate


class Sinusoidal(nn.Module):
    """Sines and cosines of the position, to add to the token embedding (Vaswani et al. 2017)."""

    def __init__(self, width: int, base: float = 10_000.0) -> None:
        super().__init__()
        self.width, self.base = width, base

    def forward(self, positions: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape D"]:
        """Place 2i holds sin(position / base**(2i/D)), place 2i + 1 the cosine."""
        angle = _angles(positions, self.width, self.base)
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(-2).float()


class Rope(nn.Module):
    """Turns each pair (i, i + D/2) of a query or key by its position times base**(-2i/D) (Su et al. 2021)."""

    def __init__(self, base: float = 10_000.0) -> None:
        super().__init__()
        self.base = base

    def forward(self, x: Float[Tensor, "B H N D"], positions: Int[Tensor, "*B N"]) -> Float[Tensor, "B H N D"]:
        """The queries or keys, turned; positions for all samples, or for each."""
        angle = _angles(positions, x.shape[-1], self.base)
        angle = angle.unsqueeze(-3)  # the same for every head
        cos, sin = angle.cos().float(), angle.sin().float()
        a, b = x.float().chunk(2, -1) if x.dtype != torch.float64 else x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)
