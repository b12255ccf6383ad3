"""How much memory a measurement will take, before it starts.

An estimate from the sizes of the model, of what one layer and the output hold at once; a tenth of the memory that is
free stays free. Where the estimate is too low and the memory does run out, the batch is halved all the same.
"""

from __future__ import annotations

import torch

from farfield.measure.models import LOGIT_BYTES, Model

KEPT_FREE = 0.1  # share of the free memory that is not used


def predicted(model: Model, batch: int, length: int, scored: int | None = None) -> int:
    """The bytes that one forward pass over `batch` samples takes beyond the weights, about."""
    tokens, size = batch * length, next(model.network.parameters()).element_size()
    attention = 9 * model.width  # states, norm, q, k, v, a copy of each, the result
    feed_forward = 4 * model.width + 2 * model.inner
    states = tokens * max(attention, feed_forward) * size
    scores = batch * model.attention_scores(length) * length**2 * size
    logits = min(2 * LOGIT_BYTES, 8 * batch * (scored or length) * model.words)  # tiles, or a few rows
    return states + scores + logits


def available(device: torch.device) -> int | None:
    """The bytes that are free on a device, if it can be known."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        with open("/proc/meminfo") as file:
            table = dict(line.split(":", 1) for line in file)
        return int(table["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def fits(model: Model, batch: int, length: int, scored: int | None = None) -> int:
    """The largest batch, halved as often as it must be, that is expected to fit; one sentence if not even one is."""
    free = available(model.device)
    if free is None:
        return batch
    room = (1 - KEPT_FREE) * free
    while batch > 1 and predicted(model, batch, length, scored) > room:
        batch //= 2
    need = predicted(model, batch, length, scored)
    if need > room:
        raise ValueError(
            f"A length of {length} tokens needs about {need / 1e9:.1f} GB of memory for {model.name}, "
            f"and {room / 1e9:.1f} GB can be used: give shorter lengths."
        )
    return batch


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, on a GPU or on the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def memory_sentence(model: Model, length: int) -> str:
    """What the longest length is expected to take, beside what is free."""
    need, free = predicted(model, 1, length), available(model.device)
    beside = "" if free is None else f" ({free / 1e9:.1f} GB are free)"
    return f"Expected memory at {length} tokens: about {need / 1e9:.2g} GB beside the weights{beside}."
