"""The run-time certificate in tensors: what share of a row's attention the dropped keys can have, rounded the safe way.

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
are rounded up (nn/norms.py). What remains is done in float64, with 1e-12 of each term for its own rounding. A soft cap
bounds every score, and its own arithmetic adds 4u*|score|; a sink is one more logit in L, without a value.

Rounding. With every weight off by a factor within exp(+-s), s the slack, a mean of values of norm at most V moves by at
most 2(exp(s) - 1)V/(2 - exp(s)), and the sums of weights and of weighted values err as above: 4(exp(s) - 1)V in all
while s <= 1/4, and never more than 2V. In bfloat16 and float16 the weights and the output are rounded to the type, each
by at most half a unit; what underflows is less than the smallest normal number for each key and component. Skipping
inside a prompt (flash/skip.py) adds 2^-23 V, for which 2^-22 V stands.

Shapes: B samples, H heads, M rows, A ages, D width of a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from farfield.nn.norms import upper_norm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


LEAST_SHARE = 1e-300  # what a double cannot tell from 0 is not 0


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


def slack(q: Tensor, score: Tensor, lse: Float[Tensor, "B H M"], kept: int) -> Float[Tensor, "B H M"]:
    """How much the log-sum-exp of a kernel can exceed the true one; `score` bounds every |q.k|*scale of the row."""
    size, bias = lse.abs() + 60, max(unit(q), 2.0**-24)
    return unit(q) * (q.shape[-1] * 1.01 + 8) * score + bias * (score + 9 * size) + kept * 2.0**-22 + 1e-5


def rounding_of(q: Tensor, slack: Tensor, value: Tensor, kept: int) -> Float[Tensor, "B H M"]:
    """How far the kernel's arithmetic can move an output, given the slack of its logits and the longest value."""
    kind = torch.finfo(q.dtype)
    cast = kind.eps if q.dtype in (torch.bfloat16, torch.float16) else 0.0  # twice half a unit
    moved = torch.where(slack <= 0.25, 4 * torch.expm1(slack), 2.0).clamp(max=2.0)
    hidden = q.shape[-1] ** 0.5 * (kept * torch.finfo(torch.float32).tiny + kind.tiny)  # of products, of the output
    lost = kept * kind.tiny if cast else 0.0  # weights that underflow
    return (value * (moved + cast + lost + 2.0**-22) + hidden) * (1 + 1e-9)


def certify(
    q: Float[Tensor, "B H M D"],
    scale: float,
    lse: Float[Tensor, "B H M"],
    kept: int,
    norms: LargestNorms,
    log_head: Float[Tensor, "H 1"],
    log_tail: Float[Tensor, "H 1"],
    log_old: Float[Tensor, "A H 1"],
    softcap: float | None = None,
) -> RowBounds:
    """The certificate of every row; 0 for rows before which nothing was dropped, 1 where nothing is known.

    kept: keys that a row sees at most. log_head, log_tail: from theory.truncation.log_sums, for a window that every
    row with dropped keys sees in full; log_old: the same sum from the least distance of each age on. softcap bounds
    every score; a sink is part of lse.
    """
    cap = float("inf") if softcap is None else softcap * (1 + 1e-6)  # the kernel's tanh may round up
    query = upper_norm(q) * (abs(scale) * (1 + 1e-9))
    score = query * norms.any_key
    lse = lse.double()
    off = slack(q, score, lse, kept)
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
    rounding = rounding_of(q, off, norms.any_value, kept)
    change, rounding = (torch.where(x.isnan(), float("inf"), x) for x in (change, rounding))
    return RowBounds(share, change, rounding, (query * norms.recent_key).clamp(max=cap) - low)
