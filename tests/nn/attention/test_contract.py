"""The numeric contract (contract.py) over its whole product: which type comes out, and how far from exact it may be."""

import contextlib
import itertools

import pytest
import torch
from dense_attention import dense

from farfield.nn import Bias, attention, reference

TYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
EXACT = {torch.float64: torch.float64, torch.float32: torch.float32, torch.bfloat16: torch.float32,
         torch.float16: torch.float32}  # fmt: skip
# what rounding a logit near -400 and summing may lose
OWN = {torch.float64: 1e-12, torch.float32: 1e-4, torch.bfloat16: 1e-4, torch.float16: 1e-4}
AUTOCAST = [None, torch.bfloat16, torch.float16]


def half_unit(kind):
    return torch.finfo(kind).eps / 2 if kind.itemsize == 2 else 0.0


def casting(kind):
    return contextlib.nullcontext() if kind is None else torch.autocast("cpu", dtype=kind)


def inputs(n, queries, kind, seed=0):
    """Positive values, whose sum leaves float16's range, and a bias that lies far below 0."""
    random = torch.Generator().manual_seed(seed)
    q = torch.randn(1, 4, queries, 8, generator=random)
    k = torch.randn(1, 2, n, 8, generator=random)
    v = 40 * torch.rand(1, 2, n, 8, generator=random) + 20
    bias = -300 - torch.rand(4, 1, generator=random) * torch.arange(float(n)) / 3
    return [x.to(kind) for x in (q, k, v)], bias


@pytest.mark.parametrize("n", [40, 384, 385, 700])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_call_keeps_the_contract(kind, n):
    """With and without autocast, soft cap, sink, window, grouped or single queries, a learned bias, a log-sum-exp."""
    for queries in (n, 1):
        qkv, bias = inputs(n, queries, kind)
        sink = torch.linspace(-302, -296, 4)
        longest = float(qkv[2].double().norm(dim=-1).max())
        for softcap, sinks, window in itertools.product((None, 2.0), (None, sink), (None, n // 3)):
            options = {"softcap": softcap, "sink": sinks, "window": window}
            added = bias.to(EXACT[kind])
            want, want_lse = dense(*qkv, added, **options)
            for autocast, learned, with_lse in itertools.product(AUTOCAST, (False, True), (False, True)):
                given = added.clone().requires_grad_(learned)
                with casting(autocast):
                    out = attention(*qkv, given, return_lse=with_lse, **options)
                out, lse = out if with_lse else (out, None)
                said = (kind, n, queries, options, autocast, learned, with_lse)
                assert out.dtype == kind, said
                error = float((out.detach().double() - want).norm(dim=-1).max())
                assert error <= (3 * half_unit(kind) + OWN[kind]) * longest, (said, error / longest)
                if lse is not None:
                    assert lse.dtype == EXACT[kind], said
                    assert float((lse.detach().double() - want_lse).abs().max()) <= OWN[kind], said


@pytest.mark.parametrize("autocast", AUTOCAST, ids=str)
@pytest.mark.parametrize("n", [20, 300, 500])
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_gradients_are_of_the_type_of_what_they_belong_to_and_autocast_rounds_none(kind, n, autocast):
    qkv, bias = inputs(n, n, kind)
    sink = torch.full((4,), -300.0, dtype=EXACT[kind])
    leaves = [x.clone().requires_grad_() for x in (*qkv, bias.to(EXACT[kind]), sink)]
    doubles = [x.detach().double().requires_grad_() for x in leaves]
    weight = torch.randn(1, 4, n, 8, generator=torch.Generator().manual_seed(1)).to(kind)
    for options in ({}, {"softcap": 2.0}, {"sink": leaves[4]}):
        wanted, exact = (x if "sink" in options else x[:4] for x in (leaves, doubles))
        with casting(autocast):
            out = attention(*leaves[:4], **options)
            (out * weight).sum().backward(inputs=wanted)  # the backward pass inside autocast too
        theirs = dense(*doubles[:4], **{**options, **({"sink": doubles[4]} if "sink" in options else {})})[0]
        for x, y in zip(wanted, torch.autograd.grad((theirs * weight.double()).sum(), exact), strict=True):
            assert x.grad.dtype == x.dtype
            unit = 40 * (half_unit(kind) + OWN[kind])
            assert float((x.grad.double() - y).abs().max()) <= unit * (1 + float(y.abs().max())), options
            x.grad = None


@pytest.mark.parametrize("n", [300, 500])
@pytest.mark.parametrize(("kind", "inner"), [*itertools.product(TYPES, TYPES)], ids=str)
def test_another_type_to_compute_in_rounds_the_inputs_and_nothing_else(kind, inner, n):
    qkv, bias = inputs(n, n, kind)
    out = attention(*qkv, bias.to(torch.float64), dtype=inner)
    assert out.dtype == kind
    rounded = [x.to(inner) for x in qkv]
    want = dense(*rounded, bias.to(EXACT[inner]))[0]
    longest = float(rounded[2].double().norm(dim=-1).max())
    unit = 3 * half_unit(inner) + 3 * half_unit(kind) + max(OWN[inner], OWN[kind] if kind.itemsize == 4 else 0.0)
    assert float((out.double() - want).norm(dim=-1).max()) <= unit * longest


@pytest.mark.parametrize("autocast", AUTOCAST, ids=str)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_the_definition_computes_in_float32_and_rounds_once(kind, autocast):
    qkv, bias = inputs(60, 60, kind)
    with casting(autocast):
        out, lse = reference(*qkv, bias, softcap=2.0)
        inside = reference(*qkv, bias, softcap=2.0, dtype=torch.float64)
    assert (out.dtype, lse.dtype, inside[0].dtype) == (kind, EXACT[kind], torch.float64)
    want, _ = dense(*qkv, bias, softcap=2.0)
    longest = float(qkv[2].double().norm(dim=-1).max())
    assert float((out.double() - want).norm(dim=-1).max()) <= (half_unit(kind) + OWN[kind]) * longest
    assert float((inside[0] - want).abs().max()) <= 1e-11


def test_a_narrow_bias_is_the_numbers_that_it_holds(draw):
    for n in (50, 500):
        q, k, v = draw(1, 2, n, 8)
        bias = Bias("alibi", 2)(n).to(torch.bfloat16)
        torch.testing.assert_close(attention(q, k, v, bias), attention(q, k, v, bias.float()))


@pytest.mark.parametrize("large", [3e38, 1e20])
@pytest.mark.parametrize("n", [30, 300, 500])
def test_outputs_whose_sum_overflows_are_finite(large, n, draw):
    q, k, v = draw(2, 2, n, 16)
    out = attention(q, k, v.abs().clamp(0.5, 1.0) * large, Bias("alibi", 2)(n))
    assert bool(out.isfinite().all())
