"""A checker of certificates that knows nothing of the prover.

A certificate is a plain dictionary with one explicit inequality about the weight b(t). With l_0 = t, l_1 = ln t,
l_2 = ln ln t, ... and the scale S(t) = t * ln t * ... * l_(m-1) * l_m ** s, m the `depth`, s the `exponent`, it claims

    "upper"   b(t) <= exp(ln_constant) / S(t)         for all integers t >= from: convergence, if s > 1
    "lower"   b(t) >= exp(ln_constant) / S(t)         for all integers t >= from: divergence, if s <= 1
    "mean"    b(t) >= q(t) exp(ln_constant) / S(t)    likewise, `factor` q >= 0 a trigonometric polynomial of
                                                      mean value at least `mean` > 0: divergence, if s <= 1
    "finite"  b(t) = 0                                for all integers t >= from: convergence

(Bertrand's series: the sum of 1/S converges if and only if s > 1. For "mean", sum by parts.) Numbers are exact texts:
decimals or quotients p/q; `from` is an integer or exp(...) of one, nested.

The checker tests whether the claim implies the verdict, and then the inequality itself, in ball arithmetic, at
consecutive, doubling and random integers. It cannot prove the inequality for all t; it can only fail to refute it.
What it could not decide far out, where balls say nothing of sin or floor, it reports as untested and not as passed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from farfield.formula import Formula, FormulaError, Node, parse

SAMPLES = 1000  # consecutive integers from the start of the range
DOUBLINGS = 300
EXACT_BITS = 2048  # below 2 ** this, whatever stays undecided is a violation
FAR_BITS = 1 << 20  # beyond 2 ** this, even the start of the range is not tested
REPORTED = 10  # violations after which the search ends
GIVEN_UP = 100  # undecided comparisons after which the search ends

_PROVES = {"upper": "converges", "finite": "converges", "lower": "diverges", "mean": "diverges"}
_MAX_TEXT = 4000  # characters of one number
_MAX_DEPTH = 8


@dataclass
class Examination:
    """What the checker found: how many distances it decided, which refute the claim, which it could not decide."""

    tested: int = 0
    violations: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Claim:
    """A certificate, read and checked for form."""

    kind: str
    start: Fraction | str  # the text inside is "exp(...)" where it is no integer
    ln_constant: Fraction = Fraction(0)
    depth: int = 0
    exponent: Fraction = Fraction(0)
    factor: Formula | None = None
    mean: Fraction = Fraction(0)


def check_certificate(
    formula: Formula, verdict: str, certificate: Mapping[str, Any], *, samples: int = SAMPLES
) -> list[str]:
    """The violations found in a certificate of a verdict; ValueError if it is malformed. See `examine` for the rest."""
    return examine(formula, verdict, certificate, samples=samples).violations


def examine(formula: Formula, verdict: str, certificate: Mapping[str, Any], *, samples: int = SAMPLES) -> Examination:
    """Test that a certificate implies the verdict and that its inequality holds wherever balls can tell."""
    if formula.parameters:
        raise ValueError(f"a certificate is about a formula without parameters, not one in {formula.parameters}")
    claim = _read(certificate)
    found = Examination()
    fault = _fault_of_logic(claim)
    if fault:
        found.violations.append(fault)
    elif _PROVES[claim.kind] != verdict:
        found.violations.append(f"the claim proves that the series {_PROVES[claim.kind]}, but the verdict is {verdict}")
    if claim.kind == "mean":
        _examine_factor(claim, found)
    for t, bits in _distances(claim, samples, found):
        _examine_distance(formula, claim, t, bits, found)
        if len(found.violations) >= REPORTED:
            break
        if len(found.untested) >= GIVEN_UP:
            found.untested.append("the rest was left out: too many comparisons were undecided")
            break
    return found


def proves(certificate: Mapping[str, Any]) -> str | None:
    """The verdict that follows if the claim is true, or None if nothing does."""
    claim = _read(certificate)
    return None if _fault_of_logic(claim) else _PROVES[claim.kind]


# ---------------------------------------------------------------------------------------------------- the form
def _read(certificate: Mapping[str, Any]) -> _Claim:
    if not isinstance(certificate, Mapping):
        raise ValueError(f"a certificate is a dictionary, not {type(certificate).__name__}")
    kind = certificate.get("claim")
    if kind not in _PROVES:
        raise ValueError(f"the claim of a certificate is one of {', '.join(_PROVES)}, not {kind!r}")
    start = _start(_entry(certificate, "from"))
    if kind == "finite":
        return _Claim(kind, start)
    depth = _entry(certificate, "depth")
    if not isinstance(depth, int) or isinstance(depth, bool) or not 0 <= depth <= _MAX_DEPTH:
        raise ValueError(f"the depth of a certificate is a whole number from 0 to {_MAX_DEPTH}, not {depth!r}")
    ln_constant = _rational(_entry(certificate, "ln_constant"), "ln_constant")
    exponent = _rational(_entry(certificate, "exponent"), "exponent")
    if kind != "mean":
        return _Claim(kind, start, ln_constant, depth, exponent)
    try:
        factor = parse(str(_entry(certificate, "factor")))
    except FormulaError as error:
        raise ValueError(f"the factor of a certificate is a formula: {error}") from None
    if factor.parameters or factor.weight:
        raise ValueError("the factor of a certificate is a formula in t alone")
    return _Claim(kind, start, ln_constant, depth, exponent, factor, _rational(_entry(certificate, "mean"), "mean"))


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


def _start(value: Any) -> Fraction | str:
    text = str(value).replace(" ", "") if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    inner, nesting = text[:_MAX_TEXT], 0
    while inner.startswith("exp(") and inner.endswith(")") and nesting < 4:
        inner, nesting = inner[4:-1], nesting + 1
    if not inner.isascii() or not inner.isdigit():
        raise ValueError(f"'from' of a certificate is an integer or exp(...) of one, not {str(value)[:60]!r}")
    return text if nesting else Fraction(inner)


def _ball(value: Fraction) -> arb:
    return arb(fmpq(value.numerator, value.denominator))


# ---------------------------------------------------------------------------------------------------- the logic
def _fault_of_logic(claim: _Claim) -> str | None:
    """Why a claim, true or not, would prove nothing; None if it proves its verdict."""
    if claim.kind == "finite":
        return None
    if claim.kind == "upper" and not claim.exponent > 1:
        return f"an upper bound with the exponent {claim.exponent} proves nothing: it must exceed 1"
    if claim.kind != "upper" and not claim.exponent <= 1:
        return f"a lower bound with the exponent {claim.exponent} proves nothing: it must not exceed 1"
    if claim.kind == "mean" and not claim.mean > 0:
        return f"a factor of mean value {claim.mean} proves nothing: it must be positive"
    if claim.depth == 0 and (claim.exponent == 0 or claim.start != 0):
        return None
    with ctx.workprec(256):
        level = _least(claim)
        for _ in range(claim.depth):
            if not level > 0:
                break
            level = level.log()
        if not level > 0:
            return f"the scale is not positive from t = {claim.start} on: l_{claim.depth} is not above 0 there"
    return None


def _least(claim: _Claim) -> arb:
    """A ball around the first distance of the claim; not finite where it is too large for a ball."""
    text, nesting = str(claim.start), 0
    while text.startswith("exp("):
        text, nesting = text[4:-1], nesting + 1
    value = arb(int(text))
    for _ in range(nesting):
        value = value.exp()
    return value if value.is_finite() else arb("+inf")


# ---------------------------------------------------------------------------------------------------- the distances
def _distances(claim: _Claim, samples: int, found: Examination) -> Iterator[tuple[arb, int]]:
    """Exact integers as balls, each with its length in bits: consecutive, doubling, random, and far out."""
    dice = random.Random(20240229)
    first, bits = _first_integer(claim)
    if first is not None:
        near = samples if bits <= 40 else max(1, samples // 10)
        for t in range(first, first + near):
            yield arb(t), t.bit_length()
        for k in range(1, DOUBLINGS + 1):
            t = (first << k) + dice.getrandbits(k) if first else (1 << k) + dice.getrandbits(k)
            yield arb(t), t.bit_length()
            if k % 3 == 0:  # powers of two and their neighbours: the corners of floor and where
                for corner in (-1, 0, 1):
                    yield arb((1 << (bits + k)) + corner), bits + k
        for _ in range(samples // 10):
            t = first + dice.getrandbits(dice.randint(1, 60))
            yield arb(t), t.bit_length()
        bits = max(bits + DOUBLINGS, EXACT_BITS)
    elif bits < 0:
        found.untested.append(f"t >= {claim.start} is beyond what a ball can hold: nothing was tested there")
        return
    for power in range(12):  # m * 2 ** n: exact however far out
        for _ in range(3):
            exponent = (bits << power) + dice.randint(1, 1000)
            yield arb((dice.randint(1 << 20, 1 << 21), exponent)), exponent + 21


def _first_integer(claim: _Claim) -> tuple[int | None, int]:
    """The first integer of the range if it can be written out, and its length in bits (-1 if that is too long)."""
    if isinstance(claim.start, Fraction):
        return int(claim.start), int(claim.start).bit_length()
    inner = _Claim("finite", _start(claim.start.replace(" ", "")[4:-1]))
    with ctx.workprec(128):
        rough = _least(inner) / arb(2).log()
        if not rough.is_finite() or not rough < arb((1, FAR_BITS)):
            return None, -1
        size = int(rough.log().ceil().unique_fmpz() or 0) * 2 if rough > 1 else 1
    with ctx.workprec(128 + size):
        length = (_least(inner) / arb(2).log()).floor().unique_fmpz()
        if length is None:
            return None, -1
    bits = int(length) + 1
    if bits > EXACT_BITS:
        return None, bits
    with ctx.workprec(bits + 128):
        whole = _least(claim).floor().unique_fmpz()
    return (None, bits) if whole is None else (int(whole) + 1, bits)


# ---------------------------------------------------------------------------------------------------- one distance
def _examine_distance(formula: Formula, claim: _Claim, t: arb, bits: int, found: Examination) -> None:
    """Compare the two sides at one distance, with more and more bits until the comparison is decided."""
    exact = bits <= EXACT_BITS
    precision, most = (64 + bits, 1024 + 8 * bits) if exact else (128, 1024)
    while True:
        with ctx.workprec(precision):
            holds = _holds(formula, claim, t)
            if holds is None:
                holds = _sign_of(_gap(_piece_at(formula, t), claim), t)
        if holds is not None or precision >= most:
            break
        precision *= 2
    found.tested += holds is not None
    if holds is False:
        found.violations.append(f"at t = {_shown(t)} the weight does not satisfy: {statement(_as_dict(claim))}")
    elif holds is None:
        with ctx.workprec(precision):
            reason = _excuse(formula, claim, t)
        where = f"at t = {_shown(t)} the comparison is undecided with {precision} bits"
        if reason is None and exact:
            found.violations.append(where)
        else:
            found.untested.append(where + (f": {reason}" if reason else ""))


def _excuse(formula: Formula, claim: _Claim, t: arb) -> str | None:
    """Why an undecided comparison says nothing against the claim; None if there is no such reason."""
    for node in formula.node.walk():
        if node.free() <= {"t"} and node.op != "-inf":
            part = Formula(node).ball(t)
            wide = part.rel_accuracy_bits() < 1 and not abs(part) < arb((1, ctx.prec // 2))
            if wide and not part.is_nan():
                return "a part of the formula is larger than a ball can hold"
    if claim.kind != "finite":
        bound = _ln_bound(claim, t).exp()
        side = bound if claim.factor is None else bound * claim.factor.ball(t)
        if abs(formula.weight_ball(t) - side) < bound * arb((1, -ctx.prec // 4)):
            return f"the two sides agree to {ctx.prec // 4} bits"
    return None


def _holds(formula: Formula, claim: _Claim, t: arb) -> bool | None:
    """Whether the claim holds at t; None if the balls do not tell."""
    weight = formula.weight_ball(t)
    if claim.kind == "finite":
        if weight.is_zero():
            return True
        return False if weight != 0 and weight.is_finite() else None
    bound = _ln_bound(claim, t)
    if claim.factor is not None:
        factor = claim.factor.ball(t)
        if factor.is_zero():
            return True if weight >= 0 else None
        if not factor > 0:
            return False if factor < 0 else None
        bound = bound + factor.log()
    bias = formula.ball(t)
    sides = (bias, bound) if claim.kind == "upper" else (bound, bias)
    if _comparable(*sides):
        return True if sides[0] <= sides[1] else False if sides[0] > sides[1] else None
    # A weight whose ball touches 0 has no logarithm, but it can still be compared as it is.
    sides = (weight, bound.exp()) if claim.kind == "upper" else (bound.exp(), weight)
    if weight >= 0 or weight.is_finite():
        return True if sides[0] <= sides[1] else False if sides[0] > sides[1] else None
    return None


def _comparable(left: arb, right: arb) -> bool:
    """Finite balls, or exactly minus infinity: what a comparison of logarithms may rest on."""
    least = arb("-inf")
    return all(x.is_finite() or (x.is_exact() and x == least) for x in (left, right))


def _ln_bound(claim: _Claim, t: arb) -> arb:
    """ln_constant - l_1 - ... - l_m - s * l_(m+1), the logarithm of the claimed bound without its factor."""
    bound, level = _ball(claim.ln_constant), t
    for _ in range(claim.depth):
        level = level.log()
        bound = bound - level
    return bound - _ball(claim.exponent) * level.log() if claim.exponent else bound


def _shown(t: arb) -> str:
    whole = t.unique_fmpz() if t < arb((1, 200)) else None
    return (
        str(whole) if whole is not None else t.str(5, radius=False) if t < arb((1, 10**6)) else f"exp({t.log().str(8)})"
    )


# ---------------------------------------------------------------------------------------------------- exact equality
# No precision decides a comparison of equals, as b(t) = 1/(t*log(t)) with itself. So the logarithm of the quotient of
# the two sides is also written as a rational combination of parts, in which whatever stands on both sides cancels.
Terms = dict[Node, Fraction]
_ONE = Node("number", (), Fraction(1))


def _piece_at(formula: Formula, t: arb) -> Formula:
    """The formula with every where(...) that t decides replaced by its branch."""

    def piece(node: Node) -> Node:
        if node.op == "where" and node.free() <= {"t"}:
            left, right = (Formula(a).ball(t) for a in node.args[:2])
            less, more = (left < right, left >= right) if node.value in ("<", ">=") else (left <= right, left > right)
            if less or more:
                return piece(node.args[2 if bool(less) == (node.value in ("<", "<=")) else 3])
        return replace(node, args=tuple(piece(a) for a in node.args)) if node.args else node

    return replace(formula, node=piece(formula.node))


def _gap(formula: Formula, claim: _Claim) -> Terms | None:
    """What must not be negative for the claim to hold, as a combination of parts; None if it cannot be written so."""
    if claim.kind == "finite":
        return None
    bias = _log_terms(formula.node) if formula.weight else _linear_terms(formula.node)
    factor = {} if claim.factor is None else _log_terms(claim.factor.node)
    if bias is None or factor is None:
        return None
    bound: Terms = {_ONE: claim.ln_constant}
    level = Node("name", (), "t")
    for m in range(claim.depth + 1):
        level = Node("log", (level,))
        bound[level] = -claim.exponent if m == claim.depth else Fraction(-1)
    gap = _added(bias, _scaled(_added(bound, factor), Fraction(-1)))
    return _scaled(gap, Fraction(-1 if claim.kind == "upper" else 1))


def _sign_of(gap: Terms | None, t: arb) -> bool | None:
    """Whether the gap is not negative at t; None if the balls do not tell."""
    if gap is None:
        return None
    total = sum((_ball(c) * Formula(part).ball(t) for part, c in gap.items() if c), arb(0))
    return True if total >= 0 else False if total < 0 else None


def _linear_terms(node: Node) -> Terms | None:
    """The expression as a rational combination of parts."""
    if node.op == "number":
        return {_ONE: Fraction(node.value)}
    if node.op == "-inf":
        return None
    if node.op == "log":
        return _log_terms(node.args[0])
    if node.op not in ("neg", "+", "-", "*", "/"):
        return {node: Fraction(1)}
    parts = [_linear_terms(a) for a in node.args]
    terms = [p for p in parts if p is not None]
    if len(terms) < len(parts):
        return None
    if node.op == "neg":
        return _scaled(terms[0], Fraction(-1))
    if node.op in ("+", "-"):
        return _added(terms[0], _scaled(terms[1], Fraction(1 if node.op == "+" else -1)))
    left, right = (_plain_number(p) for p in terms)
    if right is not None and (node.op == "*" or right != 0):
        return _scaled(terms[0], right if node.op == "*" else 1 / right)
    return _scaled(terms[1], left) if left is not None and node.op == "*" else {node: Fraction(1)}


def _log_terms(node: Node) -> Terms | None:
    """The logarithm of the expression, in the same form.

    Only whole powers of a part that may be negative are taken apart, so that what cancels is an identity of quotients
    and the signs of its parts do not matter.
    """
    if node == _ONE:
        return {}
    if node.op == "exp":
        return _linear_terms(node.args[0])
    if node.op in ("*", "/"):
        left, right = (_log_terms(a) for a in node.args)
        if left is None or right is None:
            return None
        return _added(left, _scaled(right, Fraction(1 if node.op == "*" else -1)))
    if node.op in ("**", "sqrt"):
        inside = _log_terms(node.args[0])
        power = {_ONE: Fraction(1, 2)} if node.op == "sqrt" else _linear_terms(node.args[1])
        exponent = None if power is None else _plain_number(power)
        if inside is not None and exponent is not None:
            positive = all(n.op != "log" or _is_level(n.args[0]) for n in inside)
            if exponent.denominator == 1 or positive:
                return _scaled(inside, exponent)
    return {Node("log", (node,)): Fraction(1)}


def _is_level(node: Node) -> bool:
    """Whether the expression is t, log(t), log(log(t)), ... or a number."""
    while node.op == "log":
        node = node.args[0]
    return node.op in ("name", "number")


def _plain_number(terms: Terms) -> Fraction | None:
    left = {n: c for n, c in terms.items() if c}
    return left.get(_ONE, Fraction(0)) if set(left) <= {_ONE} else None


def _scaled(terms: Terms, by: Fraction) -> Terms:
    return {n: c * by for n, c in terms.items()}


def _added(left: Terms, right: Terms) -> Terms:
    return {n: left.get(n, Fraction(0)) + right.get(n, Fraction(0)) for n in left | right}


# ---------------------------------------------------------------------------------------------------- the factor
Wave = tuple[Fraction, Fraction]  # the frequency a + b * pi of exp(i * frequency * t)
Waves = dict[Wave, tuple[arb, arb]]  # each with its complex coefficient


def _examine_factor(claim: _Claim, found: Examination) -> None:
    """The factor is a trigonometric polynomial, not negative, and its mean value is at least the claimed one."""
    assert claim.factor is not None
    with ctx.workprec(256):
        waves = _waves(claim.factor.node)
        if waves is None:
            found.violations.append("the factor is not a trigonometric polynomial with frequencies a + b*pi")
            return
        # exp(i (a + b pi) t) has mean 1 over the integers if a = 0 and b is even, and mean 0 otherwise.
        mean = sum((real for (a, b), (real, _) in waves.items() if a == 0 and b % 2 == 0), arb(0))
        if not mean >= _ball(claim.mean) and not (mean - _ball(claim.mean)).contains(0):
            found.violations.append(f"the factor's mean value is {mean.str(10)}, less than {claim.mean}")
    if not _never_negative(claim.factor.node):
        found.untested.append("the factor is not plainly a sum of squares: its sign was tested only at the samples")


def _waves(node: Node) -> Waves | None:
    """A trigonometric polynomial as a sum of waves, or None if it is none."""
    if "t" not in node.free():
        value = Formula(node).ball(arb(0))
        return {(Fraction(0), Fraction(0)): (value, arb(0))} if value.is_finite() else None
    if node.op in ("sin", "cos"):
        slope, shift = _line(node.args[0]) or (None, None)
        if slope is None or shift is None:
            return None
        half_cos, half_sin = shift.cos() / 2, shift.sin() / 2
        # cos(x) = (e^ix + e^-ix) / 2 and sin(x) = (e^ix - e^-ix) / 2i, with x = slope * t + shift
        pair = (half_cos, half_sin) if node.op == "cos" else (half_sin, -half_cos)
        there: Waves = {slope: pair}
        return _sum_of_waves(there, {(-slope[0], -slope[1]): (pair[0], -pair[1])})
    if node.op == "**":
        times = _whole_power(node)
        base = _waves(node.args[0])
        if base is None or times is None or not 1 <= times <= 16:
            return None
        power = base
        for _ in range(times - 1):
            power = _product_of_waves(power, base)
        return power
    parts = [_waves(a) for a in node.args]
    if any(p is None for p in parts):
        return None
    sides = [p for p in parts if p is not None]
    if node.op == "neg":
        return _product_of_waves(sides[0], {(Fraction(0), Fraction(0)): (arb(-1), arb(0))})
    if node.op == "+":
        return _sum_of_waves(*sides)
    if node.op == "-":
        return _sum_of_waves(sides[0], {w: (-x, -y) for w, (x, y) in sides[1].items()})
    if node.op == "*":
        return _product_of_waves(*sides)
    if node.op == "/" and "t" not in node.args[1].free():
        by = Formula(node.args[1]).ball(arb(0))
        return {w: (x / by, y / by) for w, (x, y) in sides[0].items()}
    return None


def _whole_power(node: Node) -> int | None:
    exponent = _slope(node.args[1])
    return None if exponent is None or exponent[1] or exponent[0].denominator != 1 else int(exponent[0])


def _line(node: Node) -> tuple[Wave, arb] | None:
    """The expression as (a + b*pi) * t + shift with rational a and b, or None."""
    zero = Fraction(0)
    if "t" not in node.free():
        return (zero, zero), Formula(node).ball(arb(0))
    if node.op == "name":
        return (Fraction(1), zero), arb(0)
    if node.op == "neg":
        inside = _line(node.args[0])
        return None if inside is None else ((-inside[0][0], -inside[0][1]), -inside[1])
    if node.op in ("+", "-"):
        left, right = _line(node.args[0]), _line(node.args[1])
        if left is None or right is None:
            return None
        sign = 1 if node.op == "+" else -1
        slope = (left[0][0] + sign * right[0][0], left[0][1] + sign * right[0][1])
        return slope, left[1] + sign * right[1]
    if node.op in ("*", "/"):
        line, other = node.args if "t" in node.args[0].free() else (node.args[1], node.args[0])
        inside, by = _line(line), _slope(other)
        if inside is None or by is None or "t" in other.free() or (node.op == "/" and line is not node.args[0]):
            return None
        (a, b), (c, d) = inside[0], by
        if node.op == "/":
            return None if d or not c else ((a / c, b / c), inside[1] / _ball(c))
        return None if b and d else ((a * c, a * d + b * c), inside[1] * Formula(other).ball(arb(0)))
    return None


def _slope(node: Node) -> Wave | None:
    """A constant as a + b*pi with rational a and b, or None."""
    if node.op == "pi":
        return Fraction(0), Fraction(1)
    if node.op in ("*", "/"):
        left, right = _slope(node.args[0]), _slope(node.args[1])
        if left is None or right is None or (left[1] and right[1]) or (node.op == "/" and (right[1] or not right[0])):
            return None
        (a, b), (c, d) = left, right
        return (a * c, a * d + b * c) if node.op == "*" else (a / c, b / c)
    if node.op in ("+", "-", "neg"):
        parts = [_slope(x) for x in node.args]
        if any(p is None for p in parts):
            return None
        sides = [p for p in parts if p is not None]
        if node.op == "neg":
            return -sides[0][0], -sides[0][1]
        sign = 1 if node.op == "+" else -1
        return sides[0][0] + sign * sides[1][0], sides[0][1] + sign * sides[1][1]
    return (Fraction(node.value), Fraction(0)) if node.op == "number" else None


def _sum_of_waves(left: Waves, right: Waves) -> Waves:
    nothing = (arb(0), arb(0))
    total = {}
    for wave in left | right:
        (x, y), (u, v) = left.get(wave, nothing), right.get(wave, nothing)
        total[wave] = (x + u, y + v)
    return total


def _product_of_waves(left: Waves, right: Waves) -> Waves:
    total: Waves = {}
    for (a, b), (x, y) in left.items():
        for (c, d), (u, v) in right.items():
            wave: Waves = {(a + c, b + d): (x * u - y * v, x * v + y * u)}
            total = _sum_of_waves(total, wave)
    return total


def _never_negative(node: Node) -> bool:
    """Whether the expression is plainly >= 0: squares, absolute values, and their sums and products."""
    if node.op in ("abs", "exp", "sqrt", "number", "pi"):
        return True
    if node.op in ("+", "*", "/", "min"):
        same = node.op in ("*", "/") and node.args[0] == node.args[1]
        return same or all(_never_negative(a) for a in node.args)
    if node.op == "**":
        power = _whole_power(node)
        return (power is not None and power % 2 == 0) or _never_negative(node.args[0])
    if node.op == "sum":
        return _never_negative(node.args[0])
    return False


# ---------------------------------------------------------------------------------------------------- the sentence
def statement(certificate: Mapping[str, Any], *, latex: bool = False) -> str:
    """The claim as a sentence, such as "b(t) <= 3.2 * t^-1.5 for all t >= 17"; constants rounded to the safe side."""
    claim = _read(certificate)
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


def _bound_text(claim: _Claim, latex: bool) -> str:
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
        value = _ball(logarithm).exp()
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


def _as_dict(claim: _Claim) -> dict[str, Any]:
    return {
        "claim": claim.kind,
        "from": str(claim.start),
        "ln_constant": str(claim.ln_constant),
        "depth": claim.depth,
        "exponent": str(claim.exponent),
        **({} if claim.factor is None else {"factor": str(claim.factor), "mean": str(claim.mean)}),
    }
