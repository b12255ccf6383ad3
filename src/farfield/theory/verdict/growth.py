"""Where a formula stands on the logarithmic scale as t -> infinity: its expansion, part by part.

`Reader` turns the parts of a formula into expansions (expansion.py). Pieces that are not smooth enter as intervals:
sin and cos of what grows lie in [-1, 1], floor(x) in [x - 1, x], min, max, abs and where become one branch as soon
as a sign is proven and an interval otherwise. The same reader serves the asymptotic and the explicit engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

from flint import arb

from farfield.formula import Formula, FormulaError, Node, index_range
from farfield.theory.errors import MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, ZERO, Const, rational
from farfield.theory.verdict.engines import Asymptotic
from farfield.theory.verdict.expansion import MINUS, Engine, Expansion
from farfield.theory.verdict.monomials import UNIT, ell
from farfield.theory.verdict.regions import Region

HALF = rational(Fraction(1, 2))
NOTHING = Expansion(((UNIT, ZERO),))  # the bias -inf: a weight of exactly 0, for good
LENGTHS = (3, 6, 12, 24)  # terms of an expansion, tried in turn


Read = TypeVar("Read")


class Reader:
    """Expansions of the parts of one formula in one engine."""

    def __init__(self, engine: Engine, node: Node):
        self.engine = engine
        self.indices: dict[str, Const] = {}
        self.moving = {id(n) for n in node.walk() if "t" in n.free()}
        self.known: dict[tuple[str, Node], Expansion] = {}  # parts that occur again need not be expanded again

    # -- constants
    def constant(self, node: Node) -> Const:
        """The exact value of a part without t."""
        op, sign = node.op, self.engine.region.sign
        if op == "number":
            assert isinstance(node.value, Fraction)
            return rational(node.value)
        if op == "name":
            name = str(node.value)
            return self.indices[name] if name in self.indices else self.engine.region.value(name)
        if op == "pi":
            return constants.PI
        if op == "where":
            return self.constant(self.branch(node))
        if op == "sum":
            return self._constant_sum(node)
        args = [self.constant(a) for a in node.args]
        a, b = args[0], args[-1]
        if op == "neg":
            return -a
        if op in "+-*":
            return a + b if op == "+" else a - b if op == "-" else a * b
        if op == "/":
            if not b.terms or sign(b) == 0:
                raise UndefinedError("a division by zero")
            return a / b
        if op == "**":
            return self._constant_power(a, b)
        if op == "exp":
            return constants.exp(a)
        if op in ("sin", "cos"):
            return constants.trigonometric(op, a)
        if op in ("min", "max"):
            order = sign(a - b)
            return a if (order <= 0) == (op == "min") else b
        if op == "floor":
            return constants.floor(a)
        s = sign(a)
        if op == "abs":
            return a if s >= 0 else -a
        if s < 0 or (s == 0 and op == "log"):
            raise UndefinedError(f"{op} of a number that is not positive")
        return constants.log(a) if op == "log" else constants.power(a, Fraction(1, 2))

    def _constant_power(self, a: Const, b: Const) -> Const:
        sign, q = self.engine.region.sign, b.rational
        s = sign(a)
        if q is not None and q.denominator == 1 and (s or q >= 0):
            return constants.power(a, q)
        if s == 0 and sign(b) > 0:
            return ZERO
        if s <= 0:
            raise UndefinedError("a real power of a number that is not positive")
        return constants.real_power(a, b)

    def _constant_sum(self, node: Node) -> Const:
        total = ZERO
        for j in self.indices_of(node):
            total = total + self.at_index(node, j, self.constant)
        return total

    def indices_of(self, node: Node) -> range:
        """The indices of a sum whose bounds are known."""
        bounds = [self.constant(b).rational for b in node.args[1:]]
        if None in bounds:
            raise UndecidedError("the bounds of a sum are open")
        names = {"first": bounds[0], "last": bounds[1]}
        parts = tuple(Node("name", (), n) for n in names)
        indices = index_range(replace(node, args=(node.args[0], *parts)), names)  # type: ignore[arg-type]
        assert indices is not None
        return indices

    def at_index(self, node: Node, j: int | Const, read: Callable[[Node], Read]) -> Read:
        """The body of a sum, read at one index."""
        name = str(node.value)
        before = self.indices.get(name)
        self.indices[name] = j if isinstance(j, Const) else rational(j)
        try:
            return read(node.args[0])
        finally:
            if before is None:
                del self.indices[name]
            else:
                self.indices[name] = before

    def _once(self, what: str, node: Node, read: Callable[[Node], Expansion]) -> Expansion:
        if self.indices:
            return read(node)
        if (what, node) not in self.known:
            self.known[what, node] = read(node)
        return self.known[what, node]

    # -- functions of t
    def expand(self, node: Node) -> Expansion:
        """The expansion of a part."""
        return self._once("part", node, self._expand)

    def log(self, node: Node) -> Expansion:
        """The expansion of log|part|: products become sums first, so that nothing cancels."""
        return self._once("log", node, self._log)

    def _expand(self, node: Node) -> Expansion:
        if node.op == "-inf":
            return NOTHING
        if id(node) not in self.moving:
            return self.engine.constant(self.constant(node))
        e, op = self.engine, node.op
        if op == "name":
            return Expansion(((ell(0), ONE),))
        if op == "where":
            return self._where(node)
        if op == "sum":
            return self._sum(node)
        if op == "**":
            return self._power(node)
        if op == "log":
            if self.sign(node.args[0]) <= 0:
                raise UndefinedError("log of something that is not positive for large t")
            return self.log(node.args[0])
        args = [self.expand(a) for a in node.args]
        if any(a is NOTHING for a in args):
            return self._with_nothing(op, args)
        s = args[0]
        if op == "neg":
            return e.negative(s)
        if op == "+":
            return e.add(s, args[1])
        if op == "-":
            return e.add(s, e.negative(args[1]))
        if op == "*":
            return e.multiply(s, args[1])
        if op == "/":
            return e.multiply(s, self._inverse(args[1]))
        if op == "exp":
            return e.exp(s)
        if op == "sqrt":
            return self._root(s)
        if op in ("sin", "cos"):
            return self._wave(op, s)
        if op == "floor":
            return self._floor(s)
        if op == "abs":
            return self._larger(s, e.negative(s))
        assert op in ("min", "max")
        if op == "max":
            return self._larger(s, args[1])
        return e.negative(self._larger(e.negative(s), e.negative(args[1])))

    def _inverse(self, s: Expansion) -> Expansion:
        s = self.engine.led(s)
        if not s.terms and s.rest is None:
            raise UndefinedError("a division by zero")
        return self.engine.power(s, MINUS)

    def _root(self, s: Expansion) -> Expansion:
        if not s.terms and s.rest is None:
            return s
        if self.engine.sign(s) < 0:
            raise UndefinedError("sqrt of something negative for large t")
        return self.engine.power(s, HALF)

    def _with_nothing(self, op: str, args: list[Expansion]) -> Expansion:
        others = [a for a in args if a is not NOTHING]
        if op == "+" or (op == "-" and args[0] is NOTHING and others):
            return NOTHING
        if op == "exp":
            return Expansion()
        if op == "max" and others:
            return others[0]
        if op == "min":
            return NOTHING
        if op in "*/" and args[0] is NOTHING and others and self.engine.sign(others[0]) > 0:
            return NOTHING
        if op == "*" and others and self.engine.sign(others[0]) > 0:
            return NOTHING
        raise UndefinedError("-inf stands where only a finite bias has a meaning")

    def _power(self, node: Node) -> Expansion:
        base, exponent = node.args
        e = self.engine
        if id(exponent) not in self.moving:
            s = e.led(self.expand(base))
            c = self.constant(exponent)
            q = c.rational
            if not s.terms and s.rest is None:
                if e.region.sign(c) <= 0:
                    raise UndefinedError("a power of zero")
                return s
            if (q is None or q.denominator != 1) and e.sign(s) < 0:
                raise UndefinedError("a real power of something negative for large t")
            return e.power(s, c)
        if self.sign(base) <= 0:
            raise UndefinedError("a power of something that is not positive for large t")
        return e.exp(e.multiply(self.expand(exponent), self.log(base)))

    def _wave(self, op: str, s: Expansion) -> Expansion:
        """sin or cos: of what tends to a constant an expansion, of anything else something in [-1, 1]."""
        e, s = self.engine, self.engine.led(s)
        lead = s.terms[0][0] if s.terms else s.rest[0] if s.rest else UNIT
        if e.compare(lead, UNIT) > 0 or (not s.terms and s.rest is not None and lead == UNIT):
            return e.bounded(-1, 1)
        shift = next((c for m, c in s.terms if m == UNIT), ZERO)
        d = e.make([(m, c) for m, c in s.terms if m != UNIT], [s.rest])
        if d.rest is not None and e.compare(d.rest[0], UNIT) >= 0:
            return e.bounded(-1, 1)
        sine, cosine = (self._small_wave(name, d) for name in ("sin", "cos"))
        if not shift.terms:
            return sine if op == "sin" else cosine
        s0, c0 = constants.trigonometric("sin", shift), constants.trigonometric("cos", shift)
        if op == "sin":
            return e.add(e.scale(cosine, s0), e.scale(sine, c0))
        return e.add(e.scale(cosine, c0), e.scale(sine, -s0))

    def _small_wave(self, op: str, d: Expansion) -> Expansion:
        odd = op == "sin"

        def coefficient(k: int) -> Const:
            if k % 2 != odd:
                return ZERO
            return rational(Fraction((-1) ** ((k - odd) // 2), math.factorial(k)))

        return self.engine._series(d, coefficient, lambda order, _: 1 / arb(math.factorial(order + 1)))

    def _floor(self, s: Expansion) -> Expansion:
        e, s = self.engine, self.engine.led(s)
        lead = s.terms[0][0] if s.terms else s.rest[0] if s.rest else UNIT
        if e.compare(lead, UNIT) <= 0 and (s.rest is None or e.compare(s.rest[0], UNIT) < 0):
            shift = next((c for m, c in s.terms if m == UNIT), ZERO)
            whole = constants.floor(shift)
            if e.region.sign(shift - whole) == 0:
                d = e.make([(m, c) for m, c in s.terms if m != UNIT], [s.rest])
                up = e.sign(d) >= 0
                if up and e.sign(e.add(d, e.constant(MINUS))) < 0:  # also where an explicit range begins
                    return e.constant(whole)
                if not up and e.sign(e.add(d, e.constant(ONE))) > 0:
                    return e.constant(whole - ONE)
            gap = e.add(s, e.constant(-whole))
            if e.sign(gap) > 0 and e.sign(e.add(gap, e.constant(MINUS))) < 0:
                return e.constant(whole)
        return e.add(s, e.bounded(-1, 0))

    def _larger(self, a: Expansion, b: Expansion) -> Expansion:
        e = self.engine
        gap = e.add(a, e.negative(b))
        try:
            return a if e.sign(gap) >= 0 else b
        except UndecidedError:
            if gap.terms or gap.rest is None:
                raise
        m, interval = gap.rest  # b + max(gap, 0), and gap oscillates around 0
        low, high = e.with_zero(interval)
        return e.add(b, Expansion((), (m, (ZERO if isinstance(low, Const) else low * 0, high))))

    def branch(self, node: Node) -> Node:
        """The branch of a where that counts for large t."""
        left, right, a, b = node.args
        e = self.engine
        order = e.sign(e.add(self.expand(left), e.negative(self.expand(right))))
        holds = {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[str(node.value)]
        return a if holds else b

    def _where(self, node: Node) -> Expansion:
        try:
            return self.expand(self.branch(node))
        except UndecidedError:
            a, b = (self.expand(n) for n in node.args[2:])
            if a is NOTHING or b is NOTHING:
                raise
        e = self.engine
        gap = e.led(e.add(a, e.negative(b)))  # the value is b, or b + gap
        if not gap.terms and gap.rest is None:
            return a
        m = gap.terms[0][0] if gap.terms else gap.rest[0]  # type: ignore[index]
        whole = e.make([], [(x, e.exactly(c)) for x, c in gap.terms] + [gap.rest])
        assert whole.rest is not None
        return e.add(b, Expansion((), (m, e.with_zero(whole.rest[1]))))

    def _sum(self, node: Node) -> Expansion:
        e = self.engine
        try:
            indices = self.indices_of(node)
        except UndecidedError:
            return self._open_sum(node)
        except FormulaError as error:
            raise UndefinedError(error.sentence) from None
        total = Expansion()
        for j in indices:
            total = e.add(total, self.at_index(node, j, self.expand))
        return total

    def _open_sum(self, node: Node) -> Expansion:
        """A sum with open bounds, where every term lies in one interval."""
        e = self.engine
        first, last = (self.constant(b) for b in node.args[1:])
        index = constants.parameter(f"{node.value}'")
        body = self.at_index(node, index, self.expand)
        count = last - first + ONE
        if e.region.sign(count) <= 0:
            return Expansion()
        if body.terms or body.rest is None or body.rest[0] != UNIT or body.rest[1] is None:
            raise UndecidedError("a sum with open bounds of terms that are not merely bounded")
        if any(index.parameters & c.parameters for c in body.rest[1]):
            raise UndecidedError("a sum with open bounds whose terms depend on the index")
        return Expansion((), (UNIT, e.scaled(body.rest[1], count)))

    # -- signs and logarithms, by structure before anything is expanded
    def sign(self, node: Node) -> int:
        """The sign of a part for large t."""
        if id(node) not in self.moving:
            return self.engine.region.sign(self.constant(node))
        op = node.op
        if op in ("exp", "name"):
            return 1
        if op == "neg":
            return -self.sign(node.args[0])
        if op in ("*", "/"):
            return self.sign(node.args[0]) * self.sign(node.args[1])
        if op == "**" and (id(node.args[1]) in self.moving or self.sign(node.args[0]) > 0):
            return self.sign(node.args[0])
        try:
            return self.engine.sign(self.expand(node))
        except (UndecidedError, MoreTermsError):
            if op not in ("+", "-"):
                raise
            left, right = self.sign(node.args[0]), self.sign(node.args[1]) * (1 if op == "+" else -1)
            if left * right <= 0:
                raise
            return left  # two parts of one sign, though their sum cannot be expanded

    def _log(self, node: Node) -> Expansion:
        e, op = self.engine, node.op
        if id(node) not in self.moving:
            c = self.constant(node)
            if e.region.sign(c) == 0:
                raise UndefinedError("log of zero")
            return e.constant(constants.log(c))
        if op == "exp":
            return self.expand(node.args[0])
        if op in ("neg", "abs"):
            return self.log(node.args[0])
        if op in ("*", "/"):
            right = self.log(node.args[1])
            return e.add(self.log(node.args[0]), right if op == "*" else e.negative(right))
        if op == "sqrt":
            return e.scale(self.log(node.args[0]), HALF)
        if op == "**":
            base, exponent = node.args
            if id(exponent) in self.moving:
                if self.sign(base) <= 0:
                    raise UndefinedError("a power of something that is not positive for large t")
                return e.multiply(self.expand(exponent), self.log(base))
            q = self.constant(exponent).rational
            if (q is None or q.denominator != 1) and self.sign(base) < 0:
                raise UndefinedError("a real power of something negative for large t")
            return e.scale(self.log(base), self.constant(exponent))
        if op == "where":
            return self.log(self.branch(node))
        try:
            s = self.expand(node)
            return e.log(s if e.sign(s) > 0 else e.negative(s))
        except MoreTermsError:
            if op != "+":
                raise
            return self._log_of_sum(node)

    def _log_of_sum(self, node: Node) -> Expansion:
        """log(x + y) of positive x and y: the larger logarithm, plus something in [0, log 2]."""
        e = self.engine
        if any(self.sign(a) <= 0 for a in node.args):
            raise UndecidedError("a sum of terms of both signs that cannot be expanded")
        x, y = (self.log(a) for a in node.args)
        best = self._larger(x, y)
        return e.add(best, Expansion((), (UNIT, e.mapped((e.exactly(ONE)[0], e.exactly(rational(2))[1]), "log"))))


def bias(engine: Engine, formula: Formula) -> Expansion:
    """The expansion of the bias r(t) = ln b(t); NOTHING where the weight is 0 for good."""
    reader = Reader(engine, formula.node)
    if not formula.weight:
        return reader.expand(formula.node)
    try:
        if reader.sign(formula.node) < 0:
            raise UndefinedError("the weight is negative for large t")
        return reader.log(formula.node)
    except (UndecidedError, UndefinedError, MoreTermsError):
        s = engine.led(reader.expand(formula.node))
        if not s.terms and s.rest is None:
            return NOTHING
        raise


@dataclass(frozen=True)
class Gap:
    """The limit of r_a(t) - r_b(t) as t -> infinity: "+inf", "-inf", "constant", "bounded" or "unknown"."""

    limit: str
    value: Const | None
    steps: tuple[str, ...]


def compare(a: Formula, b: Formula, budget: float = 2.0) -> Gap:
    """How the difference of two biases behaves at infinity, with the steps that show it."""
    for length in LENGTHS:
        engine = Asymptotic(Region(), length, time.thread_time() + budget)
        try:
            ra, rb = bias(engine, a), bias(engine, b)
            if ra is NOTHING or rb is NOTHING:
                limit = "constant" if ra is rb else "-inf" if ra is NOTHING else "+inf"
                return Gap(limit, None, ("one of the weights is 0 from some distance on",))
            gap = engine.led(engine.add(ra, engine.negative(rb)))
            shown = (f"r_a(t) = {ra!r}", f"r_b(t) = {rb!r}", f"r_a(t) - r_b(t) = {gap!r}")
            lead = gap.terms[0][0] if gap.terms else gap.rest[0] if gap.rest else UNIT
            order = engine.compare(lead, UNIT)
            if order > 0:
                sign = engine.sign(gap)
                return Gap("+inf" if sign > 0 else "-inf", None, shown)
            if gap.rest is not None and engine.compare(gap.rest[0], UNIT) == 0:
                return Gap("bounded", None, shown)
            return Gap("constant", next((c for m, c in gap.terms if m == UNIT), ZERO), shown)
        except MoreTermsError:
            continue
        except (UndecidedError, UndefinedError) as error:
            return Gap("unknown", None, (str(error),))
    return Gap("unknown", None, ("the expansions are too short to tell",))
