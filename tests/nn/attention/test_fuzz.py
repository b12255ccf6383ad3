"""Random calls of the CPU's implementation against the formula in float64: 300 here, 5,000 behind the long mark.

They cover the product of the numeric contract (contract.py): types, autocast, soft caps, sinks, windows, grouped and
single queries, padding, short and long texts, learned biases, and biases that are written to behind torch's back.
The Triton kernels have theirs in tests/experiments/triton/interpreted.py, because the interpreter is slow.
"""

import contextlib
import random

import pytest
import torch
from dense_attention import dense

from farfield.nn import attention

LENGTHS = (1, 2, 3, 7, 31, 64, 100, 191, 192, 193, 257, 383, 384, 385, 500)
UNITS = {torch.float64: 1e-14, torch.float32: 1e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def one_call(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    shared, group = draw.choice([1, 2]), draw.choice([1, 1, 2])
    heads, batch, width = shared * group, draw.choice([1, 1, 2]), draw.choice([1, 3, 8, 16])
    keys = draw.choice(LENGTHS if draw.random() < 0.98 else (1100,))
    queries = draw.choice([keys, keys, 1, max(1, keys // 2)])
    kind = draw.choice([torch.float64, torch.float32, torch.float32, torch.bfloat16, torch.float16])
    window = draw.choice([None, None, 1, 9, 300, [draw.randint(1, keys + 5) for _ in range(heads)]])
    size = draw.choice([1, 1, 5])
    q, k, v = (
        torch.randn(batch, h, n, width) * s
        for h, n, s in ((heads, queries, size), (shared, keys, 1), (shared, keys, 1))
    )
    if draw.random() < 0.2:  # values whose sum leaves float16's range
        v = v.abs() * 50 + 20
    leaves = [x.to(kind).requires_grad_() for x in (q, k, v)]
    bias = None if draw.random() < 0.1 else -(torch.rand(heads, 1) * draw.choice([0.01, 1])) * torch.arange(keys + 2.0)
    number = torch.promote_types(kind, torch.float32)
    bias = None if bias is None else bias.to(number) - draw.choice([0, 0, 0, 300])
    if bias is not None and draw.random() < 0.1:
        bias[:, : draw.randint(1, 3)] = -torch.inf
    learned = bias is not None and draw.random() < 0.5
    if learned:
        leaves.append(bias.requires_grad_())
    sink = torch.randn(heads, dtype=number).requires_grad_() if draw.random() < 0.3 else None
    leaves += [] if sink is None else [sink]
    options = {"window": window, "softcap": draw.choice([None, None, 4.0, 50.0]), "mask": None}
    if draw.random() < 0.3:
        mask = options["mask"] = torch.zeros(batch, keys, dtype=torch.bool)
        for row in mask:
            start = draw.randint(0, keys - 1)
            row[start : draw.randint(start + 1, keys)] = True
    with_lse, skip = draw.random() < 0.4, draw.random() < 0.7
    autocast = draw.choice([None, None, torch.bfloat16, torch.float16])
    if bias is not None and not learned and draw.random() < 0.5:  # written to after a call, unseen by torch
        numbers = bias.clone()
        (bias if draw.random() < 0.5 else bias.data).numpy()[:] = -1.0
        attention(*leaves[:3], bias, sink=sink, skip=skip, **options)
        bias.data.copy_(numbers)
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    their_bias = None if bias is None else doubles[3] if learned else bias.double()
    with contextlib.nullcontext() if autocast is None else torch.autocast("cpu", dtype=autocast):
        ours = attention(*leaves[:3], bias, sink=sink, return_lse=True, skip=skip, **options)
        if not with_lse:  # the call without it may take another way
            ours = attention(*leaves[:3], bias, sink=sink, skip=skip, **options), ours[1]
    assert (ours[0].dtype, ours[1].dtype) == (kind, number)
    theirs = dense(*doubles[:3], their_bias, sink=None if sink is None else doubles[-1], **options)
    largest = 0.0 if bias is None else float(bias.detach().nan_to_num(neginf=0.0).abs().max())
    unit = UNITS[kind] if kind.itemsize == 2 else UNITS[kind] * min(1 + largest / 32, 30.0)  # a logit's own unit grows
    sizes = (doubles[0], doubles[1], doubles[2].abs())  # what was summed is larger than a sum that cancels
    summed = dense(*sizes, their_bias, sink=None if sink is None else doubles[-1], **options)[0]
    near(ours[0], theirs[0], 4 * unit, 0.01, unit * float(summed.detach().max()))
    near(ours[1], theirs[1], 4 * unit, 1)
    seen = theirs[1].detach().isfinite()
    weights = torch.randn_like(theirs[0]), torch.randn_like(theirs[1])
    grads = []
    for (out, lse), wanted in ((ours, leaves), (theirs, doubles)):
        with contextlib.nullcontext() if autocast is None else torch.autocast("cpu", dtype=autocast):
            loss = (out.double() * weights[0]).sum()
            if with_lse:
                loss = loss + (lse.double().masked_fill(~seen, 0) * weights[1]).sum()
            grads.append(torch.autograd.grad(loss, wanted, materialize_grads=True))
    for a, b in zip(*grads, strict=True):
        near(a, b, 20 * unit, 1)


def near(ours: torch.Tensor, theirs: torch.Tensor, unit: float, more: float, least: float = 0.0) -> None:
    ours, theirs = ours.detach().double(), theirs.detach().double()
    known = theirs.isfinite()
    assert torch.equal(known, ours.isfinite())
    if known.any():
        error, size = float((ours - theirs)[known].abs().max()), float(theirs[known].abs().max())
        assert error <= max(unit * (size + more), least), f"off by {error} of {size}"


@pytest.mark.parametrize("part", range(6))
def test_fifty_random_calls_agree_with_the_formula(part):
    for seed in range(50 * part, 50 * part + 50):
        one_call(seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(50))
def test_a_hundred_random_calls_agree_with_the_formula(part):
    for seed in range(1000 + 100 * part, 1100 + 100 * part):
        one_call(seed)
