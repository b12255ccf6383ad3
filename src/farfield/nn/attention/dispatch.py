"""From a call of attention that was checked to the implementation that computes it.

Shapes: B samples, H query heads, M queries, D width of a head.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import Tensor

from farfield.nn.attention.flash.operator import flash
from farfield.nn.attention.flash.short import is_short, short
from farfield.nn.attention.problem import Problem
from farfield.nn.attention.reference import reference

if TYPE_CHECKING:
    from jaxtyping import Float


def compute(problem: Problem, implementation: str) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp."""
    if implementation == "flash" and is_short(problem):
        out, lse = short(problem)
        if math.isfinite(out.detach().sum().item()):  # else NaN or infinity in a token may have reached rows before it
            return out, lse
        implementation = "reference"
    if implementation == "flash":
        return flash(problem)
    if implementation == "triton":
        from farfield.nn.attention.triton.function import triton_attention

        return triton_attention(problem)
    if implementation == "flex":
        from farfield.nn.attention.flex import flex

        return flex(problem)
    return reference(
        problem.q, problem.k, problem.v, problem.bias, window=problem.windows, mask=problem.mask, sink=problem.sink,
        softcap=problem.softcap, scale=problem.scale,
    )  # fmt: skip
