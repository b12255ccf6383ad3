"""The gate of families: a condition on parameters is said only if it agrees with concrete verdicts.

A condition comes from a decision tree over signs of constants. Before it is said, points are taken on every border that
it names, on both sides of it, at zero, negative and other plain values of every parameter. At each the formula is
judged as a concrete one, with a certificate that the checker accepts, and compared with what the condition says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product

from farfield.formula import Formula, FormulaError, Node, build
from farfield.formula.algebras import float_value
from farfield.formula.sentence import Sentence, joined, say
from farfield.formula.tree import substitute
from farfield.theory.checker.points import relation_holds
from farfield.theory.errors import UndecidedError
from farfield.theory.verdict.conditions import ParameterCondition

Point = Mapping[str, Node]
MAX_POINTS = 24
IN_A_CASE = 2  # points inside each case of a condition
PLAIN = [build.fraction(Fraction(n, 2)) for n in (2, 4, 1, -2, 0, 3, -1, 6, -5)]
STEPS = [build.fraction(q) for q in (Fraction(1, 3), Fraction(-1, 3), Fraction(1, 50), Fraction(-1, 50))]
VALUES = [Fraction(n, 6) for n in (6, 12, 3, -6, 0, 9, -3, 18, -12, 2, 4, 30, -9, -2, 60, -30, 15, 5, 24)]


class _Grid(dict[int, list[tuple[Fraction, ...]]]):
    """Points with plain coordinates, the plainest first, for each number of parameters."""

    def __missing__(self, count: int) -> list[tuple[Fraction, ...]]:
        some = VALUES if count < 3 else VALUES[: 9 if count == 3 else 4 if count < 6 else 1]
        self[count] = sorted(product(some, repeat=count), key=lambda point: sum(map(VALUES.index, point)))
        return self[count]


GRID = _Grid()
Judge = Callable[[Formula], str]  # "converges", "diverges", "undecided" or "undefined" for a concrete formula


def confirm(formula: Formula, condition: ParameterCondition, domain: list[Node], judge: Judge) -> Sentence:
    """Compare a condition with concrete verdicts, and say where; UndecidedError if they disagree."""
    if not condition.cases.get("converges") and not condition.cases.get("diverges"):
        raise UndecidedError("the formula seems to have no value for large t, whatever the parameters are")
    seen: dict[str, list[Point]] = {}
    for point in points(formula, condition, domain):
        said = at(condition, point)
        if said is None:
            continue
        true = _judged(formula, point, judge)
        if true == "undecided" or "undecided" in said:
            continue
        if said != {true} and (true != "undefined" or said & {"converges", "diverges"}):
            raise UndecidedError(
                f"the condition found, {condition}, does not agree with the concrete formula at {_text(point)}, "
                f"which {true if true != 'undefined' else 'has no value'}; please report this formula"
            )
        seen.setdefault(true, []).append(point)
    for verdict in ("converges", "diverges"):
        if condition.cases.get(verdict) and verdict not in seen:
            raise UndecidedError(
                f"the condition found, {condition}, could not be confirmed at any point that {verdict}"
            )
    count = sum(len(result) for result in seen.values())
    return say(f"the condition agrees with the verdicts on {count} concrete formulas, on its borders and around them")


def at(condition: ParameterCondition, point: Point) -> set[str] | None:
    """What a condition says at a point: the verdicts of the cases that hold there; None if that is not known."""
    said = set()
    for verdict, cases in condition.cases.items():
        for case in cases:
            held = [relation_holds(relation, point) for relation in case]
            if False not in held:
                if None in held:
                    return None
                said.add(verdict)
    return said


def _judged(formula: Formula, point: Point, judge: Judge) -> str:
    try:
        bound = formula.bind({name: Formula(node).text() for name, node in point.items()})
    except FormulaError:  # a constant part that is no number; or a sum to a bound that is not whole, which says nothing
        return "undecided" if any(n.op == "sum" and n.free() for n in formula.node.walk()) else "undefined"
    return judge(bound)


def _text(point: Point) -> Sentence:
    return joined((build.relation(build.name(n), "=", node) for n, node in point.items()), ", ")


# ---------------------------------------------------------------------------------------------------- where to look
def points(formula: Formula, condition: ParameterCondition, domain: list[Node]) -> Iterator[Point]:
    """Points on the borders of a condition, beside them, and at plain values, as far as the domain allows."""
    names = formula.parameters
    taken: set[tuple[Node, ...]] = set()
    relations = {r for cases in condition.cases.values() for case in cases for r in case}
    streams = [_inside(case, names) for cases in condition.cases.values() for case in cases]
    streams += [_beside(relation, names) for relation in sorted(relations, key=repr)] + [_plain(names)]
    while streams and len(taken) < MAX_POINTS:
        for stream in list(streams):  # one point from each in turn
            point = next(stream, None)
            if point is None:
                streams.remove(stream)
                continue
            key = tuple(point[name] for name in names)
            if key not in taken and all(relation_holds(d, point) for d in domain):
                taken.add(key)
                yield point


def _inside(case: tuple[Node, ...], names: tuple[str, ...]) -> Iterator[Point]:
    """Points at which all relations of a case hold, as far as doubles can tell."""
    result = 0
    for values in GRID[len(names)]:
        here = dict(zip(names, (float(v) for v in values), strict=True))
        if all(_about(relation, here) for relation in case):
            yield {name: build.fraction(v) for name, v in zip(names, values, strict=True)}
            result += 1
            if result == IN_A_CASE:
                return


def _about(relation: Node, here: Mapping[str, float]) -> bool:
    """Whether a relation seems to hold."""
    gap = float_value(Node("-", relation.args), here)
    if abs(gap) < 1e-9:
        return relation.op in ("=", ">=", "<=")
    return relation.op in ((">", ">=", "!=") if gap > 0 else ("<", "<=", "!=") if gap < 0 else ())


def _plain(names: tuple[str, ...]) -> Iterator[Point]:
    """All parameters at plain values: first all alike, then one of them at 0 or below, then mixed."""
    for value in PLAIN:
        yield dict.fromkeys(names, value)
    for name, value, other in product(names, PLAIN, PLAIN):
        yield {**dict.fromkeys(names, other), name: value}


def _beside(relation: Node, names: tuple[str, ...]) -> Iterator[Point]:
    """Points on the border of a relation, then on both sides of it."""
    moving = [name for name in names if name in relation.free()]
    for others, name in product(PLAIN[:5], moving):
        rest = dict.fromkeys((n for n in names if n != name), others)
        for border in _borders(relation, name, rest):
            for step in (build.ZERO, *STEPS[:2]):
                yield {**rest, name: build.total([border, step])}
    for others, name in product(PLAIN[:2], moving):
        rest = dict.fromkeys((n for n in names if n != name), others)
        for border in _borders(relation, name, rest):
            for step in STEPS[2:]:
                yield {**rest, name: build.total([border, step])}


def _borders(relation: Node, name: str, rest: Point) -> list[Node]:
    """Values of a parameter at which the two sides of a relation are equal, the others held."""
    left, right = (substitute(side, rest) for side in relation.args)
    for one, other in ((left, right), (right, left)):
        if one == build.name(name) and not other.free():
            return [other]
    equal = build.relation(left, "=", right)
    return [value for value in PLAIN if relation_holds(equal, {name: value})]
