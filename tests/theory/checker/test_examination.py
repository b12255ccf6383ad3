"""The checker of certificates accepts what is true, refutes what is false, and says what it could not test."""

import json

import pytest

from farfield.formula import parse
from farfield.theory.checker.examination import check_certificate, examine, proves, statement


def claim(kind, ln_constant="0", depth=0, exponent="2", start="1", **more):
    return {"claim": kind, "ln_constant": ln_constant, "depth": depth, "exponent": exponent, "from": start, **more}


TRUE = [
    ("-2*log(t+1)", "converges", claim("upper")),
    ("-2*log(t+1)", "converges", claim("upper", exponent="3/2")),
    ("-log(t+1)", "diverges", claim("lower", "-0.7", exponent="1")),  # 1/(t+1) >= 1/(2t), and ln 2 < 0.7
    ("-t/256", "converges", claim("upper", "15", exponent="2", start="1")),  # t^2 exp(-t/256) <= (512/e)^2
    ("-sqrt(t)", "converges", claim("upper", start="exp(50)")),
    ("-sqrt(t)", "converges", claim("upper", start="exp(1000)")),
    ("-sqrt(t)", "converges", claim("upper", start="exp(exp(50))")),
    ("weight: 1/t", "diverges", claim("lower", exponent="1")),
    ("weight: 1/(t*log(t))", "diverges", claim("lower", depth=1, exponent="1", start="2")),
    ("-log(t) - log(log(t))", "diverges", claim("lower", depth=1, exponent="1", start="2")),
    ("weight: 1/(t*log(t)**2)", "converges", claim("upper", depth=1, exponent="2", start="2")),
    ("weight: 1/(t*log(t)*log(log(t)))", "diverges", claim("lower", depth=2, exponent="1", start="16")),
    ("weight: 1/(t*log(t)*sqrt(log(log(t))))", "diverges", claim("lower", depth=2, exponent="1/2", start="3")),
    ("weight: exp(1/t)-1-1/t", "converges", claim("upper", "-0.3", start="3")),  # (e^x - 1 - x)/x^2 < 0.57 at x <= 1/3
    ("weight: sqrt(t+1)-sqrt(t)", "diverges", claim("lower", "-1.1", exponent="1/2")),  # >= 1/(3 sqrt t)
    ("weight: t**(-3-sin(t))", "converges", claim("upper")),
    ("weight: exp(-t*(2+sin(t)))", "converges", claim("upper", exponent="5", start="13")),
    ("-floor(sqrt(t))", "converges", claim("upper", "6", start="1")),
    ("-2*floor(log(t))", "converges", claim("upper", "2", start="1")),
    ("max(-t, -10)", "diverges", claim("lower", "-10", exponent="0", start="0")),
    ("cos(t) - 1", "diverges", claim("lower", "-2", exponent="0", start="0")),
    ("where(t < 512, 0, -inf)", "converges", claim("upper", start="512")),
    ("where(t < 512, 0, -inf)", "converges", {"claim": "finite", "from": "512"}),
    ("weight: where(t < 9, 1/t, 0)", "converges", {"claim": "finite", "from": "9"}),
    (
        "weight: cos(t)**2/(t*log(t))",
        "diverges",
        claim("mean", depth=1, exponent="1", start="3", factor="cos(t)**2", mean="1/2"),
    ),
    ("weight: abs(cos(t))/t", "diverges", claim("mean", "-0.001", exponent="1", factor="cos(t)**2", mean="0.5")),
    (
        "weight: (1+cos(pi*t))/t",
        "diverges",
        claim("mean", "-0.001", exponent="1", factor="1+cos(pi*t)", mean="1"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict", "certificate"), TRUE)
def test_a_true_certificate_passes(text, verdict, certificate):
    found = examine(parse(text), verdict, json.loads(json.dumps(certificate)))
    assert found.violations == []
    assert found.tested > 30


@pytest.mark.parametrize(
    ("text", "verdict", "certificate"),
    [
        ("-2*log(t+1)", "converges", claim("upper", "-1e-9")),  # fails only beyond t = 10^9
        ("-2*log(t+1)", "converges", claim("upper", exponent="2.0001")),  # fails only far out
        ("-log(t+1)", "diverges", claim("lower", exponent="1")),  # 1/(t+1) < 1/t
        ("-t/256", "converges", claim("upper", "10", exponent="2")),  # false in the middle only
        ("cos(t) - 1", "diverges", claim("lower", "-1.9999", exponent="0", start="0")),  # false at few t
        ("weight: exp(1/t)-1-1/t", "converges", claim("upper", "-0.6932", start="3")),  # ln(1/2) = -0.69315
        ("where(t < 512, 0, -inf)", "converges", {"claim": "finite", "from": "511"}),
        ("where(t < 100000, 0, where(t < 100001, -t, -inf))", "converges", {"claim": "finite", "from": "100000"}),
        ("-t", "converges", {"claim": "finite", "from": "1000"}),  # tiny is not zero
        ("-sqrt(t)", "converges", claim("upper", "-1e30", start="exp(50)")),
        ("weight: abs(cos(t))/t", "diverges", claim("mean", "0.7", exponent="1", factor="cos(t)**2", mean="0.5")),
    ],
)
def test_a_false_inequality_is_refuted(text, verdict, certificate):
    assert check_certificate(parse(text), verdict, certificate)


@pytest.mark.parametrize(
    ("text", "verdict", "certificate", "why"),
    [
        ("-log(t)", "converges", claim("upper", exponent="1"), "must exceed 1"),
        ("-2*log(t)", "diverges", claim("lower", exponent="2"), "must not exceed 1"),
        ("-2*log(t)", "diverges", claim("upper", exponent="2"), "the verdict is diverges"),
        ("-log(t)", "converges", claim("lower", exponent="1"), "the verdict is converges"),
        ("-log(t)", "undecided", claim("lower", exponent="1"), "the verdict is undecided"),
        ("-2*log(t)", "converges", claim("upper", depth=1, exponent="2", start="1"), "not positive"),
        ("-2*log(t)", "converges", claim("upper", depth=2, exponent="2", start="2"), "not positive"),
        ("-2*log(t+1)", "converges", claim("upper", exponent="2", start="0"), "not positive"),
        ("weight: 1/t", "diverges", claim("mean", exponent="1", factor="1+cos(t)", mean="0"), "must be positive"),
        ("weight: 1/t", "diverges", claim("mean", exponent="1", factor="cos(t)**2", mean="0.6"), "mean value"),
        ("weight: 1/t", "diverges", claim("mean", exponent="1", factor="1-cos(2*pi*t)", mean="1"), "mean value"),
        ("weight: 3/t", "diverges", claim("mean", exponent="1", factor="0.5+cos(t)", mean="0.5"), "t = "),
        ("weight: 3/t", "diverges", claim("mean", exponent="1", factor="abs(cos(t))", mean="0.5"), "polynomial"),
    ],
)
def test_a_claim_that_proves_nothing_is_refused(text, verdict, certificate, why):
    violations = check_certificate(parse(text), verdict, certificate, samples=50)
    assert any(why in v for v in violations), violations


@pytest.mark.parametrize(
    "certificate",
    [
        None,
        [],
        {},
        {"claim": "believe me", "from": "1"},
        {"claim": "finite"},
        {"claim": "finite", "from": "-1"},
        {"claim": "finite", "from": "1.5"},
        {"claim": "finite", "from": "exp(t)"},
        {"claim": "finite", "from": "exp(50"},
        {"claim": "finite", "from": "exp(exp(exp(exp(exp(1)))))"},
        {"claim": "finite", "from": "__import__('os')"},
        {"claim": "finite", "from": True},
        {"claim": "upper", "from": "1"},
        claim("upper", exponent="two"),
        claim("upper", exponent="1/0"),
        claim("upper", exponent="1e9999999"),
        claim("upper", exponent=1.5),
        claim("upper", ln_constant="nan"),
        claim("upper", ln_constant="inf"),
        claim("upper", depth="0"),
        claim("upper", depth=-1),
        claim("upper", depth=True),
        claim("upper", depth=99),
        claim("mean", exponent="1"),
        claim("mean", exponent="1", factor="cos(", mean="1"),
        claim("mean", exponent="1", factor="cos(a*t)", mean="1"),
    ],
)
def test_a_malformed_certificate_is_a_value_error(certificate):
    with pytest.raises(ValueError, match="certificate"):
        check_certificate(parse("-t"), "converges", certificate)


def test_a_formula_with_open_parameters_has_no_certificate():
    with pytest.raises(ValueError, match="without parameters"):
        check_certificate(parse("-k*t"), "converges", claim("upper"))


def test_what_balls_cannot_decide_far_out_is_reported_and_not_passed():
    """sin of exp(exp(50)) is anywhere between -1 and 1: a bound that needs its value is neither passed nor refuted."""
    tight = examine(parse("sin(t) - 2*log(t)"), "converges", claim("upper", "0.5", start="exp(exp(50))"))
    assert tight.violations == []
    assert tight.untested
    assert tight.tested == 0
    loose = examine(parse("sin(t) - 2*log(t)"), "converges", claim("upper", "1.01", start="exp(exp(50))"))
    assert loose.violations == []
    assert loose.tested > 30


@pytest.mark.parametrize(
    ("text", "certificate"),
    [
        ("-t", claim("upper")),
        ("-2*log(t)", claim("upper", "0.1")),
        ("-log(t)**1.0001", claim("upper")),
        ("-log(t) - log(t)**0.001", claim("upper", depth=1)),
        ("-log(t) - log(log(t)) - sqrt(log(log(t)))", claim("upper", depth=2)),
        ("weight: log(log(log(t)))**(-log(t))", claim("upper")),
        ("sin(t) - 2*log(t + 7) + 1/t", claim("upper", "1.1", exponent="1.9")),
        ("-floor(2*log(t))", claim("upper", exponent="1.9")),
        ("weight: 1/(t**2 + t*log(t) - 5)", claim("upper", exponent="1.9")),
        ("max(-t, -3*log(t))", claim("upper", exponent="2.9")),
        ("-sum(log(t + j), j, 1, 3)/2", claim("upper", exponent="1.49")),
        ("where(t < 100, 0, -3*log(t))", claim("upper", exponent="2.9")),
    ],
)
def test_far_out_the_logarithm_of_t_is_enough(text, certificate):
    """exp(exp(exp(20))) is no ball, but its logarithm is."""
    found = examine(parse(text), "converges", {**certificate, "from": "exp(exp(exp(20)))"})
    assert found.violations == []
    assert found.tested == 20


@pytest.mark.parametrize(
    ("text", "certificate"),
    [
        ("-2*log(t)", claim("upper", "-0.1")),
        ("-log(t) - log(log(t))**1.001", claim("upper", depth=1, exponent="1.1")),
        ("weight: t", claim("upper")),
        ("-1.9*log(t) + sin(t)", claim("upper")),
        ("weight: 1/(t**2 + log(t))", claim("upper", exponent="2.001")),
    ],
)
def test_far_out_a_false_inequality_is_refuted(text, certificate):
    assert check_certificate(parse(text), "converges", {**certificate, "from": "exp(exp(exp(20)))"})


def test_a_range_beyond_every_logarithm_is_reported_as_untested():
    found = examine(parse("-t"), "converges", claim("upper", start="exp(exp(exp(exp(20))))"))
    assert found.violations == []
    assert found.tested == 0
    assert "beyond" in found.untested[0]


def test_a_tie_at_a_jump_is_found():
    """log(2)/(0.5*log(4)) is exactly 1, so its floor is 1 at t = 4 and 0 beyond."""
    formula = parse("weight: floor(log(2)/(0.5*log(t)))")
    assert check_certificate(formula, "converges", {"claim": "finite", "from": "4"})
    assert check_certificate(formula, "converges", {"claim": "finite", "from": "5"}) == []


def test_a_jump_that_comes_ever_closer_is_no_violation():
    """1 - exp(-t) is below 1, but no ball of moderate size tells so at t = 10^6."""
    found = examine(parse("weight: floor(1-exp(-t))"), "converges", {"claim": "finite", "from": "1"})
    assert found.violations == []
    assert found.tested > 900


def test_a_part_too_close_to_zero_is_reported_as_untested():
    """log(1 + exp(-sqrt(t))) at t = 2**100 needs 2**50 bits."""
    formula = parse("weight: 1/(t*log(1+exp(-sqrt(t))))")
    found = examine(formula, "diverges", claim("lower", exponent="1", start="9"))
    assert found.violations == []
    assert found.untested
    assert found.tested > 1000


def test_an_undefined_weight_is_a_violation():
    assert check_certificate(parse("sqrt(5-t)-2*log(t+1)"), "converges", claim("upper"), samples=20)
    assert check_certificate(parse("weight: 1/(t-1000)"), "diverges", claim("lower", exponent="1", start="900"))


@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        (claim("upper", "1.1631", exponent="1.5", start="17"), "b(t) <= 3.2 * t^-1.5 for all t >= 17"),
        (claim("upper", "1.1632", exponent="1.5", start="17"), "b(t) <= 3.21 * t^-1.5 for all t >= 17"),
        (claim("lower", "1.1632", exponent="1"), "b(t) >= 3.2 * t^-1 for all t >= 1"),
        (claim("lower", "-3.2188", exponent="0", start="0"), "b(t) >= 0.04 for all t >= 0"),
        (claim("lower", "-3.2189", exponent="0", start="0"), "b(t) >= 0.0399 for all t >= 0"),
        (claim("lower", "-128", exponent="0", start="0"), "b(t) >= exp(-128) for all t >= 0"),
        (claim("upper", "0"), "b(t) <= t^-2 for all t >= 1"),
        (claim("upper", "20"), "b(t) <= 4.86e8 * t^-2 for all t >= 1"),
        (claim("upper", depth=1, start="3"), "b(t) <= 1 / (t * ln(t)^2) for all t >= 3"),
        (claim("lower", depth=1, exponent="1", start="3"), "b(t) >= 1 / (t * ln(t)) for all t >= 3"),
        (
            claim("lower", depth=2, exponent="1/3", start="3"),
            "b(t) >= 1 / (t * ln(t) * ln(ln(t))^(1/3)) for all t >= 3",
        ),
        (claim("lower", depth=1, exponent="0", start="3"), "b(t) >= 1 / t for all t >= 3"),
        ({"claim": "finite", "from": "512"}, "b(t) = 0 for all t >= 512"),
        (claim("upper", start="exp(50)"), "b(t) <= t^-2 for all t >= exp(50)"),
        (
            claim("mean", "-0.01", exponent="1", factor="cos(t)**2", mean="1/2", start="3"),
            "b(t) >= q(t) * 0.99 * t^-1 for all t >= 3, where q(t) = cos(t)**2 >= 0 has the mean value 0.5",
        ),
    ],
)
def test_the_sentence_rounds_to_the_safe_side(certificate, sentence):
    assert statement(certificate) == sentence


def test_the_sentence_in_latex():
    assert statement(claim("upper", "1.1631", exponent="1.5", start="17"), latex=True) == (
        r"b(t) \le 3.2 \cdot t^{-1.5}\quad\text{for all } t \ge 17"
    )
    assert statement(claim("lower", depth=1, exponent="1", start="exp(50)"), latex=True) == (
        r"b(t) \ge \frac{1}{t \, \ln t}\quad\text{for all } t \ge \exp(50)"
    )


def test_what_a_claim_proves():
    assert proves(claim("upper", exponent="1.0000001")) == "converges"
    assert proves(claim("upper", exponent="1")) is None
    assert proves(claim("lower", exponent="1")) == "diverges"
    assert proves(claim("lower", exponent="1.0000001")) is None
    assert proves({"claim": "finite", "from": "0"}) == "converges"
