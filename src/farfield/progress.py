"""What a person sees of a run while it trains: a bar with loss, tokens a second and time left; and the loggers."""

from __future__ import annotations

import importlib.util
import os
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from transformers.trainer_callback import TrainerCallback

from farfield.presets import Settings

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
    """A rich progress bar on the terminal; nothing where there is none."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.loss = float("nan")
        self.bar: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.started, self.first_step = time.monotonic(), state.global_step
        self.task = self.bar.add_task("", total=self.settings.steps, completed=state.global_step, status="")
        self.bar.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.bar is None:
            return
        done = (state.global_step - self.first_step) * self.settings.batch * self.settings.length
        speed = done / max(time.monotonic() - self.started, 1e-9)
        status = f"loss {self.loss:.3f}  {speed:,.0f} tokens/s"
        self.bar.update(self.task, completed=state.global_step, status=status)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        self.loss = (logs or {}).get("loss", self.loss)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.close()

    def close(self) -> None:
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
