"""The asymptotic law of the receptive field: how TRF(epsilon) grows as epsilon goes to 0.

A law comes from the shape of the weights. Before it is said, a second route looks at receptive fields computed at
several epsilons: the law must come closer to them as epsilon falls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpz

from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import ZERO, Constant, ball, exp, known_sign
from farfield.theory.fields.receptive import smallest
from farfield.theory.sums.closed import Geometric, PowerLaw, Quadratic, Rational, Series
from farfield.theory.sums.eulermaclaurin import LogSquare
from farfield.theory.sums.series import Encoding, Pieces, series
from farfield.theory.sums.shapes import Log, LogLog, LogPolynomial, Power, constant_part, shape
from farfield.zoo import WIDTH, Parameters

UNKNOWN = "no simple law is known"
_CLOSE = 0.02


@dataclass(frozen=True)
class _Law:
    """A law in words and as a function: ln(1/epsilon) -> ln(TRF). A rough one is right up to a factor in ln(TRF)."""

    text: str
    ln_tokens: Callable[[arb], arb]
    rough: bool = False
    looked_at: tuple[int, int, int] = (3, 12, 48)  # powers of 1/10 at which it is compared with receptive fields


def law(encoding: Encoding, *, start: int = 0, parameters: Parameters | None = None, width: int = WIDTH) -> str:
    """The law of TRF(epsilon) in words, such as "about 0.6079/epsilon"; it holds in the limit epsilon -> 0.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        start: the first distance of the series.
        parameters: a value for each parameter that the encoding leaves open, such as {"k": "1/16"}.
        width: of one head, for encodings that depend on it.
    """
    with ctx.workprec(96):
        weights = series(encoding, start=start, parameters=parameters, width=width)
        if isinstance(weights, Pieces) and weights.rest is None:
            return _of_finite(weights)
        end = weights.rest if isinstance(weights, Pieces) else weights
        assert end is not None
        known = _law(end, weights.B())
        return known.text if known is not None and _approached(known, weights) else UNKNOWN


def _approached(known: _Law, weights: Series) -> bool:
    """Whether the law comes closer to computed receptive fields as epsilon falls."""
    off = []
    for n in known.looked_at:
        try:
            tokens = smallest(weights, Fraction(1, 10**n))
        except UndecidedError:
            return False
        true, said = arb(fmpz(tokens)).log(), known.ln_tokens(n * arb(10).log())
        off.append(float(abs(true / said - 1 if known.rough else true - said).mid()))
    return off[-1] < _CLOSE or off[0] > off[1] > off[2]


def _of_finite(weights: Pieces) -> str:
    """Weights that end: exactly linear in epsilon if they are all alike."""
    last = max(s.last for s in weights.stretches)
    if len(weights.stretches) == 1 and weights.stretches[0].constant:
        first = max(weights.start, weights.stretches[0].start)
        said = f"{last}*(1 - epsilon)" if first == 0 else f"{last} - {last - first}*epsilon"
        if all(
            smallest(weights, e) == (last * e.denominator - (last - first) * e.numerator) // e.denominator + 1
            for e in (Fraction(1, 2), Fraction(1, 3), Fraction(1, 10**6))
        ):
            return f"exactly floor({said}) + 1"
    return f"at most {last} for every epsilon"


def _law(result: Series, total: arb) -> _Law | None:
    """The law of the tail of `result` against the whole sum `total`."""
    if isinstance(result, Geometric):
        return _stretched(ball(result.k), arb(1))
    if isinstance(result, PowerLaw):
        return _power(ball(result.factor) / total, ball(result.s))
    if isinstance(result, Quadratic):
        return _power(ball(result.factor) / total, arb(2))
    if isinstance(result, Rational):
        return _power(ball(result.factor) / total, arb(result.degree))
    if isinstance(result, LogSquare):
        c, s = ball(result.c), ball(result.s)
        lead = (s + 1) / (2 * c)
        return _Law(f"about {_short(lead.exp(), '*')}exp(sqrt({_ratio(c)}))", lambda x: lead + (x / c).sqrt())
    return _from_shape(result, total)


def _stretched(rate: arb, order: arb) -> _Law:
    """Weights exp(-rate*t**(1/order)), up to slower factors: (ln(1/epsilon)/rate)**order."""

    def ln_tokens(x: arb) -> arb:
        return (x / rate).log() * order

    if order.contains(1) and order.is_exact():
        return _Law(f"about {_short(1 / rate, '*')}ln(1/epsilon)", ln_tokens)
    return _Law(f"about ({_ratio(rate)})**{_short(order)}", ln_tokens)


def _power(ratio: arb, s: arb) -> _Law:
    """Weights C*t**-s: (C/((s-1)*B))**(1/(s-1)) * epsilon**(-1/(s-1))."""
    order = 1 / (s - 1)
    lead = (ratio * order) ** order
    exact = order.contains(1) and order.is_exact()
    text = f"about {_short(lead)}/epsilon" if exact else f"about {_short(lead, '*')}epsilon**-{_short(order)}"
    return _Law(text, lambda x: lead.log() + x * order, looked_at=(2, 4, 8))


def _from_shape(result: Series, total: arb) -> _Law | None:
    known = shape(result.formula)
    if known is None:
        return None
    powers = [(a, c) for a, c in known.items() if isinstance(a, Power) and known_sign(a.exponent) != -1]
    loglogs = [c for a, c in known.items() if isinstance(a, LogLog)]
    logs = [(a, c) for a, c in known.items() if isinstance(a, Log) and a.exponent > 0]
    slow = [c for a, c in logs if a.exponent == 1]
    slow += [c * len(a.lower) for a, c in known.items() if isinstance(a, LogPolynomial)]
    factor = ball(exp(constant_part(known)))
    if powers:
        most = max((a.exponent for a, _ in powers), key=lambda e: float(ball(e)))
        c = sum((c for a, c in powers if known_sign(a.exponent - most) == 0), ZERO)
        return _stretched(-ball(c), 1 / ball(most)) if known_sign(c) == -1 else None
    if any(a.exponent > 1 for a, _ in logs):
        (log, c) = max(logs, key=lambda p: p[0].exponent)
        rate, order = -ball(c), 1 / ball(log.exponent)
        text = f"exp(({_ratio(rate)})**{_short(order)}) to leading order in the exponent"
        return _Law(text, lambda x: (x / rate) ** order, rough=True) if known_sign(c) == -1 else None
    if len(slow) != len(logs) + sum(isinstance(a, LogPolynomial) for a in known) or len(loglogs) > 1:
        return None  # roots of logarithms
    exponent = -sum(slow, ZERO)
    gap = known_sign(exponent - 1)
    if gap == 1:
        s = ball(exponent)
        if not loglogs:
            return _power(factor / total, s)
        text = f"epsilon**-{_short(1 / (s - 1))} up to powers of ln(1/epsilon)"
        return _Law(text, lambda x: x / (s - 1), True, (2, 4, 8))
    if gap == 0 and loglogs and known_sign(-loglogs[0] - 1) == 1:
        return _double_logarithm(factor / total, -loglogs[0])
    return None


def _double_logarithm(ratio: arb, exponent: Constant) -> _Law:
    """Weights C/(t*ln(t)**q): ln(TRF) = (C/((q-1)*B*epsilon))**(1/(q-1))."""
    order = 1 / (ball(exponent) - 1)
    lead = (ratio * order) ** order
    text = f"ln(TRF) about {_short(lead, '*')}epsilon**-{_short(order)}"
    return _Law(text, lambda x: lead * (x * order).exp(), True, (1, 2, 3))


def _ratio(rate: arb) -> str:
    """ln(1/epsilon)/rate."""
    return "ln(1/epsilon)" if (rate - 1).is_zero() else f"ln(1/epsilon)/{_short(rate)}"


def _short(value: arb, then: str = "") -> str:
    """Four significant digits; nothing at all for a factor 1."""
    if then and (value - 1).contains(0) and abs(value - 1) < arb("1e-6"):
        return ""
    return f"{float(value.mid()):.4g}{then}"
