"""Runs trained elsewhere become cells of a study; and what a study has left to do is said in time."""

from __future__ import annotations

import json
import shutil

import pytest

from farfield.study.cell import run_cell
from farfield.study.conduct import _is_trained, adopt
from farfield.study.jobs import TimeLeft
from farfield.study.plan import make_plan
from farfield.training.run import train


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder of runs: one that a tiny study asks for, but for how often it was saved, and one with another seed."""
    folder = tmp_path_factory.mktemp("runs")
    cell = make_plan("tiny", None, ["alibi"]).cells[0]
    for name, changes in (("mine", {"save_every": 20, "log_every": 7}), ("other", {"seed": 3})):
        settings = cell.settings.model_copy(update=changes)
        train(settings, folder / name, progress=False, log_to="none", say=lambda line: None)
    (folder / "empty").mkdir()
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{")
    return folder


def test_a_finished_run_with_the_settings_of_a_cell_is_measured_and_not_trained_again(trained, tmp_path, monkeypatch):
    plan = make_plan("tiny", None, ["alibi", "type1"])
    assert adopt(plan, tmp_path, [trained]) == 1
    assert adopt(plan, tmp_path, [trained]) == 0  # once is enough
    cell, other = plan.cells
    assert _is_trained(tmp_path, cell)
    assert not _is_trained(tmp_path, other)
    before = (trained / "mine" / "model.safetensors").read_bytes()
    monkeypatch.setattr("farfield.training.run.train", lambda *a, **k: pytest.fail("trained again"))
    assert run_cell(tmp_path, cell)
    record = json.loads(next((tmp_path / "records").iterdir()).read_text())
    assert record["encoding"] == "alibi"
    assert record["training"][0]["step"] == 7
    assert (trained / "mine" / "model.safetensors").read_bytes() == before


def test_a_run_that_is_damaged_or_another_is_not_taken(trained, tmp_path):
    plan = make_plan("tiny", None, ["alibi"], first_seed=1)
    assert adopt(plan, tmp_path / "a", [trained]) == 0
    copy = tmp_path / "runs" / "mine"
    shutil.copytree(trained / "mine", copy)
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    assert adopt(make_plan("tiny", None, ["alibi"]), tmp_path / "b", [tmp_path / "runs"]) == 0
    with pytest.raises(ValueError, match="There is no folder"):
        adopt(plan, tmp_path, [tmp_path / "nowhere"])


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_is_right_for_jobs_of_equal_length():
    """Ten jobs of 60 seconds, two at a time: 300 seconds in all."""
    clock = Clock()
    left = TimeLeft(clock)
    left.start(10)
    assert left.sentence == ""
    for second in range(1, 300):
        clock.now = float(second)
        pair, within = divmod(second, 60)
        for job in (2 * pair, 2 * pair + 1):
            left.moved(job, within / 60)
        if within == 0:
            for job in (2 * pair - 2, 2 * pair - 1):
                left.moved(job, 1.0)
        if second > 30:
            assert left.seconds == pytest.approx(300 - second, rel=0.25, abs=5)
    assert left.sentence == "less than a minute left"


def test_what_was_done_before_does_not_count_as_speed():
    """A study that goes on with a job at 90 % has not done that in its first minute."""
    clock = Clock()
    left = TimeLeft(clock)
    left.start(2)
    left.moved("a", 0.9)
    left.moved("b", 0.0)
    clock.now = 60.0
    left.moved("a", 1.0)
    left.moved("b", 0.1)
    assert left.seconds == pytest.approx(60 * 0.9 / 0.2)
    assert left.sentence == "about 4 minutes left"
