"""A certificate as a sentence, in plain text or LaTeX; constants are rounded to the safe side."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from farfield.theory.checker.claims import Certificate, Claim, PartClaim, SumClaim, read


def statement(certificate: Certificate | Any, *, latex: bool = False) -> str:
    """The claim as a sentence, such as "b(t) <= 3.2 * t^-1.5 for all t >= 17"."""
    claim = read(certificate)
    if isinstance(claim, Claim):
        return _claim_text(claim, latex)
    if isinstance(claim, SumClaim):
        parts = [(f"summand {i + 1}", c) for i, c in enumerate(claim.parts)]
    elif isinstance(claim, PartClaim):
        parts = [(f"summand {claim.index + 1}", claim.part)]
    else:
        m = claim.modulus
        parts = [(f"t = {m}*n + {r}", c) for r, c in enumerate(claim.classes) if c is not None]
    if latex:
        return r" \\ ".join(rf"\text{{{name}: }} {statement(c, latex=True)}" for name, c in parts)
    return "; ".join(f"{name}: {statement(c)}" for name, c in parts)


def _claim_text(claim: Claim, latex: bool) -> str:
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
            rf"b(t) \ge q(t) \cdot {bound}{then},\quad q(t) = {claim.factor.latex()}"
            rf"\text{{ with mean value }} {_number_text(claim.mean)}"
        )
    mean = _number_text(claim.mean)
    return f"b(t) >= q(t) * {bound}{then}, where q(t) = {claim.factor} has the mean value {mean}"


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
        value = arb(fmpq(logarithm.numerator, logarithm.denominator)).exp()
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
