"""Work is counted in steps, and what is not ready in time is left out with a sentence."""

import json

import pytest

from farfield import answer
from farfield.cli import app
from farfield.theory.budget import TimeUpError, tick, time_limit
from farfield.theory.checker.examination import Examination
from farfield.theory.sums.series import series
from farfield.theory.verdict import convergence


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
    assert "the sum or a receptive field is left out: not ready after 1e-06 s; --time 30 gives more" in " ".join(
        short.split()
    )
    seen = answer("-2*log(t+1)", epsilons=["0.1"], seconds=-1)
    assert seen.notes == ["the sum or a receptive field is left out: not ready after -1 s; --time 30 gives more"]
    whole = said(capsys, "alibi", "--heads", "2", "--json", "--time", "1000")
    assert [len(head["trf"]) for head in json.loads(whole)["heads"]] == [7, 7]


def test_the_time_is_checked(capsys):
    with pytest.raises((SystemExit, ValueError)):
        app(["check", "alibi", "--time", "0"])


def test_weights_that_are_all_0_have_a_verdict_and_a_note(capsys):
    assert json.loads(said(capsys, "weight: sin(pi*t)**2/(t+1)", "--json"))["verdict"] == "converges"
    shown = said(capsys, "weight: sin(pi*t)**2/(t+1)")
    assert shown.count("all weights of weight: sin(pi*t)**2/(t + 1) are 0, so it has no receptive field") == 1


def test_what_is_proven_is_printed(capsys, monkeypatch):
    proven = said(capsys, "-2*log(t + 1)")
    assert "proof (checked: its bounds are proven for every t, nothing is sampled)" in proven
    assert "proof (checked: each case is proven for all its parameters and all large t)" in said(capsys, "-k*t")
    refused = Examination(False, refused="it is false at t = 7")
    monkeypatch.setattr(convergence, "examine", lambda *_, **__: refused)
    words = " ".join(said(capsys, "-3*log(t + 1)").split())
    assert "undecided" in words
    assert "the checker does not accept its certificate: it is false at t = 7; please report this formula" in words
