"""Large distances, for all parameters: for which of them a series converges, with a proof for each case.

For fixed parameters every monomial that falls is at last below any bound, so a statement about the first terms of an
expansion holds from some distance X on, which is left open (`Germs`). What X must satisfy is kept: it is any distance
from which on each of the `requirements` is at most `SMALL` in size.

The proof of a case is a claim about all large distances, as for a formula without parameters: b(t) <= 1/S(t) or
b(t) >= 1/S(t) with the scale S(t) = t * ln t * ... * l_m ** s, where the exponent s may depend on the parameters. Where
a sign that is needed depends on them, its three cases are looked at one by one; together they are everything, so that
the leaves of this tree cover the whole domain.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from flint import arb, ctx, fmpq

from farfield.formula import Formula, Node
from farfield.formula.functions import is_whole
from farfield.formula.tree import T, collect_factors, substitute
from farfield.theory.budget import Effort
from farfield.theory.checker import monomials
from farfield.theory.checker.evaluation import Choices, Evaluator, branch
from farfield.theory.checker.expansions import NULL, Calculus, add, constant, interval, negative, scale, sign_of_terms
from farfield.theory.checker.monomials import (
    UNIT,
    Coefficient,
    Domain,
    Expansion,
    compare,
    constant_node,
    level,
    raised,
)
from farfield.theory.errors import EmptyRegionError, UndecidedError, UnknownError
from farfield.theory.exact import constants, regions
from farfield.theory.exact.constants import MINUS, ONE, ZERO, Constant, rational, sign
from farfield.theory.exact.intervals import EVERYTHING, INFINITY, NEAR_ONE, NEAR_ZERO, SMALL, Interval, exactly
from farfield.theory.exact.regions import OpenSignError, Region, Signs, parameters_of

ORDERS = ((1, 4), (2, 8), (4, 12), (8, 24))
DEPTH = 6  # logarithms that are tried
MAX_LEAVES = 240
MAX_WORK = 2500  # signs that depend on parameters
EFFORT = 20_000
SIGNS = {
    ">": regions.POSITIVE, ">=": regions.NOT_NEGATIVE, "=": regions.NULL, "!=": regions.NOT_NULL,
    "<=": regions.NOT_POSITIVE, "<": regions.NEGATIVE,
}  # fmt: skip
NEGATIVE_WEIGHT = "the weight is negative for large t"
_TWO, _HALF = rational(2), rational(fmpq(1, 2))
_LARGE = 1 / (2 * SMALL)
Result = TypeVar("Result")


# ---------------------------------------------------------------------------------------------------- large distances
class Far(Domain):
    """All distances from some X on, which is left open."""

    def __init__(self) -> None:
        super().__init__((), None)

    def positive(self, i: int) -> bool:
        return True


class Germs(Calculus):
    """Functions of expansions, for all large distances."""

    def __init__(self, region: Region | None, order: int, size: int, effort: Effort | None = None):
        super().__init__(Far(), order, size, effort)
        self.region = region  # of the parameters; None without parameters

    def _require_small(self, f: Expansion) -> None:
        if self.region is not None:
            self.region.require_small(f)

    def lead_range(self, f: Expansion) -> Interval:
        if len(f) < 2:
            return interval(f[0][1]) if f else exactly(0)
        (m, c), *others = f
        rest = scale(tuple(others), raised(m, MINUS), ONE)
        nearest = _nearest_to_zero(c)
        if nearest is None:
            self._require_small(rest)
            return interval(c) + NEAR_ZERO
        self._require_small(scale(rest, UNIT, constants.inverse(nearest)))
        return interval(c) * NEAR_ONE

    def terms_range(self, f: Expansion) -> Interval:
        return self.range(f)

    def range(self, f: Expansion) -> Interval:
        if not f:
            return exactly(0)
        order = compare(f[0][0], UNIT)
        if order == 0:
            return self.lead_range(f)
        lead = interval(f[0][1])
        if order < 0:
            self._require_small(f)
            self.lead_range(f)
            up, down = (0 if part else SMALL for part in (lead.negative, lead.positive))
            return Interval(-arb(down), arb(up))
        nearest = _nearest_to_zero(f[0][1])
        if nearest is None:
            return EVERYTHING
        self.lead_range(f)
        self._require_small(((raised(f[0][0], MINUS), constants.inverse(nearest)),))
        return Interval(_LARGE, INFINITY) if lead.positive else Interval(-INFINITY, -_LARGE)

    def near_power(self, d: Expansion, near_one: Interval, e: Constant) -> Interval:
        if e.region is None or not d:
            return super().near_power(d, near_one, e)
        self._require_small(scale(d, UNIT, e))  # then e log(1 + d) is at most SMALL/(1 - SMALL) in size
        return NEAR_ONE + NEAR_ZERO

    def sign(self, f: Expansion) -> int | None:
        if not f:
            return 0
        c = f[0][1]
        side = sign(c) if isinstance(c, Constant) else 1 if c.positive else -1 if c.negative else None
        if side is None:
            return sign_of_terms(f)
        if side == 0:  # only now is it seen that the first term vanishes
            return self.sign(f[1:])
        self.lead_range(f)
        return side

    def never_negative(self, f: Expansion) -> bool:
        return self.sign(f) in (0, 1) or all(interval(c).not_negative for _, c in f)

    def floor(self, f: Expansion) -> Expansion:
        if len(f) == 1 and f[0][0] == UNIT and isinstance(f[0][1], Constant) and f[0][1].region is not None:
            return constant(constants.floor(f[0][1]))
        return super().floor(f)


def _nearest_to_zero(c: Coefficient) -> Constant | None:
    """The number of a coefficient that is nearest to 0; None if it may be 0."""
    if isinstance(c, Constant):
        return None if 0 in constants.signs(c) else c
    return c.ends[0] if c.positive else c.ends[1] if c.negative else None


def far(look: Callable[[Evaluator], Result]) -> Result:
    """What can be read off for large t, with expansions that are as long as it takes; UndecidedError otherwise."""
    reason = UnknownError("nothing was tried")
    for order in ORDERS[1:]:
        try:
            with ctx.workprec(128):
                return look(Evaluator(Germs(None, *order)))
        except UnknownError as error:
            reason = error
    raise reason


def value_of(node: Node) -> Constant:
    """The exact value of an expression without t; UndecidedError if it has none that can be told."""
    return far(lambda evaluator: _plain_constant(evaluator.value(node)))


def _plain_constant(f: Expansion) -> Constant:
    if not f:
        return ZERO
    if len(f) > 1 or f[0][0] != UNIT or not isinstance(f[0][1], Constant):
        raise UnknownError("an expression that is no constant")
    return f[0][1]


def linear(node: Node) -> tuple[Constant, Constant]:
    """(w, c) with node = w*t + c; UndecidedError if it is not of that form."""
    slope = shift = ZERO
    for m, c in far(lambda evaluator: evaluator.value(node)):
        if not isinstance(c, Constant) or m not in (monomials.T, UNIT):
            raise UndecidedError("an expression that is not linear in t")
        slope, shift = (c, shift) if m == monomials.T else (slope, c)
    return slope, shift


# ---------------------------------------------------------------------------------------------------- families
@dataclass(frozen=True)
class Leaf:
    """What is proven of one part of the domain."""

    verdict: str  # "converges", "diverges", "undefined", or "undecided"
    reason: str = ""  # of the last two
    kind: str = ""  # "upper", "lower", "finite": what is claimed of the weight; "parts": of each of its parts
    depth: int = 0
    exponent: Constant = ZERO
    limits: tuple[Constant, Constant] | None = None  # of (-ln b - l_1 - ...)/l_(depth + 1); None: infinite
    log_weight: Expansion = NULL
    part: Node | None = None  # the summand, or argument of max or min, whose weight decides
    parts: tuple[Leaf, ...] = ()  # all of them, where all decide together
    requirements: tuple[Expansion, ...] = field(default=(), repr=False)

    @property
    def limit(self) -> Constant | None:
        """The limit nearest to 1; None if it is infinite."""
        return None if self.limits is None else self.limits[self.verdict == "diverges"]


@dataclass(frozen=True)
class Branch(Generic[Result]):
    """The sign of a constant decides; a sign that is impossible has no child."""

    constant: Constant
    children: tuple[tuple[int, Result | Branch[Result]], ...]

    def results(self) -> Iterator[Result]:
        """What stands at the leaves below."""
        for _, child in self.children:
            if isinstance(child, Branch):
                yield from child.results()
            else:
                yield child


Tree = Leaf | Branch[Leaf]


class Family:
    """A formula with open parameters, and what is assumed of them."""

    def __init__(self, formula: Formula):
        self.formula = formula.with_node(collect_factors(formula.primitive.node))
        self._region = Region() if formula.parameters else None
        self.parameters = {name: self.region.parameter(name) for name in formula.parameters}

    @property
    def region(self) -> Region:
        """What is assumed of the parameters."""
        assert self._region is not None, "without parameters nothing is assumed"
        return self._region

    def value(self, node: Node) -> Constant:
        """An expression in the parameters as a constant."""
        with ctx.workprec(128):
            return _plain_constant(Evaluator(Germs(self.region, 2, 8), parameters=self.parameters).value(node))

    def relation(self, node: Node) -> tuple[Constant, Signs]:
        """A relation such as p > 1 as a constant and its signs."""
        return self.value(Node("-", node.args)), SIGNS[node.op]

    def tree(self) -> Tree:
        """The whole domain, in parts that are proven one by one."""
        self.leaves, self.effort = 0, Effort(EFFORT)
        return self._visit(self._prove, lambda reason: Leaf("undecided", reason))

    def results(self, look: Callable[[Evaluator], Result], assumptions: Sequence[Node]) -> set[Result | None]:
        """All results of a look at the formula, over the parts of the domain that it takes; None where it fails."""

        def attempt() -> Result | None:
            return look(Evaluator(Germs(self._region, *ORDERS[1], Effort(EFFORT)), parameters=self.parameters))

        with ExitStack() as stack:
            for relation in assumptions:
                stack.enter_context(self.region.assuming(*self.relation(relation)))
            self.leaves = 0
            result = self._visit(attempt, lambda _: None)
            return set(result.results()) if isinstance(result, Branch) else {result}

    def _visit(self, prove: Callable[[], Result], give_up: Callable[[str], Result]) -> Result | Branch[Result]:
        """The proof for all parameters that are left, or one for each case of a sign that it needs."""
        self.leaves += 1
        if self.leaves > MAX_LEAVES or (self._region is not None and self._region.work > MAX_WORK):
            return give_up("there are too many cases")
        monomials.forget()
        try:
            with ctx.workprec(128):
                return prove()
        except OpenSignError as error:
            return self._divide(error.constant, prove, give_up)
        except UnknownError as error:
            return give_up(str(error))

    def _divide(
        self, constant: Constant, prove: Callable[[], Result], give_up: Callable[[str], Result]
    ) -> Branch[Result]:
        children: list[tuple[int, Result | Branch[Result]]] = []
        formula = self.formula
        for s in (1, 0, -1):
            try:
                with self.region.assuming(constant, frozenset((s,))):
                    if s == 0:
                        self.formula = _with_value(formula, constant)
                    children.append((s, self._visit(prove, give_up)))
            except EmptyRegionError:
                continue
            finally:
                self.formula = formula
        if not children:
            raise EmptyRegionError
        return Branch(constant, tuple(children))

    def _prove(self) -> Leaf:
        """A claim that decides the series for all parameters that are left; OpenSignError names what must be known."""
        reason = UnknownError("nothing was tried")
        for order in ORDERS if self.parameters else ORDERS[1:]:
            for by_logarithms in (False, True):
                if self._region is not None:
                    self._region.requirements, self._region.postponed = {}, None
                calculus = Germs(self._region, *order, self.effort)
                try:
                    leaf = _prove(self.formula, Evaluator(calculus, Choices(), by_logarithms, self.parameters))
                    requirements = () if self._region is None else tuple(self._region.requirements)
                    return replace(leaf, requirements=requirements)
                except OpenSignError:
                    raise
                except UnknownError as error:
                    if self._region is not None and self._region.postponed is not None:
                        raise self._region.postponed from None
                    reason = error
        raise reason


def _with_value(formula: Formula, zero: Constant) -> Formula:
    """The formula with a parameter replaced by what it is where a constant is 0, if that can be solved for one."""
    for product, q in zero.terms.items():
        a = product[0][0] if len(product) == 1 and product[0][1] == 1 else None
        if a is None or a.kind != "parameter":
            continue
        rest = zero - Constant({product: q})
        if a not in parameters_of(rest):
            value = constant_node(rest * rational(-1 / q))
            return formula.with_node(collect_factors(substitute(formula.node, {a.name: value})))
    return formula


def _prove(formula: Formula, evaluator: Evaluator) -> Leaf:
    assert isinstance(evaluator.calculus, Germs)
    leaf = _prove_parts(formula, evaluator) if evaluator.parameters else None
    if leaf is not None:
        return leaf
    fault = no_value(formula, evaluator)
    if fault:
        return Leaf("undefined", fault)
    if not formula.weight:
        bias = evaluator.value_or_none(formula.node)
        return Leaf("converges", kind="finite") if bias is None else _climb(bias, evaluator.calculus)
    with _unless_unknown():
        if evaluator.value(formula.node) == NULL:
            return Leaf("converges", kind="finite")
    if not evaluator.not_negative(formula.node):
        raise UnknownError("a weight that may be negative")
    return _climb(evaluator.size_without_waves(formula.node).log, evaluator.calculus)


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """Leave the block where something is not known; a sign that depends on parameters is still asked for."""
    try:
        yield
    except OpenSignError:
        raise
    except UnknownError:
        pass


def _prove_parts(formula: Formula, evaluator: Evaluator) -> Leaf | None:
    """A sum of weights of which none is negative converges if each does, and diverges if one does.

    The largest of several weights lies between the largest one and their sum; the smallest is below each of them.
    """
    op = formula.node.op
    if op not in ("max", "min") and not (op == "+" and formula.weight):
        return None
    leaves: list[Leaf] = []
    with _unless_unknown():
        leaves += [
            _about(node, formula.weight, _prove(formula.with_node(node), evaluator)) for node in formula.node.args
        ]
    if not leaves:
        return None
    undefined = [leaf for leaf in leaves if leaf.verdict == "undefined"]
    if undefined:
        return None if any(leaf.reason == NEGATIVE_WEIGHT for leaf in leaves) else undefined[0]
    decisive = "converges" if op == "min" else "diverges"
    for leaf in leaves:
        if leaf.verdict == decisive:
            return leaf
    return (
        None
        if op == "min"
        else Leaf("converges", kind="parts", parts=tuple(p for leaf in leaves for p in leaf.parts or (leaf,)))
    )


def _about(node: Node, weight: bool, leaf: Leaf) -> Leaf:
    """A leaf that says which part of the formula it is about."""
    return leaf if leaf.part or leaf.parts else replace(leaf, part=node if weight else Node("exp", (node,)))


def no_value(formula: Formula, evaluator: Evaluator) -> str:
    """Why the formula has no value at any large distance, if that is shown."""
    if formula.weight and any(_sign_at(evaluator, formula.node, parity) == -1 for parity in (0, 1)):
        return NEGATIVE_WEIGHT
    return _fault(evaluator, formula.node)


def _sign_at(evaluator: Evaluator, node: Node, parity: int) -> int | None:
    """The sign of a product at all large even or odd distances, where it is shown: a**t has that of 1 or a."""
    if node.op in ("*", "/", "neg"):
        sides = [_sign_at(evaluator, a, parity) for a in node.args]
        return None if None in sides else math.prod(s for s in sides if s is not None) * (-1) ** (node.op == "neg")
    if node.op == "**" and node.args[1] == T and "t" not in node.args[0].free():
        base = _sign(evaluator, node.args[0])
        return None if base is None else base ** (2 - parity)
    return _sign(evaluator, node)


def _fault(evaluator: Evaluator, node: Node) -> str:
    """Why a part that is always evaluated has no value."""
    args = node.args
    if node.op == "where":
        chosen = branch(evaluator, node) if not any(_fault(evaluator, a) for a in args[:2]) else None
        args = args[:2] if chosen is None else (*args[:2], args[2 if chosen else 3])
    for a in args if node.op != "sum" else ():
        if reason := _fault(evaluator, a):
            return reason
    if node.op == "log" and _sign(evaluator, args[0]) in (0, -1):
        return "log of something that is not positive for large t"
    if node.op == "/" and _sign(evaluator, args[1]) == 0:
        return "a division by zero"
    if node.op == "sqrt" and _sign(evaluator, args[0]) == -1:
        return "sqrt of something negative for large t"
    return _fault_of_power(evaluator, *args) if node.op == "**" else ""


def _fault_of_power(evaluator: Evaluator, base: Node, exponent: Node) -> str:
    side = _sign(evaluator, base)
    if side == 0 and _sign(evaluator, exponent) == -1:
        return "a negative power of zero"
    if side == -1 and not is_whole(exponent):
        with contextlib.suppress(UnknownError):
            e = evaluator.value(exponent)
            c = ZERO if not e else e[0][1] if len(e) == 1 and e[0][0] == UNIT else None
            if isinstance(c, Constant):
                q = c.rational
                if (q is not None and q.q != 1) or (c.region is not None and sign(c - constants.floor(c))):
                    return "a real power of something negative for large t"
    return ""


def _sign(evaluator: Evaluator, node: Node) -> int | None:
    """The sign of a part for large t, where it is shown."""
    with _unless_unknown():
        f = evaluator.value_or_none(node)
        return None if f is None else evaluator.calculus.sign(f)
    return None


def _climb(log_weight: Expansion, calculus: Germs) -> Leaf:
    """The ladder of Bertrand: compare -ln b with ln t, then what is left with ln ln t, and so on."""
    left, depth = negative(log_weight), 0
    while depth < DEPTH:
        rung = level(depth + 1)
        order = compare(left[0][0], rung) if left else -1
        if order < 0:
            return _claim(log_weight, calculus, depth, None, (ZERO, ZERO))
        c = left[0][1]
        if order > 0 and isinstance(c, Constant) and sign(c) == 0:
            left = left[1:]
            continue
        if order > 0:
            side = calculus.sign(left)
            if side is None:
                raise UnknownError("the formula oscillates too strongly to be compared with 1/t, 1/(t log t), ...")
            return _claim(log_weight, calculus, depth, _TWO if side > 0 else None, None)
        if not isinstance(c, Constant) and calculus.region is not None and calculus.region.postponed is not None:
            raise calculus.region.postponed
        low, high = (c, c) if isinstance(c, Constant) else c.ends
        if sign(low - ONE) > 0:
            return _claim(log_weight, calculus, depth, (low + ONE) * _HALF, (low, high))
        if sign(high - ONE) < 0:
            return _claim(log_weight, calculus, depth, None, (low, high))
        if sign(low - ONE) < 0 or sign(high - ONE) > 0:
            raise UnknownError("the exponent oscillates across 1")
        left, depth = add(left, ((rung, MINUS),)), depth + 1
    raise UnknownError("it could not be told within six nested logarithms")


def _claim(
    log_weight: Expansion,
    calculus: Germs,
    depth: int,
    exponent: Constant | None,
    limits: tuple[Constant, Constant] | None,
) -> Leaf:
    """b(t) <= 1/(t ... l_depth ** exponent), or b(t) >= 1/(t ... l_depth) where there is no exponent; proven here."""
    s = ONE if exponent is None else exponent
    ln_scale = tuple((level(i), ONE if i <= depth else s) for i in range(1, depth + 2))
    gap = add(log_weight, ln_scale)
    if not calculus.never_negative(gap if exponent is None else negative(gap)):
        raise UnknownError("the two sides are too close")
    verdict, kind = ("diverges", "lower") if exponent is None else ("converges", "upper")
    return Leaf(verdict, "", kind, depth, s, limits, log_weight)
