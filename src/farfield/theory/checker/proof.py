"""The proof that a claim holds for every distance from its start on.

Far distances are treated at once: on the half line from some X on, an expansion of the gap between the two sides has no
negative value. Those before X are looked at one by one, or over ranges that are cut where they do not tell.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx, fmpq

from farfield.formula import Formula, number
from farfield.formula.gather import gathered
from farfield.formula.tree import substitute
from farfield.theory.checker import constants
from farfield.theory.checker.claims import Claim, Place
from farfield.theory.checker.constants import MINUS, ONE, UnknownError, rational
from farfield.theory.checker.expansions import (
    NULL,
    Calculus,
    Effort,
    Expansion,
    add,
    constant,
    interval,
    negative,
    scale,
)
from farfield.theory.checker.intervals import INFINITY, Interval
from farfield.theory.checker.monomials import UNIT, Domain, exponentials, level
from farfield.theory.checker.ranges import range_of
from farfield.theory.checker.readings import Choices, NothingType, Reading, Size

BITS = 128
ORDERS = ((2, 8), (4, 12), (8, 24))  # of power series, and the terms that are kept
ONE_BY_ONE = 64  # distances that are looked at singly
SINGLE = 5  # what one of them costs, in products of terms
RANGES = 300  # ranges that are looked at, at most
MAX_CHOICES = 4  # branches that are looked at one by one
FAR = (Place(1000, 1), Place(10**6, 1), Place(50, 2), Place(20, 3), Place(1000, 3))
SHIFTS = (0, 1, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 64)


class RefutedError(Exception):
    """The claim is false, and where."""


@dataclass(frozen=True)
class Proof:
    """How a claim was proven: distances one by one, ranges of distances, and the distance from which on all at once."""

    singles: int
    ranges: int
    far: Place

    def __str__(self) -> str:
        near = [f"{self.singles} one by one"] * bool(self.singles) + [
            f"{self.ranges} range{'s' * (self.ranges > 1)}"
        ] * bool(self.ranges)
        return ", ".join([*near, f"all t >= {self.far} at once"])


def prove(formula: Formula, claim: Claim, effort: Effort) -> Proof:
    """A proof of the claim for every distance from its start on; UnknownError or RefutedError if there is none."""
    reason = UnknownError("nothing was tried")
    start = claim.start
    for order in ORDERS:
        for shift in SHIFTS if not start.nesting else (0,):
            far = start if start.nesting else Place(max(start.whole, 2) << shift)
            try:
                with ctx.workprec(BITS):
                    _hold(formula, claim, Domain(exponentials(far.whole, far.nesting), None), order, effort)
            except UnknownError as error:
                reason = error
                continue
            try:
                singles, ranges = (
                    (0, 0) if start.nesting else _near(formula, claim, start.whole, far.whole, order, effort)
                )
            except UnknownError as error:  # a longer series may do from an earlier distance on
                reason = error
                break
            return Proof(singles, ranges, far)
    for far in FAR:  # a claim that is false only far out can at least be called so
        with contextlib.suppress(UnknownError), ctx.workprec(BITS):
            _hold(formula, claim, Domain(exponentials(far.whole, far.nesting), None), ORDERS[0], effort)
    raise reason


def _near(
    formula: Formula, claim: Claim, first: int, far: int, order: tuple[int, int], effort: Effort
) -> tuple[int, int]:
    """Show the claim for first <= t < far."""
    todo = [(first, far)]
    singles = ranges = 0
    while todo:
        low, high = todo.pop()
        if high - low <= ONE_BY_ONE:
            effort.spend(SINGLE * (high - low))
            for t in range(low, high):
                hold_at(formula, claim, t)
            singles += high - low
            continue
        ranges += 1
        if ranges > RANGES:
            raise UnknownError(f"the distances from {low} on take too many ranges")
        try:
            if low < 3:
                raise UnknownError("too close to 0")
            with ctx.workprec(BITS):
                _hold(formula, claim, Domain.between(low, high - 1), order, effort)
        except UnknownError:
            middle = _middle(low, high)
            todo += [(middle, high), (low, middle)]
    return singles, ranges


def _middle(low: int, high: int) -> int:
    """Where a range is cut: about the geometric mean."""
    if low < ONE_BY_ONE // 2:
        return low + ONE_BY_ONE // 2
    middle = 1 << ((low.bit_length() + high.bit_length()) // 2)
    return middle if low < middle < (low + high) // 2 else (low + high) // 2


# ---------------------------------------------------------------------------------------------------- a whole domain
def _hold(formula: Formula, claim: Claim, domain: Domain, order: tuple[int, int], effort: Effort) -> None:
    """Show the claim on a whole domain, for the formula as it stands or with common factors taken out."""
    if _hold_roughly(formula, claim, domain):
        return
    calculus = Calculus(domain, *order, effort)
    try:
        _hold_case(formula, claim, calculus, Choices())
    except UnknownError:
        other = gathered(formula.node)
        if other == formula.node:
            raise
        _hold_case(replace(formula, node=other, source=""), claim, calculus, Choices())


def _hold_roughly(formula: Formula, claim: Claim, domain: Domain) -> bool:
    """Whether ranges alone show the claim on a whole domain."""
    if claim.kind == "finite" or claim.factor is not None:
        return False
    try:
        low, high = domain.low[0].low, INFINITY if domain.high is None else domain.high[0].high
        value = range_of(formula, Interval(low, high))
        if formula.weight and not value.low >= 0:
            return False
        if claim.kind == "defined":
            return True
        bias = value.log() if formula.weight else value
        gap = bias + Calculus(domain, 2, 2).range(_ln_scale(claim, domain))
    except UnknownError:
        return False
    return bool(gap.high <= 0 if claim.kind == "upper" else gap.low >= 0)


def _hold_case(formula: Formula, claim: Claim, calculus: Calculus, choices: Choices) -> None:
    """Show the claim under some choices of branches, or else under both choices for one that is open."""
    try:
        _hold_plainly(formula, claim, Reading(calculus, choices))
    except UnknownError:
        if not choices.open or len(choices.decided) >= MAX_CHOICES:
            raise
        for case in choices.split(choices.open[0]):
            _hold_case(formula, claim, calculus, case)


def _hold_plainly(formula: Formula, claim: Claim, reading: Reading) -> None:
    _have_value(formula, reading)
    if claim.kind == "defined":
        return
    if _is_zero(formula, reading):
        if claim.kind not in ("upper", "finite") and not (claim.factor and _largest(claim.factor, reading) <= 0):
            raise UnknownError("a weight that is 0")
    elif claim.kind == "finite":
        raise UnknownError("a weight that may not be 0")
    else:
        _compare(formula, claim, reading, _ln_scale(claim, reading.calculus.domain))


def _compare(formula: Formula, claim: Claim, reading: Reading, ln_scale: Expansion) -> None:
    """Show a bound in one of several ways: by logarithms, taken as they come or for each summand, or by values."""
    ways: list[Callable[[], None]] = []
    if not formula.weight:
        ways.append(lambda: _compare_sizes(reading, claim, Size(reading.value(formula.node)), ln_scale))
    else:
        ways.append(lambda: _compare_sizes(reading, claim, reading.size(formula.node), ln_scale))
        if any(node.op == "+" for node in formula.node.walk()):
            second = Reading(reading.calculus, reading.choices, by_logarithms=True)
            ways.append(lambda: _compare_sizes(second, claim, second.size(formula.node), ln_scale))
        if claim.factor is None:
            ways.append(lambda: _compare_values(reading, claim, reading.value(formula.node), ln_scale))
    if claim.factor is not None:
        ways.append(lambda: _compare_with_largest_factor(formula, claim, reading, ln_scale))
    reason = UnknownError("")
    for way in ways:
        try:
            return way()
        except UnknownError as error:
            reason = error
    raise reason


def _is_zero(formula: Formula, reading: Reading) -> bool:
    """Whether the weight is shown to be 0."""
    try:
        result = reading.value_or_nothing(formula.node)
    except UnknownError:
        return False
    return result == NULL if formula.weight else isinstance(result, NothingType)


def _have_value(formula: Formula, reading: Reading) -> None:
    """Show that the weight has a value that is not negative."""
    if not formula.weight:
        reading.value_or_nothing(formula.node)
    elif not reading.not_negative(formula.node):
        raise UnknownError("a weight that may be negative")


def _ln_scale(claim: Claim, domain: Domain) -> Expansion:
    """ln S - ln_constant."""
    total = constant(rational(-claim.ln_constant))
    for i in range(1, claim.depth + 2):
        c = ONE if i <= claim.depth else rational(claim.exponent)
        if not c.terms:
            continue
        if not domain.positive(i):
            raise UnknownError("the scale is not above 1 from here on")
        total = add(total, ((level(i), c),))
    return total


def _compare_sizes(reading: Reading, claim: Claim, size: Size, ln_scale: Expansion) -> None:
    """ln b + ln S - ln_constant has the right sign."""
    if claim.factor is not None:
        size = size.plus(reading.size(claim.factor.node), MINUS)
    gap = add(size.log, ln_scale)
    for node, e in size.waves.items():
        most = reading.wave_range(node).high
        if not most.is_finite() or (constants.sign(e) > 0) != (claim.kind == "upper"):
            raise UnknownError("a factor that touches 0")
        bound = interval(e) * Interval(most, most).log()
        gap = add(gap, constant(bound))
    _require(reading, negative(gap) if claim.kind == "upper" else gap, exact=not size.waves)


def _compare_with_largest_factor(formula: Formula, claim: Claim, reading: Reading, ln_scale: Expansion) -> None:
    """The same for a factor q of which only its largest value counts; if that is not positive, nothing is claimed."""
    assert claim.factor is not None
    most = _largest(claim.factor, reading)
    if most > 0:
        size = reading.size_without_waves(formula.node) if formula.weight else Size(reading.value(formula.node))
        gap = add(size.log, ln_scale, negative(constant(Interval(most, most).log())))
        _require(reading, gap, exact=False)


def _largest(factor: Formula, reading: Reading) -> arb:
    """The largest value of a factor."""
    return reading.calculus.range(reading.value(factor.node)).high


def _require(reading: Reading, gap: Expansion, *, exact: bool = True) -> None:
    """Make sure that the gap between the two sides is never negative."""
    if not reading.calculus.never_negative(gap):
        if exact and not reading.choices.decided and reading.calculus.sign(gap) == -1:
            raise RefutedError("far out" if reading.calculus.domain.high is None else "on a whole range")
        raise UnknownError("the two sides are too close, or the claim is false")


def _compare_values(reading: Reading, claim: Claim, value: Expansion, ln_scale: Expansion) -> None:
    """b - exp(ln_constant)/S has the right sign."""
    bound = reading.calculus.exp(negative(ln_scale))
    gap = add(bound, negative(value))
    _require(reading, gap if claim.kind == "upper" else negative(gap))


# ---------------------------------------------------------------------------------------------------- one distance
def hold_at(formula: Formula, claim: Claim, t: int) -> None:
    """Show the claim at one distance, or raise RefutedError or UnknownError."""
    if formula.is_class:  # a range of values, one for each member
        with ctx.workprec(BITS):
            if not _hold_roughly(formula, claim, Domain.between(t, t)):
                raise UnknownError(f"at t = {t} some members may exceed the bound")
        return
    for bits in (64, 256):
        with ctx.workprec(bits + t.bit_length()):
            result = _at(formula, claim, arb(t))
        if result is not None:
            break
    else:
        with ctx.workprec(BITS):
            rough = _hold_roughly(formula, claim, Domain.between(t, t))
        result = rough or _exactly_at(formula, claim, t)
    if not result:
        raise RefutedError(f"at t = {t}")


def _at(formula: Formula, claim: Claim, t: arb) -> bool | None:
    """Whether the claim holds at t; None if balls do not tell."""
    value = formula.weight_ball(t) if formula.weight else formula.ball(t)
    zero = value.is_zero() if formula.weight else value.is_exact() and value == -INFINITY
    bias = value if not formula.weight else value.log() if value > 0 else arb("nan")
    weight = value if formula.weight else value.exp()
    if claim.kind == "finite":
        return True if zero else False if bias.is_finite() else None
    if zero:
        return True if claim.kind in ("upper", "defined") else None
    if not bias.is_finite() and not (weight.is_finite() and weight >= 0):
        return False if weight < 0 else None
    if claim.kind == "defined":
        return True
    bound, lower = _ball(claim.ln_constant), t
    for _ in range(claim.depth):
        lower = lower.log()
        bound = bound - lower
    if claim.exponent:
        bound = bound - _ball(claim.exponent) * lower.log()
    if claim.factor is not None:
        bound = bound + claim.factor.ball(t).log()
    sides = (bias, bound) if bias.is_finite() and bound.is_finite() else (weight, bound.exp())
    less, more = sides if claim.kind == "upper" else sides[::-1]
    return True if less <= more else False if less > more else None


def _ball(q: Fraction) -> arb:
    return arb(fmpq(q.numerator, q.denominator))


def _exactly_at(formula: Formula, claim: Claim, t: int) -> bool:
    """The same with exact constants, for ties that no precision decides."""
    with ctx.workprec(256):
        here = {"t": number(t)}
        reading = Reading(Calculus(Domain.between(3, 3), 2, 8))
        node = substitute(formula.node, here)
        if claim.kind == "finite":
            if _is_zero(Formula(node, formula.weight), reading):
                return True
            raise UnknownError(f"whether the weight is 0 at t = {t}")
        value = reading.value_or_nothing(node)
        if isinstance(value, NothingType):
            return claim.kind in ("upper", "defined")
        if formula.weight and not reading.calculus.never_negative(value):
            raise UnknownError(f"whether the weight is negative at t = {t}")
        if claim.kind == "defined":
            return True
        if claim.factor is not None and not reading.value(substitute(claim.factor.node, here)):
            return True
        if formula.weight and not value:
            return claim.kind == "upper"
        if formula.weight:
            value = reading.size_without_waves(node).log
        logs, inner = constants.ZERO, rational(t)
        for i in range(claim.depth + 1):
            inner = constants.log(inner) if i < claim.depth or claim.exponent else constants.ZERO
            logs = logs + inner * (ONE if i < claim.depth else rational(claim.exponent))
        gap = add(value, constant(logs - rational(claim.ln_constant)))
        if claim.factor is not None:
            factor = reading.size_without_waves(substitute(claim.factor.node, here))
            gap = add(gap, scale(factor.log, UNIT, MINUS))
        if reading.calculus.never_negative(negative(gap) if claim.kind == "upper" else gap):
            return True
        raise UnknownError(f"which side is larger at t = {t}")
