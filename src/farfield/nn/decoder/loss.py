"""The loss over a large vocabulary, a few hundred rows at a time.

The logits of 9,216 tokens over 50,265 words take 1.85 GB, and their gradient as much again. Here they exist for one
chunk of rows only: while a chunk is at hand, its loss and its gradient are both computed, so nothing is recomputed and
nothing but the two gradients (of the hidden states and of the embedding) is kept. The result is exact.

Shapes: N rows, D width, V words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

CHUNK_BYTES = 64 << 20  # what the logits of a chunk may take
TILE_ROWS, TILE_WORDS = 2048, 1024  # of a tile, where no gradient is wanted: 8 MB
IGNORED = -100


def vocabulary_loss(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, *, chunk: int | None = None) -> Tensor:
    """Mean cross-entropy of `hidden @ weight.T` against the targets; a target of -100 does not count."""
    if not torch.is_grad_enabled():  # inside a Function everything looks as if gradients were wanted
        hidden_ND, weight_VD = hidden_ND.detach(), weight_VD.detach()
    return _VocabularyLoss.apply(hidden_ND, weight_VD, target_N, chunk)


@torch.no_grad()
def token_losses(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, bias_V: Tensor | None = None) -> Tensor:
    """The cross-entropy of each row of `hidden @ weight.T + bias`, in float32, without gradients; 0 where it is -100.

    Tile by tile, in the processor's cache: the largest logit and the sum of the exponentials are carried from one tile
    of words to the next. On one core this took 0.66 ms a token where chunks of all words took 1.1 (the paper's size).
    """
    rows = [slice(a, a + TILE_ROWS) for a in range(0, len(hidden_ND), TILE_ROWS)]
    parts = [_tiled(hidden_ND[r], target_N[r], weight_VD, bias_V) for r in rows]
    return torch.cat(parts).float().masked_fill_(target_N == IGNORED, 0.0)


def _chunks(hidden_ND: Tensor, weight_VD: Tensor, chunk: int | None) -> Iterator[tuple[slice, Tensor]]:
    """For each chunk of n rows: which rows, and their logits as (V, n) in float32, to be overwritten.

    Words go down and rows across because this product is a third faster than the other way round; and all chunks share
    one piece of memory, because fresh pages cost as much as the arithmetic on them.
    """
    size = min(len(hidden_ND), chunk or max(16, CHUNK_BYTES // (4 * len(weight_VD))))
    weight = weight_VD.to(hidden_ND.dtype)
    memory = torch.empty(len(weight_VD) * size, dtype=hidden_ND.dtype, device=hidden_ND.device)
    for start in range(0, len(hidden_ND), size):
        rows = slice(start, min(start + size, len(hidden_ND)))
        n = rows.stop - rows.start
        logits = memory[: len(weight_VD) * n].view(len(weight_VD), n)
        yield rows, torch.mm(weight, hidden_ND[rows].T, out=logits).float()


def _tiled(hidden: Tensor, target: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The loss of a few rows."""
    target = target.clamp(min=0)
    weight = weight.to(hidden.dtype)
    chosen = (hidden.float() * weight[target].float()).sum(1)
    if bias is not None:
        chosen = chosen + bias[target].float()
    largest = torch.full((len(hidden),), float("-inf"), device=hidden.device)
    total = torch.zeros(len(hidden), dtype=torch.float64, device=hidden.device)
    for a in range(0, len(weight), TILE_WORDS):
        tile = torch.mm(hidden, weight[a : a + TILE_WORDS].T).float()
        if bias is not None:
            tile += bias[a : a + TILE_WORDS].float()
        before, largest = largest, torch.maximum(largest, tile.amax(1))
        total = total * (before - largest).double().exp() + tile.sub_(largest[:, None]).exp_().sum(1)
    return largest + total.log() - chosen


class _VocabularyLoss(torch.autograd.Function):
    """Loss and gradients in one pass over the chunks; backward only scales."""

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, chunk: int | None) -> Tensor:
        with torch.autocast(hidden_ND.device.type, enabled=False):
            return _VocabularyLoss._forward(ctx, hidden_ND, weight_VD, target_N, chunk)

    @staticmethod
    def _forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, chunk: int | None) -> Tensor:
        wants_hidden, wants_weight = ctx.needs_input_grad[:2]
        counted = target_N != IGNORED
        # on the device: asking how many there are would wait for it
        scale = 1.0 / counted.sum().clamp(min=1).float()
        total = torch.zeros((), dtype=torch.float32, device=hidden_ND.device)
        grad_hidden = torch.empty_like(hidden_ND) if wants_hidden else None
        grad_weight = torch.zeros_like(weight_VD) if wants_weight else None
        weight = weight_VD.to(hidden_ND.dtype)
        for rows, logits in _chunks(hidden_ND, weight_VD, chunk):
            target, largest = target_N[rows].clamp(min=0)[None], logits.amax(0)
            chosen = logits.gather(0, target)[0]
            sums = logits.sub_(largest).exp_().sum(0)  # the logits become the exponentials
            losses = sums.log().add_(largest).sub_(chosen)
            total += torch.where(counted[rows], losses, 0.0).sum()
            if grad_hidden is None and grad_weight is None:
                continue
            # d loss / d logits = (softmax - one-hot) / rows that count, in the place of the logits
            share = torch.where(counted[rows], scale, 0.0)
            logits.mul_(share / sums).scatter_add_(0, target, -share[None])
            grad_logits = logits.to(hidden_ND.dtype)
            if grad_hidden is not None:
                torch.mm(grad_logits.T, weight, out=grad_hidden[rows])
            if grad_weight is not None:
                if grad_weight.dtype == hidden_ND.dtype:
                    grad_weight.addmm_(grad_logits, hidden_ND[rows])
                else:
                    grad_weight += grad_logits @ hidden_ND[rows]
        ctx.grads = (grad_hidden, grad_weight)
        return total * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.grads is None:
            raise RuntimeError("The gradient of this loss was taken already; compute the loss again.")
        # scaled in place: the memory of another copy of the embedding costs more than the product
        grad_hidden, grad_weight = (None if g is None else g.mul_(grads[0].to(g.dtype)) for g in ctx.grads)
        ctx.grads = None
        return grad_hidden, grad_weight, None, None
