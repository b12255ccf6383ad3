"""The learning rate at an update, as a share of its peak: a pure function of the settings and the update's number."""

from __future__ import annotations

import math

from farfield.training.settings import Settings


def inverse_square_root(update: int, warmup: int) -> float:
    """Linear up to `warmup`, then 1/sqrt (the paper's); updates count from 1."""
    warmup = max(1, warmup)
    return min(update / warmup, math.sqrt(warmup / update))


def cosine(update: int, warmup: int, steps: int) -> float:
    """Linear up to `warmup`, then half a cosine down to 0 after the last update; updates count from 1."""
    warmup = max(1, warmup)
    if update <= warmup:
        return update / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (update - warmup) / (steps + 1 - warmup)))


def learning_rate(settings: Settings, update: int) -> float:
    """The learning rate of an update of a run."""
    if settings.schedule == "cosine":
        return settings.learning_rate * cosine(update, settings.warmup, settings.steps)
    return settings.learning_rate * inverse_square_root(update, settings.warmup)
