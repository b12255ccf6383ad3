"""What a certificate says: its form as a value and as JSON, and what it would prove.

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
    "sparse"   with t = base ** n - shift, or n ** power - shift where the base is 0: `on` is about the weights there,
               `off` about all others; both converge, or one diverges (`off` along one residue class: sparse.py)

Numbers are exact texts: decimals or quotients p/q; `from` is an integer or exp(...) of one, nested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from farfield.formula import Formula, FormulaError, parse
from farfield.theory.checker.sparse import MAX_BASE, MAX_POWER, SparseSet

BOUNDS = ("upper", "lower", "mean")
KINDS = (*BOUNDS, "finite", "sum", "part", "classes", "sparse")
MAX_TEXT = 4000  # characters of one number
MAX_DEPTH = 8
MAX_MODULUS = 64
MAX_NESTING = 4


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


@dataclass(frozen=True)
class SparseClaim:
    """The distances of a sparse set, and all others; None where nothing is claimed."""

    where: SparseSet
    on: Certificate | None
    off: Certificate | None

    @property
    def proves(self) -> str:
        """Divergence if one of the two diverges, otherwise convergence of both."""
        return "diverges" if any(c is not None and c.proves == "diverges" for c in (self.on, self.off)) else "converges"

    def json(self) -> dict[str, Any]:
        """The certificate as plain data."""
        parts = {"on": self.on, "off": self.off}
        numbers = {"base": self.where.base, "power": self.where.power, "shift": self.where.shift}
        return {"claim": "sparse", **numbers, **{k: None if c is None else c.json() for k, c in parts.items()}}


Certificate = Claim | SumClaim | PartClaim | ClassesClaim | SparseClaim


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
    if kind == "sparse":
        base, power = _whole(data, "base", 0, MAX_BASE), _whole(data, "power", 0, MAX_POWER)
        if (base < 2) == (power < 2) or base == 1 or power == 1:
            raise ValueError("a sparse certificate has a base of 2 or more and the power 0, or the other way round")
        parts = [None if (c := _entry(data, key)) is None else read(c, nesting + 1) for key in ("on", "off")]
        return SparseClaim(SparseSet(base, power, _whole(data, "shift", 0, MAX_BASE)), *parts)
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
