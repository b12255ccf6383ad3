"""The processes that share a run, one or as many as torchrun, accelerate or SLURM started: devices, trackers, shares.

With FSDP2 each process holds its share of every weight, gradient and moment. `torch.distributed.fsdp.fully_shard` is
called here and not by accelerate's `prepare`, because accelerate shards on GPUs only, and puts the embedding, which
this decoder uses twice, into a unit of its own. What an accelerate configuration says of FSDP (resharding, offloading,
recomputation) is read from its plugin and kept.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from farfield.training.settings import Settings

if TYPE_CHECKING:
    import torch
    from accelerate import FullyShardedDataParallelPlugin
    from transformers import PreTrainedModel

T = TypeVar("T")
TRACKERS = ("tensorboard", "trackio", "wandb")
PROJECT = "farfield"


def chosen_device(name: str | None = None) -> torch.device:
    """The device of this name (cpu, cuda, cuda:1, mps, ...); without one, the first GPU, or else the CPU."""
    import torch

    if name in (None, "auto"):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(f"There is no device {name!r} here: {reason}; cpu is always there.") from None
    return device


def chosen_trackers(choice: str) -> list[str]:
    """The trackers to report to: a name, several with commas, `none`, or `auto` for those that are installed.

    wandb sends to another machine, so `auto` takes it only where the user has set it up (WANDB_API_KEY or WANDB_MODE).
    """
    installed = [name for name in TRACKERS if importlib.util.find_spec(name) is not None]
    if choice == "none":
        return []
    if choice == "auto":
        return [name for name in installed if name != "wandb" or {"WANDB_API_KEY", "WANDB_MODE"} & set(os.environ)]
    names = [name.strip() for name in choice.split(",")]
    for name in names:
        if name not in TRACKERS:
            raise ValueError(f"There is no tracker {name!r}: choose auto, none, or from {', '.join(TRACKERS)}.")
        if name not in installed:
            raise ValueError(f"The tracker {name} is not installed: pip install {name}.")
    return names


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
        precision, wanted = self.accelerator.mixed_precision, {"float32": "no", "bfloat16": "bf16"}[settings.precision]
        if precision not in ("no", wanted):  # it would change the arithmetic behind the settings' back
            raise ValueError(
                f"accelerate was told to compute in {precision}, but the run's precision is {settings.precision}: "
                "leave it to --precision, which is part of the run."
            )
        self.count, self.rank = self.accelerator.num_processes, self.accelerator.process_index
        self.device: torch.device = place if self.count == 1 else self.accelerator.device

    @property
    def is_main(self) -> bool:
        return self.rank == 0

    def everyone(self, work: Callable[[], T]) -> list[T]:
        """What some work gives each process, in the order of their ranks, for all of them; or the first error."""
        if self.count == 1:
            return [work()]
        from accelerate.utils import gather_object

        outcome: tuple[T | None, Exception | None]
        try:
            outcome = work(), None
        except (ValueError, OSError) as error:
            outcome = None, error
        except Exception as error:  # it may be of a kind that does not travel
            outcome = None, RuntimeError(str(error))
        outcomes = gather_object([outcome])
        for _, failure in outcomes:
            if failure is not None:
                raise failure
        return [result for result, _ in outcomes]

    def on_main(self, work: Callable[[], T]) -> T:
        """Let the main process do something, and give all of them its result, or its error."""
        return self.everyone(work if self.is_main else lambda: cast(T, None))[0]

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        """The sum of a tensor over the processes."""
        return values if self.count == 1 else self.accelerator.reduce(values, reduction="sum")

    @contextmanager
    def trackers(self, run: Path, settings: Settings) -> Iterator[None]:
        """Report to every tracker; a run that goes on is the same run to wandb and trackio, too."""
        name = run.resolve().name
        number = hashlib.sha256(str(run.resolve()).encode()).hexdigest()[:16]
        options = {
            "wandb": {"name": name, "id": number, "resume": "allow", "dir": str(run)},
            "trackio": {"name": name, "resume": "allow"},
        }
        config = {key: value if isinstance(value, int | float | str | bool) else str(value) for key, value in settings}
        self.accelerator.init_trackers(PROJECT, config=config, init_kwargs=options)
        try:
            yield
        finally:
            for tracker in self.accelerator.trackers:
                tracker.finish()
            self.accelerator.trackers.clear()


def leave_group() -> bool:
    """Part from the other processes in good order, at the end of the last run of this one; whether there were any."""
    import torch

    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return False
    torch.distributed.destroy_process_group()
    return True


# --- a model divided among the processes ------------------------------------------------------------------------------


def fsdp_plugin() -> FullyShardedDataParallelPlugin | None:
    """What `accelerate launch` was configured to do with FSDP; None if it was given no such configuration."""
    return _plugin() if os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true" else None


def _plugin() -> FullyShardedDataParallelPlugin:
    from accelerate import FullyShardedDataParallelPlugin

    return FullyShardedDataParallelPlugin(fsdp_version=2)


def divide(
    build: Callable[[], PreTrainedModel], processes: Processes, weights: Callable[[], dict[str, torch.Tensor]] | None
) -> PreTrainedModel:
    """A model of which each process has its share; with these first weights, if any, of the main process.

    Only the main process ever holds all weights, and only while it hands them out.
    """
    import torch
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    first: dict[str, torch.Tensor] = {}
    if weights is not None:
        processes.on_main(lambda: first.update(weights()))
    with torch.device("meta"):
        model = build()
    plugin = _plugin()
    options: dict[str, Any] = {
        "mesh": init_device_mesh(processes.device.type, (processes.count,)),
        "reshard_after_forward": plugin.reshard_after_forward,
        "offload_policy": plugin.cpu_offload,
    }
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard(model, **options)
    model.to_empty(device=processes.device)
    if weights is not None:
        set_model_state_dict(model, first, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    return model


def gather_weights(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """All weights of a divided model, on the main process; the others take part and get nothing."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that this process holds: all of it, unless it is divided."""
    from torch.distributed.tensor import DTensor

    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
