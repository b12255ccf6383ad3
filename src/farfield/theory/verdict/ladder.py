"""The test of convergence: the ladder of Bertrand, and a claim with explicit numbers for what it finds.

The checker's calculus for large distances (checker/families.py) finds the expansion of ln b and how deep it must be
compared with 1/t, 1/(t ln t), ...; on [X, oo) the same calculus gives the constant of an inequality. Nothing of this is
trusted: the checker proves the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import arb, ctx

from farfield.formula import Formula, Node, tree
from farfield.formula.spelling import Sentence, decimal_text, say
from farfield.theory.checker.claims import Claim, Place, wording
from farfield.theory.checker.evaluation import Choices, Evaluator, Size
from farfield.theory.checker.examination import ORDERS, examine, ln_scale
from farfield.theory.checker.expansions import Calculus, Expansion, add
from farfield.theory.checker.families import Family, Leaf
from farfield.theory.checker.monomials import (
    UNIT,
    Domain,
    compare,
    constant_node,
    expansion_node,
    exponentials,
    level_node,
)
from farfield.theory.errors import UndecidedError, UnknownError
from farfield.theory.exact.constants import Constant, ball, rational, sign
from farfield.theory.verdict.verdict import B, Settle, Verdict, conclusion

MINUS_LOG = tree.negative(tree.call("log", B))
PLACES = (
    *(Place(1 << power) for power in (2, 4, 6, 8, 10, 13, 16, 20, 30)),
    Place(50, 1), Place(1000, 1), Place(10**6, 1), Place(50, 2), Place(20, 3), Place(1000, 3),
)  # fmt: skip
MAX_CLAIMS = 12  # that are put before the checker


def decide(formula: Formula) -> Leaf:
    """The verdict on the series of a formula without open parameters; UndecidedError if the ladder cannot tell."""
    leaf = Family(formula).tree()
    assert isinstance(leaf, Leaf), "without parameters there is one case"
    if leaf.verdict == "undefined":
        raise UndecidedError(f"{leaf.reason}, so the formula seems to have no value for large t")
    if leaf.verdict == "undecided":
        raise UndecidedError(leaf.reason)
    return leaf


def explain(leaf: Leaf) -> list[Sentence]:
    """The steps of the ladder for one expansion; none where the weight is 0 for large t."""
    if leaf.kind == "finite":
        return []
    expansion = expansion_node(tuple((m, -c) for m, c in leaf.log_weight))
    steps = [say(tree.relation(MINUS_LOG, "=", expansion), " as t grows")]
    for depth in range(leaf.depth + 1):
        inner = tree.total([MINUS_LOG, *(tree.negative(level_node(i)) for i in range(1, depth + 1))])
        quotient = Node("/", (inner, level_node(depth + 1)))
        if depth < leaf.depth:
            steps.append(say(quotient, " tends to ", tree.ONE))
            steps.append(say("the limit is exactly 1, so compare one logarithm deeper"))
        else:
            steps.append(say(quotient, _limit(leaf)))
    return steps


def _limit(leaf: Leaf) -> Sentence:
    if leaf.limits is None:
        return say(" tends to infinity" if leaf.verdict == "converges" else " tends to minus infinity")
    low, high = leaf.limits
    if low == high:
        return say(" tends to ", constant_node(low))
    side = "above 1" if leaf.verdict == "converges" else "below 1"
    return say(" has limits between ", constant_node(low), " and ", constant_node(high), f", {side}")


# ------------------------------------------------------------------------------------------------ explicit claims
def claim_for(formula: Formula, leaf: Leaf, start: int) -> Claim | None:
    """A claim about every t from an explicit distance on, which the checker accepts; None if none was found."""
    for count, claim in enumerate(claims(formula, leaf)):
        if count == MAX_CLAIMS:
            break
        if examine(formula, leaf.verdict, claim, start=start).accepted:
            return claim
    return None


def claims(formula: Formula, leaf: Leaf) -> Iterator[Claim]:
    """Claims that may prove a verdict, the ones with early distances and neat numbers first."""
    for order in ORDERS[:2]:
        for place in PLACES:
            with ctx.workprec(128):
                domain = Domain(exponentials(place.whole, place.nesting), None)
                for log_weight in log_weights(formula, Calculus(domain, *order)):
                    if log_weight is None:
                        yield Claim("finite", place)
                        continue
                    for exponent in exponents(leaf):
                        claim = bounding_claim(log_weight, Calculus(domain, *order), place, leaf, exponent)
                        if claim is not None:
                            yield claim


def log_weights(formula: Formula, calculus: Calculus) -> Iterator[Expansion | None]:
    """Enclosures of ln b on a whole domain, in the ways that the checker knows; None where the weight is 0."""
    for by_logarithms in (False, True) if formula.weight else (False,):
        try:
            evaluator = Evaluator(calculus, Choices(), by_logarithms)
            if not formula.weight:
                yield evaluator.value_or_none(formula.node)
                continue
            size = _size(evaluator, formula.node)
            if size is None or not size.waves:
                yield None if size is None else size.log
        except (UnknownError, OverflowError):
            continue


def _size(evaluator: Evaluator, node: Node) -> Size | None:
    try:
        if evaluator.value_or_none(node) == ():
            return None
    except UnknownError:
        pass
    return evaluator.size(node)


def bounding_claim(
    log_weight: Expansion, calculus: Calculus, place: Place, leaf: Leaf, exponent: Fraction
) -> Claim | None:
    """The claim with the smallest constant for one exponent; None if it does not hold from this place on."""
    up, depth = leaf.verdict == "converges", leaf.depth
    if not exponent and depth:
        depth, exponent = depth - 1, Fraction(1)  # t*log(t)**0 is t**1
    claim = Claim("upper" if up else "lower", place, Fraction(0), depth, exponent)
    try:
        end = excess(log_weight, calculus, claim)
    except (UnknownError, OverflowError):
        return None
    return None if end is None else Claim(claim.kind, place, Fraction(safe_decimal(end, up)), depth, exponent)


def excess(log_weight: Expansion, calculus: Calculus, claim: Claim) -> arb | None:
    """The end of ln b + ln S on the whole domain, above for an upper claim and below for a lower one."""
    gap = add(log_weight, ln_scale(claim, calculus.domain))
    grows = tuple(term for term in gap if compare(term[0], UNIT) > 0)
    if grows and calculus.sign(grows) != (-1 if claim.kind == "upper" else 1):
        return None
    rest = calculus.range(gap[len(grows) :])
    end = rest.high if claim.kind == "upper" else rest.low
    return end if abs(end) < 1e300 else None  # a constant that is no double bounds nothing


def exponents(leaf: Leaf) -> list[Fraction]:
    """Exponents between 1 and the limit, the neatest first."""
    limit = None if leaf.limit is None else leaf.limit.fraction
    if leaf.verdict == "converges":
        if leaf.limit is None:
            return [Fraction(2)]
        return [_between(leaf.limit), *([limit] if limit is not None and limit > 1 else [])]
    return [Fraction(0), *([limit] if limit is not None and 0 < limit < 1 else []), Fraction(1)]


def _between(high: Constant) -> Fraction:
    """A short decimal strictly between 1 and a larger constant, about the middle."""
    with ctx.workprec(256):
        middle, gap = (1 + ball(high)) / 2, ball(high) - 1
        for digits in range(1, 70):
            text = middle.mid().str(digits, radius=False)
            value = Fraction(text)
            if value > 1 and sign(high - rational(value)) > 0 and abs(middle - arb(text)) < gap / 3:
                return value
    raise UndecidedError("the limit is too close to 1")


def safe_decimal(value: arb, up: bool) -> str:
    """A short decimal on the safe side of a number."""
    size = max(abs(float(value.mid())), 1e-3)
    step = Fraction(10) ** (len(str(int(size))) - 5)
    steps = value / (arb(step.numerator) / step.denominator)
    whole = steps.upper().ceil() if up else steps.lower().floor()
    exact = Fraction(int(whole.fmpz())) * step
    return ("-" if exact < 0 else "") + decimal_text(abs(exact))


# ------------------------------------------------------------------------------------------------ the route
def by_ladder(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """The verdict by the ladder, with a claim that the checker accepts."""
    leaf = decide(formula)
    claim = claim_for(formula, leaf, start)
    if claim is None:
        raise UndecidedError(f"the series seems to be one that {leaf.verdict}, but no certificate of that was found")
    steps = (*explain(leaf), explicit_step(claim), conclusion(leaf.verdict, start))
    return Verdict(formula.text(), leaf.verdict, None, steps, claim, start=start)


def explicit_step(claim: Claim) -> Sentence:
    """The claim, and why the verdict follows from it."""
    if claim.kind == "finite":
        return say(wording(claim), ": the sum has finitely many terms")
    why = f"the sum of that bound {claim.proves} (integral test)" if claim.exponent else "the terms do not tend to 0"
    return say("explicitly, ", wording(claim), f"; {why}")
