"""The hypothesis itself: delta(i, j), the change of an attention output when only the last j tokens are kept.

The paper rests on delta(i, j) = |o_i^i - o_i^j| becoming small, and never shows it. Here it is measured on a model, for
every layer and head, beside

- the exact identity: delta = tau * |mean beyond - mean within|, tau the lost share of attention (the paper's equation
  delta-eq with its sign put right, docs/errata.md E14), computed from the two parts apart;
- the paper's bound 2 * tau * l, where l bounds the norms of all queries, keys and values;
- the sharper one of Theorem A (ii): tau * (|o_i^j| + V), V the largest value norm beyond the window;
- the run-time certificate, which knows nothing but the window and running maxima.

All in O(n) memory: the part beyond the window is attention of its own, with the bias moved by j.

Shapes: B samples, H heads, N tokens, R rows, J windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.measure.cutting import certified_share
from farfield.measure.models import AttentionInputs, Model
from farfield.measure.text import Text

CURVES = ("delta", "identity", "lost", "paper", "sharper", "certificate")


def changes(inputs: AttentionInputs, full: Tensor, window: int) -> dict[str, Tensor]:
    """delta(i, j) for j = window and every query that has keys beyond it, (B, H, N - j), with identity and bounds.

    Args:
        inputs: What the layer attends with.
        full: The output without a window.
        window: j.
    """
    within, near = (x[:, :, window:].double() for x in inputs.attend(window))
    tail, far = (x.double() for x in inputs.beyond(window).attend())
    tau = torch.sigmoid(far - near)
    values = inputs.spread(inputs.v).double()
    sizes = _norm(values)
    farthest = sizes[:, :, : values.shape[2] - window].cummax(-1).values
    everything = torch.maximum(torch.maximum(_norm(inputs.q.double()), _norm(inputs.spread(inputs.k).double())), sizes)
    both = _norm(within) + farthest
    return {
        "delta": _norm(full[:, :, window:].double() - within),
        "identity": tau * _norm(tail - within),
        "lost": tau,
        "paper": 2 * tau * everything.cummax(-1).values[:, :, window:],
        "sharper": tau * both,
        "certificate": certified_share(inputs, window, near) * both,
    }


def _norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1)


@dataclass
class Truncation:
    """delta(i, j) of every layer and head over the queries past the burn-in, and the change of the whole network."""

    model: str
    encoding: str
    length: int
    burn_in: int
    windows: list[int]
    median: dict[str, np.ndarray]  # by curve: (layers, H, J)
    largest: dict[str, np.ndarray]
    fixed: int  # the window of the curve against i
    positions: list[tuple[int, int]]  # of that curve: queries from, to
    by_position: dict[str, np.ndarray]  # delta and lost: (layers, H, positions), means
    network: list[dict[str, float]]  # for each window: change of the logits and of the loss
    layers: list[int]  # those with attention, counted from 0, in the order of the tables

    @property
    def sentence(self) -> str:
        """What a window costs the whole network, in one sentence."""
        w = self.windows.index(self.fixed) if self.fixed in self.windows else len(self.windows) - 1
        change = f"changes the loss by {self.network[w]['loss_change']:+.4f} in rows of up to {self.length}"
        return f"{self.model} ({self.encoding}): keeping the last {self.windows[w]} tokens in every layer {change}."

    def violations(self) -> float:
        """By how much delta exceeds its identity at most (rounding), relative to the largest delta."""
        worst = np.abs(self.largest["delta"] - self.largest["identity"]).max()
        return float(worst / max(self.largest["delta"].max(), 1e-30))

    def json(self) -> dict[str, Any]:
        heads = self.median["delta"].shape[1]
        rows = [
            {
                "layer": layer + 1,
                "head": head + 1,
                "window": j,
                "median": {name: float(table[row, head, w]) for name, table in self.median.items()},
                "largest": {name: float(table[row, head, w]) for name, table in self.largest.items()},
            }
            for row, layer in enumerate(self.layers)
            for head in range(heads)
            for w, j in enumerate(self.windows)
        ]
        against = [
            {
                "layer": layer + 1,
                "head": head + 1,
                "from": low,
                "to": high,
                **{name: float(table[row, head, p]) for name, table in self.by_position.items()},
            }
            for row, layer in enumerate(self.layers)
            for head in range(heads)
            for p, (low, high) in enumerate(self.positions)
        ]
        return {
            "model": self.model,
            "encoding": self.encoding,
            "length": self.length,
            "burn_in": self.burn_in,
            "heads": rows,
            "fixed_window": self.fixed,
            "by_position": against,
            "network": self.network,
        }


def truncation(
    model: Model,
    text: Text,
    length: int,
    *,
    windows: Sequence[int] | None = None,
    fixed: int | None = None,
    burn_in: int | None = None,
    chunks: int = 2,
    watch: Callable[[], None] | None = None,
) -> Truncation:
    """Measure delta(i, j) on chunks spread over a text, for windows j, over the queries i past the burn-in.

    Args:
        model: What `load_model` or `as_model` gives.
        text: What `load_text` gives.
        length: Tokens of a chunk.
        windows: The windows j; powers of two up to the burn-in unless given.
        fixed: The window of the curve against i; the smaller of the training length and a quarter of the length
            unless given.
        burn_in: Queries that are not counted, at the start of each chunk; half the length unless given.
        chunks: How many chunks to read.
        watch: Called after each layer of each chunk.

    Returns:
        delta(i, j) of every layer and head with its bounds, and the change of the whole network.
    """
    burn_in = length // 2 if burn_in is None else burn_in
    js = sorted({2**p for p in range(burn_in.bit_length()) if 2**p <= burn_in} if windows is None else set(windows))
    if not js or js[0] < 1 or js[-1] >= length:
        raise ValueError(f"The windows are {js}; each must be from 1 to below the length, {length}.")
    fixed = fixed or max(1, min(model.training_length or length, length // 4))
    texts = text.chunks(length, chunks)
    if not texts:
        raise ValueError(f"The text has {text.span + 1} tokens; a length of {length} needs at least {length + 1}.")
    columns: dict[tuple[str, int, int], list[Tensor]] = {}
    edges = [(low, min(2 * low, length)) for low in (fixed * 2**p for p in range(64)) if low < length]
    against = {name: np.zeros((model.layers, model.heads, len(edges))) for name in ("delta", "lost")}

    def visit(layer: int, inputs: AttentionInputs) -> None:
        full, _ = inputs.attend()
        for j in js:
            for name, table in changes(inputs, full, j).items():
                columns.setdefault((name, layer, j), []).append(table[0, :, max(0, burn_in - j) :].cpu())
        at_fixed = changes(inputs, full, fixed)
        for name, total in against.items():
            for p, (low, high) in enumerate(edges):
                total[layer, :, p] += at_fixed[name][0, :, low - fixed : high - fixed].mean(-1).cpu().numpy() / len(
                    texts
                )
        if watch is not None:
            watch()

    model.show([ids[:-1] for ids in texts], visit)
    network = network_changes(model, texts, js, burn_in)
    layers = sorted({layer for _, layer, _ in columns})  # those with attention
    shape = (len(layers), model.heads, len(js))
    median, largest = ({name: np.zeros(shape) for name in CURVES} for _ in range(2))
    for name in CURVES:
        for row, layer in enumerate(layers):
            for w, j in enumerate(js):
                table = torch.cat(columns[name, layer, j], -1)
                median[name][row, :, w] = table.median(-1).values.numpy()
                largest[name][row, :, w] = table.amax(-1).numpy()
    where = [(low, high - 1) for low, high in edges]
    against = {name: table[layers] for name, table in against.items()}
    return Truncation(
        model.name, model.encoding, length, burn_in, js, median, largest, fixed, where, against, network, layers
    )


@torch.inference_mode()
def network_changes(
    model: Model, texts: Sequence[np.ndarray], windows: Sequence[int], burn_in: int
) -> list[dict[str, float]]:
    """What cutting every layer at each window does to the network, over the tokens past the burn-in.

    The change of the logits is that of the normalised ones (log-probabilities), the largest over the words; the change
    of the loss is its mean.
    """
    rows = []
    full = [model.read(ids[:-1])[burn_in:] for ids in texts]
    for j in windows:
        moved, losses = [], []
        for ids, before in zip(texts, full, strict=True):
            after = model.read(ids[:-1], j)[burn_in:]
            targets = torch.from_numpy(ids[burn_in + 1 :]).to(model.device)
            size = max(16, (32 << 20) // (4 * model.words))
            for a in range(0, len(targets), size):
                old, new = (model.logits(x[a : a + size]).double().log_softmax(-1) for x in (before, after))
                fall = old - new  # of the log-probabilities: the loss rises by that of the target
                moved.append(fall.abs().amax(-1))
                losses.append(fall.gather(1, targets[a : a + size, None])[:, 0])
        change, rise = torch.cat(moved), torch.cat(losses)
        rows.append(
            {
                "window": j,
                "median_logit_change": float(change.median()),
                "largest_logit_change": float(change.max()),
                "loss_change": float(rise.mean()),
            }
        )
    return rows
