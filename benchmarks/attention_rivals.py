"""The rivals of the attention benchmark, each run in a process of its own that waits for the word to go.

    python benchmarks/attention_rivals.py '{"rival": "ours", "n": 4096, "threads": 1, "train": false}'

prints one line with the peak memory of the first call, then one line of seconds for every line that it reads. Inputs
are 8 heads of 64, normal, scaled so that the largest |q.k|/sqrt(64) is 4. What can be prepared once for a length (a
mask, an ALiBi tensor, a compiled kernel) is prepared before the clock starts, but counts as memory.
"""

from __future__ import annotations

import json
import pathlib
import sys
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from farfield.nn import Bias, attention

HEADS, WIDTH, LARGEST_LOGIT = 8, 64, 4.0
Call = Callable[[Tensor, Tensor, Tensor], Tensor]


def inputs(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Normal q, k, v with the largest logit at 4 (found among the first 9216 queries)."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, n, WIDTH) for _ in range(3))
    largest = 0.0
    for h in range(HEADS):
        for a in range(0, min(n, 9216), 256):
            largest = max(largest, float((q[0, h, a : a + 256] @ k[0, h].T).abs().max()) / WIDTH**0.5)
    return q * (LARGEST_LOGIT / largest), k, v


def ours(
    n: int, *, encoding: str = "alibi", skip: bool = False, learned: bool = False, window: int | None = None
) -> Call:
    bias = Bias(encoding, HEADS, WIDTH)(n)
    bias = bias.clone().requires_grad_(learned)
    return lambda q, k, v: attention(q, k, v, bias, skip=skip, window=window)


def limit(n: int) -> Call:
    """Causal attention without any bias: what no bias can be expected to beat."""
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True)


def dense(n: int) -> Call:
    """The usual way: scaled_dot_product_attention with the bias as a (heads, n, n) mask."""
    bias = Bias("alibi", HEADS, WIDTH)(n)
    t = torch.arange(n)[:, None] - torch.arange(n)
    mask = torch.empty(1, HEADS, n, n)
    for h in range(HEADS):
        mask[0, h] = bias[h][t.clamp(min=0)].masked_fill(t < 0, float("-inf"))
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask)


def x_transformers(n: int, *, flash: bool) -> Call:
    from x_transformers.attend import Attend
    from x_transformers.x_transformers import AlibiPositionalBias

    attend, alibi = Attend(causal=True, heads=HEADS, flash=flash), AlibiPositionalBias(HEADS)
    alibi(n, n)
    return lambda q, k, v: attend(q, k, v, attn_bias=alibi(n, n))[0]


def _without_projections(module: nn.Module, *names: str) -> nn.Module:
    for name in names:
        setattr(module, name, nn.Identity())
    return module.eval()


def bloom(n: int) -> Call:
    """BloomAttention with its two projections taken out."""
    from transformers.models.bloom import modeling_bloom as m

    config = m.BloomConfig(hidden_size=HEADS * WIDTH, n_head=HEADS, hidden_dropout=0.0, attention_dropout=0.0)
    module = _without_projections(m.BloomAttention(config, 0), "query_key_value", "dense")
    alibi = m.build_alibi_tensor(torch.ones(1, n), HEADS, torch.float32)
    mask = torch.full((n, n), torch.finfo(torch.float32).min).triu(1)[None, None]
    nothing = torch.zeros(1, n, HEADS * WIDTH)

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        fused = torch.stack([q, k, v], 3).transpose(1, 2).reshape(1, n, -1)  # (1, n, heads, 3, width)
        return module(fused, nothing, alibi, mask)[0].view(1, n, HEADS, WIDTH).transpose(1, 2)

    return call


def mpt(n: int) -> Call:
    """MptAttention with its two projections taken out."""
    from transformers.models.mpt import modeling_mpt as m

    config = m.MptConfig(d_model=HEADS * WIDTH, n_heads=HEADS, max_seq_len=n)
    module = _without_projections(m.MptAttention(config, 0), "Wqkv", "out_proj")
    alibi = m.build_mpt_alibi_tensor(HEADS, n)
    mask = torch.ones(n, n, dtype=torch.bool).triu(1)[None, None]

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        fused = torch.cat([x.transpose(1, 2).reshape(1, n, -1) for x in (q, k, v)], -1)
        return module(fused, alibi, attention_mask=mask)[0].view(1, n, HEADS, WIDTH).transpose(1, 2)

    return call


def flex(n: int, *, any_formula: bool) -> Call:
    """Compiled FlexAttention (forward only: it has no backward on a CPU).

    Its score_mod looks the bias up by distance, as any formula needs, or multiplies by ALiBi's slope.
    """
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    bias = Bias("alibi", HEADS, WIDTH)(n).contiguous()
    slope = -bias[:, 1].contiguous()
    blocks = create_block_mask(lambda b, h, i, j: i >= j, None, None, n, n, device="cpu")
    run = torch.compile(flex_attention)

    def look_up(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return s + bias[h, (i - j).clamp(min=0)]

    def multiply(s: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return s - slope[h] * (i - j)

    def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        with torch.no_grad():
            return run(q, k, v, look_up if any_formula else multiply, blocks)

    return call


RIVALS: dict[str, Callable[[int], Call]] = {
    "limit": limit,
    "ours": ours,
    "ours, learned bias": lambda n: ours(n, learned=True),
    "ours, skipping": lambda n: ours(n, skip=True),
    "ours, skipping, learned bias": lambda n: ours(n, skip=True, learned=True),
    "ours, skipping, type2": lambda n: ours(n, encoding="type2", skip=True),
    "ours, skipping, type1": lambda n: ours(n, encoding="type1", skip=True),
    "ours, window 512": lambda n: ours(n, skip=True, window=512),
    "dense mask": dense,
    "x-transformers": lambda n: x_transformers(n, flash=False),
    "x-transformers flash": lambda n: x_transformers(n, flash=True),
    "BLOOM": bloom,
    "MPT": mpt,
    "FlexAttention": lambda n: flex(n, any_formula=True),
    "FlexAttention, ALiBi only": lambda n: flex(n, any_formula=False),
}


def _resident(field: str) -> float:
    """Memory of this process in MB: VmRSS now, VmHWM at its peak."""
    for row in pathlib.Path("/proc/self/status").read_text().splitlines():
        if row.startswith(field):
            return int(row.split()[1]) / 1024
    raise OSError("this benchmark reads memory from /proc and so needs Linux")


def main(order: dict[str, object]) -> None:
    n, train = int(str(order["n"])), bool(order["train"])
    torch.set_num_threads(int(str(order["threads"])))
    make = RIVALS[str(order["rival"])]
    q, k, v = inputs(n)
    gradient = torch.randn_like(q) if train else None
    leaves = [x.requires_grad_(train) for x in (q, k, v)]

    def once(call: Call, q: Tensor, k: Tensor, v: Tensor, gradient: Tensor | None) -> tuple[float, float, float]:
        """Seconds by the clock, seconds of the processor, and MB of what is handed back: output and gradients."""
        for x in (q, k, v):
            x.grad = None
        begin, work = time.perf_counter(), time.process_time()
        out = call(q, k, v)
        if gradient is not None:
            out.backward(gradient)
        seconds, work = time.perf_counter() - begin, time.process_time() - work
        return seconds, work, out.numel() * 4 * (4 if gradient is not None else 1) / 2**20

    small = [x[:, :, :256].detach().clone().requires_grad_(train) for x in leaves]
    if not str(order["rival"]).startswith(
        "FlexAttention"
    ):  # load libraries and start threads before memory is measured
        once(make(256), *small, None if gradient is None else gradient[:, :, :256])
    else:
        once(make(n), *leaves, None)  # the compiler's own memory does not count
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = _resident("VmRSS")
    call = make(n)
    _, _, handed_back = once(call, *leaves, gradient)
    print(json.dumps({"extra_mb": max(0.0, _resident("VmHWM") - before - handed_back)}), flush=True)
    for _ in sys.stdin:
        seconds, work, _ = once(call, *leaves, gradient)
        print(json.dumps({"clock": seconds, "processor": work}), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
