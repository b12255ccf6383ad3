"""The examination of a certificate: it is accepted only if its claims are proven for all distances.

Whether a claim implies the verdict is a matter of its exponent: the sum of 1/S(t) converges if and only if s > 1
(Bertrand). So an upper bound with s > 1 proves convergence and a lower bound with s <= 1 divergence. A factor q of
positive mean value changes nothing: with s(t) = 1/S(t), which is monotone, the sum of (q - mean) s is smaller than that
of s, by summation by parts, because the partial sums of q - mean are bounded.

The inequality itself is proven for every integer from its start on, and so is that the formula has a value there and
from the start of the series on. Far distances are treated at once: on the half line from some X on, an expansion of the
gap between the two sides has no negative value. Those before X are looked at one by one, or over ranges that are cut
where they do not tell. Nothing is sampled: what cannot be proven is not accepted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from flint import arb, ctx

from farfield.formula import Formula, Node, number
from farfield.formula.algebras import to_ball
from farfield.formula.tree import collect_factors, substitute
from farfield.theory.budget import Effort
from farfield.theory.checker import monomials
from farfield.theory.checker.claims import BOUNDS, Certificate, Claim, ClassesClaim, Place, SumClaim, read, wording
from farfield.theory.checker.evaluation import Choices, Evaluator, Size
from farfield.theory.checker.expansions import NULL, Calculus, add, constant, interval, negative, scale
from farfield.theory.checker.monomials import UNIT, Domain, Expansion, exponentials, level
from farfield.theory.checker.waves import mean_value
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import MINUS, ONE, rational, sign
from farfield.theory.exact.intervals import INFINITY, Interval, range_of

BITS = 128
ORDERS = ((2, 8), (4, 12), (8, 24))  # of power series, and the terms that are kept
ONE_BY_ONE = 64  # distances that are looked at singly
SINGLE = 5  # what one of them costs, in products of terms
RANGES = 300  # ranges that are looked at, at most
MAX_CHOICES = 4  # branches that are looked at one by one
FAR = (Place(1000, 1), Place(10**6, 1), Place(50, 2), Place(20, 3), Place(1000, 3))
SHIFTS = (0, 1, 2, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 64)


@dataclass(frozen=True)
class Examination:
    """What the checker says of a certificate: accepted with the steps of its proof, or refused with the reason."""

    accepted: bool
    proof: tuple[str, ...] = ()
    refused: str = ""

    def __bool__(self) -> bool:
        return self.accepted


class RefusedError(Exception):
    """The certificate is not accepted, and why."""


class RefutedError(Exception):
    """The claim is false, and where."""


def examine(
    formula: Formula, verdict: str, certificate: Certificate | Mapping[str, object], *, start: int = 0
) -> Examination:
    """Accept a certificate if it proves the verdict on the series from `start` on; ValueError if it is malformed.

    Of a bounded family the series is that of its upper bound.
    """
    if formula.parameters:
        raise ValueError(f"a certificate is about a formula without parameters, not one in {formula.parameters}")
    claim = read(certificate)
    formula = formula.upper_bound.primitive
    constants.forget()
    monomials.forget()
    try:
        if claim.proves != verdict:
            raise RefusedError(f"the certificate proves that the series {claim.proves}, but the verdict is {verdict}")
        effort = Effort()
        proof = [*_examine(formula, claim, start, effort), *_defined(formula, claim, start, effort)]
    except RefusedError as refused:
        return Examination(False, refused=str(refused))
    return Examination(True, tuple(proof))


# ---------------------------------------------------------------------------------------------------- claims
def _examine(formula: Formula, claim: Certificate, start: int, effort: Effort) -> Iterator[str]:
    """Prove a certificate; yields the steps, raises RefusedError."""
    if isinstance(claim, Claim):
        _logic(claim)
        yield _proven(formula, claim, effort)
    elif isinstance(claim, ClassesClaim):
        yield from _examine_classes(formula, claim, start, effort)
    else:
        parts = [formula.with_node(n) for n in summands(formula)]
        if isinstance(claim, SumClaim):
            if len(parts) != len(claim.parts):
                raise RefusedError(f"the weight has {len(parts)} summands, the certificate {len(claim.parts)}")
            for part, one in zip(parts, claim.parts, strict=True):
                if one.proves != "converges":
                    raise RefusedError("a sum converges only if every summand does")
                yield from _examine(part, one, start, effort)
        else:
            if claim.index >= len(parts) or claim.part.proves != "diverges":
                raise RefusedError("the certificate names no summand that diverges")
            yield from _examine(parts[claim.index], claim.part, start, effort)
            for part in parts:
                yield _proven(part, Claim("defined", Place(start)), effort)


def summands(formula: Formula) -> tuple[Node, ...]:
    """The two sides of a weight that is a sum."""
    if not formula.weight or formula.node.op != "+":
        raise RefusedError("the weight is not a sum of weights")
    return formula.node.args


def _examine_classes(formula: Formula, claim: ClassesClaim, start: int, effort: Effort) -> Iterator[str]:
    if claim.proves == "converges" and None in claim.classes:
        raise RefusedError("the series converges only if every class does")
    for r, one in enumerate(claim.classes):
        if one is None or one.proves != claim.proves:
            continue
        first = max(0, -((r - start) // claim.modulus))
        for step in _examine(residue_class(formula, claim.modulus, r), one, first, effort):
            yield f"with t = {claim.modulus}*n + {r}: {step}"


def residue_class(formula: Formula, modulus: int, r: int) -> Formula:
    """The formula along t = modulus * n + r, with n called t."""
    line = Node("+", (Node("*", (number(modulus), Node("name", (), "t"))), number(r)))
    return formula.with_node(substitute(formula.node, {"t": line}))


def _logic(claim: Claim) -> None:
    """RefusedError if a claim, true or not, would prove nothing."""
    if claim.kind not in BOUNDS:
        return
    if claim.kind == "upper" and not claim.exponent > 1:
        raise RefusedError(f"an upper bound with the exponent {claim.exponent} proves nothing: it must exceed 1")
    if claim.kind != "upper" and not claim.exponent <= 1:
        raise RefusedError(f"a lower bound with the exponent {claim.exponent} proves nothing: it must not exceed 1")
    if claim.kind == "mean":
        _logic_of_mean(claim)
    if claim.depth or (claim.exponent and claim.start == Place(0)):
        with ctx.workprec(128):
            levels = exponentials(claim.start.whole, claim.start.nesting)
        if claim.depth >= len(levels) or not levels[claim.depth].low > 0:
            raise RefusedError(f"the scale is not positive from t = {claim.start} on")


def _logic_of_mean(claim: Claim) -> None:
    assert claim.factor is not None
    if not claim.mean > 0 or not claim.exponent >= 0:
        raise RefusedError("a mean value and an exponent that prove nothing: they must be positive, and not negative")
    try:
        with ctx.workprec(128):
            gap = sign(mean_value(claim.factor.node) - rational(claim.mean))
    except UnknownError as error:
        raise RefusedError(f"the mean value of the factor is not known: {error}") from None
    if gap < 0:
        raise RefusedError(f"the factor's mean value is less than {claim.mean}")


def _proven(formula: Formula, claim: Claim, effort: Effort) -> str:
    """The proof of one claim as a step; RefusedError if there is none."""
    said = "the formula has a value" if claim.kind == "defined" else str(wording(claim))
    try:
        proof = prove(formula, claim, effort)
    except RefutedError as error:
        raise RefusedError(f"it is false {error} that {said}") from None
    except UnknownError as error:
        raise RefusedError(f"it could not be proven that {said} ({error})") from None
    return f"proven for all t >= {claim.start}: {said} ({proof})"


def _defined(formula: Formula, claim: Certificate, start: int, effort: Effort) -> list[str]:
    """Show that the formula has a value from the start of the series on, where the claims do not say so."""
    if isinstance(claim, Claim) and claim.start.nesting == 0 and claim.start.whole <= start:
        return []
    return [_proven(formula, Claim("defined", Place(start)), effort)]


# ---------------------------------------------------------------------------------------------------- all distances
def prove(formula: Formula, claim: Claim, effort: Effort) -> str:
    """How the claim is proven for every distance from its start on; UnknownError or RefutedError if it is not."""
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
                near = [] if start.nesting else _near(formula, claim, start.whole, far.whole, order, effort)
            except UnknownError as error:  # a longer series may do from an earlier distance on
                reason = error
                break
            return ", ".join([*near, f"all t >= {far} at once"])
    for far in FAR:  # a claim that is false only far out can at least be called so
        with contextlib.suppress(UnknownError), ctx.workprec(BITS):
            _hold(formula, claim, Domain(exponentials(far.whole, far.nesting), None), ORDERS[0], effort)
    raise reason


def _near(formula: Formula, claim: Claim, first: int, far: int, order: tuple[int, int], effort: Effort) -> list[str]:
    """Show the claim for first <= t < far, distances one by one or ranges of them; says how many of each."""
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
    return [f"{singles} one by one"] * bool(singles) + [f"{ranges} range{'s' * (ranges > 1)}"] * bool(ranges)


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
        other = collect_factors(formula.node)
        if other == formula.node:
            raise
        _hold_case(formula.with_node(other), claim, calculus, Choices())


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
        gap = bias + Calculus(domain, 2, 2).range(ln_scale(claim, domain))
    except UnknownError:
        return False
    return bool(gap.high <= 0 if claim.kind == "upper" else gap.low >= 0)


def _hold_case(formula: Formula, claim: Claim, calculus: Calculus, choices: Choices) -> None:
    """Show the claim under some choices of branches, or else under both choices for one that is open."""
    try:
        _hold_plainly(formula, claim, Evaluator(calculus, choices))
    except UnknownError:
        if not choices.open or len(choices.decided) >= MAX_CHOICES:
            raise
        for case in choices.split(choices.open[0]):
            _hold_case(formula, claim, calculus, case)


def _hold_plainly(formula: Formula, claim: Claim, evaluator: Evaluator) -> None:
    _have_value(formula, evaluator)
    if claim.kind == "defined":
        return
    if _is_zero(formula, evaluator):
        if claim.kind not in ("upper", "finite") and not (claim.factor and _largest(claim.factor, evaluator) <= 0):
            raise UnknownError("a weight that is 0")
    elif claim.kind == "finite":
        raise UnknownError("a weight that may not be 0")
    else:
        _compare(formula, claim, evaluator, ln_scale(claim, evaluator.calculus.domain))


def _compare(formula: Formula, claim: Claim, evaluator: Evaluator, ln_scale: Expansion) -> None:
    """Show a bound in one of several ways: by logarithms, taken as they come or for each summand, or by values."""
    ways: list[Callable[[], None]] = []
    if not formula.weight:
        ways.append(lambda: _compare_sizes(evaluator, claim, Size(evaluator.value(formula.node)), ln_scale))
    else:
        ways.append(lambda: _compare_sizes(evaluator, claim, evaluator.size(formula.node), ln_scale))
        if any(node.op == "+" for node in formula.node.walk()):
            second = Evaluator(evaluator.calculus, evaluator.choices, by_logarithms=True)
            ways.append(lambda: _compare_sizes(second, claim, second.size(formula.node), ln_scale))
        if claim.factor is None:
            ways.append(lambda: _compare_values(evaluator, claim, evaluator.value(formula.node), ln_scale))
    if claim.factor is not None:
        ways.append(lambda: _compare_with_largest_factor(formula, claim, evaluator, ln_scale))
    reason = UnknownError("")
    for way in ways:
        try:
            return way()
        except UnknownError as error:
            reason = error
    raise reason


def _is_zero(formula: Formula, evaluator: Evaluator) -> bool:
    """Whether the weight is shown to be 0."""
    try:
        result = evaluator.value_or_none(formula.node)
    except UnknownError:
        return False
    return result == NULL if formula.weight else result is None


def _have_value(formula: Formula, evaluator: Evaluator) -> None:
    """Show that the weight has a value that is not negative."""
    if not formula.weight:
        evaluator.value_or_none(formula.node)
    elif not evaluator.not_negative(formula.node):
        raise UnknownError("a weight that may be negative")


def ln_scale(claim: Claim, domain: Domain) -> Expansion:
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


def _compare_sizes(evaluator: Evaluator, claim: Claim, size: Size, ln_scale: Expansion) -> None:
    """ln b + ln S - ln_constant has the right sign."""
    if claim.factor is not None:
        size = size.plus(evaluator.size(claim.factor.node), MINUS)
    gap = add(size.log, ln_scale)
    for node, e in size.waves.items():
        most = evaluator.wave_range(node).high
        if not most.is_finite() or (constants.sign(e) > 0) != (claim.kind == "upper"):
            raise UnknownError("a factor that touches 0")
        bound = interval(e) * Interval(most, most).log()
        gap = add(gap, constant(bound))
    _require(evaluator, negative(gap) if claim.kind == "upper" else gap, exact=not size.waves)


def _compare_with_largest_factor(formula: Formula, claim: Claim, evaluator: Evaluator, ln_scale: Expansion) -> None:
    """The same for a factor q of which only its largest value counts; if that is not positive, nothing is claimed."""
    assert claim.factor is not None
    most = _largest(claim.factor, evaluator)
    if most > 0:
        size = evaluator.size_without_waves(formula.node) if formula.weight else Size(evaluator.value(formula.node))
        gap = add(size.log, ln_scale, negative(constant(Interval(most, most).log())))
        _require(evaluator, gap, exact=False)


def _largest(factor: Formula, evaluator: Evaluator) -> arb:
    """The largest value of a factor."""
    return evaluator.calculus.range(evaluator.value(factor.node)).high


def _require(evaluator: Evaluator, gap: Expansion, *, exact: bool = True) -> None:
    """Make sure that the gap between the two sides is never negative."""
    if not evaluator.calculus.never_negative(gap):
        if exact and not evaluator.choices.decided and evaluator.calculus.sign(gap) == -1:
            raise RefutedError("far out" if evaluator.calculus.domain.high is None else "on a whole range")
        raise UnknownError("the two sides are too close, or the claim is false")


def _compare_values(evaluator: Evaluator, claim: Claim, value: Expansion, ln_scale: Expansion) -> None:
    """b - exp(ln_constant)/S has the right sign."""
    bound = evaluator.calculus.exp(negative(ln_scale))
    gap = add(bound, negative(value))
    _require(evaluator, gap if claim.kind == "upper" else negative(gap))


# ---------------------------------------------------------------------------------------------------- one distance
def hold_at(formula: Formula, claim: Claim, t: int) -> None:
    """Show the claim at one distance, or raise RefutedError or UnknownError."""
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
    bound, lower = to_ball(claim.ln_constant), t
    for _ in range(claim.depth):
        lower = lower.log()
        bound = bound - lower
    if claim.exponent:
        bound = bound - to_ball(claim.exponent) * lower.log()
    if claim.factor is not None:
        bound = bound + claim.factor.ball(t).log()
    sides = (bias, bound) if bias.is_finite() and bound.is_finite() else (weight, bound.exp())
    less, more = sides if claim.kind == "upper" else sides[::-1]
    return True if less <= more else False if less > more else None


def _exactly_at(formula: Formula, claim: Claim, t: int) -> bool:
    """The same with exact constants, for ties that no precision decides."""
    with ctx.workprec(256):
        here = {"t": number(t)}
        evaluator = Evaluator(Calculus(Domain.between(3, 3), 2, 8))
        node = substitute(formula.node, here)
        if claim.kind == "finite":
            if _is_zero(Formula(node, formula.weight), evaluator):
                return True
            raise UnknownError(f"whether the weight is 0 at t = {t}")
        value = evaluator.value_or_none(node)
        if value is None:
            return claim.kind in ("upper", "defined")
        if formula.weight and not evaluator.calculus.never_negative(value):
            raise UnknownError(f"whether the weight is negative at t = {t}")
        if claim.kind == "defined":
            return True
        if claim.factor is not None and not evaluator.value(substitute(claim.factor.node, here)):
            return True
        if formula.weight and not value:
            return claim.kind == "upper"
        if formula.weight:
            value = evaluator.size_without_waves(node).log
        logs, inner = constants.ZERO, rational(t)
        for i in range(claim.depth + 1):
            inner = constants.log(inner) if i < claim.depth or claim.exponent else constants.ZERO
            logs = logs + inner * (ONE if i < claim.depth else rational(claim.exponent))
        gap = add(value, constant(logs - rational(claim.ln_constant)))
        if claim.factor is not None:
            factor = evaluator.size_without_waves(substitute(claim.factor.node, here))
            gap = add(gap, scale(factor.log, UNIT, MINUS))
        if evaluator.calculus.never_negative(negative(gap) if claim.kind == "upper" else gap):
            return True
        raise UnknownError(f"which side is larger at t = {t}")
