"""The command line, as a person uses it: real processes, what is printed, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FARFIELD = Path(sys.executable).with_name("farfield")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([FARFIELD, *arguments], capture_output=True, text=True, timeout=60, check=False)


def answer(*arguments: str) -> dict:
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "-t/256", "--json"),
        ("check", "--json", "-t/256"),
        ("check", "--json", "-k*t", "--set", "k=1/256"),
        ("check", "--set", "k=1/256", "-k*t", "--json"),
        ("check", "alibi", "--set", "k=1/256", "--json"),
    ],
)
def test_a_formula_that_begins_with_a_minus_sign_works_as_it_is(arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "converges"
    assert said["condition"] is None


def test_the_json_object_has_what_a_program_needs():
    said = answer("check", "-2*log(t + 1)")
    assert said["formula"] == "-2*log(t + 1)"
    assert said["verdict"] == "converges"
    assert all(isinstance(step, str) for step in said["proof"])
    assert said["certificate"]["claim"] == "upper"


def test_open_parameters_are_answered_with_the_exact_condition():
    assert "p > 1" in answer("check", "kerple-log")["condition"]
    assert "k > 0" in answer("check", "alibi")["condition"]
    assert answer("check", "kerple-power")["condition"] == "converges for every a > 0, p > 0"


def test_every_head_of_a_model_is_judged():
    said = answer("check", "sandwich", "--heads", "8")
    assert [h["head"] for h in said["heads"]] == list(range(1, 9))
    assert {h["verdict"] for h in said["heads"]} == {"diverges"}
    assert all(h["horizon"]["tokens"] > 1000 for h in said["heads"])


def test_a_set_that_is_no_assignment_is_refused():
    done = run("check", "alibi", "--set", "k")
    assert done.returncode == 2
    assert "NAME=VALUE" in done.stderr


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("-log(t", "column 7"),
        ("t^", "the formula ends"),
        ("-lg(t+1)", "log"),
        ("-x", "'t'"),
        ("albi", "alibi"),
        ("-log(t)", "t = 0"),
        ("", "empty"),
        ("-", "column"),
    ],
)
def test_nonsense_ends_with_one_sentence_and_status_2(text, part):
    done = run("check", text)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("arguments", [("chek", "alibi"), ("check", "alibi", "--sett", "k=1"), ("check",)])
def test_a_misspelt_command_or_option_ends_with_one_sentence_and_status_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "--help" in done.stderr


def test_the_series_may_start_later():
    assert answer("check", "weight: 1/(t*log(t))", "--from", "2")["verdict"] == "diverges"


def test_what_is_no_bias_is_not_applicable():
    said = answer("check", "rope")
    assert said["verdict"] == "not-applicable"
    assert said["certificate"] is None


def test_the_proof_is_latex_if_asked():
    done = run("check", "-t**2", "--latex")
    assert r"\begin{enumerate}" in done.stdout
    assert r"\le" in done.stdout


def test_the_zoo_lists_every_encoding():
    from farfield.zoo import BOUNDED, ENCODINGS

    rows = json.loads(run("zoo", "--json").stdout)
    assert [r["name"] for r in rows] == [*ENCODINGS, *BOUNDED]
    table = run("zoo").stdout
    assert "kerple-power" in table


def test_python_m_farfield_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "farfield", "check", "alibi"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert "converges" in done.stdout
