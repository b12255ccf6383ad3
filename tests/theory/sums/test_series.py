"""Enclosures contain the truth: closed forms, Euler-Maclaurin, pieces, blocks and the general method."""

import json
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.formula import parse
from farfield.theory.checker.families import value_of
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.exact.constants import is_zero
from farfield.theory.sums.far import FarTail
from farfield.theory.sums.panels import General
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import bound_formula, series, sum_json
from farfield.theory.sums.shapes import shape
from farfield.theory.sums.weight import Weight

ORACLE = json.loads((Path(__file__).parents[2] / "oracles" / "trf.json").read_text(encoding="utf-8"))["series"]
PROPERTY = settings(deadline=None, derandomize=True, max_examples=40)

# One formula for each method, and fast enough that a plain sum of 3000 terms is the whole truth to 40 digits.
FAST = [
    "-t/8",
    "weight: 2**(-t)",
    "-log(t+1)**2 - t/20",
    "-t/16 - 2*log(t+1)",
    "-t/16 + 2*log(t+1)",
    "-(t/40)**2",
    "-(t/10)**1.5",
    "-t/12 + sin(t)",
    "-abs(t - 5)/9",
    "max(-t/7, 3 - t/2)",
    "where(t < 12, -t/10, -t/5)",
    "where(t < 100, -log(t+1), -inf)",
    "-floor(t/3)/4",
    "-log(1 + t**2 + exp(t/10))",
    "-t/9 - floor(sqrt(t))",
    "-0.3*t*log(t+2)/log(t+3)",
    "-sqrt(t) - floor(t)/3",
    "-2*log(t+5) - floor(t/7)/2 + sin(t)",
]
SLOW = [
    "-2*log(t+1)",
    "-1.1*log(1 + t/7)",
    "-log(1+(t/16)**2)",
    "weight: 1/(t**2+3*t+3)",
    "-log(t+1) - log(t+2)",
    "-log(t+1) - 2*log(t+5/2)",
    "-log(3+t/16)**2",
    "-sqrt(t)",
    "-(3*t+2)**0.4",
    "-log(t+2) - 2*log(log(t+2))",
    "-2*log(t+2) - log(log(t+2))",
    "-log(t+1)**1.5",
    "log(log(t+2)) - 2*log(t+1)",
    "-1.5*log(t+1) - log(t+3)",
    "-2*floor(log(t+1))",
    "where(t < 30, 0, -2*log(t+1))",
]


def truth(text, terms=3000):
    """The sum by mpmath in 60 digits, term by term, from the small end."""
    mpmath.mp.dps = 60
    formula = parse(text)
    with ctx.workprec(250):
        values = [Weight(formula)(t) for t in range(terms)]
    return sum((mpmath.mpf(v.mid().str(60, radius=False)) for v in reversed(values)), mpmath.mpf(0))


def contains(ball, value, slack="1e-50"):
    return ball.overlaps(arb(mpmath.nstr(value, 58)) + arb(0, slack))


@pytest.mark.parametrize("case", ORACLE, ids=lambda c: c["name"])
def test_the_sum_is_that_of_the_oracle(case):
    with ctx.workprec(160):
        total = series(case["bias"]).B()
        scale = abs(total) * arb("1e-23")
        assert total.overlaps(arb(case["B"]) + arb(0, scale.upper()))
        assert total.rel_accuracy_bits() > 100


@pytest.mark.parametrize("text", FAST)
def test_enclosure_contains_the_plain_sum(text):
    with ctx.workprec(192):
        total = series(text).B()
        assert contains(total, truth(text)), text
        assert total.rel_accuracy_bits() > 120


@pytest.mark.parametrize("text", FAST + SLOW)
@pytest.mark.parametrize("bits", [96, 160])
def test_head_and_tail_make_the_whole_and_tails_differ_by_terms(text, bits):
    with ctx.workprec(bits):
        s = series(text)
        for j in (0, 1, 2, 7, 40, 63, 64, 65, 200, 3000):
            assert (s.head(j) + s.tail(j)).overlaps(s.B())
            assert (s.tail(j) - s.tail(j + 1)).overlaps(s.term(j))
            assert not s.tail(j) < s.tail(j + 1)


@pytest.mark.parametrize("text", ["-2*log(t+1)", "-log(1+(t/16)**2)", "-log(t+1)**2", "-sqrt(t)", "-t/300"])
def test_the_general_method_agrees_with_the_closed_form(text):
    formula = parse(text)
    general = General(Weight(formula), 0, FarTail(formula))
    with ctx.workprec(128):
        for j in (0, 10, 100, 5000):
            assert general.tail(j).overlaps(series(text).tail(j))
        assert general.B().rel_accuracy_bits() > 80


@pytest.mark.parametrize("text", ["-2*log(t+1)", "-log(3+t/16)**2", "-sqrt(t)", "log(log(t+2)) - 2*log(t+1)"])
def test_more_precision_narrows_the_same_value(text):
    s = series(text)
    with ctx.workprec(96):
        rough = s.tail(1234)
    with ctx.workprec(320):
        fine = s.tail(1234)
    assert rough.overlaps(fine)
    assert fine.rad() < rough.rad()


@PROPERTY
@given(st.fractions(min_value=Fraction(11, 10), max_value=6, max_denominator=20), st.integers(1, 400))
def test_power_laws_lie_between_their_integrals(s, j):
    """integral from j of (t+1)**-s < tail(j) < integral from j - 1/2, for convex weights."""
    with ctx.workprec(128):
        tail = series("-s*log(t+1)", parameters={"s": s}).tail(j)
        p = arb(s.numerator) / s.denominator - 1
        assert tail > (arb(j) + 1) ** -p / p
        assert tail < (arb(j) + arb("0.5")) ** -p / p


@PROPERTY
@given(st.fractions(min_value=Fraction(1, 50), max_value=3, max_denominator=50), st.sampled_from(["1/2", "4/5", "3/2"]))
def test_stretched_exponentials_contain_the_plain_sum(a, p):
    text = f"-({a})*t**({p})"
    with ctx.workprec(128):
        s = series(text)
        row = Row(parse(text), 4000)
        assert (s.B() - s.tail(4000)).overlaps(row.B())
        assert (s.tail(17) - s.tail(4000)).overlaps(row.tail(17))


@pytest.mark.parametrize(
    "spellings",
    [
        ["-2*log(t+1)", "weight: 1/(t+1)**2", "-log(1+2*t+t**2)", "-4*log(sqrt(t+1))", "-log((t+1)*(1+t))"],
        ["-t*log(2)", "weight: 2**(-t)", "weight: 0.5**t", "weight: exp(-log(2)*t)", "-log(2)*t/2 - t*log(2)/2"],
        ["-log(1+(t/3)**2)", "weight: 1/(1+(t/3)**2)", "weight: 9/(9+t*t)", "log(9) - log(t**2 + 9)"],
        ["-sqrt(t)", "-t**0.5", "-t**(1/2)", "weight: exp(-sqrt(t))"],
    ],
)
def test_a_shape_does_not_depend_on_the_spelling(spellings):
    with ctx.workprec(128):
        methods = {series(s).method for s in spellings}
        assert len(methods) == 1
        first, *others = (series(s).tail(5) for s in spellings)
        assert all(first.overlaps(o) for o in others)


def test_shapes_of_logs_that_turn_negative_are_not_taken_for_power_laws():
    with pytest.raises(ValueError, match="distance"):
        series("-2*log(t - 3)")
    assert shape(parse("-sin(t)")) is None


@pytest.mark.parametrize(
    ("text", "j", "value"),
    [
        ("-log(t+1)-log(t+2)", 7, Fraction(1, 8)),
        ("where(t < 5, 0, -inf)", 2, 3),
        ("weight: 2**(-t)", 3, Fraction(1, 4)),
    ],
)
def test_sums_that_are_rational(text, j, value):
    with ctx.workprec(128):
        assert series(text).tail(j).contains(arb(Fraction(value).numerator) / Fraction(value).denominator)


def test_at_the_edge_of_a_piece_the_branch_is_decided_exactly():
    """1.7*10 + 5 < 22 is false, although no ball around 1.7 tells."""
    with ctx.workprec(128):
        s = series("where(1.7*t + 5 < 22, -t, -t - 1)")
        assert s.term(9).overlaps(arb(-9).exp())
        assert s.term(10).overlaps(arb(-11).exp())
        assert s.term(10).rel_accuracy_bits() > 100
        assert (s.tail(10) - s.tail(11)).overlaps(arb(-11).exp())


def test_a_weight_of_zero_ends_the_series():
    with ctx.workprec(128):
        assert series("weight: where(t < 5, 2, 0)").B() == 10
        assert series("weight: where(t < 5, 0, 2**(-t))").B().contains(arb(1) / 16)
    with pytest.raises(ValueError, match="all weights"):
        series("where(t < 5, -inf, -inf)")


def test_the_start_leaves_out_what_lies_before():
    with ctx.workprec(128):
        late = series("-2*log(t)", start=1)
        assert late.B().overlaps(series("-2*log(t+1)").B())
        assert late.term(0) == 0
        assert late.head(1) == 0


@pytest.mark.parametrize(
    "text", ["0", "-log(t+1)", "t", "-log(t+2)-log(log(t+2))", "cos(t)", "where(t < 128, -t, -1)", "-0.9*log(t+1)"]
)
def test_a_divergent_series_has_no_sum(text):
    with pytest.raises(DivergenceError, match="diverges"):
        series(text)


def test_what_cannot_be_summed_is_said_in_one_sentence():
    with pytest.raises(ValueError, match="leaves the parameter k open"):
        series("alibi")
    with pytest.raises(ValueError, match="no bias"):
        series("rope")
    with pytest.raises(ValueError, match="no parameter 'q'"):
        series("alibi", parameters={"q": 1})
    with pytest.raises(ValueError, match="distance 0"):
        series("-2*log(t)")
    with pytest.raises(ValueError, match="start"):
        series("-t", start=-1)
    with pytest.raises(UndecidedError):
        series("-(2+sin(t))*log(t+2)")


def test_oscillation_with_slow_decay_is_enclosed_roughly_and_honestly():
    with ctx.workprec(128):
        total = series("-2*log(t+1) + sin(t)").B()
        assert total.overlaps(Row(parse("-2*log(t+1) + sin(t)"), 20_000).B() + arb(0).union(arb("2e-4")))
        assert 8 < total.rel_accuracy_bits() < 40


@pytest.mark.parametrize("text", ["-t*log(2)", "-log(t+1)", "0", "-log(t+1)*log(t+2)/9", "t/1000", "-0.3*log(2*t+1)"])
def test_rows_of_tokens_are_plain_sums(text):
    formula = parse(text)
    with ctx.workprec(128):
        weight = Weight(formula)
        for n in (1, 5, 3000):
            row = Row(formula, n)
            plain = sum((weight(t) for t in range(n)), arb(0))
            assert row.B().overlaps(plain)
            assert row.tail(n // 2).overlaps(sum((weight(t) for t in range(n // 2, n)), arb(0)))


def test_exact_constants_know_when_they_are_zero():
    zero = ["3*log(2) - log(8)", "log(6) - log(2) - log(3)", "log(sqrt(10)) - log(10)/2", "1/3 - 2/6"]
    other = ["3*log(2) - log(9)", "log(2) - 0.6931471805599453", "1 - log(2)"]
    assert all(is_zero(value_of(parse(z).node)) for z in zero)
    assert not any(is_zero(value_of(parse(o).node)) for o in other)


def test_json_of_a_sum_contains_it():
    shown = sum_json(series("-2*log(t+1)"))
    assert shown["mid"].startswith("1.644934066848226")
    with ctx.workprec(256):
        assert abs(arb(shown["mid"]) - arb.pi() ** 2 / 6) <= arb(shown["rad"])


def test_named_defaults_are_filled_in():
    assert bound_formula("sandwich", {"s": 1}).parameters == ()


@pytest.mark.parametrize(
    "text",
    [
        "where(mod(t, 4) < 1, -2*log(t+1), -inf)",
        "where(mod(t, 3) < 1, -t/7, where(mod(t, 2) < 1, -t/9, -inf))",
        "weight: sin(pi*t/2)**2/(t+1)**3",
        "-(2 + mod(t, 5))*t/40",
        "weight: exp(-t/50)*sin(t)**2",
        "where(sin(t) < 0.5, -t/10, -inf)",
    ],
)
def test_what_repeats_for_ever_has_a_sum(text):
    """Residue classes, waves that touch 0 and branches that change for ever, against plain sums of many terms."""
    whole = series(text)
    with ctx.workprec(96):
        weight = Weight(parse(text).primitive)
        plain = [weight(t) for t in range(4000)]
        for j in (0, 7, 50):
            rest = whole.tail(j) - sum(plain[j:], arb(0))
            assert rest > -1e-20
            assert rest < (3e-4 if "log" in text or "**3" in text else 1e-20)


def test_weights_that_are_all_zero_are_refused():
    with pytest.raises(ValueError, match=r"all weights of .* are 0"):
        series("weight: sin(pi*t)**2/(t+1)")
