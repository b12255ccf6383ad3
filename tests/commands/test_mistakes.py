"""What people mistype: each ends in one sentence that is true, with status 2 and without a traceback."""

from __future__ import annotations

import re

import pytest

from farfield.cli import main

pytestmark = pytest.mark.hostile("what people mistype")
FORMULAS = [  # after `check`; the sentence must have this part
    ("", "empty"), (" ", "empty"), ("-", "ends"), ("()", "bracket"), ("-log(t", "close"), ("-log t", "log(...)"),
    ("-2log(t+1)", "2*log"), ("-k t", "k*t"), ("-k*t)", "opening"), ("-k**", "ends"), ("-k*/t", "before"),
    ("-k*t,", "','"), ("-k*t = 0", "'='"), ("r(t) = -k*t", "'='"), ("y = -t", "'='"), ("-x", "'t'"), ("-x*2", "'t'"),
    ("-k*n", "t"), ("-k*T", "write 't'"), ("-K*t", "write 'k'"), ("-k*d", "t"), ("-|t|", "abs"), ("-√t", "sqrt"),
    ("-[t]", "round"), ("-{t}", "round"), ("-e^t", "exp"), ("-e**t", "exp"), ("-exp t", "exp(...)"),
    ("-logg(t+1)", "log"), ("-sqr(t)", "sqrt"), ("-tanh", "tanh(...)"), ("-pow(t, 2)", "**"), ("-power(t,2)", "**"),
    ("-log(t+1, 2)", "1 argument"), ("-max(t)", "2 arguments"), ("-sin()", "before"), ("-foo(t)", "known"),
    ("-t//2", "floor"), ("-t % 2", "'%'"), ("-t & 2", "'&'"), ("-t; rm", "';'"), ("-t # slope", "'#'"), ("-'t'", "'"),
    ("-1e999*t", "beyond"), ("-" + "1" * 80 + "*t", "digits"), ("-log(t)", "t = 0"), ("-1/t", "t = 0"),
    ("-log(t-5)", "t"), ("log(-1)", ""), ("1/0", ""), ("-inf", "where"), ("inf", "-inf"), ("nan", "nan"),
    ("oo", "-inf"), ("t < 5", "where"), ("where(t, 1, 2)", "where"), ("where(t<5, 1)", "','"),
    ("where(t<5)", "','"), ("if(t<5,1,2)", "where"), ("sum(t)", "sum("), ("sum(t, j)", "','"),
    ("sum(t, t, 1, 2)", "index"),
    ("sum(j*t, j, 1, t)", "bounds"), ("sum(j*t, j, 1, 1e9)", "terms"), ("(" * 60 + "t" + ")" * 60, "deep"),
    ("-t" * 6000, "characters"), ("albi", "alibi"), ("Alibii", "alibi"), ("kerple", "kerple-log"),
    ("kerple log", "kerple-log"),
    ("rope2", "rope"), ("type3", "type"), ("sandwhich", "sandwich"), ("no-such-name", "known"), ("λ", "t"), ("-λ", "t"),
    ("weight:", "empty"), ("weight: -inf", "where"), ("runs/nothing", "path"), ("./config.json", "path"),
    ("gpt-5x", "is a name"), ("-k*t k", "operator"), ("5 5", "operator"), ("-t\\2", "character"), ("-t\x00", "U+0000"),
    ("\u200b-t", "character"), ("-tｔ", ""),
]  # fmt: skip
COMMANDS = [
    (["chek", "alibi"], "check"), (["check"], "ENCODING"), (["check", "alibi", "--sett", "k=1"], "--sett"),
    (["check", "alibi", "--set", "k"], "NAME=VALUE"), (["check", "alibi", "--set", "=1"], "NAME=VALUE"),
    (["check", "alibi", "--set", "k="], "NAME=VALUE"), (["check", "alibi", "--set", "z=1"], "'z'"),
    (["check", "alibi", "--set", "k=abc"], "constant"), (["check", "alibi", "--set", "k=1/0"], ""),
    (["check", "alibi", "--set", "k=0,1"], ""), (["check", "alibi", "--heads", "0"], "heads"),
    (["check", "alibi", "--heads", "-3"], "heads"), (["check", "alibi", "--heads", "many"], "many"),
    (["check", "alibi", "--epsilon", "5"], "epsilon"), (["check", "alibi", "--epsilon", "0"], "epsilon"),
    (["check", "alibi", "--epsilon", "1%"], "epsilon"), (["check", "alibi", "--epsilon", "small"], "epsilon"),
    (["check", "alibi", "--from", "-1"], ""), (["check", "alibi", "--train-length", "512"], "both lengths"),
    (["check", "alibi", "--heads", "8", "--train-length", "512", "--test-length", "64"], ""),
    (["check", "alibi", "--heads", "8", "--layers", "0"], "layers"),
    (["check", "alibi", "sandwich"], "sandwich"), (["compare", "alibi"], "at least two"), (["compare"], "at least two"),
    (["compare", "alibi", "rope"], "no bias"), (["compare", "alibi", "type1", "--head", "9"], "no head 9"),
    (["compare", "alibi", "type1", "--head", "0"], "head"), (["compare", "alibi", "type1", "--set", "q=1"], "'q'"),
    (["compare", "alibi", "type1", "--figure", "a.gif"], ".png"), (["design", "alibi"], "reach"),
    (["design", "alibi", "--reach", "far"], "far"), (["design", "alibi", "--reach", "0"], "reach"),
    (["design", "-2*log(t+1)", "--reach", "4096"], "parameter"), (["design", "rope", "--reach", "64"], "bias"),
    (["design", "inverse", "--reach", "64"], ""), (["window"], "encoding"),
    (["window", "alibi", "--heads", "8", "--logit-bound", "-1", "--epsilon", "0.01"], "bound"),
    (["zoo", "alibi"], "alibi"), (["inspect", "no/such/folder"], ""), (["explore", "--port", "99999999"], "port"),
    (["explore", "--seconds", "0"], "seconds"), (["explore", "--study", "nowhere"], "nowhere"), (["cite", "me"], "me"),
    (["train", "--encoding", "albi", "--out", "/tmp/farfield-none"], "alibi"), (["train", "--preset", "huge"], "huge"),
    (["evaluate", "./nothing"], "no folder"), (["receptive", "runs/nothing"], "no folder"),
    (["generate", "./nothing", "--prompt", "x"], "no folder"), (["generate", "./nothing"], "--prompt"),
    (["serve", "./nothing"], "no folder"), (["speed", "./nothing"], "no folder"), (["study", "--seeds", "0"], "seed"),
    (["check", "-k*t", "--slopes", "learned", "--heads", "4"], "before training"),
    (["check", "-k*t", "--slopes", "1,2", "--heads", "3"], "2 values for 3 heads"),
    (["check", "-k*t", "--slopes", "1/2"], "--heads"), (["check", "-2*log(t+1)", "--slopes", "1,2"], "'k'"),
    (["check", "-k*t", "--slopes", "1,2", "--set", "k=1"], "twice"),
    (["train", "--encoding", "-a*t", "--learn", "a=2:0", "--out", "/tmp/farfield-none"], "upside down"),
    (["study", "--encodings", "-a*t", "--learn", "b=0:1"], "leaves a open"),
    (["study", "--encodings", "-a*t", "--learn", "a=0:1,b=0:1"], "'b'"),
    (["replace", "./nothing", "--encoding", "-k*t", "--out", "/tmp/farfield-none"], "no folder"),
    (["replace", "./nothing", "--encoding", "albi", "--out", "/tmp/farfield-none"], "alibi"),
    (["replace", "./nothing", "--encoding", "-k*t"], "--out"),
    (["study", "--encodings", "albi"], "alibi"), (["--nonsense"], "--nonsense"), (["help me"], "help me"),
]  # fmt: skip


def said(capsys, arguments):
    """The sentence of a mistake."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    out = capsys.readouterr()
    assert left.value.code == 2, (arguments, out)
    assert out.out == ""
    assert "Traceback" not in out.err
    first, *pointer = out.err.rstrip("\n").split("\n")
    assert first.startswith("farfield: ")
    assert len(first) < 500
    assert len(pointer) in (0, 2), out.err  # the text and a caret
    assert not re.search(r"object at 0x|<class|Errno|None\b", first), first
    return first


@pytest.mark.hostile("what people mistype", 0)
def test_there_are_many():
    assert len(FORMULAS) + len(COMMANDS) >= 120


@pytest.mark.parametrize(("text", "part"), FORMULAS, ids=[repr(text[:20]) for text, _ in FORMULAS])
def test_a_mistyped_formula(capsys, text, part):
    assert part in said(capsys, ["check", text])


@pytest.mark.parametrize(("arguments", "part"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_mistyped_command(capsys, arguments, part):
    assert part in said(capsys, arguments)
