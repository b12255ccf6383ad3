"""One formula, several readings: doubles, balls, tensors, sympy, text and LaTeX agree to their precision."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from farfield.formula import FormulaError, parse
from farfield.formula.algebras import float_value

NUMBERS = st.one_of(
    st.integers(0, 20).map(str),
    st.decimals("0.001", "30", places=3).map(str),
    st.sampled_from(["pi", "1e-3", "2.5e1", "0.5"]),
)
LEAVES = st.one_of(st.just("t"), st.just("t"), st.sampled_from(["a", "p"]), NUMBERS)


def bigger(inner):
    pair = st.tuples(inner, inner)
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda x: f"({x[0]}){x[1]}({x[2]})"),
        pair.map(lambda x: f"{x[0]} + {x[1]}"),
        pair.map(lambda x: f"{x[0]}*{x[1]}"),
        inner.map(lambda x: f"-{x}"),
        st.tuples(inner, st.sampled_from(["2", "3", "-1", "0.5", "-p", "a"])).map(lambda x: f"({x[0]})**{x[1]}"),
        st.tuples(st.sampled_from(["exp", "log", "sqrt", "sin", "cos", "abs", "floor"]), inner).map(
            lambda x: f"{x[0]}({x[1]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(lambda x: f"{x[0]}({x[1]}, {x[2]})"),
        st.tuples(inner, st.sampled_from(["<", "<=", ">", ">="]), inner, inner, inner).map(
            lambda x: f"where({x[0]} {x[1]} {x[2]}, {x[3]}, {x[4]})"
        ),
        inner.map(lambda x: f"sum(({x})/j, j, 1, 3)"),
    )


FORMULAS = st.recursive(LEAVES, bigger, max_leaves=8)
DISTANCES = st.integers(0, 12)
VALUES = st.fixed_dictionaries(
    {"a": st.fractions("1/4", 3, max_denominator=8), "p": st.fractions("1/4", 3, max_denominator=8)}
)
PROPERTY = settings(deadline=None, derandomize=True, max_examples=250)


def legal(text):
    try:
        return parse(text)
    except FormulaError:
        assume(False)


def tame(formula, t, values):
    """Doubles neither overflow nor underflow in any part (a part inside a sum is seen at its first indices)."""
    for node in formula.node.walk():
        for j in (1, 2, 3):
            names = {"t": t, "j": j, **values}
            value = float_value(node, names) if node.op != "-inf" else 0.0
            if not (value == 0 or 1e-100 < abs(value) < 1e100):
                return False
    return True


def close(value, formula, t, values):
    """The value lies where 53 bits of ball arithmetic, which carry their own rounding error, allow it."""
    with ctx.workprec(53):
        ball = formula.ball(t, values)
    return not ball.is_finite() or abs(value - float(ball.mid())) <= 100 * float(ball.rad()) + 1e-13 * abs(value)


@PROPERTY
@given(FORMULAS)
def test_text_parses_back_to_the_same_formula(text):
    formula = legal(text)
    assert parse(formula.text()) == formula
    assert parse(str(formula)).text() == formula.text()


@PROPERTY
@given(FORMULAS, VALUES)
def test_text_of_a_bound_formula_parses_back_to_it(text, values):
    formula = legal(text)
    try:
        bound = formula.bind({name: values[name] for name in formula.parameters})
    except FormulaError:
        assume(False)
    assert bound.parameters == ()
    assert parse(bound.text()) == bound


@PROPERTY
@given(FORMULAS, DISTANCES, VALUES)
def test_doubles_agree_with_balls(text, t, values):
    formula = legal(text)
    assume(tame(formula, t, values))
    assert close(formula.float(t, values), formula, t, values)


@PROPERTY
@given(FORMULAS, DISTANCES, VALUES)
def test_a_ball_of_more_bits_lies_inside_one_of_fewer(text, t, values):
    formula = legal(text)
    with ctx.workprec(64):
        wide = formula.ball(t, values)
    with ctx.workprec(256):
        narrow = formula.ball(t, values)
    assert not (wide.is_finite() and narrow.is_finite()) or wide.overlaps(narrow)


@PROPERTY
@given(FORMULAS, st.integers(0, 6), st.integers(1, 5), VALUES)
def test_a_ball_over_a_range_holds_every_distance_in_it(text, first, length, values):
    formula = legal(text)
    with ctx.workprec(64):
        over = formula.ball(arb(first).union(arb(first + length)), values)
        assume(over.is_finite())
        for t in range(first, first + length + 1):
            at = formula.ball(t, values)
            assert not at.is_finite() or over.overlaps(at)


@PROPERTY
@given(FORMULAS, VALUES)
def test_tensors_agree_with_balls(text, values):
    torch = pytest.importorskip("torch")
    formula = legal(text)
    given_values = {name: torch.tensor(float(v), dtype=torch.float64) for name, v in values.items()}
    tensor = formula.torch(torch.arange(13, dtype=torch.float64), given_values)
    assert tensor.shape == (13,)
    for t in range(13):
        if tame(formula, t, values):
            assert close(tensor[t].item(), formula, t, values)


@settings(PROPERTY, max_examples=60)
@given(FORMULAS, st.integers(1, 12), VALUES)
def test_sympy_agrees_with_balls(text, t, values):
    sympy = pytest.importorskip("sympy")
    formula = legal(text)
    assume("floor" not in text)  # sympy may not know on which side of a whole number a hidden one lies
    with ctx.workprec(300):
        ball = formula.ball(t, values)
        assume(ball.is_finite() and ball.rad() < 1e-40 and abs(ball) < 1e50)
        expected = ball.str(40, radius=False)
    expression = formula.sympy()
    numbers = {
        s: sympy.Rational(values[s.name]) if s.name in values else sympy.Integer(t) for s in expression.free_symbols
    }
    value = sympy.N(expression.subs(numbers), 30)
    difference = abs(value - sympy.Float(expected, 40))
    assert difference < 1e-12 * max(1, abs(sympy.Float(expected, 40)))


@PROPERTY
@given(FORMULAS)
def test_latex_has_balanced_braces_and_no_raw_text(text):
    latex = legal(text).latex()
    depth = 0
    for c in latex:
        depth += (c == "{") - (c == "}")
        assert depth >= 0
    assert depth == 0
    assert latex.count(r"\left") == latex.count(r"\right")
    assert "**" not in latex
    assert "_" not in latex.replace("_{", "").replace("_1", "")


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("-k*t", r"-k \, t"),
        ("-2*log(t+1)", r"-2 \, \ln\left(t + 1\right)"),
        ("-log(1 + (k*t)**2)", r"-\ln\left(1 + {\left(k \, t\right)}^{2}\right)"),
        ("t/256", r"\frac{t}{256}"),
        ("a1 + beta", r"a_{1} + \beta"),
        ("where(t < w, 0, -inf)", r"\begin{cases} 0, & t < w \\ -\infty, & \text{otherwise} \end{cases}"),
        ("sum(cos(t*j), j, 1, 4)", r"\sum_{j=1}^{4} \cos\left(t \, j\right)"),
        ("sum(t + j, j, 1, 4)", r"\sum_{j=1}^{4} \left(t + j\right)"),
        ("(a/b)**t", r"{\left(\frac{a}{b}\right)}^{t}"),
        ("(a**b)**t", r"{\left({a}^{b}\right)}^{t}"),
    ],
)
def test_latex_as_a_mathematician_writes_it(text, latex):
    assert parse(text).latex() == latex


def test_the_weight_is_the_exponential_of_the_bias_in_every_reading():
    torch = pytest.importorskip("torch")
    bias, weight = parse("-2*log(t+1)"), parse("weight: 1/(t+1)**2")
    for t in (0, 1, 7, 1000):
        assert bias.float(t) == pytest.approx(weight.float(t), rel=1e-14, abs=1e-14)
        assert bias.ball(t).overlaps(weight.ball(t))
        assert bias.weight_ball(t).overlaps(weight.weight_ball(t))
        at = torch.tensor([float(t)], dtype=torch.float64)
        assert torch.allclose(bias.torch(at), weight.torch(at), rtol=1e-14)


def test_a_masked_distance_has_weight_zero_in_every_reading():
    torch = pytest.importorskip("torch")
    window = parse("where(t < 5, 0, -inf)")
    assert window.float(5) == -math.inf
    assert window.weight_ball(5).is_zero()
    assert window.weight_ball(4) == 1
    assert window.torch(torch.arange(7.0)).exp().tolist() == [1, 1, 1, 1, 1, 0, 0]


def test_an_undefined_value_is_nan_and_not_an_exception():
    torch = pytest.importorskip("torch")
    for text, t in (("log(t)", 0), ("1/t", 0), ("sqrt(5-t)", 6), ("log(log(t))", 1), ("(t-3)**0.5", 1), ("t**(-1)", 0)):
        formula = parse(text)
        assert not math.isfinite(formula.float(t))
        assert not formula.ball(t).is_finite()
        assert not torch.isfinite(formula.torch(torch.tensor([float(t)]))).any()


def test_gradients_reach_the_parameters():
    torch = pytest.importorskip("torch")
    p = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    a = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    t = torch.arange(100, dtype=torch.float64)
    parse("-p*log(1+a*t)").torch(t, {"p": p, "a": a}).sum().backward()
    assert p.grad.item() == pytest.approx(-torch.log1p(0.5 * t).sum().item(), rel=1e-12)
    assert a.grad.item() == pytest.approx(-(1.5 * t / (1 + 0.5 * t)).sum().item(), rel=1e-12)


def test_no_nan_from_a_branch_not_taken_reaches_a_gradient():
    torch = pytest.importorskip("torch")
    p = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    bias = parse("where(t < 1, 0, -p*log(t))").torch(torch.arange(10, dtype=torch.float64), {"p": p})
    bias.sum().backward()
    assert bias[0] == 0
    assert p.grad.item() == pytest.approx(-math.log(math.factorial(9)), rel=1e-12)


def test_a_value_for_each_head_broadcasts_against_the_distances():
    torch = pytest.importorskip("torch")
    slopes = torch.tensor([[0.5], [0.25]])
    bias = parse("-k*t").torch(torch.arange(4.0), {"k": slopes})
    assert bias.tolist() == [[0, -0.5, -1, -1.5], [0, -0.25, -0.5, -0.75]]


def test_a_parameter_without_a_value_is_named():
    with pytest.raises(FormulaError, match="'k'"):
        parse("-k*t").float(1)
    with pytest.raises(FormulaError, match="'k'"):
        parse("-k*t").ball(1)


def test_balls_are_as_narrow_as_their_precision():
    """type1 at t = 10^40: the ball knows log(1 + t) to 300 bits although doubles see only log(t)."""
    with ctx.workprec(300):
        value = parse("log(t+1) - log(t)").ball(10**40)
        assert value > 0
        assert abs(value * arb(10) ** 40 - 1) < 1e-39


def test_powers_of_zero_and_of_negative_numbers():
    assert parse("t**0.5").ball(0) == 0
    assert parse("t**0").ball(0) == 1
    assert parse("0**t").float(0) == 1
    assert parse("(t-3)**2").ball(1) == 4
    assert parse("(t-3)**3").ball(1) == -8
    assert parse("(-2)**t").float(3) == -8
    assert parse("(-2)**t").ball(3) == -8


def test_a_whole_power_of_a_ball_around_zero_is_a_ball():
    """sin(t)**2 lies between 0 and 1 however little is known of t."""
    far = arb((1, 10**10))
    square, cube = parse("sin(t)**2").ball(far), parse("sin(t)**3").ball(far)
    assert square > -1e-6
    assert square < 1.1
    assert cube > -1.1
    assert cube < 1.1
    assert parse("(t-3)**2").ball(arb(2).union(arb(5))).contains(arb(4))
    assert not parse("1/sin(t)**2").ball(far).is_finite()


def test_a_huge_exponent_is_not_written_out():
    """t = 2**(10**12) is an exact ball; its digits would fill the memory."""
    assert not parse("t**t").ball(arb((1, 10**12))).is_nan()
    assert parse("2**(-t)").ball(arb((1, 10**12))) < 1e-100


def test_exact_halves_fall_on_the_right_side_of_floor():
    for t in range(1, 200):
        assert parse("floor(sqrt(t))").ball(t) == math.isqrt(t)
        assert parse("floor(t/3)").ball(t).overlaps(arb(t // 3))
        assert parse("floor(sqrt(t))").float(t) == math.isqrt(t)


def test_a_sum_is_the_sum_of_its_terms_in_every_reading():
    torch = pytest.importorskip("torch")
    formula = parse("sum(cos(t/r**(2*j/d)), j, 1, d/2)").bind({"r": 10000, "d": 8})
    expected = sum(math.cos(37 / 10000 ** (2 * j / 8)) for j in range(1, 5))
    assert formula.float(37) == pytest.approx(expected, rel=1e-14)
    assert float(formula.ball(37).mid()) == pytest.approx(expected, rel=1e-14)
    assert formula.torch(torch.tensor([37.0], dtype=torch.float64)).item() == pytest.approx(expected, rel=1e-14)
    sympy = pytest.importorskip("sympy")
    distance = sympy.Symbol("t", nonnegative=True)
    assert float(formula.sympy().subs(distance, 37).evalf()) == pytest.approx(expected, rel=1e-14)


def test_exact_rationals_where_they_are_plain():
    from farfield.formula.algebras import exact_value

    assert exact_value(parse("1/3 + 2**-2").node, {}) == Fraction(7, 12)
    assert exact_value(parse("sqrt(2)").node, {}) is None
    assert exact_value(parse("1/(t-1)").node, {"t": Fraction(1)}) is None
