"""Design is the inverse of the receptive field: exact to the token, and honest where a family cannot."""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.commands.design import design_command
from farfield.theory.fields.design import design, shortest_between, spread
from farfield.theory.fields.receptive import trf

# The table of theory: epsilon = 0.01, targets 64, 512, 4096, 10**6.
FAMILIES = [
    ("alibi", {}, ("0.073", "0.009", "0.0011245", "0.000004605174")),
    ("-s*log(t+1)", {}, ("1.99", "1.6814", "1.52034", "1.32059784")),
    ("kerple-log", {"p": 2}, ("0.97", "0.177", "0.023888", "0.0000989951")),
    ("kerple-log", {"a": "1/10"}, ("3.26", "2.1505", "1.75895", "1.39824767")),
    ("kerple-power", {"p": "1/2"}, ("0.81", "0.2926", "0.10369", "0.006638344")),
    ("-c*log(t+1)**2", {}, ("0.359", "0.1978", "0.132119", "0.06702337")),
    ("window", {}, ("64", "517", "4137", "1010100")),
]


@pytest.mark.parametrize(("family", "fixed", "wanted"), FAMILIES)
def test_the_shortest_decimal_for_each_reach(family, fixed, wanted):
    for reach, text in zip((64, 512, 4096, 10**6), wanted, strict=True):
        result = design(family, reach, "0.01", parameters=fixed)
        assert result.text == text
        assert result.tokens == reach


@settings(deadline=None, derandomize=True, max_examples=25)
@given(
    st.sampled_from([("alibi", {}), ("type1", {}), ("type2", {}), ("kerple-log", {"a": "0.5"}), ("window", {})]),
    st.integers(2, 20_000),
    st.sampled_from(["0.3", "0.05", "0.001"]),
)
def test_trf_undoes_design(family, reach, epsilon):
    name, fixed = family
    result = design(name, reach, epsilon, parameters=fixed)
    assert trf(name, epsilon, parameters={**fixed, result.parameter: result.value}) == reach
    assert result.low <= float(result.value) <= result.high


def test_alibi_has_its_interval():
    """k in (ln(1/epsilon)/n, ln(1/epsilon)/(n-1)]."""
    result = design("alibi", 512, "0.01")
    assert result.low == pytest.approx(4.605170186 / 512)
    assert result.high == pytest.approx(4.605170186 / 511)


def test_far_reaches_are_not_called_impossible():
    """The search once stepped over the range, and said that ALiBi reaches at most 47 tokens."""
    assert design("alibi", 20_000_000).tokens == 20_000_000
    assert design("alibi", 10**12).tokens == 10**12


def test_a_reach_that_rises_with_the_parameter():
    assert trf("-t/c", "0.01", parameters={"c": design("-t/c", 512, "0.01").value}) == 512


def test_reach_of_one_token():
    assert design("alibi", 1, "0.01").tokens == 1
    assert design("type2", 1, "0.01").tokens == 1


def test_a_set_for_heads_spans_the_reaches():
    result = design("alibi", 4096, "0.01", heads=8)
    assert [d.tokens for d in result] == [32, 64, 128, 256, 512, 1024, 2048, 4096]
    assert [d.tokens for d in design("type1", 1000, "0.1", heads=3, shortest=10)] == [10, 100, 1000]
    assert spread(5, 5, 3) == [5, 5, 5]
    assert design("alibi", 99, heads=1).heads[0].tokens == 99
    assert len(design("alibi", 99)) == 1


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.floats(1e-9, 1e9), st.floats(1e-12, 0.5))
def test_the_shortest_decimal_lies_between(low, share):
    high = low * (1 + share)
    value = shortest_between(low, high)
    assert Fraction(low) < value <= Fraction(high)


@pytest.mark.parametrize(
    ("family", "reach", "given_", "said"),
    [
        ("alibi", 0, {}, "reach must be a whole number >= 1"),
        ("alibi", -5, {}, "reach must be a whole number >= 1"),
        ("alibi", 2.5, {}, "reach must be a whole number >= 1"),
        ("alibi", 10**13, {}, "at most"),
        ("none", 10, {}, "no open parameter"),
        ("rope", 10, {}, "no bias"),
        ("inverse", 10, {}, "diverges"),
        ("kerple-log", 10, {}, "give all but one a value"),
        ("kerple-power", 1, {"a": "0.01"}, "reaches exactly 1 tokens at epsilon 0.01: the nearest reach met was 2"),
        ("where(t < 2, 0, -c)", 5, {}, "diverges"),
        ("-t + 0*c", 10, {}, "the same for every"),
    ],
)
def test_what_cannot_be_designed_gets_one_sentence(family, reach, given_, said):
    with pytest.raises(ValueError, match=said) as caught:
        design(family, reach, "0.01", parameters=given_)
    assert "\n" not in str(caught.value)


def test_nonsense_around_it():
    with pytest.raises(ValueError, match="epsilon"):
        design("alibi", 10, "1")
    with pytest.raises(ValueError, match="number of heads"):
        design("alibi", 10, heads=0)
    with pytest.raises(ValueError, match="must not exceed"):
        design("alibi", 10, heads=2, shortest=11)
    with pytest.raises(ValueError, match="needs a number of heads"):
        design("alibi", 10, shortest=2)


def test_the_command(capsys):
    design_command("alibi", reach=4096, heads=2, as_json=True)
    out = json.loads(capsys.readouterr().out)
    assert out["heads"][1]["value"] == "0.0011245"
    assert out["heads"][1]["tokens"] == "4096"
    design_command("kerple-log", reach=64, parameters=["a=1/10"])
    assert "3.26" in capsys.readouterr().out
