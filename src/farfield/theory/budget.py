"""Work that may be done, counted in steps, not seconds: the same question gets the same answer on every machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from farfield.theory.errors import UndecidedError

STEPS = 16_000  # terms of expansions that an ordinary machine handles in a second
_ends: ContextVar[float | None] = ContextVar("when the time is up", default=None)


class Work:
    """What one question may cost; `spend` raises UndecidedError when it is used up."""

    def __init__(self, seconds: float):
        self.left = int(seconds * STEPS)

    @property
    def done(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0

    def spend(self, steps: int = 1) -> None:
        """Count steps."""
        self.left -= steps
        if self.left <= 0:
            raise UndecidedError("the work allowed was used up")
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
