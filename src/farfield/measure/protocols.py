"""The ways to read a text with a model that takes n tokens at a time, and the loss of every token by each.

A text of T + 1 tokens has T tokens to score, all but the first. Each protocol scores every one of them exactly once, so
that two lengths, or two protocols, are compared on the same tokens; only what each token may see differs.
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

Known = dict[int, np.ndarray]  # by the token that a piece starts with, the losses of all that follow in it
AT_ONCE = 4096  # tokens that a model reads together: more gains nothing, and leaves the processor's cache


@dataclass(frozen=True)
class Piece:
    """The tokens `start` to `stop` (excluded) are read, and the last `scored` of those that follow each are scored."""

    start: int
    stop: int
    scored: int

    @property
    def first(self) -> int:
        """The place of the first scored token among all that are scored (token p has the place p - 1)."""
        return self.stop - self.scored


def non_overlapping(tokens: int, length: int) -> list[Piece]:
    """The paper's: chunks of `length` tokens, every token scored; the last chunk may be shorter."""
    return [Piece(s, min(s + length, tokens), min(length, tokens - s)) for s in range(0, tokens, length)]


def sliding(tokens: int, length: int, stride: int) -> list[Piece]:
    """A window of `length` tokens moves on by `stride`, each time read anew, the last `stride` tokens scored.

    The first window scores all of its tokens, which have no more context than that. Stride 1 is the paper's sliding
    window inference; stride `length` is the same as no overlap.
    """
    if not 1 <= stride <= length:
        raise ValueError(f"The stride is {stride}; it must be from 1 to the length of the window, {length}.")
    pieces = [Piece(0, min(length, tokens), min(length, tokens))]
    for scored in range(length, tokens, stride):
        stop = min(scored + stride, tokens)
        pieces.append(Piece(scored + stride - length, stop, stop - scored))
    return pieces


def token_losses(
    model: Model,
    tokens: np.ndarray,
    pieces: list[Piece],
    window: Window = None,
    *,
    batch: int | None = None,
    advance: Callable[[int], None] | None = None,
    known: Known | None = None,
) -> np.ndarray:
    """The loss of every token but the first, by these pieces, in float64.

    batch: pieces that are read together; it is halved wherever it does not fit in memory, which changes no result.
    advance: called with the number of tokens scored since the last call.
    known: losses of earlier calls on the same tokens, to which those of this call are added. In a causal model a piece
        gives the losses of every shorter piece that starts where it does, so the lengths of a sweep share their work.
    """
    losses = np.full(len(tokens) - 1, np.nan)
    text = torch.from_numpy(np.ascontiguousarray(tokens, dtype=np.int64))
    missing = []
    for piece in pieces:
        length = piece.stop - piece.start
        before = known.get(piece.start) if known is not None and window is None else None
        if before is None or len(before) < length:
            missing.append(piece)
            continue
        losses[piece.first : piece.stop] = before[length - piece.scored : length]
        if advance is not None:
            advance(piece.scored)
    with torch.inference_mode(), flush_denormals():
        for (length, scored), alike in groupby(missing, lambda p: (p.stop - p.start, p.scored)):
            size = batch or max(1, AT_ONCE // length)
            size = fits(model, size, length, scored)
            for group, found in _batches(model, text, list(alike), size, window):
                for piece, row in zip(group, found, strict=True):
                    losses[piece.first : piece.stop] = row
                    if known is not None and window is None and piece.scored == length:
                        known[piece.start] = row
                if advance is not None:
                    advance(sum(piece.scored for piece in group))
    assert not np.isnan(losses).any() or _model_gave_nan(losses, pieces)
    return losses


def _model_gave_nan(losses: np.ndarray, pieces: list[Piece]) -> bool:
    """Every token was scored, so a loss that is no number is the model's own."""
    return sum(piece.scored for piece in pieces) == len(losses)


def _batches(
    model: Model, text: torch.Tensor, pieces: list[Piece], size: int, window: Window
) -> Iterator[tuple[list[Piece], np.ndarray]]:
    """The losses of pieces of one shape, some at a time, fewer when the memory does not suffice."""
    at = 0
    while at < len(pieces):
        group = pieces[at : at + size]
        ids = torch.stack([text[p.start : p.stop] for p in group]).to(model.device)
        targets = torch.stack([text[p.first + 1 : p.stop + 1] for p in group]).to(model.device)
        try:
            found = model.losses(ids, targets, window)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(group) == 1:
                raise ValueError(
                    f"One sample of {ids.shape[1]} tokens does not fit in memory; it was expected to take about "
                    f"{predicted(model, 1, *group_shape(group[0])) / 1e9:.1f} GB: give shorter lengths."
                ) from None
            size = max(1, len(group) // 2)
            continue
        yield group, found.double().cpu().numpy()
        at += len(group)


def group_shape(piece: Piece) -> tuple[int, int]:
    """How many tokens a piece reads, and how many it scores."""
    return piece.stop - piece.start, piece.scored
