"""Cutting each head's attention at its theoretical receptive field, and a certificate of what that can lose.

The certificate of a row (theory: Theorem A, run-time form) uses only what a computation within the window knows: L, the
log-sum-exp of the row's logits within the window; U, which no logit beyond it exceeds (Cauchy-Schwarz); and log T, the
logarithm of the sum of exp(bias) beyond. The share of attention that the window cuts off is at most
sigmoid(U + log T - L).

Shapes: B samples, H heads, N tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import torch
from torch import Tensor

from farfield.formula import Formula
from farfield.measure.models import AttentionInputs, Model
from farfield.nn.attention.contract import upper_norm

SLACK = 1e-3  # on top of the exponent, for the rounding of the kernel's float32


def receptive_fields(model: Model, epsilon: str | float | Fraction) -> list[list[int | None]]:
    """TRF(epsilon) of every layer and head, certified; None where the series diverges or is undecided."""
    from farfield.theory.budget import answer_in_time
    from farfield.theory.errors import DivergenceError, UndecidedError
    from farfield.theory.fields.receptive import exact_epsilon, trf

    exact_epsilon(epsilon)

    @cache
    def field_of(formula: Formula, values: tuple[tuple[str, float], ...]) -> int | None:
        try:
            with answer_in_time():
                return trf(formula, epsilon, parameters=dict(values))
        except (DivergenceError, UndecidedError):
            return None

    def field_at(layer: int, head: int) -> int | None:
        known = model.formula_of(layer, head)
        return None if known is None else field_of(known[0], tuple(sorted(known[1].items())))

    return [[field_at(layer, head) for head in range(model.heads)] for layer in range(model.layers)]


def trf_windows(model: Model, epsilon: str | float | Fraction) -> list[int]:
    """The window of each head: its TRF(epsilon), the largest over the layers where they differ."""
    if model.formula_of(0, 0) is None:
        raise ValueError(f"There is no receptive field to cut at: {model.no_formula()}. Give a window in tokens.")
    windows: list[int] = []
    for head, column in enumerate(zip(*receptive_fields(model, epsilon), strict=True)):
        if None in column:
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

    def visit(self, layer: int, inputs: AttentionInputs) -> None:
        """Add the rows of one layer; `inputs.window` is the window that is in force."""
        heads, n = inputs.q.shape[1], inputs.k.shape[2]
        given = inputs.window
        windows = [n] * heads if given is None else [given] * heads if isinstance(given, int) else list(given)
        for window in sorted({min(w, n) for w in windows}):
            some = [h for h, w in enumerate(windows) if min(w, n) == window]
            self.rows += len(some) * n * inputs.q.shape[0]
            if window < n:
                certified, measured = lost_mass(inputs.some_heads(some), window)
                self.certified = max(self.certified, float(certified.max()))
                self.measured = max(self.measured, float(measured.max()))
                self._sums[0] += float(certified.sum())
                self._sums[1] += float(measured.sum())


def lost_mass(inputs: AttentionInputs, window: int) -> tuple[Tensor, Tensor]:
    """For the rows that have keys beyond the window, (B, H, N - window): the certified and the true share there."""
    near = inputs.attend(window)[1][:, :, window:].double()
    far = inputs.beyond(window).attend()[1].double()
    return certified_share(inputs, window, near), torch.sigmoid(far - near)


def certified_share(inputs: AttentionInputs, window: int, near: Tensor) -> Tensor:
    """The bound on the share beyond the window, from `near`, the log-sum-exp within it (rows from `window` on)."""
    return torch.sigmoid(far_bound(inputs, window) - near + SLACK + 1e-5 * near.abs())


def far_bound(inputs: AttentionInputs, window: int) -> Tensor:
    """U + log T of each row from `window` on: no log-sum-exp beyond the window can be larger."""
    n = inputs.k.shape[2]
    q = upper_norm(inputs.q.double())[:, :, window:]
    k = upper_norm(inputs.spread(inputs.k).double())[:, :, : n - window].cummax(-1).values
    log_tail = inputs.bias_or_zero()[:, window:n].logcumsumexp(-1)
    largest = abs(inputs.scale) * q * k
    if inputs.soft_cap is not None:
        largest = largest.clamp(max=inputs.soft_cap)
    if inputs.key_bias is not None:
        largest = largest + inputs.key_bias[:, : n - window].double().cummax(-1).values
    return largest + log_tail
