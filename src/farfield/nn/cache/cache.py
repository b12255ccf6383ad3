"""A key/value cache whose size a certificate fixes: memory and time per token stay constant however long the text.

Each head keeps a window of the last keys and drops the rest. What the dropped keys could still contribute is bounded at
every token (certificate.py), from nothing but numbers that the cache has; the largest share of attention that any token
can have lost is always at hand as a table. The certificate is for each attention layer by itself, given the queries,
keys and values that reach it: it says nothing about the network as a whole. What the whole loses can be measured
(streaming.py), not certified.

    cache = farfield.BoundedCache(model, epsilon=1e-3)
    model.generate(ids, past_key_values=cache)
    print(cache.certificate())

Shapes: B samples, H heads, M new tokens, N columns (tokens so far, padding included), D width of a head.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from farfield.nn.attention.contract import without_autocast
from farfield.nn.cache.certificate import CertificateRow, CertificateTable, CertificateWarning
from farfield.nn.cache.layer import FIRST_GAP, BoundedLayer
from farfield.nn.cache.model_biases import ModelBiases, biases_of
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import exact_epsilon, whole
from farfield.theory.fields.windows import LogSums, exact_bound, log_sums, smallest_window

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Policy = Literal["widen", "warn", "stop"]
POLICIES = ("widen", "warn", "stop")
LEAST = 256  # tokens that a head keeps at least if its window is measured: a shorter stretch measures too little
LARGEST_BOUND = 350  # of the logits, for which a window is looked for
LONG = 1 << 16  # tokens from which a window is worth a warning: nothing is saved before


class BoundedCache(Cache):
    """A cache for `generate` in which each head keeps a window, and what that can cost is certified at every token.

    Args:
        model: A farfield model, or a BLOOM or MPT of transformers after `farfield.bound`.
        epsilon: The share of attention that a token may lose in any one head.
        logit_bound: Choose the windows before inference, for |q.k|/sqrt(d) up to this bound (Theorem A). Without it
            they are measured: a head keeps 256 tokens or more, drops its first key only when its window covers every
            token so far with a margin, and grows as larger logits are met.
        policy: What to do when a token's certified share exceeds epsilon all the same: "widen" the window from then on,
            "warn" once, or "stop" with a CertificateError before the token is used.
        context: The longest text, if there is one. Encodings whose series diverges need it.
    """

    def __init__(
        self,
        model: Any,
        epsilon: float | str | Fraction = 1e-3,
        *,
        logit_bound: float | str | Fraction | None = None,
        policy: Policy = "widen",
        context: int | None = None,
    ) -> None:
        self.epsilon = exact_epsilon(epsilon)
        self.limit = float(self.epsilon)
        if policy not in POLICIES:
            raise ValueError(f"the policy is {policy!r}; it must be one of {', '.join(POLICIES)}")
        self.policy, self.warned = policy, False
        self.logit_bound = None if logit_bound is None else exact_bound(logit_bound)
        self.context = None if context is None else whole(context, "context")
        self.biases: ModelBiases = biases_of(model)
        self.biases.weights(0, 0, self.context)  # says at once if there is no sum
        self.given_mask: Tensor | None = None  # of a model that hides it from its attention (farfield.bound)
        self.asked_later = False  # the layers hand their keys over before they attend (replaced encodings)
        self.start: Tensor | None = None  # (B,): the column of each sample's first token, if there is padding
        self.padding = 0  # the largest of them
        self._windows: dict[tuple[int, int, Fraction], int] = {}
        self._sums: dict[tuple[int, int, int], LogSums] = {}
        super().__init__(layers=[BoundedLayer(self, number) for number in range(self.biases.layers)])

    def attend(
        self,
        q: Float[Tensor, "B H M D"],
        k: Float[Tensor, "B H M D"],
        v: Float[Tensor, "B H M D"],
        layer: int,
        mask: Bool[Tensor, "B N"] | None = None,
        scale: float | None = None,
        sink: Float[Tensor, " H"] | None = None,
        softcap: float | None = None,
    ) -> Float[Tensor, "B H M D"]:
        """Attention of new tokens in one layer; the mask is true for a sample's tokens, which padding may precede.

        A sink or a soft cap, as in `attention`, must be the same in every call: the certificate rests on them.
        """
        if layer == 0:  # the mask is the same for all layers
            self._note(mask, self.get_seq_length(), q.shape[2])
        scale = q.shape[3] ** -0.5 if scale is None else scale
        with without_autocast(q.device.type):
            return self.layers[layer].attend(q, k, v, scale, sink, softcap)

    def _note(self, mask: Tensor | None, before: int, new: int) -> None:
        """Remember where each sample begins, until every sample has begun."""
        if mask is None:
            self.start, self.padding = None, 0
        elif self.start is None or new > 1 or self.padding >= before:
            self.start = first_tokens(mask, before + new)
            self.padding = int(self.start.max())

    def window(self, layer: int, head: int, logit_bound: Fraction | None) -> int:
        """The window of a head for a bound on its logits; with None, the one to start measuring with."""
        bound = Fraction(FIRST_GAP) / 2 if logit_bound is None else logit_bound
        if self.logit_bound is None or logit_bound is not self.logit_bound:
            bound = max(Fraction(math.ceil(8 * bound), 8), Fraction(0))  # few different values, so that they are kept
        key = (self.biases.set_of(layer), head, bound)
        if key not in self._windows:
            self._windows[key] = self._window(layer, head, bound)
        return max(self._windows[key], LEAST if self.logit_bound is None else 1)

    def sums(self, layer: int, head: int, window: int) -> LogSums:
        """The certified sums of a head's weights before and from a window on."""
        key = (self.biases.set_of(layer), head, window)
        if key not in self._sums:
            self._sums[key] = log_sums(self.biases.weights(layer, head, self.context), window)
        return self._sums[key]

    def _window(self, layer: int, head: int, bound: Fraction) -> int:
        window = 1 << 62  # more than anyone will write
        if bound <= LARGEST_BOUND:  # beyond, exp(2M) itself is more than a double holds
            with contextlib.suppress(UndecidedError), answer_in_time():
                weights = self.biases.weights(layer, head, self.context)
                window = min(window, smallest_window(weights, self.epsilon, bound))
        if window >= (LONG if self.context is None else min(LONG, self.context)):
            tokens = f"{window} tokens" if window < 1 << 62 else "more tokens than anyone will write"
            warnings.warn(
                f"head {head + 1} of layer {layer + 1} needs a window of {tokens} for epsilon = {self.limit:g}: "
                "in shorter texts it keeps every key",
                CertificateWarning,
                stacklevel=3,
            )
        return window

    def reset(self) -> None:
        """Forget the text, the certificate and the measured windows."""
        self.start, self.padding, self.warned, self.given_mask = None, 0, False, None
        super().reset()

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep these samples, in this order: beam search."""
        for layer in self.layers:
            layer.select(beam_idx)
        if self.start is not None:
            self.start = self.start[beam_idx.to(self.start.device)]

    batch_select_indices = reorder_cache

    def batch_repeat_interleave(self, repeats: int) -> None:
        history = self.layers[0].history
        if history is not None:
            self.reorder_cache(torch.arange(history.samples, device=history.device).repeat_interleave(repeats))

    def certificate(self) -> CertificateTable:
        """For each layer and head the largest share of attention that any token so far can have lost, with proof."""
        rows = []
        for layer in self.layers:
            windows = {h: ring.window for ring in layer.rings for h in ring.heads}
            share, change, rounding, _ = (x.tolist() for x in layer.bounds.worst)
            for h, over in enumerate(layer.bounds.over.tolist()):
                number = layer.number + 1
                rows.append(CertificateRow(number, h + 1, windows[h], share[h], change[h], over, rounding[h]))
        return CertificateTable(self.limit, self.get_seq_length(), rows)

    def bytes(self) -> int:
        """Memory of keys, values and biases."""
        return sum(layer.bytes() for layer in self.layers)


def first_tokens(mask: Bool[Tensor, "B N"], columns: int) -> Tensor:
    """The column of each sample's first token; one sentence unless all padding stands before."""
    if mask.shape[1] != columns:
        raise ValueError(f"the attention mask has {mask.shape[1]} columns, but {columns} tokens were given so far")
    start = (~mask).sum(-1)
    if not bool((mask == (torch.arange(columns, device=mask.device) >= start[:, None])).all()):
        raise ValueError(
            "a bounded cache takes padding only before the tokens of a sample: set tokenizer.padding_side = 'left'"
        )
    return start
