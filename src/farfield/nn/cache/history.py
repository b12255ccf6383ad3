"""The largest norms of keys and values so far, by what became of them: all that a certificate must remember.

Dropped keys are remembered by age, because one large key should not count for ever: an age ends when enough keys were
dropped since it began, so what was dropped in an earlier age is known to lie that much farther away.

Shapes: B samples, H heads, M rows, A ages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.cache.certificate import AGES, LargestNorms

if TYPE_CHECKING:
    from jaxtyping import Float

    from farfield.nn.cache.ring import Heads


class NormHistory:
    """The largest norms that a layer has met, for each sample and head."""

    def __init__(self, samples: int, heads: int, device: torch.device) -> None:
        self.samples, self.device, self.came = samples, device, 0  # tokens since `recent_key` began
        shape = (samples, heads)
        self.dropped_key, self.dropped_value, self.any_key, self.any_value, self.recent_key, self.earlier_key = (
            torch.zeros(shape, dtype=torch.float64, device=device) for _ in range(6)
        )  # dropped in the present age, ever, ...; `earlier_key` is of the stretch before `recent_key`
        self.older_keys: Float[Tensor, "A B H"] = torch.zeros(AGES, *shape, dtype=torch.float64, device=device)

    def rows(self, key: Float[Tensor, "B H M"], value: Float[Tensor, "B H M"]) -> LargestNorms:
        """Take in new tokens; for each the largest norms up to it. What was dropped before it is to be filled in."""
        recent = torch.maximum(_running(self.recent_key, key), self.earlier_key[..., None])
        any_key, any_value = _running(self.any_key, key), _running(self.any_value, value)
        far_key, far_value = (torch.zeros_like(any_key) for _ in range(2))
        dropped = torch.zeros_like(any_key, dtype=torch.bool)
        return LargestNorms(far_key, self.older_keys[..., None], far_value, recent, any_key, any_value, dropped)

    def drop(self, heads: Heads, key: Float[Tensor, "B h"], value: Float[Tensor, "B h"]) -> None:
        """Remember dropped keys and values of some heads."""
        self.dropped_key[:, heads] = torch.maximum(self.dropped_key[:, heads], key)
        self.dropped_value[:, heads] = torch.maximum(self.dropped_value[:, heads], value)

    def begin_age(self, heads: Heads) -> None:
        """The present age of these heads becomes the last one; the two oldest become one."""
        before = self.older_keys[:, :, heads].clone()
        self.older_keys[-1][:, heads] = before[-2:].amax(0)
        self.older_keys[1:-1, :, heads] = before[:-2]
        self.older_keys[0][:, heads] = self.dropped_key[:, heads]
        self.dropped_key[:, heads] = 0.0

    def grow_older(self, new: int, stretch: int) -> None:
        """Count new tokens: after a stretch of them, what was recent is earlier."""
        self.came += new
        if self.came >= stretch:
            self.earlier_key, self.recent_key = self.recent_key, torch.zeros_like(self.recent_key)
            self.came = 0

    def select(self, samples: Tensor) -> None:
        """Keep these samples, in this order; one may appear several times."""
        samples = samples.to(self.device)
        self.samples, self.older_keys = len(samples), self.older_keys[:, samples]
        for name in ("dropped_key", "dropped_value", "any_key", "any_value", "recent_key", "earlier_key"):
            setattr(self, name, getattr(self, name)[samples])


def _running(largest: Float[Tensor, "B H"], size: Float[Tensor, "B H M"]) -> Float[Tensor, "B H M"]:
    """The largest number up to each row, which `largest` remembers."""
    size = torch.maximum(size if size.shape[2] == 1 else size.cummax(-1).values, largest[..., None])
    largest.copy_(size[..., -1])
    return size
