"""Cutting each head's attention at its theoretical receptive field, and a certificate of what that can lose.

The certificate of a row (theory: Theorem A, run-time form) uses only what a computation within the window knows: L, the
log-sum-exp of the row's logits within the window; U, which no logit beyond it exceeds (Cauchy-Schwarz); and log T, the
logarithm of the sum of exp(bias) beyond. The share of attention that the window cuts off is at most
sigmoid(U + log T - L).

Shapes: B samples, H heads, N tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from farfield.measure.models import Model, Seen

SLACK = 1e-3  # on top of the exponent, for the rounding of the kernel's float32


def receptive_fields(model: Model, epsilon: str | float | Fraction) -> list[list[int | None]]:
    """TRF(epsilon) of every layer and head, certified; None where the series diverges or is undecided."""
    from farfield.theory.errors import DivergenceError, UndecidedError
    from farfield.theory.fields.receptive import exact_epsilon, trf

    exact_epsilon(epsilon)
    known: dict[Any, int | None] = {}
    table: list[list[int | None]] = []
    for layer in range(model.layers):
        row: list[int | None] = []
        for head in range(model.heads):
            found = model.formula_of(layer, head)
            if found is None:
                row.append(None)
                continue
            formula, given = found
            values: dict[str, Any] = dict(given)
            key = (formula.text(), tuple(sorted(values.items())))
            if key not in known:
                try:
                    known[key] = trf(formula, epsilon, **values)
                except (DivergenceError, UndecidedError):
                    known[key] = None
            row.append(known[key])
        table.append(row)
    return table


def trf_windows(model: Model, epsilon: str | float | Fraction) -> list[int]:
    """The window of each head: its TRF(epsilon), the largest over the layers where they differ."""
    if model.formula_of(0, 0) is None:
        raise ValueError(f"There is no receptive field to cut at: {model.no_formula()}. Give a window in tokens.")
    table = receptive_fields(model, epsilon)
    windows: list[int] = []
    for head in range(model.heads):
        column = [row[head] for row in table]
        if any(tokens is None for tokens in column):
            raise ValueError(
                f"Head {head + 1} of {model.name} has no receptive field: the sum of its weights diverges, "
                "or could not be decided. Give a window in tokens."
            )
        windows.append(max(tokens for tokens in column if tokens is not None))
    return windows


@dataclass
class LostMass:
    """The largest and the mean share of attention that a window cuts off: what is certified, and what was lost."""

    certified: float = 0.0  # largest over all rows
    measured: float = 0.0
    _sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    rows: int = 0

    @property
    def mean_certified(self) -> float:
        return self._sums[0] / self.rows if self.rows else 0.0

    @property
    def mean_measured(self) -> float:
        return self._sums[1] / self.rows if self.rows else 0.0

    def visit(self, layer: int, seen: Seen) -> None:
        """Add the rows of one layer; `seen.window` is the window that is in force."""
        heads, n = seen.q.shape[1], seen.k.shape[2]
        given = seen.window
        windows = [n] * heads if given is None else [given] * heads if isinstance(given, int) else list(given)
        for window in sorted({min(w, n) for w in windows}):
            some = [h for h, w in enumerate(windows) if min(w, n) == window]
            self.rows += len(some) * n * seen.q.shape[0]
            if window < n:
                certified, measured = lost_mass(_heads(seen, some), window)
                self.certified = max(self.certified, float(certified.max()))
                self.measured = max(self.measured, float(measured.max()))
                self._sums[0] += float(certified.sum())
                self._sums[1] += float(measured.sum())


def _heads(seen: Seen, some: list[int]) -> Seen:
    k, v = seen.spread(seen.k), seen.spread(seen.v)
    bias = None if seen.bias is None else seen.bias[some]
    return Seen(seen.q[:, some], k[:, some], v[:, some], bias, seen.scale, None)


def lost_mass(seen: Seen, window: int) -> tuple[Tensor, Tensor]:
    """For the rows that have keys beyond the window, (B, H, N - window): the certified and the true share there."""
    near, far = split_lse(seen, window)
    certified = torch.sigmoid(far_bound(seen, window) - near + SLACK + 1e-5 * near.abs())
    return certified, torch.sigmoid(far - near)


def split_lse(seen: Seen, window: int) -> tuple[Tensor, Tensor]:
    """The log-sum-exp of each row's logits within the window and beyond it, in float64, rows from `window` on."""
    from farfield.nn.attention.api import attention

    n = seen.k.shape[2]
    _, near = attention(seen.q, seen.k, seen.v, seen.bias, window=window, scale=seen.scale, return_lse=True)
    # The keys beyond the window of query i are those up to i - window: the first query that has any stands at its own.
    k, v = seen.k[:, :, : n - window], seen.v[:, :, : n - window]
    bias = None if seen.bias is None else seen.bias[:, window:n]
    _, far = attention(seen.q[:, :, window:], k, v, bias, scale=seen.scale, skip=False, return_lse=True)
    return near[:, :, window:].double(), far.double()


def far_bound(seen: Seen, window: int) -> Tensor:
    """U + log T of each row from `window` on: no log-sum-exp beyond the window can be larger."""
    n = seen.k.shape[2]
    q = _norms(seen.q)[:, :, window:]
    k = _norms(seen.spread(seen.k))[:, :, : n - window].cummax(-1).values
    log_tail = seen.bias_or_zero()[:, window:n].logcumsumexp(-1)
    return abs(seen.scale) * q * k + log_tail


def _norms(x: Tensor) -> Tensor:
    """Euclidean norms in float64, rounded up."""
    return torch.linalg.vector_norm(x.double(), dim=-1) * (1 + 1e-12)


def share_bound(head: Tensor | float, tail: Tensor | float, spread: Tensor | float) -> Tensor:
    """Theorem A (i): with logits that spread by at most R, the lost share is at most T / (T + exp(-R) H).

    head, tail: the sums H and T of exp(bias) within and beyond the window; spread: R = max beyond - min within.
    """
    h, t = torch.as_tensor(head, dtype=torch.float64), torch.as_tensor(tail, dtype=torch.float64)
    return torch.sigmoid(t.log() - h.log() + spread)


def shortest_text(windows: list[int]) -> str:
    """Windows for a person: one number, or the range."""
    shown = [f"{w:,}" if w < 10**12 else f"about 1e{int(math.log10(w))}" for w in (min(windows), max(windows))]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"
