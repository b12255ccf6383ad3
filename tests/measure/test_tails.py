"""Interventions: another tail, the same weights; and what the theory says of the formula that results."""

import math

import numpy as np
import pytest
import torch

from farfield import leak, parse
from farfield.measure import evaluate, replaced_tail, tail_formula
from farfield.measure.predictions import series_of

from .conftest import our_model, theirs

TAILS = ["cut", "constant", "r - log(t/m)", "r - 2*log(t/m)", "c - 2", "alibi", "type1", "-k*t", "sandwich"]
FORMULAS = ["alibi", "type1", "inverse", "inverse-log", "kerple-log", "kerple-power", "sandwich"]


def vector(model, n):
    with torch.no_grad():
        return model.network.position.bias(n).double()


@pytest.mark.parametrize("encoding", FORMULAS)
@pytest.mark.parametrize("tail", TAILS)
def test_the_bias_is_as_trained_up_to_m_and_the_tail_beyond(encoding, tail):
    model = our_model(encoding)
    m, n = model.training_length, 60
    before = vector(model, n)
    with replaced_tail(model, tail):
        after = vector(model, n)
        heads = [model.formula_of(0, head) for head in range(model.heads)]
    torch.testing.assert_close(after[:, :m], before[:, :m])
    assert torch.equal(vector(model, n), before)  # and it is undone
    t = torch.arange(m, n)
    last = before[:, m - 1 : m]
    slopes = vector(our_model("alibi"), 2)[:, 1:]
    expected = {
        "cut": torch.full_like(after[:, m:], -math.inf),
        "constant": last.expand(-1, n - m),
        "r - log(t/m)": before[:, m:] - (t / m).log(),
        "r - 2*log(t/m)": before[:, m:] - 2 * (t / m).log(),
        "c - 2": last.expand(-1, n - m) - 2,
        "alibi": last + slopes * (t - (m - 1)),
        "-k*t": slopes * t,
    }
    if tail in expected:
        torch.testing.assert_close(after[:, m:], expected[tail], rtol=1e-5, atol=1e-5)
    for head, (formula, values) in enumerate(heads):  # the formula is what the model does
        row = [formula.float(float(x), values) for x in range(n)]
        torch.testing.assert_close(after[head], torch.tensor(row, dtype=torch.float64), rtol=1e-5, atol=1e-5)


def test_a_cut_is_a_window_of_the_training_length(text):
    model = our_model("inverse")
    rows = evaluate(model, text(300), "1x,18x", protocols=["windowed"], window=16, tails=["cut"]).rows
    windowed, cut = (next(r for r in rows if r.protocol == p and r.length == 288) for p in ("windowed", "tail"))
    assert cut.loss == pytest.approx(windowed.loss, abs=1e-6)
    assert cut.extra == {"tail": "cut", "leak": 0.0, "verdict": "converges"}
    assert [r.length for r in rows if r.protocol == "tail"] == [288]  # at the training length there is none


def test_leak_and_verdict_are_those_of_the_changed_series():
    for encoding, tail, verdict in (
        ("inverse", "r - log(t/m)", "converges"),
        ("inverse", "cut", "converges"),
        ("alibi", "constant", "diverges"),
        ("type1", "inverse", "diverges"),
    ):
        model = our_model(encoding)
        with replaced_tail(model, tail):
            result = series_of(model, 288)
            exact = [leak(f, 16, 288, parameters=v) for f, v in (model.formula_of(0, h) for h in range(4))]
        assert result.verdict == verdict
        assert result.leak == pytest.approx(np.mean([float(x) for x in exact]))
    bare = series_of(our_model("inverse"), 288).leak
    doses = []
    for tail in ("cut", "r - 2*log(t/m)", "r - log(t/m)", "r", "constant"):
        model = our_model("inverse")
        with replaced_tail(model, tail):
            doses.append(series_of(model, 288).leak)
    assert doses == sorted(doses)
    assert doses[0] == 0
    assert doses[3] == pytest.approx(bare)


def test_a_tail_that_changes_nothing_changes_nothing(text):
    rows = evaluate(our_model("type1"), text(300), "18x", protocols=["non-overlapping"], tails=["r"]).rows
    assert rows[1].loss == pytest.approx(rows[0].loss, abs=1e-7)
    change, error = rows[1].against(rows[0])
    assert abs(change) < 1e-7
    assert error < 1e-7


def test_a_formula_of_weights_is_taken_as_its_logarithm():
    whole = tail_formula(parse("weight: 1/(1 + t)"), "constant", 4)
    assert [whole.float(float(t)) for t in (1, 3, 9)] == pytest.approx([-math.log(2), -math.log(4), -math.log(4)])


@pytest.mark.parametrize(
    ("tail", "words"),
    [("q*t", "has the name 'q'"), ("", "empty"), ("r +", "ends"), ("kerple-log", "known before training")],
)
def test_a_tail_that_is_none_is_one_sentence(tail, words, text):
    with pytest.raises(ValueError, match=words):
        evaluate(our_model(), text(100), "1x", tails=[tail])


def test_what_has_no_bias_has_no_tail():
    for model in (our_model("sinusoidal"), our_model("t5"), theirs("bloom"), theirs("gpt2")):
        with pytest.raises(ValueError, match="no tail to replace"), replaced_tail(model, "cut"):
            pass
