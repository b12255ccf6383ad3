"""The configurations of models with another encoding: those of their families, and what was put in.

The field `farfield` holds the family, the encoding, its parameters, and whether all layers share what is learned. The
`model_type` is "farfield-replaced", so that nobody loads such a model without its encoding.
"""

from __future__ import annotations

from typing import Any

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

MODEL_TYPE = "farfield-replaced"
# model_type: the name that people use, and the class of transformers
FAMILIES = {
    "gpt2": ("GPT-2", "GPT2LMHeadModel"),
    "llama": ("Llama", "LlamaForCausalLM"),
    "mistral": ("Mistral", "MistralForCausalLM"),
    "qwen2": ("Qwen", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen", "Qwen3ForCausalLM"),
    "phi": ("Phi", "PhiForCausalLM"),
    "phi3": ("Phi", "Phi3ForCausalLM"),
    "olmo": ("OLMo", "OlmoForCausalLM"),
    "olmo2": ("OLMo", "Olmo2ForCausalLM"),
    "gpt_neox": ("GPT-NeoX", "GPTNeoXForCausalLM"),
    "bloom": ("BLOOM", "BloomForCausalLM"),
    "mpt": ("MPT", "MptForCausalLM"),
    "falcon": ("Falcon", "FalconForCausalLM"),
}
_CONFIGS: dict[str, type] = {}


class ReplacedConfig(PreTrainedConfig):
    """What `AutoConfig` finds first: it gives a configuration of the family that the file names."""

    model_type = MODEL_TYPE

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        how = config_dict.get("farfield")
        kinds = {"family": str, "encoding": str, "parameters": dict, "shared": bool}
        if not isinstance(how, dict) or not all(isinstance(how.get(name), kind) for name, kind in kinds.items()):
            raise ValueError(f"config.json needs a field 'farfield' with {', '.join(kinds)}")
        if how["family"] not in FAMILIES:
            raise ValueError(f"the field 'farfield' names no family that is known: {how['family'][:40]!r}")
        return config_class(how["family"]).from_dict(config_dict, **kwargs)


class _OfFamily:
    """What the configuration of a model with another encoding adds to that of its family."""

    farfield: dict[str, Any]

    @property
    def encoding(self) -> str:
        """The formula or name, as our commands read it."""
        return str(self.farfield["encoding"])


def config_class(family: str) -> Any:
    """The class of configurations for a family; the class of its models becomes known to `AutoModelForCausalLM`."""
    if family not in _CONFIGS:
        from transformers.models.auto.configuration_auto import CONFIG_MAPPING

        base, body = CONFIG_MAPPING[family], {"model_type": MODEL_TYPE, "__module__": __name__}
        _CONFIGS[family] = type(f"Farfield{base.__name__}", (_OfFamily, base), body)
        from farfield.nn.decoder.replaced import model_class

        model_class(family)
    return _CONFIGS[family]


AutoConfig.register(MODEL_TYPE, ReplacedConfig, exist_ok=True)
