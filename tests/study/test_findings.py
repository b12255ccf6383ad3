"""The statement of a study is computed: other data, other words; and nothing is ticked that cannot be told."""

from __future__ import annotations

import json
import re

import pytest
from records import FALLING, LEVEL, RISING, change, study_of

from farfield.measure.statistics import rank_correlation
from farfield.study.entries import collect
from farfield.study.evidence import Evidence, by_leak, correlated, known_before_training, paper_leak
from farfield.study.findings import findings, joint_answer, statement, take_home, too_small
from farfield.study.plan import make_plan, read_plan
from farfield.study.report import render, section
from farfield.study.tables import all_tables

NAMES = ["alibi", "type1", "type2", "inverse", "inverse-log"]
LEAKS = {"alibi": 0.1, "type1": 0.15, "type2": 0.2, "inverse": 0.8, "inverse-log": 0.7}
CURVES = {
    "alibi": FALLING,
    "type1": LEVEL,
    "type2": (100.0, 100.0, 100.0, 100.05),
    "inverse": (100.0, 105.0, 110.0, 140.0),
    "inverse-log": RISING,
}
VERDICTS = {"inverse": "diverges", "inverse-log": "diverges"}


def said(study):
    return "\n".join(finding.text for finding in findings(study, Evidence(study)))


def ticks(study):
    return {finding.holds for finding in findings(study, Evidence(study))}


def test_what_stays_level_and_what_rises_is_named_with_its_error(tmp_path):
    study = study_of(tmp_path, CURVES, verdicts=VERDICTS, leaks=LEAKS)
    text = said(study)
    assert "stays level for alibi, type1 and type2" in text
    assert "inverse by 40.0 ± " in text
    assert study.entry("python", "inverse").answer == "rose"
    assert joint_answer(study.of_encoding("alibi")) == "level"


def test_convergence_is_not_said_to_promise_a_level_perplexity(tmp_path):
    study = study_of(tmp_path, {"alibi": FALLING, "type1": RISING}, corpora=["letters"])
    sentence = statement(study.of_encoding("type1"))
    assert "converges, and yet perplexity rises by up to 21.2" in sentence  # 120 over its lowest, 99
    assert "not that perplexity stays level" in sentence
    assert sentence in said(study)
    assert False not in ticks(study)  # the theory promised nothing else


def test_divergent_and_level_is_no_contradiction(tmp_path):
    study = study_of(tmp_path, {"sandwich": LEVEL}, verdicts={"sandwich": "diverges"}, leaks={"sandwich": 0.001})
    sentence = statement(study.of_encoding("sandwich"))
    assert "diverges at infinity, and this length is not there. Its leak is 0.001." in sentence


def test_an_encoding_without_a_formula_is_no_claim(tmp_path):
    study = study_of(
        tmp_path, {"sinusoidal": RISING}, verdicts={"sinusoidal": "not-applicable"}, leaks={"sinusoidal": None}
    )
    assert "the theory says nothing of it" in statement(study.of_encoding("sinusoidal"))
    assert Evidence(study).models == []


def test_the_leak_is_correlated_with_the_rise_and_has_an_interval(tmp_path):
    study = study_of(tmp_path / "a", CURVES, verdicts=VERDICTS, leaks=LEAKS)
    rank = Evidence(study).leak
    assert rank.value == pytest.approx(0.9)  # rises 0, 0, 0.05 %, 21 %, 40 % of leaks in another order
    assert rank.interval[0] < rank.value <= rank.interval[1] == 1
    assert "Over 5 models the leak has a rank correlation of 0.90" in said(study)
    against = study_of(tmp_path / "b", CURVES, leaks={e: 1 - leak for e, leak in LEAKS.items()})
    assert Evidence(against).leak.value == pytest.approx(-0.9)
    assert Evidence(against).leak.positive is False


def test_a_control_without_ranks_is_still_said_by_its_size(tmp_path):
    """Untrained networks that do not rise at all have no rank correlation, and the sentence stands without it."""
    study = study_of(tmp_path, CURVES, verdicts=VERDICTS, leaks=LEAKS)
    assert "Untrained, the same networks rise by at most 0.004 % (rank correlation" in said(study)

    def edit(record, _):
        for length in record["control"]["extrapolation"]["lengths"]:
            length["rise"] = 0.0

    assert (
        "the same networks rise by at most 0.0 % (on 4 of the 40 segments of text, at 4 of the 4 lengths). The leak"
        in said(change(study, edit))
    )


def test_models_of_one_encoding_are_one_observation(tmp_path):
    """With twenty seeds of each the interval is no narrower: there are still five encodings."""
    one = Evidence(study_of(tmp_path / "a", CURVES, verdicts=VERDICTS, leaks=LEAKS)).leak
    many = Evidence(study_of(tmp_path / "b", CURVES, verdicts=VERDICTS, leaks=LEAKS, seeds=20)).leak
    assert many.points == 100
    assert many.interval[0] == pytest.approx(one.interval[0], abs=0.15)


def test_interventions_are_set_against_the_leak_and_the_verdict(tmp_path):
    study = study_of(tmp_path, CURVES, verdicts=VERDICTS, leaks=LEAKS)
    evidence = Evidence(study)
    assert len(evidence.interventions) == 5 * 3
    assert {p.tail for p in evidence.interventions} == {"as trained", "constant", "r - log(t/m)"}  # a cut is the zero
    trained = next(p for p in evidence.interventions if p.encoding == "inverse" and p.tail == "as trained")
    assert trained.seen == pytest.approx(study.entry("python", "inverse").relative[-1] / 1.01 - 1)  # a cut leaves 1 %
    assert evidence.dose.value > 0
    assert "15 interventions" in take_home(study, evidence)
    assert all(abs(p.seen) < 0.011 for p in evidence.control.interventions)
    rank = correlated(evidence.control.interventions, by_leak)
    sample = "on 4 of the 40 segments of text, at 4 of the 4 lengths"
    assert f"(rank correlation {rank.value:.2f} with their own leak; {sample})" in said(study)


def test_each_network_is_set_against_its_own_parameters(tmp_path):
    """Trained heads whose TRF is their ERF, and an untrained network with other parameters whose TRF is its ERF too.

    Every number of the control is the reverse of the trained one: a mixture of the two would turn a correlation round.
    """
    study = study_of(tmp_path, CURVES, verdicts=VERDICTS, leaks=LEAKS)
    count = len(study.records)

    def edit(record, i):
        for network, place in ((record, i), (record["control"], count - i)):
            network["extrapolation"]["lengths"][-1]["rise"] = 0.1 * place
            for head in network["heads"]:
                head.update(leak=0.1 * place, trf_of_rows={"0.1": 4, "0.01": 5 + place})
                head["erf"] = {"0.1": 4, "0.01": 5 + place}
            for j, one in enumerate(network["interventions"]):
                one.update(leak=0.1 * place + 0.01 * j, change=[0.1 * place + 0.01 * j, 0.0])

    evidence = Evidence(change(study, edit))
    sides = [(one.models, one.interventions, one.heads()) for one in (evidence, evidence.control)]
    for trained, untrained in zip(*sides, strict=True):
        assert correlated(trained, by_leak).value == pytest.approx(1)
        assert correlated(untrained, by_leak).value == pytest.approx(1)
        for value in ("predicted", "seen"):
            across = [(getattr(a, value), getattr(b, value)) for a, b in zip(trained, untrained, strict=True)]
            assert rank_correlation(*zip(*across, strict=True)) < -0.5
    assert [p.predicted for p in evidence.control.models] == pytest.approx([0.1 * (count - i) for i in range(count)])


def test_what_training_does_to_the_fields_is_said_as_it_is(tmp_path):
    """Untrained ERFs that follow the TRF and trained ones that do not; of an encoding that learns its own number."""
    curves = {**dict.fromkeys(NAMES, LEVEL), "kerple-log": LEVEL}

    def edit(record, i):
        learns = record["encoding"] == "kerple-log"
        for j, (own, first) in enumerate(zip(record["heads"], record["control"]["heads"], strict=True)):
            trf, start = 10 + 2 * i + j + 100 * learns, 50 + 2 * i + j
            own.update(trf_of_rows={"0.1": 4, "0.01": trf}, erf={"0.1": 4, "0.01": trf if learns else 40 - i * j})
            first.update(trf_of_rows={"0.1": 4, "0.01": start}, erf={"0.1": 4, "0.01": start})

    study = change(study_of(tmp_path, curves, seeds=2), edit)
    text = Evidence(study).fields_text
    numbers = re.fullmatch(
        r"training takes the rank correlation of TRF and ERF from 1\.00 to (-?0\.\d\d) \(.*\), of encodings that learn "
        r"no parameter from 1\.00 to (-?0\.\d\d) \(.*\): it weakens what the bias does by itself",
        text,
    )
    assert numbers is not None, text
    assert float(numbers[2]) < float(numbers[1]) < 1
    assert text in said(study)

    def follow(record, _):
        for own in record["heads"]:
            own["erf"] = own["trf_of_rows"]

    text = Evidence(change(study, follow)).fields_text
    assert "from 1.00 to 1.00" in text
    assert text.endswith("it keeps what the bias does by itself")


def test_a_study_that_is_too_small_says_so_and_ticks_nothing(tmp_path):
    good = study_of(tmp_path / "good", CURVES, verdicts=VERDICTS, leaks=LEAKS)
    assert too_small(good) == []
    assert True in ticks(good)
    assert "Too small to tell" not in render(good, all_tables(good), [], "")
    blind = study_of(tmp_path / "blind", CURVES, verdicts=VERDICTS, leaks=LEAKS, gain=0.02)
    assert "cannot lose what they do not use" in too_small(blind)[0]
    rising = study_of(tmp_path / "rising", {"inverse": RISING}, verdicts=VERDICTS, leaks=LEAKS, gain=0.02)
    assert too_small(rising) == []  # what rose had something to lose
    tiny = study_of(tmp_path / "tiny", CURVES, verdicts=VERDICTS, leaks=LEAKS, preset="tiny")
    assert "preset tiny" in too_small(tiny)[0]
    for study in (blind, tiny):
        assert ticks(study) == {None}
        page = render(study, all_tables(study), [], "")
        assert "Too small to tell" in page
        assert "✓" not in page
        assert take_home(study, Evidence(study)) == "This study is too small to tell anything."
    few = study_of(tmp_path / "few", CURVES, verdicts=VERDICTS, leaks=LEAKS)
    few = change(few, lambda record, i: record["test"].update(segments=12 if i == 0 else 40))
    assert "12 segments" in too_small(few)[0]


def test_what_cannot_be_told_is_neither_level_nor_risen(tmp_path):
    """A rise of 2 % with an error of 2 %."""
    for encoding, verdict in (("alibi", "converges"), ("inverse", "diverges")):
        curve = {encoding: (100.0, 100.0, 100.0, 102.0)}
        study = study_of(tmp_path / encoding, curve, verdicts={encoding: verdict}, noise=0.1)
        assert study.entry("python", encoding).answer == "cannot be told"
        assert f"cannot be told for {encoding}" in said(study)


def test_seeds_are_a_second_level_of_error(tmp_path):
    """Seeds that differ by 10 % leave more open than any text does."""
    study = study_of(tmp_path, {"alibi": LEVEL}, seeds=3)
    alike = study.entry("python", "alibi")
    assert alike.rise_error < 0.003
    paths = sorted((tmp_path / "records").iterdir())
    for path, top in zip(paths, (110.0, 120.0, 130.0), strict=True):
        record = json.loads(path.read_text())
        record["extrapolation"]["lengths"][-1]["rise"] = top / 100 - 1
        path.write_text(json.dumps(record))
    apart = collect(read_plan(tmp_path), tmp_path).entry("python", "alibi")
    assert apart.rise == pytest.approx(0.2)
    assert apart.rise_error == pytest.approx(0.1 / 3**0.5, rel=0.05)


def test_fields_are_no_evidence(tmp_path):
    study = study_of(tmp_path, CURVES, verdicts=VERDICTS, leaks=LEAKS)

    def edit(record, i):  # heads that differ, so that there is a correlation
        for j, head in enumerate(record["heads"]):
            for one in (head, record["control"]["heads"][j]):
                one.update(trf_of_rows={"0.1": 4, "0.01": 5 + i}, erf={"0.1": 4, "0.01": 5 + i + j})

    study = change(study, edit)
    text = next(f for f in findings(study, Evidence(study)) if "receptive fields" in f.text)
    assert "1 by construction" in text.text
    assert text.holds is None


def test_the_leak_in_the_papers_geometry_is_that_of_the_errata():
    for encoding, expected in (
        ("alibi", 0.019),
        ("type1", 0.072),
        ("type2", 0.052),
        ("inverse", 0.491),
        ("inverse-log", 0.398),
        ("sandwich", 0.110),
    ):
        assert paper_leak(encoding) == pytest.approx(expected, abs=6e-4)
    assert paper_leak("kerple-log") is None  # its parameters are learned
    assert paper_leak("sinusoidal") is None


def test_what_is_missing_is_named_and_damage_is_missing(tmp_path):
    study_of(tmp_path, {"alibi": LEVEL, "type1": LEVEL, "type2": LEVEL})
    records = sorted((tmp_path / "records").iterdir())
    records[0].unlink()
    records[1].write_text("{")
    assert collect(read_plan(tmp_path), tmp_path).missing == ["python, alibi, seed 0", "python, type1, seed 0"]


@pytest.mark.parametrize(
    "other",
    [
        {"lengths": [16, 17, 18]},
        {"perplexity": "none"},
        {"control": {}},
        {"interventions": [{"tail": "cut"}]},
        {"damage": [None, None]},
        {"extrapolation": {"lengths": []}},
        {"heads": [{}]},
    ],
)
def test_a_record_without_what_is_read_from_it_is_missing(tmp_path, other):
    study_of(tmp_path, {"alibi": LEVEL, "type1": LEVEL})
    path = next((tmp_path / "records").glob("*type1*"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **other}))
    assert collect(read_plan(tmp_path), tmp_path).missing == ["python, type1, seed 0"]


def test_a_record_of_other_settings_is_not_taken(tmp_path):
    study_of(tmp_path, {"alibi": LEVEL}, preset="tiny")
    path = next((tmp_path / "records").iterdir())
    record = json.loads(path.read_text())
    record["settings"]["steps"] = 1
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match="No run of this study is finished"):
        collect(make_plan("tiny", None, ["alibi"]), tmp_path)


def test_the_report_shows_what_each_head_learned_and_what_k_is(tmp_path):
    study = study_of(tmp_path, {"alibi": LEVEL, "kerple-log": LEVEL})
    alibi, kerple = (section(study, name) for name in ("alibi", "kerple-log"))
    assert alibi.about["slopes"] == "k: ALiBi's slopes, 1/4 ... 1/256"
    assert alibi.learned == []
    assert "slopes" not in kerple.about
    assert kerple.learned == []  # these records lack its values

    def learned(*values):
        def edit(record, _):
            heads = [{**head, "layer": layer} for layer in range(1, len(values) // 2 + 1) for head in record["heads"]]
            record["heads"] = [
                {**head, "parameters": {"p": 1.5, "a": a}} for head, a in zip(heads, values, strict=True)
            ]
            record["control"]["heads"] = record["heads"]

        return change(study, edit, ["kerple-log"])

    study = learned(0.25, 0.25)
    names, *rows = section(study, "kerple-log").learned
    assert names == ["layer", "head", "p", "a", "verdict"]
    assert rows[1] == ["1", "2", "1.5", "0.25", "converges"]
    both = section(learned(0.25, 0.25, 0.25, 0.25), "kerple-log").learned
    assert [row[:2] for row in both[1:]] == [["1, 2", "1"], ["1, 2", "2"]]
    assert [row[:2] for row in section(learned(0.25, 0.25, 0.25, 0.5), "kerple-log").learned[1:]] == [
        ["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"],
    ]  # fmt: skip
    entry = study.of_encoding("alibi")[0]
    assert known_before_training(entry)
    study = change(study, lambda record, _: record["settings"].update(parameters={"k": {"start": [0, 1]}}), ["alibi"])
    entry = study.of_encoding("alibi")[0]
    assert not known_before_training(entry)
    assert section(study, "alibi").learned[0] == ["layer", "head", "k", "verdict"]
    assert "slopes" not in section(study, "alibi").about
