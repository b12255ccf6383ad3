"""Series made of atan, erf and gamma whose verdict is known by construction, and false certificates about them."""

import random
from fractions import Fraction

import pytest

from farfield import check
from farfield.formula import parse
from farfield.theory.checker.examination import examine

START = 20
ONES = ["(4*atan(1)/pi)", "(gamma(1/2)**2/pi)", "(gamma(3)/2)", "(1 + erf(0))", "(3*atan(sqrt(3))/pi)", "gamma(2)", "1",
        "(6*atan(1/sqrt(3))/pi)", "(4*gamma(5/2)/(3*gamma(1/2)))", "(atan(-2) + atan(2) + 1)"]  # fmt: skip
LOGARITHMS = [  # each is log(t) + O(1)
    "(log(gamma(t+{a}+1)) - log(gamma(t+{a})))", "log(t)*2*atan({a}*t+{b})/pi", "log(t)*erf(t/{a})",
    "log(t)/gamma(2+exp(-t))", "-log(atan({a}/t))", "-log(erf(1/(t+{a})))", "-log(pi/2 - atan(t-{b}))",
    "log(gamma({a}/t))", "log(t*(2+erf({a}*sin(t))))", "log(t+atan(t))", "(log(t)+atan(t*sin({a}*t)))",
    "(log(t)+erf(cos(t)))", "(log(t)+gamma(2+sin({a}*t)))", "-log(1-erf(sqrt(log(t))))", "log(floor(t/{a})+gamma({a}))",
    "(log(gamma(t+{a}))/(t+{b}))", "log(t)*erf({a}*t)*2*atan(t)/pi",
]  # fmt: skip
LONG = {"-log(1-erf(sqrt(log(t))))": "log(log(t))/2"}  # what is left of it is not bounded


def series(seed):
    """(bias as text, whether it converges) of one seed."""
    dice = random.Random(seed)
    a, b = dice.randint(1, 7), dice.randint(0, 3)
    s = Fraction(dice.choice(["1", "1", "1", "2", "1/2", "101/100", "99/100", "3/2"]))
    first = dice.choice(LOGARITHMS)
    log = first.format(a=a, b=b)
    if first in LONG:
        log = f"({log} - {LONG[first]})"
    deep = dice.random() < 0.3 and "log(gamma(t+{a}))/" not in first
    inner = f"log({log}+2)" if dice.random() < 0.5 else f"log(log(t))*{dice.choice(ONES)}"
    text = f"-({log})*{dice.choice(ONES)} - ({s})*{inner}" if deep else f"-({s})*{dice.choice(ONES)}*({log})"
    return text, s > 1


def judged(seeds):
    wrong, undecided = [], []
    for seed in seeds:
        text, converges = series(seed)
        said = check(text, start=START).verdict
        if said != ("converges" if converges else "diverges"):
            (undecided if said == "undecided" else wrong).append((seed, text, said))
    return wrong, undecided


@pytest.mark.parametrize("batch", range(2))
def test_none_is_judged_wrong(batch):
    wrong, undecided = judged(range(batch * 40, batch * 40 + 40))
    assert wrong == []
    assert len(undecided) <= 4, undecided


@pytest.mark.long
@pytest.mark.parametrize("batch", range(20))
def test_none_of_a_thousand_is_judged_wrong(batch):
    wrong, undecided = judged(range(1000 + batch * 50, 1050 + batch * 50))
    assert wrong == []
    assert len(undecided) <= 5, undecided


def test_no_certificate_of_the_other_verdict_is_accepted():
    for seed in range(25):
        dice = random.Random(seed)
        text, converges = series(seed)
        size, start = dice.choice([1, 30, 10**6]), dice.choice(["20", "1024", str(2**40), "exp(1000)", "exp(exp(20))"])
        verdict, claim = ("diverges", "lower") if converges else ("converges", "upper")
        exponent = dice.choice(["1", "1/2", "0"] if converges else ["2", "101/100", "1000001/1000000"])
        claimed = {"claim": claim, "ln_constant": str(-size if converges else size), "depth": dice.choice([0, 0, 1]),
                   "exponent": exponent, "from": start}  # fmt: skip
        assert not examine(parse(text), verdict, claimed, start=START), (seed, text, claimed)
