"""ERF by attention and by gradient: equal to the definition on full matrices, and known where the answer is known."""

import math

import numpy as np
import pytest
import torch

from farfield.measure import inputs
from farfield.measure.attended import agreement, by_attention, by_distance, smallest_window
from farfield.measure.gradient import by_gradient
from farfield.theory.fields.curves import paper_curve

from .conftest import our_model, theirs


def full_matrices(model, ids):
    """The attention weights of every layer, (layers, heads, n, n), from the definition."""
    result = []

    def visit(layer, seen):
        n = seen.k.shape[2]
        t = torch.arange(n)[:, None] - torch.arange(n)
        logits = seen.q[0].double() @ seen.spread(seen.k)[0].double().mT * seen.scale
        logits = logits + seen.bias_or_zero()[:, t.clamp(min=0)]
        result.append(logits.masked_fill(t < 0, -math.inf).softmax(-1))

    with torch.no_grad(), model.watching(visit):
        model.states(torch.from_numpy(ids)[None])
    return torch.stack(result)


def field_of(row, epsilon):
    """The smallest j whose last j tokens hold more than 1 - epsilon, one token at a time."""
    mass = 0.0
    for j, weight in enumerate(reversed(row.tolist()), 1):
        mass += weight
        if mass > 1 - epsilon:
            return j
    return len(row)


@pytest.mark.parametrize("kind", ["alibi", "inverse", "rope", "t5", "kerple-log", "llama", "bloom", "gpt2"])
def test_erf_equals_that_of_the_full_matrices(kind, text, monkeypatch):
    monkeypatch.setattr(inputs, "BLOCK_BYTES", 8 * 4 * 30 * 7)  # blocks of 7 queries
    model = theirs(kind) if kind in ("gpt2", "llama", "bloom") else our_model(kind)
    some = text(60)
    result = by_attention(model, some, 30, epsilons=("0.3", "0.05"), burn_in=11, chunks=2)
    counts, mass = np.zeros_like(result.counts), np.zeros_like(result.mass)
    for chunk in range(2):
        weights = full_matrices(model, some.ids[0, 30 * chunk : 30 * chunk + 30])
        for layer, of_layer in enumerate(weights):
            for head, table in enumerate(of_layer):
                for i in range(11, 30):
                    for e, epsilon in enumerate((0.3, 0.05)):
                        counts[e, layer, head, field_of(table[i, : i + 1], epsilon)] += 1
                    mass[layer, head, : i + 1] += table[i, : i + 1].flip(0).numpy() / 38
    np.testing.assert_array_equal(result.counts, counts)
    np.testing.assert_allclose(result.mass, mass, atol=1e-5)
    assert result.queries == 38


def test_bloom_attends_as_transformers_says(text):
    model, ids = theirs("bloom"), text(20).ids[0]
    model.network.set_attn_implementation("eager")
    with torch.no_grad():
        said = model.network(torch.from_numpy(ids)[None], output_attentions=True, use_cache=False).attentions
    torch.testing.assert_close(full_matrices(model, ids).float(), torch.cat(said), atol=1e-5, rtol=1e-4)


def test_a_hand_made_attention_has_the_known_field():
    weights = torch.zeros(1, 3, 6, dtype=torch.float64)
    weights[0, 0, :4] = torch.tensor([0.0, 0.0, 0.0, 1.0])  # all on itself
    weights[0, 1, :5] = torch.tensor([0.0625, 0.0625, 0.25, 0.25, 0.375])
    weights[0, 2, :6] = torch.full((6,), 1 / 6)
    mass = by_distance(weights).cumsum(-1)
    assert smallest_window(mass, 0.125).tolist() == [[1, 4, 6]]  # three tokens hold 0.875: not more than that
    assert smallest_window(mass, 0.5).tolist() == [[1, 2, 4]]
    assert by_distance(weights)[0, 1].tolist() == [0.375, 0.25, 0.25, 0.0625, 0.0625, 0.0]


def test_flat_attention_has_the_theoretical_field(text):
    """With q = 0 every logit is the bias: ERF is the TRF of rows, and for ALiBi, once rows are long, the TRF itself."""
    model = our_model("alibi")
    with torch.no_grad():
        for layer in model.network.layers:
            layer.attention.inward.weight[:32] = 0  # no queries
            layer.attention.inward.bias[:32] = 0
    result = by_attention(model, text(400), 400, epsilons=("0.1",), burn_in=399, chunks=1)
    np.testing.assert_array_equal(result.median(), result.row_trf)
    assert result.median()[0, 0].tolist()[:2] == [10, 37]  # slopes 1/4 and 1/16 (the oracle table)
    assert result.trf[0][0] == [10, 37, 148, 590]
    assert agreement([result])["trf"] == pytest.approx(1)


def test_divergent_heads_have_no_field_and_come_last(text):
    convergent, divergent = (by_attention(our_model(e), text(64), 64, chunks=1) for e in ("alibi", "inverse"))
    assert {tokens for layer in divergent.trf[0] for tokens in layer} == {None}
    assert all(pair[0] == math.inf for pair in divergent.pairs())
    assert agreement([convergent, divergent])["trf_of_rows"] > 0
    assert by_attention(theirs("llama"), text(32), 32, chunks=1).pairs() == []


def test_long_rows_are_cut_into_blocks_that_stay_small(text):
    model = our_model()
    seen = []
    with torch.no_grad(), model.watching(lambda layer, s: seen.append(s)):
        model.states(torch.from_numpy(text(5000).ids[0, :5000])[None])
    sizes = [logits.numel() * 8 for _, _, logits in seen[0].logits(0, 4500, None)]
    assert len(sizes) > 1
    assert max(sizes) <= inputs.BLOCK_BYTES


@pytest.mark.parametrize("kind", ["alibi", "sinusoidal", "llama", "gpt2", "bloom"])
def test_the_gradient_field_equals_finite_differences(kind, text):
    model = theirs(kind) if kind in ("gpt2", "llama", "bloom") else our_model(kind)
    model.network.double()
    some = text(25)
    result = by_gradient(model, some, 24, outputs=1)
    ids = torch.from_numpy(some.ids[0, :25])
    x = model.embedded(ids[None, :-1]).detach()

    def loss(y):
        with torch.no_grad():
            logits = model.logits(model.states_of_embedded(y)[:, -1]).double()
        return -logits.log_softmax(-1)[0, ids[-1]].item()

    norms = []
    for t in (0, 1, 7):
        gradient = []
        for d in range(x.shape[2]):
            step = torch.zeros_like(x)
            step[0, 23 - t, d] = 1e-3
            gradient.append((loss(x + step) - loss(x - step)) / 2e-3)
        norms.append(np.linalg.norm(gradient))
    ratio = result.shares[0, [0, 1, 7]]
    np.testing.assert_allclose(ratio / ratio[0], np.array(norms) / norms[0], rtol=2e-2)
    assert result.shares.sum() == pytest.approx(1)
    assert all(p.requires_grad for p in model.network.parameters())


def test_windows_bound_the_gradient_field(text):
    """Two layers with a window of 3 see 5 tokens, and not one more."""
    model = our_model("window", encoding_parameters={"w": 3})
    result = by_gradient(model, text(60), 32, epsilons=("1e-9",), outputs=4)
    assert (result.fields() <= 5).all()
    assert (result.shares[:, 5:] == 0).all()
    assert (result.shares[:, 4] > 0).all()


def test_the_papers_curve_has_the_papers_faults():
    """E23: it answers for a divergent series, and a window of 100 gives one too few at ties."""
    fields, epsilons = paper_curve(1 / np.arange(1, 513))
    assert epsilons[0] == 1
    assert fields[0] == 0
    assert fields[-1] == 1
    assert 0 < fields[25] < 0.2
    flat, shares = paper_curve(np.ones(100), 11)
    assert np.round(100 * flat[5]) == 50
    assert shares[5] == pytest.approx(0.5)  # exactly half: strictly more than half needs 51


@pytest.mark.parametrize("burn_in", [-1, 64])
def test_an_impossible_burn_in_is_refused(burn_in, text):
    with pytest.raises(ValueError, match="burn-in"):
        by_attention(our_model(), text(64), 64, burn_in=burn_in)


@pytest.mark.long
def test_9216_tokens_need_no_square_of_them(text):
    """One table of 9,216 x 9,216 numbers for each of 4 heads would be 2.7 GB in float64; all of it takes a fraction."""
    import subprocess
    import sys

    code = """
import resource, numpy as np
import sys
sys.path.insert(0, "tests")
from measure.conftest import our_model
from farfield.measure.loading import Text
from farfield.measure.attended import by_attention
from farfield.measure.truncation import truncation
model, ids = our_model(), np.random.default_rng(0).integers(0, 61, 9217)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
by_attention(model, Text(ids, {}), 9216, chunks=1)
truncation(model, Text(ids, {}), 9216, windows=[64, 4096], chunks=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 1.2e9
