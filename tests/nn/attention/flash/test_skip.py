"""Skipping loses nothing: what it leaves out is below half a unit in the last place, and every row proves it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.nn import Bias, attention, reference
from farfield.nn.attention.flash.skip import BiasSums, SkipCertificate

ULP = 2.0**-24


def worst(x: torch.Tensor) -> float:
    return float(x.detach().abs().max())


@pytest.fixture
def touched(monkeypatch):
    """How many keys each chunk touched, for every call since."""
    from farfield.nn.attention.flash import operator

    seen = []
    kernel = operator._forward

    def counted(q, k, *rest, **options):
        seen.append(k.shape[2])
        return kernel(q, k, *rest, **options)

    monkeypatch.setattr(operator, "_forward", counted)
    return seen


@pytest.mark.parametrize("name", ["alibi", "type2", "kerple-power"])
@pytest.mark.parametrize("scale", [0.02, 0.125, 0.5])
def test_the_result_is_the_full_one_to_rounding(name, scale, draw, touched):
    n = 2500
    q, k, v = draw(1, 8, n, 64)
    bias = Bias(name, 8, parameters={"a": 1 / 16, "p": 1} if name == "kerple-power" else None)(n)
    exact, _ = reference(q, k, v, bias, scale=scale, dtype=torch.float64)
    full = attention(q, k, v, bias, scale=scale, skip=False)
    every = sum(touched)
    touched.clear()
    ours = attention(q, k, v, bias, scale=scale)
    assert worst(ours - exact) <= worst(full - exact) + 2 * ULP * worst(v.norm(dim=-1))
    assert float((ours - full).abs().max()) < 2e-6
    if scale < 0.5:
        assert sum(touched) / 8 < 0.95 * every


def test_a_power_law_skips_nothing_and_stays_identical(draw):
    q, k, v = draw(1, 8, 2500, 16)
    bias = Bias("type1", 8)(2500)
    assert torch.equal(attention(q, k, v, bias), attention(q, k, v, bias, skip=False))


def test_the_distance_is_the_smallest_that_the_rule_allows():
    # ALiBi with slope k: head(w) / tail(w) = exp(k*w) - 1, so exp(x) * tail <= 2^-24 head at w = log(1 + 2^24 e^x) / k
    bias = Bias("alibi", 2, parameters={"k": [0.5, 0.05]})(100_000)
    sums = BiasSums(bias, torch.float32, learned=False)
    for x in (0.0, 3.0, 8.0):
        want = [int(torch.tensor(1 + 2.0**24 * torch.e**x, dtype=torch.float64).log() / k) + 1 for k in (0.5, 0.05)]
        assert sums.window(torch.full((2,), x, dtype=torch.float64)).tolist() == want


def test_a_bias_that_falls_and_rises_again_is_not_skipped(draw):
    n = 3000
    q, k, v = draw(1, 2, n, 16)
    t = torch.arange(n)
    bias = torch.stack([-0.2 * t, torch.where(t < 2900, -0.2 * t, 0.0)])  # a far echo in the second head
    exact, _ = reference(q, k, v, bias, dtype=torch.float64)
    assert float((attention(q, k, v, bias) - exact).abs().max()) < 2e-6


@pytest.mark.parametrize("late", [False, True])
def test_a_far_key_that_a_row_attends_to_is_never_skipped(late, draw, touched):
    # one key early on answers one query late on with a logit of 200, which outweighs a bias of -2000/16
    n = 2048
    q, k, v = draw(1, 8, n, 16)
    q, k = 0.05 * q, 0.05 * k
    k[:, :, 40] = 8.0
    q[:, :, 2000 if late else 1100] = 6.5
    bias = Bias("alibi", 8, parameters={"k": 1 / 16})(n)
    exact, _ = reference(q, k, v, bias, dtype=torch.float64)
    ours = attention(q, k, v, bias)
    assert float((ours - exact).abs().max()) < 2e-5
    row = 2000 if late else 1100
    assert torch.allclose(ours[0, :, row], v[0, :, 40], atol=1e-5)
    assert n in touched or max(touched) > 1100  # the chunk of that row was computed again with every key


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    growth=st.sampled_from([0.0, 1.0, 3.0]),
    spikes=st.integers(0, 6),
    slope=st.sampled_from([0.02, 0.1, 1.0]),
)
def test_norms_that_grow_and_spike_lose_nothing_either(seed, growth, spikes, slope):
    torch.manual_seed(seed)
    n = 1300
    q, k, v = (torch.randn(1, 1, n, 8) for _ in range(3))
    size = torch.exp(growth * torch.arange(n) / n)[:, None]
    q, k = q * size, k * size
    for _ in range(spikes):
        q[0, 0, torch.randint(n, ())] *= 20
        k[0, 0, torch.randint(n, ())] *= 20
    bias = Bias("alibi", 1, parameters={"k": slope})(n)
    exact, exact_lse = reference(q, k, v, bias, dtype=torch.float64)
    full, full_lse = attention(q, k, v, bias, skip=False, return_lse=True)
    ours, lse = attention(q, k, v, bias, return_lse=True)
    assert worst(ours - exact) <= 1.1 * worst(full - exact) + 2 * ULP * worst(v.norm(dim=-1))
    assert worst(lse - exact_lse) <= 1.1 * worst(full_lse - exact_lse) + 2 * ULP


def test_the_certificate_holds_for_each_row_against_the_true_mass(draw):
    """What a certain row leaves out is at most 2^-24 of its attention, by the definition in float64."""
    n = 900
    q, k, _ = draw(1, 2, n, 16)
    bias = Bias("alibi", 2, parameters={"k": [0.1, 0.5]})(n)
    proof = SkipCertificate(BiasSums(bias, torch.float32, learned=False), q[0], k[0], torch.ones_like(k[0]), 0.25)
    t = torch.arange(n)[:, None] - torch.arange(n)
    logits = (q @ k.mT * 0.25)[0].double() + bias[:, t.clamp(min=0)].double()
    logits = logits.masked_fill(t < 0, -torch.inf)
    some = False
    for a, b, s in ((300, 492, 200), (492, 684, 100), (684, 876, 600)):
        lse = logits[:, a:b, s:].logsumexp(-1)
        left_out = logits[:, a:b, :s].exp().sum(-1) / logits[:, a:b].exp().sum(-1)
        unsure = proof.uncertain(a, b, s, lse)
        sure = torch.ones_like(left_out, dtype=torch.bool) if unsure is None else ~unsure
        assert float(left_out[sure].max()) <= ULP
        some |= bool(sure.any())
    assert some


@pytest.mark.parametrize("learned", [False, True])
def test_gradients_lose_nothing(learned, draw):
    n = 2300
    q, k, v = (x.requires_grad_() for x in draw(1, 4, n, 16))
    module = Bias("-a*t", 4, parameters={"a": {"start": (0.05, 0.5), "least": 0.01}})
    module.reset_parameters(torch.Generator().manual_seed(0))
    weight = torch.randn(1, 4, n, 16)
    leaves = (q, k, v, module.learned["a"]) if learned else (q, k, v)
    found = []
    for skip in (True, False):
        bias = module(n) if learned else module(n).detach()
        found.append(torch.autograd.grad((attention(q, k, v, bias, skip=skip) * weight).sum(), leaves))
    for a, b in zip(*found, strict=True):
        assert float((a - b).abs().max()) <= 3e-6 * (1 + float(b.abs().max()))


def test_inputs_that_are_not_finite_are_never_skipped_over(draw, touched):
    q, k, v = draw(1, 1, 2000, 8)
    k[0, 0, 3] = float("inf")
    bias = Bias("alibi", 1, parameters={"k": 0.5})(2000)
    attention(q, k, v, bias)
    assert max(touched) == 2000


def test_float64_is_skipped_only_below_its_own_rounding(draw):
    q, k, v = draw(1, 1, 1500, 8, dtype=torch.float64)
    bias = Bias("alibi", 1, parameters={"k": 0.5})(1500).double()
    exact, _ = reference(q, k, v, bias)
    assert float((attention(q, k, v, bias) - exact).abs().max()) < 1e-14
