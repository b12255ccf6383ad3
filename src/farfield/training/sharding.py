"""A model divided among the processes (FSDP2): each holds its share of every weight, gradient and moment.

`torch.distributed.fsdp.fully_shard` is called here and not by accelerate's `prepare`, because accelerate shards on GPUs
only, and puts the embedding, which this decoder uses twice, into a unit of its own. What an accelerate configuration
says of FSDP (resharding, offloading, recomputation) is read from its plugin and kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from farfield.training.processes import Processes


def asked_for() -> bool:
    """Whether `accelerate launch` was given an FSDP configuration."""
    return os.environ.get("ACCELERATE_USE_FSDP", "").lower() == "true"


def recompute_asked_for() -> bool:
    """Whether that configuration asks for activation checkpointing."""
    return asked_for() and bool(_plugin().activation_checkpointing)


def sharded(build: Callable[[], Any], processes: Processes, weights: Callable[[], Any] | None) -> Any:
    """A model of which each process has its share; with these first weights, if any, of the main process.

    Only the main process ever holds all weights, and only while it hands them out.
    """
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    first: dict[str, Any] = {}
    if weights is not None:
        processes.on_main(lambda: first.update(weights()))
    with torch.device("meta"):
        model = build()
    plugin = _plugin()
    how: dict[str, Any] = {
        "mesh": init_device_mesh(processes.device.type, (processes.count,)),
        "reshard_after_forward": plugin.reshard_after_forward,
        "offload_policy": plugin.cpu_offload,
    }
    for layer in model.layers:
        fully_shard(layer, **how)
    fully_shard(model, **how)
    model.to_empty(device=processes.device)
    if weights is not None:
        options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        set_model_state_dict(model, first, options=options)
    return model


def whole_weights(model: Any) -> dict[str, torch.Tensor]:
    """All weights of a divided model, on the main process; the others take part and get nothing."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    return get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that this process holds: all of it, unless it is divided."""
    from torch.distributed.tensor import DTensor

    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def _plugin() -> Any:
    from accelerate import FullyShardedDataParallelPlugin

    return FullyShardedDataParallelPlugin(fsdp_version=2)
