"""What a checkpoint holds of a run's state: weights, moments, generators; written whole, or each process its share.

Both forms are safetensors with the same names (`layers.0.up.weight`, `layers.0.up.weight.exp_avg`), so either can be
read by any number of processes, divided or not: `torch.distributed.checkpoint` puts the pieces together.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch.distributed import checkpoint as distributed

from farfield.data import durable
from farfield.training.checkpoint import DamagedCheckpointError, Listed, Write, list_file, save_checkpoint, stage
from farfield.training.generators import random_state, set_random_state
from farfield.training.network import weights_of
from farfield.training.processes import Processes
from farfield.training.runfolder import MODEL, write_tensors

OPTIMIZER, RANDOM = "optimizer.safetensors", "random.safetensors"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter


def save_state(
    run: Path,
    step: int,
    model: Any,
    optimizer: torch.optim.Optimizer,
    files: dict[str, Write],
    about: dict[str, Any],
    *,
    keep: int,
    processes: Processes,
    divided: bool,
) -> None:
    """Save a checkpoint of a run; every process takes part, and all of them learn if it failed."""
    files = {**files, RANDOM: lambda path: write_tensors(path, random_state())}
    written: dict[str, Listed] | None = None
    staged: Path | None = None
    if divided:
        staged = processes.on_main(lambda: stage(run, step))
        written = _write_shares(staged, {**model.state_dict(), **_moments(model, optimizer)}, processes)
    else:
        files[MODEL] = lambda path: write_tensors(path, weights_of(model))
        files[OPTIMIZER] = lambda path: write_tensors(path, _moments(model, optimizer))
    processes.on_main(
        lambda: save_checkpoint(run, step, files, about, keep=keep, staged=staged, written=written) and None
    )


def load_state(
    folder: Path, step: int, model: Any, optimizer: torch.optim.Optimizer, *, processes: Processes, divided: bool
) -> None:
    """Load a checkpoint that was verified, after a look at every name, shape and type in it."""
    moments = {
        f"{name}.{key}": torch.zeros((), dtype=torch.float32) if key == "step" else torch.zeros_like(parameter)
        for name, parameter in model.named_parameters()
        for key in MOMENTS
    }
    wanted = {**(model.state_dict() if divided else weights_of(model)), **moments}
    reader = distributed.HuggingFaceStorageReader(str(folder))
    _check(folder, reader, wanted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is one process only is as it should be
        distributed.load(wanted, storage_reader=reader, no_dist=not divided)
    if any(moments[name].item() != step for name in moments if name.endswith(".step")):
        raise DamagedCheckpointError(f"{folder.name}: its moments are of another step than {step}")
    names = [name for name, _ in model.named_parameters()]
    state = {number: {key: moments[f"{name}.{key}"] for key in MOMENTS} for number, name in enumerate(names)}
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    set_random_state(load_file(folder / RANDOM))


def _moments(model: Any, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    return {
        f"{name}.{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _check(folder: Path, reader: Any, wanted: dict[str, torch.Tensor]) -> None:
    """Refuse a checkpoint that does not fit the model, before anything of it is loaded."""
    stored = reader.read_metadata().state_dict_metadata
    for name, tensor in wanted.items():
        if name not in stored:
            raise DamagedCheckpointError(f"The checkpoint {folder.name} has no {name!r}, which the model needs.")
        size, dtype = tuple(stored[name].size), stored[name].properties.dtype
        if size != tuple(tensor.shape) or dtype != tensor.dtype:
            raise DamagedCheckpointError(
                f"In the checkpoint {folder.name}, {name!r} is {size} of {dtype}, but the model has "
                f"{tuple(tensor.shape)} of {tensor.dtype}."
            )


def _write_shares(folder: Path, tensors: dict[str, torch.Tensor], processes: Processes) -> dict[str, Listed]:
    """Each process writes its share into the staged folder, and syncs and hashes its part of the files."""
    writer = distributed.HuggingFaceStorageWriter(str(folder), save_distributed=True)
    try:
        durable.write_with(lambda _: _save(tensors, writer), folder)
        mine = sorted(folder.iterdir())[processes.rank :: processes.count]
        listed = processes.everyone(_attempted(lambda: {path.name: list_file(path) for path in mine}))
        failed = [share for share in listed if isinstance(share, Exception)]
        if failed:
            raise failed[0]
    except BaseException:
        if processes.is_main:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return {name: about for share in listed for name, about in share.items()}


def _save(tensors: dict[str, torch.Tensor], writer: Any) -> None:
    """Write the shares; if one process fails, all do, with an error that is a mere `BaseException` of torch's."""
    try:
        distributed.save(tensors, storage_writer=writer)
    except distributed.CheckpointException as error:
        raise RuntimeError(str(error)) from error


def _attempted(work: Callable[[], Any]) -> Any:
    """What some work gives, or its error, so that other processes can be told of it."""
    try:
        return work()
    except Exception as error:
        return error
