"""Weights on the powers of two, the squares and their like: decided by a certificate that treats the set apart."""

import pytest

from farfield import check
from farfield.formula import parse
from farfield.theory.checker.examination import examine
from farfield.theory.checker.sparse import SparseSet, sparse_sets

CASES = [
    ("where(floor(log2(t)) < log2(t), -inf, 0)", 1, "diverges"),
    ("where(floor(log2(t)) < log2(t), -1000000, 0)", 1, "diverges"),
    ("where(floor(log2(t)) < log2(t), -inf, -log(t+1))", 1, "converges"),  # 1/(2**n + 1)
    ("where(mod(log2(t), 1) <= 0, 0, -inf)", 1, "diverges"),
    ("where(mod(log2(t), 1) < 0.001, 0, -inf)", 1, "diverges"),
    ("where(0 < mod(log2(t), 1), -inf, -log(t))", 1, "converges"),
    ("where(mod(log2(t), 1) > 0, -inf, -log(log(t+2)))", 1, "diverges"),  # 1/n
    ("where(floor(log2(t+1)) < log2(t+1), -inf, -2*log(log(t+3)))", 0, "converges"),  # 1/n**2
    ("where(2**floor(log2(t+1)) < t+1, -2*log(t+1), -2*log(log(t+3)))", 0, "converges"),
    ("where(2**floor(log2(t+1)) < t+1, -log(t+1), -inf)", 0, "diverges"),  # all other distances
    ("where(floor(sqrt(t))**2 < t, -inf, -log(t+1)/2)", 0, "diverges"),  # 1/n
    ("where(floor(sqrt(t))**2 < t, -inf, -0.51*log(t+1))", 0, "converges"),
    ("where(floor(sqrt(t)) >= sqrt(t), -inf, -log(t+1))", 0, "diverges"),
    ("where(floor(t**(1/3)) >= t**(1/3), -log(t+1)/2, -t)", 0, "converges"),  # n**-1.5
    ("weight: where(floor(log10(t)) < log10(t), 1/t**2, 1/log(t+1)**2)", 1, "converges"),
    ("where(floor(log2(t)) <= log2(t), -inf, 0)", 1, "undecided"),  # always so: 0 weights, no test for the set
    ("where(floor(log2(t)) < log2(t+1), -inf, 0)", 1, "undecided"),
]


@pytest.mark.parametrize(("text", "start", "verdict"), CASES)
def test_the_verdict(text, start, verdict):
    result = check(text, start=start)
    assert result.verdict == verdict
    assert (result.certificate is not None and bool(result.proven)) == (verdict != "undecided")


@pytest.mark.parametrize("text", ["floor(log2(t))", "floor(log(t+7)/log(3))", "floor(sqrt(t+5))", "floor(t**(1/5))"])
def test_the_set_is_where_the_argument_is_whole(text):
    (one,) = sparse_sets(parse(text).primitive)
    distances = {(one.base**n if one.base else n**one.power) - one.shift for n in range(200)}
    m, r = one.outside
    assert not distances & set(range(m + r, 10**4, m))
    for start in (0, 1, 2, 9, 100, 3**40):
        n = one.first(start)
        at = [(one.base**k if one.base else k**one.power) - one.shift for k in (n, n - 1)]
        assert at[0] >= start
        assert n == 0 or at[1] < start


def claim(kind, exponent, constant="9", depth=0, start="16"):
    return {"claim": kind, "from": start, "ln_constant": constant, "depth": depth, "exponent": exponent}


NOTHING = {"claim": "finite", "from": "0"}


@pytest.mark.parametrize(
    ("text", "verdict", "base", "on", "off"),
    [
        ("where(floor(log2(t)) < log2(t), -log(t), -inf)", "converges", 2, NOTHING, NOTHING),
        ("where(floor(log2(t)) < log2(t), -log(t), -inf)", "converges", 2, NOTHING, claim("upper", "2")),
        ("where(floor(log2(t)) < log2(t), -log(t), -inf)", "converges", 2, NOTHING, None),
        ("where(floor(log2(t)) < log2(t), -inf, 0)", "converges", 2, claim("upper", "2"), NOTHING),
        ("where(floor(log2(t)) < log2(t), -inf, 0)", "converges", 3, NOTHING, NOTHING),
        ("where(floor(log2(t)) < log2(t), -inf, -log(t))", "diverges", 2, claim("lower", "1", "-9"), None),
        ("where(floor(log2(t)) < log2(t), -inf, -log(t))", "diverges", 2, None, claim("lower", "1", "-9")),
        ("where(floor(log2(t)) <= log2(t), -inf, 0)", "diverges", 2, claim("lower", "0", "-9"), None),
        ("where(floor(log2(t)) < log2(t)*1.0001, -inf, 0)", "diverges", 2, claim("lower", "0", "-9"), None),
        ("where(floor(log2(t)) < log2(t) + 1/t, -inf, 0)", "diverges", 2, claim("lower", "0", "-9"), None),
    ],
)
def test_a_false_certificate_is_refused(text, verdict, base, on, off):
    made = {"claim": "sparse", "base": base, "power": 0, "shift": 0, "on": on, "off": off}
    assert not examine(parse(text), verdict, made, start=1)


@pytest.mark.parametrize("numbers", [(1, 0), (0, 1), (0, 0), (2, 2)])
def test_a_set_has_a_base_or_a_power(numbers):
    with pytest.raises(ValueError, match="or the other way round"):
        examine(parse("0"), "diverges", {"claim": "sparse", "base": numbers[0], "power": numbers[1], "shift": 0,
                                         "on": None, "off": None})  # fmt: skip
    assert SparseSet(2, 0, 0).outside == (2, 1)
