"""The statement of a study is computed: other data, other words."""

from __future__ import annotations

import json

import pytest
from records import FALLING, LEVEL, RISING, study_of

from farfield.study.collected import collect
from farfield.study.findings import agreement, findings
from farfield.study.plan import make_plan, read_plan


def said(study):
    return "\n".join(finding.text for finding in findings(study))


def test_convergent_and_level_is_what_the_theorem_says(tmp_path):
    study = study_of(tmp_path, {"alibi": FALLING, "type1": LEVEL})
    first = findings(study)[0]
    assert first.holds is True
    assert "alibi and type1 converge" in first.text
    assert "18x" in first.text
    assert agreement(study.of_encoding("alibi")).agrees is True


def test_convergent_and_rising_contradicts_it_and_is_said(tmp_path):
    study = study_of(tmp_path, {"alibi": FALLING, "type1": RISING})
    first = findings(study)[0]
    assert first.holds is False
    assert "type1 do not stay level" in first.text
    assert "21.2%" in first.text  # 120 over its lowest, 99
    assert agreement(study.of_encoding("type1")).agrees is False


def test_divergent_and_rising_agrees(tmp_path):
    study = study_of(tmp_path, {"alibi": LEVEL, "inverse": RISING}, verdicts={"inverse": "diverges"})
    assert "inverse by up to 21.2%" in said(study)
    assert agreement(study.of_encoding("inverse")).agrees is True


def test_divergent_and_level_is_no_contradiction(tmp_path):
    study = study_of(tmp_path, {"sandwich": LEVEL}, verdicts={"sandwich": "diverges"})
    found = agreement(study.of_encoding("sandwich"))
    assert found.agrees is None
    assert "sufficient, not necessary" in found.text
    assert "Level as far as was measured, though divergent: sandwich" in said(study)


def test_an_encoding_without_a_formula_is_no_claim(tmp_path):
    study = study_of(
        tmp_path, {"sinusoidal": RISING}, verdicts={"sinusoidal": "not-applicable"}, leaks={"sinusoidal": None}
    )
    assert agreement(study.of_encoding("sinusoidal")).agrees is None
    assert "says nothing of sinusoidal" in said(study)


def test_the_leak_is_correlated_with_the_rise(tmp_path):
    names = {"alibi": LEVEL, "type1": FALLING, "inverse": RISING}
    ordered = study_of(tmp_path / "a", names, leaks={"alibi": 0.2, "type1": 0.1, "inverse": 0.8})
    assert "rank correlation 1.00 over 3 runs" in said(ordered)
    against = study_of(tmp_path / "b", names, leaks={"alibi": 0.5, "type1": 0.8, "inverse": 0.1})
    assert "does not order" in said(against)


def test_one_seed_that_rises_is_enough(tmp_path):
    study = study_of(tmp_path, {"alibi": LEVEL}, seeds=2)
    assert findings(study)[0].holds is True
    path = sorted((tmp_path / "records").glob("*seed1*"))[0]
    record = json.loads(path.read_text())
    record["perplexity"]["non-overlapping"] = list(RISING)
    record["extrapolation"]["answer"] = "rose"
    path.write_text(json.dumps(record))
    assert findings(collect(read_plan(tmp_path), tmp_path))[0].holds is False


def test_what_is_missing_is_named_and_damage_is_missing(tmp_path):
    study_of(tmp_path, {"alibi": LEVEL, "type1": LEVEL, "type2": LEVEL})
    records = sorted((tmp_path / "records").iterdir())
    records[0].unlink()
    records[1].write_text("{")
    assert collect(read_plan(tmp_path), tmp_path).missing == ["python, alibi, seed 0", "python, type1, seed 0"]


def test_a_record_with_other_lengths_or_without_numbers_is_missing(tmp_path):
    study_of(tmp_path, {"alibi": LEVEL, "type1": LEVEL}, seeds=2)
    for name, change in (("alibi-seed1", {"lengths": [16, 17, 18, 19]}), ("type1-seed0", {"perplexity": "none"})):
        path = next((tmp_path / "records").glob(f"*{name}*"))
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    found = collect(read_plan(tmp_path), tmp_path)
    assert found.missing == ["python, type1, seed 0", "python, alibi, seed 1"]


def test_a_record_of_other_settings_is_not_taken(tmp_path):
    study_of(tmp_path, {"alibi": LEVEL})
    path = next((tmp_path / "records").iterdir())
    record = json.loads(path.read_text())
    record["settings"]["steps"] = 1
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="No run of this study is finished"):
        collect(make_plan("tiny", None, ["alibi"]), tmp_path)


def test_what_cannot_be_told_is_no_tick(tmp_path):
    """A rise of 2 % with an error of 1 % is neither level nor risen."""
    for encoding, verdict in (("alibi", "converges"), ("inverse", "diverges")):
        study = study_of(tmp_path / encoding, {encoding: LEVEL}, verdicts={encoding: verdict})
        for record in study.records:
            record["extrapolation"]["answer"] = "cannot be told"
        assert findings(study)[0].holds is None
        assert "cannot be told" in said(study)
        assert agreement(study.of_encoding(encoding)).short == "cannot be told"
