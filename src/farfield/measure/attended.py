"""The empirical receptive field by attention: how far back each head of a trained model really looks.

ERF(epsilon) of a query is the smallest j such that its last j tokens, itself among them, hold more than 1 - epsilon of
its attention (the paper's n_emp). The paper shows one curve for the first layer and never says how heads and queries
were averaged; here every layer, head and query past a burn-in counts, and median and quantiles are given. Attention
weights are computed for a few queries at a time, so 9,216 tokens need no n x n matrix.

Beside each head stands its TRF: the certified one, of an endless row, and that of rows as long as those measured
(flat attention over them), which is the like-for-like partner and exists for divergent encodings too.

Shapes: B samples, H heads, N tokens, R queries of a block, E epsilons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.measure.cutting import receptive_fields
from farfield.measure.models import AttentionInputs, Model
from farfield.measure.statistics import quantiles, rank_correlation
from farfield.measure.text import Text
from farfield.nn.learned_heads import LearnedHead
from farfield.theory.fields.receptive import exact_epsilon

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


def by_distance(weights: Tensor) -> Tensor:
    """Weights (H, R, b) of the last R queries and all b keys, by distance t = i - j; 0 beyond the first token."""
    heads, rows, b = weights.shape
    padded = torch.nn.functional.pad(weights.flip(-1), (0, rows))
    # row r stands rows - 1 - r places before the newest key, where its distances begin
    return padded.as_strided((heads, rows, b), (rows * (b + rows), b + rows - 1, 1), rows - 1)


def smallest_window(mass: Tensor, epsilon: float) -> Tensor:
    """The smallest window that holds more than 1 - epsilon of each query's attention, for what the nearest tokens hold.

    Args:
        mass: (H, R, b): running sums of the weights by distance; the last is 1 but for rounding.
        epsilon: The share outside.
    """
    return (mass <= (1 - epsilon) * mass[..., -1:]).sum(-1) + 1


@dataclass
class ByAttention:
    """The receptive fields of all heads of a model, counted, and the mean attention by distance.

    Attributes:
        queries: How many were counted, for each head.
        layers: Those that have attention, counted from 0, in the order of the tables.
        no_attention: Those that have none (recurrent ones, convolutions).
        counts: (E, layers, H, N + 1): how many queries have the field j.
        mass: (layers, H, N): mean attention by distance.
        trf: (E, layers, H), certified; None: the series diverges, or there is none.
        row_trf: (E, layers, H): the median over the same rows with flat attention; None without a bias.
        learned: What each head learned of the parameters of its formula, with the verdict.
    """

    model: str
    encoding: str
    length: int
    burn_in: int
    queries: int
    layers: list[int]
    no_attention: list[int]
    epsilons: list[str]
    counts: np.ndarray
    mass: np.ndarray
    trf: list[list[list[int | None]]]
    row_trf: np.ndarray | None
    learned: tuple[LearnedHead, ...] = ()

    @property
    def sentence(self) -> str:
        """How far the model looks, in one sentence, for the last epsilon."""
        median = self.median()[-1]
        layer, head = np.unravel_index(int(median.argmax()), median.shape)
        where = f"in its widest head (layer {self.layers[layer] + 1}, head {head + 1}), in rows of up to {self.length}"
        share = f"all but {self.epsilons[-1]} of a query's attention lies within {median.max()} tokens"
        others = ", ".join(str(layer + 1) for layer in self.no_attention)
        others = f" Layers without attention: {others}." if others else ""
        return f"{self.model} ({self.encoding}): {share}, by the median, {where}.{others}"

    def median(self) -> np.ndarray:
        """The median ERF, (E, layers, H)."""
        return quantiles(self.counts, (0.5,))[..., 0]

    def quantiles(self, shares: Sequence[float] = SHARES) -> np.ndarray:
        """Quantiles of the ERF, (E, layers, H, shares)."""
        return quantiles(self.counts, shares)

    def pairs(self, number: int = 0) -> list[tuple[float, float, float]]:
        """(TRF, TRF of rows, median ERF) of every layer and head at one epsilon, infinity for a divergent series."""
        if self.row_trf is None:
            return []
        median = self.median()[number]
        table = []
        for layer, row in enumerate(self.trf[number]):
            for head, tokens in enumerate(row):
                endless = float("inf") if tokens is None else float(min(tokens, 10**300))
                table.append((endless, float(self.row_trf[number, layer, head]), float(median[layer, head])))
        return table

    def json(self) -> dict[str, Any]:
        values = self.quantiles()
        heads = [
            {
                "layer": self.layers[layer] + 1,
                "head": head + 1,
                "epsilon": epsilon,
                "erf": dict(zip(map(str, SHARES), values[e, layer, head].tolist(), strict=True)),
                "median": int(values[e, layer, head, SHARES.index(0.5)]),
                "trf": self.trf[e][layer][head],
                "trf_of_rows": None if self.row_trf is None else int(self.row_trf[e, layer, head]),
            }
            for e, epsilon in enumerate(self.epsilons)
            for layer in range(values.shape[1])
            for head in range(values.shape[2])
        ]
        return {
            "model": self.model,
            "encoding": self.encoding,
            "length": self.length,
            "burn_in": self.burn_in,
            "queries": self.queries,
            "layers_without_attention": [layer + 1 for layer in self.no_attention],
            "heads": heads,
            "learned": [head.json() for head in self.learned],
            "rank_correlation": {epsilon: agreement([self], e) for e, epsilon in enumerate(self.epsilons)},
        }


def agreement(measured: Sequence[ByAttention], number: int = 0) -> dict[str, float | None]:
    """How well TRF orders heads (of one model, or of several encodings) as ERF does: Spearman's rank correlation.

    The paper's claim about TRF and ERF, as a number. `trf` takes the certified field of an endless row, infinite for
    divergent series; `trf_of_rows` that of rows as long as the measured ones.
    """
    pairs = [pair for model in measured for pair in model.pairs(number)]
    erf = [pair[2] for pair in pairs]
    return {
        "trf": rank_correlation([pair[0] for pair in pairs], erf),
        "trf_of_rows": rank_correlation([pair[1] for pair in pairs], erf),
    }


def by_attention(
    model: Model,
    text: Text,
    length: int,
    *,
    epsilons: Sequence[str | float | Fraction] = ("0.1", "0.01"),
    burn_in: int | None = None,
    chunks: int = 4,
    watch: Callable[[], None] | None = None,
) -> ByAttention:
    """Measure the receptive field of every layer, head and query past the burn-in, on chunks spread over a text.

    Args:
        model: What `load_model` or `as_model` gives.
        text: What `load_text` gives.
        length: Tokens of a chunk.
        epsilons: The shares of attention outside the field.
        burn_in: Queries that are not counted, at the start of each chunk; half the length unless given.
        chunks: How many chunks to read.
        watch: Called after each layer of each chunk.

    Returns:
        The fields of all heads, empirical and theoretical.
    """
    exact = [float(exact_epsilon(e)) for e in epsilons]
    burn_in = length // 2 if burn_in is None else burn_in
    if not 0 <= burn_in < length:
        raise ValueError(f"The burn-in is {burn_in}; it must be at least 0 and below the length, {length}.")
    texts = text.chunks(length, chunks)
    counts = np.zeros((len(exact), model.layers, model.heads, length + 1), dtype=np.int64)
    mass = np.zeros((model.layers, model.heads, length))
    row_fields = np.zeros((len(exact), model.layers, model.heads), dtype=np.int64)
    visits = np.zeros(model.layers, dtype=np.int64)  # 0 without attention; several a text where layers are used again

    def visit(layer: int, inputs: AttentionInputs) -> None:
        visits[layer] += 1
        for _, _, logits in inputs.logits(0, burn_in, inputs.window):
            taken = inputs.sink_share(logits.logsumexp(-1))[..., None]
            held = by_distance(logits.softmax(-1) * (1 - taken))
            mass[layer, :, : held.shape[2]] += held.sum(1).cpu().numpy()
            running = held.cumsum(-1) + taken  # what a sink holds lies at no distance: no window loses it
            for e, epsilon in enumerate(exact):
                fields = smallest_window(running, epsilon).cpu().numpy()
                for head in range(model.heads):
                    counts[e, layer, head] += np.bincount(fields[head], minlength=length + 1)
        for e, epsilon in enumerate(exact):
            row_fields[e, layer] = fields_of_rows(inputs.bias_or_zero(), epsilon, burn_in, length)
        if watch is not None:
            watch()

    model.show([ids[:-1] for ids in texts], visit)
    layers = np.flatnonzero(visits).tolist()
    queries = visits[layers] * (length - burn_in)
    return ByAttention(
        model.name,
        model.encoding,
        length,
        burn_in,
        int(queries.max()),
        layers,
        np.flatnonzero(visits == 0).tolist(),
        [str(e) for e in epsilons],
        counts[:, layers],
        mass[layers] / queries[:, None, None],
        [[fields[layer] for layer in layers] for fields in (receptive_fields(model, e) for e in epsilons)],
        row_fields[:, layers] if model.has_bias() else None,
        tuple(model.learned_heads()),
    )


def fields_of_rows(bias: Tensor, epsilon: float, burn_in: int, length: int) -> np.ndarray:
    """The median over the rows burn_in..length-1 of their receptive field if attention were flat: (H,)."""
    running = (bias[:, :length] - bias[:, :length].amax(-1, keepdim=True)).exp().cumsum(-1)
    fields = torch.searchsorted(running, (1 - epsilon) * running[:, burn_in:], right=True) + 1
    return fields.sort(-1).values[:, (fields.shape[1] - 1) // 2].cpu().numpy()


def largest_logits(model: Model, text: Text, length: int, *, chunks: int = 1) -> list[float]:
    """The largest |q.k|*scale of each layer, over all heads, queries and keys before them, on chunks of a text.

    A window that is certified for logits within a bound rests on it.
    """
    largest = [0.0] * model.layers

    def visit(layer: int, inputs: AttentionInputs) -> None:
        bare = replace(inputs, bias=None, window=None, own=None, chunk=None, key_bias=None)
        for _, _, logits in bare.logits(0, 0, None):
            largest[layer] = max(largest[layer], float(logits[logits.isfinite()].abs().max()))

    model.show([ids[:-1] for ids in text.chunks(length, chunks)], visit)
    return largest
