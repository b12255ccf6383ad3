"""The loss over a large vocabulary, a few hundred rows at a time.

The logits of 9,216 tokens over 50,265 words take 1.85 GB, and their gradient as much again. Here they exist for one
chunk of rows only: while a chunk is at hand, its loss and its gradient are both computed, so nothing is recomputed and
nothing but the two gradients (of the hidden states and of the embedding) is kept. The result is exact.

Shapes: N rows, D width, V words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CHUNK_BYTES = 64 << 20  # what the logits of a chunk may take
IGNORED = -100


def vocabulary_loss(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, *, chunk: int | None = None) -> Tensor:
    """Mean cross-entropy of `hidden @ weight.T` against the targets; a target of -100 does not count."""
    return _VocabularyLoss.apply(hidden_ND, weight_VD, target_N, chunk)


@torch.no_grad()
def token_losses(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, *, chunk: int | None = None) -> Tensor:
    """The cross-entropy of each row, in float32, without gradients; 0 where the target is -100."""
    losses = torch.empty(len(hidden_ND), dtype=torch.float32, device=hidden_ND.device)
    for rows, logits, largest in _chunks(hidden_ND, weight_VD, chunk):
        target = target_N[rows]
        chosen = logits.gather(1, target.clamp(min=0)[:, None])[:, 0]
        losses[rows] = logits.sub_(largest[:, None]).exp_().sum(1).log_().add_(largest).sub_(chosen)
    return losses.masked_fill_(target_N == IGNORED, 0.0)


def reference_loss(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor) -> Tensor:
    """The same in one line, with all logits at once: what the tests compare with."""
    return torch.nn.functional.cross_entropy((hidden_ND @ weight_VD.T).float(), target_N, ignore_index=IGNORED)


def _chunks(hidden_ND: Tensor, weight_VD: Tensor, chunk: int | None) -> Any:
    """For each chunk of rows: which rows, their logits in float32 (to be overwritten), and the largest of each row."""
    size = chunk or max(16, CHUNK_BYTES // (4 * len(weight_VD)))
    weight = weight_VD.to(hidden_ND.dtype)
    for start in range(0, len(hidden_ND), size):
        rows = slice(start, start + size)
        logits = torch.mm(hidden_ND[rows], weight.T).float()
        yield rows, logits, logits.amax(1)


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
        for rows, logits, largest in _chunks(hidden_ND, weight_VD, chunk):
            target = target_N[rows].clamp(min=0)[:, None]
            chosen = logits.gather(1, target)[:, 0]
            sums = logits.sub_(largest[:, None]).exp_().sum(1)
            losses = sums.log().add_(largest).sub_(chosen)
            total += torch.where(counted[rows], losses, 0.0).sum()
            if grad_hidden is None and grad_weight is None:
                continue
            # d loss / d logits = (softmax - one-hot) / rows that count, in the place of the logits
            share = torch.where(counted[rows], scale, 0.0)
            logits.mul_((share / sums)[:, None]).scatter_add_(1, target, -share[:, None])
            grad_logits = logits.to(hidden_ND.dtype)
            if grad_hidden is not None:
                torch.mm(grad_logits, weight, out=grad_hidden[rows])
            if grad_weight is not None:
                if grad_weight.dtype == hidden_ND.dtype:
                    grad_weight.addmm_(grad_logits.T, hidden_ND[rows])
                else:
                    grad_weight += grad_logits.T @ hidden_ND[rows]
        ctx.save_for_backward(grad_hidden, grad_weight)
        return total * scale

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        grad = grads[0]
        return (
            None if grad_hidden is None else grad_hidden * grad.to(grad_hidden.dtype),
            None if grad_weight is None else grad_weight * grad.to(grad_weight.dtype),
            None,
            None,
        )
