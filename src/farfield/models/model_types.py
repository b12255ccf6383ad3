"""The types of models that are known: how each writes its layers into a configuration.

Fields that a configuration leaves out have the defaults of the published class (transformers 5); which ones were taken
is noted. Nothing else is assumed: a type that is not here is reported as unknown, and its code never runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from farfield.models.attention_layers import DescribedModel, Layer, Scaling
from farfield.models.config_fields import Fields
from farfield.zoo import Value, find, slopes

MOST_LAYERS = 4096
MOST_HEADS = 1024
BYTES = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "float64": 8, "float8_e4m3fn": 1}
WIDTH = ("hidden_size", "n_embd", "d_model", "n_embed")
HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
DEPTH = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
LENGTH = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "training_length", "n_ctx")

# What transformers' class takes where a field is missing, for those that published configurations leave out.
DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 4096, "num_key_value_heads": 8},
    "mixtral": {"num_key_value_heads": 8},
    "gemma2": {"sliding_window": 4096, "attn_logit_softcapping": 50.0, "head_dim": 256},
    "gemma": {"head_dim": 256},
    "gemma3_text": {
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131_072,
        "sliding_window": 4096, "sliding_window_pattern": 6,
    },
    "gpt_oss": {"sliding_window": 128, "num_key_value_heads": 8, "head_dim": 64},
    "olmo3": {"sliding_window": 4096},
    "cohere2": {"sliding_window": 4096, "sliding_window_pattern": 4},
    "exaone4": {"sliding_window_pattern": 4},
    "llama4_text": {"attention_chunk_size": 8192, "head_dim": 128, "attn_temperature_tuning": True},
    "smollm3": {"num_key_value_heads": 4},
    "gpt_neo": {"window_size": 256, "attention_types": [[["global", "local"], 12]]},
    "qwen3": {"head_dim": 128},
    "falcon": {"alibi": False, "multi_query": True, "new_decoder_architecture": False},
    "mpt": {"attn_config": {}},
    "t5": {"num_heads": 8, "d_kv": 64},
}  # fmt: skip

# Whose encoding can be replaced: the name that people use.
REPLACEABLE = {
    "gpt2": "GPT-2", "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen", "qwen3": "Qwen", "phi": "Phi",
    "phi3": "Phi", "olmo": "OLMo", "olmo2": "OLMo", "gpt_neox": "GPT-NeoX", "bloom": "BLOOM", "mpt": "MPT",
    "falcon": "Falcon",
}  # fmt: skip

Layers = list[Layer]


def _each(layers: Layers, flags: Sequence[bool] | None = None, **changes: Any) -> Layers:
    """The layers with these changes: all of them, or those with a flag."""
    marks = flags or [True] * len(layers)
    return [replace(layer, **changes) if mark else layer for layer, mark in zip(layers, marks, strict=True)]


def _plain(f: Fields, position: str = "rope") -> Layers:
    """Layers that are all alike, with the names that most configurations use."""
    width = f.optional(*WIDTH)
    heads = f.count(*HEADS, most=MOST_HEADS, of="heads")
    key_heads = f.optional("num_key_value_heads") or heads
    head_width = f.optional("head_dim")
    if head_width is None:
        if width is None or width % heads:
            raise ValueError(f"the width {width} of the model is not a multiple of its {heads} heads")
        head_width = width // heads
    count = f.count(*DEPTH, most=MOST_LAYERS, of="layers")
    return [Layer(i + 1, position, heads, key_heads, head_width) for i in range(count)]


def _learned(f: Fields) -> Layers:
    return _plain(f, "learned")


def _all_windows(f: Fields) -> Layers:
    window = f.optional("sliding_window")
    return _each(_plain(f), window=window)


def _local(f: Fields, layers: Layers, window: int | None, is_local: Callable[[int], bool]) -> Layers:
    """Windows by the list `layer_types`, or by the rule of the type where there is none."""
    kinds = f.words("layer_types", len(layers), ("full_attention", "sliding_attention"))
    local = [k == "sliding_attention" for k in kinds] if kinds else [is_local(i) for i in range(len(layers))]
    if kinds and any(local) and window is None:
        raise ValueError("layer_types has sliding_attention, but sliding_window gives no number of tokens")
    return [replace(layer, window=window if here else None) for layer, here in zip(layers, local, strict=True)]


def _qwen(f: Fields) -> Layers:
    layers, stated = _plain(f), f.optional("sliding_window")
    window = stated if f.flag("use_sliding_window") else None
    first = f.optional("max_window_layers") if "max_window_layers" in f.config else 28
    return _local(f, layers, window, lambda i: window is not None and i >= (first or 0))


def _first_qwen(f: Fields) -> Layers:
    """The first Qwen: with use_logn_attn, logits are multiplied by the logarithm of the row beyond seq_length."""
    return _each(_plain(f), log_temperature=f.flag("use_logn_attn"))


def _pattern(f: Fields, layers: Layers, default: int) -> Callable[[int], bool]:
    """Every n-th layer sees everything; or a word such as LLLG, repeated, whose last layer is global."""
    pattern = f.get("sliding_window_pattern", "_sliding_window_pattern", default=default)
    if isinstance(pattern, str):
        if not pattern or set(pattern) - {"L", "G"}:
            raise ValueError(f"sliding_window_pattern must be made of L and G, not {pattern[:40]!r}")
        return lambda i: i != len(layers) - 1 and pattern[i % len(pattern)] == "L"
    every = f.optional("sliding_window_pattern", "_sliding_window_pattern") or (default if pattern == default else 0)
    return lambda i: bool(every) and (i + 1) % every != 0


def _gemma2(f: Fields) -> Layers:
    layers = _each(_plain(f), soft_cap=f.number("attn_logit_softcapping"))
    return _local(f, layers, f.optional("sliding_window"), lambda i: i % 2 == 0)


def _gemma3(f: Fields) -> Layers:
    layers = _each(_plain(f), soft_cap=f.number("attn_logit_softcapping"))
    return _local(f, layers, f.optional("sliding_window"), _pattern(f, layers, 6))


def _gpt_oss(f: Fields) -> Layers:
    return _local(f, _each(_plain(f), sink=True), f.optional("sliding_window"), lambda i: i % 2 == 0)


def _olmo3(f: Fields) -> Layers:
    return _local(f, _plain(f), f.optional("sliding_window"), lambda i: (i + 1) % 4 != 0)


def _rope_only_where_local(f: Fields) -> Layers:
    """Cohere 2, EXAONE 4: layers that see everything have no position, if there are windows at all."""
    layers, window = _plain(f), f.optional("sliding_window")
    layers = _local(f, layers, window, _pattern(f, layers, 4) if window else lambda _: False)
    return layers if window is None else _each(layers, [layer.window is None for layer in layers], position="none")


def _without_rope(f: Fields, count: int) -> list[bool]:
    """Which layers have no rotation: a list of 0 (none) and 1, or every n-th."""
    turned = f.get("no_rope_layers")
    if turned:
        if not isinstance(turned, list) or len(turned) != count or set(turned) - {0, 1}:
            raise ValueError(f"no_rope_layers must be a list of 0 and 1, one for each of {count} layers")
        return [flag == 0 for flag in turned]
    every = f.optional("no_rope_layer_interval") or 4
    return [(i + 1) % every == 0 for i in range(count)]


def _smollm3(f: Fields) -> Layers:
    layers = _qwen(f)
    return _each(layers, _without_rope(f, len(layers)), position="none")


def _llama4(f: Fields) -> Layers:
    layers, chunk = _plain(f), f.optional("attention_chunk_size")
    bare = _without_rope(f, len(layers))
    layers = _each(layers, bare, position="none", log_temperature=bool(f.get("attn_temperature_tuning")))
    kinds = f.words("layer_types", len(layers), ("full_attention", "chunked_attention"))
    local = [k == "chunked_attention" for k in kinds] if kinds else [not turned for turned in bare]
    return _each(layers, local, window=chunk, chunks=chunk is not None)


def _gpt_neo(f: Fields) -> Layers:
    layers, window = _learned(f), f.optional("window_size")
    groups = f.get("attention_types")
    if any(not isinstance(times, int) or not 0 < times <= MOST_LAYERS for _, times in groups):
        raise ValueError(f"attention_types must repeat each group 1 to {MOST_LAYERS:,} times")
    kinds = [kind for group, times in groups for kind in group * times]
    if len(kinds) != len(layers) or set(kinds) - {"global", "local"}:
        raise ValueError(f"attention_types must give global or local for each of {len(layers)} layers")
    return _each(layers, [kind == "local" for kind in kinds], window=window)


def _gpt_bigcode(f: Fields) -> Layers:
    return _each(_learned(f), key_heads=1) if f.get("multi_query", default=True) else _learned(f)


def _alibi(f: Fields) -> Layers:
    layers = _plain(f, "alibi")
    return _each(layers, slopes=tuple(slopes(layers[0].heads)))


def _mpt(f: Fields) -> Layers:
    attention = f.part("attn_config") or Fields({})
    if attention.get("alibi", default=True) is not True:
        raise ValueError("this MPT has no ALiBi (attn_config.alibi is false); what it has instead is not known")
    layers = _alibi(f)
    most = attention.number("alibi_bias_max") or 8.0
    if most != 8.0:
        raise ValueError(f"this MPT has slopes of its own (alibi_bias_max = {most:g}), which are not known")
    kind = str(attention.get("attn_type", default="multihead_attention"))
    shared = {"multiquery_attention": 1, "grouped_query_attention": attention.optional("kv_n_heads"),
              "multihead_attention": None}  # fmt: skip
    if kind not in shared:
        raise ValueError(f"attn_type has {kind[:40]!r}; known are {', '.join(shared)}")
    return _each(layers, key_heads=shared[kind]) if shared[kind] else layers


def _falcon(f: Fields) -> Layers:
    """Falcon: ALiBi is added before the division by sqrt(d), so that the slopes are divided too."""
    grouped, alibi = f.get("new_decoder_architecture") is True, f.get("alibi") is True
    layers = _plain(Fields({**f.config, "num_key_value_heads": None}), "alibi" if alibi else "rope")
    heads, width = layers[0].heads, layers[0].width
    groups = f.optional("num_kv_heads", "n_head_kv") if grouped else int(f.get("multi_query") is True)
    divided: tuple[Value, ...] = tuple(f"({s})/sqrt({width})" for s in slopes(heads)) if alibi else ()
    return _each(layers, key_heads=groups or heads, slopes=divided)


def _jais(f: Fields) -> Layers:
    return _alibi(f) if f.get("position_embedding_type") == "alibi" else _learned(f)


def _deepseek(f: Fields) -> Layers:
    """Latent attention: the cache keeps one compressed vector for all heads, and one rotated key."""
    heads, rotated = f.count(HEADS[0], most=MOST_HEADS, of="heads"), f.count("qk_rope_head_dim", default=64)
    compressed = f.count("kv_lora_rank") + rotated
    width = rotated + f.count("qk_nope_head_dim", default=128)
    count = f.count(DEPTH[0], most=MOST_LAYERS, of="layers")
    return [Layer(i + 1, "rope", heads, heads, width, compressed=compressed) for i in range(count)]


def _t5(f: Fields) -> Layers:
    heads, width = f.count("num_heads", most=MOST_HEADS, of="heads"), f.count("d_kv")
    field = "num_decoder_layers" if f.optional("num_decoder_layers") else "num_layers"
    return [Layer(i + 1, "t5", heads, heads, width) for i in range(f.count(field, most=MOST_LAYERS, of="layers"))]


def _ours(f: Fields) -> Layers:
    return _with_bias(f, f.get("encoding"), f.get("encoding_parameters"))


def _replaced(f: Fields) -> Layers:
    """A model of another family whose encoding was replaced by ours."""
    how = f.get("farfield")
    how = how if isinstance(how, dict) else {}
    return _with_bias(f, how.get("encoding"), how.get("parameters"))


def _with_bias(f: Fields, encoding: Any, parameters: Any) -> Layers:
    """Layers with the bias of an encoding; parameters that are learned stay open."""
    if not isinstance(encoding, str):
        raise ValueError("this farfield model names no encoding")
    values = parameters if isinstance(parameters, dict) else {}
    if encoding == "alibi" and not values:
        return _alibi(f)
    layers, named = _plain(f, encoding), find(encoding)
    if named.formula is None or encoding in ("none", "t5"):
        return layers
    learned = {name for name, value in values.items() if isinstance(value, dict)}
    fixed = {name: value for name, value in values.items() if name not in learned}
    heads = named.heads(layers[0].heads, fixed, width=layers[0].width)
    rows = tuple(tuple(pair for pair in head.items() if pair[0] not in learned) for head in heads)
    return _each(layers, position=named.formula.text() if values else encoding, rows=rows)


TYPES: dict[str, Callable[[Fields], Layers]] = {
    **dict.fromkeys(
        ("llama", "gemma", "phi", "olmo", "olmo2", "olmoe", "gptj", "gpt_neox", "codegen", "cohere", "stablelm",
         "granite", "nemotron", "glm", "glm4", "internlm2", "persimmon", "helium", "seed_oss"), _plain,
    ),
    **dict.fromkeys(("gpt2", "opt", "openai-gpt", "biogpt", "xglm"), _learned),
    **dict.fromkeys(("mistral", "mixtral", "phi3", "starcoder2", "phimoe"), _all_windows),
    **dict.fromkeys(("qwen2", "qwen2_moe", "qwen3", "qwen3_moe"), _qwen),
    **dict.fromkeys(("cohere2", "exaone4"), _rope_only_where_local),
    **dict.fromkeys(("falcon", "RefinedWeb", "RefinedWebModel"), _falcon),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "kimi_k2"), _deepseek),
    "qwen": _first_qwen, "gemma2": _gemma2, "gemma3_text": _gemma3, "gpt_oss": _gpt_oss, "olmo3": _olmo3,
    "smollm3": _smollm3, "llama4_text": _llama4, "gpt_neo": _gpt_neo, "gpt_bigcode": _gpt_bigcode, "bloom": _alibi,
    "mpt": _mpt, "jais": _jais, "t5": _t5, "farfield": _ours, "farfield-replaced": _replaced,
}  # fmt: skip


def describe(config: Mapping[str, Any]) -> DescribedModel:
    """What the configuration of a known type says; ValueError with one sentence where it is broken."""
    kind = config["model_type"]
    f = Fields(config, DEFAULTS.get(kind))
    layers = TYPES[kind](f)
    for layer in layers:
        if layer.heads % layer.key_heads:
            raise ValueError(f"{layer.heads} heads cannot share {layer.key_heads} keys evenly")
    scaling, stated = scaling_of(f), f.optional(*LENGTH)
    if scaling is not None and scaling.kind == "dynamic":  # it begins where the stated length ends
        scaling = replace(scaling, original=scaling.original or stated)
        stated = scaling.original and round(scaling.original * (scaling.factor or 1))
    trained = stated if scaling is None else scaling.original  # which of the two it is may not be written there
    size = BYTES.get(str(f.get("torch_dtype", "dtype", default="")).removeprefix("torch."))
    return DescribedModel(kind, tuple(layers), trained, stated, scaling, size, dict(f.assumed), f.unread())


def scaling_of(f: Fields) -> Scaling | None:
    """How rotary positions are stretched, under any of the names that configurations use."""
    rope = f.part("rope_scaling") or f.part("rope_parameters")
    if rope is None:
        turned = f.config.get("model_type") == "qwen" and f.flag("use_dynamic_ntk")
        return Scaling("dynamic", None, f.optional("seq_length")) if turned else None
    inner = rope.get("full_attention")
    rope = Fields(inner) if isinstance(inner, Mapping) else rope
    kind = rope.get("rope_type", "type", default="default")
    if not isinstance(kind, str):
        raise ValueError(f"rope_type must be a word, not {str(kind)[:40]!r}")
    if kind in ("default", "mrope"):
        return None
    name = "original_max_position_embeddings"
    original = rope.optional(name) or f.optional(name, "initial_context_length")
    return Scaling(kind, rope.number("factor"), original)
