"""What a run will take on this machine, from a short measurement before it starts."""

from __future__ import annotations

import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.training.settings import Settings


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
            f"{self.parameters:,} parameters; on this machine about {_duration(self.seconds)} "
            f"({self.tokens_per_second:,.0f} tokens/s) and {self.memory / 1e9:.1f} GB of memory."
        )


def measure(config: Any, settings: Settings, micro_batch: int, accumulate: int, steps: int) -> Estimate:
    """Time one update of a model like this one, on a copy: the run itself is not touched."""
    import torch

    from farfield.nn.decoder.model import FarfieldForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        before = _peak_memory()
        model = FarfieldForCausalLM(config).to(device).train()
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


def _update(model: Any, optimizer: Any, rows: int, length: int, device: str) -> float:
    """One update on random tokens; the time of its forward pass."""
    import torch

    ids = torch.randint(model.config.vocab_size, (rows, length), device=device)
    start = time.perf_counter()
    loss = model(input_ids=ids, shift_labels=ids, sample_seeds=torch.arange(rows), use_cache=False).loss
    forward = time.perf_counter() - start
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if device == "cuda":
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
    if status.exists() and (found := re.search(r"VmHWM:\s*(\d+) kB", status.read_text())):
        return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
