"""The certificate of a bounded cache: what share of a row's attention the dropped keys can have, rounded the safe way.

For a query q, the log-sum-exp L of the logits it did see, the largest norm K of any key dropped before it, and T the
sum of the weights from the window on, the share of attention on dropped keys is at most

    sigma(|q|*K*scale + ln T - L)

with no assumption on the scores (Theorem A at run time, docs/cache.md). It concerns one attention layer, computed
exactly from the queries, keys and values that this layer receives; not a network of such layers.

Slack. L comes from a float32 kernel, so what is proven here rests on a lower bound of the true L:
- a score of D products, summed in any order, errs by at most D*u/(1 - D*u) * |q|*|k|*scale with u = 2^-24;
- scale, bias (itself rounded to float32) and their addition add 5u*(|logit| + |score|); logits more than 60 below L
  weigh less than N*exp(-60) together, so |logit| <= |L| + 60 for those that count;
- the kernel's exponential errs by less than 2^-18 (20 units in the last place), once for each key and once for each
  block of at least 32 keys that is rescaled; a sum of N positive numbers errs by at most N*u in any order. Together:
  N * (2^-24 + 2^-23) + 2^-18 in the logarithm, for which N*2^-22 + 1e-5 stands;
- the final logarithm errs by less than 4u*(|L| + 60).
With lower precision of matrix products (TF32, bfloat16) u is 2^-8; the bias is rounded to float32 in every type. Norms
are rounded up (`upper_norm`). What remains is done in float64, with 1e-12 of each term for its own rounding. A soft cap
bounds every score, and its own arithmetic adds 4u*|score|; a sink is one more logit in L, without a value.

Rounding. With every weight off by a factor within exp(+-s), s the slack, a mean of values of norm at most V moves by at
most 2(exp(s) - 1)V/(2 - exp(s)), and the sums of weights and of weighted values err as above: 4(exp(s) - 1)V in all
while s <= 1/4, and never more than 2V. In bfloat16 and float16 the weights and the output are rounded to the type, and
the output again after a sink, each by at most half a unit; what underflows is less than the smallest normal number for
each key and component. Skipping inside a prompt (flash/skip.py) adds 2^-23 V, for which 2^-22 V stands.

Shapes: B samples, H heads, M rows, A ages, D width of a head.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from farfield.nn.attention.contract import upper_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from farfield.theory.fields.windows import LogSums

LEAST_SHARE = 1e-300  # what a double cannot tell from 0 is not 0
AGES = 5  # of dropped keys, before the present one; the last holds everything older
SCOPE = "certified for each attention layer by itself, not for the network as a whole"


class CertificateWarning(UserWarning):
    """A token may have lost more attention than the epsilon that was chosen."""


class CertificateError(RuntimeError):
    """The policy "stop": a token may have lost more attention than the epsilon that was chosen."""


@dataclass(frozen=True)
class CertificateRow:
    """What is certain about one head: no token lost more than `share` of its attention.

    Its output is within `change` plus `rounding` of exact attention to every key: what dropped keys moved, and what the
    kernel's arithmetic can have moved besides; None where attention is the model's own.
    """

    layer: int
    head: int
    window: int
    share: float
    change: float
    over: int  # tokens whose certified share exceeded epsilon
    rounding: float | None = None


@dataclass(frozen=True)
class CertificateTable:
    """The certificate of a cache: a row for each layer and head, both counted from 1."""

    epsilon: float
    tokens: int
    rows: list[CertificateRow]

    @property
    def worst(self) -> CertificateRow:
        """The head with the largest certified share."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def holds(self) -> bool:
        """Whether every token of every head is certified to have lost at most epsilon."""
        return all(row.over == 0 for row in self.rows)

    def json(self) -> dict[str, Any]:
        """The table for a program."""
        rows = [asdict(row) for row in self.rows]
        return {"epsilon": self.epsilon, "tokens": self.tokens, "holds": self.holds, "scope": SCOPE, "heads": rows}

    def __str__(self) -> str:
        lines = [f"{'layer':>5} {'head':>5} {'window':>8} {'share <=':>10} {'change <=':>10} {'over':>6}"]
        lines += [f"{r.layer:5} {r.head:5} {r.window:8} {r.share:10.2e} {r.change:10.2e} {r.over:6}" for r in self.rows]
        state = "holds" if self.holds else "was exceeded"
        lines += [f"epsilon {self.epsilon:g} {state} over {self.tokens} tokens; {SCOPE}"]
        if (rounding := max((r.rounding or 0.0 for r in self.rows), default=0.0)) > 0:
            lines += [f"rounding can have moved no output by more than {rounding:.2e} besides"]
        return "\n".join(lines)


class LargestNorms(NamedTuple):
    """The largest norms that each row knows of: keys and values that were dropped before it, and all up to it.

    Dropped keys come in ages, because one large key should not count for ever: `far_key` of those dropped lately, and
    `old_key` of those in each age before, which are known to lie farther and farther away.
    """

    far_key: Float[Tensor, "B H M"]
    old_key: Float[Tensor, "A B H 1"]
    far_value: Float[Tensor, "B H M"]
    recent_key: Float[Tensor, "B H M"]  # of the last tokens, kept or not: the gap counts these
    any_key: Float[Tensor, "B H M"]
    any_value: Float[Tensor, "B H M"]
    dropped: Bool[Tensor, "B H M"]  # whether anything was dropped before the row


class RowBounds(NamedTuple):
    """What is certain about each row: the share of attention lost, what moved the output, and its logit gap."""

    share: Float[Tensor, "B H M"]
    change: Float[Tensor, "B H M"]  # for exact arithmetic on both sides
    rounding: Float[Tensor, "B H M"]  # by which the kernel's arithmetic can have moved the output besides
    gap: Float[Tensor, "B H M"]  # |q|*max|k|*scale - L of recent keys: with ln head, which window would be enough


def unit(x: Tensor) -> float:
    """Half a unit in the last place of a matrix product with this tensor, as the kernel computes it."""
    if x.dtype == torch.float64:
        return 2.0**-53
    if x.device.type == "cpu" and torch.get_float32_matmul_precision() == "highest":
        return 2.0**-24  # products of bfloat16 and float16 are exact in float32 and summed there
    return 2.0**-8


def slack(q: Tensor, score: Tensor, lse: Float[Tensor, "B H M"], visible: int) -> Float[Tensor, "B H M"]:
    """How much the log-sum-exp of a kernel can exceed the true one; `score` bounds every |q.k|*scale of the row."""
    size, bias = lse.abs() + 60, max(unit(q), 2.0**-24)
    return unit(q) * (q.shape[-1] * 1.01 + 8) * score + bias * (score + 9 * size) + visible * 2.0**-22 + 1e-5


def rounding_of(q: Tensor, slack: Tensor, value: Tensor, visible: int) -> Float[Tensor, "B H M"]:
    """How far the kernel's arithmetic can move an output, given the slack of its logits and the longest value."""
    kind = torch.finfo(q.dtype)
    cast = 1.5 * kind.eps if q.dtype in (torch.bfloat16, torch.float16) else 0.0  # three times half a unit
    moved = torch.where(slack <= 0.25, 4 * torch.expm1(slack), 2.0).clamp(max=2.0)
    hidden = q.shape[-1] ** 0.5 * (visible * torch.finfo(torch.float32).tiny + kind.tiny)  # of products, of the output
    lost = visible * kind.tiny if cast else 0.0  # weights that underflow
    return (value * (moved + cast + lost + 2.0**-22) + hidden) * (1 + 1e-9)


class HeadBounds:
    """What is certain about the heads of one layer: the worst of all rows so far, and the sums that it rests on."""

    def __init__(self, heads: int, limit: float) -> None:
        self.limit = limit  # epsilon
        zeros = torch.zeros(heads, dtype=torch.float64)
        self.worst = RowBounds(zeros, zeros, zeros, torch.full_like(zeros, -math.inf))  # of any row, (H,) each
        self.over = torch.zeros(heads, dtype=torch.long)  # rows whose share exceeded epsilon
        self.log_head, self.log_tail = (torch.zeros(heads, 1, dtype=torch.float64) for _ in range(2))
        self.log_old = torch.zeros(AGES, heads, 1, dtype=torch.float64)

    def rest_on(self, head: int, sums: Sequence[LogSums]) -> None:
        """Use these sums for a head from now on, of `log_sums`: before and beyond its window, then beyond each age.

        Every row with dropped keys must see that window in full.
        """
        self.log_head[head], self.log_tail[head] = sums[0]
        self.log_old[:, head, 0] = torch.tensor([s.tail for s in sums])

    def rows(
        self,
        q: Float[Tensor, "B H M D"],
        scale: float,
        lse: Float[Tensor, "B H M"],
        visible: int,
        norms: LargestNorms,
        softcap: float | None = None,
    ) -> RowBounds:
        """What is certain about some new rows; 0 for those before which nothing was dropped, 1 where nothing is known.

        Args:
            q: Their queries.
            scale: Of the scores.
            lse: The log-sum-exp of the logits that each row saw, its sink among them.
            visible: Keys that a row sees at most.
            norms: The largest norms that each row knows of.
            softcap: That bounds every score, if there is one.
        """
        log_head, log_tail, log_old = (x.to(q.device) for x in (self.log_head, self.log_tail, self.log_old))
        cap = float("inf") if softcap is None else softcap * (1 + 1e-6)  # the kernel's tanh may round up
        query = upper_norm(q) * (abs(scale) * (1 + 1e-9))
        score = query * norms.any_key
        lse = lse.double()
        off = slack(q, score, lse, visible)
        low = lse - off
        score = score.clamp(max=cap)
        # every score is at least -|q|*max|k|*scale: so L is at least ln head minus that (the bound before inference)
        low = torch.where(norms.dropped, torch.maximum(low, log_head - score), low)
        # lately dropped keys from the window on, older ones from farther on; or all of them at once from the window on
        far, old = (query * norms.far_key).clamp(max=cap), (query * norms.old_key).clamp(max=cap)
        largest = torch.maximum(far, old.amax(0))
        total = torch.logaddexp(far + log_tail, (old + log_old[:, None]).logsumexp(0))
        total = torch.minimum(total, largest + log_tail)
        x = total - low + 1e-12 * (largest + log_old[-1].abs() + low.abs() + 1)
        share = torch.sigmoid(x).clamp(min=LEAST_SHARE) * (1 + 1e-12)
        share = torch.where(share <= 1, share, 1.0)  # NaN too
        share = torch.where(norms.dropped, share, 0.0)
        # An average of values is no longer than the longest of them. 0 times infinity: nothing was lost.
        change = torch.where(share > 0, share * ((norms.any_value + norms.far_value) * (1 + 1e-9)), 0.0)
        rounding = rounding_of(q, off, norms.any_value, visible)
        change, rounding = (torch.where(x.isnan(), float("inf"), x) for x in (change, rounding))
        return RowBounds(share, change, rounding, (query * norms.recent_key).clamp(max=cap) - low)

    def take(
        self, rows: RowBounds, log_head: Float[Tensor, "H M"], real: Bool[Tensor, "B 1 M"] | None
    ) -> Float[Tensor, " H"]:
        """Count some rows in; the largest share of each head among them.

        Args:
            rows: What is certain about them.
            log_head: The log of the sum of the weights that each row sees, which its gap is counted from.
            real: Which rows are no padding; None if all are.
        """
        gap = rows.gap + log_head
        hidden = ~gap.isfinite() if real is None else ~(gap.isfinite() & real)
        gap = gap.masked_fill(hidden, -math.inf)  # padding, or numbers for which no window is enough
        new = [x.amax((0, 2)).cpu() for x in rows._replace(gap=gap)]
        self.worst = RowBounds(*(torch.maximum(a, b) for a, b in zip(self.worst, new, strict=True)))
        if bool((new[0] > self.limit).any()):
            self.over += (rows.share > self.limit).sum((0, 2)).cpu()
        return new[0]
