"""BLOOM, MPT and Falcon, whose attention does not go through transformers' interface: one adapter for each.

An adapter is a subclass of the model's own attention that hands queries, keys and values to another: to a bounded
cache, if that is the cache; else to `attend`, which has the signature of transformers' `AttentionInterface`; and does
what it always did where there is neither. A module becomes one by its `__class__`, so no weight moves or changes its
name. All three may have ALiBi, of which `own_bias` takes the slopes from the model's own code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.bloom.modeling_bloom import BloomAttention
from transformers.models.falcon.modeling_falcon import FalconAttention, apply_rotary_pos_emb, build_alibi_tensor
from transformers.models.mpt.modeling_mpt import MptAttention

from farfield.nn.bias import Bias
from farfield.nn.cache.cache import BoundedCache
from farfield.nn.decoder.masks import Meaning
from farfield.nn.decoder.model_inputs import token_mask

Heads = tuple[Tensor, Tensor, Tensor]


class LayerBias:
    """The bias of one layer, which the model as a whole holds; what attention with a bias asks a module for."""

    window, sink = None, None
    cache: BoundedCache | None = None  # which then attends by itself

    def __init__(self, shared: nn.Module, layer: int) -> None:
        self.shared, self.layer = shared, layer

    def bias(self, keys: int) -> Tensor:
        """The (heads, keys) bias."""
        return self.shared(keys, layer=self.layer)


class Adapter:
    """What the three have in common."""

    attend: Callable[..., Any] | None = None
    layer_idx: int

    def is_own(self, cache: Any, options: dict[str, Any]) -> bool:
        """Whether the model's own code attends."""
        if isinstance(cache, BoundedCache) and options.get("output_attentions"):
            raise ValueError("a bounded cache never holds a row's attention weights; leave output_attentions out")
        return self.attend is None and not isinstance(cache, BoundedCache)

    def outputs(self, heads: Heads, cache: Any, mask: Tensor | None, scale: float, **given: Any) -> Tensor:
        """The output of all heads, (batch, n, width); the keys of the cache come before the new ones."""
        q, k, v = heads
        if isinstance(cache, BoundedCache):
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
            return cache.attend(q, k, v, self.layer_idx, cache.given_mask, scale).transpose(1, 2).flatten(2)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        keys = k.shape[2]
        meaning = Meaning(keys, keys, token_mask(mask, q.shape[2], keys))
        assert self.attend is not None
        return self.attend(self, q, k, v, meaning, scaling=scale, **given)[0].flatten(2)


class BloomAdapter(Adapter, BloomAttention):
    """BLOOM's attention."""

    def forward(
        self, hidden_states: Tensor, residual: Tensor, alibi: Any, attention_mask: Tensor | None,
        layer_past: Any = None, *args: Any, **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if self.is_own(layer_past, kwargs):
            return super().forward(hidden_states, residual, alibi, attention_mask, layer_past, *args, **kwargs)
        heads = split_heads(self.query_key_value(hidden_states), self.num_heads, self.head_dim)
        y = self.dense(self.outputs(heads, layer_past, attention_mask, self.inv_norm_factor))
        return residual + torch.dropout(y, self.hidden_dropout, self.training), None


class MptAdapter(Adapter, MptAttention):
    """MPT's attention; its own table of biases ends at `max_seq_len`, ALiBi does not."""

    def forward(
        self, hidden_states: Tensor, position_bias: Any, past_key_values: Any = None,
        attention_mask: Tensor | None = None, **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if self.is_own(past_key_values, kwargs):
            return super().forward(hidden_states, position_bias, past_key_values, attention_mask, **kwargs)
        mixed = self.Wqkv(hidden_states)
        if self.clip_qkv:
            mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
        q, k, v = (x.unflatten(2, (self.n_heads, self.head_dim)).transpose(1, 2) for x in mixed.chunk(3, dim=2))
        visible = None if attention_mask is None else ~attention_mask.bool()  # MPT marks what is hidden
        return self.out_proj(self.outputs((q, k, v), past_key_values, visible, self.softmax_scale)), None


class FalconAdapter(Adapter, FalconAttention):
    """Falcon's attention, rotary or with ALiBi, in each of its three layouts.

    Its ALiBi is divided by sqrt(d) together with the scores, and rounded to bfloat16 by the position of the key. A
    bounded cache takes it exactly; `attend` is given what each key gets by rounding, as `key_bias`.
    """

    def forward(
        self, hidden_states: Tensor, alibi: Tensor | None, attention_mask: Tensor | None, position_ids: Any = None,
        layer_past: Any = None, use_cache: bool = False, output_attentions: bool = False,
        position_embeddings: Any = None, **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        if self.is_own(layer_past, {"output_attentions": output_attentions}):
            return super().forward(
                hidden_states, alibi, attention_mask, position_ids, layer_past, use_cache, output_attentions,
                position_embeddings, **kwargs,
            )  # fmt: skip
        q, k, v = self.heads(self.query_key_value(hidden_states))
        if alibi is None:
            q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
            y = self.outputs((q, k, v), layer_past, attention_mask, self.inv_norm_factor)
        else:  # its mask holds the bias, too, and cannot be read
            y = self.outputs((q, k, v), layer_past, None, self.inv_norm_factor, key_bias=self._rounding(alibi))
        return self.dense(y), None

    def heads(self, mixed: Tensor) -> Heads:
        """Queries, keys and values: heads in groups that share a key, all in one group, or each for itself."""
        groups = self.num_kv_heads if self.new_decoder_architecture else 1 if self.multi_query else self.num_heads
        return split_heads(mixed, groups, self.head_dim)

    def _rounding(self, alibi: Tensor) -> Tensor | None:
        """What bfloat16 adds to the bias of each key, (heads, keys); None where that is nothing."""
        rounded = alibi.reshape(self.num_heads, -1).float()  # slope times the position of the key
        exact = rounded[:, min(1, rounded.shape[1] - 1), None] * torch.arange(rounded.shape[1], device=alibi.device)
        return None if torch.equal(rounded, exact) else (rounded - exact) * self.inv_norm_factor


_ADAPTERS: dict[type, type] = {BloomAttention: BloomAdapter, MptAttention: MptAdapter, FalconAttention: FalconAdapter}


def split_heads(mixed: Tensor, groups: int, width: int) -> Heads:
    """Queries, keys and values, (batch, heads, n, width), of one map: a group has its queries, a key and a value."""
    x = mixed.unflatten(2, (groups, -1, width))
    parts = x[:, :, :, :-2].flatten(2, 3), x[:, :, :, -2], x[:, :, :, -1]
    q, k, v = (part.transpose(1, 2) for part in parts)
    return q, k, v


def adapt(network: nn.Module) -> list[Any]:
    """Make the attention of a BLOOM, MPT or Falcon model adapters, and return them; none for other models."""
    for module in network.modules():
        new = next((new for base, new in _ADAPTERS.items() if isinstance(module, base)), None)
        if new is not None and not isinstance(module, Adapter):
            module.__class__ = new
    return [module for module in network.modules() if isinstance(module, Adapter)]


@contextmanager
def attending(network: nn.Module, attend: Callable[..., Any]) -> Iterator[bool]:
    """A context in which BLOOM, MPT or Falcon attends with `attend`, and with its own ALiBi as a bias by distance.

    Gives False for other models, with which it does nothing.
    """
    kinds = {module: type(module) for module in network.modules()}
    modules, bias = adapt(network), own_bias(network)
    before = [{name: vars(module).get(name) for name in ("attend", "farfield_bias")} for module in modules]
    for module in modules:
        module.attend = attend
        if bias is not None:
            module.farfield_bias = LayerBias(bias, 0)
    try:
        yield bool(modules)
    finally:
        for module, attributes in zip(modules, before, strict=True):
            module.__class__ = kinds[module]
            for name, value in attributes.items():
                vars(module).pop(name, None) if value is None else setattr(module, name, value)


def own_bias(network: Any) -> Bias | None:
    """The ALiBi of a BLOOM, MPT or Falcon model, by the slopes that its own code uses; None where it has none."""
    config, decoder = network.config, getattr(network, "transformer", network)
    if config.model_type not in ("bloom", "mpt", "falcon") or (config.model_type == "falcon" and not config.alibi):
        return None
    if "farfield_own_bias" in vars(network):
        return network.farfield_own_bias[0]
    heads, two = config.num_attention_heads, torch.ones(1, 2, dtype=torch.long)  # a text: the bias of its second token
    if config.model_type == "bloom":
        slopes = decoder.build_alibi_tensor(two, heads, torch.float32)[:, 0, 1]
    elif config.model_type == "mpt":
        slopes = -decoder.build_mpt_alibi_tensor(heads, 2)[:, 0, 0]
    else:
        slopes = build_alibi_tensor(two, heads, torch.float32)[:, 0, 1] / (config.hidden_size // heads) ** 0.5
    network.farfield_own_bias = [Bias("alibi", heads, parameters={"k": slopes.tolist()})]  # a list: no part of it
    return network.farfield_own_bias[0]
