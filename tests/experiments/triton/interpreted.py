"""Random calls of the Triton kernels in Triton's interpreter, against the definition in float64.

    TRITON_INTERPRET=1 python tests/experiments/triton/interpreted.py FIRST LAST LONGEST

Every option is drawn: types, windows by head, grouped heads, padding on both sides, sinks, soft caps, learned biases,
gradients of the log-sum-exp, large logits, outliers among the values. Prints how often each was met.
"""

import collections
import random
import sys

import torch

from farfield.nn import attention, reference

LENGTHS = (1, 2, 5, 16, 33, 64, 65, 100, 130, 200, 530, 600)


def one_call(seed: int, longest: int, met: collections.Counter) -> None:
    """Draw a call, and compare output, log-sum-exp and all gradients."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    shared, group = draw.choice([1, 2]), draw.choice([1, 1, 2, 3])
    heads, batch, width = shared * group, draw.choice([1, 2]), draw.choice([8, 16, 20, 64])
    keys = draw.choice([n for n in LENGTHS if n <= longest])
    queries = draw.choice([keys, keys, 1, min(keys, 3), max(1, keys // 2)])
    kind = draw.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16])
    window = draw.choice([None, None, 1, 17, [draw.randint(1, keys + 5) for _ in range(heads)]])
    q = torch.randn(batch, heads, queries, width) * draw.choice([1, 1, 6])
    k, v = (torch.randn(batch, shared, keys, width) for _ in range(2))
    if draw.random() < 0.2:
        v[:, :, : keys // 3] *= 1e4
        met["outliers"] += 1
    leaves = [x.to(kind).requires_grad_() for x in (q, k, v)]
    bias = -(torch.rand(heads, 1) * draw.choice([0.01, 1])) * torch.arange(keys + 3)
    if draw.random() < 0.6:
        leaves.append(bias.requires_grad_())
    sink = torch.randn(heads) if draw.random() < 0.4 else None
    cap = draw.choice([None, None, None, 5.0, 30.0])
    mask = None
    if draw.random() < 0.4:
        mask = torch.zeros(batch, keys, dtype=torch.bool)
        for row in mask:
            start = draw.randint(0, keys - 1)
            row[start : draw.randint(start + 1, keys)] = True
    skip, with_lse = draw.random() < 0.7, draw.random() < 0.5
    options_met = {
        "learned": bias.requires_grad, "sink": sink is not None, "cap": cap, "padding": mask is not None,
        "window": window, "grouped": group > 1, "decode": queries < keys, "lse": with_lse,
        "skip": skip and keys >= 512, str(kind): True,
    }  # fmt: skip
    for name, on in options_met.items():
        met[name] += bool(on)
    if sink is not None:
        leaves.append(sink.requires_grad_())
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    their_bias = doubles[3] if bias.requires_grad else bias.double()
    options = {"window": window, "mask": mask, "softcap": cap}
    ours = attention(*leaves[:3], bias, sink=sink, return_lse=True, implementation="triton", skip=skip, **options)
    theirs = reference(*doubles[:3], their_bias, sink=None if sink is None else doubles[-1], **options)
    unit = 4e-7 if kind == torch.float32 else torch.finfo(kind).eps
    size = float(v.detach().abs().max())
    near(ours[0], theirs[0], 8 * unit, 1e-3, "output")
    near(ours[1], theirs[1], 8 * unit, 1, "log-sum-exp")
    seen = theirs[1].detach().isfinite()
    weights = torch.randn_like(theirs[0]), torch.randn_like(theirs[1]) * (with_lse * seen)
    grads = []
    for (out, lse), wanted in ((ours, leaves), (theirs, doubles)):
        loss = (out.double() * weights[0]).sum()
        if with_lse:
            loss = loss + (lse.double().masked_fill(~seen, 0) * weights[1]).sum()
        grads.append(torch.autograd.grad(loss, wanted, materialize_grads=True))
    for name, a, b in zip(("q", "k", "v", "bias or sink", "sink"), *grads, strict=False):
        near(a, b, 40 * unit, 0.1 * size if name != "v" else 0.1, f"gradient of {name}")


def near(ours: torch.Tensor, theirs: torch.Tensor, unit: float, more: float, what: str) -> None:
    ours, theirs = ours.detach().double(), theirs.detach().double()
    known = theirs.isfinite()
    assert torch.equal(known, ours.isfinite()), f"{what}: not finite elsewhere"
    if known.any():
        error, size = float((ours - theirs)[known].abs().max()), float(theirs[known].abs().max())
        assert error <= unit * (size + more), f"{what}: off by {error} of {size}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    first, last, longest = map(int, sys.argv[1:])
    met: collections.Counter = collections.Counter()
    bad = 0
    for seed in range(first, last):
        try:
            one_call(seed, longest, met)
        except AssertionError as error:
            bad += 1
            print(f"call {seed}: {error}", flush=True)
    print(f"{last - first} calls, {bad} wrong;", ", ".join(f"{name} {count}" for name, count in sorted(met.items())))
    sys.exit(bool(bad))
