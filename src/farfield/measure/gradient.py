"""The receptive field of the whole network, by gradient: how much an output depends on each token before it.

The gradient of the log-probability of the next token at position i is taken with respect to the embedding of every
token i - t, through all layers; its norms, divided by their sum, say how much each distance matters. The field at
epsilon is the smallest j whose last j tokens hold more than 1 - epsilon of it. This is the cumulative normalised
gradient of Chi et al. 2023 (Sandwich). It works for every causal model, whatever its attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from farfield.measure.attended import SHARES
from farfield.measure.models import Model
from farfield.measure.text import Text
from farfield.nn.denormals import flush_denormals
from farfield.theory.fields.receptive import exact_epsilon


@dataclass
class ByGradient:
    """The normalised gradients of some outputs by distance, and the receptive fields they give."""

    model: str
    encoding: str
    length: int
    layers: int
    epsilons: list[str]
    shares: np.ndarray  # (outputs, length): of the gradient at distance t; each row sums to 1

    def fields(self) -> np.ndarray:
        """The receptive field of every output, (epsilons, outputs)."""
        running = self.shares.cumsum(1)
        exact = [float(exact_epsilon(e)) for e in self.epsilons]
        return np.stack([(running <= (1 - e) * running[:, -1:]).sum(1) + 1 for e in exact])

    def cumulative(self) -> np.ndarray:
        """The mean cumulative normalised gradient: entry j - 1 is the share of the last j tokens."""
        return self.shares.mean(0).cumsum()

    def json(self) -> dict[str, Any]:
        fields = self.fields()
        return {
            "model": self.model,
            "encoding": self.encoding,
            "length": self.length,
            "outputs": len(self.shares),
            "fields": [
                {
                    "epsilon": epsilon,
                    "erf": {str(s): int(np.quantile(row, s, method="inverted_cdf")) for s in SHARES},
                    "median": int(np.quantile(row, 0.5, method="inverted_cdf")),
                }
                for epsilon, row in zip(self.epsilons, fields, strict=True)
            ],
        }


def by_gradient(
    model: Model,
    text: Text,
    length: int,
    *,
    epsilons: Sequence[str | float | Fraction] = ("0.1", "0.01"),
    outputs: int = 16,
    watch: Callable[[], None] | None = None,
) -> ByGradient:
    """Measure the receptive field of the network at the last position of chunks spread over a text.

    Args:
        model: What `load_model` or `as_model` gives.
        text: What `load_text` gives.
        length: Tokens of a chunk.
        epsilons: The shares of the gradient outside the field.
        outputs: How many positions to take the gradient of.
        watch: Called after each of them.

    Returns:
        The normalised gradients by distance, and the fields they give.
    """
    if outputs < 1:
        raise ValueError(f"{outputs} outputs were asked for; it must be at least 1.")
    texts = text.chunks(length, outputs)
    shares = np.zeros((len(texts), length))
    trained = [p for p in model.network.parameters() if p.requires_grad]
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        with flush_denormals():
            for number, ids in enumerate(texts):
                shares[number] = gradient_shares(model, torch.from_numpy(ids).to(model.device))
                if watch is not None:
                    watch()
    finally:
        for parameter in trained:
            parameter.requires_grad_(True)
    return ByGradient(model.name, model.encoding, length, model.layers, [str(e) for e in epsilons], shares)


def gradient_shares(model: Model, ids: torch.Tensor) -> np.ndarray:
    """For tokens 0..n, the share of each distance t = 0..n-1 in the gradient of the last token's log-probability."""
    with torch.enable_grad():
        x = model.embedded(ids[None, :-1]).detach().requires_grad_(True)
        last = model.states_of_embedded(x)[:, -1]
        loss = torch.nn.functional.cross_entropy(model.logits(last), ids[None, -1])
        (gradient,) = torch.autograd.grad(loss, x)
    norms = torch.linalg.vector_norm(gradient[0].double(), dim=-1).flip(0)
    return (norms / norms.sum()).cpu().numpy()
