"""What a run costs before it starts: arithmetic, memory, hours and money, from plain formulas.

    import farfield as ff
    print(ff.scaling.training_cost(ff.Settings(preset="paper-base", encoding="alibi"), gpu="a100"))

The formulas are those of docs/scaling.md, which also says what they rest on. Sizes are exact, and so is the memory of
weights and caches. Hours are arithmetic divided by what a processor sustains: that share is measured for the CPU and
assumed for the others. Prices are assumptions. Whatever is assumed is an argument.

Shapes of the model: N parameters, L layers, D wide, F wide inside the feed-forward layers, V words, n tokens a sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from farfield.training.settings import Settings


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model and of its training, for runs that have no settings of ours."""

    vocabulary: int
    layers: int
    width: int
    heads: int
    feed_forward: int
    length: int
    batch: int = 1
    steps: int = 1
    micro_batch: int | None = None
    precision: str = "bfloat16"

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"{field.name} is {value}, but it must be at least 1")
        if self.precision not in VALUE_BYTES:
            raise ValueError(f"precision is {self.precision!r}, but it must be one of {', '.join(VALUE_BYTES)}")


Run: TypeAlias = "Settings | Sizes"  # what a cost depends on


@dataclass(frozen=True)
class Processor:
    """A processor: its peaks in FLOP/s, the share of them that training sustains, its memory and its price."""

    bfloat16: float  # FLOP/s of dense matrix products, and so for the next
    float32: float
    utilisation: float  # the share of the peak that a training step sustains
    memory: int  # bytes
    bandwidth: float  # bytes/s of its memory
    dollars_per_hour: float

    def peak(self, precision: str) -> float:
        """FLOP/s of matrix products in float32, or in bfloat16."""
        return self.float32 if precision == "float32" else self.bfloat16


# Peaks, memory and bandwidth: the makers' data sheets (SXM, dense; float32 without TF32, as torch has it by default).
# Utilisation and price: assumptions.
# "cpu" is one core of the AMD EPYC of docs/benchmarks/training.json; its peak is what a training step sustained there.
PROCESSORS = {
    "a100": Processor(312e12, 19.5e12, 0.4, 80 * 10**9, 2.04e12, 2.0),
    "h100": Processor(989e12, 67e12, 0.4, 80 * 10**9, 3.35e12, 3.0),
    "cpu": Processor(69e9, 69e9, 1.0, 4 * 10**9, 10e9, 0.05),
}

VALUE_BYTES = {"float32": 4, "bfloat16": 2}
# Weights, gradients and the two averages of Adam in float32; under autocast a copy of the weights in bfloat16 as well.
STATE_BYTES = {"float32": 16, "bfloat16": 18}
# What a layer keeps of each token for the backward pass: bytes for each D and for each F, counted in
# tests/training/test_scaling.py by looking at every tensor that autograd saves. It does not grow with the length: the
# attention weights are never kept.
KEPT_BYTES = {"float32": (40, 4), "bfloat16": (24, 2)}
# What the buffers of a bounded cache take above the keys they must keep, as measured in docs/benchmarks/decoding.json.
CACHE_SLACK = 1.07


@dataclass(frozen=True)
class Cost:
    """What a training run costs: `memory_bytes` is what one GPU holds, `gpu_hours` counts all GPUs together."""

    flops: float
    gpu_hours: float
    memory_bytes: int
    dollars: float

    def __add__(self, other: Cost) -> Cost:
        """Both runs, one after the other: their memory is that of the larger one."""
        memory = max(self.memory_bytes, other.memory_bytes)
        return Cost(self.flops + other.flops, self.gpu_hours + other.gpu_hours, memory, self.dollars + other.dollars)

    def __mul__(self, times: int) -> Cost:
        """The same run so many times."""
        return replace(self, flops=self.flops * times, gpu_hours=self.gpu_hours * times, dollars=self.dollars * times)

    __rmul__ = __mul__

    def __str__(self) -> str:
        return (
            f"{self.flops:.2e} FLOP, {self.gpu_hours:,.1f} GPU-hours, {self.memory_bytes / 1e9:,.1f} GB, "
            f"${self.dollars:,.0f}"
        )


def parameters(run: Run) -> int:
    """The number of weights of the decoder, exact: a shared embedding, and in each layer attention, two matrices of
    the feed-forward part, their biases and two norms."""
    D, F = run.width, run.feed_forward
    layer = 4 * D * D + 4 * D + 2 * D * F + F + D + 4 * D
    return run.vocabulary * D + run.layers * layer + 2 * D


def mean_keys(length: int, window: int | None = None) -> float:
    """How many keys a query sees on average: (n + 1)/2 of a causal row, fewer with a window."""
    w = length if window is None else min(window, length)
    return (w * (w + 1) / 2 + (length - w) * w) / length


def training_flops(run: Run, *, window: int | None = None, recompute: bool = False) -> float:
    """The arithmetic of a whole training: 6 N for each token, and 12 L D for each key that it attends to.

    A forward pass takes 2 operations for each weight and token, 4 L D for each pair of tokens; the backward pass takes
    twice as much. With `recompute` each layer's forward pass is done again in the backward pass.
    """
    per_token = 6 * parameters(run) + 12 * run.layers * run.width * mean_keys(run.length, window)
    return per_token * run.batch * run.length * run.steps * (4 / 3 if recompute else 1)


def training_memory(run: Run, *, gpus: int = 1, shard: bool = False, recompute: bool = False) -> int:
    """Bytes on each GPU: weights, gradients and optimizer, and what the layers keep for the backward pass.

    With `shard` the former are divided among the GPUs (FSDP); without it each GPU holds all of them, as
    `farfield train` does. With `recompute` a layer keeps its input only, and one layer at a time keeps the rest.
    """
    states = STATE_BYTES[run.precision] * parameters(run)
    samples = run.micro_batch or math.ceil(run.batch / gpus)
    per_width, per_inner = KEPT_BYTES[run.precision]
    layer = per_width * run.width + per_inner * run.feed_forward
    stored = 4 * run.layers * run.width + layer if recompute else run.layers * layer
    return math.ceil(states / gpus if shard else states) + samples * run.length * stored


def training_cost(
    run: Run,
    gpu: str | Processor = "a100",
    *,
    gpus: int = 1,
    utilisation: float | None = None,
    dollars_per_hour: float | None = None,
    window: int | None = None,
    recompute: bool = False,
    shard: bool = False,
) -> Cost:
    """What a training run costs: hours = FLOP / (peak * utilisation), dollars = hours * price.

    `run` is the `Settings` of a run, or `Sizes`. `gpu` is a name from PROCESSORS or a `Processor` of your own.
    """
    on = _processor(gpu, utilisation, dollars_per_hour)
    if gpus < 1:
        raise ValueError(f"gpus is {gpus}, but it must be at least 1")
    flops = training_flops(run, window=window, recompute=recompute)
    # work that is recomputed counts here as well: utilisation is the share of the peak that is kept busy
    hours = flops / (on.peak(run.precision) * on.utilisation) / 3600
    memory = training_memory(run, gpus=gpus, shard=shard, recompute=recompute)
    return Cost(flops, hours, memory, hours * on.dollars_per_hour)


def cache_bytes(run: Run, context: int, windows: Sequence[int | None] | None = None) -> int:
    """The keys and values of one text of `context` tokens, in all layers.

    `windows` are the tokens that each head keeps, as `farfield window` certifies them (None keeps all). The measured
    slack of the buffers is included; a head never needs more than the text.
    """
    if windows is not None and len(windows) != run.heads:
        raise ValueError(f"{len(windows)} windows were given for {run.heads} heads")
    head = 2 * run.layers * (run.width // run.heads) * VALUE_BYTES[run.precision]
    if windows is None:
        return head * run.heads * context
    tokens = [context if w is None else min(context, math.ceil(w * CACHE_SLACK)) for w in windows]
    return head * sum(tokens)


def decoding_seconds(
    run: Run, context: int, gpu: str | Processor = "a100", *, windows: Sequence[int | None] | None = None
) -> float:
    """The least time for one token of one text: all weights and the whole cache are read from memory once."""
    on = _processor(gpu, None, None)
    weights = VALUE_BYTES[run.precision] * parameters(run)
    return (weights + cache_bytes(run, context, windows)) / on.bandwidth


def _processor(gpu: str | Processor, utilisation: float | None, dollars_per_hour: float | None) -> Processor:
    if isinstance(gpu, str):
        if gpu not in PROCESSORS:
            raise ValueError(f"there is no processor {gpu!r}: choose from {', '.join(PROCESSORS)}, or give a Processor")
        gpu = PROCESSORS[gpu]
    if utilisation is not None:
        gpu = replace(gpu, utilisation=utilisation)
    if dollars_per_hour is not None:
        gpu = replace(gpu, dollars_per_hour=dollars_per_hour)
    if not 0 < gpu.utilisation <= 1:
        raise ValueError(f"utilisation is {gpu.utilisation}, but it is a share of the peak, above 0 and at most 1")
    return gpu
