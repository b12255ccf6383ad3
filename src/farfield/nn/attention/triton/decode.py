"""Decoding with a cache: few queries and many keys, so the keys are split among programs and joined afterwards.

The query heads that share a key head go together: their rows form one tile, so every key is read once.
"""

from __future__ import annotations

import triton
import triton.language as tl

from farfield.nn.attention.triton.tiles import add_to_softmax, load_rows, scores_of


@triton.jit
def split_kernel(
    Q, K, V, Bias, Windows, Start, End, Part, PartTop, PartTotal,
    q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n,
    scale, cap, H, M, N, widest, size,
    GROUP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAPPED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The running softmax of one share of the keys: its largest logit, its sum of weights, its weighted values."""
    share, splits = tl.program_id(0), tl.num_programs(0)
    shared_heads = H // GROUP
    b = (tl.program_id(1) // shared_heads).to(tl.int64)
    shared = (tl.program_id(1) % shared_heads).to(tl.int64)
    start, end = tl.load(Start + b), tl.load(End + b)
    row = tl.arange(0, BM)  # query m of head g is row g * M + m
    here = row < GROUP * M
    h = shared * GROUP + tl.where(here, row // M, 0)
    i = row % M
    p = i + N - M
    window = tl.load(Windows + h)
    d = tl.arange(0, DP)
    q = tl.load(
        Q + b * q_b + h[:, None] * q_h + i[:, None] * q_m + d[None, :],
        mask=here[:, None] & (d[None, :] < D), other=0.0,
    )  # fmt: skip
    key, value = K + b * k_b + shared * k_h, V + b * v_b + shared * v_h
    top = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, DP], tl.float32)
    first = tl.maximum(start, N - M - widest + 1) // BN * BN + share * size
    for s in range(first, tl.minimum(first + size, end), BN):
        j = s + tl.arange(0, BN)
        k, v = load_rows(key, j, k_n, end, D, DP), load_rows(value, j, v_n, end, D, DP)
        t = p[:, None] - j[None, :]
        seen = (t >= 0) & (t < window[:, None]) & here[:, None] & (p[:, None] < end) & (j[None, :] >= start)
        x = scores_of(q, k, scale, cap, CAPPED, PRECISION) + tl.load(Bias + h[:, None] * N + t, mask=seen, other=0.0)
        x = tl.where(seen, x, float("-inf"))
        top, total, sums, _, _ = add_to_softmax(x, v, top, total, sums, PRECISION)
    place = ((b * H + h) * M + i) * splits + share
    tl.store(PartTop + place, top, mask=here)
    tl.store(PartTotal + place, total, mask=here)
    tl.store(Part + place[:, None] * D + d[None, :], sums, mask=here[:, None] & (d[None, :] < D))


@triton.jit
def join_kernel(
    Part, PartTop, PartTotal, Sink, Start, End, Out, Lse, o_b, o_h, o_m, H, M, N, splits,
    D: tl.constexpr, DP: tl.constexpr, BS: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    """One query: the shares of its keys put together, and the sink."""
    row = tl.program_id(0)
    b, h, i = (row // M // H).to(tl.int64), (row // M % H).to(tl.int64), row % M
    share, d = tl.arange(0, BS), tl.arange(0, DP)
    top = tl.load(PartTop + row * splits + share, mask=share < splits, other=float("-inf"))
    total = tl.load(PartTotal + row * splits + share, mask=share < splits, other=0.0)
    part = tl.load(
        Part + (row * splits + share)[:, None] * D + d[None, :],
        mask=(share[:, None] < splits) & (d[None, :] < D), other=0.0,
    )  # fmt: skip
    highest = tl.max(top, 0)
    if SINKS:
        sink = tl.load(Sink + h)
        highest = tl.maximum(highest, sink)
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    weight = tl.exp(top - safe)
    whole = tl.sum(total * weight, 0)
    if SINKS:
        whole += tl.exp(sink - safe)
    p = i + N - M
    seen = (p >= tl.load(Start + b)) & (p < tl.load(End + b)) & (whole > 0)
    whole = tl.where(seen, whole, 1.0)
    out = tl.where(seen, tl.sum(part * weight[:, None], 0) / whole, 0.0)
    tl.store(Out + b * o_b + h * o_h + i * o_m + d, out.to(Out.dtype.element_ty), mask=d < D)
    tl.store(Lse + row, tl.where(seen, safe + tl.log(whole), float("-inf")))
