"""Tiny models of the families that people run, made on the spot with random weights."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

WORDS = 61
_MIXED = ["sliding_attention", "full_attention"]
BASE: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
_FALCON = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "eos_token_id": 2,
           "max_position_embeddings": 64}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "llama": ("LlamaConfig", BASE),
    "llama-yarn": ("LlamaConfig", {**BASE, "max_position_embeddings": 256, "rope_parameters": {
        "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}}),
    "mistral": ("MistralConfig", {**BASE, "sliding_window": 16}),
    "qwen3": ("Qwen3Config", BASE),
    "gemma2": ("Gemma2Config", {**BASE, "sliding_window": 16, "query_pre_attn_scalar": 8,
                                "attn_logit_softcapping": 2.0}),
    "gemma3": ("Gemma3TextConfig", {**BASE, "sliding_window": 16, "query_pre_attn_scalar": 8,
                                    "layer_types": _MIXED}),
    "gpt-oss": ("GptOssConfig", {**BASE, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 16,
                                 "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "bloom": ("BloomConfig", {"vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "mpt": ("MptConfig", {"vocab_size": WORDS, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    "falcon-rotary": ("FalconConfig", {**_FALCON, "alibi": False, "multi_query": True}),
    "falcon-new": ("FalconConfig", {**_FALCON, "alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon-alibi": ("FalconConfig", {**_FALCON, "alibi": True, "multi_query": False, "parallel_attn": False,
                                      "bias": True}),
    "phi3": ("Phi3Config", {**BASE, "sliding_window": 16}),
    "olmo2": ("Olmo2Config", BASE),
    "smollm3": ("SmolLM3Config", {**BASE, "no_rope_layers": [1, 0]}),
    "llama4": ("Llama4TextConfig", {**BASE, "num_local_experts": 2, "intermediate_size_mlp": 48,
                                    "attention_chunk_size": 16,
                                    "no_rope_layers": [1, 0], "floor_scale": 8}),
    "cohere2": ("Cohere2Config", {**BASE, "sliding_window": 16, "layer_types": _MIXED}),
    "exaone4": ("Exaone4Config", {**BASE, "sliding_window": 16, "layer_types": _MIXED}),
    "gpt-neox": ("GPTNeoXConfig", {k: v for k, v in BASE.items() if k not in ("num_key_value_heads", "head_dim")}),
    "opt": ("OPTConfig", {"vocab_size": WORDS, "hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2,
                          "num_attention_heads": 4, "max_position_embeddings": 128, "word_embed_proj_dim": 32,
                          "pad_token_id": 0}),
}  # fmt: skip
if not hasattr(transformers.models.opt.modeling_opt, "create_causal_mask"):
    del FAMILIES["opt"]  # before transformers 5.2 it makes a mask of its own, which is refused


def tiny(name: str, attention: str | None = None) -> Any:
    """A tiny model of a family, with weights so large that attention is far from flat."""
    kind, settings = FAMILIES[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**settings)
    if name == "gemma2":  # until 5.21 transformers runs it with sdpa, without its soft cap, and that is refused
        attention = "eager"
    more = {} if attention is None else {"attn_implementation": attention}
    network = AutoModelForCausalLM.from_config(config, **more).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
            elif parameter.ndim == 1 and not bool((parameter == 1).all()):
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return network
