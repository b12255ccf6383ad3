"""The range of a formula over a whole domain of distances, by plain interval arithmetic: rough, but cheap and robust.

It shows that a formula has a value, or that it lies on one side of a bound by far, where expansions are needlessly fine
(roots of roots) or numbers too large to write down (towers of exponentials): an end of a range may be infinite.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from farfield.formula import Formula, Node
from farfield.formula.algebras import ARITHMETIC, COMPARE, OPPOSITE, Algebra, Names, evaluate
from farfield.formula.functions import reading
from farfield.theory.checker import special
from farfield.theory.checker.constants import UnknownError
from farfield.theory.checker.intervals import Interval, exactly, span

MAX_POWER = 64  # of a number that may be negative


def range_of(formula: Formula, t: Interval) -> Interval:
    """A range of the formula's value over t; UnknownError unless it is shown to have one at every distance."""
    value: Interval = evaluate(formula.node, {"t": t}, RANGES)
    if value.low.is_nan() or value.high.is_nan():
        raise UnknownError("a range that is not known")
    return value


def _inverse(x: Interval) -> Interval:
    if x.contains_zero():
        raise UnknownError("a division by something that may be 0")
    return x.inverse()


def _log(x: Interval) -> Interval:
    if not x.low > 0:
        raise UnknownError("a logarithm of something that may not be positive")
    return x.log()


def _sqrt(x: Interval) -> Interval:
    if not x.low >= 0:
        raise UnknownError("a root of something that may be negative")
    return Interval(x.low.sqrt().lower(), x.high.sqrt().upper() if x.high.is_finite() else x.high)


def _power(x: Interval, e: Interval) -> Interval:
    n = RANGES.integer(e)
    if n is not None and abs(n) <= MAX_POWER:
        return x.power(n) if n >= 0 else _inverse(x.power(-n))
    if x.low > 0 or (x.low >= 0 and e.low > 0):
        return (e * x.log()).exp()
    raise UnknownError("a real power of something that may not be positive")


def _floor(x: Interval) -> Interval:
    low, high = (end.floor() if end.is_finite() else end for end in (x.low, x.high))
    return span(low, high) if low.is_finite() and high.is_finite() else Interval(low, high)


class _Ranges(Algebra):
    operations = reading("checker: ranges", {
        **ARITHMETIC, "/": lambda x, y: x * _inverse(y), "**": _power, "exp": lambda x: x.exp(), "log": _log,
        "sqrt": _sqrt, "sin": lambda x: x.wave("sin"), "cos": lambda x: x.wave("cos"), "abs": lambda x: x.abs(),
        "floor": _floor, "atan": special.atan_range, "erf": special.erf_range, "gamma": special.gamma_range,
        "min": lambda x, y: Interval(x.low.min(y.low), x.high.min(y.high)),
        "max": lambda x, y: Interval(x.low.max(y.low), x.high.max(y.high)), "between": lambda x, y: x.union(y),
    }, more=("between",))  # fmt: skip

    def number(self, value: Fraction) -> Interval:
        return exactly(fmpq(value.numerator, value.denominator))

    def constant(self, name: str) -> Interval:
        if name != "pi":
            raise UnknownError("-inf inside a formula")
        return span(arb.pi())

    def integer(self, value: Interval) -> int | None:
        whole = value.low.unique_fmpz() if value.low == value.high and abs(value.low) < 10**6 else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Names) -> Interval:
        left, right = (evaluate(a, names, self) for a in node.args[:2])
        if _surely(str(node.value), left, right):
            return self._branch(node.args[2], names)
        if _surely(OPPOSITE[str(node.value)], left, right):
            return self._branch(node.args[3], names)
        return self._branch(node.args[2], names).union(self._branch(node.args[3], names))

    def _branch(self, node: Node, names: Names) -> Interval:
        value: Interval = evaluate(node, names, self)
        return value


def _surely(relation: str, x: Interval, y: Interval) -> bool:
    """Whether every pair of numbers from the two ranges is so related."""
    compare: Callable[[Any, Any], Any] = COMPARE[relation]
    return bool(compare(x.high, y.low) if relation in ("<", "<=") else compare(x.low, y.high))


RANGES = _Ranges()
