"""A generator of false certificates: each is false by construction, some only unimaginably far out.

Three kinds. A certificate of the verdict that the series does not have is false whatever it says. For a known scale S
and b(t) = exp(k)/S(t), a bound with another scale or a wrong constant is false, be it at t = exp(exp(30)). And a bound
is false if one of the first distances says so.
"""

import random
from dataclasses import dataclass
from fractions import Fraction

import disguised
import mpmath

from farfield.theory.checker.claims import Claim, PartClaim, SumClaim, read
from farfield.theory.checker.examination import RefusedError, _logic


def claims_in(certificate):
    """The explicit inequalities of a certificate."""
    if isinstance(certificate, Claim):
        yield certificate
        return
    parts = certificate.parts if isinstance(certificate, SumClaim) else ()
    parts = (certificate.part,) if isinstance(certificate, PartClaim) else parts or certificate.classes
    for part in parts:
        yield from claims_in(part) if part is not None else ()


def proves(certificate):
    """The verdict that follows if the claims are true, or None if nothing does."""
    certificate = read(certificate)
    try:
        for claim in claims_in(certificate):
            _logic(claim)
    except RefusedError:
        return None
    return certificate.proves


@dataclass(frozen=True)
class FalseCertificate:
    """A certificate that must not be accepted, and why it is false."""

    text: str
    start: int
    verdict: str
    certificate: dict
    why: str


STARTS = [
    "20",
    "32",
    "64",
    "1024",
    str(2**30),
    "exp(50)",
    "exp(1000)",
    "exp(1000000)",
    "exp(exp(50))",
    "exp(exp(exp(20)))",
]


def claim(kind, ln_constant, depth, exponent, start, **more):
    data = {"claim": kind, "ln_constant": str(ln_constant), "depth": depth, "exponent": str(exponent), "from": start}
    return {**data, **more}


def opposite(seed):
    """A certificate of the wrong verdict about a disguised series."""
    dice = random.Random(seed)
    series = disguised.series(seed)
    size = dice.choice([1, 30, 1000, 10**6, 10**30])
    start, depth = dice.choice(STARTS), dice.choice([0, 0, 0, 1, 1, 2])
    if series.verdict == "diverges":
        kind = dice.choice(["upper"] * 9 + ["finite"])
        if kind == "finite":
            return FalseCertificate(
                series.text, series.start, "converges", {"claim": "finite", "from": start}, "it diverges"
            )
        s = 1 + dice.choice([Fraction(1, 10**30), Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2), 1])
        made = claim("upper", size, depth, s, start)
        return FalseCertificate(series.text, series.start, "converges", made, "it diverges")
    s = dice.choice([1, 1, 1, Fraction(999, 1000), Fraction(1, 2), 0, -1])
    if s >= 0 and dice.random() < 0.15:
        made = claim("mean", -size, depth, s, start, factor="cos(t)**2", mean="1/2")
    else:
        made = claim("lower", -size, depth, s, start)
    return FalseCertificate(series.text, series.start, "diverges", made, "it converges")


def known(seed):
    """A bound with a wrong scale or constant for a series whose scale and constant are known."""
    dice = random.Random(seed)
    hide = disguised.Disguise(seed)
    depth, s = (
        dice.choice([0, 0, 1, 1, 2]),
        dice.choice([1, 1, 1, Fraction(1, 2), 2, Fraction(3, 2), Fraction(101, 100)]),
    )
    k = Fraction(dice.randint(-300, 300), 100)
    levels = ["log(t)", "log(log(t))", "log(log(log(t)))"]
    parts = [hide.number(k), *[f"- {x}" for x in levels[:depth]], f"- {hide.number(s)}*{levels[depth]}"]
    text = " ".join(parts)
    upper = s > 1
    tiny = Fraction(1, 10 ** dice.choice([2, 6, 9, 20, 40]))
    way = dice.choice(["constant", "exponent", "exponent", "depth"])
    start = dice.choice(STARTS)
    if way == "constant":
        made = claim("upper" if upper else "lower", k - tiny if upper else k + tiny, depth, s, start)
    elif way == "exponent":
        far = dice.choice([1, 30, 10**6])
        other = s + tiny if upper else s - tiny
        made = (
            claim("upper", k + far, depth, other, start) if upper else claim("lower", k - far, depth, s - tiny, start)
        )
    elif upper:
        return known(seed + 10**9) if depth == 0 else _shallower(text, depth, k, start, dice, upper=True)
    else:
        return _shallower(text, depth, k, start, dice, upper=False)
    verdict = "converges" if upper else "diverges"
    return FalseCertificate(text, 20, verdict, made, f"{way}: the series is exp({k}) over the scale {depth}, {s}")


def _shallower(text, depth, k, start, dice, *, upper):
    """A bound with another number of logarithms: too small above, too large below."""
    if upper:  # 1/(t ln t^s) against c/t^(1 + tiny)
        made = claim("upper", k + dice.choice([1, 30]), depth - 1, 1 + Fraction(1, 10 ** dice.choice([1, 9])), start)
        return FalseCertificate(text, 20, "converges", made, "depth: with fewer logarithms it falls faster")
    made = claim(
        "lower", k - dice.choice([1, 30]), max(depth - 1, 0), Fraction(99, 100) if depth else Fraction(0), start
    )
    return FalseCertificate(text, 20, "diverges", made, "depth: with fewer logarithms it falls more slowly")


def early(seed):
    """A true bound that fails at one of the distances before its true start."""
    dice = random.Random(seed)
    a, s = dice.randint(2, 40), Fraction(dice.randint(11, 30), 10)
    text = f"-{disguised.rational(s)}*log(t+1) + {a}*exp(-t/{dice.randint(2, 60)})"
    start = dice.randint(1, 5)
    with mpmath.workdps(40):
        rate = int(text.rsplit("/", 1)[1][:-1])
        worst = max(
            -s * mpmath.log(t + 1) + a * mpmath.exp(mpmath.mpf(-t) / rate) + s * mpmath.log(t) for t in range(start, 60)
        )
        constant = Fraction(int(mpmath.floor(worst * 1000)) - dice.randint(1, 200), 1000)
    return FalseCertificate(
        text, start, "converges", claim("upper", constant, 0, s, str(start)), "a first distance is above it"
    )


def certificate(seed):
    """The false certificate of a seed."""
    return (opposite, known, opposite, early, known)[seed % 5](seed)
