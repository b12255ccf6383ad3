"""The hypothesis itself: delta(i, j), the change of an attention output when only the last j tokens are kept.

The paper rests on delta(i, j) = |o_i^i - o_i^j| becoming small, and never shows it. Here it is measured on a model, for
every layer and head, beside

- the exact identity: delta = tau * |mean beyond - mean within|, tau the lost share of attention (the paper's equation
  delta-eq with its sign put right, docs/errata.md E14), computed from the two parts apart;
- the paper's bound 2 * tau * l, where l bounds the norms of all queries, keys and values;
- the sharper ones of Theorem A (ii): tau * (|o_i^j| + V), V the largest value norm beyond the window, and 2 * tau * r,
  r the radius of a ball around all values; and of (i), where tau is not known but bounded by the spread of the logits;
- the run-time certificate, which knows nothing but the window and running maxima.

All in O(n) memory: the part beyond the window is attention of its own, with the bias moved by j.

Shapes: B samples, H heads, N tokens, R rows, J windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from farfield.measure.attended import blocks, by_distance
from farfield.measure.cutting import certified_share, share_bound
from farfield.measure.models import AttentionInputs, Model
from farfield.measure.segments import Text

CURVES = ("delta", "identity", "lost", "paper", "sharper", "radius", "spread", "certificate")


def changes(inputs: AttentionInputs, full: Tensor, window: int, spreads: Tensor | None = None) -> dict[str, Tensor]:
    """delta(i, j) for j = window and every query that has keys beyond it, (B, H, N - j), with identity and bounds.

    Args:
        inputs: What the layer attends with.
        full: The output without a window.
        window: j.
        spreads: R of Theorem A for these rows, if it was computed.
    """
    within, near = (x[:, :, window:].double() for x in inputs.attend(window))
    tail, far = (x.double() for x in inputs.beyond(window).attend())
    tau = torch.sigmoid(far - near)
    values = inputs.spread(inputs.v).double()
    sizes = _norm(values)
    farthest = sizes[:, :, : values.shape[2] - window].cummax(-1).values
    everything = torch.maximum(torch.maximum(_norm(inputs.q.double()), _norm(inputs.spread(inputs.k).double())), sizes)
    centre = values.mean(2, keepdim=True)
    radius = _norm(values - centre).cummax(-1).values[:, :, window:]
    if inputs.sink is not None:  # whose value is 0
        radius = torch.maximum(radius, _norm(centre))
    both = _norm(within) + farthest
    bounds = {
        "delta": _norm(full[:, :, window:].double() - within),
        "identity": tau * _norm(tail - within),
        "lost": tau,
        "paper": 2 * tau * everything.cummax(-1).values[:, :, window:],
        "sharper": tau * both,
        "radius": 2 * tau * radius,
        "certificate": certified_share(inputs, window, near) * both,
    }
    if spreads is not None:
        bias = inputs.bias_or_zero()
        head = bias[:, :window].logsumexp(-1, keepdim=True)
        rest = bias[:, window:].logcumsumexp(-1)
        bounds["spread"] = share_bound(head, rest, spreads) * both
    return bounds


def _norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1)


def logit_spreads(inputs: AttentionInputs, windows: Sequence[int]) -> list[Tensor]:
    """R = max beyond - min within of q.k, for each window and every row that has keys beyond it: (1, H, N - j) each."""
    bare = replace(inputs, bias=None, window=None, own=None, chunk=None)
    n = inputs.k.shape[2]
    spreads = [torch.empty(1, inputs.q.shape[1], n - j, dtype=torch.float64, device=inputs.q.device) for j in windows]
    for a, b, logits in blocks(bare, 0, min(windows)):
        high = by_distance(logits, float("-inf"))
        # from the far end: the largest logit at distance t or more
        largest = high.flip(-1).cummax(-1).values.flip(-1)
        least = high.masked_fill_(high == float("-inf"), float("inf")).cummin(-1).values
        for j, table in zip(windows, spreads, strict=True):
            rows = slice(max(a, j), b)
            if rows.start < b:
                some = slice(rows.start - a, b - a)
                table[0, :, rows.start - j : b - j] = largest[:, some, j] - least[:, some, j - 1]
    return spreads


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
        layers, heads, _ = self.median["delta"].shape
        rows = [
            {
                "layer": layer + 1,
                "head": head + 1,
                "window": j,
                "median": {name: float(table[layer, head, w]) for name, table in self.median.items()},
                "largest": {name: float(table[layer, head, w]) for name, table in self.largest.items()},
            }
            for layer in range(layers)
            for head in range(heads)
            for w, j in enumerate(self.windows)
        ]
        against = [
            {
                "layer": layer + 1,
                "head": head + 1,
                "from": low,
                "to": high,
                **{name: float(table[layer, head, p]) for name, table in self.by_position.items()},
            }
            for layer in range(layers)
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
    spread: bool = True,
    watch: Any = None,
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
        spread: Also the bound by the spread of the logits, whose time grows with the square of the length.
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
        spreads: list[Tensor | None] = list(logit_spreads(inputs, js)) if spread else [None] * len(js)
        for j, r in zip(js, spreads, strict=True):
            for name, table in changes(inputs, full, j, r).items():
                columns.setdefault((name, layer, j), []).append(table[0, :, max(0, burn_in - j) :].cpu())
        at_fixed = changes(inputs, full, fixed)
        for name, total in against.items():
            for p, (low, high) in enumerate(edges):
                total[layer, :, p] += at_fixed[name][0, :, low - fixed : high - fixed].mean(-1).cpu().numpy() / len(
                    texts
                )
        if watch is not None:
            watch()

    with torch.inference_mode():
        with model.watching(visit):
            for ids in texts:
                model.states(torch.from_numpy(ids[:-1])[None].to(model.device))
        network = network_changes(model, texts, js, burn_in)
    names = [name for name in CURVES if (name, 0, js[0]) in columns]
    shape = (model.layers, model.heads, len(js))
    median, largest = ({name: np.zeros(shape) for name in names} for _ in range(2))
    for name in names:
        for layer in range(model.layers):
            for w, j in enumerate(js):
                table = torch.cat(columns[name, layer, j], -1)
                median[name][layer, :, w] = table.median(-1).values.numpy()
                largest[name][layer, :, w] = table.amax(-1).numpy()
    where = [(low, high - 1) for low, high in edges]
    return Truncation(model.name, model.encoding, length, burn_in, js, median, largest, fixed, where, against, network)


@torch.no_grad()
def network_changes(
    model: Model, texts: Sequence[np.ndarray], windows: Sequence[int], burn_in: int
) -> list[dict[str, float]]:
    """What cutting every layer at each window does to the network, over the tokens past the burn-in.

    The change of the logits is that of the normalised ones (log-probabilities), the largest over the words; the change
    of the loss is its mean.
    """
    rows = []
    full = [_past(model, ids, burn_in, None) for ids in texts]
    for j in windows:
        moved, losses = [], []
        for ids, before in zip(texts, full, strict=True):
            after = _past(model, ids, burn_in, j)
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


def _past(model: Model, ids: np.ndarray, burn_in: int, window: int | None) -> Tensor:
    return model.states(torch.from_numpy(ids[:-1])[None].to(model.device), window)[0, burn_in:]
