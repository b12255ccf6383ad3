"""A call of attention after validation: what every implementation is given, and what it gives back.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


class Problem(NamedTuple):
    """Causal attention with a bias by distance, ready to be computed."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B Hk N D"]
    v: Float[Tensor, "B Hk N D"]
    bias: Float[Tensor, "H N"]  # float32, or float64 with float64 inputs
    sink: Float[Tensor, " H"] | None  # of the same type as the bias
    windows: list[int]
    mask: Bool[Tensor, "B N"] | None
    scale: float
    softcap: float | None
    skip: bool
    learned: bool  # whether the bias gets a gradient

    @property
    def limit(self) -> float:
        """The log of the share of attention that cannot change a result: half a unit in the last place.

        For a learned bias less: the gradient of its parameters sums t * weight, so the tail may count N times as much.
        """
        digits = 53 if self.q.dtype == torch.float64 else 24
        return -digits * math.log(2) - (math.log(self.k.shape[2]) if self.learned else 0.0)

    def with_unit_stride(self) -> Problem:
        """The same with q, k and v whose last dimension is dense, as kernels want it."""
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (self.q, self.k, self.v))
        return self._replace(q=q, k=k, v=v, bias=self.bias.contiguous())


class Saved(NamedTuple):
    """What a backward pass must know besides inputs, output and log-sum-exp: which keys were left out."""

    first: Int[Tensor, "B H X"] | None = None  # the first key that each block of rows touched
    rows: int = 1  # in such a block


class Gradients(NamedTuple):
    """What the backward pass gives; None where no gradient is wanted."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B Hk N D"]
    v: Float[Tensor, "B Hk N D"]
    bias: Float[Tensor, "H N"] | None
    sink: Float[Tensor, " H"] | None
