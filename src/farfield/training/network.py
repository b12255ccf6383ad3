"""The network of a run: this project's decoder, or a model of transformers that `farfield replace` made.

Both are asked the same four things: to be made, for the mean loss of a batch, for their weights, and for the bias.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM


def is_ours(config: Any) -> bool:
    """Whether this is a configuration of the project's own decoder."""
    return isinstance(config, FarfieldConfig)


def read_other_config(folder: Path) -> Any:
    """The configuration of a model that is not the project's decoder, from the folder that holds it."""
    from transformers import AutoConfig

    from farfield.training.pretrained import quiet_transformers

    try:
        with quiet_transformers():
            return AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    except Exception as error:  # whatever transformers makes of a stranger's file
        raise ValueError(f"The configuration in {str(folder)!r} cannot be read: {str(error).splitlines()[0]}") from None


def make_network(config: Any) -> Any:
    """A model of this configuration with first weights."""
    if is_ours(config):
        return FarfieldForCausalLM(config)
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def mean_loss(forward: Any, config: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean loss over the tokens of a batch.

    The dropout of our decoder is drawn for each sample; that of another model is drawn for the batch, by its first
    sample. So both are functions of the seed and the samples, and a run that goes on does what an undisturbed one does.
    """
    if is_ours(config):
        # as a tuple: FSDP looks at all fields of an output, and logits are computed when looked at
        return forward(**batch, use_cache=False, return_dict=False)[0]
    if "sample_seeds" in batch:
        torch.manual_seed(int(batch["sample_seeds"][0]))
    logits = forward(input_ids=batch["input_ids"], use_cache=False, return_dict=False)[0]
    return functional.cross_entropy(logits.float().flatten(0, 1), batch["shift_labels"].flatten())


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    """The weights by name, each once: those that two names share stand under the first."""
    names: dict[int, str] = {}
    weights = model.state_dict(keep_vars=True)
    first = {name: names.setdefault(id(tensor), name) == name for name, tensor in weights.items()}
    return {name: tensor.detach() for name, tensor in weights.items() if first[name]}


def bias_of_network(model: Any) -> tuple[str, Any]:
    """The module that gives the bias of the encoding, with its name; None if there is none."""
    return ("position.bias", model.position.bias) if is_ours(model.config) else ("farfield_bias", model.farfield_bias)
