"""What a certificate says: its form, and the sentence it stands for.

A certificate is a plain dictionary with one explicit inequality about the weight b(t). With l_0 = t, l_1 = ln t,
l_2 = ln ln t, ... and the scale S(t) = t * ln t * ... * l_(m-1) * l_m ** s, m the `depth`, s the `exponent`, it claims

    "upper"   b(t) <= exp(ln_constant) / S(t)         for all integers t >= from
    "lower"   b(t) >= exp(ln_constant) / S(t)         for all integers t >= from
    "mean"    b(t) >= q(t) exp(ln_constant) / S(t)    likewise, `factor` q >= 0 a trigonometric polynomial of
                                                      mean value at least `mean` > 0
    "finite"  b(t) = 0                                for all integers t >= from

Numbers are exact texts: decimals or quotients p/q; `from` is an integer or exp(...) of one, nested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from farfield.formula import Formula, FormulaError, parse

KINDS = ("upper", "finite", "lower", "mean")
_MAX_TEXT = 4000  # characters of one number
_MAX_DEPTH = 8


@dataclass(frozen=True)
class Claim:
    """A certificate, read and checked for form."""

    kind: str
    start: Fraction | str  # the text inside is "exp(...)" where it is no integer
    ln_constant: Fraction = Fraction(0)
    depth: int = 0
    exponent: Fraction = Fraction(0)
    factor: Formula | None = None
    mean: Fraction = Fraction(0)


def read(certificate: Mapping[str, Any]) -> Claim:
    """The claim of a certificate; ValueError if it is malformed."""
    if not isinstance(certificate, Mapping):
        raise ValueError(f"a certificate is a dictionary, not {type(certificate).__name__}")
    kind = certificate.get("claim")
    if kind not in KINDS:
        raise ValueError(f"the claim of a certificate is one of {', '.join(KINDS)}, not {kind!r}")
    start = read_start(_entry(certificate, "from"))
    if kind == "finite":
        return Claim(kind, start)
    depth = _entry(certificate, "depth")
    if not isinstance(depth, int) or isinstance(depth, bool) or not 0 <= depth <= _MAX_DEPTH:
        raise ValueError(f"the depth of a certificate is a whole number from 0 to {_MAX_DEPTH}, not {depth!r}")
    ln_constant = _rational(_entry(certificate, "ln_constant"), "ln_constant")
    exponent = _rational(_entry(certificate, "exponent"), "exponent")
    if kind != "mean":
        return Claim(kind, start, ln_constant, depth, exponent)
    try:
        factor = parse(str(_entry(certificate, "factor")))
    except FormulaError as error:
        raise ValueError(f"the factor of a certificate is a formula: {error}") from None
    if factor.parameters or factor.weight:
        raise ValueError("the factor of a certificate is a formula in t alone")
    return Claim(kind, start, ln_constant, depth, exponent, factor, _rational(_entry(certificate, "mean"), "mean"))


def _entry(certificate: Mapping[str, Any], key: str) -> Any:
    if key not in certificate:
        raise ValueError(f"a certificate with the claim {certificate['claim']!r} needs {key!r}")
    return certificate[key]


def _rational(value: Any, key: str) -> Fraction:
    text = str(value) if isinstance(value, (str, int, Fraction)) and not isinstance(value, bool) else ""
    if len(text) <= _MAX_TEXT and len(text.lower().partition("e")[2]) <= 6:
        try:
            return Fraction(text)
        except (ValueError, ZeroDivisionError):
            pass
    raise ValueError(f"{key!r} of a certificate is a decimal or a quotient p/q as text, not {str(value)[:60]!r}")


def read_start(value: Any) -> Fraction | str:
    text = str(value).replace(" ", "") if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    inner, nesting = text[:_MAX_TEXT], 0
    while inner.startswith("exp(") and inner.endswith(")") and nesting < 4:
        inner, nesting = inner[4:-1], nesting + 1
    if not inner.isascii() or not inner.isdigit():
        raise ValueError(f"'from' of a certificate is an integer or exp(...) of one, not {str(value)[:60]!r}")
    return text if nesting else Fraction(inner)


def ball(value: Fraction) -> arb:
    """A ball around a rational number."""
    return arb(fmpq(value.numerator, value.denominator))


# ---------------------------------------------------------------------------------------------------- the sentence
def statement(certificate: Mapping[str, Any], *, latex: bool = False) -> str:
    """The claim as a sentence, such as "b(t) <= 3.2 * t^-1.5 for all t >= 17"; constants rounded to the safe side."""
    claim = read(certificate)
    start = str(claim.start)
    if latex:
        start = start.replace("exp", r"\exp")
    then = rf"\quad\text{{for all }} t \ge {start}" if latex else f" for all t >= {start}"
    if claim.kind == "finite":
        return "b(t) = 0" + then
    sign = (r" \le " if latex else " <= ") if claim.kind == "upper" else (r" \ge " if latex else " >= ")
    bound = _bound_text(claim, latex)
    if claim.factor is None:
        return f"b(t){sign}{bound}{then}"
    if latex:
        return (
            rf"b(t) \ge q(t) \cdot {bound}{then},\quad q(t) = {claim.factor.latex()} \ge 0"
            rf"\text{{ with mean value }} {_number_text(claim.mean)}"
        )
    mean = _number_text(claim.mean)
    return f"b(t) >= q(t) * {bound}{then}, where q(t) = {claim.factor} >= 0 has the mean value {mean}"


def _bound_text(claim: Claim, latex: bool) -> str:
    constant = _constant_text(claim.ln_constant, claim.kind == "upper", latex)
    exponent = _number_text(claim.exponent)
    if claim.depth == 0:
        if claim.exponent == 0:
            return constant
        power = f"t^{{{_number_text(-claim.exponent)}}}" if latex else f"t^{_powered(-claim.exponent)}"
        if constant == "1":
            return power
        return rf"{constant} \cdot {power}" if latex else f"{constant} * {power}"
    levels, level = ["t"], "t"
    for _ in range(claim.depth):
        level = rf"\ln {level}" if latex else f"ln({level})"
        levels.append(level)
    kept = levels[:-1]
    if claim.exponent == 1:
        kept.append(levels[-1])
    elif claim.exponent != 0:
        last = levels[-1]
        kept.append(f"({last})^{{{exponent}}}" if latex else f"{last}^{_powered(claim.exponent)}")
    if latex:
        below = r" \, ".join(kept)
        return rf"\frac{{{constant}}}{{{below}}}"
    product = " * ".join(kept)
    return f"{constant} / {product}" if len(kept) == 1 else f"{constant} / ({product})"


def _powered(value: Fraction) -> str:
    text = _number_text(value)
    return f"({text})" if "/" in text else text


def _number_text(value: Fraction) -> str:
    """A rational exactly: as a decimal if it is a short one, else as a quotient."""
    for places in range(13):
        scaled = value * 10**places
        if scaled.denominator == 1:
            digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
            whole, part = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
            return ("-" if value < 0 else "") + whole + (f".{part}" if part else "")
    return str(value)


def _constant_text(logarithm: Fraction, up: bool, latex: bool) -> str:
    """exp(logarithm) with three digits, rounded up or down as told; left as exp(...) where it is far from 1."""
    if abs(logarithm) > 60:
        tenths = logarithm * 10
        rounded = -((-tenths.numerator) // tenths.denominator) if up else tenths.numerator // tenths.denominator
        inside = _number_text(Fraction(rounded, 10))
        return f"e^{{{inside}}}" if latex else f"exp({inside})"
    with ctx.workprec(256):
        value = ball(logarithm).exp()
        tens = int((value.log() / arb(10).log()).floor().mid().unique_fmpz() or 0) - 2
        scaled = value / arb(10) ** tens
        edge = scaled.upper().ceil() if up else scaled.lower().floor()
        if logarithm == 0:
            edge, tens = arb(1), 0
        exact = Fraction(int(edge.unique_fmpz() or 0)) * Fraction(10) ** tens
    if Fraction(1, 10**4) <= exact < 10**6:
        return _number_text(exact)
    digits, power = str(int(exact / Fraction(10) ** tens)), tens
    mantissa = _number_text(Fraction(int(digits), 10 ** (len(digits) - 1)))
    power += len(digits) - 1
    return rf"{mantissa} \cdot 10^{{{power}}}" if latex else f"{mantissa}e{power}"


def as_dict(claim: Claim) -> dict[str, Any]:
    """The certificate of a claim."""
    return {
        "claim": claim.kind,
        "from": str(claim.start),
        "ln_constant": str(claim.ln_constant),
        "depth": claim.depth,
        "exponent": str(claim.exponent),
        **({} if claim.factor is None else {"factor": str(claim.factor), "mean": str(claim.mean)}),
    }
