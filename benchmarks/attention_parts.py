"""Where the time of a long forward call goes, beside torch's own causal kernel without a bias.

    python benchmarks/attention_parts.py
    python benchmarks/attention_parts.py --lengths 4096

Parts that take turns, one thread, medians of the processor's time: the bias-free causal kernel; the same queries in our
chunks without any mask (what is computed in vain because a chunk ends in a triangle); the chunks with the mask of the
bias (what reading and adding it costs); our call.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn import Bias, attention
from farfield.nn.attention.flash.work_items import Span, line_of, mask_of, plan

HEADS, WIDTH = 8, 64


def parts(n: int) -> dict[str, Callable[[], object]]:
    q, k, v = (torch.randn(1, HEADS, n, WIDTH) for _ in range(3))
    bias = Bias("alibi", HEADS)(n)
    items = plan([Span(slice(0, 1), 0, n)], n, n, [n] * HEADS, HEADS, None)
    chunks = [chunk for item in items for chunk in item.chunks()]
    line = line_of(bias, [n] * HEADS)

    def chunked(masked: bool) -> None:
        for a, b, _ in chunks:
            given = mask_of(line, slice(0, HEADS), a, b, 0, b) if masked else None
            scaled_dot_product_attention(q[:, :, a:b], k[:, :, :b], v[:, :, :b], attn_mask=given)

    return {
        "causal kernel, no bias": lambda: scaled_dot_product_attention(q, k, v, is_causal=True),
        "our chunks, no mask": lambda: chunked(False),
        "our chunks, with the mask": lambda: chunked(True),
        "ours": lambda: attention(q, k, v, bias, skip=False),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[4096, 9216])
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for n in given.lengths:
        runs = parts(n)
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        with torch.no_grad():
            for _ in range(given.rounds):
                for name, run in runs.items():
                    begin = time.process_time()
                    run()
                    seconds[name].append(time.process_time() - begin)
        limit = statistics.median(seconds["causal kernel, no bias"])
        for name, taken in seconds.items():
            print(
                f"{n} tokens, {name}: {statistics.median(taken):.4f} s, {statistics.median(taken) / limit:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
