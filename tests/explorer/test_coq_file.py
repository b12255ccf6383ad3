"""The file for Coq beside the proof is the one that the library writes, under a name that Coq accepts."""

import re

import pytest

from farfield.explorer.question import read
from farfield.explorer.replies import answer
from farfield.theory.errors import OutsideCoqError
from farfield.theory.verdict.convergence import check
from farfield.zoo import ENCODINGS


def ask(kind, *fields):
    return answer(read(kind, list(fields)))


@pytest.mark.parametrize(
    ("fields", "text", "given"),
    [
        ([("f", "alibi"), ("heads", "8"), ("head", "3")], "alibi", {"parameters": {"k": "1/8"}}),
        ([("f", "-k*t"), ("set", "0.k=2/7")], "-k*t", {"parameters": {"k": "2/7"}}),
        ([("f", "inverse"), ("set", "0.k=1")], "inverse", {"parameters": {"k": "1"}}),
        ([("f", "-2*log(t)"), ("from", "1")], "-2*log(t)", {"start": 1}),
        ([("f", "weight: 1/(t + 1)**2")], "1/(t + 1)**2", {"weight": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_file_is_the_one_of_the_library(fields, text, given):
    found = ask("coq", *fields)
    assert found["text"] == check(text, **given).coq()
    assert found["why"] is None
    assert found["file"] == ("farfield.v" if text not in ENCODINGS else f"farfield_{text}.v")


def test_another_value_is_another_file():
    first, second = (ask("coq", ("f", "alibi"), ("set", f"0.k={k}"))["text"] for k in ("1/16", "1/17"))
    assert first != second


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_named_encoding_has_a_file_or_a_sentence(name):
    found = ask("coq", ("f", name))
    used = {p["name"]: p["text"] for p in ask("verdict", ("f", name))["parameters"]}
    verdict = check(name, parameters=used)
    if found["why"] is not None:
        with pytest.raises(OutsideCoqError, match=re.escape(found["why"])):
            verdict.coq()
        assert (found["file"], found["text"]) == (None, None)
        return
    assert found["text"] == verdict.coq()
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*\.v", found["file"])


def test_where_nothing_can_be_written_a_sentence_says_why():
    assert "its certificate" in ask("coq", ("f", "-log(t + 1)*(2 + cos(pi*t))"))["why"]
    assert ask("coq", ("f", "-log(t + 1)*(1 + sin(t)/2)"))["why"].endswith("it is undecided")
    assert ask("coq", ("f", "rope"))["why"].endswith("the theorem does not apply to it")
    with pytest.raises(ValueError, match="knows no field 'epsilon'"):
        ask("coq", ("f", "alibi"), ("epsilon", "0.1"))
