"""The backward kernels: no atomics anywhere, so every gradient is the same in every run.

The gradient of the bias at distance t is the sum of dS over the diagonal t = p - j, over all samples. A tile of B x B
holds 2B - 1 diagonals. Moving column (r - w) mod B of row r to place w turns each diagonal into a column: its rows
r >= w belong to the diagonal w, its rows r < w to the diagonal w - B. The next tile of the same rows has its diagonals
B lower, so the second half is carried over to it, and every distance is written once for each block of rows. A program
takes many blocks of rows and adds them up in a vector of its own; a second pass sums these vectors.
"""

from __future__ import annotations

import triton
import triton.language as tl

from farfield.experiments.triton.tiles import dot, load_rows, scores_of, seen_pairs, store_rows


@triton.jit
def shift_kernel(Out, DOut, DLse, Shift, o_b, o_h, o_m, g_b, g_h, g_m, H, M, D: tl.constexpr, DP: tl.constexpr,
                 BM: tl.constexpr, WITH_LSE: tl.constexpr):  # fmt: skip
    """For each row the sum of weight times its gradient, less the gradient of the log-sum-exp."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    bh = tl.program_id(1).to(tl.int64)
    o = load_rows(Out + bh // H * o_b + bh % H * o_h, i, o_m, M, D, DP).to(tl.float32)
    g = load_rows(DOut + bh // H * g_b + bh % H * g_h, i, g_m, M, D, DP).to(tl.float32)
    shift = tl.sum(o * g, 1)
    if WITH_LSE:
        shift -= tl.load(DLse + bh * M + i, mask=i < M, other=0.0)
    tl.store(Shift + bh * M + i, shift, mask=i < M)


@triton.jit
def weights_again(q, k, p, j, bias, lse, window, start, end, scale, cap, CAPPED: tl.constexpr, PRECISION: tl.constexpr):
    """The weights of a tile from the saved log-sum-exp, the distances, and the derivative of the soft cap."""
    t, seen = seen_pairs(p, j, window, start, end)
    s = scores_of(q, k, scale, cap, CAPPED, PRECISION)
    b = tl.load(bias + t, mask=seen, other=0.0)
    sees = lse > float("-inf")  # any key at all
    weight = tl.where(seen & sees[:, None], tl.exp(s + b - tl.where(sees, lse, 0.0)[:, None]), 0.0)
    if CAPPED:
        slope = 1 - (s / cap) * (s / cap)
    else:
        slope = 1.0
    return weight, slope


@triton.jit
def keys_kernel(
    Q, K, V, Bias, Windows, Start, End, DOut, Lse, Shift, Last, DK, DV,
    q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n, g_b, g_h, g_m,
    scale, cap, H, M, N,
    GROUP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAPPED: tl.constexpr, SKIPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients of a block of keys and values: over all rows that see them, of all heads that share them.

    With SKIPS, Last[b, h, block] is the position after the last row that touched the block.
    """
    block, blocks = tl.program_id(0), tl.num_programs(0)
    shared_heads = H // GROUP
    b = (tl.program_id(1) // shared_heads).to(tl.int64)
    shared = (tl.program_id(1) % shared_heads).to(tl.int64)
    start, end = tl.load(Start + b), tl.load(End + b)
    n0 = block * BN
    j = n0 + tl.arange(0, BN)
    k = load_rows(K + b * k_b + shared * k_h, j, k_n, end, D, DP)
    v = load_rows(V + b * v_b + shared * v_h, j, v_n, end, D, DP)
    dk = tl.zeros([BN, DP], tl.float32)
    dv = tl.zeros([BN, DP], tl.float32)
    for g in range(GROUP):
        h = shared * GROUP + g
        window = tl.load(Windows + h)
        last = tl.minimum(end, n0 + BN - 1 + window)
        if SKIPS:
            last = tl.minimum(last, tl.load(Last + (b * H + h) * blocks + block))
        first = tl.maximum(tl.maximum(start, n0) - (N - M), 0)
        for m0 in range(first // BM * BM, last - (N - M), BM):
            i = m0 + tl.arange(0, BM)
            p = i + N - M
            q = load_rows(Q + b * q_b + h * q_h, i, q_m, M, D, DP)
            grad = load_rows(DOut + b * g_b + h * g_h, i, g_m, M, D, DP)
            lse = tl.load(Lse + (b * H + h) * M + i, mask=i < M, other=float("-inf"))
            shift = tl.load(Shift + (b * H + h) * M + i, mask=i < M, other=0.0)
            weight, slope = weights_again(
                q, k, p, j, Bias + h * N, lse, window, start, end, scale, cap, CAPPED, PRECISION
            )
            dv += dot(tl.trans(weight.to(grad.dtype)), grad, PRECISION)
            ds = weight * (dot(grad, tl.trans(v), PRECISION) - shift[:, None]) * slope
            dk += dot(tl.trans(ds.to(q.dtype)), q, PRECISION)
    place = (b * shared_heads + shared) * N * D
    store_rows(DK + place, j, D, N, dk * scale, D, DP)
    store_rows(DV + place, j, D, N, dv, D, DP)


@triton.jit
def queries_kernel(
    Q, K, V, Bias, Windows, Start, End, DOut, Lse, Shift, First, DQ, DBias,
    q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n, g_b, g_h, g_m,
    scale, cap, H, M, N,
    GROUP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    CAPPED: tl.constexpr, SKIPS: tl.constexpr, LEARNED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The gradients of blocks of queries and, with LEARNED, the program's share of that of the bias.

    With SKIPS, First[b, h, x] is the first key that the rows x * BM and following touched.
    """
    program, programs = tl.program_id(0), tl.num_programs(0)
    b = (tl.program_id(1) // H).to(tl.int64)
    h = (tl.program_id(1) % H).to(tl.int64)
    window, start, end = tl.load(Windows + h), tl.load(Start + b), tl.load(End + b)
    key = K + b * k_b + h // GROUP * k_h
    value = V + b * v_b + h // GROUP * v_h
    sums = DBias + (tl.program_id(1).to(tl.int64) * programs + program) * N
    w = tl.arange(0, BN)
    for m0 in range(program * BM, M, programs * BM):
        i = m0 + tl.arange(0, BM)
        p = i + N - M
        q = load_rows(Q + b * q_b + h * q_h, i, q_m, M, D, DP)
        grad = load_rows(DOut + b * g_b + h * g_h, i, g_m, M, D, DP)
        lse = tl.load(Lse + (b * H + h) * M + i, mask=i < M, other=float("-inf"))
        shift = tl.load(Shift + (b * H + h) * M + i, mask=i < M, other=0.0)
        dq = tl.zeros([BM, DP], tl.float32)
        carried = tl.zeros([BN], tl.float32)
        first = tl.maximum(start, m0 + N - M - window + 1)
        if SKIPS:
            first = tl.maximum(first, tl.load(First + tl.program_id(1) * tl.cdiv(M, BM) + m0 // BM))
        first = first // BN * BN
        last = tl.minimum(end, m0 + BM + N - M)
        for s in range(first, last, BN):
            j = s + tl.arange(0, BN)
            k, v = load_rows(key, j, k_n, end, D, DP), load_rows(value, j, v_n, end, D, DP)
            weight, slope = weights_again(
                q, k, p, j, Bias + h * N, lse, window, start, end, scale, cap, CAPPED, PRECISION
            )
            ds = weight * (dot(grad, tl.trans(v), PRECISION) - shift[:, None])
            if LEARNED:
                tl.static_assert(BM == BN)
                r = tl.arange(0, BM)[:, None]
                turned = tl.gather(ds, (r - w[None, :]) & (BN - 1), 1)
                t = m0 + N - M - s + w
                there = (t >= 0) & (t < N)
                done = carried + tl.sum(tl.where(r >= w[None, :], turned, 0.0), 0)
                tl.store(sums + t, tl.load(sums + t, mask=there, other=0.0) + done, mask=there)
                carried = tl.sum(tl.where(r < w[None, :], turned, 0.0), 0)
            dq += dot((ds * slope).to(k.dtype), k, PRECISION)
        if LEARNED:
            t = m0 + N - M - tl.cdiv(last - first, BN) * BN - first + w
            there = (t >= 0) & (t < N)
            tl.store(sums + t, tl.load(sums + t, mask=there, other=0.0) + carried, mask=there)
            tl.debug_barrier()  # the next block of rows adds to the same vector
        store_rows(DQ + (b * H + h) * M * D, i, D, M, dq * scale, D, DP)
