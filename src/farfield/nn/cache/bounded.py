"""BLOOM, MPT and Falcon with a bounded cache, in one call: `farfield.bound(model, epsilon)`.

They add ALiBi to their attention, in code of their own that wants every key. Their attention modules get a subclass
that hands queries, keys and values to the cache when it is a bounded one, and does what it always did with any other.
No weight moves or changes its name. With a bounded cache MPT reads no table of `max_seq_len` biases, so it goes on past
that length, where transformers stops with an error. Models with windows get a cache that keeps no more than these
(windowed.py).
"""

from __future__ import annotations

from functools import partial
from types import MethodType
from typing import Any

import torch
from torch import Tensor
from transformers.models.bloom.modeling_bloom import BloomAttention
from transformers.models.falcon.modeling_falcon import FalconAttention
from transformers.models.mpt.modeling_mpt import MptAttention

from farfield.nn.cache.cache import BoundedCache
from farfield.nn.cache.sources import biases_of
from farfield.nn.cache.windowed import WindowedCache, own_windows
from farfield.nn.decoder.interface import attention_layers


def split_heads(mixed: Tensor, groups: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values (batch, heads, tokens, width) of one map whose heads stand in groups that share a key.

    Each group holds its queries, then its key, then its value, as BLOOM and Falcon have it.
    """
    x = mixed.unflatten(2, (groups, -1, width))
    heads = x.shape[3] - 2
    parts = x[:, :, :, :heads], x[:, :, :, heads : heads + 1], x[:, :, :, heads + 1 :]
    q, k, v = (part.expand(-1, -1, -1, heads, -1).flatten(2, 3).transpose(1, 2) for part in parts)
    return q, k, v


def falcon_heads(module: Any, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Those of Falcon in any of its generations: heads in groups, all in one group, or each for itself."""
    groups = module.num_kv_heads if module.new_decoder_architecture else 1 if module.multi_query else module.num_heads
    return split_heads(mixed, groups, module.head_dim)


class BoundedBloomAttention(BloomAttention):
    """BLOOM's attention that knows a bounded cache."""

    def forward(
        self,
        hidden_states: Tensor,
        residual: Tensor,
        alibi: Tensor,
        attention_mask: Tensor | None,
        layer_past: Any = None,
        use_cache: bool = False,
        output_attentions: bool = False,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if not isinstance(layer_past, BoundedCache):
            return super().forward(
                hidden_states, residual, alibi, attention_mask, layer_past, use_cache, output_attentions, **kwargs
            )
        _refuse_weights(output_attentions)
        q, k, v = split_heads(self.query_key_value(hidden_states), self.num_heads, self.head_dim)
        y = layer_past.attend(q, k, v, self.layer_idx, layer_past.given_mask, self.inv_norm_factor)
        y = self.dense(y.transpose(1, 2).reshape(hidden_states.shape))
        return residual + torch.dropout(y, self.hidden_dropout, self.training), None


class BoundedMptAttention(MptAttention):
    """MPT's attention that knows a bounded cache."""

    def forward(
        self,
        hidden_states: Tensor,
        position_bias: Tensor,
        past_key_values: Any = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if not isinstance(past_key_values, BoundedCache):
            return super().forward(hidden_states, position_bias, past_key_values, attention_mask, **kwargs)
        mixed = self.Wqkv(hidden_states)
        if self.clip_qkv:
            mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
        q, k, v = (x.unflatten(2, (self.n_heads, self.head_dim)).transpose(1, 2) for x in mixed.chunk(3, dim=2))
        mask = past_key_values.given_mask
        y = past_key_values.attend(q, k, v, self.layer_idx, mask, self.softmax_scale)
        return self.out_proj(y.transpose(1, 2).reshape(hidden_states.shape)), None


class BoundedFalconAttention(FalconAttention):
    """Falcon's attention with ALiBi that knows a bounded cache."""

    def forward(
        self,
        hidden_states: Tensor,
        alibi: Tensor | None,
        attention_mask: Tensor,
        position_ids: Any = None,
        layer_past: Any = None,
        use_cache: bool = False,
        output_attentions: bool = False,
        position_embeddings: Any = None,
        **kwargs: Any,
    ) -> tuple[Tensor, Tensor | None]:
        if not isinstance(layer_past, BoundedCache):
            return super().forward(
                hidden_states, alibi, attention_mask, position_ids, layer_past, use_cache, output_attentions,
                position_embeddings, **kwargs,
            )  # fmt: skip
        _refuse_weights(output_attentions)
        q, k, v = falcon_heads(self, self.query_key_value(hidden_states))
        y = layer_past.attend(q, k, v, self.layer_idx, layer_past.given_mask, self.inv_norm_factor)
        return self.dense(y.transpose(1, 2).reshape(*hidden_states.shape[:2], -1)), None


def prepare(model: Any) -> None:
    """Let a BLOOM, MPT or Falcon model, or one with a replaced encoding, take a bounded cache; ours can already."""
    if model.config.model_type == "farfield-replaced":
        layers = attention_layers(model)

        def hand_over(decoder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            given = kwargs.get("past_key_values")
            cache = given if isinstance(given, BoundedCache) else None
            if cache is not None:
                cache.asked_later = True
                _note_mask(decoder, args, kwargs)
            for layer in layers:
                layer.farfield_bias.cache = cache

        if not getattr(model, "takes_bounded_cache", False):
            model.takes_bounded_cache = True
            model.base_model.register_forward_pre_hook(hand_over, with_kwargs=True)
        return
    known = {
        BloomAttention: BoundedBloomAttention,
        MptAttention: BoundedMptAttention,
        FalconAttention: BoundedFalconAttention,
    }
    members = [module for module in model.modules() if type(module) in known]
    for module in members:
        module.__class__ = known[type(module)]
    if members:
        decoder = getattr(model, "transformer", model)
        decoder.register_forward_pre_hook(_note_mask, with_kwargs=True)


def bound(model: Any, epsilon: float | str = 1e-3, **options: Any) -> Any:
    """Make a model keep only what epsilon asks for: the same model, whose caches are bounded from now on.

    For farfield, BLOOM, MPT and Falcon (ALiBi) models, and for models with windows: these lose nothing, because no key
    beyond a window has any weight, and their layers without a window keep every key. `options` are those of
    BoundedCache (logit_bound, policy, context). Whenever the model would make a cache, in `generate` or in a forward
    pass without gradients, it makes a bounded one; the last is `model.bounded_cache`, with its certificate(). Other
    caches can still be given.
    """
    windowed = own_windows(getattr(model, "config", None)) is not None
    if windowed:
        make = partial(WindowedCache, model, epsilon, **options)
    else:
        biases_of(model)  # refuses what it does not know
        prepare(model)
        make = partial(BoundedCache, model, epsilon, **options)
    make()  # refuses what cannot be certified, now and not at the first token

    def new_cache() -> Any:
        model.bounded_cache = make()
        return model.bounded_cache

    def give_cache(
        decoder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        wanted = kwargs.get("use_cache") is not False and not torch.is_grad_enabled()
        if wanted and kwargs.get("past_key_values") is None:
            kwargs = {**kwargs, "past_key_values": new_cache()}
            _note_mask(decoder, args, kwargs)
        return args, kwargs

    def generate(self: Any, inputs: Any = None, generation_config: Any = None, *args: Any, **kwargs: Any) -> Any:
        settings = self.generation_config if generation_config is None else generation_config
        chosen = kwargs.get("cache_implementation", settings.cache_implementation) is not None
        refused = kwargs.get("use_cache", settings.use_cache) is False
        if kwargs.get("past_key_values") is None and not chosen and not refused:
            kwargs["past_key_values"] = new_cache()
        return type(self).generate(self, inputs, generation_config, *args, **kwargs)

    model.new_bounded_cache = new_cache
    for settings in (model.config, model.generation_config):  # MPT's say that it should generate without any cache
        settings.use_cache = True
    model.generate = MethodType(generate, model)
    other = model.config.model_type in ("bloom", "mpt", "falcon", "farfield-replaced")
    if windowed or other:  # ours takes texts of any length with the usual cache too
        if (before := getattr(model, "_gives_bounded_cache", None)) is not None:
            before.remove()
        decoder = model.base_model
        model._gives_bounded_cache = decoder.register_forward_pre_hook(give_cache, with_kwargs=True, prepend=True)
    model.bounded_cache = None
    return model


def _note_mask(decoder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Tell a bounded cache where padding stands, before the model turns the mask into one of four dimensions."""
    cache, mask = kwargs.get("past_key_values"), kwargs.get("attention_mask")
    if not isinstance(cache, BoundedCache):
        return
    if mask is not None and mask.ndim != 2:
        raise ValueError(f"a bounded cache takes an attention mask (batch, tokens), not one of {mask.ndim} dimensions")
    if kwargs.get("output_attentions"):
        _refuse_weights(True)
    cache.given_mask = None if mask is None or bool(mask.all()) else mask.bool()


def _refuse_weights(wanted: bool) -> None:
    if wanted:
        raise ValueError("a bounded cache never holds a row's attention weights; leave output_attentions out")
