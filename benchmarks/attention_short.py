"""Short texts and decoding: ours against SDPA with a dense mask that is ready, and on a GPU every rival.

    python benchmarks/attention_short.py                              one thread, batch 1 and 32, and decoding
    python benchmarks/attention_short.py --threads 2 --dtype bfloat16
    python benchmarks/attention_short.py --save docs/benchmarks       the page; what was measured before stays on it
    python benchmarks/attention_short.py --lengths 64 --quick
    python benchmarks/attention_short.py --device cuda                checks correctness first, then times the rivals

Microseconds of ours and of the rival are medians of runs that take turns. With one thread on a CPU a time is the
processor's, which other programs do not disturb. Nothing here was ever timed on a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn import Bias, attention, reference

HEADS, WIDTH = 8, 64
Run = Callable[[], object]
Row = dict[str, Any]
FORWARD, FIXED, LEARNED = "forward", "forward + backward, fixed bias", "forward + backward, learned bias"


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


def report(kind: str, n: int, keys: int, batch: int, given: argparse.Namespace, runs: dict[str, float]) -> list[Row]:
    """One row for each rival, printed as it comes."""
    ours, rows = runs.pop("ours"), []
    for rival, time_taken in runs.items():
        row = {"kind": kind, "queries": n, "keys": keys, "batch": batch, "threads": given.threads, "dtype": given.dtype}
        row |= {"device": given.device, "rival": rival, "ours_us": round(ours, 1), "rival_us": round(time_taken, 1)}
        row |= {"ratio": round(ours / time_taken, 2), "load": round(os.getloadavg()[0], 1)}
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
        rows.append(row)
    return rows


def measure(n: int, keys: int, batch: int, given: argparse.Namespace) -> list[Row]:
    dtype, device = getattr(torch, given.dtype), given.device
    q = torch.randn(batch, HEADS, n, WIDTH, device=device, dtype=dtype)
    k, v = (torch.randn(batch, HEADS, keys, WIDTH, device=device, dtype=dtype) for _ in range(2))
    bias = Bias("alibi", HEADS)(keys, device=device)
    repeats = 5 if given.quick else max(9, min(300, int(3e8 / (batch * n * keys * HEADS * WIDTH))))
    processor = device == "cpu" and given.threads == 1
    with torch.no_grad():
        runs = rivals(q, k, v, bias, device)
        times = interleaved(list(runs.values()), repeats, device, processor)
        rows = report(FORWARD, n, keys, batch, given, dict(zip(runs, times, strict=True)))
    if n < keys:
        return rows
    leaves = [x.requires_grad_() for x in (q, k, v)]
    gradient, learned = torch.randn_like(q), bias.clone().requires_grad_()
    ready = dense_mask(bias, n).to(dtype)
    learned_mask = ready.clone().requires_grad_()
    for kind, ours, mask in ((FIXED, bias, ready), (LEARNED, learned, learned_mask)):
        both: list[Run] = [
            lambda ours=ours: attention(*leaves, ours).backward(gradient),
            lambda mask=mask: scaled_dot_product_attention(*leaves, attn_mask=mask).backward(gradient),
        ]
        mine, theirs = interleaved(both, repeats, device, processor)
        rows += report(kind, n, keys, batch, given, {"ours": mine, "SDPA, dense mask": theirs})
    return rows


def page(rows: list[Row], date: str) -> str:
    """The rows as a page: one table for each type and number of threads, one line a length."""
    text = ["# Attention of short texts, and decoding", (__doc__ or "").split("\n\n")[2].strip()]
    text.append("ALiBi, 8 heads of 64. Each cell: ours over SDPA with a dense mask that is ready, below 1 is faster.")
    for dtype, threads in sorted({(row["dtype"], row["threads"]) for row in rows}, key=str):
        here = [row for row in rows if (row["dtype"], row["threads"]) == (dtype, threads)]
        whole = {(row["batch"], row["kind"]) for row in here if row["queries"] == row["keys"]}
        columns = sorted(whole, key=lambda c: (c[0], len(c[1])))  # forward, fixed, learned
        lines = ["| tokens | " + " | ".join(f"{kind}, batch {batch}" for batch, kind in columns) + " |"]
        lines.append("| ---: |" + " ---: |" * len(columns))
        for n in sorted({row["keys"] for row in here if row["queries"] == row["keys"]}):
            ratios = {(r["batch"], r["kind"]): f"{r['ratio']:.2f}" for r in here if r["queries"] == r["keys"] == n}
            lines.append(f"| {n} | " + " | ".join(ratios.get(column, "-") for column in columns) + " |")
        steps = [f"{row['ratio']:.2f} at {row['keys']:,} keys" for row in here if row["queries"] < row["keys"]]
        text += [f"## {dtype}, {threads} thread(s)", "\n".join(lines)]
        text += [f"A decoding step: {', '.join(steps)}."] if steps else []
    slower = sum(row["ratio"] > 1.05 for row in rows)
    loads = [row["load"] for row in rows]
    text.append(f"{slower} of {len(rows)} ratios are above 1.05; [where the time goes](../attention.md#measured).")
    text.append(f"{date}, load of the machine {min(loads)} to {max(loads)}, torch {torch.__version__}.")
    return "\n\n".join([*text, "Made by `python benchmarks/attention_short.py --save docs/benchmarks`."]) + "\n"


def same_case(a: Row, b: Row) -> bool:
    return all(
        a[name] == b[name] for name in ("kind", "queries", "keys", "batch", "threads", "dtype", "device", "rival")
    )


def save(folder: pathlib.Path, new: list[Row]) -> None:
    """Write page and numbers; a case that was measured again takes the place of the earlier one."""
    numbers = folder / "attention-short.json"
    before = json.loads(numbers.read_text())["rows"] if numbers.exists() else []
    rows = [row for row in before if not any(same_case(row, other) for other in new)] + new
    date = datetime.date.today().isoformat()
    numbers.write_text(json.dumps({"date": date, "rows": rows}, indent=1) + "\n")
    (folder / "attention-short.md").write_text(page(rows, date))


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
    parser.add_argument("--save", type=pathlib.Path, help="a folder for attention-short.md and .json")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(0)
    check(given.device, getattr(torch, given.dtype))
    cases = [(n, n, batch) for n in given.lengths for batch in given.batches]
    cases += [(1, keys, 1) for keys in given.decode]
    rows: list[Row] = []
    for case in cases:
        rows += measure(*case, given)
        if given.save:  # as it comes
            save(given.save, rows)


if __name__ == "__main__":
    main()
