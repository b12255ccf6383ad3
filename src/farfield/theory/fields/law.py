"""The asymptotic law of the receptive field: how TRF(epsilon) grows as epsilon goes to 0."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.theory.exact.constants import exp
from farfield.theory.exact.signs import ball, known_sign
from farfield.theory.sums.closed import Geometric, PowerLaw, Quadratic, Rational, Series
from farfield.theory.sums.eulermaclaurin import LogSquare
from farfield.theory.sums.series import Encoding, Pieces, series
from farfield.theory.sums.shapes import Log, LogLog, Power, constant_part, shape
from farfield.zoo import WIDTH

UNKNOWN = "no simple law is known"


def law(encoding: Encoding, *, start: int = 0, parameters: Mapping[str, Any] | None = None, width: int = WIDTH) -> str:
    """The law of TRF(epsilon) in words, such as "about 0.6079/epsilon"; it holds in the limit epsilon -> 0.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        start: the first distance of the series.
        parameters: a value for each parameter that the encoding leaves open, such as {"k": "1/16"}.
        width: of one head, for encodings that depend on it.
    """
    with ctx.workprec(96):
        weights = series(encoding, start=start, parameters=parameters, width=width)
        return _law(weights, weights.B())


def _law(found: Series, total: Any) -> str:
    """The law of the tail of `found` against the whole sum `total`."""
    if isinstance(found, Pieces):
        if found.last is not None:
            return _law(found.last, total)
        last = max(s.last for s in found.stretches)
        if len(found.stretches) == 1 and found.stretches[0].constant and found.start == 0:
            return f"exactly floor({last}*(1 - epsilon)) + 1"
        return f"at most {last} for every epsilon"
    if isinstance(found, Geometric):
        return f"about {_short(1 / ball(found.k), '*')}ln(1/epsilon)"
    if isinstance(found, PowerLaw):
        return _power(ball(found.factor) / total, found.s)
    if isinstance(found, Quadratic):
        return _power(ball(found.factor) / total, Fraction(2))
    if isinstance(found, Rational):
        return _power(ball(found.factor) / total, Fraction(found.degree))
    if isinstance(found, LogSquare):
        c, s = ball(found.c), ball(found.s)
        lead = ((s + 1) / (2 * c)).exp()
        return f"about {_short(lead, '*')}exp(sqrt({_ratio(c)}))"
    return _from_shape(found, total)


def _power(ratio: Any, s: Any) -> str:
    """Weights C*t**-s: (C/((s-1)*B))**(1/(s-1)) * epsilon**(-1/(s-1))."""
    order = 1 / (ball(s) - 1)
    lead = (ratio * order) ** order
    if order.contains(1) and order.is_exact():
        return f"about {_short(lead)}/epsilon"
    return f"about {_short(lead, '*')}epsilon**-{_short(order)}"


def _from_shape(found: Series, total: Any) -> str:
    known = shape(found.formula) or {}
    powers = [(a, c) for a, c in known.items() if isinstance(a, Power)]
    loglogs = [(a, c) for a, c in known.items() if isinstance(a, LogLog)]
    logs = [(a, c) for a, c in known.items() if isinstance(a, Log)]
    factor = ball(exp(constant_part(known)))
    if len(powers) == 1 and not loglogs and all(a.exponent == 1 for a, _ in logs):
        (atom, c) = powers[0]
        rate, order = -ball(c), 1 / ball(atom.exponent)
        if order.contains(1) and order.is_exact():
            return f"about {_short(1 / rate, '*')}ln(1/epsilon)"
        return f"about ({_ratio(rate)})**{_short(order)}"
    if not powers and not loglogs and len(logs) == 1 and logs[0][0].exponent > 1:
        (log, c) = logs[0]
        return f"exp(({_ratio(-ball(c))})**{_short(1 / ball(log.exponent))}) to leading order in the exponent"
    if len(loglogs) == 1 and len(logs) == 1 and not powers and logs[0][0].exponent == 1:
        q, s = -ball(loglogs[0][1]), -ball(logs[0][1])
        if known_sign(logs[0][1] + 1) == 0:
            lead = (factor / (total * (q - 1))) ** (1 / (q - 1))
            return f"ln(TRF) about {_short(lead, '*')}epsilon**-{_short(1 / (q - 1))}"
        return f"epsilon**-{_short(1 / (s - 1))} up to powers of ln(1/epsilon)"
    return UNKNOWN


def _ratio(rate: Any) -> str:
    """ln(1/epsilon)/rate."""
    return "ln(1/epsilon)" if (rate - 1).is_zero() else f"ln(1/epsilon)/{_short(rate)}"


def _short(value: Any, then: str = "") -> str:
    """Four significant digits; nothing at all for a factor 1."""
    if then and (value - 1).contains(0) and abs(value - 1) < arb("1e-6"):
        return ""
    return f"{float(value.mid()):.4g}{then}"
