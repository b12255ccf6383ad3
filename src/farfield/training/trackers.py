"""The trackers that a run reports to, through accelerate: TensorBoard, trackio, wandb."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farfield.training.processes import Processes
    from farfield.training.settings import Settings

TRACKERS = ("tensorboard", "trackio", "wandb")
PROJECT = "farfield"


def chosen_trackers(choice: str) -> list[str]:
    """The trackers to report to: a name, several with commas, `none`, or `auto` for those that are installed.

    wandb sends to another machine, so `auto` takes it only where the user has set it up (WANDB_API_KEY or WANDB_MODE).
    """
    installed = [name for name in TRACKERS if importlib.util.find_spec(name) is not None]
    if choice == "none":
        return []
    if choice == "auto":
        return [name for name in installed if name != "wandb" or {"WANDB_API_KEY", "WANDB_MODE"} & set(os.environ)]
    named = [name.strip() for name in choice.split(",")]
    for name in named:
        if name not in TRACKERS:
            raise ValueError(f"There is no tracker {name!r}: choose auto, none, or from {', '.join(TRACKERS)}.")
        if name not in installed:
            raise ValueError(f"The tracker {name} is not installed: pip install {name}.")
    return named


def start_trackers(processes: Processes, run: Path, settings: Settings) -> None:
    """Open the run with every tracker; one that goes on is the same run to wandb and trackio, too."""
    name = run.resolve().name
    number = hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]
    told: dict[str, dict[str, Any]] = {
        "wandb": {"name": name, "id": number, "resume": "allow", "dir": str(run)},
        "trackio": {"name": name, "resume": "allow"},
    }
    config = {key: value if isinstance(value, int | float | str | bool) else str(value) for key, value in settings}
    processes.accelerator.init_trackers(PROJECT, config=config, init_kwargs=told)


def stop_trackers(processes: Processes) -> None:
    """Let every tracker finish what it has begun to write."""
    for tracker in processes.accelerator.trackers:
        tracker.finish()
    processes.accelerator.trackers.clear()
