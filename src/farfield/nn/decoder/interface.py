"""Our attention for any model of transformers: `attn_implementation="farfield"`, and a bias by distance in one line.

    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="farfield")
    farfield.nn.add_bias(model, "alibi")                 # a bias by distance, in every layer
    farfield.nn.add_bias(model, "none", window=512)      # a window, or
    farfield.nn.add_bias(model, "alibi", sink=True)      # a learned sink for each head

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, flash_attention_mask

from farfield.nn.attention.api import attention
from farfield.nn.bias import Given, bias_of
from farfield.nn.decoder.model_inputs import token_mask

NAME = "farfield"


class DistanceBias(nn.Module):
    """What `add_bias` gives a layer: a bias by distance, a window, a sink."""

    def __init__(self, bias: nn.Module | None, heads: int, window: int | None, sink: bool) -> None:
        super().__init__()
        self.bias, self.window = bias, window
        self.sink = nn.Parameter(torch.zeros(heads)) if sink else None


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it; sinks (`s_aux`), soft caps and sliding windows are the model's own."""
    if dropout and module.training:
        raise ValueError(f"attention dropout is {dropout}; attn_implementation='farfield' offers none: set it to 0")
    if not kwargs.get("is_causal", getattr(module, "is_causal", True)):
        raise ValueError("attn_implementation='farfield' is causal; this layer is not")
    more: DistanceBias | None = getattr(module, "farfield_bias", None)
    keys = key.shape[2]
    window, sink, bias = sliding_window, s_aux, None
    if more is not None:
        if more.window is not None:
            window = more.window if window is None else min(window, more.window)
        sink = sink if more.sink is None else more.sink
        if (cache := getattr(more, "cache", None)) is not None:
            if window is not None:
                raise ValueError(f"a bounded cache chooses its own windows, but this layer has one of {window} tokens")
            k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
            out = cache.attend(query, k, v, module.layer_idx, cache.given_mask, scaling, sink, softcap)
            return out.transpose(1, 2).contiguous(), None
        bias = None if more.bias is None else more.bias(keys).to(query.device)
    mask = token_mask(attention_mask, query.shape[2], keys)
    out = attention(query, key, value, bias, window=window, mask=mask, sink=sink, softcap=softcap, scale=scaling)
    return out.transpose(1, 2).contiguous(), None


def attention_layers(model: Any) -> list[nn.Module]:
    """The attention modules of a model of transformers, by what all of them have."""
    known = ("head_dim", "head_size")  # the second is GPT-NeoX's
    return [m for m in model.modules() if hasattr(m, "layer_idx") and any(hasattr(m, name) for name in known)]


def add_bias(
    model: Any,
    encoding: str = "alibi",
    *,
    parameters: Mapping[str, Given] | None = None,
    window: int | None = None,
    sink: bool = False,
) -> Any:
    """Give every attention layer of a model of transformers a bias by distance, a window, or a learned sink.

    Args:
        model: Any model whose attention goes through transformers' `AttentionInterface`.
        encoding: A name from the zoo or a formula; "none" adds nothing.
        parameters: Of the formula, as for `Bias`.
        window: Tokens that a query sees, itself among them.
        sink: Whether each head of each layer learns a sink.

    Returns:
        The same model, which attends with farfield's attention from now on.
    """
    layers = attention_layers(model)
    if not layers:
        raise ValueError(f"{type(model).__name__} has no attention layers that transformers' AttentionInterface knows")
    heads = model.config.get_text_config().num_attention_heads
    width: Any = getattr(layers[0], "head_dim", None) or getattr(layers[0], "head_size", None)
    bias = bias_of(encoding, heads, width, parameters)
    if bias is None:
        raise ValueError(f"the encoding {encoding!r} is no bias by distance")
    model.set_attn_implementation(NAME)
    for layer in layers:
        layer.farfield_bias = DistanceBias(bias, heads, window, sink).to(next(layer.parameters()).device)
    return model


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, flash_attention_mask)
