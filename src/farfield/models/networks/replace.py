"""Another encoding in a model of transformers: its own positions are taken out, and the bias of a formula put in.

    model = farfield.nn.replace(AutoModelForCausalLM.from_pretrained(name), "-k*t")
    model.save_pretrained(folder)
    AutoModelForCausalLM.from_pretrained(folder)              # after `import farfield`

Rotation becomes the identity, learned position embeddings 0, ALiBi and sliding windows go: the formula is all that the
model knows of positions. Attention has no dropout any more. GPT-2, Llama, Mistral, Qwen, Phi, OLMo and GPT-NeoX attend
through transformers' `AttentionInterface`; BLOOM, MPT and Falcon, which do not use it, get attention that does.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedModel
from transformers.conversion_mapping import get_checkpoint_conversion_mapping, register_checkpoint_conversion_mapping
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from farfield import zoo
from farfield.models.model_types import REPLACEABLE
from farfield.models.networks.adapters import LayerBias, adapt
from farfield.models.networks.replaced_config import MODEL_TYPE, config_class
from farfield.nn.bias import Given, bias_of
from farfield.nn.decoder.interface import NAME, attend, attention_layers


def replace(
    model: Any, encoding: str | zoo.Encoding, *, parameters: Mapping[str, Given] | None = None, shared: bool = True
) -> Any:
    """A causal language model of transformers with another positional encoding in place of its own.

    Args:
        model: A GPT-2, Llama, Mistral, Qwen, Phi, OLMo, GPT-NeoX, BLOOM, MPT or Falcon for causal language modelling.
        encoding: A name from the zoo, a formula, or an `Encoding` with parameters to learn.
        parameters: Of the formula, as for `Bias`.
        shared: One set of learned parameters for all layers, or one for each.

    Returns:
        The new model, which shares its weights with the old one. It must be trained further: the weights were learned
        with other positions.

    Raises:
        ValueError: If the model is of another architecture, or the encoding is no bias by distance.
    """
    kind = family_of_model(model)
    text, learns = encoding.written() if isinstance(encoding, zoo.Encoding) else (encoding, {})
    how = {"family": kind, "encoding": text, "parameters": {**learns, **(parameters or {})}, "shared": shared}
    with torch.random.fork_rng(devices=[]):
        _bias(model.config, how)  # refuses what it does not know
        config = config_class(kind).from_dict({**_without_positions(model.config.to_dict()), "farfield": how})
        with torch.device("meta"):
            made = model_class(kind)(config)
        install(made)
    weights = {name: p for name, p in model.state_dict().items() if not name.endswith("wpe.weight")}
    made.load_state_dict(weights, strict=False, assign=True)
    for name, buffer in model.named_buffers():  # those that are no part of the weights: GPT-2's mask, before 5.3
        where, _, last = name.rpartition(".")
        if "rotary_emb" not in name and hasattr(made.get_submodule(where), last):
            setattr(made.get_submodule(where), last, buffer)
    made.tie_weights()
    left = [name for name, p in [*made.named_parameters(), *made.named_buffers()] if p.device.type == "meta"]
    assert not left, f"{left} have no values"
    made.farfield_bias.to(next(model.parameters()).device)
    made.generation_config = copy.deepcopy(model.generation_config)
    for before, now in ((p, dict(made.named_parameters()).get(name)) for name, p in model.named_parameters()):
        if now is not None:
            now.requires_grad_(before.requires_grad)
    return made.train(model.training)


def family_of_model(model: Any) -> str:
    """The family of a causal language model whose encoding can be replaced; one sentence for any other."""
    config = getattr(model, "config", None)
    kind = str(getattr(config, "model_type", ""))
    if config is not None and kind == MODEL_TYPE:
        kind = config.farfield["family"]
    usual = _base_class(kind).__name__ if kind in REPLACEABLE else None
    if usual is None or type(model).__name__.removeprefix("Farfield") != usual:
        names = ", ".join(dict.fromkeys(REPLACEABLE.values()))
        what = f"the model type {kind!r}" if kind and usual is None else type(model).__name__
        raise ValueError(f"the encoding of {what} cannot be replaced; that of these language models can: {names}")
    return kind


def _bias(config: Any, how: Mapping[str, Any]) -> nn.Module:
    heads, layers = config.num_attention_heads, 1 if how["shared"] else config.num_hidden_layers
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    bias = bias_of(how["encoding"], heads, width, how["parameters"], layers=layers)
    if bias is None:
        raise ValueError(f"the encoding {how['encoding']!r} is no bias by distance: give a formula, or another name")
    return bias


def _without_positions(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without sliding windows, ALiBi, and dropout of attention."""
    changes: dict[str, Any] = {"sliding_window": None, "use_sliding_window": False, "alibi": False}
    changes |= {"attention_dropout": 0.0, "attn_pdrop": 0.0}
    if config.get("layer_types"):
        changes["layer_types"] = ["full_attention"] * len(config["layer_types"])
    if isinstance(config.get("attn_config"), Mapping):
        changes["attn_config"] = {**config["attn_config"], "attn_pdrop": 0, "alibi": False}
    changes["model_type"] = MODEL_TYPE
    return {**config, **{name: value for name, value in changes.items() if name in config}}


def install(model: Any) -> None:
    """Put the bias of the configuration into every layer, and nothing in the place of the model's own positions."""
    how = model.config.farfield
    model.farfield_bias = _bias(model.config, how)
    layers = attention_layers(model)
    assert len(layers) == model.config.num_hidden_layers
    for number, layer in enumerate(layers):
        layer.farfield_bias = LayerBias(model.farfield_bias, 0 if how["shared"] else number)
    for module in list(model.modules()):
        if isinstance(getattr(module, "rotary_emb", None), nn.Module):
            module.rotary_emb = NoRotation()
        if isinstance(getattr(module, "wpe", None), nn.Module):
            module.wpe = NoPositions()
    adapters = adapt(model)
    for adapter in adapters:
        adapter.attend = attend
    if not adapters:
        model.set_attn_implementation(NAME)


class NoRotation(nn.Module):
    """Turns q and k by nothing: cosine 1, sine 0."""

    def forward(self, x: Tensor, position_ids: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        one = x.new_ones(1, position_ids.shape[-1], 1)
        return one, torch.zeros_like(one)


class NoPositions(nn.Module):
    """Position embeddings that add nothing, at any length."""

    def forward(self, position_ids: Tensor) -> Tensor:
        return position_ids.new_zeros(*position_ids.shape, 1)  # whole numbers: the sum keeps the model's type


class _Model(PreTrainedModel):
    """What a model with another encoding does besides: it puts the encoding in when it is made."""

    _keep_in_fp32_modules_strict = ["farfield_bias"]  # noqa: RUF012  transformers wants a list

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(config, *args, **kwargs)
        install(self)


def _base_class(kind: str) -> type:
    """The class of transformers for causal language models of a family."""
    return MODEL_FOR_CAUSAL_LM_MAPPING[CONFIG_MAPPING[kind]]


@cache
def model_class(kind: str) -> Any:
    """The class of models for a family, known to `AutoModelForCausalLM`."""
    base = _base_class(kind)
    body = {"config_class": config_class(kind), "__module__": __name__}
    made = type(f"Farfield{base.__name__}", (_Model, base), body)
    AutoModelForCausalLM.register(config_class(kind), made, exist_ok=True)
    renamed = get_checkpoint_conversion_mapping(base.__name__) or get_checkpoint_conversion_mapping(kind)
    if renamed:  # a file names its tensors as the family's files do, whatever a version of transformers calls them
        register_checkpoint_conversion_mapping(made.__name__, renamed, overwrite=True)
    return made
