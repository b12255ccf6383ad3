"""One door to every causal language model: its states, its logits, its losses, and what its attention works with.

A model of ours shows everything. One of transformers shows its losses as it is; its attention is seen, and cut at a
window, through transformers' attention interface (theirs.py).

Shapes: B samples, N tokens, K scored tokens, D width, H heads, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from farfield.formula import Formula
from farfield.nn.decoder.loss import token_losses

Window = int | Sequence[int] | None
LOGIT_BYTES = 64 << 20  # what the logits of a few rows may take


class Visit(Protocol):
    """What is called with the queries, keys and values of each layer while a model reads."""

    def __call__(self, layer: int, seen: Seen) -> None: ...


@dataclass(frozen=True)
class Seen:
    """What one layer's attention works with: q is (B, H, N, D); k, v may have fewer heads; bias is (H, N) or None."""

    q: Tensor
    k: Tensor
    v: Tensor
    bias: Tensor | None
    scale: float
    window: Window

    def bias_or_zero(self) -> Tensor:
        """The bias of each head by distance in float64, 0 where the model has none."""
        if self.bias is None:
            return torch.zeros(self.q.shape[1], self.k.shape[2], dtype=torch.float64, device=self.q.device)
        return self.bias[:, : self.k.shape[2]].double()

    def spread(self, x: Tensor) -> Tensor:
        """Keys or values with one head for each query head."""
        return x.repeat_interleave(self.q.shape[1] // x.shape[1], 1)


@dataclass
class Model:
    """A causal language model to be measured. `network` is the torch module; the subclasses know how to ask it."""

    network: Any
    name: str
    training_length: int | None
    layers: int
    heads: int
    words: int
    width: int
    inner: int  # width of the feed-forward layers
    longest: int | None = None  # where its positions end, if they do
    identity: dict[str, Any] = field(default_factory=dict)  # what a saved result is checked against

    # Whether the first n losses of a longer text are those of a text of n tokens: true of every causal model, unless
    # its arithmetic depends on the length, as that of some rotary encodings does.
    keeps_prefixes = False

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        """What the output layer reads, (B, N, D)."""
        raise NotImplementedError

    def logits(self, states: Tensor) -> Tensor:
        """The logits of a few states, (..., V), in float32."""
        raise NotImplementedError

    def output_layer(self) -> torch.nn.Linear | None:
        """The linear map from states to logits, if there is no more to it than that."""
        return None

    def watching(self, visit: Visit) -> Any:
        """A context in which `visit` is called with what each layer attends with."""
        raise NotImplementedError

    def embedded(self, ids: Tensor) -> Tensor:
        """The embeddings of tokens, as `states_of_embedded` takes them."""
        return self.network.get_input_embeddings()(ids)

    def states_of_embedded(self, x: Tensor) -> Tensor:
        """What the output layer reads if these embeddings are what came in; differentiable."""
        raise NotImplementedError

    def formula_of(self, layer: int, head: int) -> tuple[Formula, dict[str, float]] | None:
        """The formula of a head's bias and the values of its parameters; None where it has none."""
        return None

    def no_formula(self) -> str:
        """Why there is no formula, in words."""
        return f"{self.name} has no bias by distance that is known by a formula"

    def attention_scores(self, length: int) -> int:
        """How many n x n tables of scores the model holds at once, for one sample (0: none)."""
        return 0

    def losses(self, ids: Tensor, targets: Tensor, window: Window = None) -> Tensor:
        """The loss of each target, (B, K): the last K tokens of `ids` are what they follow."""
        states = self.states(ids, window)[:, ids.shape[1] - targets.shape[1] :]
        rows, words = states.reshape(-1, states.shape[-1]), targets.reshape(-1)
        head = self.output_layer()
        if head is not None:
            return token_losses(rows, head.weight, words, head.bias).view(targets.shape)
        size = max(16, LOGIT_BYTES // (4 * self.words))
        parts = [
            torch.nn.functional.cross_entropy(self.logits(rows[a : a + size]), words[a : a + size], reduction="none")
            for a in range(0, len(rows), size)
        ]
        return torch.cat(parts).view(targets.shape)


class Ours(Model):
    """A model of farfield: attention in O(n) memory, a formula, any window."""

    keeps_prefixes = True

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        return self.network.hidden_states(ids, window=window)

    def logits(self, states: Tensor) -> Tensor:
        return torch.nn.functional.linear(states, self.network.embedding.weight).float()

    def losses(self, ids: Tensor, targets: Tensor, window: Window = None) -> Tensor:
        states = self.states(ids, window)[:, ids.shape[1] - targets.shape[1] :]
        weight = self.network.embedding.weight
        return token_losses(states.flatten(0, 1), weight, targets.flatten()).view(targets.shape)

    def states_of_embedded(self, x: Tensor) -> Tensor:
        return self.network.hidden_states(inputs_embeds=x)

    @contextmanager
    def watching(self, visit: Visit) -> Iterator[None]:
        def before(module: Any, arguments: tuple[Any, ...]) -> None:
            x, place = arguments
            q, k, v = module.project(x)
            q, k = place.rotated(q), place.rotated(k)
            bias = place.bias(module.layer, k.shape[2], q.device)
            bias = None if bias is None else bias.detach()
            visit(module.layer, Seen(q, k, v, bias, q.shape[3] ** -0.5, place.window))

        hooks = [layer.attention.register_forward_pre_hook(before) for layer in self.network.layers]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def formula_of(self, layer: int, head: int) -> tuple[Formula, dict[str, float]] | None:
        bias = self.network.position.bias
        if bias is None or not hasattr(bias, "values_of"):
            return None
        return bias.formula, bias.values_of(head, layer)

    def no_formula(self) -> str:
        return f"the encoding {self.network.config.encoding!r} has no formula of a bias by distance"


def as_model(network: Any, name: str = "the model", training_length: int | None = None) -> Model:
    """A torch model, ours or of transformers, as something to measure."""
    from farfield.measure.theirs import Theirs, position_limit, sizes_of

    network = network.eval()
    config = network.config
    if config.model_type == "farfield":
        return Ours(
            network,
            name,
            training_length or config.max_position_embeddings,
            config.num_hidden_layers,
            config.num_attention_heads,
            config.vocab_size,
            config.hidden_size,
            config.intermediate_size,
        )
    sizes = sizes_of(config)
    known = training_length or sizes.pop("training_length")
    sizes.pop("training_length", None)
    return Theirs(network, name, known, **sizes, longest=position_limit(network))
