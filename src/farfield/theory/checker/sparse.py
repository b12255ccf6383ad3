"""Sparse sets of distances, such as the powers of two: how a formula tests for them, and what it is on and off them.

With X = log(t + c)/log(B) or a root of t + c, floor(X) <= X, and they are equal at a whole t if and only if t + c is a
power of B, or a whole number to that power. So where(floor(X) < X, a, b) is b on the set and a everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from farfield.formula import Formula, Node, number
from farfield.formula.algebras import exact_value
from farfield.formula.tree import T, substitute

MAX_BASE = 10**6
MAX_POWER = 64
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class SparseSet:
    """The distances base**n - shift or, if the base is 0, n**power - shift, for n = 0, 1, 2, ..."""

    base: int
    power: int
    shift: int

    @property
    def node(self) -> Node:
        """The n-th distance, with n called t."""
        grown = Node("**", (number(self.base), T) if self.base else (T, number(self.power)))
        return Node("-", (grown, number(self.shift))) if self.shift else grown

    def first(self, start: int) -> int:
        """The least n whose distance is at least `start`."""
        low, high = -1, (start + self.shift).bit_length() if self.base else start + self.shift
        while high - low > 1:
            middle = (low + high) // 2
            enough = (self.base**middle if self.base else middle**self.power) >= start + self.shift
            low, high = (low, middle) if enough else (middle, high)
        return high

    @property
    def outside(self) -> tuple[int, int]:
        """(m, r) such that no distance m*n + r with n >= 1 is in the set.

        A power of B is 1 or divisible by B, so B*n + 1 is none. A square or a higher power is not 2 modulo 4.
        """
        m, r = (self.base, 1) if self.base else (4, 2)
        return m, (r - self.shift) % m

    def resolved(self, formula: Formula, on: bool) -> Formula:
        """The formula on the set, or off it: every test for the set is answered."""
        return replace(formula, node=self._resolved(formula.node, on), source="")

    def _resolved(self, node: Node, on: bool) -> Node:
        if node.op == "where" and (test := _test(node)) is not None and test[0] == self:
            return self._resolved(node.args[2 if test[1] == on else 3], on)
        return replace(node, args=tuple(self._resolved(a, on) for a in node.args)) if node.args else node

    def along(self, formula: Formula) -> Formula:
        """The weights on the set alone, as a series in n, which is called t."""
        return replace(formula, node=substitute(self.resolved(formula, True).node, {"t": self.node}), source="")


def sparse_sets(formula: Formula) -> Iterator[SparseSet]:
    """The sets for which a formula seems to test, each once."""
    seen = set()
    for node in formula.node.walk():
        result = _set(_plain(node.args[0])) if node.op == "floor" else None
        if result is not None and result not in seen:
            seen.add(result)
            yield result


def _test(node: Node) -> tuple[SparseSet, bool] | None:
    """(set, whether the first branch is that on the set) of a where that tests for one; None otherwise."""
    left, right = (_plain(a) for a in node.args[:2])
    if right.value == 0 and left.op == "-":  # high - low against 0
        left, right = left.args
    elif left.value == 0 and right.op == "-":  # 0 against high - low
        right, left = right.args
    for low, high, off, on in ((left, right, "<", ">="), (right, left, ">", "<=")):
        result = _pair(_plain(low), _plain(high))
        if result is not None and node.value in (off, on):
            return result, node.value == on
    return None


def _pair(low: Node, high: Node) -> SparseSet | None:
    """The set on which low = high, where low < high at all other distances."""
    steps = [n for n in low.walk() if n.op == "floor"]
    result = _set(_plain(steps[0].args[0])) if steps else None
    if result is None:
        return None
    step = steps[0]
    if low == step and high == _plain(step.args[0]):
        return result
    whole = ("**", (number(result.base), step)) if result.base else ("**", (step, number(result.power)))
    line = _shift(high)
    return result if (low.op, low.args) == whole and line == result.shift else None


def _set(x: Node) -> SparseSet | None:
    """The set of distances at which log(t + c)/log(B), or a root of t + c, is a whole number."""
    if x.op == "/" and x.args[0].op == "log" and x.args[1].op == "log":
        base, shift = _whole(x.args[1].args[0]), _shift(x.args[0].args[0])
        return None if base is None or shift is None or not 2 <= base <= MAX_BASE else SparseSet(base, 0, shift)
    if x.op not in ("sqrt", "**"):
        return None
    root, shift = HALF if x.op == "sqrt" else exact_value(x.args[1], {}), _shift(x.args[0])
    if root is None or shift is None or root.numerator != 1 or not 2 <= root.denominator <= MAX_POWER:
        return None
    return SparseSet(0, root.denominator, shift)


def _shift(node: Node) -> int | None:
    """c if a part is t + c, with a whole c that is not negative."""
    if node == T:
        return 0
    if node.op == "+" and T in node.args:
        return _whole(node.args[1] if node.args[0] == T else node.args[0])
    return None


def _whole(node: Node) -> int | None:
    value = exact_value(node, {}) if node.op == "number" else None
    return int(value) if value is not None and value.denominator == 1 else None


def _plain(node: Node) -> Node:
    """A part without factors of 1, as mod(x, 1) has them."""
    if node.op in ("*", "/") and _whole(node.args[1]) == 1:
        return _plain(node.args[0])
    if node.op == "*" and _whole(node.args[0]) == 1:
        return _plain(node.args[1])
    if node.op in ("floor", "-"):
        return replace(node, args=tuple(_plain(a) for a in node.args))
    return node
