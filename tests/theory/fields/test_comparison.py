"""The comparison theorem, where receptive fields cross, the asymptotic laws, and the command that shows them."""

import json
import math
from fractions import Fraction

import pytest
from flint import arb, ctx

from farfield.commands.compare import compare_command
from farfield.theory.fields.comparison import compare
from farfield.theory.fields.law import UNKNOWN, _approached, _power, _stretched, law
from farfield.theory.fields.receptive import trf
from farfield.theory.sums.series import series


def test_type_2_lies_below_type_1_in_the_limit():
    """The paper's example of its comparison theorem."""
    result = compare("type2-paper", "type1-paper")
    assert result.smaller == "a"
    assert any("tends to 0" in step for step in result.proof)
    assert any("comparison theorem" in step for step in result.proof)


def test_but_not_near_the_diagonal():
    """Type 2 reaches further exactly for epsilon in (0.392073, 0.553209] and (0.240091, 0.276867] (errata, E9)."""
    result = compare("type2-paper", "type1-paper")
    larger = [(low, high) for whose, low, high in result.intervals if whose == "a"]
    assert larger == [pytest.approx((0.392073, 0.553209), abs=1e-6), pytest.approx((0.240091, 0.276867), abs=1e-6)]
    for epsilon in ("0.5532", "0.4", "0.3921", "0.2768", "0.25"):
        assert trf("type2-paper", epsilon) > trf("type1-paper", epsilon)
    for epsilon in ("0.5533", "0.392", "0.277", "0.24", "0.1", "1e-3"):
        assert trf("type2-paper", epsilon) <= trf("type1-paper", epsilon)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("-t/9", "-sqrt(t)"),
        ("-3*log(t+1)", "-2*log(t+1)"),
        ("-log(t+1)**2", "-log(t+1)**1.5"),
        ("-sqrt(t)", "-2*log(t+1)"),
    ],
)
def test_the_order_holds_for_small_epsilon_and_turns_with_the_arguments(a, b):
    one, other = compare(a, b), compare(b, a)
    assert (one.smaller, other.smaller) == ("a", "b")
    for epsilon in ("1e-9", "1e-12"):
        if one.crossings[-1].contains(float(epsilon)):
            assert trf(a, epsilon) <= trf(b, epsilon)


@pytest.mark.parametrize("epsilon", ["0.9", "0.6", "0.3", "0.1", "0.03", "0.018", "0.01", "1e-4", "1e-8"])
def test_crossings_tell_whose_field_is_larger(epsilon):
    result = compare("-sqrt(t)", "-2*log(t+1)")
    a, b = trf("-sqrt(t)", epsilon), trf("-2*log(t+1)", epsilon)
    where = [c.larger for c in result.crossings if c.contains(float(epsilon))]
    assert a == b or where == ["a" if a > b else "b"]


def test_a_crossing_far_beyond_one_in_a_trillion_is_found():
    result = compare("-t/256", "-sqrt(t)")
    assert result.smaller == "a"
    assert [c.larger for c in result.crossings] == ["a", "b"]
    assert result.crossings[0].epsilon_low < 1e-100


def test_biases_that_differ_by_a_constant_have_the_same_field():
    assert compare("-t", "-t - 1").smaller == "equal"
    assert compare("-2*log(t+1)", "weight: 7/(t+1)**2").smaller == "equal"
    assert compare("-t", "-t").smaller == "equal"


def test_equal_growth_is_decided_by_the_sums():
    """1/(t+1)**2 and 1/(t+2)**2 have the same growth; the sums pi**2/6 and pi**2/6 - 1 decide."""
    result = compare("-2*log(t+1)", "-2*log(t+2)")
    assert result.smaller == "a"
    assert trf("-2*log(t+1)", "1e-6") < trf("-2*log(t+2)", "1e-6")


def test_a_divergent_encoding_sees_further_than_any_convergent_one():
    assert compare("inverse", "alibi", parameters={"k": 1}).smaller == "b"
    assert compare("none", "-log(t+1)").smaller is None
    assert compare("none", "-log(t+1)").sentence().endswith("was not decided")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-t/8", "about 8*ln(1/epsilon)"),
        ("-t", "about ln(1/epsilon)"),
        ("-2*log(t+1)", "about 0.6079/epsilon"),
        ("-1.5*log(t+1)", "about 0.5861*epsilon**-2"),
        ("-log(1+(t/16)**2)", "about 9.987/epsilon"),
        ("-log(t+1)-log(t+2)", "about 1/epsilon"),
        ("-log(t+1)**2", "about 1.649*exp(sqrt(ln(1/epsilon)))"),
        ("-sqrt(t)", "about (ln(1/epsilon))**2"),
        ("where(t < 512, 0, -inf)", "exactly floor(512*(1 - epsilon)) + 1"),
        ("where(t < 9, -t, -inf)", "at most 9 for every epsilon"),
        ("where(t < 10, 0, -t)", "about ln(1/epsilon)"),
        ("-log(t+1)*log(log(t+3))", UNKNOWN),
        ("-t**2 - t", "about (ln(1/epsilon))**0.5"),
        ("-sqrt(t) - sqrt(t+5)", "about (ln(1/epsilon)/2)**2"),
        ("where(t < 5, -inf, where(t < 512, 0, -inf))", "exactly floor(512 - 507*epsilon) + 1"),
    ],
)
def test_laws(text, said):
    assert law(text) == said


def test_a_law_counts_the_weights_that_are_there():
    """What tends to 0 in the bias is no power of t, and a window that begins later has fewer weights."""
    assert law("-2*log(t) - 1/t", start=1) == "about 1.181/epsilon"
    assert trf("-2*log(t) - 1/t", "1e-6", start=1) == pytest.approx(1.181e6, rel=1e-3)
    assert law("where(t < 512, 0, -inf)", start=5) == "exactly floor(512 - 507*epsilon) + 1"
    for e in ("0.9", "1/3", "0.01", "1e-9"):
        assert trf("where(t < 512, 0, -inf)", e, start=5) == math.floor(512 - 507 * Fraction(e)) + 1


def test_a_law_that_no_receptive_field_approaches_is_not_said():
    weights = series("-2*log(t+1)")
    with ctx.workprec(96):
        right, wrong = _power(1 / weights.B(), arb(2)), _stretched(arb(1), arb(-1))
        assert _approached(right, weights)
        assert not _approached(wrong, weights)


@pytest.mark.parametrize(
    ("a", "b", "smaller"),
    [
        ("where(t < 512, 0, -inf)", "where(t < 4096, 0, -inf)", "a"),
        ("where(t < 4096, 0, -inf)", "where(t < 512, 0, -inf)", "b"),
        ("where(t < 4096, -t/10, -inf)", "where(t < 512, 0, -inf)", "b"),
        ("-t", "where(t < 40, 0, -inf)", "b"),
        ("where(t < 40, 0, -inf)", "-t", "a"),
        ("where(t < 100, -t, -inf)", "where(t < 100, 0, -inf)", "limit"),
    ],
)
def test_windows_are_compared_by_where_they_end(a, b, smaller):
    result = compare(a, b)
    assert result.smaller == smaller
    fields = [trf(text, Fraction(1, 10**200)) for text in (a, b)]
    assert (fields[0] > fields[1]) - (fields[0] < fields[1]) == {"a": -1, "b": 1, "limit": 0}[smaller]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("-t/8", lambda e: 8 * math.log(1 / e)),
        ("-2*log(t+1)", lambda e: 0.607927 / e),
        ("-1.5*log(t+1)", lambda e: 0.586123 * e**-2),
        ("-log(1+(t/16)**2)", lambda e: 9.98723 / e),
        ("-log(t+1)**2", lambda e: 1.64872 * math.exp(math.sqrt(math.log(1 / e)))),
    ],
)
def test_laws_are_approached(text, formula):
    """The relative error of the law falls as epsilon does."""
    errors = []
    for n in (3, 30, 90):
        tokens = trf(text, Fraction(1, 10**n))
        errors.append(abs(tokens / formula(10.0**-n) - 1))
    assert errors[0] > errors[1] > errors[2] or errors[2] < 1e-5


def test_the_command_prints_a_table_and_reasons(capsys):
    compare_command("type2-paper", "type1-paper", epsilon=["0.01"])
    out = capsys.readouterr().out
    assert "61" in out
    assert "type2-paper has the smaller receptive field" in out


def test_the_command_as_json_with_context_and_figure(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "out.svg"
    compare_command("alibi", "inverse", "-sqrt(t)", epsilon=["0.1"], context=1000, figure=str(path), as_json=True)
    out = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in out["encodings"]] == ["converges", "diverges", "converges"]
    assert out["encodings"][0]["trf"] == [{"epsilon": "0.1", "tokens": "590"}]
    assert out["encodings"][1]["trf"] == []
    assert int(out["encodings"][1]["reach"][0]["tokens"]) <= 1000
    assert len(out["pairs"]) == 3
    assert path.stat().st_size > 10_000
    assert [p.name for p in tmp_path.iterdir()] == ["out.svg"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: compare_command("alibi"), "at least two"),
        (lambda: compare_command("alibi", "rope"), "no bias"),
        (lambda: compare_command("alibi", "type1", parameters=["q=1"]), "none of the encodings"),
        (lambda: compare_command("alibi", "type1", epsilon=["0"]), "epsilon"),
        (lambda: compare_command("alibi", "type1", head=9), "no head 9"),
        (lambda: compare_command("-t", "-2*t", figure="out.doc"), "png"),
        (lambda: compare_command("-t", "-2*t", figure="/nowhere/at/all.svg"), "does not exist"),
        (lambda: compare_command("alibi", "kerple-log"), "open"),
    ],
)
def test_nonsense_gets_one_sentence(call, said):
    with pytest.raises(ValueError, match=said) as caught:
        call()
    assert "\n" not in str(caught.value)
