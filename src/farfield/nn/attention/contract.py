"""In which type attention is computed: one rule for every path, short or long, with or without any option.

The type of q, k and v decides alone. Autocast changes nothing, forward or backward; `dtype=` rounds q, k and v to that
type before anything else, and the output to the type that q had.

    q, k, v     scores, exponentials, sums,   bias, sink,     weights that     output
                log-sum-exp                   soft cap        multiply v
    float64     float64                       float64         float64          float64
    float32     float32                       float32         float32          float32
    bfloat16    float32                       float32         bfloat16 (*)     bfloat16
    float16     float32                       float32         float16 (*)      float16

(*) by the CPU's flash kernel; with a soft cap and in `reference.py` they stay float32. Products of two bfloat16 or
float16 numbers are exact in float32. With V the longest value that a row sees and u half a unit in the last place of
the output's type, an output lies within 3u*V of exact attention to the same q, k, v and float32 bias, besides what
float32 (float64) itself loses: u*V by rounding weights, u*V by rounding the output, and u*V where a sink scales it. For
float32 and float64 what is lost is D*|q|*|k|*scale + |bias| units in the last place of a logit (nn/cache/bounds.py
counts them), and 2^-23 of V where keys are skipped (flash/skip.py).

A bias in a narrower type than these is taken as the float32 numbers that it holds. Gradients are summed in float32
(float64 for float64) and given in the type of what they belong to. Parameters that an encoding learns are float32 in a
model of any type (nn/bias.py). A window, padding, grouped queries and a single query change nothing of this.

FlexAttention on a GPU sums in float32 too; it was never run on one here.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float


def exact_type(kind: torch.dtype) -> torch.dtype:
    """The type of scores, sums and biases for queries of a type."""
    return torch.promote_types(kind, torch.float32)


def autocasts(device: str) -> bool:
    """Whether torch would compute in another type than that of the tensors on a device."""
    return device != "meta" and torch.is_autocast_enabled(device)


def without_autocast(device: str) -> contextlib.AbstractContextManager[Any]:
    """A context in which torch computes in the type of the tensors."""
    return torch.autocast(device, enabled=False) if autocasts(device) else contextlib.nullcontext()


def first_gradient_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that is no graph itself refuses to be part of one, instead of passing for a constant."""

    @functools.wraps(backward)
    def checked(ctx: Any, *grads: Tensor | None) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                'attention has no gradient of a gradient; give implementation="reference", which has one'
            )
        device = next((g.device.type for g in grads if g is not None), "cpu")
        with without_autocast(device):
            return backward(ctx, *grads)

    return checked


def upper_norm(x: Float[Tensor, "*shape D"]) -> Float[Tensor, "*shape"]:
    """The Euclidean norm of each row in float64, never too small: no bound that is built on it is.

    The sum of D squares errs by less than D + 2 units in the last place of the type it is taken in (float64, or float32
    for every narrower type), and squares that underflow there hide less than 2^-62 (2^-500) in each component.
    """
    d = x.shape[-1]
    unit, hidden = (2.0**-52, 2.0**-500) if x.dtype == torch.float64 else (2.0**-23, 2.0**-62)
    x = x if x.dtype == torch.float64 else x.float()
    return torch.linalg.vector_norm(x, dim=-1).double() * (1 + (d + 4) * unit) + math.sqrt(d) * hidden
