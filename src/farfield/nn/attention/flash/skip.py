"""Lossless skipping: how far back a key must lie so that it cannot change the result, and the proof for each row.

Row i has touched the keys `j >= s` and left out the others. With L the log-sum-exp of the touched ones and every left
out logit at most `U = |q_i| * max |k_j| * scale` (Cauchy-Schwarz), the attention mass that was left out is at most

    exp(U + log tail(i - s + 1) - L)

(the run-time certificate, docs/attention.md). A row is certain if this, and this times the ratio of the largest left
out value to the largest touched one, is at most half a unit in the last place: 2^-24 in float32. So what is left out
moves the output by at most 2^-23 of the largest value that the chunk touched. A sink only makes the share smaller, and
a soft cap bounds U. A row that is not certain is computed again with every key, so no row ever rests on a guess.

The place `s` is chosen before a chunk of rows is computed, from earlier tokens only, and the certificate of row i reads
nothing after token i. Hence the output at token i is a function of the tokens up to i, to the bit, as in the full
computation. The choice is the smallest w with `exp(x) * tail(w) <= 2^-24 * head(w)`; `x` is the largest gap between U
and the part of L that the scores account for, over the rows so far. It never exceeds twice the largest |q.k| * scale.

Shapes: H heads, N keys, R rows of a chunk.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from farfield.nn.attention.contract import upper_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

USUAL_GAP = 8.0  # `x` of ordinary inputs: decides which heads go together, never what is certain
SLACK = 1.0  # added to `x` when the next chunk's keys are chosen, so that few rows have to be computed again
LEAST_SAVING = 256  # keys a row, on average over a chunk of FEW_ROWS, below which skipping costs more than it saves
FEW_ROWS = 192


def worth(saving: float, queries: int) -> bool:
    """Whether leaving out that many keys a row pays for the extra calls; decoding one token at a time rarely does."""
    return saving * min(queries, FEW_ROWS) >= LEAST_SAVING * FEW_ROWS


class BiasSums:
    """The running sums of exp(bias), as logarithms: what lies before and what lies beyond each distance."""

    def __init__(self, bias: Float[Tensor, "H N"], dtype: torch.dtype, learned: bool):
        bias = bias.detach().double()
        nothing = bias.new_full((bias.shape[0], 1), float("-inf"))
        self.head = torch.cat([nothing, bias.logcumsumexp(-1)], -1)  # head[:, w]: the sum over t < w
        self.tail = torch.cat([bias.flip(-1).logcumsumexp(-1).flip(-1), nothing], -1)  # tail[:, w]: over t >= w
        self.size = bias.shape[1]
        self.limit = -53 * math.log(2) if dtype == torch.float64 else -24 * math.log(2)
        if learned:  # a parameter's gradient sums t * weight: the tail may count up to `size` times as much
            self.limit -= math.log(self.size)
        gain = self.head - self.tail
        self.gain = torch.where(gain.isnan(), float("-inf"), gain).cummax(-1).values  # -inf - -inf: nothing is known

    def window(self, gap: Float[Tensor, " H"]) -> Tensor:
        """For each head the smallest w with `exp(gap) * tail(w) <= 2^-24 * head(w)`."""
        return torch.searchsorted(self.gain, (gap - self.limit)[:, None]).squeeze(-1)

    def usual_window(self, queries: int) -> list[int]:
        """For each head the window of ordinary inputs, or the full length where skipping would not pay."""
        usual = self.window(torch.full((self.gain.shape[0],), USUAL_GAP, dtype=torch.float64)).tolist()
        first = self.size - queries

        def saving(w: int) -> float:  # the mean of max(0, position - w) over the queries
            return (max(0, self.size - w) ** 2 - max(0, first - w) ** 2) / (2 * queries)

        return [w if worth(saving(w), queries) else self.size for w in usual]

    def of(self, heads: slice) -> BiasSums:
        part = object.__new__(BiasSums)
        part.head, part.tail, part.gain = self.head[heads], self.tail[heads], self.gain[heads]
        part.size, part.limit = self.size, self.limit
        return part


class SkipCertificate:
    """The certificate of one sample and a run of heads, fed chunk by chunk."""

    def __init__(
        self, sums: BiasSums, q: Float[Tensor, "H M D"], k: Float[Tensor, "H N D"], v: Float[Tensor, "H N D"],
        scale: float, softcap: float | None = None,
    ):  # fmt: skip
        self.sums, self.softcap = sums, softcap
        self.first = k.shape[1] - q.shape[1]  # position of the first query
        self.q_norm, self.k_norm = upper_norm(q) * abs(scale), upper_norm(k).cummax(-1).values
        self.v_norm, self.dot_error = upper_norm(v), (q.shape[-1] + 2) * 2.0**-23
        self.largest_value = self.v_norm.cummax(-1).values  # up to each key
        self.gap = 2 * self._score(self.q_norm[:, :1], self.k_norm[:, self.first : self.first + 1])[:, 0]

    def _score(self, q_norm: Tensor, k_norm: Tensor) -> Tensor:
        """No |score| of such a query and keys of at most such a norm is larger: Cauchy-Schwarz, and the soft cap."""
        score = q_norm * k_norm
        return score if self.softcap is None else score.clamp(max=abs(self.softcap))

    def first_key(self, row: int) -> int:
        """The first key that the chunk starting at position `row` touches; known from tokens up to `row` alone."""
        if not bool(self.gap.isfinite().all()):
            return 0
        return max(0, row + 1 - int(self.sums.window(self.gap + SLACK).max()))

    def uncertain(self, a: int, b: int, s: int, lse: Float[Tensor, "H R"]) -> Bool[Tensor, "H R"] | None:
        """Which rows of the positions a..b-1 might have changed because the keys before s were left out."""
        lse = lse.double()
        q_norm = self.q_norm[:, a - self.first : b - self.first]
        excess = lse.new_zeros(len(lse), 1)
        if s > 0:  # left out values that are larger than all that were touched count for more
            excess = (self.largest_value[:, s - 1 : s] / self.v_norm[:, s : a + 1].amax(-1, keepdim=True)).log()
            excess = torch.where(excess.isnan(), float("inf"), excess.clamp(min=0))
        head = self.sums.head[:, a + 1 : b + 1]
        gap = (self._score(q_norm, self.k_norm[:, b - 1 : b]) - lse + head + excess).amax(-1)
        self.gap = torch.maximum(self.gap, torch.where(gap.isnan(), float("inf"), gap)) if a > self.first else gap
        if s == 0:
            return None
        bound = self._score(q_norm, self.k_norm[:, s - 1 : s]) + self.sums.tail[:, a - s + 1 : b - s + 1] + excess
        # The kernel's dot products err by less than D + 2 last places of |q| |k|, its exponential and sums by less than
        # 1e-5 of what they return.
        error = 1e-3 + 1e-5 * lse.abs() + self.dot_error * q_norm * self.k_norm[:, b - 1 : b]
        certain = bound + error <= lse + self.sums.limit
        return None if bool(certain.all()) else ~certain
