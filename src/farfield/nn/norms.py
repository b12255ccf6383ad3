"""The Euclidean norm that every certificate uses: rounded up, so that no bound built on it is too small."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


def upper_norm(x: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape"]:
    """The norm of each row in float64, never too small.

    The sum of D squares errs by less than D + 2 units in the last place of the type it is taken in (float64, or float32
    for every narrower type), and squares that underflow there hide less than 2^-62 (2^-500) in each component.
    """
    d = x.shape[-1]
    unit, hidden = (2.0**-52, 2.0**-500) if x.dtype == torch.float64 else (2.0**-23, 2.0**-62)
    x = x if x.dtype == torch.float64 else x.float()
    return torch.linalg.vector_norm(x, dim=-1).double() * (1 + (d + 4) * unit) + math.sqrt(d) * hidden
