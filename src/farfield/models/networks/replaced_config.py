"""The configurations of models with another encoding: those of their families, and what was put in.

The field `farfield` holds the family, the encoding, its parameters, and whether all layers share what is learned. The
`model_type` is "farfield-replaced", so that nobody loads such a model without its encoding.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from farfield.models.model_types import REPLACEABLE

MODEL_TYPE = "farfield-replaced"


class ReplacedConfig(PreTrainedConfig):
    """What `AutoConfig` finds first: it gives a configuration of the family that the file names."""

    model_type = MODEL_TYPE

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs: Any) -> Any:
        how = config_dict.get("farfield")
        kinds = {"family": str, "encoding": str, "parameters": dict, "shared": bool}
        if not isinstance(how, dict) or not all(isinstance(how.get(name), kind) for name, kind in kinds.items()):
            raise ValueError(f"config.json needs a field 'farfield' with {', '.join(kinds)}")
        if how["family"] not in REPLACEABLE:
            raise ValueError(f"the field 'farfield' names no family that is known: {how['family'][:40]!r}")
        from farfield.models.networks.replace import model_class

        return model_class(how["family"]).config_class.from_dict(config_dict, **kwargs)


class _OfFamily:
    """What the configuration of a model with another encoding adds to that of its family."""

    farfield: dict[str, Any]

    @property
    def encoding(self) -> str:
        """The formula or name, as our commands read it."""
        return str(self.farfield["encoding"])


@cache
def config_class(family: str) -> Any:
    """The class of configurations for a family."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    base, body = CONFIG_MAPPING[family], {"model_type": MODEL_TYPE, "__module__": __name__}
    return type(f"Farfield{base.__name__}", (_OfFamily, base), body)


AutoConfig.register(MODEL_TYPE, ReplacedConfig, exist_ok=True)
