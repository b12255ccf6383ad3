"""Work that may be done, counted in steps, not seconds: the same question gets the same answer on every machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from farfield.theory.errors import UndecidedError, UnknownError

_ends: ContextVar[float | None] = ContextVar("when the time is up", default=None)


class Effort:
    """How many products of terms a proof may still cost; `spend` raises UnknownError when they are used up."""

    def __init__(self, left: int = 40_000):
        self.left = left

    def spend(self, products: int) -> None:
        """Count products."""
        self.left -= products
        if self.left < 0:
            raise UnknownError("the proof takes too long")
        tick()


class TimeUpError(Exception):
    """What was asked for is not ready in time; no part of theory takes this for an answer."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Leave the block with TimeUpError after so much time of the processor; an outer limit that ends earlier holds."""
    before = _ends.get()
    end = before if seconds is None else min(time.thread_time() + seconds, float("inf") if before is None else before)
    token = _ends.set(end)
    try:
        yield
    finally:
        _ends.reset(token)


@contextmanager
def answer_in_time() -> Iterator[None]:
    """Call what is not ready after a minute of the processor (FARFIELD_TIME, in seconds) undecided."""
    seconds = float(os.environ.get("FARFIELD_TIME", "60"))
    try:
        with time_limit(seconds):
            yield
    except TimeUpError:
        tick()  # an outer limit that has passed is not ours to answer
        raise UndecidedError(
            f"there was no answer within {seconds:g} seconds of the processor; the environment variable FARFIELD_TIME "
            "gives more"
        ) from None


def tick() -> None:
    """Stop here if a time limit has passed."""
    end = _ends.get()
    if end is not None and time.thread_time() > end:
        raise TimeUpError
