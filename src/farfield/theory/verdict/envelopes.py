"""The range of a bias that is only known within bounds: between(lo, hi), the row i, a sink.

A formula with `between(lo, hi)` stands for every bias that stays within these bounds, whatever picks it: data, a gate,
a learned correction; each occurrence picks for itself, anew for every row and distance. `i` is the row, and t <= i.
`sink(s)`, added at the top, puts exp(s) into the denominator of every row. What is needed are two ordinary formulas:
the upper envelope E(t), which no member exceeds in any row, and the lower one e(t). They are found part by part: a
part that only rises or falls with another takes its ends from the other's ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from flint import ctx

from farfield.formula import Formula, FormulaError, Node
from farfield.formula.algebras import ball_value, float_value
from farfield.formula.functions import is_class
from farfield.formula.tree import T, number, substitute
from farfield.theory.errors import UndecidedError

ROW = "i"
ZERO, ONE = number(0), number(1)
NOTHING = Node("-inf")  # a weight of 0, in a branch of where
_RISING = ("exp", "log", "sqrt", "floor", "atan", "erf")  # derived functions are written out before
_AT_END: dict[str, tuple[Node | None, Node | None]] = {
    "exp": (ZERO, None),
    "atan": (number(-2), number(2)),
    "erf": (number(-1), ONE),
}  # at -infinity and +infinity


@dataclass(frozen=True)
class Ends:
    """The ends of a part, as expressions in t; None where it is not bounded on that side."""

    low: Node | None
    high: Node | None
    tight: bool = True  # both ends are attained by some choice

    @property
    def single(self) -> bool:
        return self.low is not None and self.low == self.high


@dataclass(frozen=True)
class Envelope:
    """What a class of biases lies between, and the logit of its sink.

    Attributes:
        upper: No member exceeds it; None if nothing bounds the class.
        lower: No member is below it; None if nothing does.
        sink: The logit in the denominator, if there is one.
        rows: Whether members depend on the row.
        tight: Whether the class has members that attain the ends at every distance.
    """

    upper: Formula | None
    lower: Formula | None
    sink: Node | None
    rows: bool
    tight: bool


def envelope(formula: Formula, positive: frozenset[str] = frozenset()) -> Envelope:
    """The envelopes of a class of biases.

    Args:
        formula: With between, i or sink in it.
        positive: Parameters that are known to be positive.

    Raises:
        UndecidedError: If the ends cannot be told.
    """
    if formula.weight:
        raise FormulaError("between, sink and the row i belong into a bias, not into a weight", formula.text())
    node, sink = _without_sink(formula.node)
    ranges = PartEnds(positive)
    result = ranges.of(node)
    rows = ROW in node.free()
    if result.low is None:  # the nearest key may be bounded from below all the same, and is enough
        near = ranges.of(substitute(node, {"t": ZERO})).low
        if near is not None:
            result = Ends(Node("where", (T, ONE, near, NOTHING), "<"), result.high, tight=False)

    def bias(end: Node | None) -> Formula | None:
        return None if end is None else replace(formula, node=end, source="")

    return Envelope(bias(result.high), bias(result.low), sink, rows, result.tight and not rows)


def _without_sink(node: Node) -> tuple[Node, Node | None]:
    """The formula without the sink that is added at its top, and the sink's logit."""
    sinks = [n for n in node.walk() if n.op == "sink"]
    if not sinks:
        return node, None
    if len(sinks) > 1:
        raise FormulaError("a row has one sink; add their weights up", column=sinks[1].column)
    if node.op == "sink":
        rest, sink = ZERO, node.args[0]
    elif node.op == "+" and any(a.op == "sink" for a in node.args):
        left, right = node.args
        rest, sink = (right, left.args[0]) if left.op == "sink" else (left, right.args[0])
    elif node.op in ("+", "-") and any(n.op == "sink" for n in node.args[0].walk()):
        inner, result = _without_sink(node.args[0])
        assert result is not None
        rest, sink = replace(node, args=(inner, node.args[1])), result
    else:
        raise FormulaError("sink(s) may only be added at the top of a formula", column=sinks[0].column)
    if "t" in sink.free() or is_class(sink):
        raise FormulaError("the logit of a sink may not depend on t or i", column=sinks[0].column)
    return rest, sink


class PartEnds:
    """PartEnds of the parts of one formula."""

    def __init__(self, positive: frozenset[str]):
        self.positive = positive

    def of(self, node: Node) -> Ends:
        """The range of a part over all rows and choices, at distance t."""
        if node.op == "name" and node.value == ROW:
            return Ends(T, None)
        if not is_class(node):
            return Ends(node, node)
        if node.op == "sink":
            raise FormulaError("sink(s) may only be added at the top of a formula", column=node.column)
        if node.op == "between":
            _refuse_empty(node)
            below, above = self.of(node.args[0]), self.of(node.args[1])
            return Ends(below.low, above.high, below.tight and above.tight)
        if node.op == "where":
            return self._where(node)
        if node.op == "sum":
            body = self.of(node.args[0])
            low, high = (None if x is None else replace(node, args=(x, *node.args[1:])) for x in (body.low, body.high))
            return Ends(low, high, body.tight)
        if node.op in ("sin", "cos"):
            return Ends(number(-1), ONE, tight=False)
        parts = [self.of(a) for a in node.args]
        tight = all(p.tight for p in parts)
        if node.op in _RISING:
            bottom, top = _AT_END.get(node.op, (None, None))
            a, b = parts[0].low, parts[0].high
            tight = tight and not (node.op in ("atan", "erf") and None in (a, b))
            return Ends(bottom if a is None else _call(node, a), top if b is None else _call(node, b), tight)
        rule = _RULES.get(node.op)
        if rule is None:
            raise UndecidedError(f"{node.op} of a part that is only known within bounds is not followed")
        return replace(rule(self, parts), tight=tight)

    def sign(self, node: Node | None) -> int | None:
        """1 if a part is never negative, -1 if never positive (for t >= 0), None if that is not known."""
        if node is None:
            return None
        if not node.free():
            return _constant_sign(node)
        op, args = node.op, node.args
        if op == "name":
            return 1 if node.value == "t" or str(node.value) in self.positive else None
        if op in ("exp", "sqrt", "abs", "sigmoid", "softplus", "relu", "cosh", "gamma"):
            return 1
        signs = [self.sign(a) for a in args] if op != "where" else [self.sign(a) for a in args[2:]]
        if op == "neg":
            return None if signs[0] is None else -signs[0]
        if op in ("+", "where"):
            return signs[0] if signs[0] == signs[1] else None
        if op == "-":
            return signs[0] if signs[0] is not None and signs[1] == -signs[0] else self._above(args[0], args[1])
        if op in ("*", "/"):
            return None if None in signs else signs[0] * signs[1]  # type: ignore[operator]
        if op == "max":
            return 1 if 1 in signs else -1 if signs == [-1, -1] else None
        if op == "min":
            return -1 if -1 in signs else 1 if signs == [1, 1] else None
        if op == "**":
            return 1 if signs[0] == 1 else None
        if op in ("log1p", "floor", "tanh", "expm1", "sinh", "atan", "erf"):
            return signs[0] if op != "floor" or signs[0] == 1 else None
        if op == "log":
            return 1 if self._above(args[0], ONE) == 1 else None
        return None

    def _above(self, a: Node, b: Node) -> int | None:
        """1 if a >= b: where a is b plus something that is never negative, or the larger of b and something."""
        if a == b:
            return 1
        if a.op == "+":
            for x, y in (a.args, a.args[::-1]):
                if self._above(x, b) == 1 and self.sign(y) == 1:
                    return 1
        if a.op == "max" and any(self._above(x, b) == 1 for x in a.args):
            return 1
        if not a.free() and not b.free():
            return 1 if _constant_sign(Node("-", (a, b))) == 1 else None
        return None

    # ------------------------------------------------------------------------------------------------ rules
    def _add(self, parts: list[Ends]) -> Ends:
        a, b = parts
        return Ends(_both("+", a.low, b.low), _both("+", a.high, b.high))

    def _subtract(self, parts: list[Ends]) -> Ends:
        a, b = parts
        return Ends(_both("-", a.low, b.high), _both("-", a.high, b.low))

    def _negate(self, parts: list[Ends]) -> Ends:
        (a,) = parts
        return Ends(_neg(a.high), _neg(a.low))

    def _multiply(self, parts: list[Ends]) -> Ends:
        a, b = parts
        if b.single and not a.single:
            a, b = b, a
        if a.single:
            s = self.sign(a.low)
            if s is not None:
                first, last = (b.low, b.high) if s > 0 else (b.high, b.low)
                return Ends(_both("*", a.low, first), _both("*", a.low, last))
        if self.sign(a.low) == 1 and self.sign(b.low) == 1:
            return Ends(_both("*", a.low, b.low), _both("*", a.high, b.high))
        if None in (a.low, a.high, b.low, b.high):
            return Ends(None, None)
        ends = dict.fromkeys((x, y) for x in (a.low, a.high) for y in (b.low, b.high))
        products = [Node("*", (x, y)) for x, y in ends if x is not None and y is not None]
        return Ends(_fold("min", products), _fold("max", products))

    def _divide(self, parts: list[Ends]) -> Ends:
        a, b = parts
        if self.sign(b.low) != 1:
            raise UndecidedError("a quotient is followed only where what it divides by is positive")
        inverse = Ends(ZERO if b.high is None else Node("/", (ONE, b.high)), Node("/", (ONE, b.low)) if b.low else None)
        if inverse.low == ZERO and a.single and self.sign(a.low) == 1:
            return Ends(ZERO, _both("/", a.low, b.low))
        return self._multiply([a, inverse])

    def _power(self, parts: list[Ends]) -> Ends:
        a, b = parts
        if b.single and b.low is not None and "t" not in b.low.free() and self.sign(a.low) == 1:
            s = self.sign(b.low)
            if s is not None:
                low, high = (a.low, a.high) if s > 0 else (a.high, a.low)
                return Ends(_both("**", low, b.low), _both("**", high, b.low))
        raise UndecidedError("a power is followed only with a constant exponent over a part that is never negative")

    def _absolute(self, parts: list[Ends]) -> Ends:
        (a,) = parts
        s = self.sign(a.low) if self.sign(a.low) == 1 else self.sign(a.high)
        if s == 1 and self.sign(a.low) == 1:
            return a
        if s == -1:
            return self._negate(parts)
        ends = [Node("abs", (x,)) for x in (a.low, a.high) if x is not None]
        return Ends(ZERO, None if len(ends) < 2 else Node("max", (ends[0], ends[1])))

    def _min(self, parts: list[Ends]) -> Ends:
        a, b = parts
        return Ends(_both("min", a.low, b.low), _either("min", a.high, b.high))

    def _max(self, parts: list[Ends]) -> Ends:
        a, b = parts
        return Ends(_either("max", a.low, b.low), _both("max", a.high, b.high))

    def _where(self, node: Node) -> Ends:
        left, right, *branches = node.args
        yes, no = (Ends(b, b) if b.op == "-inf" else self.of(b) for b in branches)
        if not is_class(left) and not is_class(right):
            low, high = (
                None if x is None or y is None else replace(node, args=(left, right, x, y))
                for x, y in ((yes.low, no.low), (yes.high, no.high))
            )
            return Ends(low, high, yes.tight and no.tight)
        if NOTHING in (yes.low, no.low):
            other = no if yes.low == NOTHING else yes
            return Ends(None, other.high, tight=False)
        return Ends(_both("min", yes.low, no.low), _both("max", yes.high, no.high), tight=False)


_RULES: Mapping[str, Callable[[PartEnds, list[Ends]], Ends]] = {
    "+": PartEnds._add, "-": PartEnds._subtract, "neg": PartEnds._negate, "*": PartEnds._multiply,
    "/": PartEnds._divide, "**": PartEnds._power, "abs": PartEnds._absolute, "min": PartEnds._min, "max": PartEnds._max,
}  # fmt: skip


def _refuse_empty(node: Node) -> None:
    """One sentence where the bounds stand the wrong way round at one of the first distances."""
    low, high = node.args
    if is_class(low) or is_class(high) or (low.free() | high.free()) - {"t"}:
        return
    for t in (*range(33), 100, 1000, 10_000):
        a, b = (float_value(x, {"t": float(t)}) for x in (low, high))
        if a > b + 1e-9 * (abs(a) + abs(b)):
            said = f"between(low, high): at t = {t} the low end {a:g} is above the high one, {b:g}"
            raise FormulaError(said, column=node.column)


def _call(node: Node, argument: Node) -> Node:
    return replace(node, args=(argument,))


def _neg(x: Node | None) -> Node | None:
    return None if x is None else x.args[0] if x.op == "neg" else Node("neg", (x,))


def _both(op: str, a: Node | None, b: Node | None) -> Node | None:
    """An operation on two ends, unbounded if one is; but 0 times any number is 0."""
    if op == "*" and ZERO in (a, b):
        return ZERO
    if a is None or b is None:
        return None
    if op in ("+", "-") and b == ZERO:
        return a
    if op == "+" and a == ZERO:
        return b
    return a if op in ("min", "max") and a == b else Node(op, (a, b))


def _either(op: str, a: Node | None, b: Node | None) -> Node | None:
    """The least or largest of two ends, of which an unbounded one never wins."""
    return b if a is None else a if b is None else _both(op, a, b)


def _fold(op: str, nodes: list[Node]) -> Node:
    result = nodes[0]
    for other in nodes[1:]:
        result = Node(op, (result, other))
    return result


def _constant_sign(node: Node) -> int | None:
    if node.op == "-inf":
        return -1
    if node.op == "number":
        assert isinstance(node.value, Fraction)
        return -1 if node.value < 0 else 1
    with ctx.workprec(128):
        value = ball_value(node, {})
        return 1 if value >= 0 else -1 if value <= 0 else None
