"""A generator of formulas: sums and products of logarithms, powers and exponentials of affine arguments.

A bias is a sum of products; a weight is a product, or a sum of products. Constants are rational, some of them negative.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction

import farfield as ff
from farfield.formula import FormulaError

EXPONENTS = ["2", "3", "1/2", "3/2", "-1", "-2", "-1/2", "-3/2", "1/3", "-5/4"]
CONSTANTS = ["1", "2", "3", "1/2", "3/2", "1/16", "5/4", "1/100", "7/3", "10"]
SLOPES = ["1", "1", "1", "2", "1/2", "1/16", "3", "1/3", "7/5"]
OFFSETS = ["1", "2", "3", "5/2", "4", "20", "3/2", "7"]


def affine(rng: random.Random) -> str:
    """a*t + b, positive at every distance; log of it is positive too unless b = 1."""
    slope, offset = rng.choice(SLOPES), rng.choice(OFFSETS)
    return f"t + {offset}" if slope == "1" else f"{slope}*t + {offset}"


def factor(rng: random.Random) -> str:
    """A logarithm, a logarithm of one, a power or an exponential, with an exponent or without."""
    inner = affine(rng)
    kind = rng.choice(["log", "log", "log", "power", "power", "exp", "loglog", "falling"])
    if kind == "exp":
        return f"exp(-({inner}))"
    if kind == "falling":  # an affine argument that becomes negative: only whole exponents
        return f"({rng.choice(OFFSETS)} - {rng.choice(SLOPES)}*t)**2"
    base = {"log": f"log({inner})", "loglog": f"log(log({inner}))", "power": f"({inner})"}[kind]
    return base if rng.random() < 0.5 else f"{base}**({rng.choice(EXPONENTS)})"


def difference(rng: random.Random) -> str:
    """Two equal logarithms or powers at shifted arguments, whose leading terms cancel."""
    slope, (low, high) = rng.choice(SLOPES), rng.sample(OFFSETS, 2)
    head, tail = rng.choice([("log(", ")"), ("log(", ")**2"), ("(", ")**(1/2)"), ("(", ")**(3/2)"), ("(", ")**(-1)")])
    return f"({head}{slope}*t + {low}{tail} - {head}{slope}*t + {high}{tail})"


def product(rng: random.Random, most: int) -> str:
    """A constant and up to `most` factors, each above or below the line."""
    text = rng.choice(CONSTANTS)
    for _ in range(rng.randint(1, most)):
        text += rng.choice("**/") + (difference if rng.random() < 0.12 else factor)(rng)
    return text


def ladder(rng: random.Random) -> str:
    """A bias or a weight near the border of Bertrand's rungs 0, 1 and 2, where the last exponent decides."""
    inner, rung = rng.sample([affine(rng) for _ in range(4)], 4), rng.randint(0, 2)
    last = rng.choice(["1", "2", "1/2", "3/2", "101/100", "99/100", "-1/2", "4/3"])
    if rng.random() < 0.5:
        logs = [f"{'log(' * (i + 1)}{inner[i]}{')' * (i + 1)}" for i in range(rung + 1)]
        extra = rng.choice(
            ["", f" - {rng.choice(CONSTANTS)}/({inner[3]})", f" + {rng.choice(CONSTANTS)}/log({inner[3]})"]
        )
        return "".join(f"-{log}" for log in logs[:-1]) + f"-{last}*{logs[-1]}{extra}"
    logs = [f"{'log(' * i}({inner[i]}){')' * i}" for i in range(rung + 1)]
    extra = rng.choice(["", f" + {rng.choice(CONSTANTS)}*exp(-({inner[3]}))", f" - 1/100/({inner[3]})**3"])
    return f"weight: {rng.choice(CONSTANTS)}/({'*'.join([*logs[:-1], f'{logs[-1]}**({last})'])}){extra}"


def formula(rng: random.Random) -> str:
    """A bias or a weight; one in three is near a border."""
    if rng.random() < 1 / 3:
        return ladder(rng)
    if rng.random() < 0.5:
        terms = [rng.choice(["-", "-", "-", "+"]) + product(rng, 2) for _ in range(rng.randint(1, 3))]
        return " ".join(terms).removeprefix("+")
    terms = [product(rng, 3) for _ in range(rng.choice([1, 1, 2, 3]))]
    signs = [rng.choice([" + ", " + ", " - "]) for _ in terms[1:]]
    return "weight: " + terms[0] + "".join(sign + term for sign, term in zip(signs, terms[1:], strict=True))


def summand(slope: str, offset: str, shape: int) -> str:
    """One function of one affine argument, of a shape that can be repeated at another offset."""
    x = f"({slope}*t + {offset})"
    return [
        f"log{x}", f"log{x}**2", f"{x}**(1/2)", f"{x}**(2/3)", f"{x}**(-1/2)", f"{x}**(3/2)", f"{x}*log{x}",
        f"{x}**(1/2)*log{x}", f"log{x}*log(3*t + 2)", f"1/{x}", f"log{x}/{x}", f"exp(-{x}/50)*log{x}", f"log{x}**3",
        f"{x}**(1/3)*(5*t + 1)**(2/3)", f"log(log({x} + 2))", f"log{x}**(1/2)", f"1/log({x} + 2)",
    ][shape]  # fmt: skip


def vanishing(rng: random.Random) -> str:
    """A sum whose leading terms, with logarithms and roots of its slopes in them, cancel exactly."""
    a, b, c, d = rng.sample([*OFFSETS, "11/3", "6", "1/5"], 4)
    kind = rng.randrange(5)
    if kind <= 1:  # differences of the first and of the second order
        shape, slope = rng.randrange(17), rng.choice([*SLOPES, "12", "10/9"])
        low, high, third = sorted((a, b, c), key=Fraction, reverse=rng.random() < 0.5)
        if kind == 0:
            return f"({summand(slope, high, shape)} - {summand(slope, low, shape)})"
        return f"(2*{summand(slope, low, shape)} - {summand(slope, high, shape)} - {summand(slope, third, shape)})"
    p, q = rng.sample(["2", "3", "5", "1/2", "3/4", "4", "6"], 2)
    both = Fraction(p) * Fraction(q)
    if kind == 2:
        return f"(log({both}*t + {a}) - log({p}*t + {b}) - log({q}*t + {c}) + log(t + {d}))"
    if kind == 3:
        power = rng.choice(["1/2", "1/3", "3/4", "3/2"])
        left = f"({both}*t + {a})**({power})*(t + {b})**({power})"
        return f"({left} - ({p}*t + {c})**({power})*({q}*t + {d})**({power}))"
    power = rng.choice(["2", "3", "1/2", "3/2"])
    return f"(({p}**2*t + {a})**({power}) - {p}**(2*({power}))*(t + {b})**({power}))"


def cancelling(rng: random.Random) -> str:
    """A weight or a bias in which such a sum decides."""
    core = "*".join(vanishing(rng) for _ in range(rng.choice([1, 1, 1, 2])))
    sign = rng.choice(["", "-"])
    rest = "".join(rng.choice("*/") + factor(rng) for _ in range(rng.choice([0, 0, 1, 1, 2])))
    if rng.random() < 0.35:
        return f"{sign}{rng.choice(CONSTANTS)}*{core}{rest} - {rng.choice(CONSTANTS)}*log({affine(rng)})"
    extra = rng.choice(["", "", f" + {product(rng, 2)}"])
    return f"weight: {sign}{rng.choice(CONSTANTS)}*{core}{rest}{extra}"


def verdicts(seed: int, make: Callable[[random.Random], str] = formula) -> Iterator[ff.Verdict]:
    """Verdicts on formulas of the generator, without end: those with a certificate on rung 0, 1 or 2."""
    rng = random.Random(seed)
    while True:
        text, start = make(rng), rng.choice([0, 0, 0, 1, 3, 20])
        try:
            verdict = ff.check(text, start=start)
        except FormulaError:  # undefined, or a negative weight, at some distance
            continue
        if verdict.certificate is not None and verdict.certificate.json().get("depth", 0) <= 2:
            yield verdict
