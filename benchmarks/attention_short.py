"""Short texts and decoding: ours against SDPA with a dense mask that is ready, and on a GPU every rival.

    python benchmarks/attention_short.py                              one thread, batch 1 and 32, and decoding
    python benchmarks/attention_short.py --threads 2 --dtype bfloat16
    python benchmarks/attention_short.py --lengths 64 --quick
    python benchmarks/attention_short.py --device cuda                checks correctness first, then times the rivals

One line for each: microseconds of ours and of the rival, medians of interleaved runs, and their ratio. With one thread
on a CPU a time is the processor's, which other programs do not disturb. Nothing here was ever timed on a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn import Bias, attention, reference

HEADS, WIDTH = 8, 64
Run = Callable[[], object]


def interleaved(runs: list[Run], repeats: int, device: str, processor: bool) -> list[float]:
    """The median of each in microseconds."""
    clock = time.process_time if processor else time.perf_counter
    seconds: list[list[float]] = [[] for _ in runs]
    for turn in range(repeats + 2):
        for run, found in zip(runs, seconds, strict=True):
            begin = clock()
            run()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn >= 2:
                found.append(clock() - begin)
    return [1e6 * statistics.median(found) for found in seconds]


def dense_mask(bias: Tensor, queries: int) -> Tensor:
    keys = bias.shape[1]
    t = torch.arange(keys - queries, keys, device=bias.device)[:, None] - torch.arange(keys, device=bias.device)
    return bias[:, t.clamp(min=0)].masked_fill(t < 0, float("-inf"))[None]


def rivals(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, device: str) -> dict[str, Run]:
    """Ours first, then whatever else applies the bias on this device."""
    mask = dense_mask(bias, q.shape[2]).to(q.dtype)
    found: dict[str, Run] = {
        "ours": lambda: attention(q, k, v, bias),
        "SDPA, dense mask": lambda: scaled_dot_product_attention(q, k, v, attn_mask=mask),
    }
    if device == "cuda":
        found["FlexAttention"] = lambda: attention(q, k, v, bias, implementation="flex")
        if importlib.util.find_spec("flash_attn") is not None and q.dtype != torch.float32:
            from flash_attn import flash_attn_func

            slopes = -bias[:, 1].contiguous()
            x, y, z = (each.transpose(1, 2).contiguous() for each in (q, k, v))
            found["flash-attention, ALiBi"] = lambda: flash_attn_func(x, y, z, causal=True, alibi_slopes=slopes)
    return found


def report(what: str, names: list[str], times: list[float]) -> None:
    for name, rival in zip(names[1:], times[1:], strict=True):
        print(f"{what}: ours {times[0]:,.1f} us, {name} {rival:,.1f} us, ratio {times[0] / rival:.2f}", flush=True)


def measure(n: int, keys: int, batch: int, given: argparse.Namespace) -> None:
    dtype, device = getattr(torch, given.dtype), given.device
    q = torch.randn(batch, HEADS, n, WIDTH, device=device, dtype=dtype)
    k, v = (torch.randn(batch, HEADS, keys, WIDTH, device=device, dtype=dtype) for _ in range(2))
    bias = Bias("alibi", HEADS)(keys, device=device)
    repeats = 5 if given.quick else max(9, min(300, int(3e8 / (batch * n * keys * HEADS * WIDTH))))
    processor = device == "cpu" and given.threads == 1
    what = f"{keys} keys, {n} queries, batch {batch}, {given.dtype}, {given.threads} thread(s), {device}"
    with torch.no_grad():
        runs = rivals(q, k, v, bias, device)
        report(f"forward, {what}", list(runs), interleaved(list(runs.values()), repeats, device, processor))
    if n < keys:
        return
    leaves = [x.requires_grad_() for x in (q, k, v)]
    gradient, learned = torch.randn_like(q), bias.clone().requires_grad_()
    ready = dense_mask(bias, n).to(dtype)
    learned_mask = ready.clone().requires_grad_()
    for kind, ours, mask in (("fixed", bias, ready), ("learned", learned, learned_mask)):
        both: list[Run] = [
            lambda ours=ours: attention(*leaves, ours).backward(gradient),
            lambda mask=mask: scaled_dot_product_attention(*leaves, attn_mask=mask).backward(gradient),
        ]
        times = interleaved(both, repeats, device, processor)
        report(f"forward + backward, {kind} bias, {what}", ["ours", "SDPA, dense mask"], times)


def check(device: str, dtype: torch.dtype) -> None:
    """Right before fast: output and gradients against the definition in float64."""
    for n, window in ((1, None), (77, None), (300, 40), (1000, None)):
        leaves = [torch.randn(2, HEADS, n, WIDTH, device=device, dtype=dtype).requires_grad_() for _ in range(3)]
        leaves.append(Bias("alibi", HEADS)(n, device=device).clone().requires_grad_())
        doubles = [x.detach().double().requires_grad_() for x in leaves]
        out, want = attention(*leaves, window=window), reference(*doubles, window=window)[0]
        weight = torch.randn_like(want)
        ours = torch.autograd.grad((out.double() * weight).sum(), leaves)
        theirs = torch.autograd.grad((want * weight).sum(), doubles)
        unit = 1e-6 if dtype == torch.float32 else torch.finfo(dtype).eps
        for a, b in ((out, want), *zip(ours, theirs, strict=True)):
            error, size = float((a.detach() - b.detach()).abs().max()), float(b.detach().abs().max())
            if not error <= 40 * unit * (size + 1):
                sys.exit(f"wrong at {n} tokens, window {window}: off by {error} of {size}")
    print(f"correct on {device} in {dtype}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[1, 2, 8, 16, 32, 64, 128, 256, 384, 512])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--decode", type=int, nargs="*", default=[1024, 8192, 32768], help="keys of a single query")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", choices=("float32", "bfloat16", "float16"), default="float32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    check(given.device, getattr(torch, given.dtype))
    for n in given.lengths:
        for batch in given.batches:
            measure(n, n, batch, given)
    for keys in given.decode:
        measure(1, keys, 1, given)


if __name__ == "__main__":
    main()
