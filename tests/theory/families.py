"""A generator of families: formulas with open parameters whose condition is known at every point by construction.

Every family is made of -ln b(t) = sum of c * t**e * ln(t)**f * ln ln(t)**h, where c, e, f and h are expressions in the
parameters; at a point they are numbers, and the largest term decides, from ln(t) on in comparison with 1 (Bertrand).
max of two such biases, or a sum of two weights, converges if both do; min converges if one does.
"""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import mpmath

GRID = [Fraction(n, 2) for n in (-4, -2, -1, 0, 1, 2, 3, 4)]
LINE = [Fraction(n, 12) for n in (-36, -24, -18, -12, -6, -4, 0, 3, 4, 6, 8, 9, 12, 15, 16, 18, 24, 30, 36, 48, 60)]
TINY = mpmath.mpf(10) ** -40
RUNGS = [(0, 1, 0), (0, 0, 1)]  # ln t, ln ln t


@dataclass(frozen=True)
class Family:
    """A formula, and whether it converges at a point: True, False, or None where it has no value."""

    text: str
    names: tuple[str, ...]
    converges: Callable[[dict[str, Fraction]], bool | None]
    start: int = 3

    def points(self):
        """Every point of the grid: 21 on a line, 64 in a plane, borders such as 0, 1 and a = b among them."""
        for values in itertools.product(LINE if len(self.names) == 1 else GRID, repeat=len(self.names)):
            yield dict(zip(self.names, values, strict=True))


# ---------------------------------------------------------------------------------------------------- the truth
def sign(value):
    return 0 if abs(value) < TINY else 1 if value > 0 else -1


def order(a, b):
    """Which of two tuples of exponents is larger: 1, 0 or -1."""
    return next((s for x, y in zip(a, b, strict=True) if (s := sign(mpmath.mpf(x) - y))), 0)


def series_converges(terms):
    """Whether the series of -ln b = sum of c * t**e * ln(t)**f * lnln(t)**h converges."""
    merged = []
    for c, powers in terms:
        for i, (d, known) in enumerate(merged):
            if order(powers, known) == 0:
                merged[i] = (c + d, known)
                break
        else:
            merged.append((c, powers))
    merged = [(c, powers) for c, powers in merged if sign(c)]
    for rung in RUNGS:
        above = [(c, powers) for c, powers in merged if order(powers, rung) > 0]
        if above:
            largest = above[0]
            for term in above[1:]:
                if order(term[1], largest[1]) > 0:
                    largest = term
            return largest[0] > 0
        at = [(c, powers) for c, powers in merged if order(powers, rung) == 0]
        size = sign((at[0][0] if at else mpmath.mpf(0)) - 1)
        if size:
            return size > 0
        merged = [(c, powers) for c, powers in merged if order(powers, rung) < 0]
    return False


def evaluate(text, point):
    """The value of an expression at a point; ValueError where it is not real."""

    def real(x):
        x = mpmath.mpmathify(x)
        if isinstance(x, mpmath.mpc) or not mpmath.isfinite(x):
            raise ValueError("not a real number")
        return x

    def root(x):
        if x < -TINY:
            raise ValueError("a root of a negative number")
        return mpmath.sqrt(max(x, 0))

    def log(x):
        if x <= TINY:
            raise ValueError("a logarithm of what is not positive")
        return mpmath.log(x)

    def power(x, y):
        whole = abs(y - mpmath.nint(y)) < TINY
        if abs(x) < TINY and y <= TINY and not whole:
            raise ValueError("a power of 0")
        if abs(x) < TINY and y < -TINY:
            raise ZeroDivisionError
        if x < -TINY and not whole:
            raise ValueError("a real power of a negative number")
        return x ** (int(mpmath.nint(y)) if whole else y)

    names = {name: mpmath.mpf(v.numerator) / v.denominator for name, v in point.items()}
    known = {
        "sqrt": root,
        "log": log,
        "exp": mpmath.exp,
        "abs": abs,
        "floor": mpmath.floor,
        "max": max,
        "min": min,
        "mpf": mpmath.mpf,
    }
    return real(eval(text, {"__builtins__": {}}, {**known, **names, "power": power, "pi": mpmath.pi}))


# ---------------------------------------------------------------------------------------------------- drawing
PLAIN = """a|a|a|(a-1)|(a+b)|a*b|(a-b)|2*a|-a|(a+1)*b|abs(a)|abs(a-1)|max(a, b)|min(a, 2)|exp(a)|exp(a*b)|floor(a)
(a*a-1)|sqrt(a*b)|sqrt(a)|log(a)|log(a*b)|1/a|a/b|sqrt(a*a)|sqrt(abs(a))|(exp(a)-1)|(a-b)*(a+b)|sqrt(2)*a|a*sqrt(b*b)
max(a, 0)|abs(a*b)|1|2|0|(a+1)*(a-1)|sqrt(a)*sqrt(b)|log(a)+log(b)|a*a*b|abs(a)-a|sqrt(sqrt(a*a)*b)|sqrt((a-1)*(a+b))
floor(a)*b|sqrt(abs(a)*floor(b))|exp(a)*b|1/(a*b)|(a-1)/(b-1)|max(a, b)-min(a, b)|exp(a)-exp(b)|log(abs(a))|floor(a+1/2)
a*b-1
sqrt(a*a+b*b)|abs(a-b)|min(a, -b)|(a+b)*(a+b)|1/(1+a*a)|a/(1+abs(b))|(1-sqrt(2))*a|a*pi|sqrt(3)-a|floor(a)-a"""
POWERS = [
    ("a**2", "power(a, 2)"),
    ("a**3", "power(a, 3)"),
    ("a**(-2)", "power(a, -2)"),
    ("2**a", "power(2, a)"),
    ("(a*b)**2", "power(a*b, 2)"),
    ("sqrt(a**(-2))", "sqrt(power(a, -2))"),
    ("abs(a)**b", "power(abs(a), b)"),
    ("(a**2)**(1/2)", "power(power(a, 2), mpf(1)/2)"),
    ("(1/2)**a", "power(mpf(1)/2, a)"),
    ("(-1)**floor(a)", "power(-1, floor(a))"),
    ("(a*b)**(1/2)", "power(a*b, mpf(1)/2)"),
    ("(a*a)**(-1/2)", "power(a*a, -mpf(1)/2)"),
]
EXPONENTS = [
    "a",
    "a",
    "b",
    "exp(a)",
    "a*b",
    "1/a",
    "sqrt(a)",
    "a+b",
    "abs(a)",
    "a*a",
    "floor(a)",
    "max(a, 1)",
    "a-b",
    "-a",
    "1+a",
    "2*a",
]


def coefficient(dice):
    """(as the language spells it, as `evaluate` reads it), in the parameters a and b."""
    plain = PLAIN.replace("\n", "|").split("|")
    return dice.choice([*((p, p) for p in plain), *POWERS])


def term(dice):
    """(text, reading of c, readings of the exponents): one term of -ln b."""
    spelt, read = coefficient(dice)
    way = dice.randrange(10)
    if way < 6:
        function, powers = dice.choice(
            [
                ("t**2", "200"),
                ("t", "100"),
                ("sqrt(t)", "h00"),
                ("log(t+1)**2", "020"),
                ("log(t+1)", "010"),
                ("log(t+1)", "010"),
                ("log(t+1)", "010"),
                ("log(log(t+3))", "001"),
            ]
        )
        return f"({spelt})*{function}", read, [p if p != "h" else "mpf(1)/2" for p in powers]
    e = dice.choice(EXPONENTS)
    base, powers = dice.choice(
        [
            ("t", [e, "0", "0"]),
            ("log(t+1)", ["0", e, "0"]),
            ("log(t+1)", ["0", e, "0"]),
            ("log(log(t+3))", ["0", "0", e]),
        ]
    )
    return f"({spelt})*{base}**({e})", read, powers


def bias(dice):
    """(text, truth) of one bias."""
    terms = [term(dice) for _ in range(dice.choice([1, 1, 2, 2, 3]))]
    text = " ".join(f"- {t}" for t, _, _ in terms)

    def converges(point):
        with mpmath.workdps(60):
            try:
                read = [(evaluate(c, point), tuple(evaluate(p, point) for p in powers)) for _, c, powers in terms]
            except (ValueError, ZeroDivisionError):
                return None
            return series_converges(read)

    return text, converges


def family(seed):
    """The family of a seed."""
    dice = random.Random(seed)
    text, converges = bias(dice)
    way = dice.randrange(10)
    if way >= 7:
        other, also = bias(dice)
        first = converges

        def converges(point, most=way != 9):
            both = first(point), also(point)
            return None if None in both else all(both) if most else any(both)

        text = {7: f"max({text}, {other})", 8: f"weight: exp({text}) + exp({other})", 9: f"min({text}, {other})"}[way]
    elif way == 6:
        text += dice.choice([" + sin(t)", " + 3", " + 1/(t+1)", " - cos(t)/2"])
    names = tuple(n for n in "ab" if any(n in word for word in words(text)))
    return Family(text, names, converges) if names else family(seed + 10**9)


def words(text):
    """The names of a text that are no functions."""
    word = ""
    for c in text + " ":
        if c.isalpha():
            word += c
        else:
            if len(word) == 1:
                yield word
            word = ""
