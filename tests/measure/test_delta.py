"""delta(i, j): the definition, the identity, the bounds, and what windows lose."""

import math

import numpy as np
import pytest
import torch

from farfield.measure.cutting import LostMass, lost_mass, trf_windows
from farfield.measure.delta import changes, network_changes, truncation
from farfield.measure.models import AttentionInputs
from farfield.nn.attention.reference import reference

from .conftest import our_model, theirs


def some_heads(n=40, heads=3, key_heads=3, scale=2.0, seed=0, bias=True, dtype=torch.float64):
    draw = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, h, n, 8, generator=draw, dtype=dtype) for h in (heads, key_heads, key_heads))
    slopes = torch.tensor([0.5, 0.1, 0.02], dtype=dtype)[:heads, None]
    return AttentionInputs(scale * q, k, v, -slopes * torch.arange(n) if bias else None, 8**-0.5, None)


def delta_of(seen, i, j):
    """|o_i^i - o_i^j| from the definition, for every head, in float64."""
    k, v = seen.spread(seen.k)[0], seen.spread(seen.v)[0]

    def output(first):
        t = i - torch.arange(first, i + 1)
        logits = (k[:, first : i + 1] @ seen.q[0, :, i, :, None])[..., 0] * seen.scale + seen.bias_or_zero()[:, t]
        return logits, (logits.softmax(-1)[:, None] @ v[:, first : i + 1])[:, 0]

    logits, whole = output(0)
    tau = logits.softmax(-1)[:, : i - j + 1].sum(-1)
    return (whole - output(i - j + 1)[1]).norm(dim=-1), tau


@pytest.mark.parametrize("seen", [some_heads(), some_heads(bias=False), some_heads(key_heads=1)])
@pytest.mark.parametrize("j", [1, 5, 39])
def test_delta_and_lost_mass_are_those_of_the_definition(seen, j):
    full, _ = reference(seen.q, seen.k, seen.v, seen.bias, scale=seen.scale)
    result = changes(seen, full, j)
    for i in range(j, 40):
        delta, tau = delta_of(seen, i, j)
        torch.testing.assert_close(result["delta"][0, :, i - j], delta, atol=1e-10, rtol=1e-8)
        torch.testing.assert_close(result["identity"][0, :, i - j], delta, atol=1e-10, rtol=1e-8)
        torch.testing.assert_close(result["lost"][0, :, i - j], tau, atol=1e-12, rtol=1e-8)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_no_bound_is_broken_and_they_are_ordered(seed, scale):
    seen = some_heads(n=64, scale=scale, seed=seed)
    full, _ = reference(seen.q, seen.k, seen.v, seen.bias, scale=seen.scale)
    for j in (1, 4, 16, 60):
        result = changes(seen, full, j)
        delta = result["delta"]
        for name in ("identity", "sharper", "paper", "certificate"):
            assert (result[name] >= delta * (1 - 1e-9) - 1e-12).all(), name
        assert (result["sharper"] <= result["paper"] * (1 + 1e-9)).all()
        assert (result["certificate"] >= result["sharper"] * (1 - 1e-9)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("window", [1, 8, 30])
def test_the_certificate_is_never_below_what_was_lost(dtype, window):
    for seed in range(5):
        certified, true = lost_mass(some_heads(scale=4.0, seed=seed, dtype=dtype), window)
        assert (certified >= true).all()


def test_a_window_for_each_head_loses_what_its_own_loses(text):
    model = our_model("alibi")
    ids = torch.from_numpy(text(64).ids[0, :64])[None]
    each, whole = LostMass(), LostMass()
    with torch.no_grad():
        with model.watching(each.visit):
            model.states(ids, [4, 64, 64, 64])
        with model.watching(whole.visit):
            model.states(ids, 64)
    assert 0 < each.measured <= each.certified < 1
    assert 0 < each.mean_measured < each.measured
    assert (whole.measured, whole.certified) == (0, 0)
    assert whole.rows == each.rows == 64 * 4 * 2


def test_heads_are_cut_at_their_receptive_field():
    assert trf_windows(our_model("alibi"), "0.01") == [19, 74, 295, 1179]
    assert trf_windows(theirs("bloom"), "0.01") == [19, 74, 295, 1179]
    with pytest.raises(ValueError, match="diverges"):
        trf_windows(our_model("inverse"), "0.01")
    with pytest.raises(ValueError, match="no formula"):
        trf_windows(our_model("sinusoidal"), "0.01")
    with pytest.raises(ValueError, match="epsilon"):
        trf_windows(our_model("alibi"), "2")


@pytest.mark.parametrize("kind", ["alibi", "rope", "gpt2", "bloom"])
def test_truncation_of_a_model(kind, text):
    model = theirs(kind) if kind in ("gpt2", "bloom") else our_model(kind)
    result = truncation(model, text(64), 32, chunks=2)
    assert result.windows == [1, 2, 4, 8, 16]
    assert result.violations() < 1e-5
    for name in ("sharper", "paper", "certificate"):
        assert (result.largest[name] >= result.largest["delta"] * (1 - 1e-5)).all()
    # the wider the window, the less every head loses
    assert (np.diff(result.median["lost"], axis=-1) < 0).all()
    assert len(result.network) == 5
    assert math.isfinite(result.network[0]["loss_change"])


def test_the_network_changes_as_two_forward_passes_say(text):
    model, ids = our_model("inverse"), text(33).ids[0]
    (result,) = network_changes(model, [ids[:33]], [4], 10)
    read = torch.from_numpy(ids[:32])[None]
    with torch.no_grad():
        old, new = (model.network(read, window=w, use_cache=False).logits[0, 10:].double() for w in (None, 4))
    change = (old.log_softmax(-1) - new.log_softmax(-1)).abs().amax(-1)
    target = torch.from_numpy(ids[11:33])
    loss = [torch.nn.functional.cross_entropy(x, target).item() for x in (old, new)]
    assert result["largest_logit_change"] == pytest.approx(change.max().item(), abs=1e-5)
    assert result["median_logit_change"] == pytest.approx(change.median().item(), abs=1e-5)
    assert result["loss_change"] == pytest.approx(loss[1] - loss[0], abs=1e-5)


def test_a_divergent_encoding_loses_more_and_more_and_a_convergent_one_does_not(text):
    """At a fixed window the lost share climbs with i for 1/n, and levels off for ALiBi's narrow heads."""
    divergent, convergent = (truncation(our_model(e), text(512), 512, fixed=16, chunks=1) for e in ("inverse", "alibi"))
    climbing = divergent.by_position["lost"][:, 0].mean(0)
    level = convergent.by_position["lost"][:, 0].mean(0)
    assert climbing[-1] > climbing[-2] > climbing[-3]
    assert level[-1] == pytest.approx(level[-2], rel=0.35)
    assert climbing[-1] > 5 * level[-1]


@pytest.mark.parametrize("windows", [[0], [64], []])
def test_impossible_windows_are_refused(windows, text):
    with pytest.raises(ValueError, match="windows"):
        truncation(our_model(), text(64), 64, windows=windows)
