"""What a terminal of 80 columns shows: the answer in the first sentence, then tables of which nothing is cut."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

from farfield.cli import main


@pytest.fixture
def terminal(monkeypatch, capsys):
    """Runs a command in a terminal of 80 columns, or of as many as are given; its lines."""

    def run(*arguments, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        with contextlib.suppress(SystemExit):
            main([str(a) for a in arguments])
        out = capsys.readouterr()
        assert not out.err
        lines = out.out.splitlines()
        assert max(map(len, lines)) <= columns
        assert not any("…" in line for line in lines)
        return lines

    return run


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("terminal") / "run"
    with pytest.raises(SystemExit) as end:
        main(["train", "--encoding", "type1", "--preset", "tiny", "--out", str(folder), "--quiet"])
    assert not end.value.code
    return folder


FIRST = [
    (("check", "-2*log(t + 1)"), "r(t) = -2*log(t + 1) converges, with all but 1 % of the weight within 61 tokens."),
    (("check", "-t*2", "--epsilon", "1e-12"), "all but 1e-12 of the weight within"),
    (("check", "weight: 1/(1 + t)**3", "--epsilon", "0.5"), "b(t) = 1/(1 + t)**3 converges, with all but 50 % of"),
    (("check", "-log(t + 1)"), "r(t) = -log(t + 1) diverges, so no window is enough for every text."),
    (("check", "alibi"), "alibi: r(t) = -k*t converges if and only if k > 0."),
    (("check", "alibi", "--heads", "4"), "of 4 heads the widest has all but 1 % of the weight within 1,179 tokens."),
    (("check", "rope"), "rope: the theorem does not apply."),
    (("check", "-abs(sin(t))*t"), "undecided"),
    (("check", "fox"), "windowed: converges if and only if high < 1."),
    (("check", "-k*t - m", "--heads", "2"), "converges if and only if k > 0."),  # m stays open: no field is claimed
    (("compare", "alibi", "-sqrt(t)"), "has the smaller receptive field as epsilon -> 0"),
    (("compare", "alibi", "-sqrt(t)", "none"), "from the nearest to the farthest"),
    (
        ("design", "alibi", "--reach", "4096"),
        "alibi: k = 0.0011245 has a receptive field of 4,096 tokens at",
    ),
    (("window", "alibi", "--heads", "4"), "alibi: the last 3,737 tokens are enough for each of the 4 heads."),
    (("window", "inverse", "--heads", "4"), "inverse: no window is enough."),
    (("window", "inverse", "--context", "9000"), "are enough for each of the 8 heads in texts of up to 9,000 tokens."),
    (("zoo",), "encodings have names"),
]


@pytest.mark.parametrize(("arguments", "sentence"), FIRST, ids=lambda x: " ".join(x) if isinstance(x, tuple) else "")
def test_the_answer_comes_first(terminal, arguments, sentence):
    lines = terminal(*arguments)
    assert sentence in " ".join(" ".join(lines[:3]).split())


def test_what_a_trained_model_does_is_said_first(terminal, small_run, tmp_path):
    lines = terminal(
        "evaluate", small_run, "--lengths", "1x,2x,4x", "--tokens", "2048", "--epsilon", "0.1", "--window", "8",
        "--tail", "cut", "--quiet", "--out", tmp_path,
    )  # fmt: skip
    assert "extrapolate" in " ".join(lines[:2])
    table = [line for line in lines if line.split()[:2] in (["32", "2x"], ["64", "4x"])]
    assert len(table) == 4
    assert all(line.count("±") == 3 for line in table)  # perplexity, change and rise, each with its error
    seen = lines[next(i for i, line in enumerate(lines) if line.split()[:2] == ["tokens", "seen"]) + 2 :][:7]
    assert all("±" in line for line in seen)  # no bin without an error
    for options, said in ((), "attention lies within"), (("--truncate",), "changes the loss by"):
        lines = terminal("receptive", small_run, "--chunks", "1", "--outputs", "1", "--quiet", *options)
        assert said in " ".join(lines[:2])
    lines = terminal("speed", small_run, "--windows", "4,8", "--tokens", "64", "--repeats", "1", "--quiet")
    assert "as long for a token as non-overlapping windows." in " ".join(" ".join(lines[:3]).split())
    assert "layers have type1" in " ".join(terminal("inspect", small_run)[:2])
    kept = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert all("error" in part for row in kept["rows"] for part in row["positions"] or [])


def test_a_table_that_is_too_wide_is_a_list(terminal):
    wide = terminal("check", "type1", "--heads", "2", columns=120)
    narrow = terminal("check", "type1", "--heads", "2", columns=60)
    assert any(line.split() == ["1", "1/16", "25.6327", "17", "100", "1,000", "9,988", "9,987,228",
                                "9,987,226,795", "9,987,226,793,879"] for line in wide)  # fmt: skip
    text = " ".join(" ".join(narrow).split())
    assert "head 1 k: 1/16; B: 25.6327; 0.5: 17; 0.1: 100;" in text
    assert "widest 0.5: 257" in text


def test_a_sum_that_no_double_holds_is_shown(terminal):
    assert "2.846259681e+35659" in " ".join(terminal("compare", "-t**0.0001", "-t"))
    assert sum("e+" in line for line in terminal("check", "-k*t**0.0001", "--heads", "2")) == 2


def test_compare_says_how_far_it_is(monkeypatch, capsys, tmp_path):
    from farfield.commands import compare

    said = []

    @contextlib.contextmanager
    def progress(first, quiet):
        assert not quiet
        yield lambda label, done, total: said.append((label, done, total))

    with monkeypatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(compare, "progress", progress)
        main(["compare", "-t", "-t/2", "-sqrt(t)", "--figure", str(tmp_path / "a.svg")])
    steps = [("receptive field", 3), ("curve", 3), ("pair", 3)]
    assert said == [(f"{what} {i + 1} of {n}", i, n) for what, n in steps for i in range(n)]
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        main(["compare", "-t", "-t/2", "-sqrt(t)"])
    assert " of 3" in capsys.readouterr().err


@pytest.mark.filterwarnings("default")
def test_what_a_cache_needs_is_said_after_the_text_once_for_each_head(small_run, capsys):
    with contextlib.suppress(SystemExit):
        main(["generate", str(small_run), "--prompt", "def ", "--tokens", "20", "--epsilon", "1e-3"])
    out = capsys.readouterr()
    notes = [" ".join(line.split()[1:6]) for line in out.err.splitlines() if line.startswith("note: ")]
    assert sorted(notes) == [f"head {head} of layer {layer}" for head in (1, 2) for layer in (1, 2)]
    assert out.err.index("note: ") < out.err.index("epsilon 0.001 held over 23 tokens")
    assert out.out.startswith("def ")


def test_speed_compares_the_same_tokens(small_run):
    from farfield.measure import load_model, load_text, measure_speed

    model = load_model(str(small_run))
    text = load_text(model, tokens=96)
    found = measure_speed(model, text, windows=[8], sliding_tokens=16, repeats=1)
    first = load_text(model, tokens=96)
    short = measure_speed(model, type(first)(first.ids[:, :17].ravel(), {}), windows=[8], repeats=1)
    for protocol in ("non-overlapping", "sliding", "windowed"):
        a, b = (next(t for t in one.of(protocol)).perplexity for one in (found, short))
        assert a == pytest.approx(b, rel=1e-5)  # of the first 16 tokens, in both
    assert not np.isclose(found.of("non-overlapping")[0].perplexity, measure_speed(model, text, windows=[8], repeats=1)
                          .of("non-overlapping")[0].perplexity, rtol=1e-5)  # fmt: skip


DRAWING = [
    ("compare", "-t", "-2*t"), ("evaluate", "gpt2"), ("receptive", "gpt2"), ("speed", "gpt2"), ("inspect", "gpt2"),
]  # fmt: skip


@pytest.mark.parametrize("verb", DRAWING, ids=lambda v: v[0])
@pytest.mark.parametrize(
    ("name", "sentence"),
    [("f.jpg", "as .png, .svg or .pdf"), ("f", "as .png, .svg or .pdf"), ("no/f.pdf", "does not exist")],
)
def test_the_ending_of_a_figure_is_checked_before_any_work(capsys, monkeypatch, verb, name, sentence):
    import farfield.data.configurations
    import farfield.measure.loading

    for module, work in ((farfield.measure.loading, "load_model"), (farfield.data.configurations, "configuration_of")):
        monkeypatch.setattr(module, work, lambda *_, **__: pytest.fail("work was done"))
    with pytest.raises(SystemExit) as end:
        main([*verb, "--figure", name])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ending", "start"), [("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml"), ("PNG", b"\x89PNG")]
)
def test_an_ending_writes_exactly_that_file(terminal, tmp_path, ending, start):
    path = tmp_path / f"fields.{ending}"
    terminal("compare", "-t", "-2*t", "--epsilon", "0.1", "--figure", path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes().startswith(start)
