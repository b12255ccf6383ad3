"""What a study consists of."""

from __future__ import annotations

import re

import pytest

from farfield import check, leak, zoo
from farfield.commands.study import split
from farfield.measure import tail_formula
from farfield.study.evidence import paper_leak
from farfield.study.plan import ENCODINGS, SLOW, TAILS, TWINS, make_plan, read_plan, sentences, slug


def test_the_default_is_the_papers_nine_encodings_and_the_twins_on_python():
    plan = make_plan()
    assert plan.corpora == ["python"]
    assert tuple(plan.encodings) == (*ENCODINGS, *TWINS)
    assert len(plan.cells) == 11


def test_the_twins_have_the_verdict_of_their_opposite_and_the_leak_of_their_neighbour():
    """Chosen beforehand: nothing here is measured."""
    rising, level = TWINS
    assert check(rising).verdict == "converges" != check("inverse").verdict
    assert check(level).verdict == "diverges" != check("alibi").verdict
    assert paper_leak(rising) == pytest.approx(paper_leak("inverse"), rel=0.03)
    assert paper_leak(level) < paper_leak("alibi") + 0.02 < 0.1 * paper_leak("inverse")


def test_the_text_is_spread_over_forty_segments_of_the_longest_length():
    how = make_plan().cells[0].measurement
    assert how.segments >= 40
    assert max(how.lengths(64)) == 1152


def test_seeds_may_begin_elsewhere():
    assert {cell.seed for cell in make_plan(seeds=2, first_seed=5).cells} == {5, 6}


def test_stand_ins_are_declared_and_never_guessed(tmp_path):
    books = tmp_path / "mynotebooks"
    books.mkdir()
    assert {c.stands_for for c in make_plan("tiny", [str(books), "python"], ["alibi"]).cells} == {None, "github"}
    plan = make_plan("tiny", [str(books)], ["alibi"], stands_for={"books": str(books)})
    assert plan.cells[0].stands_for == "books"
    plan.save(tmp_path)
    assert read_plan(tmp_path) == plan
    with pytest.raises(ValueError, match="no data set 'novels'"):
        make_plan("tiny", [str(books)], ["alibi"], stands_for={"novels": str(books)})
    with pytest.raises(ValueError, match="cannot stand for books"):
        make_plan("tiny", ["python"], ["alibi"], stands_for={"books": str(books)})


def test_the_paper_is_9_encodings_on_4_data_sets_with_50000_updates_of_128_samples_of_512_tokens():
    plan = make_plan("paper")
    assert len(plan.cells) == 36
    assert {cell.settings.steps for cell in plan.cells} == {50_000}
    assert {(cell.settings.batch, cell.settings.length) for cell in plan.cells} == {(128, 512)}
    layers = {cell.corpus: cell.settings.layers for cell in plan.cells}
    assert layers == {"wikitext-103": 6, "books": 12, "github": 12, "wikibook": 12}
    assert plan.cells[0].measurement.lengths(512)[-1] == 9216


def test_bfloat16_costs_less_than_float32():
    plan = make_plan("paper", precision="bfloat16")
    assert {cell.settings.precision for cell in plan.cells} == {"bfloat16"}
    assert gpu_hours(plan) < gpu_hours(make_plan("paper"))


def gpu_hours(plan, cells=None):
    said = " ".join(sentences(plan, plan.cells if cells is None else cells))
    return int(re.search(r"([\d,]+) GPU-hours", said)[1].replace(",", ""))


def test_gpu_hours_are_told_for_what_is_left_only():
    plan = make_plan("paper")
    assert 0 < gpu_hours(plan, plan.cells[:18]) < gpu_hours(plan)
    assert "GPU-hours" not in " ".join(sentences(plan, []))


def test_a_key_tells_every_setting_and_every_way_to_measure_apart():
    cell = make_plan("tiny").cells[0]
    other_seed = make_plan("tiny", seeds=2).cells[11]
    shorter = cell.model_copy(update={"settings": cell.settings.model_copy(update={"steps": 7})})
    coarser = cell.model_copy(update={"measurement": cell.measurement.model_copy(update={"segments": 10})})
    keys = [one.key for one in (cell, other_seed, shorter, coarser)]
    assert len(set(keys)) == 4
    assert coarser.run_key == cell.run_key  # measured anew, but not trained anew


def test_all_encodings_are_trained_once_before_any_is_trained_twice():
    assert [cell.seed for cell in make_plan("tiny", seeds=2).cells] == [0] * 11 + [1] * 11


def test_a_plan_is_read_as_it_was_saved(tmp_path):
    plan = make_plan("tiny", ["python"], ["alibi", "-2*log(t + 1)"], 2)
    plan.save(tmp_path)
    assert read_plan(tmp_path) == plan


def test_a_plan_that_was_tampered_with_is_one_sentence(tmp_path):
    (tmp_path / "plan.json").write_text('{"preset": "tiny", "cells": [{"corpus": 1}]}')
    with pytest.raises(ValueError, match=r"The plan in .* cannot be read"):
        read_plan(tmp_path)


def test_what_is_learned_holds_for_the_encodings_that_have_it():
    plan = make_plan(encodings=["alibi", "-a*log(1 + k*t)", "-2*log(t + 1)"], learn="a=0:2", slopes="learned")
    alibi, typed, plain = (cell.settings.parameters for cell in plan.cells)
    assert set(alibi) == {"k"}
    assert set(typed) == {"a", "k"}
    assert plain == {}
    assert typed["a"]["start"] == [0, 2]
    assert len(alibi["k"]["values"]) == 4
    usual = make_plan(encodings=["alibi"])
    assert usual.cells[0].key != plan.cells[0].key
    assert "k: ALiBi's slopes, 1/4 ... 1/256, in every formula with a k" in sentences(usual, usual.cells)[1]
    assert not any("slopes" in said for said in sentences(plan, plan.cells))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "huge"}, "no study preset 'huge'"),
        ({"encodings": ["alibii"]}, "did you mean 'alibi'"),
        ({"encodings": ["alibi", "alibi"]}, "given twice"),
        ({"encodings": ["-q*t"]}, "leaves q open"),
        ({"seeds": 0}, "0 seeds"),
        ({"encodings": ["-q*t", "-r*t"], "learn": "q=0:1"}, "leaves r open"),
        ({"encodings": ["alibi"], "learn": "q=0:1"}, "No encoding here has a parameter 'q'"),
        ({"encodings": ["-2*log(t + 1)"], "slopes": "learned"}, "No encoding here has a parameter 'k'"),
        ({"encodings": ["alibi"], "slopes": "1,2,3"}, "3 values for 4 heads"),
    ],
)
def test_nonsense_is_one_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        make_plan(**options)


def test_two_folders_of_one_name_get_two_labels(tmp_path):
    for parent in ("a", "b"):
        (tmp_path / parent / "text").mkdir(parents=True)
    plan = make_plan("tiny", [str(tmp_path / "a" / "text"), str(tmp_path / "b" / "text")], ["alibi"])
    assert plan.corpora == ["text", "text 2"]


def test_lists_are_split_at_commas_outside_of_parentheses(tmp_path):
    assert split(["alibi, -log(max(t, 1)), type1", "-t"]) == ["alibi", "-log(max(t, 1))", "type1", "-t"]
    odd = tmp_path / "a,b"
    odd.mkdir()
    assert split([str(odd), "python,books"], paths=True) == [str(odd), "python", "books"]
    with pytest.raises(ValueError, match="empty list"):
        split([" , "])


def test_file_names_are_made_of_letters_digits_and_hyphens():
    for text in ("../../etc/passwd", "-2*log(t + 1)", "a\x00b", "", "é" * 100, "x" * 500):
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,39}", slug(text))


@pytest.mark.parametrize("encoding", ["inverse", "alibi", "type1"])
def test_the_tails_set_the_verdict_against_the_leak(encoding: str) -> None:
    """One diverges and leaks less than the bias as it is, the other converges and leaks more: chosen beforehand."""
    bias, given = zoo.find(encoding).formula, {"parameters": {"k": "1/16"}}
    little, much = (tail_formula(bias, tail, 64) for tail in ("c - 4", SLOW))
    assert {"c - 4", SLOW} <= set(TAILS)
    assert (check(little, **given).verdict, check(much, **given).verdict) == ("diverges", "converges")
    leaks = [float(leak(one, 64, 1152, **given)) for one in (little, much)]
    assert leaks[0] < 0.5 * leaks[1]
