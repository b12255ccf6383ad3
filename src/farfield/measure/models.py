"""One door to every causal language model: its states, its logits, its losses, and what its attention works with.

A model of ours shows everything. One of transformers shows its losses as it is; its attention is seen, and cut at a
window, through transformers' attention interface (transformers_models.py).

Shapes: B samples, N tokens, K scored tokens, D width, H heads, V words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from farfield.formula import Formula
from farfield.measure.inputs import AttentionInputs, Window
from farfield.nn.decoder.loss import token_losses
from farfield.nn.learned_heads import LearnedHead, learned_heads

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from farfield.nn.decoder.blocks import Placement, SelfAttention

LOGIT_BYTES = 64 << 20  # what the logits of a few rows may take


class Visit(Protocol):
    """What is called with the queries, keys and values of each layer while a model reads."""

    def __call__(self, layer: int, inputs: AttentionInputs) -> None: ...


@dataclass
class Model:
    """A causal language model to be measured; the subclasses know how to ask its network.

    Attributes:
        network: The torch module.
        name: How tables call it.
        training_length: Tokens of a training sample, if known.
        layers: Attention layers.
        heads: Query heads of a layer.
        words: Size of the vocabulary.
        width: Of the hidden states.
        inner: Width of the feed-forward layers.
        longest: Where its positions end, if they do.
        stretched: What was done to its positions after training, in one sentence; empty if nothing.
        identity: What a saved result is checked against.
    """

    network: PreTrainedModel
    name: str
    training_length: int | None
    layers: int
    heads: int
    words: int
    width: int
    inner: int
    longest: int | None = None
    stretched: str = ""
    identity: dict[str, str] = field(default_factory=dict)

    # Whether the first n losses of a longer text are those of a text of n tokens: true of every causal model, unless
    # its arithmetic depends on the length, as that of some rotary encodings does.
    keeps_prefixes = False

    @property
    def device(self) -> torch.device:
        return next(self.network.parameters()).device

    @property
    def encoding(self) -> str:
        """The encoding as a person calls it."""
        config = self.network.config
        alibi = config.model_type in ("bloom", "mpt") or getattr(config, "alibi", False) is True
        return str(getattr(config, "encoding", None) or ("alibi" if alibi else config.model_type))

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        """What the output layer reads, (B, N, D)."""
        raise NotImplementedError

    def logits(self, states: Tensor) -> Tensor:
        """The logits of a few states, (..., V), in float32."""
        raise NotImplementedError

    def output_layer(self) -> tuple[Tensor, Tensor | None] | None:
        """Weight and bias of the linear map from states to logits, if there is no more to it than that."""
        return None

    def watching(self, visit: Visit) -> AbstractContextManager[None]:
        """A context in which `visit` is called with what each layer attends with."""
        raise NotImplementedError

    def read(self, ids: np.ndarray, window: Window = None) -> Tensor:
        """The states of one stretch of text, (N, D)."""
        tokens = torch.from_numpy(np.ascontiguousarray(ids, dtype=np.int64))
        return self.states(tokens[None].to(self.device), window)[0]

    @torch.inference_mode()
    def show(self, chunks: Sequence[np.ndarray], visit: Visit, window: Window = None) -> None:
        """Read stretches of text, and let `visit` see what each layer attends with."""
        with self.watching(visit):
            for ids in chunks:
                self.read(ids, window)

    def embedded(self, ids: Tensor) -> Tensor:
        """The embeddings of tokens, as `states_of_embedded` takes them."""
        return self.network.get_input_embeddings()(ids)

    def states_of_embedded(self, x: Tensor) -> Tensor:
        """What the output layer reads if these embeddings are what came in; differentiable."""
        raise NotImplementedError

    def formula_of(self, layer: int, head: int) -> tuple[Formula, dict[str, float]] | None:
        """The formula of a head's bias and the values of its parameters; None where it has none."""
        return None

    def learned_heads(self) -> list[LearnedHead]:
        """What each head learned of the parameters of its formula, with the verdict; empty if nothing."""
        return []

    def no_formula(self) -> str:
        """Why there is no formula, in words."""
        return f"{self.name} has no bias by distance that is known by a formula"

    def has_bias(self) -> bool:
        """Whether attention has a bias by distance, with or without a formula."""
        return self.formula_of(0, 0) is not None

    def attention_scores(self, length: int) -> int:
        """How many n x n tables of scores the model holds at once, for one sample (0: none)."""
        return 0

    def losses(self, ids: Tensor, targets: Tensor, window: Window = None) -> Tensor:
        """The loss of each target, (B, K): the last K tokens of `ids` are what they follow."""
        states = self.states(ids, window)[:, ids.shape[1] - targets.shape[1] :].flatten(0, 1)
        words = targets.flatten()
        output = self.output_layer()
        if output is not None:
            weight, bias = output
            return token_losses(states, weight, words, bias).view(targets.shape)
        size = max(16, LOGIT_BYTES // (4 * self.words))
        parts = [
            torch.nn.functional.cross_entropy(self.logits(states[a : a + size]), words[a : a + size], reduction="none")
            for a in range(0, len(states), size)
        ]
        return torch.cat(parts).view(targets.shape)


class FarfieldModel(Model):
    """A model of farfield: attention in O(n) memory, a formula, any window."""

    keeps_prefixes = True

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        return self.network.hidden_states(ids, window=window)

    def logits(self, states: Tensor) -> Tensor:
        return torch.nn.functional.linear(states, self.network.embedding.weight).float()

    def output_layer(self) -> tuple[Tensor, Tensor | None]:
        return self.network.embedding.weight, None

    def states_of_embedded(self, x: Tensor) -> Tensor:
        return self.network.hidden_states(inputs_embeds=x)

    @contextmanager
    def watching(self, visit: Visit) -> Iterator[None]:
        def before(module: SelfAttention, arguments: tuple[Tensor, Placement]) -> None:
            x, place = arguments
            q, k, v = module.project(x)
            q, k = place.rotated(q), place.rotated(k)
            bias = place.bias(module.layer, k.shape[2], q.device)
            bias = None if bias is None else bias.detach()
            visit(module.layer, AttentionInputs(q, k, v, bias, q.shape[3] ** -0.5, place.window))

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

    def learned_heads(self) -> list[LearnedHead]:
        return learned_heads(self.network.position.bias)

    def no_formula(self) -> str:
        return f"the encoding {self.network.config.encoding!r} has no formula of a bias by distance"

    def has_bias(self) -> bool:
        return self.network.position.bias is not None


def as_model(network: PreTrainedModel, name: str = "the model", training_length: int | None = None) -> Model:
    """A torch model as something to measure.

    Args:
        network: A model of ours, or a causal language model of transformers.
        name: How tables call it.
        training_length: Tokens of a training sample; what the configuration says unless given.

    Returns:
        The model, in evaluation mode.
    """
    from farfield.measure.transformers_models import TransformersModel, position_limit, sizes_of

    network = network.eval()
    config = network.config
    if getattr(config, "is_encoder_decoder", False):
        raise ValueError(
            f"{name} is an encoder-decoder ({config.model_type}), which reads a second text; "
            "only causal language models are measured."
        )
    sizes = sizes_of(config)
    sizes["training_length"] = training_length or sizes["training_length"]
    if config.model_type == "farfield":
        return FarfieldModel(network, name, **sizes)
    return TransformersModel(network, name, **sizes, longest=position_limit(network))
