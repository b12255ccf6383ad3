"""BLOOM, MPT and Falcon with another encoding: their own projections, and attention with the bias of a formula.

Their attention does not go through transformers' interface: it adds ALiBi itself. These classes take its place.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import dropout
from transformers.models.bloom.modeling_bloom import BloomAttention
from transformers.models.falcon.modeling_falcon import FalconAttention
from transformers.models.mpt.modeling_mpt import MptAttention

from farfield.nn.decoder.interface import attend
from farfield.nn.decoder.model_inputs import token_mask


class ByDistance:
    """Attention with the bias that `replace` gave the layer; `attend` may be another, to look at what it is given."""

    attend: Any = staticmethod(attend)

    def attended(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """The output of all heads, (batch, n, width)."""
        padding = token_mask(mask, q.shape[2], k.shape[2])
        return self.attend(self, q, k, v, padding, scaling=scale)[0].flatten(2)


class ReplacedBloomAttention(ByDistance, BloomAttention):
    """BLOOM's attention without ALiBi, with a bias by distance."""

    def forward(
        self, hidden_states: Tensor, residual: Tensor, alibi: Any, attention_mask: Tensor | None,
        layer_past: Any = None, *_: Any, **__: Any,
    ) -> tuple[Tensor, None]:  # fmt: skip
        mixed = self.query_key_value(hidden_states).unflatten(2, (self.num_heads, 3, self.head_dim))
        q, k, v = (x.transpose(1, 2) for x in mixed.unbind(3))
        if layer_past is not None:
            k, v = layer_past.update(k, v, self.layer_idx)
        y = self.dense(self.attended(q, k, v, attention_mask, self.inv_norm_factor))
        return residual + dropout(y, self.hidden_dropout, self.training), None


class ReplacedMptAttention(ByDistance, MptAttention):
    """MPT's attention without ALiBi, with a bias by distance."""

    def forward(
        self, hidden_states: Tensor, position_bias: Any, past_key_values: Any = None,
        attention_mask: Tensor | None = None, **_: Any,
    ) -> tuple[Tensor, None]:  # fmt: skip
        mixed = self.Wqkv(hidden_states)
        if self.clip_qkv:
            mixed = mixed.clamp(min=-self.clip_qkv, max=self.clip_qkv)
        q, k, v = (x.unflatten(2, (self.n_heads, self.head_dim)).transpose(1, 2) for x in mixed.chunk(3, dim=2))
        if past_key_values is not None:
            k, v = past_key_values.update(k, v, self.layer_idx)
        seen = None if attention_mask is None else ~attention_mask.bool()  # MPT marks what is hidden
        return self.out_proj(self.attended(q, k, v, seen, self.softmax_scale)), None


class ReplacedFalconAttention(ByDistance, FalconAttention):
    """Falcon's attention without rotation or ALiBi, with a bias by distance."""

    def forward(
        self, hidden_states: Tensor, alibi: Any, attention_mask: Tensor | None, position_ids: Any = None,
        layer_past: Any = None, *_: Any, **__: Any,
    ) -> tuple[Tensor, None]:  # fmt: skip
        q, k, v = (x.transpose(1, 2) for x in self.parts(self.query_key_value(hidden_states)))
        if layer_past is not None:
            k, v = layer_past.update(k, v, self.layer_idx)
        return self.dense(self.attended(q, k, v, attention_mask, self.inv_norm_factor)), None

    def parts(self, mixed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, n, heads, width of a head), in each of Falcon's three layouts."""
        if self.new_decoder_architecture:  # groups of queries, each with its key and value
            mixed = mixed.unflatten(2, (self.num_kv_heads, -1, self.head_dim))
            return mixed[:, :, :, :-2].flatten(2, 3), mixed[:, :, :, -2], mixed[:, :, :, -1]
        if self.multi_query:  # all queries, then the one key and value
            mixed = mixed.unflatten(2, (-1, self.head_dim))
            return mixed[:, :, :-2], mixed[:, :, -2:-1], mixed[:, :, -1:]
        q, k, v = mixed.unflatten(2, (self.num_heads, 3, self.head_dim)).unbind(3)
        return q, k, v


OWN: dict[type, type] = {
    BloomAttention: ReplacedBloomAttention,
    MptAttention: ReplacedMptAttention,
    FalconAttention: ReplacedFalconAttention,
}
