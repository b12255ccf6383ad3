"""What a person sees of a run while it trains: a bar with loss, tokens a second and time left; and the loggers."""

from __future__ import annotations

import importlib.util
import os
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers.trainer_callback import TrainerCallback

from farfield.training.settings import Settings

LOGGERS = ("tensorboard", "trackio", "wandb")


def loggers(choice: str) -> list[str] | str:
    """The loggers to report to: a name, several with commas, `none`, or `auto` for those that are installed.

    wandb sends to another machine, so `auto` takes it only where the user has set it up (WANDB_API_KEY or WANDB_MODE).
    """
    if choice == "none":
        return "none"
    if choice != "auto":
        named = [name.strip() for name in choice.split(",")]
        for name in named:
            if name not in LOGGERS:
                raise ValueError(f"There is no logger {name!r}: choose auto, none, or from {', '.join(LOGGERS)}.")
            if importlib.util.find_spec(name) is None:
                raise ValueError(f"The logger {name} is not installed: pip install {name}.")
        return named
    found = [name for name in LOGGERS if importlib.util.find_spec(name) is not None]
    if not ({"WANDB_API_KEY", "WANDB_MODE"} & set(os.environ)):
        found = [name for name in found if name != "wandb"]
    return found or "none"


class ProgressBar(TrainerCallback):
    """A rich progress bar on a terminal; elsewhere, as in a log file, a line every half a minute."""

    SECONDS = 30.0

    def __init__(self, settings: Settings, shown: bool = True) -> None:
        self.settings, self.shown = settings, shown
        self.loss = float("nan")
        self.console = Console(stderr=True)
        self.bar: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.started = self.told = time.monotonic()
        self.first_step = state.global_step
        if not (self.shown and self.console.is_terminal):
            return
        self.bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=self.settings.steps, completed=state.global_step, status="")
        self.bar.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        now = time.monotonic()
        done = (state.global_step - self.first_step) * self.settings.batch * self.settings.length
        status = f"loss {self.loss:.3f}  {done / max(now - self.started, 1e-9):,.0f} tokens/s"
        if self.bar is not None:
            self.bar.update(self.task, completed=state.global_step, status=status)
        elif self.shown and now - self.told > self.SECONDS:
            self.told = now
            pace = (now - self.started) / (state.global_step - self.first_step)
            left = (self.settings.steps - state.global_step) * pace
            self.console.print(
                f"step {state.global_step} of {self.settings.steps}  {status}  {left:.0f} s left",
                markup=False,
                highlight=False,
            )

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.loss = (logs or {}).get("loss", self.loss)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar off the terminal, however the run ended."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
