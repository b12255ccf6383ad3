"""The configuration of a decoder, as transformers keeps it in `config.json`."""

from __future__ import annotations

import math
import sys
from typing import Any

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from farfield import zoo

LARGEST = 1 << 20  # of any size in a configuration: config.json is untrusted input


class FarfieldConfig(PreTrainedConfig):
    """The paper's decoder with any encoding.

    encoding (`str`): a name from the zoo (`farfield zoo`), or a formula such as `-k*t` or `-2*log(t + 1)`.
    encoding_parameters (`dict`): values for parameters of the formula, or ranges to learn them in; the zoo needs none.
    shared_bias (`bool`): one set of learned parameters for all layers (as KERPLE does), or one for each layer.
    max_position_embeddings (`int`): the length of the training samples; the model itself has no limit.
    training (`dict`): the settings of the run that made the model.
    """

    model_type = "farfield"
    keys_to_ignore_at_inference = ("past_key_values",)

    def __init__(
        self,
        vocab_size: int = 50_265,
        hidden_size: int = 512,
        num_hidden_layers: int = 6,
        num_attention_heads: int = 8,
        intermediate_size: int = 2048,
        max_position_embeddings: int = 512,
        dropout: float = 0.1,
        layer_norm_eps: float = 1e-5,
        encoding: str | zoo.Encoding = "alibi",
        encoding_parameters: dict[str, Any] | None = None,
        shared_bias: bool = True,
        use_cache: bool = True,
        bos_token_id: int | None = None,
        eos_token_id: int | list[int] | None = None,
        pad_token_id: int | None = None,
        tie_word_embeddings: bool = True,
        training: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        sizes = {
            "vocab_size": vocab_size,
            "hidden_size": hidden_size,
            "num_hidden_layers": num_hidden_layers,
            "num_attention_heads": num_attention_heads,
            "intermediate_size": intermediate_size,
            "max_position_embeddings": max_position_embeddings,
        }
        for name, value in sizes.items():
            good = type(value) is int and 1 <= value <= LARGEST
            _require(good, name, value, f"it must be from 1 to {LARGEST}")
        if hidden_size % num_attention_heads:
            raise ValueError(
                f"hidden_size {hidden_size} cannot be shared by {num_attention_heads} heads: "
                "it must be a multiple of num_attention_heads."
            )
        _require(_is_number(dropout) and 0 <= dropout < 1, "dropout", dropout, "it must be from 0 to below 1")
        good = _is_number(layer_norm_eps) and 0 < layer_norm_eps < math.inf
        _require(good, "layer_norm_eps", layer_norm_eps, "it must be a positive, finite number")
        if isinstance(encoding, zoo.Encoding):
            encoding, learns = encoding.written()
            encoding_parameters = {**learns, **(encoding_parameters or {})} or None
        _require(isinstance(encoding, str), "encoding", encoding, "it must be a name or a formula")
        for name, table in (("encoding_parameters", encoding_parameters), ("training", training)):
            _require(table is None or isinstance(table, dict), name, table, "it must be a table, or null")
        for name, flag in (("shared_bias", shared_bias), ("use_cache", use_cache)):
            _require(isinstance(flag, bool), name, flag, "it must be true or false")
        if tie_word_embeddings is not True:
            raise ValueError("tie_word_embeddings is false, but this decoder has one embedding for input and output.")
        zoo.find(encoding)  # refuses what is neither a name nor a formula
        for name, value in sizes.items():
            setattr(self, name, value)
        self.dropout, self.layer_norm_eps, self.use_cache = dropout, layer_norm_eps, use_cache
        self.encoding, self.encoding_parameters, self.shared_bias = encoding, encoding_parameters, shared_bias
        self.training = training
        # older versions of transformers take these as arguments, newer ones as attributes
        tokens = {"bos_token_id": bos_token_id, "eos_token_id": eos_token_id, "pad_token_id": pad_token_id}
        self.bos_token_id, self.eos_token_id, self.pad_token_id = bos_token_id, eos_token_id, pad_token_id
        self.tie_word_embeddings = True
        super().__init__(**tokens, tie_word_embeddings=True, **others)

    def to_dict(self) -> dict[str, Any]:
        """All fields. PEFT asks for them right before it looks up which layers to adapt, so it is told here."""
        if (constants := sys.modules.get("peft.utils.constants")) is not None:
            table = constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
            table.setdefault(self.model_type, ["inward", "outward"])
        return super().to_dict()


def _require(good: bool, name: str, value: Any, rule: str) -> None:
    if not good:
        raise ValueError(f"{name} is {value!r} in the model's configuration; {rule}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


AutoConfig.register(FarfieldConfig.model_type, FarfieldConfig, exist_ok=True)
