"""The zoo holds every encoding of the paper, in its trained and its printed form."""

import json
import math
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import farfield
from farfield import zoo
from farfield.formula import FormulaError, parse

# name, trained form, printed form (None if the paper prints none or the same)
ROWS = [
    ("alibi", "-k*t", None),
    ("type1", "-log(1 + (k*t)**2)", "-2*log(t+1)"),
    ("type2", "-log(3 + k*t)**2", "-log(t+1)**2"),
    ("inverse", "-log(1 + k*t)", "-log(t+1)"),
    ("inverse-log", "-log(3+k*t) - log(log(3+k*t))", "-log(t+2) - log(log(t+2))"),
    ("kerple-log", "-p*log(1 + a*t)", None),
    ("kerple-power", "-a*t**p", None),
    (
        "sandwich",
        "(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)/s",
        "k*(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)",
    ),
    ("window", "where(t < w, 0, -inf)", "where(t <= w, 0, -inf)"),
    ("none", "0", None),
]


@pytest.mark.parametrize(("name", "trained", "printed"), ROWS)
def test_each_encoding_has_its_trained_and_its_printed_form(name, trained, printed):
    assert zoo.find(name).formula == parse(trained)
    if printed:
        assert zoo.find(f"{name}-paper").formula == parse(printed)


@pytest.mark.parametrize("name", ["sinusoidal", "rope"])
def test_what_is_no_bias_says_why_the_theorem_does_not_apply(name):
    encoding = zoo.find(name)
    assert encoding.formula is None
    assert "theorem does not apply" in encoding.note


def test_every_row_of_the_table_is_there():
    wanted = {row[0] for row in ROWS} | {"t5", "sinusoidal", "rope"}
    assert wanted <= set(zoo.ENCODINGS)


@pytest.mark.parametrize("name", list(zoo.ENCODINGS))
def test_each_encoding_is_complete(name):
    encoding = zoo.ENCODINGS[name]
    assert encoding.name == name
    assert encoding.source
    if encoding.formula is not None:
        assert {p.name for p in encoding.parameters} == set(encoding.formula.parameters)
        assert parse(encoding.formula.text()) == encoding.formula
    for parameter in encoding.parameters:
        assert parameter.given.text
        assert parameter.domain == "" or parameter.domain.split()[0] == parameter.name


def value(v):
    return float(v) if isinstance(v, Fraction) else parse(v).float(0)


@pytest.mark.parametrize("heads", [1, 2, 4, 8, 16, 32])
def test_slopes_of_a_power_of_two(heads):
    assert [value(s) for s in zoo.slopes(heads)] == pytest.approx([2 ** (-8 * h / heads) for h in range(1, heads + 1)])


def test_slopes_of_twelve_heads():
    """2^-1 ... 2^-8, then every other slope of sixteen heads."""
    expected = [2.0**-h for h in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    assert [value(s) for s in zoo.slopes(12)] == pytest.approx(expected)


@pytest.mark.parametrize("heads", [3, 5, 6, 7, 9, 11, 13, 20, 25, 40, 71])
def test_slopes_of_any_number_of_heads(heads):
    """ALiBi's own rule (Press et al. 2022), written as in the paper: recursion on the next power of two."""

    def reference(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return reference(closest) + reference(2 * closest)[0::2][: n - closest]

    ours = [value(s) for s in zoo.slopes(heads)]
    assert ours == pytest.approx(reference(heads), rel=1e-12)
    assert len(ours) == heads


@pytest.mark.parametrize("heads", [0, -1])
def test_there_is_at_least_one_head(heads):
    with pytest.raises(ValueError, match="at least 1"):
        zoo.slopes(heads)


def test_the_values_of_each_head():
    assert zoo.find("alibi").heads(8) == [{"k": Fraction(1, 2**h)} for h in range(1, 9)]
    assert zoo.find("kerple-log").heads(3) == [{}, {}, {}]
    assert zoo.find("window").heads(2) == [{}, {}]
    sandwich = zoo.find("sandwich").heads(8, width=64)
    assert sandwich[0] == {"r": 10_000, "d": 128, "s": 1}
    assert sandwich[7]["s"] == 8
    assert [row["s"] for row in zoo.find("sandwich").heads(12)] == [Fraction(8 * h, 12) for h in range(1, 13)]


@pytest.mark.parametrize("heads", [1, 3, 8, 12])
@pytest.mark.parametrize("name", [n for n, e in zoo.ENCODINGS.items() if e.formula is not None])
def test_each_heads_values_can_be_bound(name, heads):
    encoding = zoo.ENCODINGS[name]
    for values in encoding.heads(heads):
        bound = encoding.formula.bind(values)
        assert set(bound.parameters) == set(encoding.formula.parameters) - set(values)


def test_the_trained_form_of_type1_with_slope_one_sixteenth():
    formula = zoo.find("type1").formula.bind({"k": Fraction(1, 16)})
    assert formula.float(16) == pytest.approx(-math.log(2))


def test_kerple_starts_and_stays_where_its_authors_say():
    p, a = zoo.find("kerple-log").parameters
    assert (p.given.start, p.given.least, p.given.most) == ((0, 2), 0.01, None)
    assert (a.given.start, a.given.least) == ((0, 1), 0.01)
    a, p = zoo.find("kerple-power").parameters
    assert (p.given.start, p.given.least, p.given.most) == ((0, 2), 0.01, 2.0)


def test_the_bucket_of_t5():
    """Exact below 16, then logarithmic up to 128, the last from 113 on: T5's 32 buckets for a causal model."""

    def reference(t):
        if t < 16:
            return t
        return min(31, 16 + int(math.log(t / 16) / math.log(128 / 16) * 16))

    bucket = parse(zoo.T5_BUCKET)
    for t in range(400):
        assert bucket.float(t) == reference(t), t
    assert len({bucket.float(t) for t in range(400)}) == zoo.T5_BUCKETS
    last = min(t for t in range(400) if bucket.float(t) == zoo.T5_BUCKETS - 1)
    assert last == 113
    assert zoo.find("t5").formula == parse(f"where(t < {last}, near, far)")


def test_a_formula_is_found_as_an_encoding_of_its_own():
    assert zoo.find("-2*log(t+1)").formula == parse("-2*log(t+1)")
    assert zoo.find("weight: 1/(t+1)").formula.weight
    assert zoo.find("1/(t+1)", weight=True).formula.weight
    assert zoo.find(" ALiBi ").name == "alibi"


@pytest.mark.parametrize(
    ("text", "meant"), [("alibbi", "alibi"), ("kerple-lg", "kerple-log"), ("sandwhich", "sandwich")]
)
def test_a_misspelled_name_is_answered_with_the_near_one(text, meant):
    with pytest.raises(FormulaError, match=f"did you mean '{meant}'"):
        zoo.find(text)


@pytest.mark.parametrize("text", ["", "  ", "no such thing", "t^", None, 3])
def test_what_is_neither_name_nor_formula_is_refused(text):
    with pytest.raises(FormulaError):
        zoo.find(text)


def test_the_window_counts_the_token_itself():
    formula = zoo.find("window").formula.bind({"w": 4})
    assert [formula.float(t) for t in range(5)] == [0, 0, 0, 0, -math.inf]
    printed = zoo.find("window-paper").formula.bind({"w": 4})
    assert printed.float(4) == 0  # as printed, w + 1 tokens


# ------------------------------------------------------------------------------------------------- how a head gets them
def test_what_is_given_comes_before_the_rules():
    sandwich = zoo.find("sandwich")
    assert sandwich.heads(2, {"s": 3}) == [{"r": 10_000, "d": 128, "s": 3}] * 2
    assert [row["s"] for row in sandwich.heads(2, {"s": [1, "1/2"]})] == [1, "1/2"]
    assert sandwich.heads(width=32) == [{"r": 10_000, "d": 64}]  # without heads, nothing that differs between them
    assert zoo.find("-k*t").heads(2) == zoo.find("alibi").heads(2)
    assert zoo.find("-m*t").heads(2) == [{}, {}]
    with pytest.raises(ValueError, match="no parameter 'x'"):
        sandwich.heads(2, {"x": 3})
    for heads in (0, -1, 4097, 10**9, 2.5, True, "8"):
        with pytest.raises(ValueError, match="from 1 to 4096"):
            sandwich.heads(heads)


def test_one_place_knows_how_a_head_gets_its_parameters():
    """Nobody else asks a rule for its values, or has a width of its own."""
    package = Path(farfield.__file__).parent
    for path in package.rglob("*.py"):
        if path.name != "encoding.py":
            text = path.read_text(encoding="utf-8")
            assert ".rule(width" not in text, path
            assert "rule(64)" not in text, path
            assert not re.search(r"\bPerHead\)[^\n]*\n[^\n]*\.rule\(", text), path


# ------------------------------------------------------------------------------------------------- others' encodings
@pytest.fixture
def own_zoo(monkeypatch):
    monkeypatch.setattr(zoo.ENCODINGS, "_encodings", dict(zoo.ENCODINGS._encodings))


@pytest.mark.usefixtures("own_zoo")
def test_a_registered_encoding_works_like_a_named_one():
    farfield.register(farfield.Encoding("root", "-sqrt(k*t)", (zoo.SLOPE,), source="here"))
    assert "root" in farfield.ENCODINGS
    assert farfield.check("root").condition == "converges for every k > 0"
    assert farfield.trf("root", "0.01", parameters={"k": 1}) == farfield.trf("-sqrt(t)", "0.01")
    assert farfield.layer("root", "0.01", 2).heads[0].parameters == {"k": Fraction(1, 16)}
    farfield.register(farfield.Encoding("spun", None, note="turns: the theorem does not apply"))
    assert farfield.check("spun").verdict == "not-applicable"


@pytest.mark.usefixtures("own_zoo")
@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        (zoo.Encoding("alibi", "-t"), "there is an encoding 'alibi' already"),
        (zoo.Encoding("type1-paper", "-t"), "already"),
        (zoo.Encoding("mine", "-t^2"), r"write '\*\*'"),
        (zoo.Encoding("mine", ""), "empty"),
        (zoo.Encoding("My Own", "-t"), "a-z, 0-9 and hyphens"),
        (zoo.Encoding("-t", "-t"), "a-z, 0-9 and hyphens"),
        (zoo.Encoding("mine", "-t", (zoo.SLOPE,)), "no parameter 'k'"),
        ("mine", "only an Encoding"),
        (None, "only an Encoding"),
    ],
)
def test_a_broken_encoding_is_refused_in_one_sentence(encoding, said):
    before = list(zoo.ENCODINGS)
    with pytest.raises(ValueError, match=said) as caught:
        farfield.register(encoding)
    assert "\n" not in str(caught.value)
    assert list(zoo.ENCODINGS) == before


def installed(folder, name, points, module):
    """A package that offers encodings, as an installer leaves it on the path."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[farfield.encodings]\n{points}\n", encoding="utf-8")
    (folder / f"{name}.py").write_text(module, encoding="utf-8")


def run(folder, *command):
    paths = os.pathsep.join([str(folder), str(Path(farfield.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": paths, "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "farfield", *command], capture_output=True, text=True, env=environment, check=False
    )


def test_installed_packages_add_encodings(tmp_path):
    module = (
        "from farfield import Encoding\n"
        "ROOT = Encoding('their-root', '-sqrt(a*t)', source='they')\n"
        "MORE = [Encoding('their-line', '-a*t'), Encoding('their-log', '-2*log(t + 1)')]\n"
    )
    installed(tmp_path, "theirs", "root = theirs:ROOT\nmore = theirs:MORE", module)
    assert "converges if and only if a > 0" in run(tmp_path, "check", "their-root").stdout
    assert json.loads(run(tmp_path, "check", "their-log", "--json").stdout)["trf"][2]["tokens"] == "61"
    listed = run(tmp_path, "zoo").stdout
    assert all(name in listed for name in ("their-root", "their-line", "their-log", "alibi"))
    assert "there is no encoding 'their-rot'; did you mean 'their-root'?" in run(tmp_path, "check", "their-rot").stderr


def test_a_broken_package_does_no_harm(tmp_path):
    module = "from farfield import Encoding\nBAD = Encoding('bad', '-t^2')\nTAKEN = Encoding('alibi', '-t')\n"
    installed(tmp_path, "broken", "bad = broken:BAD\ntaken = broken:TAKEN\ngone = broken:NOTHING", module)
    assert run(tmp_path, "check", "alibi").stderr == ""
    listed = run(tmp_path, "zoo")
    assert listed.returncode == 0
    assert "type1" in listed.stdout
    for said in ("'bad' of broken was left out", "'taken' of broken was left out", "'gone' of broken was left out"):
        assert said in listed.stderr


def test_what_is_assumed_is_added_to_what_an_encoding_assumes_itself():
    mine = farfield.Encoding("mine", "-(t/s)**p", assume="s > 0")
    assert str(farfield.check(mine.assuming("p > 0")).condition) == "converges for every s > 0, p > 0"
    assert mine.assuming(None) is mine
