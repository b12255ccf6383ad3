"""Work is counted in steps, and what is not ready in time is left out with a sentence."""

import json

import pytest

from farfield import check, find
from farfield.cli import app
from farfield.theory.budget import STEPS, TimeUpError, Work, tick, time_limit
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.summary import fields
from farfield.theory.sums.series import series


def test_steps_are_counted_and_end():
    work = Work(10 / STEPS)
    work.spend(9)
    assert not work.done
    with pytest.raises(UndecidedError, match="used up"):
        work.spend()
    assert work.done


def test_a_time_limit_holds_inside_its_block_and_an_earlier_one_around_it():
    tick()
    with time_limit(None):
        tick()
    with time_limit(1000), pytest.raises(TimeUpError), time_limit(-1), time_limit(1000):
        tick()
    tick()


def test_a_sum_that_was_cut_short_is_complete_when_asked_again():
    text = "-2*log(t+1) - log(log(t+5))/7"
    with pytest.raises(TimeUpError), time_limit(-1):
        series(text).B()
    assert series(text).B() > 1


def said(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        app(["check", *arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_what_is_not_ready_is_left_out_with_a_sentence(capsys):
    short = said(capsys, "-1.5*log(t+1) - log(log(t+5))/7", "--time", "0.000001")
    assert "undecided" in short  # the verdict has less work, too
    found = find("-2*log(t+1)")
    options = {"heads": None, "width": 64, "layers": None, "epsilons": ["0.1"], "context": None, "lengths": None}
    seen = fields(found, check(found), {}, **options, start=0, seconds=-1)
    assert seen.notes == ["the sum or a receptive field is left out: not ready after -1 s; --time 30 gives more"]
    whole = said(capsys, "alibi", "--heads", "2", "--json", "--time", "1000")
    assert [len(head["trf"]) for head in json.loads(whole)["heads"]] == [7, 7]


def test_the_time_is_checked(capsys):
    with pytest.raises((SystemExit, ValueError)):
        app(["check", "alibi", "--time", "0"])
