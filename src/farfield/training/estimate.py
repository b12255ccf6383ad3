"""What a run will take on this machine, from a short measurement before it starts."""

from __future__ import annotations

import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data.samples import micro_batches
from farfield.training.progress import duration
from farfield.training.scaling import parameters, training_memory
from farfield.training.settings import Settings

if TYPE_CHECKING:
    import torch

    from farfield.training.processes import Processes


@dataclass(frozen=True)
class Estimate:
    """The parameters of a model, and the time and memory that a run of it is expected to take."""

    parameters: int
    seconds: float
    memory: int
    tokens_per_second: float

    @property
    def sentence(self) -> str:
        return (
            f"{self.parameters:,} parameters; on this machine about {duration(self.seconds)} "
            f"({self.tokens_per_second:,.0f} tokens/s) and {self.memory / 1e9:.1f} GB of memory."
        )


def expectation(config: Any, settings: Settings, processes: Processes, steps: int, divided: bool) -> str:
    """What the rest of a run will take, in a sentence: measured, or where that would not fit, from the formulas."""
    import torch

    parts = micro_batches(settings.batch, settings.micro_batch, processes.count, 0)
    if not divided:
        try:
            return measure(config, settings, max(map(len, parts)), len(parts), steps, processes.device).sentence
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
    size = settings.model_copy(update={"vocabulary": config.vocab_size})
    memory = training_memory(size, gpus=processes.count, shard=divided)
    return f"{parameters(size):,} parameters; each of {processes.count} processes needs about {memory / 1e9:.1f} GB."


def measure(
    config: Any, settings: Settings, micro_batch: int, accumulate: int, steps: int, device: torch.device | str
) -> Estimate:
    """Time one update of a model like this one, on a copy: the run itself is not touched."""
    import torch

    from farfield.training.network import make_network

    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        before = _peak_memory()
        model = make_network(config).to(device).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        start = time.perf_counter()
        _update(model, optimizer, 1, settings.length, device)  # the first touches memory, the next is timed
        rows = 1
        if time.perf_counter() - start < 1.0 and micro_batch > 1:
            rows = micro_batch
            _update(model, optimizer, rows, settings.length, device)
        start = time.perf_counter()
        forward = _update(model, optimizer, rows, settings.length, device)
        update = time.perf_counter() - start
        after = _peak_memory()
    parameters = sum(p.numel() for p in model.parameters())
    # what does not grow with the batch: weights, gradients and the two averages of Adam
    fixed = 16 * parameters
    grown = max(0, after - before - fixed) * micro_batch / rows
    per_step = update * micro_batch / rows * accumulate
    evaluations = steps // settings.evaluate_every + 1
    tokens = rows * settings.length
    evaluating = evaluations * forward * settings.evaluate_tokens / tokens
    return Estimate(
        parameters,
        steps * per_step + evaluating,
        int(before + fixed + grown),
        settings.batch * settings.length / per_step,
    )


def _update(model: Any, optimizer: Any, rows: int, length: int, device: Any) -> float:
    """One update on random tokens; the time of its forward pass."""
    import torch

    from farfield.training.network import mean_loss

    ids = torch.randint(model.config.vocab_size, (rows, length), device=device)
    start = time.perf_counter()
    loss = mean_loss(model, model.config, {"input_ids": ids, "shift_labels": ids, "sample_seeds": torch.arange(rows)})
    forward = time.perf_counter() - start
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if ids.device.type == "cuda":
        torch.cuda.synchronize()
    return forward


def _peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    import torch

    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else peak_memory()


def peak_memory() -> int:
    """The most main memory that this program has had, in bytes.

    Linux knows it exactly; `getrusage`, which others have, counts what the process was before it became this program.
    """
    status = Path("/proc/self/status")
    if status.exists() and (peak := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(peak[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
