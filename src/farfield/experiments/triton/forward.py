"""The forward kernel: one program for a block of queries of one head, over the keys that it may see.

The keys near the queries come first. What they give is already a lower bound of the denominator, so the kernel knows
before it reads any far key where the proof of lossless skipping holds (`nn/attention/flash/skip.py`), and starts there.
Blocks beyond the window are never read either.
"""

from __future__ import annotations

import triton
import triton.language as tl

from farfield.experiments.triton.tiles import load_rows, softmax_step, store_rows


@triton.jit
def forward_kernel(
    Q, K, V, Bias, Sink, Windows, Start, End, Tail, KeyNorm, ValueNorm, Out, Lse, First,
    q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n, o_b, o_h, o_m,
    limit, scale, cap, H, M, N,
    GROUP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    SINKS: tl.constexpr, CAPPED: tl.constexpr, SKIPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Output and log-sum-exp; with SKIPS also the first key that each block of queries touched.

    Tail[h, w] is the log of the sum of exp(bias) over t >= w. KeyNorm and ValueNorm hold, for each key, the largest
    norm up to it.
    """
    block = tl.num_programs(0) - 1 - tl.program_id(0)  # those with the most keys first
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    shared = h // GROUP
    window, start, end = tl.load(Windows + h), tl.load(Start + b), tl.load(End + b)
    i = block * BM + tl.arange(0, BM)
    p = i + N - M
    q = load_rows(Q + b * q_b + h * q_h, i, q_m, M, D, DP)
    key, value, bias = K + b * k_b + shared * k_h, V + b * v_b + shared * v_h, Bias + h * N

    if SINKS:  # a sink is a key without a value
        top = tl.full([BM], 0.0, tl.float32) + tl.load(Sink + h)
        total = tl.full([BM], 1.0, tl.float32)
    else:
        top = tl.full([BM], float("-inf"), tl.float32)
        total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, DP], tl.float32)
    sizes = tl.zeros([BM], tl.float32)  # of the weighted values: the sum of weight times |v|

    nearest = block * BM + N - M  # position of the first query
    first = tl.maximum(start, nearest - window + 1)
    near = tl.maximum(nearest // BN * BN, first // BN * BN)
    for s in range(near, tl.minimum(end, nearest + BM), BN):
        j = s + tl.arange(0, BN)
        k, v = load_rows(key, j, k_n, end, D, DP), load_rows(value, j, v_n, end, D, DP)
        top, total, sums, weight, shrink = softmax_step(
            q, k, v, p, j, bias, window, start, end, scale, cap, top, total, sums, CAPPED, PRECISION
        )
        if SKIPS:
            norm = tl.sqrt(tl.sum(v.to(tl.float32) * v.to(tl.float32), 1))
            sizes = sizes * shrink + tl.sum(weight * norm[None, :], 1)

    far = first // BN * BN
    if SKIPS:
        if near > far:
            # Every left out logit is at most |q| max|k| scale (or the cap) and its bias; what is left out must be
            # below 2^-24 of what is there, both as weight and as weighted values.
            rows = (i < M) & (p >= start) & (p < end)
            norm = tl.sqrt(tl.sum(q.to(tl.float32) * q.to(tl.float32), 1)) * 1.0001
            largest = norm * tl.load(KeyNorm + (b * (H // GROUP) + shared) * N + near - 1) * tl.abs(scale)
            if CAPPED:
                largest = tl.minimum(largest, cap)
            longest = tl.load(ValueNorm + (b * (H // GROUP) + shared) * N + near - 1)
            enough = tl.minimum(total, sizes / tl.maximum(longest, 1e-30))
            known = top + tl.log(tl.maximum(enough, 1e-30)) - 1e-3 - 1e-5 * tl.abs(top)
            allowed = tl.where(rows, known + limit - largest, float("inf"))
            allowed = tl.where(allowed == allowed, allowed, float("-inf"))  # NaN: nothing is known
            least = tl.min(allowed, 0)
            low, high = 0, N  # the smallest distance w with Tail[h, w] <= least; Tail[h, N] is minus infinity
            for _ in range(32):
                middle = (low + high) // 2
                holds = tl.load(Tail + h * (N + 1) + middle) <= least
                high = tl.where(holds, middle, high)
                low = tl.where(holds, low, tl.minimum(middle + 1, high))
            far = tl.minimum(near, tl.maximum(far, (nearest + 1 - high) // BN * BN))
        tl.store(First + tl.program_id(1) * tl.num_programs(0) + block, far)
    for s in range(far, near, BN):
        j = s + tl.arange(0, BN)
        k, v = load_rows(key, j, k_n, end, D, DP), load_rows(value, j, v_n, end, D, DP)
        top, total, sums, _, _ = softmax_step(
            q, k, v, p, j, bias, window, start, end, scale, cap, top, total, sums, CAPPED, PRECISION
        )

    seen = (p >= start) & (p < end) & (total > 0)
    out = tl.where(seen[:, None], sums / tl.where(seen, total, 1.0)[:, None], 0.0)
    store_rows(Out + b * o_b + h * o_h, i, o_m, M, out, D, DP)
    lse = tl.where(seen, top + tl.log(tl.where(seen, total, 1.0)), float("-inf"))
    tl.store(Lse + (b * H + h) * M + i, lse, mask=i < M)
