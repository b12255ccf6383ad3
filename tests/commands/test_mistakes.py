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
    ("-t//2", "floor"), ("-t % 2", "'%'"), ("-t & 2", "'&'"), ("-t; rm", "bounded family"),
    ("-t # slope", "'#'"), ("-'t'", "'"),
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
    (["chek", "alibi"], "check"), (["check"], "farfield check alibi"), (["check", "alibi", "--sett", "k=1"], "--sett"),
    (["check", "--", "-t", "--json"], "type --json before it"),
    (["check", "alibi", "--set", "k"], "NAME=VALUE"), (["check", "alibi", "--set", "=1"], "NAME=VALUE"),
    (["check", "alibi", "--set", "k="], "NAME=VALUE"), (["check", "alibi", "--set", "z=1"], "'z'"),
    (["check", "alibi", "--set", "k=abc"], "constant"), (["check", "alibi", "--set", "k=1/0"], ""),
    (["compare", "alibi", "type1", "--set", "k=0,1"], "one value here, not 2"),
    (["check", "alibi", "--heads", "0"], "heads"),
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
    (["design", "inverse", "--reach", "64"], "diverges, or is not decided"), (["window"], "encoding"),
    (["window", "alibi", "--heads", "8", "--logit-bound", "-1", "--epsilon", "0.01"], "bound"),
    (["zoo", "alibi"], "alibi"), (["inspect", "no/such/folder"], ""), (["explore", "--port", "99999999"], "port"),
    (["explore", "--seconds", "0"], "seconds"), (["explore", "--study", "nowhere"], "nowhere"),
    (["train", "--encoding", "albi", "--out", "/tmp/farfield-none"], "alibi"), (["train", "--preset", "huge"], "huge"),
    (["evaluate", "./nothing"], "no folder"), (["receptive", "runs/nothing"], "no folder"),
    (["generate", "./nothing", "--prompt", "x"], "no folder"), (["generate", "./nothing"], "--prompt"),
    (["serve", "./nothing", "--port", "0"], "transformers serve"),
    (["speed", "./nothing"], "no folder"), (["study", "--seeds", "0"], "seed"),
    (["check", "-k*t", "--set", "k=1,2", "--heads", "3"], "2 values for 3 heads"),
    (["check", "-2*log(t+1)", "--set", "k=1,2"], "'k'"), (["check", "-k*t", "--set", "k=1,2", "--set", "k=1"], "twice"),
    (["train", "--encoding", "-a*t", "--learn", "a=2:0", "--out", "/tmp/farfield-none"], "upside down"),
    (["study", "--encodings", "-a*t", "--learn", "b=0:1"], "leaves a open"),
    (["study", "--encodings", "-a*t", "--learn", "a=0:1,b=0:1"], "'b'"),
    (["replace", "./nothing", "--encoding", "-k*t", "--out", "/tmp/farfield-none"], "no folder"),
    (["replace", "./nothing", "--encoding", "albi", "--out", "/tmp/farfield-none"], "alibi"),
    (["replace", "./nothing", "--encoding", "-k*t"], "--out"),
    (["study", "--encodings", "albi"], "alibi"), (["--nonsense"], "--nonsense"), (["help me"], "help me"),
]  # fmt: skip
FOLDERS = [  # of the verbs that read a folder; those below lie in the current one
    (["inspect"], "model"), (["inspect", "broken"], "'broken/config.json' cannot be read as JSON"),
    (["inspect", "list"], "holds no table"), (["inspect", "negative"], "num_hidden_layers must lie between"),
    (["inspect", "bloom", "--logit-bound", "-1"], "from 0 to"), (["inspect", "bloom", "--logit-bound", "big"], "'big'"),
    (["inspect", "bloom", "--epsilon", "2"], "strictly between 0 and 1"),
    (["inspect", "bloom", "--figure", "x.gif"], ".png, .svg or .pdf"),
    (["inspect", "bloom", "--weights"], "holds no weights"),
    (["inspect", "bloom", "--weights", "--corpus", "python", "--length", "1"], "at least 2"),
    (["inspect", "bloom", "--weights", "--logit-bound", "5"], "not both"), (["inspect", "text"], "JSON"),
    (["inspect", "bloom", "twice"], "twice"), (["inspect", "bloom", "--length", "x"], "whole number"),
    (["needle"], "--train ENCODING"), (["needle", "--train", "albi"], "alibi"),
    (["needle", "--train", "alibi", "--length", "3"], "at least 8"),
    (["needle", "--train", "alibi", "--steps", "0"], "at least"),
    (["needle", "--train", "alibi", "--steps", "1", "--distances", "2"], "odd numbers"),
    (["needle", "--train", "alibi", "--steps", "1", "--distances", "a,b"], "whole numbers"),
    (["needle", "--train", "alibi", "--steps", "1", "--trials", "0"], "at least 1"),
    (["needle", "--train", "alibi", "--steps", "1", "--window", "0"], "at least 1"),
    (["needle", "--train", "alibi", "--device", "tpu9"], "no device 'tpu9'"),
    (["serve"], "docs/howto/serve-a-model.md"), (["replace"], "MODEL"),
    (["replace", "bloom", "--out", "o"], "--encoding"),
    (["replace", "odd", "--encoding", "alibi", "--out", "o"], "weights"),
    (["train", "--encoding", "-a*t", "--learn", "a", "--out", "o"], "NAME=LOW:HIGH"),
    (["train", "--encoding", "-a*t", "--learn", "b=0:1", "--out", "o"], "no parameter 'b'"),
    (["train", "--encoding", "-a*t", "--learn", "t=0:1", "--out", "o"], "t is the distance"),
    (["train", "--encoding", "-a*t", "--learn", "a=0:nan", "--out", "o"], "'nan'"),
    (["train", "--encoding", "-a*t", "--learn", "a=0:1 in 2:3", "--out", "o"], "not within its bounds"),
    (["train", "--encoding", "alibi", "--slopes", "1,2,3", "--preset", "tiny", "--out", "o"], "3 values for 2 heads"),
    (["train", "--encoding", "alibi", "--slopes", "steep", "--out", "o"], "'steep'"),
    (["train", "--from", "nothing", "--out", "o"], "no folder 'nothing'"),
    (["train", "--from", "bloom", "--out", "o"], "holds no weights"),
    (["train", "--encoding", "fox", "--preset", "tiny", "--out", "o"], "bounded family"),
    (["train", "--encoding", "alibi", "--device", "tpu9", "--preset", "tiny", "--out", "o"], "no device 'tpu9'"),
    (["study", "--device", "gpu"], "cuda:1"), (["study", "--device", "cuda:5"], "'cuda:5'"),
    (["study", "--encodings", ""], "empty list"), (["study", "--stands-for", "books"], "DATASET=CORPUS"),
    (["generate", "./nothing", "--prompt", "x", "--tokens", "0"], "at least 1"),
    (["generate", "./nothing", "--prompt", "x", "--prompt-file", "text"], "either"),
    (["generate", "./nothing", "--prompt-file", "no.txt"], "'no.txt' cannot be read: No such file or directory."),
    (["explore", "--static", "text"], "text"), (["speed", "run", "--windows", "a"], "whole numbers"),
    (["speed", "bloom", "--device", "tpu9"], "no device 'tpu9'"), (["speed"], "--model"),
    (["replace", "bloom", "--encoding", "alibi", "--out", "o", "--device", "tpu9"], "no device 'tpu9'"),
    (["window", "-a*t", "--heads", "3", "--set", "a=1,2"], "2 values for 3 heads"),
    (["window", "-a*t", "--heads", "2", "--set", "a=1,,2"], "a has 3 values"),
    (["train", "--encoding", "-a*t", "--set", "a=1,2,3", "--preset", "tiny", "--out", "o"], "3 values for 2 heads"),
    (["check", "alibi", "k=0.5"], "--set k=0.5"), (["train", "alibi", "--out", "o"], "'alibi' is one word too many."),
    (["alibi"], "farfield check alibi"), (["-2*log(t+1)"], "farfield check '-2*log(t+1)'"),
    (["check", "alibi+type1"], "'alibi' is the name of an encoding"),
    (["check", "sinusoidal+alibi+type1"], "it has no formula"),
    (["check", "alibi", "--set", "k=1", "--set", "k=2"], "'k' twice"), (["check", "alibi", "--width", "0"], ">= 1"),
    (["check", "alibi", "--context", "-5"], "context must be a whole number >= 1"),
    (["check", "alibi", "--latex", "--json"], "--latex and --json"), (["check", "alibi", "--head", "3"], "--heads"),
    (["compare", "alibi", "type1", "--csv", "--latex"], "choose one"),
    (["check", "alibi", "--eps", "0.1"], "--epsilon"),
    (["compare", "alibi,type1"], "farfield compare alibi type1"), (["check", "alibi", "--epsilon", "0,01"], "0.01"),
    (["check", "alibi", "--set", "k=1/2 1/4"], "operator"), (["check", "alibi", "--set", "k:0.5"], "k=0.1"),
    (["check", "rope", "--coq", "rope.v"], "does not apply"),
    (["check", "alibi", "--coq", "no/x.v"], "cannot be written"),
    (["check", "alibi", "--time", "nan"], "at most 86400 seconds"), (["check", "-2*log(1+distance)"], "called t"),
    (["check", "weight: -2*log(t+1)"], "a negative weight"), (["check", "-k*t, k=0.5"], "--set"),
    (["compare", "alibi", "gpt2"], "farfield inspect"), (["compare", "alibi", "type1", "--context", "0"], ">= 1"),
    (["compare", "alibi", "type1", "--figure", "nowhere/x.pdf"], "nowhere does not exist"),
    (["design", "alibi", "4096"], "--reach"), (["design", "alibi", "--reach", "4k"], "whole number, not '4k'. See"),
    (["design", "-k*log(t)", "--reach", "64"], "write t + 1 in the place of t"),
    (["design", "kerple-log", "--reach", "512"], "give all but one a value"), (["zoo", "--jsn"], "--json"),
    (["design", "alibi", "--reach", "64", "--heads", "4", "--shortest", "99"], "must not exceed"),
    (["window", "alibi", "--logit-bound", "inf"], "such as 5"), (["window", "kerple-log"], "such as p = 1/16"),
    (["inspect", "bloom", "--length", "0"], "at least 2"), (["explore", "--seconds", "nan"], "up to 3600"),
    (["train", "--encoding", "alibi"], "--out"), (["train", "--encoding", "alibi", "--heads", "5", "--out", "o"], "96"),
    (["train", "--encoding", "alibi", "--out", "o", "--precision", "fp16"], "'bfloat16'"),
    (["train", "--encoding", "alibi", "--out", "o", "--log-to", "mlflow"], "tensorboard, trackio, wandb"),
    (["study", "--encodings", "alibi,alibi"], "twice"), (["speed", "run", "--windows", "16;32"], "commas"),
    (["needle", "bloom", "--distances", "3,3.5"], "whole numbers"), (["evaluate", "bloom", "--split", "x"], "valid"),
    (["compare", "fox", "alibi"], "high, low"), (["check", "alibi", "--coq", "a b.v"], "'a b.v'"),
    (["window", "bloom", "--epsilon", "0"], "strictly between"),
    (["design", "fox", "--reach", "64"], "bounded family"),
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
    assert len(FORMULAS) + len(COMMANDS) + len(FOLDERS) >= 250


@pytest.mark.parametrize(("text", "part"), FORMULAS, ids=[repr(text[:20]) for text, _ in FORMULAS])
def test_a_mistyped_formula(capsys, text, part):
    assert part in said(capsys, ["check", text])


@pytest.mark.parametrize(("arguments", "part"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_a_mistyped_command(capsys, arguments, part):
    assert part in said(capsys, arguments)


@pytest.mark.parametrize(("arguments", "part"), FOLDERS, ids=[" ".join(words) for words, _ in FOLDERS])
def test_a_mistake_with_a_folder(capsys, monkeypatch, tmp_path, arguments, part):
    bloom = '{"model_type": "bloom", "n_layer": 2, "n_head": 16, "hidden_size": 1024}'
    configs = {"broken": "{", "list": "[1]", "odd": '{"model_type": "martian"}', "bloom": bloom}
    configs["negative"] = bloom.replace("2,", "-2,")
    for name, text in configs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    (tmp_path / "text").write_text("hello")
    monkeypatch.chdir(tmp_path)
    assert part in said(capsys, arguments)
    assert not (tmp_path / "o").exists()
