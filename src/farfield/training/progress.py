"""What a person sees of a run while it trains: loss, tokens a second, and the time that is left."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from farfield.training.settings import Settings


class Pace:
    """How long updates, evaluations and saves take, and so how long the rest of a run will.

    Each kind is timed by itself: an evaluation that comes every thousand steps must not make the steps look slow. Of
    the steps the last minute counts (at least 20 of them), because the first ones are slower and machines change.
    """

    WINDOW, FEWEST = 60.0, 20

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self.steps: deque[float] = deque()
        self.rare: dict[str, list[float]] = {"evaluation": [], "save": []}
        self.first: float | None = None

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Time a step, an evaluation or a save."""
        start = self.clock()
        yield
        seconds = self.clock() - start
        if kind != "step":
            self.rare[kind].append(seconds)
        elif self.first is None:
            self.first = seconds  # it touches memory and compiles
        else:
            self.steps.append(seconds)
            while len(self.steps) > self.FEWEST and sum(self.steps) - self.steps[0] > self.WINDOW:
                self.steps.popleft()

    @property
    def seconds_per_step(self) -> float:
        """The mean over the last minute; the first step alone while there is no other."""
        return sum(self.steps) / len(self.steps) if self.steps else self.first or 0.0

    def left(self, step: int) -> float:
        """Seconds from the end of a step to the end of the run."""
        settings, seconds = self.settings, (self.settings.steps - step) * self.seconds_per_step
        for kind, every in (("evaluation", settings.evaluate_every), ("save", settings.save_every)):
            times = self.rare[kind]
            to_come = settings.steps // every - step // every + (settings.steps % every > 0 and step < settings.steps)
            # before the first: an evaluation reads its tokens once, and a step goes over its own about three times
            share = settings.evaluate_tokens / (3 * settings.batch * settings.length) if kind == "evaluation" else 0.0
            seconds += to_come * (sum(times[-5:]) / len(times[-5:]) if times else share * self.seconds_per_step)
        return seconds


class ProgressBar:
    """A bar on a terminal; elsewhere, as in a log file, a line every half a minute."""

    SECONDS = 30.0

    def __init__(self, settings: Settings, step: int, shown: bool = True) -> None:
        self.settings, self.shown, self.pace = settings, shown, Pace(settings)
        self.loss, self.last_line = float("nan"), time.monotonic()
        console = Console(stderr=True)
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
        live = shown and console.is_terminal
        self.bar = Progress(*columns, console=console, transient=True) if live else None
        if self.bar is not None:
            self.task = self.bar.add_task("", total=settings.steps, completed=step, status="")
            self.bar.start()

    def moved(self, step: int) -> None:
        """Show where the run is."""
        tokens = self.settings.batch * self.settings.length / max(self.pace.seconds_per_step, 1e-9)
        status = f"loss {self.loss:.3f}  {tokens:,.0f} tokens/s  {duration(self.pace.left(step))} left"
        if self.bar is not None:
            self.bar.update(self.task, completed=step, status=status)
        elif self.shown and time.monotonic() - self.last_line > self.SECONDS:
            self.last_line = time.monotonic()
            say_on_stderr(f"step {step} of {self.settings.steps}  {status}")

    def close(self) -> None:
        """Take the bar off the terminal, however the run ended."""
        if self.bar is not None:
            self.bar.stop()


def say_on_stderr(line: str) -> None:
    """A line on stderr; where nobody can read it any more, a run goes on all the same."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # the reader of a pipe has left, or the disk of a log is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
