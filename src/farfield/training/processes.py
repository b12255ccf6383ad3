"""The processes that share a run: one, or as many as torchrun, accelerate or SLURM started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from farfield.training.devices import chosen_device
from farfield.training.settings import Settings

if TYPE_CHECKING:
    import torch

T = TypeVar("T")


class Processes:
    """How many processes there are, which one this is, where it computes, and how they agree."""

    def __init__(self, settings: Settings, folder: Path, device: str | None, trackers: list[str]) -> None:
        from accelerate import Accelerator
        from accelerate.utils import ProjectConfiguration

        place = chosen_device(device)
        logs = ProjectConfiguration(project_dir=str(folder), logging_dir=str(folder / "logs"))
        try:
            self.accelerator = Accelerator(cpu=place.type == "cpu", log_with=trackers or None, project_config=logs)
        except ValueError as error:  # accelerate keeps one state for the life of a process
            raise ValueError(f"accelerate cannot start: {' '.join(str(error).split())}") from None
        told, wanted = self.accelerator.mixed_precision, {"float32": "no", "bfloat16": "bf16"}[settings.precision]
        if told not in ("no", wanted):  # it would change the arithmetic behind the settings' back
            raise ValueError(
                f"accelerate was told to compute in {told}, but the run's precision is {settings.precision}: "
                "leave it to --precision, which is part of the run."
            )
        self.count, self.rank = self.accelerator.num_processes, self.accelerator.process_index
        self.device: torch.device = place if self.count == 1 else self.accelerator.device

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def on_main(self, work: Callable[[], T]) -> T:
        """Let the main process do something, and give all of them its result, or its error."""
        if self.count == 1:
            return work()
        from accelerate.utils import broadcast_object_list

        outcome: list[Any] = [None, None]
        if self.is_main:
            try:
                outcome[0] = work()
            except Exception as error:
                outcome[1] = error if isinstance(error, ValueError) else RuntimeError(str(error))
        broadcast_object_list(outcome)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]

    def everyone(self, mine: T) -> list[T]:
        """What each process has, in the order of their ranks, for all of them."""
        if self.count == 1:
            return [mine]
        from accelerate.utils import gather_object

        return gather_object([mine])

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of a tensor over the processes."""
        return values if self.count == 1 else self.accelerator.reduce(values, reduction="sum")


def leave_group() -> bool:
    """Part from the other processes in good order, at the end of the last run of this one; whether there were any."""
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return False
    torch.distributed.destroy_process_group()
    return True
