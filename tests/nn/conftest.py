"""Shapes in annotations are checked here, and only here: production code pays nothing for them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor


@pytest.fixture(scope="session")
def checked() -> Callable[[Any], Any]:
    """A function with its jaxtyping annotations enforced by beartype."""
    import beartype
    import jaxtyping

    def check(function: Any) -> Any:
        for name in ("Float", "Bool", "Int"):
            function.__globals__.setdefault(name, getattr(jaxtyping, name))
        return jaxtyping.jaxtyped(typechecker=beartype.beartype)(function)

    return check


@pytest.fixture
def draw() -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Normal q, k and v of the shapes asked for."""

    def make(
        batch: int = 1, heads: int = 2, n: int = 64, width: int = 16, *, key_heads: int | None = None,
        queries: int | None = None, seed: int = 0, dtype: torch.dtype = torch.float32,
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        random = torch.Generator().manual_seed(seed)
        shape = (batch, key_heads or heads, n, width)
        q = torch.randn(batch, heads, queries or n, width, generator=random, dtype=dtype)
        return q, torch.randn(shape, generator=random, dtype=dtype), torch.randn(shape, generator=random, dtype=dtype)

    return make
