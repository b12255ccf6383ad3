"""Where a model's bias comes from: the vector of each layer for the attention, and its certified sums for the proof.

A farfield model has its formula. BLOOM, MPT and some Falcons have ALiBi with their own slopes, taken from the model's
own code as the float32 numbers that it uses. Falcon divides the bias by sqrt(d) together with the scores, and rounds it
to bfloat16 by the position of the key; here it is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from farfield.nn.bias import Bias
from farfield.nn.learned_heads import exact
from farfield.theory.errors import DivergenceError
from farfield.theory.fields.receptive import Weights
from farfield.theory.fields.windows import weights_of

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor


@dataclass
class ModelBiases:
    """The biases of a model's layers: `sets` different ones, the last for all layers beyond."""

    bias: Bias
    layers: int
    heads: int
    sets: int = 1
    _kept: dict[tuple[int, int, int | None], Weights] = field(default_factory=dict)

    def set_of(self, layer: int) -> int:
        return min(layer, self.sets - 1)

    def vector(self, layer: int, n: int) -> Float[Tensor, "H n"]:
        """The bias at the distances 0, ..., n - 1."""
        return self.bias(n, layer=self.set_of(layer)).detach()

    def weights(self, layer: int, head: int, context: int | None) -> Weights:
        """The weights exp(r(t)) of a head with their certified sums, with its parameters exactly as they stand."""
        key = (self.set_of(layer), head, context)
        if key not in self._kept:
            values = {name: exact(value) for name, value in self.bias.values_of(head, key[0]).items()}
            try:
                self._kept[key] = weights_of(self.bias.formula, context, parameters=values)
            except DivergenceError as error:
                raise ValueError(
                    f"no window is enough at every length for head {head + 1} of layer {layer + 1}, because {error}; "
                    "give a context, the length of the longest text"
                ) from None
        return self._kept[key]


def biases_of(model: Any) -> ModelBiases:
    """The biases of a farfield, BLOOM, MPT or Falcon (ALiBi) model; one sentence for any other."""
    config = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if config is not None and kind in ("farfield", "farfield-replaced"):
        ours = kind == "farfield"
        bias = model.position.bias if ours else model.farfield_bias
        if not isinstance(bias, Bias):
            raise ValueError(
                f"a bounded cache needs a bias by distance that a formula gives; {config.encoding!r} is none"
            )
        shared = config.shared_bias if ours else config.farfield["shared"]
        layers = config.num_hidden_layers
        return ModelBiases(bias, layers, config.num_attention_heads, 1 if shared else layers)
    if config is not None and kind in ("bloom", "mpt"):
        heads = config.n_head if kind == "bloom" else config.n_heads
        layers = config.n_layer if kind == "bloom" else config.n_layers
        slopes = _bloom_slopes(model, heads) if kind == "bloom" else _mpt_slopes(model, heads)
        return ModelBiases(Bias("alibi", heads, parameters={"k": slopes}), layers, heads)
    if config is not None and kind == "falcon" and config.alibi:
        heads = config.num_attention_heads
        slopes = _falcon_slopes(heads, config.hidden_size // heads)
        return ModelBiases(Bias("alibi", heads, parameters={"k": slopes}), config.num_hidden_layers, heads)
    raise ValueError(
        "a bounded cache knows farfield, BLOOM, MPT and Falcon (ALiBi) models, whose attention is biased by distance, "
        f"and models with windows, not {kind!r}"
    )


def _bloom_slopes(model: Any, heads: int) -> list[float]:
    """BLOOM's own slopes: the bias of the second token of a text, slope times 1."""
    import torch

    decoder = getattr(model, "transformer", model)
    return decoder.build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)[:, 0, 1].tolist()


def _mpt_slopes(model: Any, heads: int) -> list[float]:
    """MPT's own slopes: minus the bias at distance 1."""
    decoder = getattr(model, "transformer", model)
    return (-decoder.build_mpt_alibi_tensor(heads, 2)[:, 0, 0]).tolist()


def _falcon_slopes(heads: int, width: int) -> list[float]:
    """Falcon's own slopes: the bias of the second token of a text, divided by sqrt(d) as its scores are."""
    import torch
    from transformers.models.falcon.modeling_falcon import build_alibi_tensor

    own = build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), heads, torch.float32)[:, 0, 1]
    return (own / width**0.5).tolist()
