"""A hostile text is answered at once, in one sentence or with a verdict; nothing of it is ever executed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from farfield.formula import FormulaError, parse

HOSTILE = json.loads((Path(__file__).parents[1] / "oracles" / "hostile.json").read_text(encoding="utf-8"))
pytestmark = pytest.mark.hostile("formulas that want to run code, or to last for ever")
LEGAL = {"t**t**t**t**t**t", "exp(exp(exp(exp(exp(t)))))"}
REPEATS = {
    "open brackets": "(" * 10_000,
    "brackets": "(" * 10_000 + "t" + ")" * 10_000,
    "a literal of a megabyte": "9" * 1_000_000,
    "a small literal of a megabyte": "0." + "0" * 1_000_000 + "1",
    "an exponent of a megabyte": "1e" + "9" * 1_000_000,
    "half a million +t": "t" + "+t" * 500_000,
    "half a million signs": "-" * 500_000 + "t",
    "half a million powers": "t" + "**t" * 500_000,
    "half a million calls": "exp(" * 500_000,
    "half a million commas": "min(" + "t," * 500_000,
    "a name of a megabyte": "a" * 1_000_000,
    "a megabyte of blanks": " " * 1_000_000,
    "a megabyte of zero bytes": "\0" * 1_000_000,
}
INSIDE_THE_LIMITS = {
    "sums": "sum(sum(sum(cos(t*i1*i2*i3), i1, 1, 30), i2, 1, 30), i3, 1, 3)",
    "sum of a thousand": "sum(sin(t/j)**2, j, 1, 1024) - t",
    "a deep tower": "+".join(["exp(-t)"] * 40),
    "deep logarithms": "log(" * 30 + "t+1e9" + ")" * 30,
    "deep powers": "(" * 30 + "t+2" + ")**0.9" * 30,
    "deep exponentials": "exp(" * 30 + "t" + ")" * 30,
    "large exponents": "-(t+1)**1000",
    "large numbers": "-1e299*t + 1e299",
    "tiny numbers": "-1e-290*t",
    "nested where": "where(t < 1, 0, " * 20 + "-t" + ")" * 20,
    "nested floors": "floor(" * 30 + "-t/7" + ")" * 30,
    "cancelling": "exp(exp(t)) - exp(exp(t)) - t",
    "oscillating": "sin(" * 30 + "t" + ")" * 30,
    "roots of roots": "sqrt(2+" * 25 + "t" + ")" * 25,
    "ten parameters": "-" + "*".join(f"a{i}" for i in range(10)) + "*t",
    "sixty parameters": "-" + "*".join(f"a{i}" for i in range(60)) + "*t",
}

CHILD = '''
import json, resource, sys, time
import farfield
from farfield.formula import FormulaError, parse

judge = getattr(farfield, "check", None) if sys.argv[1] == "check" else parse
judge("-t")  # what is imported only once is not the text's doing
answers = {}

def slowness():
    """How much longer than on a quiet machine a fixed piece of work takes just now."""
    kept, start = {}, time.process_time()
    for i in range(200_000):
        kept[i % 1000] = (i, str(i))
    return max(1.0, (time.process_time() - start) / 0.025)

for name, text in json.load(sys.stdin).items():
    slower = slowness()
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        answer = judge(text)
        kind, sentence = "answered", str(getattr(answer, "verdict", ""))
    except FormulaError as error:
        kind, sentence = "refused", str(error)
    except BaseException as error:
        kind, sentence = "failed", repr(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    answers[name] = [kind, sentence, (time.process_time() - start) / slower, grown / 1024]
json.dump(answers, sys.stdout)
'''
SECONDS = 2.0  # of work: what a verdict may take at worst
MEGABYTES = 50


def answers(how, texts, folder):
    """Judge every text in a process of its own, in an empty folder: (kind, sentence, seconds, megabytes) of each."""
    child = subprocess.run(
        [sys.executable, "-c", CHILD, how],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stderr == ""
    assert list(folder.iterdir()) == [], "a hostile text was executed"
    return json.loads(child.stdout)


def assert_cheap(result):
    """Each was answered in time, counted as work of a quiet machine, in little memory."""
    for name, (kind, sentence, seconds, megabytes) in result.items():
        assert kind != "failed", (name[:80], sentence)
        assert "\n" not in sentence
        assert len(sentence) < 300
        assert seconds < SECONDS, (name[:80], seconds)
        assert megabytes < MEGABYTES, (name[:80], megabytes)


@pytest.mark.parametrize("how", ["parse", "check"])
def test_hostile_texts_are_answered_and_never_executed(how, tmp_path, attacks):
    attacks(len(HOSTILE))
    result = answers(how, {text: text for text in HOSTILE}, tmp_path)
    assert_cheap(result)
    assert {text for text, answer in result.items() if answer[0] == "answered"} == LEGAL
    if how == "check":
        assert {result[text][1] for text in LEGAL} == {"diverges"}


@pytest.mark.parametrize("how", ["parse", "check"])
def test_repeats_are_refused_before_any_work(how, tmp_path, attacks):
    attacks(len(REPEATS))
    result = answers(how, REPEATS, tmp_path)
    assert_cheap(result)
    assert {answer[0] for answer in result.values()} == {"refused"}


def test_formulas_that_use_the_limits_up_are_answered_in_time(tmp_path, attacks):
    attacks(len(INSIDE_THE_LIMITS))
    result = answers("check", INSIDE_THE_LIMITS, tmp_path)
    assert_cheap(result)


@pytest.mark.hostile("formulas that want to run code, or to last for ever", 0)  # the same texts again
@pytest.mark.parametrize("text", [*HOSTILE, *REPEATS.values()], ids=range(len(HOSTILE) + len(REPEATS)))
def test_a_refusal_is_one_sentence_with_a_column_and_a_caret(text):
    if text in LEGAL:
        assert parse(parse(text).text()) == parse(text)
        return
    with pytest.raises(FormulaError) as caught:
        parse(text)
    error = caught.value
    assert "\n" not in str(error)
    assert 1 <= error.column <= len(text) + 1
    assert f"(column {error.column})" in str(error)
    lines = error.pointer().split("\n")
    assert len(lines) == 2
    assert all(line.isascii() and line.isprintable() for line in lines)
