"""How a person says what is learned: one spelling, its bounds, and every way to get it wrong."""

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield import Encoding, check, model_reach, zoo
from farfield.cli import main
from farfield.zoo.encoding import choose_parameters, slope_values, slopes_sentence
from farfield.zoo.learned import Learned, learned_parameters, learned_rule

numbers = st.floats(-100, 100)


def test_the_spelling_of_the_help():
    rules = learned_parameters("a=0:2, p=0.5:1.5 in 0.01:3")
    assert rules == {"a": Learned((0, 2), 0, None, True), "p": Learned((0.5, 1.5), 0.01, 3, True)}
    assert rules["p"].text == "learned, starts spread over 0.5 to 1.5, kept 0.01 to 3"
    assert learned_parameters({"a": (0, 2), "p": "0.5:1.5 in 0.01:3"}) == rules
    assert learned_parameters("a = 1/16") == {"a": Learned((0.0625, 0.0625), 0, None, True)}


@pytest.mark.parametrize(
    ("text", "bounds"),
    [("0:2", (0, None)), ("-2:0", (None, 0)), ("-1:1", (None, None)), ("0:2 in -inf:inf", (None, None)),
     ("1:2 in 0.5:inf", (0.5, None)), ("-3:-1", (None, 0))],
)  # fmt: skip
def test_without_bounds_a_range_on_one_side_of_zero_stays_there(text, bounds):
    rule = learned_rule("a", text)
    assert (rule.least, rule.most) == bounds


@given(st.tuples(numbers, numbers).map(sorted), st.none() | st.floats(0, 50), st.none() | st.floats(0, 50))
def test_what_is_spelled_is_read_again(start, below, above):
    least, most = None if below is None else start[0] - below, None if above is None else start[1] + above
    rule = Learned((start[0], start[1]), least, most, True)
    assert learned_parameters(rule.spell("a_1")) == {"a_1": rule}
    assert learned_rule("a_1", rule.json()) == rule


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=2:0", "upside down"), ("a=0:1 in 3:2", "bounds of a are upside down"), ("a=0:1 in 2:3", "not within its"),
        ("a=0:5 in 0:3", "not within its bounds"), ("a=nan:1", "needs numbers"), ("a=0:inf", "must start within"),
        ("a=x:1", "needs numbers"), ("a=", "NAME=LOW:HIGH"), ("a", "NAME=LOW:HIGH"), ("", "NAME=LOW:HIGH"),
        ("=0:1", "NAME=LOW:HIGH"), ("a=0:1:2", "LOW:HIGH"), ("a=0:1 in 0", "LOW:HIGH"), ("a=1:2,,", "NAME=LOW:HIGH"),
        ("a=0:1, a=1:2", "twice"), ("a=1/0:2", "needs numbers"), ("a=0:1 in nan:2", "needs numbers"),
        ("z=0:1", "no parameter 'z'"), ("t=0:1", "t is the distance"), ("1a=0:1", "NAME=LOW:HIGH"),
    ],
)  # fmt: skip
def test_a_mistake_in_what_is_learned_is_one_sentence(text, words):
    with pytest.raises(ValueError, match=words) as caught:
        Encoding("-a*log(1 + p*t)", learn=text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [{}, {"start": 3}, {"start": [0]}, {"start": "01"}, {"start": [0, True]}, {"start": [0, 1], "spread": 1},
     {"start": [0, 1], "fast": 1}, {"start": [0, math.nan]}, {"start": [0, 1], "values": "1"}, 3, None, [0, 1, 2],
     {"start": [0, 1], "least": "x"}, {"start": [0, 1], "values": [5.0], "most": 1}, {"start": [0, 10**400]}],
)  # fmt: skip
def test_a_table_of_a_configuration_is_untrusted(table):
    with pytest.raises(ValueError, match="a"):
        learned_rule("a", table)


def test_an_encoding_that_learns_is_a_first_class_citizen():
    encoding = Encoding("-a*k*log(1 + p*t)", learn={"a": (0, 2), "p": (0.5, 1.5)})
    assert encoding.formula is not None
    assert encoding.heads(2) == [{"k": Fraction(1, 16)}, {"k": Fraction(1, 256)}]
    text, table = encoding.written()
    assert text == "-a*k*log(1 + p*t)"
    assert table["a"] == {"start": [0, 2], "least": 0, "most": None, "spread": True}
    assert check(Encoding("-a*log(1 + p*t)", learn="a=0:2, p=1:2")).condition.startswith("converges if and only if")
    assert Encoding("alibi", learn="k=0:1").written() == ("-k*t", {"k": learned_rule("k", "0:1").json()})
    assert zoo.find("type1").written() == ("type1", {})
    with pytest.raises(ValueError, match="register"):
        Encoding("own", "-w*t", (zoo.Parameter("w", "", zoo.Fixed(lambda width: width, "width")),)).written()
    with pytest.raises(ValueError, match="no formula"):
        Encoding("rope", learn="a=0:1")


def test_slopes_are_said_and_chosen():
    alibi, typed = zoo.find("alibi"), zoo.find("-a*k*t")
    assert slopes_sentence(alibi, 8) == "k: ALiBi's slopes, 1/2 ... 1/256"
    assert slopes_sentence(typed, 12).startswith("k: ALiBi's slopes, 2**(-1/2) ... 1/256")
    assert slopes_sentence(typed, 8, {"k": 1}) == slopes_sentence(zoo.find("-t"), 8) == ""
    assert slopes_sentence(Encoding("-k*t", learn="k=0:1"), 8) == ""
    assert slope_values("alibi", 4) is None
    assert slope_values("1/2, 0.25", 2) == ["1/2", "0.25"]
    assert slope_values("0.3", 2) == "0.3"
    assert slope_values("learned", 2)["values"] == [1 / 16, 1 / 256]
    assert choose_parameters(typed, 2, {"a": "1"}, None, "learned")["k"]["least"] == 0
    assert choose_parameters(typed, 2, {}, "a=0:1", "alibi") == {"a": learned_rule("a", "0:1").json()}


@pytest.mark.parametrize(
    ("given", "learn", "slopes", "words"),
    [({}, None, "1/2,1/4,1/8", "3 values for 2 heads"), ({}, None, "steep", "slopes are"), ({}, None, "", "slopes are"),
     ({}, None, "1/2,,", "slopes are"), ({}, None, "nan,1", "slopes are"), ({"k": "1"}, None, "learned", "twice"),
     ({}, "k=0:1", "learned", "twice"), ({"a": "1"}, "a=0:1", None, "twice"), ({"t": "1"}, None, None, "distance"),
     ({}, "b=0:1", None, "no parameter 'b'")],
)  # fmt: skip
def test_a_mistake_in_the_choice_is_one_sentence(given, learn, slopes, words):
    with pytest.raises(ValueError, match=words):
        choose_parameters(zoo.find("-a*k*t"), 2, given, learn, slopes)
    with pytest.raises(ValueError, match="no parameter 'k'"):
        choose_parameters(zoo.find("-2*log(t + 1)"), 2, {}, None, "learned")


def shown(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(list(words))
    assert end.value.code == 0
    return capsys.readouterr().out


def test_check_with_slopes_of_ones_own(capsys):
    some = "--set", "k=1/2,-1", "--epsilon", "0.1"
    first, second = json.loads(shown(capsys, "check", "weight: exp(-k*t)", *some, "--json"))["heads"]
    assert (first["parameters"], first["verdict"]) == ({"k": "1/2"}, "converges")
    assert (second["parameters"], second["verdict"]) == ({"k": "-1"}, "diverges")
    assert "k: ALiBi's slopes, 1/4 ... 1/256" in shown(capsys, "check", "-k*t", "--heads", "4", "--epsilon", "0.1")
    assert "ALiBi" not in shown(capsys, "check", "-k*t", *some)
    layers = json.loads(shown(capsys, "check", "-k*t", "--set", "k=1/2,1/9", "--layers", "3", "--json"))["model"]
    assert layers["tokens"] == str(model_reach("-k*t", "0.01", 3, parameters={"k": ["1/2", "1/9"]}).tokens)
    nested = json.loads(shown(capsys, "check", "-k*t", "--set", "k=max(1/4, min(1/2, 3)),1", "--json"))["heads"]
    assert [head["trf"] for head in nested] == [
        json.loads(shown(capsys, "check", "-k*t", "--set", f"k={k}", "--json"))["trf"] for k in ("1/2", "1")
    ]
