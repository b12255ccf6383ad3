"""The loss of a text of any length, read once in chunks: with a bounded cache, in constant memory.

The certificate of a bounded cache is for each attention layer by itself. What a network of such layers loses as a whole
is measured here: the change of its loss on real text against the full cache.

Shapes: N tokens of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, DynamicCache

from farfield.nn.cache.cache import BoundedCache
from farfield.nn.cache.certificate import SCOPE, CertificateTable
from farfield.nn.decoder.loss import token_losses

if TYPE_CHECKING:
    from jaxtyping import Int

CHUNK = 512


@torch.no_grad()
def stream_losses(model: Any, tokens: Int[Tensor, " N"], cache: Cache, chunk: int = CHUNK) -> Iterator[Tensor]:
    """The loss of every token but the first, given all before it as the cache keeps them, chunk by chunk."""
    if chunk < 1:
        raise ValueError(f"a chunk of {chunk} tokens was asked for; it must be at least 1")
    if len(tokens) < 2:
        raise ValueError(f"the text has {len(tokens)} tokens; a loss needs at least 2")
    for a in range(0, len(tokens) - 1, chunk):
        part = tokens[a : a + chunk + 1].to(model.device, torch.long)
        new, targets = part[: len(part) - 1], part[1:]
        if hasattr(model, "hidden_states"):  # ours: no logits for a whole chunk at once
            hidden = model.hidden_states(new[None], cache=cache)[0]
            yield token_losses(hidden, model.embedding.weight, targets).cpu()
        else:
            logits = model(input_ids=new[None], past_key_values=cache, use_cache=True).logits[0]
            yield torch.nn.functional.cross_entropy(logits.float(), targets, reduction="none").cpu()


@dataclass(frozen=True)
class LossChange:
    """What a bounded cache changes in a network as a whole, on one text: measured, not certified."""

    tokens: int
    full: float  # mean loss with every key
    bounded: float  # mean loss with the bounded cache
    largest: float  # change of any single token's loss
    kept: float  # memory of the bounded cache against the full one, at the end
    certificate: CertificateTable

    @property
    def change(self) -> float:
        """Mean loss with the bounded cache minus mean loss with every key."""
        return self.bounded - self.full

    def __str__(self) -> str:
        return (
            f"{self.tokens} tokens: loss {self.full:.6f} with every key, {self.bounded:.6f} with a bounded cache of "
            f"{100 * self.kept:.1f} % of its size (change {self.change:+.2e}, of a single token at most "
            f"{self.largest:.2e}); measured on this text, while shares of attention are {SCOPE}"
        )


def change_of_loss(
    model: Any,
    tokens: Int[Tensor, " N"],
    epsilon: float | str = 1e-3,
    *,
    chunk: int = CHUNK,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> LossChange:
    """The change of a model's loss on a text when its cache is bounded; `options` are those of BoundedCache."""
    cache, every = BoundedCache(model, epsilon, **options), DynamicCache()
    sums = [0.0, 0.0]
    largest, done = 0.0, 0
    for ours, full in zip(
        stream_losses(model, tokens, cache, chunk), stream_losses(model, tokens, every, chunk), strict=True
    ):
        sums = [sums[0] + float(full.double().sum()), sums[1] + float(ours.double().sum())]
        largest = max(largest, float((ours - full).abs().max()))
        done += len(ours)
        if progress is not None:
            progress(done)
    whole = sum(x.numel() * x.element_size() for layer in every.layers for x in (layer.keys, layer.values))
    return LossChange(len(tokens), sums[0] / done, sums[1] / done, largest, cache.bytes() / whole, cache.certificate())
