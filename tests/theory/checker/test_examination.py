"""The checker of certificates accepts what it proves for all distances, and nothing else."""

import json

import pytest
from false_certificates import proves

from farfield import check
from farfield.formula import parse
from farfield.theory.checker.claims import wording
from farfield.theory.checker.examination import examine


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
    ("weight: (1+cos(t))/t", "diverges", claim("mean", "0", exponent="1", factor="1+cos(t)", mean="1")),
    ("weight: abs(cos(sqrt(2)*t))/t", "diverges", claim("mean", exponent="1", factor="cos(sqrt(2)*t)**2", mean="0.5")),
    ("weight: floor(log(2)/(0.5*log(t)))", "converges", {"claim": "finite", "from": "5"}),  # exactly 1 at t = 4
    ("weight: floor(1-exp(-t))", "converges", {"claim": "finite", "from": "1"}),  # ever closer to 1
    ("weight: 1/(t*log(1+exp(-sqrt(t))))", "diverges", claim("lower", exponent="1", start="9")),
    ("-log(t+1) - log(log(t+3))", "diverges", claim("lower", "-3", depth=1, exponent="1", start="9")),
    ("-sqrt(2)*sqrt(2)*log(t)", "converges", claim("upper")),  # 2, exactly
    ("t**(1/(sqrt(2)-1)) - t**(sqrt(2)+1) - 2*log(t)", "converges", claim("upper")),
    ("-sqrt((1-sqrt(2))**(-2))*log(t+1)", "converges", claim("upper", "0", exponent="2.4")),
    ("weight: exp(-t) + 1/t**2", "converges", {"claim": "sum", "parts": [claim("upper", "1"), claim("upper")]}),
    (
        "weight: cos(t)**2/t + 1/t**2",
        "diverges",
        {"claim": "part", "index": 0, "part": claim("mean", exponent="1", factor="cos(t)**2", mean="0.5")},
    ),
    (
        "-log(t+1)*(2+cos(pi*t))",  # odd distances: 1/(t+1), even ones: 1/(t+1)**3
        "diverges",
        {"claim": "classes", "modulus": 2, "classes": [None, claim("lower", "-1.5", exponent="1")]},
    ),
    (
        "-2*log(t+1)*(1+floor(t/2)-floor((t-1)/2))",
        "converges",
        {"claim": "classes", "modulus": 2, "classes": [claim("upper"), claim("upper")]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "verdict", "certificate"), TRUE)
def test_a_true_certificate_is_proven(text, verdict, certificate):
    result = examine(parse(text), verdict, json.loads(json.dumps(certificate)), start=9)
    assert result.accepted, result.refused
    assert any("for all t >=" in step for step in result.proof)


FALSE = [
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
    ("weight: log(t+2) - log(t+1)", "converges", claim("upper", "5", exponent="1.5")),  # it is about 1/t
    ("-log(t)", "converges", claim("upper", "30", exponent="1.0000001", start="exp(exp(50))")),
    (
        "-log(t)",
        "converges",
        claim("upper", "1e30", exponent="1.0000001"),
    ),  # the harmonic series, false beyond e^(10^37)
    ("-log(t) - log(log(t))", "converges", claim("upper", "1000", depth=1, exponent="1.001", start="20")),
    ("weight: floor(log(2)/(0.5*log(t)))", "converges", {"claim": "finite", "from": "4"}),  # exactly 1 at t = 4
    ("sin(t) - 2*log(t)", "converges", claim("upper", "0.5", start="exp(exp(50))")),
    ("weight: exp(-t) + 1/t", "converges", {"claim": "sum", "parts": [claim("upper", "1"), claim("upper", "9")]}),
    ("weight: 1/t - 1/t", "diverges", {"claim": "part", "index": 0, "part": claim("lower", exponent="1")}),  # no sum
    ("weight: 1/t + (1-1/t)", "converges", {"claim": "sum", "parts": [claim("upper"), claim("upper")]}),
    ("weight: 1/t + -2/t", "diverges", {"claim": "part", "index": 0, "part": claim("lower", exponent="1")}),  # negative
    ("-log(t+1)*(2+cos(pi*t))", "converges", {"claim": "classes", "modulus": 2, "classes": [claim("upper", "9")] * 2}),
    (
        "-log(t+1)*(2+cos(pi*t))",
        "converges",
        {"claim": "classes", "modulus": 2, "classes": [claim("upper", "9"), None]},
    ),
    (
        "-log(t+1)*(3+cos(pi*t))",
        "diverges",
        {"claim": "classes", "modulus": 2, "classes": [None, claim("lower", exponent="1")]},
    ),
]


@pytest.mark.hostile("false and malformed certificates")
@pytest.mark.parametrize(("text", "verdict", "certificate"), FALSE)
def test_a_false_certificate_is_not_accepted(text, verdict, certificate):
    result = examine(parse(text), verdict, certificate, start=3)
    assert not result.accepted
    assert result.refused


@pytest.mark.parametrize(
    ("text", "certificate", "where"),
    [
        ("-2*log(t+1)", claim("upper", exponent="2.0001"), "far out"),
        ("-t/256", claim("upper", "10"), "at t = "),
        ("where(t < 512, 0, -inf)", {"claim": "finite", "from": "511"}, "at t = 511"),
    ],
)
def test_a_refutation_says_where(text, certificate, where):
    assert where in examine(parse(text), "converges", certificate).refused


@pytest.mark.parametrize(
    "text", ["sqrt(5-t)-2*log(t+1)", "-2*log(t+1) + 1/(t-1000)", "-2*log(t+1) + 0*log(10**9+0.5-t)"]
)
def test_a_formula_without_a_value_somewhere_is_not_accepted(text):
    assert not examine(parse(text), "converges", claim("upper", "9", start="2"))
    assert not examine(parse(text), "converges", claim("upper", "9", start="exp(50)"))


def test_a_formula_must_have_values_before_the_claim_begins():
    certificate = claim("upper", "1", start="2000")
    assert examine(parse("-2*log(t+1)"), "converges", certificate)
    assert not examine(parse("-2*log(t+1) + 1/(t-1000)"), "converges", certificate)
    assert examine(parse("-2*log(t+1) + 1/(t-1000)"), "converges", certificate, start=1001)
    assert not examine(parse("weight: (t-1000.3)*(t-999.7)/t**4"), "converges", certificate, start=1)
    assert examine(parse("weight: (t-1000.3)*(t-1000.7)/t**4"), "converges", certificate, start=1)


@pytest.mark.hostile("false and malformed certificates")
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
        ("weight: 1/t", "diverges", claim("mean", exponent="1", factor="cos(log(2)*t)**2", mean="0.5"), "2 pi"),
        ("weight: 3/t", "diverges", claim("mean", exponent="1", factor="abs(cos(t))", mean="0.5"), "polynomial"),
        ("weight: 3/t", "diverges", claim("mean", exponent="1", factor="cos(t**2)**2", mean="0.5"), "linear"),
        ("weight: t", "diverges", claim("mean", exponent="-1", factor="cos(t)**2", mean="0.5"), "not negative"),
    ],
)
def test_a_claim_that_proves_nothing_is_refused(text, verdict, certificate, why):
    assert why in examine(parse(text), verdict, certificate, start=1).refused


@pytest.mark.hostile("false and malformed certificates")
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
        {"claim": "sum"},
        {"claim": "sum", "parts": []},
        {"claim": "sum", "parts": "all"},
        {"claim": "sum", "parts": [None]},
        {"claim": "part", "part": claim("lower", exponent="1")},
        {"claim": "part", "index": -1, "part": claim("lower", exponent="1")},
        {"claim": "part", "index": 0},
        {"claim": "classes", "modulus": 2, "classes": [None]},
        {"claim": "classes", "modulus": 1, "classes": [None]},
        {"claim": "classes", "modulus": 10**9, "classes": [None]},
        {"claim": ["upper"]},
    ],
)
def test_a_malformed_certificate_is_a_value_error(certificate):
    with pytest.raises(ValueError, match="certificate"):
        examine(parse("-t"), "converges", certificate)


@pytest.mark.hostile("false and malformed certificates")
def test_a_certificate_that_contains_itself_is_refused():
    endless = {"claim": "part", "index": 0}
    endless["part"] = endless
    with pytest.raises(ValueError, match="nested"):
        examine(parse("weight: 1/t + 1/t"), "diverges", endless)


def test_a_formula_with_open_parameters_has_no_certificate():
    with pytest.raises(ValueError, match="without parameters"):
        examine(parse("-k*t"), "converges", claim("upper"))


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
        ("sin(t) - 2*log(t)", claim("upper", "1.01")),
    ],
)
@pytest.mark.parametrize("start", ["exp(exp(exp(20)))", "exp(exp(exp(exp(20))))"])
def test_far_out_the_logarithm_of_t_is_enough(text, certificate, start):
    """exp(exp(exp(20))) is no ball, but its logarithm is."""
    result = examine(parse(text), "converges", {**certificate, "from": start}, start=20)
    assert result.accepted, result.refused


@pytest.mark.parametrize(
    ("text", "certificate"),
    [
        ("-2*log(t)", claim("upper", "-0.1")),
        ("-log(t) - log(log(t))**0.999", claim("upper", depth=1, exponent="1.1")),
        ("weight: t", claim("upper")),
        ("-1.9*log(t) + sin(t)", claim("upper")),
        ("weight: 1/(t**2 + log(t))", claim("upper", exponent="2.001")),
    ],
)
def test_far_out_a_false_inequality_is_refuted(text, certificate):
    result = examine(parse(text), "converges", {**certificate, "from": "exp(exp(exp(20)))"}, start=20)
    assert "it is false far out" in result.refused


@pytest.mark.parametrize(
    ("certificate", "sentence"),
    [
        (claim("upper", "1.1631", exponent="1.5", start="17"), "b(t) <= 3.2*t**-1.5 for all t >= 17"),
        (claim("upper", "1.1632", exponent="1.5", start="17"), "b(t) <= 3.21*t**-1.5 for all t >= 17"),
        (claim("lower", "1.1632", exponent="1"), "b(t) >= 3.2*t**-1 for all t >= 1"),
        (claim("lower", "-3.2188", exponent="0", start="0"), "b(t) >= 0.04 for all t >= 0"),
        (claim("lower", "-3.2189", exponent="0", start="0"), "b(t) >= 0.0399 for all t >= 0"),
        (claim("lower", "-128", exponent="0", start="0"), "b(t) >= exp(-128) for all t >= 0"),
        (claim("upper", "0"), "b(t) <= t**-2 for all t >= 1"),
        (claim("upper", "20"), "b(t) <= 486000000*t**-2 for all t >= 1"),
        (claim("upper", depth=1, start="3"), "b(t) <= 1/(t*log(t)**2) for all t >= 3"),
        (claim("lower", depth=1, exponent="1", start="3"), "b(t) >= 1/(t*log(t)) for all t >= 3"),
        (
            claim("lower", depth=2, exponent="1/3", start="3"),
            "b(t) >= 1/(t*log(t)*log(log(t))**(1/3)) for all t >= 3",
        ),
        (claim("lower", depth=1, exponent="0", start="3"), "b(t) >= 1/t for all t >= 3"),
        ({"claim": "finite", "from": "512"}, "b(t) = 0 for all t >= 512"),
        (claim("upper", start="exp(50)"), "b(t) <= t**-2 for all t >= exp(50)"),
        (
            claim("mean", "-0.01", exponent="1", factor="cos(t)**2", mean="1/2", start="3"),
            "b(t) >= q(t)*0.99*t**-1 for all t >= 3, where q(t) = cos(t)**2 has the mean value 0.5",
        ),
    ],
)
def test_the_sentence_rounds_to_the_safe_side(certificate, sentence):
    assert str(wording(certificate)) == sentence


def test_the_sentence_in_latex():
    assert wording(claim("upper", "1.1631", exponent="1.5", start="17")).latex() == (
        r"$b(t) \le 3.2 \, {t}^{-1.5}$ for all $t \ge 17$"
    )
    assert wording(claim("lower", depth=1, exponent="1", start="exp(50)")).latex() == (
        r"$b(t) \ge \frac{1}{t \, \ln\left(t\right)}$ for all $t \ge \exp\left(50\right)$"
    )


def test_the_sentence_of_several_claims():
    one, other = claim("upper", exponent="2"), claim("lower", exponent="1")
    assert str(wording({"claim": "sum", "parts": [one, one]})).startswith(
        "summand 1: b(t) <= t**-2 for all t >= 1; summ"
    )
    assert str(wording({"claim": "part", "index": 1, "part": other})) == "summand 2: b(t) >= t**-1 for all t >= 1"
    classes = {"claim": "classes", "modulus": 2, "classes": [None, other]}
    assert str(wording(classes)) == "t = 2*n + 1: b(t) >= t**-1 for all t >= 1"


def test_what_a_claim_proves():
    assert proves(claim("upper", exponent="1.0000001")) == "converges"
    assert proves(claim("upper", exponent="1")) is None
    assert proves(claim("lower", exponent="1")) == "diverges"
    assert proves(claim("lower", exponent="1.0000001")) is None
    assert proves({"claim": "finite", "from": "0"}) == "converges"


@pytest.mark.parametrize(
    "text", ["weight: (1+sin(t))/(t+1)", "weight: 1/(t+1) + cos(t)/(t+1)", "weight: (1+cos(pi*t))/(t+1)"]
)
def test_a_weight_that_touches_zero_is_shown_not_to_be_negative(text):
    verdict = check(text)
    assert verdict.verdict == "diverges"
    assert verdict.proven
