"""What the kernels share: the logits of a tile, and one step of the running softmax.

A tile is BM queries by BN keys. A query stands at position p among the keys (the last query at the last key), so its
distance to key j is t = p - j. A pair is seen if 0 <= t < window, and both are real tokens, start <= . < end.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def dot(a, b, PRECISION: tl.constexpr):
    """The matrix product in float32. Triton's interpreter multiplies the bits of bfloat16: "widened" helps it."""
    if PRECISION == "widened":
        return tl.dot(a.to(tl.float32), b.to(tl.float32), input_precision="ieee")
    return tl.dot(a, b, input_precision=PRECISION)


@triton.jit
def scores_of(q, k, scale, cap, CAPPED: tl.constexpr, PRECISION: tl.constexpr):
    """q.k * scale of a tile, softly capped: cap * tanh(. / cap)."""
    s = dot(q, tl.trans(k), PRECISION) * scale
    if CAPPED:
        s = cap * (2 * tl.sigmoid(2 * s / cap) - 1)
    return s


@triton.jit
def seen_pairs(p, j, window, start, end):
    """Which pairs of queries at positions p and keys j may look at each other."""
    t = p[:, None] - j[None, :]
    real = (p[:, None] < end) & (j[None, :] >= start)  # with t >= 0, both ends of both
    return t, (t >= 0) & (t < window) & real


@triton.jit
def load_rows(base, index, stride, count, D: tl.constexpr, DP: tl.constexpr):
    """The rows of a (tokens, D) tensor at some indices, 0 from `count` on; DP is D, up to a power of two."""
    d = tl.arange(0, DP)
    place = base + index[:, None] * stride + d[None, :]  # within 2^31 numbers: the caller sees to it
    if D == DP:
        return tl.load(place, mask=index[:, None] < count, other=0.0)
    return tl.load(place, mask=(index[:, None] < count) & (d[None, :] < D), other=0.0)


@triton.jit
def store_rows(base, index, stride, count, x, D: tl.constexpr, DP: tl.constexpr):
    """Write such rows."""
    d = tl.arange(0, DP)
    inside = (index[:, None] < count) & (d[None, :] < D)
    tl.store(base + index[:, None] * stride + d[None, :], x.to(base.dtype.element_ty), mask=inside)


@triton.jit
def softmax_step(
    q, k, v, p, j, bias, window, start, end, scale, cap, top, total, sums,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Take one tile of keys into the running softmax: the largest logit, the sum of weights, the weighted values.

    Also the weights of the tile, and the factor by which what came before was shrunk.
    """
    t, seen = seen_pairs(p, j, window, start, end)
    b = tl.load(bias + t, mask=seen, other=0.0)
    x = tl.where(seen, scores_of(q, k, scale, cap, CAPPED, PRECISION) + b, float("-inf"))
    higher = tl.maximum(top, tl.max(x, 1))
    safe = tl.where(higher == float("-inf"), 0.0, higher)
    weight = tl.exp(x - safe[:, None])
    shrink = tl.exp(top - safe)
    total = total * shrink + tl.sum(weight, 1)
    sums = sums * shrink[:, None] + dot(weight.to(v.dtype), v, PRECISION)
    return higher, total, sums, weight, shrink
