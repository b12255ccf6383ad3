"""Attention with a bias by distance as Triton kernels, chosen by name: `attention(..., implementation="triton")`.

What it tries: a kernel that leaves out keys which provably cannot change the result (`nn/attention/flash/skip.py`) and
sums the gradient of a learned bias by diagonals, neither of which FlexAttention does. It agrees with the definition in
Triton's interpreter and compiles for four GPUs; it was never run on one. `tiles.py` holds what the kernels share,
`forward.py` and `backward.py` the kernels, `launch.py` their call.

Shapes: B samples, H query heads, M queries, D width of a head.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.attention.validation import Problem

if TYPE_CHECKING:
    from jaxtyping import Float


def attention(problem: Problem) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp."""
    if importlib.util.find_spec("triton") is None:
        raise ValueError("implementation 'triton' needs the package triton: pip install 'farfield[triton]'")
    device = problem.q.device
    if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f"implementation 'triton' is a GPU's, but q is on {device}; leave implementation out")
    if problem.q.dtype == torch.float64:
        raise ValueError("the Triton kernels compute in float32; for float64 give implementation='flex' or 'reference'")
    from farfield.experiments.triton.launch import TritonAttention

    return TritonAttention.apply(problem.q, problem.k, problem.v, problem.bias, problem.sink, problem)
