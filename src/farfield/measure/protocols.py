"""The ways to read a text with a model that takes n tokens at a time, and the loss of every token by each.

A text is one or more segments; one of T + 1 tokens has T to score, all but the first. Each protocol scores every one of
them exactly once, so that two lengths, or two protocols, are compared on the same tokens; only what each may see
differs. No chunk reaches over the end of a segment: the last one may be shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from farfield.measure.memory import fits, is_out_of_memory, predicted
from farfield.measure.models import Model, Window
from farfield.nn.denormals import flush_denormals

Known = dict[tuple[int, int], np.ndarray]  # by segment and first token of a chunk, the losses of all that follow in it
AT_ONCE = 4096  # tokens that a model reads together: more gains nothing, and leaves the processor's cache


@dataclass(frozen=True)
class Chunk:
    """The tokens `start` to `stop` (excluded) are read, and the last `scored` of those that follow each are scored."""

    start: int
    stop: int
    scored: int

    @property
    def first(self) -> int:
        """The place of the first scored token among all that are scored (token p has the place p - 1)."""
        return self.stop - self.scored

    @property
    def length(self) -> int:
        """How many tokens are read."""
        return self.stop - self.start


def non_overlapping(tokens: int, length: int) -> list[Chunk]:
    """The paper's: chunks of `length` tokens, every token scored; the last chunk may be shorter."""
    return [Chunk(s, min(s + length, tokens), min(length, tokens - s)) for s in range(0, tokens, length)]


def sliding(tokens: int, length: int, stride: int) -> list[Chunk]:
    """A window of `length` tokens moves on by `stride`, each time read anew, the last `stride` tokens scored.

    The first window scores all of its tokens, which have no more context than that. Stride 1 is the paper's sliding
    window inference; stride `length` is the same as no overlap.
    """
    if not 1 <= stride <= length:
        raise ValueError(f"The stride is {stride}; it must be from 1 to the length of the window, {length}.")
    chunks = [Chunk(0, min(length, tokens), min(length, tokens))]
    for scored in range(length, tokens, stride):
        stop = min(scored + stride, tokens)
        chunks.append(Chunk(scored + stride - length, stop, stop - scored))
    return chunks


def token_losses(
    model: Model,
    segments: np.ndarray,
    chunks: list[Chunk],
    window: Window = None,
    *,
    batch: int | None = None,
    advance: Callable[[int], None] | None = None,
    known: Known | None = None,
) -> np.ndarray:
    """The loss of every token of each segment but its first, by these chunks, in float64.

    Args:
        model: The model.
        segments: The text, (segments, tokens + 1), or one segment as a plain row.
        chunks: What of each segment is read, and what of that is scored.
        window: Tokens that each layer, or each head, attends to.
        batch: Chunks that are read together; halved wherever it does not fit in memory, which changes no result.
        advance: Called with the number of tokens scored since the last call.
        known: Losses of earlier calls on the same text, to which those of this call are added. In a causal model a
            chunk gives the losses of every shorter one that starts where it does, so lengths share their work.

    Returns:
        The losses, (segments, tokens).
    """
    segments = np.atleast_2d(segments)
    assert sum(chunk.scored for chunk in chunks) == segments.shape[1] - 1
    losses = np.full((len(segments), segments.shape[1] - 1), np.nan)
    text = torch.from_numpy(np.ascontiguousarray(segments, dtype=np.int64))
    shared = known if known is not None and window is None else {}
    missing = []
    for place in ((s, chunk) for s in range(len(segments)) for chunk in chunks):
        s, chunk = place
        before = shared.get((s, chunk.start))
        if before is None or len(before) < chunk.length:
            missing.append(place)
            continue
        losses[s, chunk.first : chunk.stop] = before[chunk.length - chunk.scored : chunk.length]
        if advance is not None:
            advance(chunk.scored)
    with torch.inference_mode(), flush_denormals():
        missing.sort(key=lambda place: _shape(place[1]))
        for (length, scored), alike in groupby(missing, lambda place: _shape(place[1])):
            size = fits(model, batch or max(1, AT_ONCE // length), length, scored)
            for group, rows in _batches(model, text, list(alike), size, window):
                for (s, chunk), row in zip(group, rows, strict=True):
                    losses[s, chunk.first : chunk.stop] = row
                    if chunk.scored == length:
                        shared[s, chunk.start] = row
                if advance is not None:
                    advance(scored * len(group))
    return losses


def _shape(chunk: Chunk) -> tuple[int, int]:
    return chunk.length, chunk.scored


def _batches(
    model: Model, text: torch.Tensor, places: list[tuple[int, Chunk]], size: int, window: Window
) -> Iterator[tuple[list[tuple[int, Chunk]], np.ndarray]]:
    """The losses of chunks of one shape, some at a time, fewer when the memory does not suffice."""
    at = 0
    while at < len(places):
        group = places[at : at + size]
        ids = torch.stack([text[s, c.start : c.stop] for s, c in group]).to(model.device)
        targets = torch.stack([text[s, c.first + 1 : c.stop + 1] for s, c in group]).to(model.device)
        try:
            losses = model.losses(ids, targets, window)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(group) == 1:
                need = predicted(model, 1, ids.shape[1], targets.shape[1])
                raise ValueError(
                    f"One sample of {ids.shape[1]} tokens does not fit in memory; it was expected to take about "
                    f"{need / 1e9:.1f} GB: give shorter lengths."
                ) from None
            size = max(1, len(group) // 2)
            continue
        yield group, losses.double().cpu().numpy()
        at += len(group)
