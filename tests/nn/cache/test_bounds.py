"""The certificate against full attention in float64: random and adversarial texts, and not one violation."""

import contextlib
import math
import random
import warnings
from types import SimpleNamespace

import pytest
import torch

from farfield.nn.attention.contract import upper_norm
from farfield.nn.bias import Bias
from farfield.nn.cache import cache as caches
from farfield.nn.cache import layer as cachelayer
from farfield.nn.cache.cache import BoundedCache
from farfield.nn.cache.certificate import HeadBounds, slack
from farfield.nn.decoder.interface import attend
from farfield.nn.decoder.masks import Meaning
from farfield.theory.fields.windows import largest_share, log_sums, smallest_window, weights_of

ENCODINGS = ["-t/2", "-t/16", "-t/256", "-log(3 + t/4)**2", "-sqrt(t)", "-sqrt(t)/4", "-2*log(t + 1)", "1 - t**1.5/9",
             "-300 - t/16", "-300 - t/256"]  # fmt: skip
KINDS = ["gauss", "large far key", "adversary", "aligned values", "tiny", "huge", "one sign", "half steps"]
TYPES = [torch.float32, torch.float32, torch.bfloat16, torch.float16, torch.float64]


def stub(encoding, heads):
    """All that a cache asks of a model with one layer."""
    sizes = {"num_hidden_layers": 1, "num_attention_heads": heads, "shared_bias": True}
    config = SimpleNamespace(model_type="farfield", encoding=encoding, **sizes)
    return SimpleNamespace(config=config, position=SimpleNamespace(bias=Bias(encoding, heads), sets=1))


def text(kind, rng, batch, heads, n, d):
    """Queries, keys and values of one text, (B, H, n, d)."""
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    q, k, v = (torch.randn(batch, heads, n, d, generator=generator) for _ in range(3))
    size = rng.choice([0.3, 1.0, 3.0])
    q, k = q * size, k * size
    if kind == "large far key":  # one key, early on, that every later query points at
        q = q.abs()
        k[:, :, rng.randrange(max(1, n // 3))] = rng.choice([5.0, 30.0])
    elif kind in ("adversary", "aligned values"):  # near keys against the query, far keys along it
        direction = torch.nn.functional.normalize(torch.randn(d, generator=generator), dim=0)
        turn = rng.randrange(1, n) if n > 1 else 1
        sign = torch.where(torch.arange(n) < turn, 1.0, -1.0)[:, None]
        q, k = (direction * size * 2).expand_as(q).clone(), (direction * size * sign).expand_as(k).clone()
        if kind == "aligned values":
            v = (direction * sign * 7).expand_as(v).clone()
    elif kind == "tiny":
        q, k, v = q * 1e-20, k * 1e-20, v * 1e-20
    elif kind == "huge":
        q, k, v = q * 1e3, k * 1e3, v * 1e6
    elif kind == "one sign":  # sums of values that leave float16's range
        v = v.abs() * 30 + 40
    elif kind == "half steps":  # numbers that lie between two of bfloat16 and of float16
        q, k = (x.sign() * 2.0 ** x.abs().log2().round() * (1 + 2.0**-9 + 2.0**-12) for x in (q, k))
        v = v.sign() * (1 + 2.0**-9 + 2.0**-12)
    return q, k, v


def chunks(rng, n):
    """The text in pieces: single tokens, a few, many."""
    rest = n
    while rest:
        piece = min(rest, rng.choice([1, 1, 1, 2, 7, 40, n]))
        yield piece
        rest -= piece


def one_case(seed, monkeypatch, longest=150):
    """Feed one text to a cache, chunk by chunk, and hold every row's certificate against full attention in float64."""
    rng = random.Random(seed)
    kind, encoding, dtype = KINDS[seed % len(KINDS)], rng.choice(ENCODINGS), rng.choice(TYPES)
    batch, shared, group, d = rng.choice([1, 1, 2]), rng.choice([1, 3]), rng.choice([1, 2]), rng.choice([1, 4, 16])
    heads = shared * group
    n = rng.choice([1, 2, 9, 40, 90, longest])
    autocast = rng.choice([None, None, torch.bfloat16, torch.float16])
    if kind == "huge" and dtype == torch.float16:
        kind = "adversary"  # float16 ends at 65,504
    q, k, v = (x.to(dtype) for x in text(kind, rng, batch, heads, n, d))
    k, v = (x[:, ::group].repeat_interleave(group, 1) for x in (k, v))
    start = torch.tensor([rng.randrange(n) if batch > 1 and i else 0 for i in range(batch)])
    real = torch.arange(n) >= start[:, None]
    scale = d**-0.5
    truth = q.double() @ k.double().mT * scale
    softcap = rng.choice([None, None, 0.5, 20.0])
    if softcap is not None:
        truth = softcap * torch.tanh(truth / softcap)
    sink = rng.choice([None, None, torch.tensor([rng.uniform(-5, 5) for _ in range(heads)])])
    own = float(truth.abs().max()) * (1 + 1e-12)
    bound = rng.choice([0, 0.01, min(own, 200.0), None])
    policy = rng.choice(["warn", "warn", "widen"])
    epsilon = rng.choice(["0.99", "0.7", "0.1", "1e-2", "1e-4"])
    if bound is None:
        monkeypatch.setattr(caches, "LEAST", rng.choice([1, 8]))
    rows = []

    def recorded(*args):
        result = computed(*args)
        rows.append((result, args[5].dropped))
        return result

    computed = HeadBounds.rows
    monkeypatch.setattr(HeadBounds, "rows", recorded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cache = BoundedCache(stub(encoding, heads), epsilon, logit_bound=bound, policy=policy)
        more = SimpleNamespace(window=None, sink=None, bias=None, cache=cache)  # as a layer of another model has it
        module = SimpleNamespace(layer_idx=0, farfield_bias=more, training=False)
        out, sees = [], []
        a = 0
        for piece in chunks(rng, n):
            b = a + piece
            mask = cache.given_mask = None if batch == 1 else real[:, :b]
            x, y, z = (each[:, :, a:b] for each in (q, k, v))
            with contextlib.nullcontext() if autocast is None else torch.autocast("cpu", dtype=autocast):
                if group == 1:
                    out.append(cache.attend(x, y, z, 0, mask, sink=sink, softcap=softcap))
                else:
                    given = {"s_aux": sink, "softcap": softcap, "scaling": scale}
                    few = y[:, ::group], z[:, ::group]
                    out.append(attend(module, x, *few, Meaning(piece, piece), **given)[0].transpose(1, 2))
            assert out[-1].dtype == dtype
            a = b
            sees += [[ring.window for h in range(heads) for ring in cache.layers[0].rings if h in ring.heads]] * piece
    monkeypatch.undo()
    share = torch.cat([r[0].share for r in rows], 2)
    change, rounding = (torch.cat([getattr(r[0], name) for r in rows], 2) for name in ("change", "rounding"))
    dropped = torch.cat([r[1] for r in rows], 2)
    out = torch.cat(out, 2).double()

    position = torch.arange(n)
    t = position[:, None] - position
    causal = (t >= 0) & real[:, None, None, :]
    weights = [weights_of(encoding)] * heads
    for exact in (True, False):  # the bias as the formula has it, and as float32 has it
        bias = Bias(encoding, heads).double()(n) if not exact else None
        if exact:
            bias = torch.tensor([[weights[0].formula.float(float(x)) for x in range(n)]], dtype=torch.float64)
        logits = (truth + bias[:, t.clamp(min=0)]).masked_fill(~causal, -math.inf)
        top = logits.amax(-1, keepdim=True).clamp(min=-1e300)
        p = (logits - top).exp()
        more = 0.0 if sink is None else (sink.double()[:, None, None] - top).exp()
        p = (p / (p.sum(-1, keepdim=True) + more)).nan_to_num(0.0)  # padding sees nothing
        full = p @ v.double()
        moved = torch.linalg.vector_norm(full - out, dim=-1)
        good = (moved <= (change + rounding) * (1 + 1e-12)) | ~real[:, None]
        assert bool(good.all()), (
            seed,
            kind,
            encoding,
            dtype,
            autocast,
            softcap,
            sink,
            "output",
            float((moved - change - rounding)[~good].max()),
        )
        if policy == "warn" and bound is not None:  # windows never changed: what was lost is known exactly
            window = torch.tensor(sees).T[None, :, :, None]
            lost = (p * (t >= window)).sum(-1)
            good = (lost <= share * (1 + 1e-12)) | ~real[:, None]  # the truth has the rounding of float64
            assert bool(good.all()), (seed, kind, encoding, "share", float((lost - share)[~good].max()))
            assert bool(((lost == 0) | dropped | ~real[:, None]).all()), (seed, "a key was lost unnoticed")
            if bound == min(own, 200.0) and own <= 200:  # the bound before inference, for the largest score
                assert float(lost.max()) <= float(epsilon) * (1 + 1e-12), (seed, kind, encoding)
    if policy == "warn" and bound is not None:
        below_the_static_bound(share, dropped, q, k, scale, weights, sees[-1], real)
    table = cache.certificate()
    assert max(r.share for r in table.rows) >= float(share.max()) * (1 - 1e-15)
    assert max(r.rounding for r in table.rows) >= float(rounding.max()) * (1 - 1e-15)
    assert table.tokens == n


def below_the_static_bound(share, dropped, q, k, scale, weights, windows, real):
    """The certificate at run time never exceeds the bound before inference for the row's own M = |q|*max|k|/sqrt(d)."""
    key = upper_norm(k).masked_fill(~real[:, None], 0.0).cummax(-1).values
    m = upper_norm(q) * key * scale * (1 + 2e-9)
    for h, window in enumerate(windows):
        sums = log_sums(weights[h], window)
        static = torch.sigmoid(2 * m[:, h] + sums.tail - sums.head + 1e-8 * (1 + m[:, h])).clamp(min=1e-300) * (
            1 + 1e-9
        )
        assert bool((share[:, h] <= static)[dropped[:, h]].all())
        if bool(dropped[:, h].any()):
            own = float(m[:, h][dropped[:, h]].max())
            if own < 300:  # the float form above is the certified one, but for the rounding of the bias to float32
                exact = float(largest_share(weights[h], window, repr(own)).upper())
                assert float(static[dropped[:, h]].max()) <= exact * (1 + 1e-3)


def test_no_violation(monkeypatch):
    """Types, autocast, soft caps, sinks, grouped queries, padding; constructed texts among them."""
    for seed in range(300):
        one_case(seed, monkeypatch)


def test_no_violation_past_what_is_computed_at_once(monkeypatch):
    for seed in range(300, 324):
        one_case(seed, monkeypatch, longest=700)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_no_violation_in_10_000_cases(part, monkeypatch):
    for seed in range(1000 + 1000 * part, 2000 + 1000 * part):
        one_case(seed, monkeypatch, longest=700 if seed % 10 == 0 else 150)


def test_a_window_of_one_token(monkeypatch):
    """Every key but the query's own is dropped, and the certificate still holds."""
    torch.manual_seed(1)
    q, k, v = torch.randn(3, 1, 2, 60, 8)
    cache = BoundedCache(stub("-2*t", 2), "0.9", logit_bound=0, policy="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = torch.cat(
            [cache.attend(q[:, :, i : i + 1], k[:, :, i : i + 1], v[:, :, i : i + 1], 0) for i in range(60)], 2
        )
    assert [r.window for r in cache.certificate().rows] == [1, 1]
    torch.testing.assert_close(out, v)
    logits = q.double() @ k.double().mT * 8**-0.5
    t = torch.arange(60)[:, None] - torch.arange(60)
    p = (logits - 2.0 * t).masked_fill(t < 0, -math.inf).softmax(-1)
    lost = 1 - p.diagonal(dim1=-2, dim2=-1)
    for h, row in enumerate(cache.certificate().rows):
        assert float(lost[0, h].max()) <= row.share <= 1


def test_the_certificate_is_attained():
    """Near keys orthogonal to the query, far keys along it: the certificate is the truth, but for float32's slack."""
    n, d, window = 3000, 4, 50
    q = torch.zeros(1, 1, n, d)
    q[..., 0] = 2.0
    k = torch.zeros(1, 1, n, d)
    k[:, :, :-window, 0] = 1.5  # all that the last query no longer sees
    v = torch.randn(1, 1, n, d)
    cache = BoundedCache(stub("-t/16", 1), "0.05", logit_bound="0.05", policy="warn")
    with pytest.warns(caches.CertificateWarning, match="head 1 in layer 1"):
        cache.attend(q, k, v, 0)
    row = cache.certificate().rows[0]
    assert row.window == window == smallest_window(weights_of("-t/16"), "0.05", "0.05")
    weight = torch.exp(-torch.arange(n, dtype=torch.float64) / 16 + torch.where(torch.arange(n) < window, 0.0, 1.5))
    lost = float(weight[window:].sum() / weight.sum())
    assert lost <= row.share <= lost * 1.002


def test_one_large_key_does_not_count_for_ever():
    """Dropped keys that have moved far away are bounded by the tail from there on, not from the window on."""
    torch.manual_seed(3)
    q, k, v = torch.randn(3, 1, 1, 600, 4)
    k[:, :, 0] = 10.0
    cache = BoundedCache(stub("-t/4", 1), "0.1", logit_bound=3, policy="warn")
    window = cache.certificate().rows[0].window
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cache.attend(*(x[:, :, : 4 * window] for x in (q, k, v)), 0)  # in one piece: one age
        early = cache.certificate().rows[0]
        for a in range(4 * window, 600, window):
            cache.attend(*(x[:, :, a : a + window] for x in (q, k, v)), 0)
    late = cache.certificate().rows[0]
    assert early.over > 0
    assert late.over < early.over + 4 * window  # of 600: from then on nothing is over


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 3e38])
def test_numbers_that_are_none_certify_nothing(bad):
    q, k, v = torch.randn(3, 1, 1, 40, 4)
    k[:, :, 3] = bad
    cache = BoundedCache(stub("-t/2", 1), "0.5", logit_bound=0, policy="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cache.attend(q, k, v, 0)
    assert cache.certificate().rows[0].share == 1.0


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize(("d", "n", "size"), [(4, 7, 1.0), (64, 500, 1.0), (64, 500, 4.0), (128, 4096, 2.0)])
def test_the_kernel_errs_less_than_the_slack(kind, d, n, size):
    torch.manual_seed(n)
    q, k, v = (size * torch.randn(3, 1, 2, n, d)).to(kind)
    q = q[:, :, -1:]
    bias = -torch.arange(n, dtype=torch.float64).flip(0) / 16
    line = bias.to(torch.promote_types(kind, torch.float32)).expand(1, 2, 1, n)
    _, lse = cachelayer._flash(q, k, v, 0.0, False, attn_mask=line, scale=d**-0.5)
    exact = (q.double() @ k.double().mT * d**-0.5 + bias).logsumexp(-1)
    score = upper_norm(q) * upper_norm(k).amax(-1, keepdim=True) * d**-0.5
    assert bool(((lse.double() - exact).abs() <= slack(q, score, lse.double(), n)).all())


@pytest.mark.parametrize(("kind", "most"), [(torch.float32, 1e-3), (torch.bfloat16, 0.02), (torch.float16, 0.03)])
def test_rounding_is_counted_and_not_by_much_too_much(kind, most):
    """With nothing dropped the output still is not exact: without the rounding the certificate would be wrong."""
    torch.manual_seed(4)
    q, k, v = torch.randn(3, 1, 1, 200, 16).to(kind)
    cache = BoundedCache(stub("-t/2", 1), "1e-3")
    out = cache.attend(q, k, v, 0).double()
    t = torch.arange(200)[:, None] - torch.arange(200)
    logits = (q.double() @ k.double().mT / 4 - t / 2).masked_fill(t < 0, -math.inf)
    moved = float((logits.softmax(-1) @ v.double() - out).norm(dim=-1).max())
    row = cache.certificate().rows[0]
    assert row.change < moved <= row.change + row.rounding <= most * float(v.double().norm(dim=-1).max())


def test_norms_are_never_too_small():
    torch.manual_seed(2)
    for scale in (1e-30, 1e-15, 1.0, 1e15):
        x = torch.randn(1000, 48) * scale
        exact = x.double().pow(2).sum(-1).sqrt()
        assert bool((upper_norm(x) >= exact).all())
        assert bool((upper_norm(x) <= exact * (1 + 1e-5) + 1e-17).all())
    assert math.isinf(float(upper_norm(torch.full((4,), 1e30))))


def test_a_layer_of_another_model_hands_its_sink_and_soft_cap_to_the_cache():
    torch.manual_seed(5)
    q, k, v = torch.randn(3, 1, 2, 30, 8)
    made = stub("-t/2", 2)
    more = SimpleNamespace(window=None, sink=None, bias=made.position.bias, cache=BoundedCache(made, "1e-3"))
    module = SimpleNamespace(layer_idx=0, farfield_bias=more, training=False)
    given = {"softcap": 0.7, "s_aux": torch.tensor([1.0, 3.0])}
    causal = Meaning(30, 30)
    with_cache, _ = attend(module, q, k, v, causal, **given)
    with pytest.raises(ValueError, match="chooses its own windows"):
        attend(module, q, k, v, causal._replace(window=4))
    more.cache = None
    torch.testing.assert_close(with_cache, attend(module, q, k, v, causal, **given)[0])
    assert not torch.allclose(with_cache, attend(module, q, k, v, causal)[0], atol=0.1)
