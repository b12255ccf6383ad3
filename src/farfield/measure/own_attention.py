"""BLOOM, MPT and Falcon: architectures whose attention is code of their own, computed by ours from the same weights.

All three may have ALiBi. Falcon divides the bias by sqrt(d) together with the scores, and rounds it to bfloat16 by the
position of the key, which is followed here to the bit. MPT's table of biases ends at `max_seq_len`; ALiBi does not, so
beyond that length this is what the model means.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from farfield.measure.inputs import AttentionInputs, Window
from farfield.measure.models import Visit
from farfield.nn.bias import Bias
from farfield.nn.cache.bounded import falcon_heads, split_heads
from farfield.nn.cache.sources import biases_of


def attended(layer: int, inputs: AttentionInputs, visit: Visit | None) -> Tensor:
    """The output of a layer within the window in force, shown to whoever watches."""
    if visit is not None:
        visit(layer, inputs)
    return inputs.attend(inputs.window, skip=True)[0]


def own_bias(network: Any) -> Bias | None:
    """The bias of a BLOOM, MPT or Falcon model; None where it has none."""
    config = network.config
    known = config.model_type in ("bloom", "mpt") or (config.model_type == "falcon" and config.alibi)
    if not known:
        return None
    if not hasattr(network, "farfield_own_bias"):
        network.farfield_own_bias = [biases_of(network).bias]  # in a list: no part of the network
    return network.farfield_own_bias[0]


def _line(slopes: Tensor, n: int) -> Tensor:
    return -slopes[:, None] * torch.arange(n, device=slopes.device)


def _slopes(heads: int, device: torch.device) -> Tensor:
    from farfield import zoo

    return torch.tensor([zoo.number(s) for s in zoo.slopes(heads)], device=device)


def bloom_forward(
    module: Any, window: Window, visit: Visit | None, hidden_states: Tensor, residual: Tensor, *_: Any, **given: Any
) -> tuple[Tensor, None]:
    """BLOOM's attention."""
    q, k, v = split_heads(module.query_key_value(hidden_states), module.num_heads, module.head_dim)
    bias = _line(_slopes(module.num_heads, q.device), k.shape[2])
    y = attended(module.layer_idx, AttentionInputs(q, k, v, bias, module.inv_norm_factor, window), visit)
    return module.dense(y.transpose(1, 2).flatten(2)) + residual, None


def mpt_forward(
    module: Any,
    window: Window,
    visit: Visit | None,
    hidden_states: Tensor,
    position_bias: Tensor,
    *_: Any,
    **given: Any,
) -> tuple[Tensor, None]:
    """MPT's attention."""
    mixed = module.Wqkv(hidden_states)
    if module.clip_qkv:
        mixed = mixed.clamp(min=-module.clip_qkv, max=module.clip_qkv)
    q, k, v = (x.unflatten(2, (module.n_heads, module.head_dim)).transpose(1, 2) for x in mixed.chunk(3, dim=2))
    # minus the slope stands one place before the last in the model's own table
    slopes = -position_bias[:, 0, -2].to(q.device).float()
    bias = _line(slopes, k.shape[2])
    y = attended(module.layer_idx, AttentionInputs(q, k, v, bias, module.softmax_scale, window), visit)
    return module.out_proj(y.transpose(1, 2).flatten(2)), None


def falcon_forward(
    module: Any,
    window: Window,
    visit: Visit | None,
    hidden_states: Tensor,
    alibi: Tensor | None,
    attention_mask: Any,
    *_: Any,
    position_embeddings: Any = None,
    **given: Any,
) -> tuple[Tensor, None]:
    """Falcon's attention, rotary or with ALiBi."""
    from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

    q, k, v = falcon_heads(module, module.query_key_value(hidden_states))
    bias = rounding = None
    if alibi is None:
        q, k = apply_rotary_pos_emb(q, k, *position_embeddings)
    else:
        own = alibi.reshape(module.num_heads, -1).float()  # of each key: slope times its position, rounded to bfloat16
        slopes = own[:, 1] if own.shape[1] > 1 else own[:, 0]
        exact = slopes[:, None] * torch.arange(own.shape[1], device=own.device)
        bias = _line(slopes * module.inv_norm_factor, k.shape[2])
        if not torch.equal(own, exact):
            rounding = (own - exact) * module.inv_norm_factor
    inputs = AttentionInputs(q, k, v, bias, module.inv_norm_factor, window, key_bias=rounding)
    y = attended(module.layer_idx, inputs, visit)
    return module.dense(y.transpose(1, 2).flatten(2)), None


OWN: dict[str, Callable[..., tuple[Tensor, None]]] = {
    "BloomAttention": bloom_forward,
    "BoundedBloomAttention": bloom_forward,
    "MptAttention": mpt_forward,
    "BoundedMptAttention": mpt_forward,
    "FalconAttention": falcon_forward,
    "BoundedFalconAttention": falcon_forward,
}
