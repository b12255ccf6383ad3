"""What a certificate says: its form as a value, as JSON and in words, and what it would prove.

With l_0 = t, l_1 = ln t, l_2 = ln ln t, ... and the scale S(t) = t * ln t * ... * l_(m-1) * l_m ** s, m the `depth` and
s the `exponent`, a claim about the weight b is one of

    "upper"    b(t) <= exp(ln_constant) / S(t)         for all integers t >= from; s > 1
    "lower"    b(t) >= exp(ln_constant) / S(t)         likewise; s <= 1
    "mean"     b(t) >= q(t) exp(ln_constant) / S(t)    likewise; 0 <= s <= 1, the `factor` q is a trigonometric
                                                       polynomial of mean value at least `mean` > 0
    "finite"   b(t) = 0                                for all integers t >= from

and a certificate is a claim, or made of certificates:

    "sum"      b is a sum of weights, and each of them has a certificate of convergence
    "part"     b is a sum of weights, none negative, and the one at `index` has a certificate of divergence
    "classes"  with t = modulus * n + r: all classes have a certificate of convergence, or one of divergence

Numbers are exact texts: decimals or quotients p/q; `from` is an integer or exp(...) of one, nested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from farfield.formula import Formula, FormulaError, Node, number, parse, tree
from farfield.formula.spelling import Sentence, join, say
from farfield.formula.tree import T

BOUNDS = ("upper", "lower", "mean")
KINDS = (*BOUNDS, "finite", "sum", "part", "classes")
MAX_TEXT = 4000  # characters of one number
MAX_DEPTH = 8
MAX_MODULUS = 64
MAX_NESTING = 4
_B, _Q = tree.apply("b"), tree.apply("q")


@dataclass(frozen=True)
class Place:
    """A distance: exp(exp(... whole)), with `nesting` exponentials."""

    whole: int
    nesting: int = 0

    def __str__(self) -> str:
        return "exp(" * self.nesting + str(self.whole) + ")" * self.nesting


@dataclass(frozen=True)
class Claim:
    """One explicit inequality about the weight, for all distances from `start` on."""

    kind: str  # "upper", "lower", "mean", "finite"
    start: Place
    ln_constant: Fraction = Fraction(0)
    depth: int = 0
    exponent: Fraction = Fraction(0)
    factor: Formula | None = None
    mean: Fraction = Fraction(0)

    @property
    def proves(self) -> str:
        """The verdict that follows from the claim."""
        return "converges" if self.kind in ("upper", "finite") else "diverges"

    def json(self) -> dict[str, Any]:
        """The claim as plain data."""
        data: dict[str, Any] = {"claim": self.kind, "from": str(self.start)}
        if self.kind != "finite":
            data |= {"ln_constant": str(self.ln_constant), "depth": self.depth, "exponent": str(self.exponent)}
        if self.factor is not None:
            data |= {"factor": str(self.factor), "mean": str(self.mean)}
        return data


@dataclass(frozen=True)
class SumClaim:
    """Every summand of the weight converges."""

    parts: tuple[Certificate, ...]
    proves = "converges"

    def json(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"claim": "sum", "parts": [p.json() for p in self.parts]}


@dataclass(frozen=True)
class PartClaim:
    """One summand of the weight diverges, and none is negative."""

    index: int
    part: Certificate
    proves = "diverges"

    def json(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"claim": "part", "index": self.index, "part": self.part.json()}


@dataclass(frozen=True)
class ClassesClaim:
    """The distances in residue classes: class r holds t = modulus * n + r; None where nothing is claimed."""

    modulus: int
    classes: tuple[Certificate | None, ...]

    @property
    def proves(self) -> str:
        """Divergence if one class diverges, otherwise convergence of all."""
        return "diverges" if any(c is not None and c.proves == "diverges" for c in self.classes) else "converges"

    def json(self) -> dict[str, Any]:
        """The certificate as plain data."""
        classes = [None if c is None else c.json() for c in self.classes]
        return {"claim": "classes", "modulus": self.modulus, "classes": classes}


Certificate = Claim | SumClaim | PartClaim | ClassesClaim


# ---------------------------------------------------------------------------------------------------- reading
def read(data: Any, nesting: int = 0) -> Certificate:
    """The certificate that plain data stands for; ValueError with one sentence if it is malformed."""
    if isinstance(data, Certificate):
        return data
    if not isinstance(data, Mapping):
        raise ValueError(f"a certificate is a dictionary, not {type(data).__name__}")
    kind = data.get("claim")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"the claim of a certificate is one of {', '.join(KINDS)}, not {str(kind)[:60]!r}")
    if nesting > MAX_NESTING:
        raise ValueError(f"a certificate is nested at most {MAX_NESTING} deep")
    if kind == "sum":
        parts = _list(data, "parts")
        return SumClaim(tuple(read(p, nesting + 1) for p in parts))
    if kind == "part":
        return PartClaim(_whole(data, "index", 0, MAX_MODULUS), read(_entry(data, "part"), nesting + 1))
    if kind == "classes":
        modulus = _whole(data, "modulus", 2, MAX_MODULUS)
        classes = _list(data, "classes")
        if len(classes) != modulus:
            raise ValueError(f"a certificate with the modulus {modulus} has as many classes, not {len(classes)}")
        return ClassesClaim(modulus, tuple(None if c is None else read(c, nesting + 1) for c in classes))
    return _read_claim(kind, data)


def _read_claim(kind: str, data: Mapping[str, Any]) -> Claim:
    start = read_place(_entry(data, "from"))
    if kind == "finite":
        return Claim(kind, start)
    depth = _whole(data, "depth", 0, MAX_DEPTH)
    ln_constant = _rational(_entry(data, "ln_constant"), "ln_constant")
    exponent = _rational(_entry(data, "exponent"), "exponent")
    if kind != "mean":
        return Claim(kind, start, ln_constant, depth, exponent)
    try:
        factor = parse(str(_entry(data, "factor")))
    except FormulaError as error:
        raise ValueError(f"the factor of a certificate is a formula: {error}") from None
    if factor.parameters or factor.weight:
        raise ValueError("the factor of a certificate is a formula in t alone")
    return Claim(kind, start, ln_constant, depth, exponent, factor, _rational(_entry(data, "mean"), "mean"))


def _entry(data: Mapping[str, Any], key: str) -> Any:
    if key not in data:
        raise ValueError(f"a certificate with the claim {data['claim']!r} needs {key!r}")
    return data[key]


def _list(data: Mapping[str, Any], key: str) -> Sequence[Any]:
    value = _entry(data, key)
    if not isinstance(value, (list, tuple)) or not 1 <= len(value) <= MAX_MODULUS:
        raise ValueError(f"{key!r} of a certificate is a list of 1 to {MAX_MODULUS} certificates")
    return value


def _whole(data: Mapping[str, Any], key: str, least: int, most: int) -> int:
    value = _entry(data, key)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{key!r} of a certificate is a whole number from {least} to {most}, not {str(value)[:60]!r}")
    return value


def _rational(value: Any, key: str) -> Fraction:
    text = str(value) if isinstance(value, (str, int, Fraction)) and not isinstance(value, bool) else ""
    if len(text) <= MAX_TEXT and len(text.lower().partition("e")[2]) <= 6:
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):
            pass
    raise ValueError(f"{key!r} of a certificate is a decimal or a quotient p/q as text, not {str(value)[:60]!r}")


def read_place(value: Any) -> Place:
    """The distance that a text such as "512" or "exp(exp(50))" names."""
    text = str(value).replace(" ", "") if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    inner, nesting = text[:MAX_TEXT], 0
    while inner.startswith("exp(") and inner.endswith(")") and nesting < 4:
        inner, nesting = inner[4:-1], nesting + 1
    if not inner.isascii() or not inner.isdigit():
        raise ValueError(f"'from' of a certificate is an integer or exp(...) of one, not {str(value)[:60]!r}")
    return Place(int(inner), nesting)


# ---------------------------------------------------------------------------------------------------- in words
def wording(certificate: Certificate | Any) -> Sentence:
    """The claim, such as "b(t) <= 3.2*t**-1.5 for all t >= 17"; of several claims, each with what it is about."""
    claim = read(certificate)
    if isinstance(claim, Claim):
        return _claim(claim)
    if isinstance(claim, SumClaim):
        parts = [say(f"summand {i + 1}: ", wording(c)) for i, c in enumerate(claim.parts)]
    elif isinstance(claim, PartClaim):
        parts = [say(f"summand {claim.index + 1}: ", wording(claim.part))]
    else:
        classes = [(_residue(claim.modulus, r), c) for r, c in enumerate(claim.classes)]
        parts = [say(residue, ": ", wording(c)) for residue, c in classes if c is not None]
    return join(parts, "; ")


def _residue(modulus: int, r: int) -> Node:
    return tree.relation(T, "=", tree.total([tree.product([number(modulus), tree.name("n")]), number(r)]))


def _claim(claim: Claim) -> Sentence:
    then = say(" for all ", tree.relation(T, ">=", _start(claim.start)))
    if claim.kind == "finite":
        return say(tree.relation(_B, "=", tree.ZERO), then)
    sign = "<=" if claim.kind == "upper" else ">="
    if claim.factor is None:
        return say(tree.relation(_B, sign, _bound(claim, tree.ONE)), then)
    factor = tree.relation(_Q, "=", claim.factor.node)
    bound = tree.relation(_B, sign, _bound(claim, _Q))
    return say(bound, then, ", where ", factor, " has the mean value ", number(claim.mean))


def _start(place: Place) -> Node:
    node = number(place.whole)
    for _ in range(place.nesting):
        node = tree.call("exp", node)
    return node


def _bound(claim: Claim, factor: Node) -> Node:
    constant = _constant(claim.ln_constant, claim.kind == "upper")
    if claim.depth == 0:
        scale = [] if claim.exponent == 0 else [tree.power(T, number(-claim.exponent))]
        return tree.product([factor, constant, *scale])
    levels = [T]
    for _ in range(claim.depth):
        levels.append(tree.call("log", levels[-1]))
    last = [] if claim.exponent == 0 else [tree.power(levels[-1], number(claim.exponent))]
    return tree.quotient(tree.product([factor, constant]), tree.product([*levels[:-1], *last]))


def _constant(logarithm: Fraction, up: bool) -> Node:
    """exp(logarithm) with three digits, rounded up or down; left as exp(...) where it is far from 1."""
    if logarithm == 0:
        return tree.ONE
    if abs(logarithm) > 60:
        tenths = logarithm * 10
        rounded = -((-tenths.numerator) // tenths.denominator) if up else tenths.numerator // tenths.denominator
        return tree.call("exp", number(Fraction(rounded, 10)))
    with ctx.workprec(256):
        value = arb(fmpq(logarithm.numerator, logarithm.denominator)).exp()
        tens = int((value.log() / arb(10).log()).floor().mid().unique_fmpz() or 0) - 2
        scaled = value / arb(10) ** tens
        edge = scaled.upper().ceil() if up else scaled.lower().floor()
        return number(Fraction(int(edge.unique_fmpz() or 0)) * Fraction(10) ** tens)
