"""Causal language models of transformers: their losses as they are, and their attention through its interface.

transformers hands queries, keys and values to a function that can be chosen by name. The one registered here is ours:
it can be cut at a window, and shows what it is given: windows, chunks, sinks and soft caps are part of that. BLOOM, MPT
and Falcon, whose attention does not go through the interface, have adapters (models/networks/adapters.py). Before ours
is used for a measurement it must give what the model's own gives, on a text of the measured length.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from farfield.formula import Formula
from farfield.measure.inputs import AttentionInputs, narrower
from farfield.measure.memory import fits
from farfield.measure.models import Model, Visit, Window
from farfield.models.config_fields import Fields
from farfield.models.model_types import DEPTH, HEADS, LENGTH, WIDTH, scaling_of
from farfield.models.networks.adapters import attending, own_bias
from farfield.nn.bias import Bias
from farfield.nn.decoder.interface import asked, computes_by, of_one_width, with_added
from farfield.nn.decoder.masks import HiddenAttentionError, causal_mask
from farfield.nn.learned_heads import LearnedHead, learned_heads
from farfield.training.pretrained import quiet_transformers

NAME = "farfield-measured"  # under which transformers knows the attention that is looked at
_watched: ContextVar[tuple[Window, Visit | None]] = ContextVar("watched", default=(None, None))


def sizes_of(config: Any) -> dict[str, Any]:
    """The sizes in a configuration of transformers, under any of the names that it may have for them."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config

    def first(*names: str) -> int | None:
        return next((v for name in names if isinstance(v := getattr(config, name, None), int) and v > 0), None)

    width, stated, scaling = first(*WIDTH) or 1, first(*LENGTH), scaling_of(Fields(config.to_dict()))
    original = None if scaling is None else scaling.original
    stretched = ""
    if scaling is not None and original is not None and original != stated:
        end = f" to {stated}." if stated else "."
        before = f"before {scaling.kind} stretched the positions"
        stretched = f"1x is the original training length of {original} tokens, {before}{end}"
    return {
        "training_length": original or stated,
        "stretched": stretched,
        "layers": first(*DEPTH) or 1,
        "heads": first(*HEADS) or 1,
        "words": first("vocab_size") or 1,
        "width": width,
        "inner": first("intermediate_size", "n_inner", "ffn_dim") or 4 * width,
    }


def position_limit(network: Any) -> int | None:
    """Where learned absolute positions end, or None if the model has none."""
    stated = sizes_of(network.config)["training_length"]
    words = network.get_input_embeddings()
    for name, module in network.named_modules():
        if not isinstance(module, nn.Embedding) or module is words:
            continue
        last = name.rpartition(".")[2].lower()
        if last == "wpe" or "position" in last or last.startswith("pos_"):
            return min(module.num_embeddings, stated or module.num_embeddings)
    return None


class TransformersModel(Model):
    """A causal language model of transformers."""

    _linear: bool | None = None
    _agreed = 0  # tokens of the longest text on which our attention gave what the model's own gives

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        if window is None and _watched.get()[1] is None and not self._needs_ours(ids.shape[1]):
            return self._read(input_ids=ids)
        self._compare_attention(ids[:1])
        with self._our_attention(window):
            return self._read(input_ids=ids)

    def states_of_embedded(self, x: Tensor) -> Tensor:
        if not self._needs_ours(x.shape[1]):
            return self._read(inputs_embeds=x)
        with self._our_attention(None):
            return self._read(inputs_embeds=x)

    def _needs_ours(self, length: int) -> bool:
        """MPT's own attention ends at max_seq_len, where its table of biases ends; ALiBi itself does not."""
        config = self.network.config
        return config.model_type == "mpt" and length > config.max_seq_len

    @torch.no_grad()
    def _compare_attention(self, ids: Tensor) -> None:
        """Refuse to measure with our attention where it does not give what the model's own gives, for each token."""
        if self._needs_ours(ids.shape[1]):
            ids = ids[:, : self.network.config.max_seq_len]
        if ids.shape[1] <= self._agreed:
            return
        fits(self, 1, ids.shape[1])
        heads: dict[int, int] = {}  # of each layer that attends
        token = _watched.set((None, lambda layer, inputs: heads.update({layer: inputs.q.shape[1]})))
        kind = self.network.config.model_type
        try:
            own = self._read(input_ids=ids).float()
            with self._our_attention(None):
                ours = self._read(input_ids=ids).float()
        except HiddenAttentionError as error:
            raise HiddenAttentionError(error.what[:1].upper() + error.what[1:], ".") from None
        finally:
            _watched.reset(token)
        if not heads:
            raise HiddenAttentionError(f"No layer of {kind} models has attention", ".")
        if max(heads) >= self.layers or set(heads.values()) != {self.heads}:
            said = f"its configuration names {self.layers} layers of {self.heads} heads, and it has others"
            raise HiddenAttentionError(f"The attention of {kind} models cannot be measured: {said}", ".")
        close = 1e-3 if next(self.network.parameters()).dtype == torch.float32 else 0.1
        if not bool(((own - ours).norm(dim=-1) <= close * own.norm(dim=-1)).all()):
            raise HiddenAttentionError(
                f"The attention of {kind} models cannot be followed: computed from its queries, keys and values it "
                f"does not give what the model gives, in a text of {ids.shape[1]} tokens",
                ".",
            )
        self._agreed = ids.shape[1]

    def _read(self, **inputs: Tensor) -> Tensor:
        """The last hidden states, or the logits themselves where the output layer is more than a linear map."""
        try:
            if self._linear_head():
                return self.network.base_model(**inputs, use_cache=False).last_hidden_state
            return self.network(**inputs, use_cache=False).logits
        except IndexError as error:
            if "index out of range in self" not in str(error):  # what an embedding says of a position it does not have
                raise
            length = next(iter(inputs.values())).shape[1]
            raise ValueError(f"{self.name} cannot read {length} tokens: its positions end before.") from None

    def logits(self, states: Tensor) -> Tensor:
        if not self._linear_head():
            return states.float()
        return self.network.get_output_embeddings()(states).float()

    def output_layer(self) -> tuple[Tensor, Tensor | None] | None:
        head = self.network.get_output_embeddings() if self._linear_head() else None
        return (head.weight, head.bias) if head is not None and type(head) is nn.Linear else None

    def _linear_head(self) -> bool:
        """Whether the logits are the output layer of the last hidden states: tested once, on four tokens."""
        if self._linear is None:
            token = _watched.set((None, None))  # no one watches these four tokens
            try:
                self._linear = self._compare_heads()
            finally:
                _watched.reset(token)
        return self._linear

    @torch.no_grad()
    def _compare_heads(self) -> bool:
        head, base = self.network.get_output_embeddings(), self.network.base_model
        if head is None or base is self.network:
            return False
        ids = torch.arange(4, device=self.device)[None] % self.words
        hidden = getattr(base(input_ids=ids, use_cache=False), "last_hidden_state", None)
        if hidden is None:
            return False
        logits = self.network(input_ids=ids, use_cache=False).logits
        return torch.allclose(head(hidden).float(), logits.float(), rtol=1e-4, atol=1e-5)

    @contextmanager
    def watching(self, visit: Visit) -> Iterator[None]:
        token = _watched.set((None, visit))
        try:
            yield
        finally:
            _watched.reset(token)

    @contextmanager
    def _our_attention(self, window: Window) -> Iterator[None]:
        token = _watched.set((window, _watched.get()[1]))
        try:
            with attending(self.network, _attend) as adapted, nullcontext() if adapted else _interface(self.network):
                yield
        finally:
            _watched.reset(token)

    def formula_of(self, layer: int, head: int) -> tuple[Formula, dict[str, float]] | None:
        bias = getattr(self.network, "farfield_bias", None) or own_bias(self.network)
        return (bias.formula, bias.values_of(head, layer)) if isinstance(bias, Bias) else None

    def has_bias(self) -> bool:
        return hasattr(self.network, "farfield_bias") or super().has_bias()

    def learned_heads(self) -> list[LearnedHead]:
        return learned_heads(getattr(self.network, "farfield_bias", None))

    def attention_scores(self, length: int) -> int:
        if hasattr(self.network, "farfield_bias"):
            return 0
        if computes_by(self.network, "sdpa") and own_bias(self.network) is None:
            return 0
        return 3 * self.heads  # the scores, the masked scores, the softmax


@contextmanager
def _interface(network: Any) -> Iterator[None]:
    """Our attention in the place of the model's own."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, causal_mask)
    before = [(config, dict(vars(config))) for config in _configurations(network.config)]
    try:
        with quiet_transformers():  # it would warn where it cannot, and go on
            network.set_attn_implementation(NAME)
        if not computes_by(network, NAME):
            raise HiddenAttentionError(
                f"The attention of {network.config.model_type} models cannot be seen or cut at a window: "
                "it does not go through transformers' attention interface",
                ".",
            )
        yield
    finally:
        for config, fields in before:
            vars(config).clear()
            vars(config).update(fields)


def _configurations(config: Any) -> Iterator[Any]:
    """A configuration and all inside of it."""
    yield config
    for name in config.sub_configs:
        if (inner := getattr(config, name, None)) is not None:
            yield from _configurations(inner)


def _attend(
    module: Any, q: Tensor, k: Tensor, v: Tensor, attention_mask: Any = None, scaling: float | None = None,
    dropout: float = 0.0, sliding_window: int | None = None, softcap: float | None = None, s_aux: Tensor | None = None,
    key_bias: Tensor | None = None, **given: Any,
) -> tuple[Tensor, None]:  # fmt: skip
    """What transformers and our adapters call: (B, H, N, D) in, (B, N, H, D) out."""
    mask = asked(module, q, k, attention_mask, sliding_window, given)
    assert mask.padding is None
    window, visit = _watched.get()
    bias, own, sink = with_added(module, mask.keys, mask.window, s_aux)
    bias = None if bias is None else bias.detach().to(q.device)
    scale, width = q.shape[3] ** -0.5 if scaling is None else float(scaling), v.shape[3]
    if (layer := getattr(module, "layer_idx", None)) is None:
        raise HiddenAttentionError("the attention of this model cannot be measured: its layers have no numbers")
    q, k, v = of_one_width(q, k, v)
    inputs = AttentionInputs(
        q, k, v, bias, scale, narrower(window, own, q.shape[1]), own, mask.chunk, softcap, sink, key_bias
    )  # fmt: skip
    if visit is not None:
        visit(layer, inputs)
    out, _ = inputs.attend(inputs.window, skip=True)
    return out[..., :width].transpose(1, 2).contiguous(), None
