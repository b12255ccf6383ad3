"""Predictions written before training: what they go by, that they cannot be changed later, and their scores."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from records import study_of

from farfield.measure.statistics import area_under_curve
from farfield.study import predictions
from farfield.study.plan import make_plan
from farfield.study.predictions import MAIN, Outcome, expected, isotonic, numbers, observations, predict, score
from farfield.zoo import find

ROOT = Path(__file__).resolve().parents[2]


def test_the_isotonic_fit_is_the_nearest_rising_function():
    places, values = isotonic(np.array([3.0, 1, 2, 4, 4]), np.array([1.0, 0, 2, 5, 7]))
    assert places.tolist() == [1, 2, 3, 4]
    assert values.tolist() == [0, 1.5, 1.5, 6]


def test_a_window_within_the_reach_of_all_layers_is_predicted_not_to_rise_and_flat_weights_to_rise_most():
    plan = make_plan("small", None, ["where(t < 8, 0, -inf)", "alibi", "inverse", "0*t"])
    rises = [p.main.rise for p in predict(plan).predictions]
    assert rises == sorted(rises)
    assert rises[0] < 0.001
    assert rises[2] > 0.2


def test_an_encoding_is_predicted_without_its_own_observations():
    """inverse as a name, and the same value of its predictor under another name, give different predictions."""
    value = next(o for o in observations() if o.encoding == "inverse" and o.tail == "constant").numbers["verdict"]
    assert expected("verdict", value, "inverse") != expected("verdict", value, "something new")
    same = predict(make_plan("small", None, ["inverse", "-log(1 + k*t)", "0 - log(1 + t*k)"])).predictions
    assert same[0].by == same[1].by == same[2].by


def test_what_is_learned_or_no_bias_is_not_predicted():
    plan = make_plan("small", None, ["kerple-log", "sinusoidal", "-k*t"])
    by = [p.by for p in predict(plan).predictions]
    assert by[:2] == [{}, {}]
    assert set(by[2]) == set(predictions.PREDICTORS)


def test_the_numbers_are_those_of_the_definitions():
    heads = find("alibi").heads(4)
    values = numbers(find("alibi").formula, heads, 1, 64, 1152)
    weights = [np.exp(-float(head["k"]) * np.arange(1152)) for head in heads]
    shares = [w / w.sum() for w in weights]
    assert values["leak"] == pytest.approx(np.mean([s[64:].sum() for s in shares]), rel=1e-9)
    assert values["network leak"] == pytest.approx(values["leak"], rel=1e-9)  # of one layer
    assert values[MAIN] == pytest.approx(values["leak"], rel=1e-9)
    assert values["verdict"] == 0
    assert values["entropy"] == pytest.approx(np.mean([-(s @ np.log(s)) for s in shares]), rel=1e-6)
    assert values["bias"] == pytest.approx(np.mean([max(-50, -float(h["k"]) * 1151) for h in heads]))


def test_network_leak_by_head_follows_each_head_alone():
    """Two heads of which one sees everything: mixed in each layer, nearly all paths pass through it."""
    formula, heads = find("where(t < a, 0, -inf)").formula, [{"a": "2"}, {"a": "100000"}]
    values = numbers(formula, heads, 12, 16, 288)
    assert values[MAIN] == pytest.approx(0.5, abs=0.01)
    assert values["network leak"] > 0.99


def test_the_observations_are_those_of_results():
    """A sample of rows is made anew from the records."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import observations as maker

    records = maker.records_of(ROOT / "results")
    rows = {(o.encoding, o.tail): o for o in observations()}
    assert len(rows) == 8 * 11
    for encoding, tail in (("alibi", "cut"), ("inverse", "as trained"), ("sandwich", "constant")):
        again = maker.row(records, encoding, tail)
        assert again["rise"] == pytest.approx(rows[encoding, tail].rise, abs=1e-6)
        assert again["numbers"] == pytest.approx(rows[encoding, tail].numbers, rel=1e-8)


def test_a_changed_file_is_refused_and_one_that_exists_is_kept(tmp_path):
    def farfield(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "farfield", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    (tmp_path / "list.txt").write_text("alibi\n\n-2*log(t + 1)\n")
    first = farfield("predict", "--file", "list.txt", "--layers", "2", "--out", "p.json")
    assert first.returncode == 0, first.stderr
    written = json.loads((tmp_path / "p.json").read_text())
    assert [p["encoding"] for p in written["predictions"]] == ["alibi", "-2*log(t + 1)"]
    assert written["settings"]["layers"] == 2
    again = farfield("predict", "alibi", "--out", "p.json")
    assert again.returncode == 2
    assert "--force" in again.stderr
    plan = farfield("study", "--check", "p.json", "--seeds", "2", "--dry-run", "--out", "s")
    assert "2 encodings x 1 corpus x 2 seeds: 4 runs" in plan.stderr
    beside = farfield("study", "--check", "p.json", "--layers", "3", "--dry-run", "--out", "s")
    assert beside.returncode == 2
    written["predictions"][0]["by"][MAIN]["high"] = 9.0
    (tmp_path / "p.json").write_text(json.dumps(written))
    changed = farfield("study", "--check", "p.json", "--dry-run", "--out", "s")
    assert changed.returncode == 2
    assert "was changed after it was written" in changed.stderr


def outcome(name: str, value: float, rise: float, seen: float, error: float = 0.0) -> Outcome:
    by = {MAIN: predictions.Expected(value=value, rise=rise, low=rise / 2, high=2 * rise)}
    return Outcome(name, by, seen, error, (seen,))


def test_scores_tell_a_good_predictor_from_a_bad_one():
    truth = [0.0, 0.01, 0.2, 0.4, 0.9]
    good = score([outcome(str(i), i, x, x) for i, x in enumerate(truth)], MAIN)
    assert (good.r2[0], good.rank[0], good.auc[0], good.covered[0]) == (1, 1, 1, 1)
    bad = score([outcome(str(i), -i, 0.3, x) for i, x in enumerate(truth)], MAIN)
    assert bad.r2[0] < 0.05
    assert bad.rank[0] == -1
    assert bad.auc[0] == 0
    assert bad.covered[0] == pytest.approx(2 / 5)
    assert bad.rank[1] <= bad.rank[0] <= bad.rank[2]
    assert score([outcome("a", 0, 0, 0)], MAIN) is None


def test_an_interval_is_left_by_more_than_the_error_of_what_was_seen():
    assert outcome("a", 0, 0.2, 0.41, error=0.01).held()
    assert not outcome("a", 0, 0.2, 0.43, error=0.01).held()
    assert not outcome("a", 0, 0.2, 0.07, error=0.01).held()


def test_area_under_the_curve_counts_ties_half():
    assert area_under_curve([1, 2, 2, 3], [False, False, True, True]) == pytest.approx(0.875)
    assert np.isnan(area_under_curve([1, 2], [True, True]))


def test_outcomes_pair_each_prediction_with_its_models(tmp_path):
    from records import LEVEL, RISING

    study = study_of(tmp_path, {"alibi": LEVEL, "inverse": RISING})
    plan = make_plan("small", None, ["alibi", "inverse", "type1"])
    pairs = predictions.outcomes(predict(plan), study)
    assert [o.encoding for o in pairs] == ["alibi", "inverse"]
    assert pairs[1].rise == study.entry("python", "inverse").rise
