"""Causal language models of transformers: their losses as they are, and their attention through its interface.

transformers hands queries, keys and values to a function that can be chosen by name. The one registered here is ours:
it can be cut at a window, and shows what it is given: windows, chunks, sinks and soft caps are part of that. BLOOM, MPT
and Falcon, whose attention does not go through the interface, are given ours in its place (own_attention.py). Before
ours is used for a measurement it must give what the model's own gives, on a few tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from farfield.formula import Formula
from farfield.measure.inputs import AttentionInputs, narrower
from farfield.measure.models import Model, Visit, Window
from farfield.measure.own_attention import OWN, attended, own_bias
from farfield.nn.bias import Bias
from farfield.nn.learned_heads import LearnedHead, learned_heads
from farfield.training.pretrained import quiet_transformers

NAME = "farfield-measured"  # under which transformers knows the attention that is looked at
TRIED = 24  # tokens on which our attention must agree with the model's own
_UNKNOWN = ("position_bias", "head_mask")  # what an attention may ask for that ours does not do
_watched: ContextVar[tuple[Window, Visit | None]] = ContextVar("watched", default=(None, None))


class HiddenAttentionError(ValueError):
    """The attention of a model can be neither seen nor cut; its losses and gradients can be measured."""


def sizes_of(config: Any) -> dict[str, Any]:
    """The sizes in a configuration of transformers, whatever it calls them."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config

    def first(*names: str) -> Any:
        return next((v for name in names if isinstance(v := getattr(config, name, None), int) and v > 0), None)

    width = first("hidden_size", "n_embd", "d_model") or 1
    stated = first("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
    original, kind = original_length(config)
    said = ""
    if original is not None and original != stated:
        said = f"1x is the original training length of {original} tokens, before {kind} stretched the positions" + (
            f" to {stated}." if stated else "."
        )
    return {
        "training_length": original or stated,
        "stretched": said,
        "layers": first("num_hidden_layers", "n_layer", "n_layers") or 1,
        "heads": first("num_attention_heads", "n_head", "n_heads") or 1,
        "words": first("vocab_size") or 1,
        "width": width,
        "inner": first("intermediate_size", "n_inner", "ffn_dim") or 4 * width,
    }


def original_length(config: Any) -> tuple[int | None, str]:
    """The length of training before rotary positions were stretched (YaRN and the like), and what stretched them."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if isinstance(rope.get("full_attention"), dict):
        rope = rope["full_attention"]
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind in ("default", None):
        return None, ""
    length = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", None)
    return (int(length) if length else None), str(kind)


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
    _agrees: bool | None = None

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        if window is None and _watched.get()[1] is None and not self._needs_ours(ids.shape[1]):
            return self._read(input_ids=ids)
        self._compare_attention()
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
    def _compare_attention(self) -> None:
        """Refuse to measure with our attention where it does not give what the model's own gives."""
        if self._agrees is None:
            token = _watched.set((None, None))
            try:
                length = min(TRIED, self.longest or TRIED, self.training_length or TRIED)
                ids = torch.arange(length, device=self.device)[None] % self.words
                own = self._read(input_ids=ids).float()
                with self._our_attention(None):
                    ours = self._read(input_ids=ids).float()
                close = 1e-3 if next(self.network.parameters()).dtype == torch.float32 else 0.1
                self._agrees = bool((own - ours).abs().max() <= close * own.abs().max().clamp(min=1e-6))
            finally:
                _watched.reset(token)
        if not self._agrees:
            raise HiddenAttentionError(
                f"The attention of a {self.network.config.model_type} model cannot be followed: "
                "computed from its queries, keys and values it does not give what the model gives."
            )

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
        with ExitStack() as undo:
            own = [module for module in self.network.modules() if type(module).__name__ in OWN]
            replaced = [module for module in self.network.modules() if hasattr(module, "attended")]
            if replaced:
                for module in replaced:
                    module.attend = _attend
                    undo.callback(delattr, module, "attend")
            elif own:
                for module in own:
                    module.forward = partial(_in_place, OWN[type(module).__name__], module)
                    undo.callback(delattr, module, "forward")
            else:
                undo.enter_context(_interface(self.network))
            token = _watched.set((window, _watched.get()[1]))
            undo.callback(_watched.reset, token)
            yield

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
        if _computes_by(self.network, "sdpa") and own_bias(self.network) is None:
            return 0
        return 3 * self.heads  # the scores, the masked scores, the softmax


@contextmanager
def _interface(network: Any) -> Iterator[None]:
    """Our attention in the place of the model's own."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _attend)
    before = [(config, dict(vars(config))) for config in _configurations(network.config)]
    try:
        with quiet_transformers():  # it would warn where it cannot, and go on
            network.set_attn_implementation(NAME)
        if not _computes_by(network, NAME):
            raise HiddenAttentionError(
                f"The attention of a {network.config.model_type} model cannot be seen or cut at a window: "
                "it does not go through transformers' attention interface."
            )
        yield
    finally:
        for config, fields in before:
            vars(config).clear()
            vars(config).update(fields)


def _computes_by(network: Any, name: str) -> bool:
    """Whether a model's configuration names this attention: transformers lets one set it, but not ask for it."""
    return any(isinstance(value, str) and value == name for value in vars(network.config).values())


def _configurations(config: Any) -> Iterator[Any]:
    """A configuration and all inside of it."""
    yield config
    for name in config.sub_configs:
        if (inner := getattr(config, name, None)) is not None:
            yield from _configurations(inner)


def _attend(module: Any, q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor | None, **given: Any) -> Any:
    """What transformers calls: (B, H, N, D) in, (B, N, H, D) out."""
    unknown = [name for name in _UNKNOWN if given.get(name) is not None]
    if unknown or attention_mask is not None:
        raise HiddenAttentionError(
            f"The attention of this model uses {(unknown or ['a mask'])[0]}, which cannot be followed."
        )
    window, visit = _watched.get()
    own = given.get("sliding_window")
    scale = given.get("scaling")
    more = getattr(module, "farfield_bias", None)  # of `add_bias` or `replace`
    inputs = AttentionInputs(
        q, k, v, None if more is None or more.bias is None else more.bias(k.shape[2]).detach().to(q.device),
        scale=q.shape[3] ** -0.5 if scale is None else float(scale),
        window=narrower(window, own, q.shape[1]),
        own=own,
        chunk=_chunk(module),
        soft_cap=given.get("softcap"),
        sink=given.get("s_aux"),
    )  # fmt: skip
    return attended(module.layer_idx, inputs, visit).transpose(1, 2).contiguous(), None


def _chunk(module: Any) -> int | None:
    """The chunks of Llama 4's layers with rotation, which only its mask knows."""
    config = getattr(module, "config", None)
    kinds, layer = getattr(config, "layer_types", None), getattr(module, "layer_idx", None)
    if not kinds or layer is None or kinds[layer] != "chunked_attention":
        return None
    return getattr(config, "attention_chunk_size", None)


def _in_place(forward: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    """Our forward in the place of a module's own, with what is watched now."""
    window, visit = _watched.get()
    return forward(module, window, visit, *args, **kwargs)
