"""A bounded cache for models that people run, in one call: `farfield.bound(model, epsilon)`.

BLOOM, MPT and Falcon (ALiBi) get the adapters of adapters.py, models with another encoding hand the cache to our
attention. MPT reads no table of `max_seq_len` biases then, so it goes on past that length, where transformers stops
with an error. Models with windows get a cache that keeps no more than these (windowed.py).
"""

from __future__ import annotations

from functools import partial
from types import MethodType
from typing import Any

import torch

from farfield.models.networks.adapters import LayerBias, adapt, own_bias
from farfield.models.networks.windowed import WindowedCache, own_windows
from farfield.nn.cache.cache import BoundedCache
from farfield.nn.cache.model_biases import ModelBiases


def bound(model: Any, epsilon: float | str = 1e-3, **options: Any) -> Any:
    """Make a model keep only what epsilon asks for: the same model, whose caches are bounded from now on.

    For farfield, BLOOM, MPT and Falcon (ALiBi) models, and for models with windows: these lose nothing, because no key
    beyond a window has any weight, and their layers without a window keep every key. `options` are those of
    BoundedCache (logit_bound, policy, context). Whenever the model would make a cache, in `generate` or in a forward
    pass without gradients, it makes a bounded one; the last is `model.bounded_cache`, with its certificate(). Other
    caches can still be given.
    """
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if own_windows(getattr(model, "config", None)) is not None:
        make = partial(WindowedCache, model, epsilon, **options)
    else:
        if kind != "farfield":
            _foreign_biases(model)  # refuses what it does not know
            model.farfield_biases = partial(_foreign_biases, model)
            adapt(model)
        make = partial(BoundedCache, model, epsilon, **options)
    make()  # refuses what cannot be bounded, now and not at the first token

    layers = [x.farfield_bias for x in model.modules() if isinstance(getattr(x, "farfield_bias", None), LayerBias)]

    def new_cache() -> Any:
        model.bounded_cache = make()
        return model.bounded_cache

    def before(decoder: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        wanted = kwargs.get("use_cache") is not False and not torch.is_grad_enabled()
        if wanted and kwargs.get("past_key_values") is None:
            kwargs = {**kwargs, "past_key_values": new_cache()}
        _prepare_call(layers, kwargs)
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
    if kind != "farfield":  # ours takes texts of any length with the usual cache too
        if (hook := getattr(model, "bounding_hook", None)) is not None:
            hook.remove()
        model.bounding_hook = model.base_model.register_forward_pre_hook(before, with_kwargs=True)
    model.bounded_cache = None
    return model


def _foreign_biases(model: Any) -> ModelBiases:
    """The biases of a BLOOM, MPT or Falcon (ALiBi) model, or of one with another encoding."""
    config = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    replaced = kind == "farfield-replaced"
    bias = model.farfield_bias if replaced else own_bias(model) if kind in ("bloom", "mpt", "falcon") else None
    if config is None or bias is None:
        raise ValueError(
            "a bounded cache knows farfield, BLOOM, MPT and Falcon (ALiBi) models, whose attention is biased by "
            f"distance, and models with windows, not {kind!r}"
        )
    return ModelBiases.of(bias, config, shared=not replaced or config.farfield["shared"])


def _prepare_call(layers: list[LayerBias], kwargs: dict[str, Any]) -> None:
    """Tell a bounded cache where padding stands, before the model turns the mask into one of four dimensions.

    Layers with another encoding hand their keys over before they attend, so they are told of the cache itself.
    """
    cache, mask = kwargs.get("past_key_values"), kwargs.get("attention_mask")
    cache = cache if isinstance(cache, BoundedCache) else None
    for layer in layers:
        layer.cache = cache
    if cache is None:
        return
    if mask is not None and mask.ndim != 2:
        raise ValueError(f"a bounded cache takes an attention mask (batch, tokens), not one of {mask.ndim} dimensions")
    if kwargs.get("output_attentions"):
        raise ValueError("a bounded cache never holds a row's attention weights; leave output_attentions out")
    cache.asked_later = bool(layers)
    cache.given_mask = None if mask is None or bool(mask.all()) else mask.bool()
