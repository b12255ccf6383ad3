"""Our attention for any model of transformers: `attn_implementation="farfield"`, and a bias by distance in one line.

    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="farfield")
    farfield.nn.add_bias(model, "alibi")                 # a bias by distance, in every layer
    farfield.nn.add_bias(model, "none", window=512)      # a window, or
    farfield.nn.add_bias(model, "alibi", sink=True)      # a learned sink for each head

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface

from farfield.nn.attention.api import attention
from farfield.nn.bias import Float32Parameters, Given, bias_of
from farfield.nn.decoder.masks import CausalMask, HiddenAttentionError, Meaning, causal_mask
from farfield.nn.decoder.model_inputs import token_mask

NAME = "farfield"
# Arguments of a model that reach its attention, and say nothing to it: what a token may see is in the mask.
OF_THE_MODEL = {
    "cache_position", "labels", "logits_to_keep", "num_items_in_batch", "output_hidden_states", "output_router_logits",
    "position_ids", "return_dict", "token_type_ids", "tokenizer", "use_cache",
}  # fmt: skip
SWITCHES = {"is_causal": True, "output_attentions": False}  # with the only value that can be followed


class DistanceBias(Float32Parameters):
    """What `add_bias` gives a layer: a bias by distance, a window, a sink."""

    def __init__(self, bias: nn.Module | None, heads: int, window: int | None, sink: bool) -> None:
        super().__init__()
        self.bias, self.window = bias, window
        self.sink = nn.Parameter(torch.zeros(heads, dtype=torch.float32)) if sink else None


def asked(module: nn.Module, q: Tensor, k: Tensor, mask: Any, window: int | None, given: Mapping[str, Any]) -> Meaning:
    """What a layer asks of its attention; one sentence if that cannot be followed.

    `window` is the one that the layer names, `given` what it hands over besides.
    """
    kind, keys = str(getattr(getattr(module, "config", None), "model_type", type(module).__name__)), k.shape[2]

    def refuse(what: str) -> NoReturn:
        raise HiddenAttentionError(f"the attention of {kind} models cannot be followed: {what}")

    for name, value in given.items():
        if value is not None and name not in OF_THE_MODEL and not (name in SWITCHES and value is SWITCHES[name]):
            refuse(f"it is given {name}")
    if q.shape[2] > keys:
        refuse("it has more queries than keys")
    if isinstance(mask, Tensor) and not isinstance(mask, CausalMask) and mask.ndim == 4:
        meaning = Meaning(keys, keys, token_mask(mask, q.shape[2], keys))
    elif mask is None and q.shape[2] == 1:
        meaning = Meaning(keys, keys)
    elif not isinstance(mask, CausalMask | Meaning):
        refuse("no causal mask reaches it")
    else:
        meaning = mask if isinstance(mask, Meaning) else mask.meaning
    if meaning.other or not meaning.keys <= keys <= meaning.places:
        refuse(f"its mask asks for {meaning.other or 'other keys than it is given'}")
    if window is not None and window != meaning.window and min(window, meaning.window or window) < meaning.keys:
        refuse(f"it names a window of {window} tokens, and its mask {meaning.window or 'none'}")
    return meaning


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any = None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **given: Any,
) -> tuple[Tensor, None]:
    """Attention as transformers calls it; sinks (`s_aux`), soft caps and sliding windows are the model's own."""
    if dropout and module.training:
        raise ValueError(f"attention dropout is {dropout}; attn_implementation='farfield' offers none: set it to 0")
    mask = asked(module, query, key, attention_mask, sliding_window, given)
    if mask.chunk is not None:
        raise HiddenAttentionError(f"the text is longer than the model's chunks of {mask.chunk} tokens")
    keys = mask.keys
    bias, window, sink = with_added(module, keys, mask.window, s_aux)
    if (cache := getattr(getattr(module, "farfield_bias", None), "cache", None)) is not None:
        if window is not None:
            raise ValueError(f"a bounded cache chooses its own windows, but this layer has one of {window} tokens")
        k, v = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
        out = cache.attend(query, k, v, module.layer_idx, cache.given_mask, scaling, sink, softcap)
        return out.transpose(1, 2).contiguous(), None
    scale = query.shape[3] ** -0.5 if scaling is None else scaling
    q, k, v = of_one_width(query, key[:, :, :keys], value[:, :, :keys])
    bias = None if bias is None else bias.to(q.device)
    out = attention(q, k, v, bias, window=window, mask=mask.padding, sink=sink, softcap=softcap, scale=scale)
    return out[..., : value.shape[3]].transpose(1, 2).contiguous(), None


def with_added(
    module: nn.Module, keys: int, window: int | None, sink: Tensor | None
) -> tuple[Tensor | None, int | None, Tensor | None]:
    """The bias, window and sink of a layer: what `add_bias` or `replace` gave it, besides its own."""
    added: DistanceBias | None = getattr(module, "farfield_bias", None)
    if added is None:
        return None, window, sink
    window = min([w for w in (window, added.window) if w is not None], default=None)
    bias = None if added.bias is None or getattr(added, "cache", None) else added.bias(keys)
    return bias, window, sink if added.sink is None else added.sink


def of_one_width(q: Tensor, k: Tensor, v: Tensor) -> list[Tensor]:
    """The same with zeros behind what is narrower: values may be of another width than keys (latent attention)."""
    width = max(k.shape[3], v.shape[3])
    return [x if x.shape[3] == width else nn.functional.pad(x, (0, width - x.shape[3])) for x in (q, k, v)]


def computes_by(model: Any, name: str) -> bool:
    """Whether a model's configuration names this attention: transformers lets one set it, but not ask for it."""
    return any(isinstance(value, str) and value == name for value in vars(model.config).values())


def attention_layers(model: Any) -> list[nn.Module]:
    """The attention modules of a model of transformers, by what all of them have."""
    names = ("head_dim", "head_size")  # the second is GPT-NeoX's
    return [m for m in model.modules() if hasattr(m, "layer_idx") and any(hasattr(m, name) for name in names)]


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
    if not computes_by(model, NAME):
        raise ValueError(
            f"transformers does not hand the attention of {type(model).__name__} over; try farfield.nn.replace"
        )
    for layer in layers:
        layer.farfield_bias = DistanceBias(bias, heads, window, sink).to(next(layer.parameters()).device)
    return model


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, causal_mask)
