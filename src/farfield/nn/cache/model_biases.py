"""What a bounded cache must know of a model's biases: the vector of each layer, and its certified sums."""

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
    _weights: dict[tuple[int, int, int | None], Weights] = field(default_factory=dict)

    @classmethod
    def of(cls, bias: Any, config: Any, shared: bool) -> ModelBiases:
        """The biases of a model with this configuration, whose layers share one or have one each."""
        if not isinstance(bias, Bias):
            raise ValueError(
                f"a bounded cache needs a bias by distance that a formula gives; {config.encoding!r} is none"
            )
        layers = config.num_hidden_layers
        return cls(bias, layers, config.num_attention_heads, 1 if shared else layers)

    def set_of(self, layer: int) -> int:
        return min(layer, self.sets - 1)

    def vector(self, layer: int, n: int) -> Float[Tensor, "H n"]:
        """The bias at the distances 0, ..., n - 1."""
        return self.bias(n, layer=self.set_of(layer)).detach()

    def weights(self, layer: int, head: int, context: int | None) -> Weights:
        """The weights exp(r(t)) of a head with their certified sums, with its parameters exactly as they stand."""
        key = (self.set_of(layer), head, context)
        if key not in self._weights:
            values = {name: exact(value) for name, value in self.bias.values_of(head, key[0]).items()}
            try:
                self._weights[key] = weights_of(self.bias.formula, context, parameters=values)
            except DivergenceError as error:
                raise ValueError(
                    f"no window is enough at every length for head {head + 1} of layer {layer + 1}, because {error}; "
                    "give a context, the length of the longest text"
                ) from None
        return self._weights[key]


def biases_of(model: Any) -> ModelBiases:
    """The biases of a farfield model, or of one that `farfield.bound` has prepared; one sentence for any other."""
    if (prepared := getattr(model, "farfield_biases", None)) is not None:
        return prepared()
    config: Any = getattr(model, "config", None)
    if (kind := getattr(config, "model_type", None)) != "farfield":
        raise ValueError(
            f"a bounded cache computes the attention itself, which a model of the type {kind!r} must be prepared for: "
            "call farfield.bound(model, epsilon) first"
        )
    return ModelBiases.of(model.position.bias, config, config.shared_bias)
