"""Formulas cut into pieces on which `where`, `min`, `max` and `abs` each take one branch, or into blocks of a step.

`where(t < 512, 0, -inf)` is the constant 0 on 0 <= t < 512 and nothing beyond; `max(-t, -100)` is -t and then -100.
A switch is placed by proof: the two sides differ by a monotone function or a polynomial, whose sign is followed to
the one distance where it changes. A weight that depends on t only through floor(g(t)) is constant on blocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx, fmpz

from farfield.formula import Formula, Node, number
from farfield.formula.algebras import exact_value
from farfield.formula.functions import SWITCHES, rule_table
from farfield.formula.tree import substitute
from farfield.theory.checker.families import value_of
from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import Constant, exp, known_sign
from farfield.theory.sums.closed import Series
from farfield.theory.sums.panels import LOW, Far
from farfield.theory.sums.shapes import has_switch, polynomial, shape_of_node
from farfield.theory.sums.weight import Weight, compiled

_FARTHEST = 4096  # a switch beyond 2**this is not looked for
_MOST_PIECES = 200
_MOST_BLOCKS = 20_000


@dataclass(frozen=True)
class Piece:
    """The formula on first <= t < last, where last is None at the far end; no formula means weight 0."""

    first: int
    last: int | None
    formula: Formula | None


def pieces(formula: Formula, start: int) -> list[Piece]:
    """The pieces of a formula from `start` on, in order; one piece if there is nothing to switch."""
    result: list[Piece] = []
    for first, last, node in _cut(formula.node, start, None):
        zero = node.op == "-inf" or (formula.weight and not node.free() and exact_value(node, {}) == 0)
        result.append(Piece(first, last, None if zero else formula.with_node(node)))
        if len(result) > _MOST_PIECES:
            raise UndecidedError(f"the formula has more than {_MOST_PIECES} pieces")
    return result


def _cut(node: Node, first: int, last: int | None) -> Iterator[tuple[int, int | None, Node]]:
    switch = _first_switch(node)
    if switch is None:
        yield first, last, node
        return
    if switch.op == "abs":
        left, right, comparison = switch.args[0], number(0), ">="
        branches = (switch.args[0], Node("neg", (switch.args[0],)))
    elif switch.op == "where":
        left, right, comparison = switch.args[0], switch.args[1], str(switch.value)
        branches = (switch.args[2], switch.args[3])
    else:
        left, right, comparison = switch.args[0], switch.args[1], "<=" if switch.op == "min" else ">="
        branches = (switch.args[0], switch.args[1])
    for low, high, holds in _spans(Node("-", (left, right)), comparison, first, last):
        yield from _cut(_replace(node, switch, branches[0] if holds else branches[1]), low, high)


def _first_switch(node: Node) -> Node | None:
    """A switch whose condition holds no other switch; None if the formula has none that depends on t."""
    if node.op == "sum":
        if has_switch(node):
            raise UndecidedError("a switch inside a sum cannot be cut into pieces")
        return None
    condition = node.args[:2] if node.op == "where" else node.args
    for part in condition:
        inner = _first_switch(part)
        if inner is not None:
            return inner
    if node.op in SWITCHES and node.free():
        return node
    for part in node.args[2:] if node.op == "where" else ():
        inner = _first_switch(part)
        if inner is not None:
            return inner
    return None


def _replace(node: Node, old: Node, new: Node) -> Node:
    if node == old:
        return new
    return replace(node, args=tuple(_replace(a, old, new) for a in node.args)) if node.args else node


# ---------------------------------------------------------------------------------------------------- where it turns
def sign_at(node: Node, t: int) -> int:
    """The sign of an expression at a whole t, exactly."""
    call = compiled(node)
    for bits in (64, 256):
        with ctx.workprec(bits + t.bit_length()):
            value = call(arb(fmpz(t)), False)
            if value > 0 or value < 0 or value.is_zero():
                return 1 if value > 0 else -1 if value < 0 else 0
    exact = _known_value(at(node, t))
    side = None if exact is None else known_sign(exact)
    if side is None:
        raise UndecidedError(f"the branch of the formula at distance {t} could not be decided")
    return side


def _known_value(node: Node) -> Constant | None:
    try:
        return value_of(node)
    except UndecidedError:
        return None


def at(node: Node, t: int) -> Node:
    """The expression with t replaced by a whole number."""
    return substitute(node, {"t": number(t)})


def ratio_at(formula: Formula, t: int, unit: Node) -> Fraction | None:
    """The weight at a whole t over the weight whose formula is `unit`, if that is plainly a rational number."""
    node = at(formula.node, t)
    if node == unit:
        return Fraction(1)
    one, other = _known_value(node), _known_value(unit)
    if one is None or other is None or (formula.weight and not other.terms):
        return None
    return (one / other if formula.weight else exp(one - other)).fraction


def _spans(node: Node, comparison: str, first: int, last: int | None) -> Iterator[tuple[int, int | None, bool]]:
    """The maximal stretches on which `node comparison 0` holds or fails."""

    def holds(t: int) -> bool:
        s = sign_at(node, t)
        return {"<": s < 0, "<=": s <= 0, ">": s > 0, ">=": s >= 0}[comparison]

    low, now = first, holds(first)
    for edge in _turns(node, first, last):
        if holds(edge) != now:
            yield low, edge, now
            low, now = edge, not now
    yield low, last, now


def _turns(node: Node, first: int, last: int | None) -> list[int]:
    """Distances in (first, last) that include every t at which the sign of the expression is not that at t - 1."""
    shape = shape_of_node(node)
    coefficients = None if shape is None else polynomial(shape)
    plain = [c.fraction for c in coefficients or ()]
    if coefficients is not None and None not in plain:
        return _polynomial_turns([q for q in plain if q is not None], first, last)
    way = direction(node, first)
    if way is None:
        raise UndecidedError("a condition of the formula turns too often to be cut into pieces")
    if way * sign_at(node, first) > 0 or way == 0:
        return []  # it moves away from 0
    return _edges(lambda t: sign_at(node, t), first, last)


def _polynomial_turns(c: list[Fraction], first: int, last: int | None) -> list[int]:
    while c and c[-1] == 0:
        c = c[:-1]
    if len(c) <= 1:
        return []
    slope = [i * x for i, x in enumerate(c)][1:]
    cuts = [first, *_polynomial_turns(slope, first, last)]  # monotone between these

    def at_(t: int) -> int:
        value = sum((x * t**i for i, x in enumerate(c)), Fraction(0))
        return (value > 0) - (value < 0)

    turns: set[int] = set()
    for low, high in zip(cuts, [*cuts[1:], last], strict=True):
        turns.update(range(max(first + 1, low - 1), low + 2))  # a turning point may lie between whole numbers
        way = at_(high - 1) - at_(low) if high is not None else (c[-1] > 0) - (c[-1] < 0) - at_(low)
        turns.update(_edges(at_, low, high) if way else [])
    return sorted(t for t in turns if first < t and (last is None or t < last))


def _edges(sign_of: Callable[[int], int], first: int, last: int | None) -> list[int]:
    """Where a monotone sign changes: to 0, and from 0 to the other side."""
    result: list[int] = []
    low, here = first, sign_of(first)
    while True:
        high, step = low + 1, 1
        while last is None or high < last:
            if sign_of(high) != here:
                break
            step *= 2
            low, high = high, high + step
            if high.bit_length() > _FARTHEST:
                raise UndecidedError("a condition of the formula may turn at a distance too far to look at")
        if last is not None and high >= last:
            high = last - 1
            if high <= low or sign_of(high) == here:
                return result
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if sign_of(middle) == here else (low, middle)
        result.append(high)
        low, here = high, sign_of(high)
        if here != 0:
            return result


def direction(node: Node, first: int) -> int | None:
    """+1 if the expression does not fall for real t >= first, -1 if it does not rise, 0 if constant, else None."""
    if not node.free():
        return 0
    return 1 if node.op == "name" else _DIRECTIONS[node.op](node, first)


def _as_its_argument(node: Node, first: int) -> int | None:
    return direction(node.args[0], first)


def _opposite(node: Node, first: int) -> int | None:
    inner = direction(node.args[0], first)
    return None if inner is None else -inner


def _both(right_sign: int) -> Callable[[Node, int], int | None]:
    def rule(node: Node, first: int) -> int | None:
        left, right = (direction(a, first) for a in node.args)
        if left is None or right is None:
            return None
        right *= right_sign
        return (left or right) if left * right >= 0 else None

    return rule


def _scaled(moving: Node, factor: Node, first: int) -> int | None:
    inner = direction(moving, first)
    return None if inner is None else inner * sign_at(factor, 0)


def _rising(node: Node, first: int) -> bool:
    """Whether the expression is not negative and does not fall from `first` on."""
    return direction(node, first) == 1 and sign_at(node, first) >= 0


def _product(node: Node, first: int) -> int | None:
    left, right = node.args
    if not right.free() or not left.free():
        return _scaled(left, right, first) if not right.free() else _scaled(right, left, first)
    return 1 if _rising(left, first) and _rising(right, first) else None


def _quotient(node: Node, first: int) -> int | None:
    top, bottom = node.args
    if not bottom.free():
        return _scaled(top, bottom, first)
    return -sign_at(top, 0) if not top.free() and _rising(bottom, first) else None


def _power(node: Node, first: int) -> int | None:
    base, exponent = node.args
    return sign_at(exponent, 0) if not exponent.free() and _rising(base, first) else None


_DIRECTIONS: dict[str, Callable[[Node, int], int | None]] = rule_table("direction", {
    **dict.fromkeys(("exp", "log", "sqrt", "floor"), _as_its_argument),
    "neg": _opposite,
    **dict.fromkeys(("+", "min", "max"), _both(1)),
    "-": _both(-1),
    "*": _product,
    "/": _quotient,
    "**": _power,
    **dict.fromkeys(("sin", "cos", "abs", "where", "sum"), lambda *_: None),
}, ("where", "sum"))  # fmt: skip


# ---------------------------------------------------------------------------------------------------- blocks of a step
def step_of(formula: Formula) -> Node | None:
    """The inner function g if t occurs only inside floor(g(t)) with one rising g; else None."""
    floors = {n for n in formula.node.walk() if n.op == "floor" and n.free()}
    if len(floors) != 1:
        return None
    (floor,) = floors

    def outside(node: Node) -> bool:
        if node == floor:
            return False
        return node.value == "t" if node.op == "name" else any(outside(a) for a in node.args)

    return None if outside(formula.node) else floor.args[0]


class Blocks(Series):
    """b(t) = f(floor(g(t))) for a rising g: the sum of (length of the block) * (its weight)."""

    method = "sum over the blocks of a step function"

    def __init__(self, weight: Weight, start: int, inner: Node, far: Far):
        super().__init__(weight, start)
        self.inner, self._far = inner, far
        self._edges = [start]  # the first distance of each block
        self._tails: dict[int, tuple[list[arb], arb]] = {}
        if direction(inner, start) != 1:
            raise UndecidedError("the steps of the formula do not rise")

    def _level(self, t: int) -> int:
        """floor(g(t)), exactly."""
        for bits in (64, 1024, 1 << 14):  # a large value, such as t**1000, has many digits
            with ctx.workprec(bits + t.bit_length()):
                value = compiled(self.inner)(arb(fmpz(t)), False)
                whole = value.floor().unique_fmpz()
                nearest = (value.mid() + arb("0.5")).floor().unique_fmpz() if value.rad() < 0.25 else None
            if whole is not None:
                return int(whole)
            if nearest is not None:
                near = int(nearest)
                return near if sign_at(Node("-", (self.inner, number(near))), t) >= 0 else near - 1
        raise UndecidedError("the steps of the formula are too large to be told apart")

    def _next_edge(self, edge: int) -> int:
        level = self._level(edge)
        low, step = edge, max(1, edge - self._edges[-2] if len(self._edges) > 1 else 1)
        while self._level(low + step) == level:
            low, step = low + step, 2 * step
            if low.bit_length() > 4096:
                raise UndecidedError("a step of the formula has no end that could be found")
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._level(middle) == level else (low, middle)
        return high

    def _prepare(self) -> tuple[list[arb], arb]:
        if ctx.prec in self._tails:
            return self._tails[ctx.prec]
        small = self.weight(self.start).abs_upper() * arb(2) ** -ctx.prec
        checked = 1
        while True:
            if len(self._edges) >= checked and self._edges[-1] >= 2:  # the bound is one of distances from 2 on
                with ctx.workprec(LOW):
                    rest = self._far(arb(fmpz(self._edges[-1])).log())
                if rest is not None and rest <= small:
                    break
                checked = len(self._edges) + 1 + len(self._edges) // 8
            if len(self._edges) > _MOST_BLOCKS:
                raise UndecidedError(f"the sum needs more than {_MOST_BLOCKS} blocks")
            self._edges.append(self._next_edge(self._edges[-1]))
        tails = [arb(0).union(rest)]
        for low, high in zip(self._edges[-2::-1], self._edges[:0:-1], strict=True):
            tails.append(tails[-1] + self.weight(low) * arb(fmpz(high - low)))
        self._tails[ctx.prec] = (tails[::-1], rest)
        return self._tails[ctx.prec]

    def _tail(self, j: int) -> arb:
        tails, rest = self._prepare()
        edges = self._edges[: len(tails)]
        place = bisect_right(edges, j) - 1
        if place + 1 >= len(edges):
            return arb(0).union(rest)
        return tails[place + 1] + self.weight(edges[place]) * arb(fmpz(edges[place + 1] - j))
