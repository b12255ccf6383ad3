"""A checker of certificates that knows nothing of the prover.

Whether the claim of a certificate (claims.py) implies the verdict is a matter of its exponent: the sum of 1/S(t)
converges if and only if s > 1 (Bertrand). Then an upper bound with s > 1 proves convergence and a lower bound with
s <= 1 divergence; a factor q >= 0 of positive mean value changes nothing (summation by parts).

The inequality itself is tested in ball arithmetic, at consecutive, doubling and random integers. That cannot prove it
for all t; it can only fail to refute it. What stays undecided far out, where balls say nothing of sin or floor, and
ties that no precision decides are reported as untested and not as passed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node
from farfield.theory.checker import logarithmic
from farfield.theory.checker.claims import Claim, as_dict, ball, read, read_start, statement
from farfield.theory.checker.waves import mean_value, never_negative

__all__ = ["Examination", "check_certificate", "examine", "proves", "statement"]

SAMPLES = 1000  # consecutive integers from the start of the range
DOUBLINGS = 300
STRICT_BITS = 12  # below 2 ** this, a comparison that stays undecided is a violation
EXACT_BITS = 2048  # below 2 ** this, integers are written out
FAR_BITS = 1 << 20  # beyond 2 ** this, even the start of the range is not tested
REPORTED = 10  # violations after which the search ends
GIVEN_UP = 100  # undecided comparisons after which the search ends

_PROVES = {"upper": "converges", "finite": "converges", "lower": "diverges", "mean": "diverges"}


@dataclass
class Examination:
    """What the checker found: how many distances it decided, which refute the claim, which it could not decide."""

    tested: int = 0
    violations: list[str] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)


def check_certificate(
    formula: Formula, verdict: str, certificate: Mapping[str, Any], *, samples: int = SAMPLES
) -> list[str]:
    """The violations found in a certificate of a verdict; ValueError if it is malformed. See `examine` for the rest."""
    return examine(formula, verdict, certificate, samples=samples).violations


def examine(formula: Formula, verdict: str, certificate: Mapping[str, Any], *, samples: int = SAMPLES) -> Examination:
    """Test that a certificate implies the verdict and that its inequality holds wherever balls can tell."""
    if formula.parameters:
        raise ValueError(f"a certificate is about a formula without parameters, not one in {formula.parameters}")
    claim = read(certificate)
    found = Examination()
    fault = _fault_of_logic(claim)
    if fault:
        found.violations.append(fault)
    elif _PROVES[claim.kind] != verdict:
        found.violations.append(f"the claim proves that the series {_PROVES[claim.kind]}, but the verdict is {verdict}")
    if claim.kind == "mean":
        _examine_factor(claim, found)
    for t, bits in _distances(claim, samples):
        _examine_distance(formula, claim, t, bits, found)
        if len(found.violations) >= REPORTED:
            break
        if len(found.untested) >= GIVEN_UP:
            found.untested.append("the rest was left out: too many comparisons were undecided")
            break
    else:
        if _first_integer(claim)[1] < 0:
            _examine_far(formula, claim, found)
    return found


def proves(certificate: Mapping[str, Any]) -> str | None:
    """The verdict that follows if the claim is true, or None if nothing does."""
    claim = read(certificate)
    return None if _fault_of_logic(claim) else _PROVES[claim.kind]


# ---------------------------------------------------------------------------------------------------- the logic
def _fault_of_logic(claim: Claim) -> str | None:
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


def _least(claim: Claim) -> arb:
    """A ball around the first distance of the claim; not finite where it is too large for a ball."""
    text, nesting = str(claim.start), 0
    while text.startswith("exp("):
        text, nesting = text[4:-1], nesting + 1
    value = arb(int(text))
    for _ in range(nesting):
        value = value.exp()
    return value if value.is_finite() else arb("+inf")


def _examine_factor(claim: Claim, found: Examination) -> None:
    """The factor is a trigonometric polynomial, not negative, and its mean value is at least the claimed one."""
    assert claim.factor is not None
    with ctx.workprec(256):
        mean = mean_value(claim.factor.node)
        if mean is None:
            found.violations.append("the factor is not a trigonometric polynomial with frequencies a + b*pi")
        elif mean < ball(claim.mean):
            found.violations.append(f"the factor's mean value is {mean.str(10)}, less than {claim.mean}")
    if not never_negative(claim.factor.node):
        found.untested.append("the factor is not plainly a sum of squares: its sign was tested only at the samples")


# ---------------------------------------------------------------------------------------------------- the distances
def _distances(claim: Claim, samples: int) -> Iterator[tuple[arb, int]]:
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
        return
    for power in range(12):  # m * 2 ** n: exact however far out
        for _ in range(3):
            exponent = (bits << power) + dice.randint(1, 1000)
            yield arb((dice.randint(1 << 20, 1 << 21), exponent)), exponent + 21


def _first_integer(claim: Claim) -> tuple[int | None, int]:
    """The first integer of the range if it can be written out, and its length in bits (-1 if that is too long)."""
    if isinstance(claim.start, Fraction):
        return int(claim.start), int(claim.start).bit_length()
    inner = Claim("finite", read_start(claim.start.replace(" ", "")[4:-1]))
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
def _examine_distance(formula: Formula, claim: Claim, t: arb, bits: int, found: Examination) -> None:
    """Compare the two sides at one distance, with more and more bits until the comparison is decided."""
    strict = bits <= STRICT_BITS
    precision = 64 + bits if bits <= EXACT_BITS else 128
    most = 16384 if strict else 4096 + 8 * bits if bits <= EXACT_BITS else 1024
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
        found.violations.append(f"at t = {_shown(t)} the weight does not satisfy: {statement(as_dict(claim))}")
    elif holds is None:
        with ctx.workprec(precision):
            reason = _excuse(formula, claim, t)
        where = f"at t = {_shown(t)} the comparison is undecided with {precision} bits"
        if reason is None and strict:
            found.violations.append(where)
        else:
            found.untested.append(where + (f": {reason}" if reason else ""))


def _excuse(formula: Formula, claim: Claim, t: arb) -> str | None:
    """Why an undecided comparison says nothing against the claim; None if there is no such reason."""
    for node in formula.node.walk():
        if node.free() <= {"t"} and node.op != "-inf":
            part = Formula(node).ball(t)
            if part.is_nan() or part.rel_accuracy_bits() > 0:
                continue
            if not abs(part) < arb((1, ctx.prec // 2)):
                return "a part of the formula is larger than a ball can hold"
            if abs(part) < arb((1, -ctx.prec // 2)):
                return "a part of the formula is closer to 0 than a ball can tell"
    if claim.kind != "finite":
        bound = _ln_bound(claim, t).exp()
        side = bound if claim.factor is None else bound * claim.factor.ball(t)
        if abs(formula.weight_ball(t) - side) < bound * arb((1, -ctx.prec // 4)):
            return f"the two sides agree to {ctx.prec // 4} bits"
    return None


def _examine_far(formula: Formula, claim: Claim, found: Examination) -> None:
    """The same where t itself is too large for a ball: only its logarithm is one, and t is any real number."""
    gap = _gap(formula, claim)
    with ctx.workprec(512):
        least = _least(Claim("finite", read_start(str(claim.start)[4:-1])))
        for doublings in range(20) if gap is not None and least.is_finite() else ():
            ln_t = least.upper() * arb((1, doublings))
            total: logarithmic.Value = arb(0)
            for part, c in (gap or {}).items():
                total = logarithmic.add(total, logarithmic.multiply(ball(c), logarithmic.value_at(part, ln_t)))
            sign = logarithmic.sign_of(total)
            found.tested += sign is not None
            if sign is None:
                found.untested.append(f"at t = exp({ln_t.str(5, radius=False)}) the comparison is undecided")
            elif sign < 0:
                shown = statement(as_dict(claim))
                found.violations.append(f"at t = exp({ln_t.str(5, radius=False)}) the weight does not satisfy: {shown}")
    if not found.tested:
        found.untested.append(f"t >= {claim.start} is beyond what a ball can hold: nothing was tested there")


def _holds(formula: Formula, claim: Claim, t: arb) -> bool | None:
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


def _ln_bound(claim: Claim, t: arb) -> arb:
    """ln_constant - l_1 - ... - l_m - s * l_(m+1), the logarithm of the claimed bound without its factor."""
    bound, level = ball(claim.ln_constant), t
    for _ in range(claim.depth):
        level = level.log()
        bound = bound - level
    return bound - ball(claim.exponent) * level.log() if claim.exponent else bound


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


def _gap(formula: Formula, claim: Claim) -> Terms | None:
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
    total = sum((ball(c) * Formula(part).ball(t) for part, c in gap.items() if c), arb(0))
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
