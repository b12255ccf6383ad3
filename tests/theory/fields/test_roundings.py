"""Numbers on the safe side: each bound holds exactly, at values made so that one rounding the other way would show."""

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb, ctx, fmpq

from farfield.formula import parse
from farfield.theory.fields.comparison import compare
from farfield.theory.fields.design import design
from farfield.theory.fields.layers import model_reach
from farfield.theory.fields.receptive import leak, smallest
from farfield.theory.fields.windows import log_sums
from farfield.theory.sums.series import series


# ---------------------------------------------------------------------------------------------------- leak
@pytest.mark.parametrize("train", [1, 3, 7, 10, 49, 512])
def test_the_enclosure_of_a_leak_holds_the_exact_share(train):
    """1 - m/n without a bias; the doubles around it are no two steps apart, and one step less would miss it."""
    for test in range(train, train + 60):
        result = leak("none", train, test)
        exact = 1 - Fraction(train, test)
        assert Fraction(result.low) <= exact <= Fraction(result.high)
        assert 0 <= result.low <= result <= result.high <= 1
        assert result.high <= math.nextafter(math.nextafter(float(exact), 1), 1)
        assert result.low >= math.nextafter(math.nextafter(float(exact), 0), 0)


def test_the_enclosure_over_heads_holds_the_exact_mean():
    result = leak("alibi", 3, 40, heads=4, parameters={"k": ["1/2", "1/3", "1/7", "1/50"]})
    with ctx.workprec(300):
        shares = []
        for n in (2, 3, 7, 50):
            q = (-arb(1) / n).exp()
            shares.append((q**3 - q**40) / (1 - q**40))
        exact = sum(shares, arb(0)) / 4
        assert arb(result.low) < exact < arb(result.high)
        for head, share in zip(result.heads, shares, strict=True):
            assert arb(head.low) < share < arb(head.high)
            assert head.high - head.low < 1e-15


# ---------------------------------------------------------------------------------------------------- layers
@pytest.mark.parametrize(("width", "layers"), [(3, 5), (7, 3), (7, 1)])
@pytest.mark.parametrize("bits", [30, 70, 100])
def test_the_reach_of_a_model_is_decided_next_to_a_tie(width, layers, bits):
    """Windows of equal weights: P(T >= n) is a fraction, and epsilon lies just above it, or just below."""
    sums = [sum(row) for row in product(range(width), repeat=layers)]
    for n in (layers * (width - 1), layers * (width - 1) - 2, layers + 1):
        share = Fraction(sum(t >= n for t in sums), len(sums))
        above, below = share + Fraction(1, 2**bits), share - Fraction(1, 2**bits)
        window = f"where(t < {width}, 0, -inf)"
        assert model_reach(window, above, layers).tokens == n
        assert model_reach(window, below, layers).tokens == n + 1


# ---------------------------------------------------------------------------------------------------- windows
@pytest.mark.parametrize("start", [513, 700, 880])
@pytest.mark.parametrize("more", ["0.4999", "0.5001"])
def test_the_sums_hold_for_a_bias_that_is_rounded_to_float32(start, more):
    """Near 900 a float32 is off by up to 2**-15; the head may lose that, and the tail may gain it."""
    bias = start + Fraction(more) / 2**14
    size = Fraction(start) if more < "0.5" else start + Fraction(1, 2**14)  # what float32 makes of it
    text = f"where(t < 8, -{bias.numerator}/{bias.denominator}, -inf)"
    result = log_sums(series(text), 4)
    with ctx.workprec(200):
        rounded = arb(4).log() - arb(fmpq(size.numerator, size.denominator))
        assert arb(result.head) <= rounded <= arb(result.tail)
        assert rounded - arb(result.head) < 2e-4
        assert arb(result.tail) - rounded < 2e-4


# ---------------------------------------------------------------------------------------------------- comparison
FAR = [  # the order in the limit begins where the shares are far below 1e-12
    ("weight: exp(-t/10)", "weight: exp(-t) + 1e-20*exp(-t/20)"),
    ("weight: exp(-t) + 1e-20*exp(-t/20)", "weight: exp(-t/10)"),
]


@pytest.mark.parametrize(("a", "b"), FAR)
def test_the_last_crossing_is_that_of_the_limit(a, b):
    result = compare(a, b)
    last = result.crossings[-1]
    larger = "b" if (a, b) == FAR[0] else "a"
    assert (result.smaller, last.larger) == ({"a": "b", "b": "a"}[larger], larger)
    assert last.last is None
    assert last.epsilon_low == 0.0
    above, below = (series(x) for x in ((b, a) if larger == "b" else (a, b)))
    with ctx.workprec(200):
        for j, sign in ((last.first, 1), (last.first - 1, -1), (last.first + 50, 1)):
            gap = above.tail(j) / above.B() - below.tail(j) / below.B()
            assert gap > 0 if sign > 0 else gap < 0
    assert last.epsilon_high < 1e-12
    for crossing in result.crossings[:-1]:
        assert crossing.last is not None
        assert crossing.epsilon_low > 0


def test_what_ends_before_the_limit_is_not_called_the_last_crossing():
    """In the limit the second reaches further, from about 1e60 tokens on; nobody looked that far."""
    result = compare("weight: (t+1)**(-2)", "weight: where(t < 5, 1, 1e-30*(t+1)**(-3/2))")
    assert result.smaller is None
    assert [crossing.larger for crossing in result.crossings] == ["b", "a"]
    assert result.crossings[-1].last is not None
    assert result.crossings[-1].epsilon_low > 0


# ---------------------------------------------------------------------------------------------------- design
@pytest.mark.parametrize("text", ["where(t < 3*w, 0, -inf)", "-t*floor(w)/8"])
def test_a_design_has_the_reach_that_was_asked_for_or_is_refused(text):
    met = set()
    for n in range(1, 14):
        try:
            result = design(text, n, "0.01")
        except ValueError:
            continue
        met.add(n)
        assert result.tokens == n
        assert smallest(series(parse(text).bind({"w": result.value})), Fraction(1, 100)) == n
    assert 0 < len(met) < 13
