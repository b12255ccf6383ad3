"""A formula at infinity: the walk that reads its parts as expansions, signs and logarithms (tables in growth.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from farfield.formula import Formula, FormulaError, Node, build
from farfield.formula.algebras import evaluate, index_range
from farfield.formula.sentence import Sentence, say
from farfield.theory.budget import Work
from farfield.theory.errors import MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, ZERO, Const
from farfield.theory.exact.values import Constants
from farfield.theory.verdict.engines import Asymptotic
from farfield.theory.verdict.expansion import Engine, Expansion
from farfield.theory.verdict.growth import EXPANSIONS, LOGARITHMS, NOTHING, SIGNS
from farfield.theory.verdict.monomials import UNIT, ell
from farfield.theory.verdict.regions import Region

LENGTHS = (3, 6, 12, 24)  # terms of an expansion, tried in turn
Read = TypeVar("Read")


class Reader:
    """Expansions, signs and logarithms of the parts of one formula in one engine."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.constants = Constants(engine.region.sign)
        self.indices: dict[str, Const] = {}
        self.known: dict[tuple[str, Node], Expansion] = {}  # parts that occur again need not be expanded again

    def constant(self, node: Node) -> Const:
        """The exact value of a part without t."""
        names = {name: self.indices.get(name) or self.engine.region.value(name) for name in node.free()}
        return evaluate(node, names, self.constants)

    def expand(self, node: Node) -> Expansion:
        """The expansion of a part."""
        return self._once(("part", node), self._expand)

    def log(self, node: Node) -> Expansion:
        """The expansion of log|part|: products become sums first, so that nothing cancels."""
        return self._once(("log", node), self._log)

    def _once(self, key: tuple[str, Node], read: Callable[[Node], Expansion]) -> Expansion:
        if self.indices:  # in a sum the same part means something else at every index
            return read(key[1])
        if key not in self.known:
            self.known[key] = read(key[1])
        return self.known[key]

    def _expand(self, node: Node) -> Expansion:
        if node.op == "-inf":
            return NOTHING
        if "t" not in node.free():
            return self.engine.constant(self.constant(node))
        return Expansion(((ell(0), ONE),)) if node.op == "name" else EXPANSIONS[node.op](self, node)

    def _log(self, node: Node) -> Expansion:
        if "t" not in node.free():
            c = self.constant(node)
            if self.engine.region.sign(c) == 0:
                raise UndefinedError("log of zero")
            return self.engine.constant(constants.log(c))
        return Expansion(((ell(1), ONE),)) if node.op == "name" else LOGARITHMS[node.op](self, node)

    def sign(self, node: Node) -> int:
        """The sign of a part for large t."""
        if "t" not in node.free():
            return self.engine.region.sign(self.constant(node))
        return 1 if node.op == "name" else SIGNS[node.op](self, node)

    # -- sums
    def indices_of(self, node: Node) -> range:
        """The indices of a sum whose bounds are known."""
        bounds = {f"bound {i}": self.constant(b).rational for i, b in enumerate(node.args[1:])}
        if None in bounds.values():
            raise UndecidedError("the bounds of a sum are open")
        names = tuple(Node("name", (), n) for n in bounds)
        indices = index_range(Node("sum", (node.args[0], *names), node.value), bounds)  # type: ignore[arg-type]
        assert indices is not None
        return indices

    def at_index(self, node: Node, j: Const, read: Callable[[Node], Read]) -> Read:
        """The body of a sum, read at one index."""
        name = str(node.value)
        before = self.indices.get(name)
        self.indices[name] = j
        try:
            return read(node.args[0])
        finally:
            if before is None:
                del self.indices[name]
            else:
                self.indices[name] = before


def bias(engine: Engine, formula: Formula) -> Expansion:
    """The expansion of the bias r(t) = ln b(t); NOTHING where the weight is 0 for good."""
    reader = Reader(engine)
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


def vanishes(formula: Formula) -> bool:
    """Whether the weight is shown to be 0 for all large t."""
    try:
        return bias(Asymptotic(Region(), LENGTHS[0], Work(1)), formula) is NOTHING
    except (UndecidedError, UndefinedError, MoreTermsError, FormulaError):
        return False


@dataclass(frozen=True)
class Gap:
    """The limit of r_a(t) - r_b(t) as t -> infinity: "+inf", "-inf", "constant", "bounded" or "unknown"."""

    limit: str
    value: Const | None
    steps: tuple[Sentence, ...]


def compare(a: Formula, b: Formula, budget: float = 2.0) -> Gap:
    """How the difference of two biases behaves at infinity, with the steps that show it."""
    for length in LENGTHS:
        engine = Asymptotic(Region(), length, Work(budget))
        try:
            ra, rb = bias(engine, a), bias(engine, b)
            if ra is NOTHING or rb is NOTHING:
                limit = "constant" if ra is rb else "-inf" if ra is NOTHING else "+inf"
                return Gap(limit, None, (say("one of the weights is 0 from some distance on"),))
            gap = engine.led(engine.add(ra, engine.negative(rb)))
            a_of_t, b_of_t = build.applied("r_a"), build.applied("r_b")
            both = ((a_of_t, ra), (b_of_t, rb), (Node("-", (a_of_t, b_of_t)), gap))
            shown = tuple(say(build.relation(left, "=", right.node())) for left, right in both)
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
        except (UndecidedError, UndefinedError, FormulaError) as error:
            return Gap("unknown", None, (say(str(error)),))
    return Gap("unknown", None, (say("the expansions are too short to tell"),))
