"""How long a study will still take, from how far its jobs are."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

LEAST = 0.02  # of the work must be done before anything is said
PATIENCE = 20.0  # seconds before anything is said


class TimeLeft:
    """The time that a batch of equal jobs still takes: what is done, over the time that it took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.start(0)

    def start(self, jobs: int) -> None:
        """A new batch of so many jobs."""
        self.began, self.jobs, self.ended = self.clock(), jobs, 0
        self.first: dict[Hashable, float] = {}  # where each job stood when it was first seen: maybe it goes on
        self.now: dict[Hashable, float] = {}

    def moved(self, job: Hashable, whole: float) -> None:
        """A job has done this share of all its work."""
        self.first.setdefault(job, whole)
        self.now[job] = max(whole, self.now.get(job, 0.0))

    def end(self, job: Hashable) -> None:
        """A job is done, or has failed."""
        self.moved(job, 1.0)
        self.ended += 1

    @property
    def seconds(self) -> float | None:
        """None as long as it is too early to say, or nothing is left."""
        elapsed = self.clock() - self.began
        done = sum(self.now[job] - self.first[job] for job in self.now)
        left = self.jobs - sum(self.now.values())
        if elapsed < PATIENCE or done < LEAST * self.jobs or left <= 0:
            return None
        return elapsed * left / done

    @property
    def sentence(self) -> str:
        """For a person: "about 7 minutes left"; empty if it is too early to say."""
        seconds = self.seconds
        if seconds is None:
            return ""
        minutes = round(seconds / 60)
        if minutes < 1:
            return "less than a minute left"
        if minutes < 120:
            return f"about {minutes} minute{'s' if minutes > 1 else ''} left"
        return f"about {round(seconds / 3600)} hours left"
