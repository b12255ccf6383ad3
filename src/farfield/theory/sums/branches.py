"""A formula cut into pieces on which `where`, `min`, `max` and `abs` each take one branch.

`where(t < 512, 0, -inf)` is the constant 0 on 0 <= t < 512 and nothing beyond; `max(-t, -100)` is -t and then -100.
A switch is placed by proof: the two sides differ by a monotone function or a polynomial, whose sign is followed to
the one distance where it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import arb, ctx, fmpz

from farfield.formula import Formula, Node, number
from farfield.formula.algebras import exact_value
from farfield.formula.functions import SWITCHES, reading
from farfield.formula.tree import substitute
from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import exp
from farfield.theory.exact.signs import known_sign
from farfield.theory.exact.values import known_value
from farfield.theory.sums.evaluation import compiled
from farfield.theory.sums.shapes import polynomial, shape_of_node

_FARTHEST = 4096  # a switch beyond 2**this is not looked for
_MOST_PIECES = 200


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
        result.append(Piece(first, last, None if zero else replace(formula, node=node, source="")))
        if len(result) > _MOST_PIECES:
            raise UndecidedError(f"the formula has more than {_MOST_PIECES} pieces")
    return result


def has_switch(node: Node) -> bool:
    return any(n.op in SWITCHES and n.free() for n in node.walk())


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
        if any(n.op in SWITCHES and n.free() for n in node.walk()):
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
    exact = known_value(at(node, t))
    side = None if exact is None else known_sign(exact)
    if side is None:
        raise UndecidedError(f"the branch of the formula at distance {t} could not be decided")
    return side


def at(node: Node, t: int) -> Node:
    """The expression with t replaced by a whole number."""
    return substitute(node, {"t": number(t)})


def ratio_at(formula: Formula, t: int, unit: Node) -> Fraction | None:
    """The weight at a whole t over the weight whose formula is `unit`, if that is plainly a rational number."""
    node = at(formula.node, t)
    if node == unit:
        return Fraction(1)
    one, other = known_value(node), known_value(unit)
    if one is None or other is None or (formula.weight and not other.terms):
        return None
    return (one / other if formula.weight else exp(one - other)).rational


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
    plain = [c.rational for c in coefficients or ()]
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


def _gamma(node: Node, first: int) -> int | None:
    """gamma rises from 1.47 on."""
    inner = direction(node.args[0], first)
    return inner if inner == 1 and sign_at(Node("-", (node.args[0], number(Fraction(3, 2)))), first) >= 0 else None


_DIRECTIONS: dict[str, Callable[[Node, int], int | None]] = reading("direction", {
    **dict.fromkeys(("exp", "log", "sqrt", "floor", "atan", "erf"), _as_its_argument),
    "neg": _opposite,
    **dict.fromkeys(("+", "min", "max"), _both(1)),
    "-": _both(-1),
    "*": _product,
    "/": _quotient,
    "**": _power,
    "gamma": _gamma,
    **dict.fromkeys(("sin", "cos", "abs", "where", "sum"), lambda *_: None),
}, ("where", "sum"))  # fmt: skip
