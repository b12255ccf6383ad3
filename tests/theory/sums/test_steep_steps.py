"""Steps so steep that all but the first two weights vanish: the sum still has these two."""

import math

import pytest

import farfield as ff
from farfield.formula import parse
from farfield.theory.sums.series import series


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("-floor(t**1000)", 1 + math.exp(-1)),
        ("-floor(t**1000/7)", 2.0),
        ("-floor(exp(t**2))", math.exp(-1) + math.exp(-2)),
        ("-floor(t**40)", 1 + math.exp(-1)),
        ("-floor(2**(t**2)) + 1", 1 + math.exp(-1) + math.exp(-15)),
    ],
)
def test_the_sum_has_its_first_weights(text, total):
    assert float(series(parse(text)).B()) == pytest.approx(total, rel=1e-9)
    assert ff.trf(text, 1e-9) == next(j for j in range(9) if _tail(text, j) < 1e-9 * total)


def _tail(text, j):
    formula = parse(text)
    return sum(math.exp(max(formula.float(t), -800.0)) for t in range(j, 4))
