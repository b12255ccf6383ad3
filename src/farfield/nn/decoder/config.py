"""The configuration of a decoder, as transformers keeps it in `config.json`."""

from __future__ import annotations

from typing import Any

from huggingface_hub.dataclasses import strict
from transformers.configuration_utils import PreTrainedConfig

from farfield import zoo

LARGEST = 1 << 20  # of any size in a configuration: config.json is untrusted input


@strict
class FarfieldConfig(PreTrainedConfig):
    """The paper's decoder with any encoding.

    encoding (`str`): a name from the zoo (`farfield zoo`), or a formula such as `-k*t` or `-2*log(t + 1)`.
    encoding_parameters (`dict`): values for parameters of the formula; those of the zoo need none.
    shared_bias (`bool`): one set of learned parameters for all layers (as KERPLE does), or one for each layer.
    max_position_embeddings (`int`): the length of the training samples; the model itself has no limit.
    training (`dict`): the settings of the run that made the model.
    """

    model_type = "farfield"
    keys_to_ignore_at_inference = ("past_key_values",)

    vocab_size: int = 50_265
    hidden_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 8
    intermediate_size: int = 2048
    max_position_embeddings: int = 512
    dropout: float | int = 0.1
    layer_norm_eps: float = 1e-5
    encoding: str = "alibi"
    encoding_parameters: dict[str, Any] | None = None
    shared_bias: bool = True
    use_cache: bool = True
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    pad_token_id: int | None = None
    tie_word_embeddings: bool = True
    training: dict[str, Any] | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
                raise ValueError(f"{name} is {value!r} in the model's configuration; it must be from 1 to {LARGEST}.")
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} cannot be shared by {self.num_attention_heads} heads: "
                "it must be a multiple of num_attention_heads."
            )
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r} in the model's configuration; it must be from 0 to below 1.")
        if not self.tie_word_embeddings:
            raise ValueError("tie_word_embeddings is false, but this decoder has one embedding for input and output.")
        zoo.find(self.encoding)  # refuses what is neither a name nor a formula
        super().__post_init__(**kwargs)
