"""Causal language models of transformers: their losses as they are, and their attention through its interface.

transformers hands queries, keys and values to a function that can be chosen by name. The one registered here is ours:
it takes O(n) memory, can be cut at a window, and shows what it is given. BLOOM, whose attention does not go through
the interface, is given ours in its place; its bias is ALiBi's.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from farfield.formula import Formula
from farfield.measure.models import AttentionInputs, Model, Visit, Window

NAME = "farfield"  # under which transformers knows our attention
_UNKNOWN = ("softcap", "s_aux", "position_bias")  # what an attention may ask for that ours does not do
_watched: ContextVar[tuple[Window, Visit | None]] = ContextVar("watched", default=(None, None))


def sizes_of(config: Any) -> dict[str, Any]:
    """The sizes in a configuration of transformers, whatever it calls them."""
    config = config.get_text_config() if hasattr(config, "get_text_config") else config

    def first(*names: str) -> Any:
        return next((v for name in names if isinstance(v := getattr(config, name, None), int) and v > 0), None)

    width = first("hidden_size", "n_embd", "d_model") or 1
    return {
        "training_length": first("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"),
        "layers": first("num_hidden_layers", "n_layer", "n_layers") or 1,
        "heads": first("num_attention_heads", "n_head", "n_heads") or 1,
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

    def states(self, ids: Tensor, window: Window = None) -> Tensor:
        if window is None and _watched.get()[1] is None:
            return self._read(input_ids=ids)
        with self._our_attention(window):
            return self._read(input_ids=ids)

    def states_of_embedded(self, x: Tensor) -> Tensor:
        return self._read(inputs_embeds=x)

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
            if _is_bloom(self.network):
                for module in _bloom_attentions(self.network):
                    module.forward = types.MethodType(_bloom_forward, module)
                    undo.callback(delattr, module, "forward")
            else:
                undo.enter_context(_interface(self.network))
            token = _watched.set((window, _watched.get()[1]))
            undo.callback(_watched.reset, token)
            yield

    def formula_of(self, layer: int, head: int) -> tuple[Formula, dict[str, float]] | None:
        if not _is_bloom(self.network):
            return None
        from farfield import zoo

        formula = zoo.find("alibi").formula
        assert formula is not None
        return formula, {"k": float(_bloom_slopes(self.heads)[head])}

    def attention_scores(self, length: int) -> int:
        if getattr(self.network.config, "_attn_implementation", "eager") == "sdpa" and not _is_bloom(self.network):
            return 0
        return 3 * self.heads  # the scores, the masked scores, the softmax


def _is_bloom(network: Any) -> bool:
    return network.config.model_type == "bloom"


def _bloom_attentions(network: Any) -> list[Any]:
    return [module for module in network.modules() if type(module).__name__ == "BloomAttention"]


def _bloom_slopes(heads: int) -> list[float]:
    from farfield import zoo

    return [zoo.number(s) for s in zoo.slopes(heads)]


@contextmanager
def _interface(network: Any) -> Iterator[None]:
    """Our attention in the place of the model's own."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _attend)
    before = network.config._attn_implementation
    if not network._can_set_attn_implementation():
        raise ValueError(
            f"The attention of a {network.config.model_type} model cannot be seen or cut at a window: "
            "it does not go through transformers' attention interface."
        )
    network.set_attn_implementation(NAME)
    try:
        yield
    finally:
        network.set_attn_implementation(before)


def _both(window: Window, own: int | None, heads: int) -> Window:
    """The narrower of the window that was asked for and the model's own."""
    if own is None or window is None:
        return own if window is None else window
    each = [window] * heads if isinstance(window, int) else window
    return [min(w, own) for w in each]


def _attend(module: Any, q: Tensor, k: Tensor, v: Tensor, attention_mask: Tensor | None, **given: Any) -> Any:
    """What transformers calls: (B, H, N, D) in, (B, N, H, D) out."""
    unknown = [name for name in _UNKNOWN if given.get(name) is not None]
    if unknown or attention_mask is not None:
        raise ValueError(f"The attention of this model uses {(unknown or ['a mask'])[0]}, which cannot be followed.")
    window, visit = _watched.get()
    window = _both(window, given.get("sliding_window"), q.shape[1])
    scale = given.get("scaling")
    scale = q.shape[3] ** -0.5 if scale is None else float(scale)
    out = _attended(module.layer_idx, AttentionInputs(q, k, v, None, scale, window), visit)
    return out.transpose(1, 2).contiguous(), None


def _bloom_forward(
    module: Any, hidden_states: Tensor, residual: Tensor, alibi: Tensor, attention_mask: Any, **given: Any
) -> tuple[Tensor, None]:
    """BLOOM's attention, computed by ours: the same numbers in O(n) memory."""
    q, k, v = module._reshape(module.query_key_value(hidden_states))
    slopes = torch.tensor(_bloom_slopes(module.num_heads), device=q.device)
    bias = -slopes[:, None] * torch.arange(k.shape[2], device=q.device)
    window, visit = _watched.get()
    out = _attended(module.layer_idx, AttentionInputs(q, k, v, bias, module.inv_norm_factor, window), visit)
    return module.dense(out.transpose(1, 2).flatten(2)) + residual, None


def _attended(layer: int, inputs: AttentionInputs, visit: Visit | None) -> Tensor:
    from farfield.nn.attention.api import attention

    if visit is not None:
        visit(layer, inputs)
    return attention(inputs.q, inputs.k, inputs.v, inputs.bias, window=inputs.window, scale=inputs.scale)
