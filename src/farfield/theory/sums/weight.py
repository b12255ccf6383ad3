"""A formula as a function on real balls, complex balls and power series, with its constants worked out once.

The same closure serves the sum (real balls), the integral (complex balls, which must know where the function is
analytic) and the derivatives (power series), so that Euler-Maclaurin never sees two spellings of one weight.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from flint import acb, arb, arb_series, ctx, fmpz

from farfield.formula import Formula, FormulaError, Node, index_range, number
from farfield.formula.algebras import COMPARE, OPPOSITE, ball_exp, ball_power, ball_value
from farfield.formula.functions import DERIVED, expand, rule_table
from farfield.formula.tree import substitute
from farfield.theory.budget import tick
from farfield.theory.errors import NotSmoothError

Ball = Any  # arb, acb or arb_series
Function = Callable[[Ball, bool], Ball]  # (value of t, must be analytic there) -> value


def _power(base: Ball, exponent: Ball, analytic: bool) -> Ball:
    if isinstance(exponent, arb):
        whole = exponent.unique_fmpz() if exponent.is_exact() else None
        if whole is not None and abs(whole) < 10_000:
            return base ** int(whole) if whole >= 0 else 1 / base ** int(-whole)
        if isinstance(base, arb):
            return ball_power(base, exponent)
    return (_log(base, analytic) * exponent).exp()


def _smooth_above_zero(name: str) -> Function:
    """log or sqrt: cut along the negative numbers, and without a power series at 0."""

    def call(x: Ball, analytic: bool) -> Ball:
        if isinstance(x, acb):
            return getattr(x, name)(analytic=analytic)
        if isinstance(x, arb_series) and not x[0] > 0:
            raise NotSmoothError
        return getattr(x, name)()

    return call


_log, _sqrt = _smooth_above_zero("log"), _smooth_above_zero("sqrt")


def _exp(x: Ball, analytic: bool) -> Ball:
    return ball_exp(x) if isinstance(x, arb) else x.exp()


def _real_only(name: str) -> Callable[..., Ball]:
    calls: dict[str, Callable[..., Ball]] = {
        "abs": abs, "floor": lambda x: x.floor(), "min": lambda x, y: x.min(y), "max": lambda x, y: x.max(y),
    }  # fmt: skip

    def call(*args: Ball) -> Ball:
        if not all(isinstance(a, arb) for a in args[:-1]):
            raise NotSmoothError
        return calls[name](*args[:-1])

    return call


_RULES: dict[str, Callable[..., Ball]] = rule_table("real and complex balls, power series", {
    "+": lambda x, y, _: x + y, "-": lambda x, y, _: x - y, "*": lambda x, y, _: x * y, "/": lambda x, y, _: x / y,
    "neg": lambda x, _: -x, "**": _power, "exp": _exp, "log": _log, "sqrt": _sqrt,
    "sin": lambda x, _: x.sin(), "cos": lambda x, _: x.cos(),
    **{name: _real_only(name) for name in ("abs", "floor", "min", "max")},
})  # fmt: skip


def _constant(node: Node) -> Function:
    values: dict[int, Ball] = {}

    def call(_: Ball, __: bool) -> Ball:
        if ctx.prec not in values:
            values[ctx.prec] = ball_value(node, {})
        return values[ctx.prec]

    return call


def _sum(node: Node) -> Function:
    """A sum written out; its values are remembered, because heads that differ outside it share them (sandwich)."""
    indices = index_range(node)
    if indices is None:
        raise FormulaError("the bounds of a sum must be constants", column=node.column)
    terms = [compiled(substitute(node.args[0], {str(node.value): number(j)})) for j in indices]
    memory: dict[tuple[int, int], Ball] = {}

    def call(x: Ball, analytic: bool) -> Ball:
        place = x.unique_fmpz() if isinstance(x, arb) and x.is_exact() and len(terms) > 8 else None
        key = None if place is None or place >= 1 << 20 else (int(place), ctx.prec)
        if key in memory:
            return memory[key]
        total: Ball = arb(0)
        for term in terms:
            total = total + term(x, analytic)
        if key is not None:
            if len(memory) > 1 << 17:
                memory.clear()
            memory[key] = total
        return total

    return call


def _where(node: Node) -> Function:
    left, right, yes, no = (compiled(a) for a in node.args)
    holds, fails = COMPARE[str(node.value)], COMPARE[OPPOSITE[str(node.value)]]

    def call(x: Ball, analytic: bool) -> Ball:
        if not isinstance(x, arb):
            raise NotSmoothError
        a, b = left(x, analytic), right(x, analytic)
        if holds(a, b):
            return yes(x, analytic)
        if fails(a, b):
            return no(x, analytic)
        return yes(x, analytic).union(no(x, analytic))

    return call


@lru_cache(maxsize=4096)
def compiled(node: Node) -> Function:
    """The expression as a closure; parts without t are worked out once for each precision."""
    if not node.free():
        return _constant(node)
    if node.op == "name":
        if node.value != "t":
            raise FormulaError(f"the parameter '{node.value}' has no value", column=node.column)
        return lambda x, _: x
    if node.op == "sum":
        return _sum(node)
    if node.op == "where":
        return _where(node)
    if node.op in DERIVED:
        return compiled(expand(node))
    operation = _RULES[node.op]
    parts = [compiled(a) for a in node.args]
    if len(parts) == 1:
        (inner,) = parts
        return lambda x, analytic: operation(inner(x, analytic), analytic)
    first, second = parts
    return lambda x, analytic: operation(first(x, analytic), second(x, analytic), analytic)


class Weight:
    """The weight b(t) = exp(r(t)) of a formula without open parameters, on balls, complex balls and power series."""

    def __init__(self, formula: Formula):
        self.formula = formula
        inner = compiled(formula.node)
        self.call: Function = inner if formula.weight else lambda x, analytic: _exp(inner(x, analytic), analytic)

    def __call__(self, t: int | arb) -> arb:
        """A ball around b(t)."""
        tick()
        return self.call(t if isinstance(t, arb) else arb(fmpz(t)), False)

    def jet(self, x: arb, terms: int) -> list[arb]:
        """The Taylor coefficients b(x), b'(x), b''(x)/2, ... of that many terms."""
        tick()
        before, ctx.cap = ctx.cap, terms + 1  # python-flint cuts every power series to so many terms, without a word
        try:
            value = self.call(arb_series([x, arb(1)], terms), False)
        finally:
            ctx.cap = before
        if isinstance(value, arb):
            return [value] + [arb(0)] * (terms - 1)
        assert value.prec >= terms, "the power series was cut"
        return [value[i] for i in range(terms)]

    def largest(self, box: acb) -> arb:
        """An upper bound of |b| on a complex box on which b is analytic; not finite where that is unknown."""
        tick()
        value = self.call(box, True)
        return abs(value).upper() if isinstance(value, acb | arb) else arb("inf")
