"""The largest norms of keys and values so far, by what became of them: all that a certificate must remember.

Dropped keys are remembered by age, because one large key should not count for ever: an age ends when enough keys were
dropped since it began, so what was dropped in an earlier age is known to lie that much farther away.

Shapes: B samples, H heads, M rows, A ages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Float

    from farfield.nn.cache.heads import Heads

AGES = 5  # before the present one; the last holds everything older


class LargestByAge:
    """A running maximum in the present age and in each age before it, for each sample and head."""

    def __init__(self, samples: int, heads: int, device: torch.device) -> None:
        self.present: Float[Tensor, "B H"] = torch.zeros(samples, heads, dtype=torch.float64, device=device)
        self.before: Float[Tensor, "A B H"] = torch.zeros(AGES, samples, heads, dtype=torch.float64, device=device)

    def begin_age(self, heads: Heads) -> None:
        """The present age of these heads becomes the last one; the two oldest become one."""
        before = self.before[:, :, heads].clone()
        self.before[-1][:, heads] = before[-2:].amax(0)
        self.before[1:-1, :, heads] = before[:-2]
        self.before[0][:, heads] = self.present[:, heads]
        self.present[:, heads] = 0.0

    def select(self, samples: Tensor) -> None:
        self.present, self.before = self.present[samples], self.before[:, samples]


class NormHistory:
    """The largest norms that a layer has met, for each sample and head."""

    def __init__(self, samples: int, heads: int, device: torch.device) -> None:
        self.samples, self.device = samples, device
        self.dropped_key = LargestByAge(samples, heads, device)
        self.dropped_value, self.any_key, self.any_value, self.recent_key, self.earlier_key = (
            torch.zeros(samples, heads, dtype=torch.float64, device=device) for _ in range(5)
        )
        self.came = 0  # tokens since `recent_key` began; `earlier_key` is of the stretch before

    def rows(self, key: Float[Tensor, "B H M"], value: Float[Tensor, "B H M"]) -> tuple[Tensor, Tensor, Tensor]:
        """Take in new tokens; for each the largest recent key, the largest key and the largest value up to it."""
        recent = _running(self.recent_key, key)
        any_key, any_value = _running(self.any_key, key), _running(self.any_value, value)
        return torch.maximum(recent, self.earlier_key[..., None]), any_key, any_value

    def drop(self, heads: Heads, key: Float[Tensor, "B h"], value: Float[Tensor, "B h"]) -> tuple[Tensor, Tensor]:
        """Remember dropped keys and values of some heads; the largest of the present age, and of all values."""
        key = torch.maximum(self.dropped_key.present[:, heads], key)
        value = torch.maximum(self.dropped_value[:, heads], value)
        self.dropped_key.present[:, heads], self.dropped_value[:, heads] = key, value
        return key, value

    def grow_older(self, new: int, stretch: int) -> None:
        """Count new tokens: after a stretch of them, what was recent is earlier."""
        self.came += new
        if self.came >= stretch:
            self.earlier_key, self.recent_key = self.recent_key, torch.zeros_like(self.recent_key)
            self.came = 0

    def select(self, samples: Tensor) -> None:
        """Keep these samples, in this order; one may appear several times."""
        samples = samples.to(self.device)
        self.samples = len(samples)
        self.dropped_key.select(samples)
        for name in ("dropped_value", "any_key", "any_value", "recent_key", "earlier_key"):
            setattr(self, name, getattr(self, name)[samples])


def _running(largest: Float[Tensor, "B H"], size: Float[Tensor, "B H M"]) -> Float[Tensor, "B H M"]:
    """The largest number up to each row, which `largest` remembers."""
    size = torch.maximum(size if size.shape[2] == 1 else size.cummax(-1).values, largest[..., None])
    largest.copy_(size[..., -1])
    return size
