"""A tiny model with random weights of every causal type that the installed transformers knows.

A type's configuration class says which sizes it has; each whose name stands in `SIZES` gets its small value, in the
configurations inside of it too. Windows and chunks are `WINDOW` tokens, so a text of `LENGTH` runs far past them. A
model has as few layers as hold each kind of layer that the type has by default. Whatever cannot be built says why in
one sentence (`NotTinyError`). No type is listed here but for what its sizes alone do not say (`SPECIAL`).
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

WINDOW = 8  # tokens of every window, chunk and block
LENGTH = 40  # tokens of a text that runs past all of them, in two layers too
WORDS = 96
LARGEST = 8_000_000  # numbers that a model may have
LAYERS = (2, 3, 4, 6, 8)  # tried in this order

_WIDTH, _HEADS, _HEAD = 32, 4, 8
SIZES = {
    name: size
    for size, names in (
        (WORDS, "vocab_size unpadded_vocab_size vocab_size_per_layer_input encoder_hash_byte_group_vocab"),
        (_WIDTH, """hidden_size n_embd d_model word_embed_proj_dim embedding_size emb_dim input_embedding_size
            output_embedding_size backbone_hidden_size pronunciation_embed_dim shape_embed_dim q_lora_rank hc_lowrank
            intermediate_size ffn_dim dff d_inner dim_ff decoder_ffn_dim encoder_ffn_dim ffn_hidden_size
            moe_intermediate_size shared_expert_intermediate_size shared_experts_intermediate_size
            shared_intermediate_size moe_shared_expert_intermediate_size dense_intermediate_size intermediate_size_mlp
            expert_ffn_hidden_size feed_forward_size router_hidden_size block_multiple_of"""),
        (2 * _WIDTH, "mamba_d_ssm"),
        (_HEADS, """num_attention_heads n_head n_heads num_heads decoder_attention_heads encoder_attention_heads
            attention_heads num_encoder_attention_heads num_decoder_attention_heads mamba_n_heads mamba_num_heads
            n_mamba_heads swa_num_attention_heads linear_num_value_heads linear_num_heads index_n_heads index_topk"""),
        (2 * _WIDTH // _HEADS, "mamba_d_head mamba_head_dim"),
        (_WIDTH // _HEADS, """head_dim swa_head_dim global_head_dim rotary_dim kv_channels dim_head attention_head_size
            index_head_dim linear_key_head_dim linear_value_head_dim linear_head_dim qk_nope_head_dim qk_rope_head_dim
            v_head_dim query_pre_attn_scalar o_lora_rank kv_lora_rank adapter_rank laurel_rank gated_norm_rank d_rel
            hidden_size_per_layer_input state_size ssm_state_size mamba_d_state prompt_length num_centroids"""),
        (2, """num_key_value_heads num_kv_heads swa_num_key_value_heads linear_num_key_heads num_experts
            num_local_experts n_routed_experts moe_num_experts num_experts_per_tok moe_topk moe_k index_topk_blocks
            o_groups hc_mult hc_count heads_per_ngram split_ngram_parts centroid_intermediate_top_k"""),
        (1, """num_global_key_value_heads n_group topk_group first_k_dense_replace n_shared_experts n_groups
            num_shared_experts moe_num_shared_experts mamba_n_groups mamba_ngroups num_dense_layers
            max_window_layers"""),
        (0, "num_nextn_predict_layers num_mtp_layers num_kv_shared_layers"),
        (WINDOW, """sliding_window sliding_window_size attention_chunk_size window_size local_attention
            local_attention_window_len attention_window_size keep_window_size rel_extent index_block_size block_size
            chunk_size mamba_chunk_size lsh_attn_chunk_length local_attn_chunk_length"""),
        (256, """max_position_embeddings n_positions max_seq_len n_ctx max_target_positions max_source_positions
            context_length position_bias_max_distance"""),
    )
    for name in names.split()
} | {"is_decoder": True, "use_mamba_kernels": False, "use_sliding_window": True}  # fmt: skip
_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # whether or not they are fields of a configuration
_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers",
           "num_encoder_layers", "num_decoder_layers")  # fmt: skip
_MIXED = ["sliding_attention", "full_attention"]
SPECIAL: dict[str, dict[str, Any]] = {
    "bailing_hybrid": {"layer_group_size": 2},
    "bamba": {"attn_layer_indices": [1]},
    "blt": {"encoder_hash_byte_group_size": [3]},
    "blt_local_decoder": {"hidden_size_global": 2 * _WIDTH},
    "blt_local_encoder": {"hidden_size_global": 2 * _WIDTH},
    "blt_global_transformer": {"hidden_size": 2 * _WIDTH},
    "cohere_compass_text": {"layer_types": _MIXED, "rope_parameters": {
        kind: {"rope_type": "default", "rope_theta": 1e4} for kind in _MIXED}},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8}},
    "deepseek_v4": {"num_key_value_heads": 1, "compress_rates": {
        "compressed_sparse_attention": 4, "heavily_compressed_attention": WINDOW}},
    "dots3_note_text": {"head_dim": 16, "swa_num_attention_heads": _HEADS, "swa_num_key_value_heads": _HEADS,
                        "swa_q_lora_rank": 8, "swa_kv_lora_rank": 8, "swa_head_dim": 16, "swa_qk_nope_head_dim": 8,
                        "swa_v_head_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "num_layers": 2},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "longcat_flash": {"head_dim": _WIDTH // _HEADS},
    "mamba2": {"head_dim": 2 * _WIDTH // _HEADS},
    "qwen4_exp_text": {"ngram_vocab_size_base": WORDS, "indexer_n_heads": 2, "indexer_kv_heads": 1,
                       "indexer_head_dim": 8, "indexer_budget": WINDOW, "indexer_compress_ratio": 4},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local", "lsh"], "hash_seed": 0},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"]},
    "zaya": {"num_experts_per_tok": 1, "layer_types": ["hybrid_sliding", "hybrid"]},
}  # fmt: skip


class NotTinyError(Exception):
    """A type cannot be built, or not small enough; the sentence says why."""


def causal_types() -> list[str]:
    """Every type of `AutoModelForCausalLM`, by the name in its configuration; not those that we register."""
    return [name for name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if not name.startswith("farfield")]


def field_names(kind: type) -> set[str]:
    """What a configuration may be given: annotated fields (newer versions) or arguments (older ones)."""
    names = set(inspect.signature(kind.__init__).parameters)
    for base in kind.__mro__:
        names |= set(getattr(base, "__annotations__", {}) or {})
    return names


def sized(kind: Any, layers: int, usual: Any) -> dict[str, Any]:
    """The small sizes of a class of configurations, with small configurations inside; `usual` is its default."""
    names = field_names(kind)
    given = {name: size for name, size in SIZES.items() if name in names}
    given |= {name: layers for name in _COUNTS if name in names}
    for name in getattr(kind, "sub_configs", {}):
        inner = getattr(usual, name, None)
        if inner is not None:
            given[name] = {"model_type": inner.model_type, **_TOKENS, **sized(type(inner), layers, inner)}
    if "kv_lora_rank" in names:  # latent attention: as many keys as queries, each of two parts
        given["num_key_value_heads"] = _HEADS
        given.pop("head_dim", None)
    return given | SPECIAL.get(kind.model_type, {})


def layer_kinds(config: Any) -> set[str]:
    """The kinds of layers that a configuration names."""
    text = config.get_text_config(decoder=True)
    named = getattr(text, "layer_types", None) or getattr(text, "layers_block_type", None) or []
    return set(map(str, named))


@functools.cache
def tiny_config(kind: str) -> Any:
    """A small configuration of a type, with each kind of layer that the type has by default."""
    family = CONFIG_MAPPING[kind]
    config, usual, error = None, None, None
    with contextlib.suppress(Exception):  # some have no default at all
        usual = family()
    for layers in LAYERS:
        try:
            smaller = family(**_TOKENS, **sized(family, layers, usual))
            with torch.device("meta"):
                sketch = AutoModelForCausalLM.from_config(smaller)
        except Exception as raised:
            error = raised
            continue
        config = smaller
        if usual is None or layer_kinds(usual) <= layer_kinds(config):
            break
    if config is None:
        raise NotTinyError(" ".join(f"{type(error).__name__}: {error}".split()))
    if (size := sum(p.numel() for p in sketch.parameters())) > LARGEST:
        raise NotTinyError(f"it has {size:,} parameters at the smallest")
    return config


def tiny_model(kind: str, attention: str | None = "eager", dtype: torch.dtype = torch.float32) -> Any:
    """A tiny model of a type, its weights drawn from a seed and so large that attention is far from flat."""
    config = copy.deepcopy(tiny_config(kind))
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=dtype).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point() and (p.ndim > 1 or not bool((p == 1).all())):
                p.copy_(0.2 * torch.randn(p.shape, generator=random))
    return model
