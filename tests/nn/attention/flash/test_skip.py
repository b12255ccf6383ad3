"""Skipping loses nothing: what it leaves out is below half a unit in the last place, and every row proves it."""

import contextlib
import random
from contextlib import contextmanager

import pytest
import torch
from dense_attention import dense
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.nn import Bias, attention, reference
from farfield.nn.attention.flash import operator
from farfield.nn.attention.flash.skip import BiasSums, SkipCertificate

ULP = 2.0**-24


def worst(x: torch.Tensor) -> float:
    return float(x.detach().abs().max())


@pytest.fixture
def touched(monkeypatch):
    """How many keys each chunk touched, for every call since."""
    seen = []
    kernel = operator.flash_forward

    def counted(q, k, *rest, **options):
        seen.append(k.shape[2])
        return kernel(q, k, *rest, **options)

    monkeypatch.setattr(operator, "flash_forward", counted)
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


@contextmanager
def limit_of_float32():
    """Float64 may skip what float32 may: what is then missing is what was skipped, and no rounding hides it."""
    from farfield.nn.attention.flash import operator

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operator, "BiasSums", lambda bias, _, learned: BiasSums(bias, torch.float32, learned))
        yield


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    growth=st.sampled_from([0.0, 1.0, 3.0]),
    spikes=st.integers(0, 6),
    slope=st.sampled_from([0.02, 0.1, 1.0]),
)
def test_norms_that_grow_and_spike_lose_nothing_either(seed, growth, spikes, slope):
    """At most 2^-24 of a row's attention is skipped, in float64; float32 errs by its rounding and no more.

    A log-sum-exp of float32 cannot show the first: near 13 its last place is 2^-20, and a call that skips hands the
    kernel other blocks of keys, which it adds in another order. Seed 0, growth 1, no spikes and slope 0.1 with AVX2:
    off by 3.35e-6 with skipping and by 2.42e-6 without, one last place apart. Less than 2e-14 of
    the row was skipped.
    """
    torch.manual_seed(seed)
    n, width = 1300, 8
    q, k, v = (torch.randn(1, 1, n, width) for _ in range(3))
    size = torch.exp(growth * torch.arange(n) / n)[:, None]
    q, k = q * size, k * size
    for _ in range(spikes):
        q[0, 0, torch.randint(n, ())] *= 20
        k[0, 0, torch.randint(n, ())] *= 20
    bias = Bias("alibi", 1, parameters={"k": slope})(n)
    exact, exact_lse = reference(q, k, v, bias, dtype=torch.float64)
    # In units of half a last place: a dot product and its scaling err by `width` + 1 of |q| |k|, adding the bias,
    # taking off the maximum and adding it again by one each of the numbers that they give, torch's exponential by
    # 40, and a sum of n positive numbers by n in whatever order. None of this depends on the processor.
    largest = (q.norm(dim=-1) * k.norm(dim=-1).cummax(-1).values * width**-0.5).double()
    units = (width + 4) * largest + 4 * exact_lse.abs() + n + 64
    for dtype, rounding in ((torch.float64, 2.0**-53 * units), (torch.float32, ULP * units)):
        with limit_of_float32():
            ours, lse = attention(*(x.to(dtype) for x in (q, k, v, bias)), return_lse=True)
        assert bool(((lse - exact_lse).abs() <= ULP + rounding).all())
        assert bool(((ours - exact).norm(dim=-1) <= (2 * ULP + 3 * rounding) * worst(v.norm(dim=-1))).all())


@pytest.mark.parametrize(("start", "share"), [(300, 0.9), (500, 0.99), (600, 0.98)])
def test_the_limit_is_reached_and_not_passed(start, share):
    # keys that point where the queries do reach Cauchy-Schwarz's bound; those from `start` on are shorter, so that a
    # query that grows within a chunk gives the skipped ones more and more, up to the row that is computed again
    n = 1300
    q = torch.exp(5 * torch.arange(n, dtype=torch.float64) / n)[None, None, :, None]
    k = torch.where(torch.arange(n) < start, 1.0, 0.3).double()[None, None, :, None]
    bias = Bias("alibi", 1, parameters={"k": 0.1})(n).double()
    _, exact_lse = reference(q, k, k, bias)
    with limit_of_float32():
        _, lse = attention(q, k, k, bias, return_lse=True)
    assert share * ULP <= float((exact_lse - lse).max()) <= ULP


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


def test_the_certificate_allows_for_the_rounding_of_dot_products():
    """Long keys across the queries, short ones along them before: float32 rounds the former's logits by nats."""
    n, width, (a, b, s) = 700, 16, (444, 700, 300)
    t = torch.arange(n)[:, None] - torch.arange(n)
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        along = torch.randn(width, generator=draw)
        along /= along.norm()
        k = torch.randn(n, width, generator=draw)
        k = 1e8 * (k - (k @ along)[:, None] * along)
        k[:s] = 25 * torch.rand((), generator=draw) * along
        q, bias = along.expand(1, n, width), Bias("alibi", 1, parameters={"k": 0.1})(n)
        mask = bias[:, t.clamp(min=0)].masked_fill(t < 0, -torch.inf)
        logits = (q.double() @ k.double().mT) + mask
        lse = (q[:, a:b] @ k[s:].mT + mask[:, a:b, s:]).logsumexp(-1)
        left_out = (logits[:, a:b, :s].logsumexp(-1) - logits[:, a:b].logsumexp(-1)).exp()
        proof = SkipCertificate(BiasSums(bias, torch.float32, learned=False), q, k[None], torch.ones(1, n, 1), 1.0)
        unsure = proof.uncertain(a, b, s, lse)
        assert not bool((left_out if unsure is None else left_out[~unsure]).gt(ULP).any())


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


class RecordedProof(SkipCertificate):
    """The proof of a run of heads, and what it said of each chunk: rows, first key, and which rows are certain."""

    def __init__(self, sums, q, k, v, scale, softcap=None):
        super().__init__(sums, q, k, v, scale, softcap)
        self.given, self.chunks = (q, k, v, scale, softcap), []

    def uncertain(self, a, b, s, lse):
        said = super().uncertain(a, b, s, lse)
        self.chunks.append((a, b, s, torch.ones(lse.shape, dtype=torch.bool) if said is None else ~said))
        return said


def one_proof(seed, monkeypatch):
    """A text made to be skipped, or to be skipped wrongly; what certain rows leave out is counted in float64."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    n, shared, group, d = rng.choice([600, 900, 1300]), rng.choice([1, 2]), rng.choice([1, 2]), rng.choice([4, 16])
    heads, kind = (
        shared * group,
        rng.choice([torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64]),
    )
    size = rng.choice([0.2, 1.0, 3.0])
    q, k, v = torch.randn(1, heads, n, d) * size, torch.randn(1, shared, n, d) * size, torch.randn(1, shared, n, d)
    for _ in range(rng.choice([0, 0, 1, 4])):  # keys and queries far larger than all before
        q[0, :, rng.randrange(n)] *= rng.choice([5, 20])
        k[0, :, rng.randrange(n)] *= rng.choice([5, 20])
    if rng.random() < 0.3:  # far values far larger than near ones
        v[0, :, : n // 4] *= rng.choice([10.0, 1e3])
    if rng.random() < 0.3:  # near keys against the query, far keys along it
        sign = torch.where(torch.arange(n) < rng.randrange(1, n), 1.0, -1.0)[:, None]
        direction = torch.nn.functional.normalize(torch.randn(d), dim=0) * size
        q, k = direction.expand_as(q).clone(), (direction * sign).expand_as(k).clone()
    slope = torch.tensor([rng.choice([0.02, 0.05, 0.3, 1.0]) for _ in range(heads)])
    bias = -slope[:, None] * torch.arange(float(n)) - rng.choice([0, 0, 300])
    if rng.random() < 0.3:
        bias[:, n - rng.randrange(1, 60) :] = float(bias[0, 0])  # a far echo
    softcap = rng.choice([None, None, 3.0, 30.0])
    sink = rng.choice([None, None, torch.randn(heads) * 3])
    autocast = rng.choice([None, None, torch.bfloat16, torch.float16])
    q, k, v = (x.to(kind) for x in (q, k, v))
    proofs, part = [], BiasSums.of

    def with_heads(sums, heads):
        some = part(sums, heads)
        some.heads = heads
        return some

    monkeypatch.setattr(BiasSums, "of", with_heads)
    monkeypatch.setattr(operator, "SkipCertificate", lambda *args: proofs.append(RecordedProof(*args)) or proofs[-1])
    with contextlib.nullcontext() if autocast is None else torch.autocast("cpu", dtype=autocast):
        ours = attention(q, k, v, bias, softcap=softcap, sink=sink)
        full = attention(q, k, v, bias, softcap=softcap, sink=sink, skip=False)
    monkeypatch.undo()
    exact = dense(q, k, v, bias, softcap=softcap, sink=sink)[0]
    assert ours.dtype == kind
    half, longest = torch.finfo(kind).eps / 2, float(v.double().norm(dim=-1).max())
    assert worst(ours - exact) <= 1.1 * worst(full - exact) + 2 * (ULP + (half if kind.itemsize == 2 else 0)) * longest
    unit = 2.0**-53 if kind == torch.float64 else ULP
    left_out = 0
    position = torch.arange(n)
    for proof in proofs:
        queries, keys, values, scale, cap = (x.double() if isinstance(x, torch.Tensor) else x for x in proof.given)
        for h in range(len(queries)):
            scores = queries[h] @ keys[h].mT * scale
            scores = scores if cap is None else cap * torch.tanh(scores / cap)
            t = position[:, None] - position
            logits = (scores + bias[proof.sums.heads][h].double()[t.clamp(min=0)]).masked_fill(t < 0, -torch.inf)
            for a, b, s, certain in proof.chunks:
                if s == 0 or not bool(certain[h].any()):
                    continue
                weights = logits[a:b].softmax(-1)[certain[h]]
                touched = float(values[h][s : a + 1].norm(dim=-1).max())
                moved = (weights[:, :s] @ values[h][:s]).norm(dim=-1)
                assert float(weights[:, :s].sum(-1).max()) <= unit, (seed, "share")
                assert float(moved.max()) <= unit * touched, (seed, "values")
                left_out += 1
    return left_out


def test_no_proof_is_wrong_in_forty_cases(monkeypatch):
    assert sum(one_proof(seed, monkeypatch) for seed in range(40)) > 50  # chunks with keys that were left out


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_no_proof_is_wrong_in_3_000_cases(part, monkeypatch):
    assert sum(one_proof(seed, monkeypatch) for seed in range(100 + 300 * part, 400 + 300 * part)) > 300
