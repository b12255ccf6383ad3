"""What the explorer answers is what the library proves, and the lines that it hands out give the same."""

import contextlib
import io
import json
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import farfield as ff
from farfield.explorer.question import read
from farfield.explorer.replies import answer, zoo_list
from farfield.theory.fields.receptive import trf
from farfield.theory.verdict.convergence import check
from farfield.words import tokens as written
from farfield.zoo import BOUNDED, ENCODINGS

FARFIELD = Path(sys.executable).with_name("farfield")


def ask(kind, *fields):
    return json.loads(json.dumps(answer(read(kind, list(fields)))))  # as it travels


OF = {  # the fields of each part of an answer, beside those of the encoding itself
    "verdict": (), "code": ("epsilon", "bound"), "fields": ("epsilon",), "window": ("context", "epsilon", "bound"),
    "drawn": ("context",), "claimed": ("context", "epsilon"),
}  # fmt: skip


def whole(*fields):
    """All that the page shows of an encoding, asked part by part as the page does."""
    own = [(name, value) for name, value in fields if name in ("f", "set", "heads", "head", "from")]
    found = {}
    for kind, more in OF.items():
        if kind in ("verdict", "code") or found["verdict"]["verdict"] != "not-applicable":
            found |= {kind: ask(kind, *own, *(f for f in fields if f[0] in more))}
            found |= found["verdict"] if kind == "verdict" else {}
    while found.get("fields", {}).get("rest"):
        skip = len(found["fields"]["rows"])
        further = ask("fields", *own, *(f for f in fields if f[0] == "epsilon"), ("skip", str(skip)))
        found["fields"] = {**further, "rows": [*found["fields"]["rows"], *further["rows"]]}
    return found


def words(tree):
    """The text of a tree of MathML."""
    return "".join(part if isinstance(part, str) else words(part) for part in tree[1:])


def tokens(found):
    return {row["epsilon"]: row["exact"] for row in found["fields"]["rows"]}


def test_type_1_as_printed():
    found = whole(("f", "-2*log(t + 1)"))
    assert found["verdict"]["verdict"] == "converges"
    assert found["fields"]["sum"].startswith("1.644934066848226")  # pi**2/6
    assert tokens(found)["1e-3"] == "608"
    assert tokens(found)["1e-12"] == "607927101854"
    assert words(found["math"]).replace("\u2061", "").replace("\u2062", "") == "r(t)=−2ln(t+1)"


def test_the_heads_and_their_slopes():
    rows: list = []
    while len(rows) < 8:
        found = ask("heads", ("f", "alibi"), ("heads", "8"), ("skip", str(len(rows))))
        rows += found["rows"]
        assert found["rest"] == 8 - len(rows)
    assert [row["tokens"][2] for row in rows] == ["10", "19", "37", "74", "148", "295", "590", "1,179"]
    third = whole(("f", "alibi"), ("heads", "8"), ("head", "3"))
    assert third["parameters"][0]["text"] == "1/8"
    assert tokens(third)["0.01"] == "37"
    typed = whole(("f", "-k*t"), ("heads", "8"), ("head", "3"))  # a typed k is a slope too, as in a model
    assert tokens(typed) == tokens(third)


def test_a_value_that_was_set_is_exact():
    found = whole(("f", "alibi"), ("set", "0.k=log(2)"), ("epsilon", "1/8"))
    assert tokens(found)["1/8"] == "4"  # a tie: half, a quarter, an eighth


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_named_encoding_is_answered(name):
    found = whole(("f", name))
    json.dumps(found, allow_nan=False)
    if ENCODINGS[name].formula is None:
        assert found["verdict"]["verdict"] == "not-applicable"
        return
    used = {p["name"]: p["text"] for p in found["parameters"]}
    verdict = check(ENCODINGS[name].formula.bind(used))
    assert found["verdict"]["verdict"] == verdict.verdict
    assert len(found["verdict"]["steps"]) == len(verdict.steps)
    if verdict.verdict == "converges":
        assert tokens(found)["1e-3"] == str(trf(ENCODINGS[name].formula.bind(used), "1e-3"))
    else:
        assert tokens(found) == {}
        assert found["fields"]["sum"] is None


def test_what_draw_would_have_claimed():
    """E23: the claims for 512 weights of type 1, and for 9216 of 1/n, whose sum diverges."""
    first = [whole(("f", "-2*log(t + 1)"), ("epsilon", e))["claimed"]["claim"] for e in ("0.5", "0.1", "0.01", "1e-3")]
    assert first == [1, 6, 54, 278]
    second = [
        whole(("f", "-log(t + 1)"), ("context", "9216"), ("epsilon", e))["claimed"]["claim"]
        for e in ("0.5", "0.1", "0.01", "1e-3")
    ]
    assert second == [72, 3492, 8364, 9127]


def test_the_window_by_certificate():
    found = whole(("f", "alibi"), ("set", "0.k=1/256"), ("bound", "5"), ("epsilon", "0.01"))
    command = ["window", "alibi", "--set", "k=1/256", "--heads", "1", "--json"]
    said = json.loads(subprocess.run([FARFIELD, *command], capture_output=True, check=True, text=True).stdout)
    assert found["window"]["tokens"] == written(said["windows"][0])
    found = ask("window", ("f", "inverse"), ("context", "256"))
    assert "no window" in found["said"]
    assert found["tokens"] == "256"


def test_fields_of_hundreds_of_digits():
    """Kerple-log with an exponent of 1.01 (E23): 7e29, 6e99, 6e199, 6e299; beyond 310 digits only the size is told."""
    found = whole(("f", "kerple-log"), ("set", "0.p=1.01"), ("set", "0.a=1"), ("epsilon", "0.5"))
    rows = {Fraction(row["epsilon"]): row for row in found["fields"]["rows"]}
    shown = [rows[Fraction(e)]["tokens"] for e in found["fields"]["table"]]
    assert [n[0] + n[n.index("e") :] for n in shown[:4]] == ["7e29", "5e99", "5e199", "5e299"]
    assert set(shown[4:]) == {"over 1e310"}
    assert max(row["log10"] for row in rows.values() if row["log10"] is not None) < 310
    further = whole(("f", "kerple-log"), ("set", "0.p=1.0001"), ("set", "0.a=1"))
    assert {row["tokens"] for row in further["fields"]["rows"]} == {"over 1e310"}
    assert further["window"]["tokens"] == "over 1e310"


def test_a_sum_that_no_double_holds():
    found = ask("fields", ("f", "-t**0.0001"))
    assert found["sum"].startswith("2.8462596809170545189e+35659 ")
    assert found["total"] is None
    assert "no context will ever come near it" in found["why"]
    first, second = ask("heads", ("f", "-k*t**0.0001"), ("heads", "2"))["rows"]
    assert json.dumps([found, first, second], allow_nan=False)
    assert all("e+" in row["sum"] for row in (first, second))


def test_numbers_come_in_parts(monkeypatch):
    """What takes longer than a moment comes in parts: here every field alone."""
    monkeypatch.setattr("farfield.explorer.replies._MOMENT", -1)
    first = ask("fields", ("f", "alibi"))
    assert [row["epsilon"] for row in first["rows"]] == ["0.5"]
    assert first["rest"] == 35
    assert first["sum"]
    second = ask("fields", ("f", "alibi"), ("skip", "1"))
    assert [row["epsilon"] for row in second["rows"]] == ["2e-1"]
    last = ask("fields", ("f", "alibi"), ("skip", "35"))
    assert (last["rows"][0]["epsilon"], last["rest"]) == ("1e-12", 0)
    assert last["law"] == "about 256*ln(1/epsilon)"
    assert [row["head"] for row in ask("heads", ("f", "alibi"), ("skip", "2"))["rows"]] == [3]


def test_a_field_that_is_not_proven_says_why():
    """-log(1 + t)**1.0001 converges, and no receptive field is claimed of it; nor is it said to have none."""
    found = whole(("f", "-log(1 + t)**1.0001"))
    assert found["verdict"]["verdict"] == "converges"
    assert found["fields"]["rows"] == []
    assert "could not be decided" in found["fields"]["why"]


def test_weights_sums_and_heat_map_come_from_the_formula():
    found = whole(("f", "-t"), ("context", "128"))
    assert found["drawn"]["heat"]["stride"] == 2
    assert found["drawn"]["heat"]["values"][1] == pytest.approx(0.1353352832366127)  # exp(-2)
    assert found["drawn"]["sums"]["values"][-1] == pytest.approx(1.5819767068693265)  # 1/(1 - 1/e)
    assert found["fields"]["total"] == pytest.approx(1.5819767068693265)
    assert found["drawn"]["weights"]["distances"][0] == 0
    assert found["drawn"]["weights"]["values"][0] == 1


def test_a_series_that_starts_later():
    with pytest.raises(ValueError, match="undefined at distance t = 0"):
        ask("verdict", ("f", "-2*log(t)"))
    found = whole(("f", "-2*log(t)"), ("from", "1"))
    assert found["fields"]["sum"].startswith("1.644934066848226")
    assert found["drawn"]["heat"]["values"][0] is None
    assert found["drawn"]["sums"]["tokens"][0] == 2
    assert "--from 1" in found["code"]["command"]


def test_the_exact_condition_on_open_parameters():
    assert ask("condition", ("f", "kerple-log"))["verdict"]["said"] == "converges if and only if p > 1"
    assert ask("condition", ("f", "-2*log(t + 1)"))["verdict"] is None


def test_which_sees_further():
    (pair,) = ask("compare", ("f", "type1-paper"), ("f", "type2-paper"))["pairs"]
    assert pair["sentence"].startswith("type2-paper has the smaller receptive field")
    assert any("0.392073 < epsilon <= 0.553209" in turn for turn in pair["turns"])


def test_design_gives_the_parameter():
    found = ask("design", ("f", "alibi"), ("parameter", "k"), ("reach", "4096"), ("epsilon", "0.01"))
    assert found["value"] == "0.0011245"
    assert found["tokens"] == "4,096"
    with pytest.raises(ValueError, match="no parameter"):
        ask("design", ("f", "-t"), ("reach", "9"))
    with pytest.raises(ValueError, match="diverges"):
        ask("design", ("f", "inverse"), ("parameter", "k"), ("reach", "512"))


FORMULAS = [
    [("f", "alibi"), ("head", "2")],
    [("f", "-2*log(t + 1)"), ("epsilon", "0.03")],
    [("f", "kerple-log"), ("set", "0.p=1.5"), ("set", "0.a=log(2)/8")],
    [("f", "-start*t"), ("set", "0.start=1/4")],
    [("f", "weight: 1/(t + 1)**2 + 2**(-t)")],
    [("f", "-log(t)**2"), ("from", "1")],
    [("f", "sandwich")],
    [("f", "rope")],
]


@pytest.mark.parametrize("fields", FORMULAS, ids=lambda fields: fields[0][1])
def test_the_command_and_the_lines_of_python_give_the_same(fields):
    found = whole(*fields)
    program, *arguments = shlex.split(found["code"]["command"])
    assert program == "farfield"
    done = subprocess.run([FARFIELD, *arguments, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == found["verdict"]["verdict"]
    proven = found.get("fields", {"rows": [], "sum": None})
    shown = {Fraction(row["epsilon"]): row["exact"] for row in proven["rows"]}
    assert all(shown[Fraction(row["epsilon"])] == row["tokens"] for row in said["trf"])
    assert bool(said["trf"]) == bool(proven["sum"])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(found["code"]["python"], "lines", "exec"), {})
    printed = out.getvalue()
    assert (found["verdict"]["verdict"] in printed) or found["verdict"]["verdict"] == "not-applicable"
    epsilon = Fraction(dict(fields).get("epsilon", "0.01"))
    if proven["sum"]:
        assert f"\n{shown[epsilon]}\n" in printed
        assert written(int(printed.split()[-1])) == found["window"]["tokens"]
    if "window" in found["code"]:
        done = subprocess.run(
            [FARFIELD, *shlex.split(found["code"]["window"])[1:], "--json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert written(json.loads(done.stdout)["windows"][0]) == found["window"]["tokens"]


def test_the_lines_of_a_design_give_the_same():
    found = ask("design", ("f", "kerple-log"), ("parameter", "a"), ("set", "0.p=2"), ("reach", "512"))
    done = subprocess.run(
        [FARFIELD, *shlex.split(found["code"]["command"])[1:], "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["heads"][0]["value"] == found["value"]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(found["code"]["python"], "lines", "exec"), {})
    assert out.getvalue().strip() == found["value"]


@pytest.mark.parametrize(
    ("kind", "fields", "sentence"),
    [
        ("verdict", [], "one formula"),
        ("verdict", [("f", "alibi"), ("f", "alibi")], "one formula"),
        ("verdict", [("f", "alibi"), ("heads", "0")], "number of heads"),
        ("verdict", [("f", "alibi"), ("heads", "2"), ("head", "3")], "no head 3 among 2"),
        ("verdict", [("f", "alibi"), ("heads", "9" * 5000)], "number of heads"),
        ("window", [("f", "alibi"), ("context", "1e3")], "context"),
        ("fields", [("f", "alibi"), ("epsilon", "2")], "between 0 and 1"),
        ("fields", [("f", "alibi"), ("epsilon", "1e-999999999")], "epsilon"),
        ("window", [("f", "alibi"), ("bound", "-1")], "logit bound"),
        ("verdict", [("f", "alibi"), ("set", "k=1")], "a setting is written"),
        ("verdict", [("f", "alibi"), ("set", "1.k=1")], "no formula 1"),
        ("verdict", [("f", "alibi"), ("set", "0.z=1")], "no parameter 'z'"),
        ("verdict", [("f", "alibi"), ("set", "0.k=t")], "must be a constant"),
        ("verdict", [("f", "alibi"), ("set", "0.k=__import__('os')")], "column"),
        ("verdict", [("f", "t" * 1001)], "at most 1000"),
        ("verdict", [("f", "alibi"), ("canary", "1")], "no field"),
        ("verdict", [("f", "alibi"), ("head", "1"), ("head", "2")], "twice"),
        ("design", [("f", "alibi"), ("reach", "0")], "reach"),
        ("design", [("f", "alibi"), ("parameter", "z")], "no parameter 'z'"),
        ("design", [("f", "rope")], "no bias"),
        ("window", [("f", "rope")], "no bias"),
        ("nothing", [("f", "alibi")], "no answer"),
    ],
)
def test_a_mistake_gets_a_sentence(kind, fields, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        ask(kind, *fields)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------------------------------------ classes of biases
def ask_family(kind, formula, *more):
    return ask(kind, ("f", formula), *more)


def test_a_bounded_family_has_its_worst_case():
    text = "upper: 1 - t/16; lower: -1 - t/16"
    assert ask_family("verdict", text)["verdict"]["answer"] == "windowed"
    found = ask_family("fields", text, ("epsilon", "0.01"))
    assert next(row["tokens"] for row in found["rows"] if row["epsilon"] == "0.01") == str(ff.trf(text, "0.01"))
    assert found["sum"] is found["law"] is None
    window = ask_family("window", text, ("epsilon", "0.01"), ("bound", "2"))
    assert window["tokens"] == written(ff.windows(text, "0.01", "2", 1).heads[0].tokens)
    assert "worst case over the family" in window["said"]
    drawn = ask_family("drawn", text)["weights"]["values"]
    assert drawn == ask_family("drawn", "1 - t/16")["weights"]["values"]  # the upper bound


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("upper: 1; lower: -1", "there is no window, since attention disperses"),
        ("upper: 0; lower: -t", "though attention need not disperse"),
        ("upper: -(1 + sin(t))*log(t + 1); lower: -9*t", "whether a window serves every length was not decided"),
    ],
)
def test_a_family_without_a_window_says_why(text, said):
    assert said in ask_family("window", text)["said"]
    assert ask_family("fields", text)["rows"] == []
    with pytest.raises(ValueError, match="bounded family"):
        ask_family("claimed", text)


@pytest.mark.parametrize("name", BOUNDED)
def test_every_named_family_is_answered_with_example_values(name):
    first = (("heads", "8"), ("head", "1"))  # the steepest slope, for those that have one
    found = ask_family("verdict", name, *first)
    expected = {"windowed": "converges", "disperses": "diverges", "neither": "not-applicable"}
    assert found["verdict"]["verdict"] == expected[found["verdict"]["answer"]]
    code = ask_family("code", name, *first)["python"]
    exec(compile(code, name, "exec"), {})
    assert name in {entry["name"] for entry in zoo_list()}


def test_a_range_to_learn_gets_the_condition_and_the_verdict_at_its_ends():
    found = whole(("f", "-a*log(1 + p*t)"), ("set", "0.a=0:3"), ("set", "0.p=1/2"))
    assert found["learned"] == (
        "learned, with a open: converges if and only if a > 1; where heads may start: a = 0 diverges; a = 3 converges"
    )
    a, p = found["parameters"]
    assert (a["text"], a["value"], a["number"], a["learned"]) == ("0:3", "3/2", 1.5, True)
    assert (p["text"], p["value"], p["learned"]) == ("1/2", "1/2", False)
    assert tokens(found) == tokens(whole(("f", "-a*log(1 + p*t)"), ("set", "0.a=3/2"), ("set", "0.p=1/2")))
    both = ask("verdict", ("f", "-a*log(1 + p*t)"), ("set", "0.a=1:2 in 0:4"), ("set", "0.p=-1:1"))
    assert "a = 2, p = -1 has no value" in both["learned"]
    assert both["parameters"][1]["value"] == "0"
    assert ask("verdict", ("f", "-k*t"))["learned"] is None
    for wrong, words_ in (("2:0", "upside down"), ("0:nan", "numbers"), ("0:1:2", "LOW:HIGH")):
        with pytest.raises(ValueError, match=words_):
            ask("verdict", ("f", "-a*t"), ("set", f"0.a={wrong}"))
    with pytest.raises(ValueError, match="no parameter 'b'"):
        ask("verdict", ("f", "-a*t"), ("set", "0.b=0:1"))
