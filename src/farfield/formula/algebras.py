"""The readings of a formula: one walk over the expression, one algebra for each kind of value.

An algebra says what a number, pi and each operation mean: doubles, exact rationals, Arb balls, tensors, sympy
expressions. Libraries are imported inside the reading that needs them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from farfield.formula.tree import MAX_TERMS, FormulaError, Node

Names = Mapping[str, Any]
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "neg": operator.neg,
}
_COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class Algebra:
    """What the parts of a formula mean for one kind of value."""

    operations: Mapping[str, Callable[..., Any]]

    def number(self, value: Fraction) -> Any:
        raise NotImplementedError

    def constant(self, name: str) -> Any:
        """The value of "pi" or "-inf"."""
        raise NotImplementedError

    def integer(self, value: Any) -> int | None:
        """The value as an int if it is one for certain."""
        raise NotImplementedError

    def where(self, node: Node, names: Names) -> Any:
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        branch = node.args[2] if _COMPARE[str(node.value)](left, right) else node.args[3]
        return evaluate(branch, names, self)

    def sum(self, node: Node, names: Names) -> Any:
        body, *bounds = node.args
        first, last = (self.integer(evaluate(b, names, self)) for b in bounds)
        if first is None or last is None:
            raise FormulaError("the bounds of a sum must be whole numbers", column=node.column)
        if last - first >= MAX_TERMS:
            raise FormulaError(f"the sum has more than {MAX_TERMS} terms", column=node.column)
        total = self.number(Fraction(0))
        for j in range(first, last + 1):
            total = total + evaluate(body, {**names, str(node.value): self.number(Fraction(j))}, self)
        return total


def evaluate(node: Node, names: Names, algebra: Algebra) -> Any:
    """The value of an expression in an algebra; `names` gives t and the parameters."""
    op = node.op
    if op == "number":
        assert isinstance(node.value, Fraction)
        return algebra.number(node.value)
    if op == "name":
        try:
            return names[str(node.value)]
        except KeyError:
            raise FormulaError(f"the parameter {node.value!r} has no value", column=node.column) from None
    if op in ("pi", "-inf"):
        return algebra.constant(op)
    if op == "where":
        return algebra.where(node, names)
    if op == "sum":
        return algebra.sum(node, names)
    return algebra.operations[op](*[evaluate(a, names, algebra) for a in node.args])


# ---------------------------------------------------------------------------------------------------- doubles
def _double(function: Callable[..., Any]) -> Callable[..., float]:
    def call(*args: float) -> float:
        try:
            value = function(*args)
        except OverflowError:
            return math.inf
        except (ValueError, ZeroDivisionError):
            return math.nan
        return math.nan if isinstance(value, complex) else value

    return call


def _float_floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


_MATH: dict[str, Callable[..., Any]] = {
    **_ARITHMETIC, "**": operator.pow, "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "sin": math.sin,
    "cos": math.cos, "abs": abs, "floor": _float_floor, "min": min, "max": max,
}  # fmt: skip


class _Doubles(Algebra):
    operations: Mapping[str, Callable[..., Any]] = {op: _double(f) for op, f in _MATH.items()}

    def number(self, value: Fraction) -> float:
        return float(value)

    def constant(self, name: str) -> float:
        return math.pi if name == "pi" else -math.inf

    def integer(self, value: float) -> int | None:
        return int(value) if math.isfinite(value) and value == math.floor(value) else None


def float_value(node: Node, names: Names) -> float:
    """The expression in double precision; nan where it is undefined, inf where it overflows."""
    return evaluate(node, {n: float(v) for n, v in names.items()}, _DOUBLES)


def float_log(value: float) -> float:
    """The bias of a weight in double precision."""
    return -math.inf if value == 0 else math.log(value) if value > 0 else math.nan


# ---------------------------------------------------------------------------------------------------- rationals
class _NotRationalError(Exception):
    """The expression is not plainly a rational number."""


def _not_rational(*_: Any) -> Fraction:
    raise _NotRationalError


def _rational_power(a: Fraction, b: Fraction) -> Fraction:
    if b.denominator != 1 or abs(b) > 64 or (a == 0 and b < 0):
        raise _NotRationalError
    return a ** int(b)


class _Rationals(Algebra):
    operations: Mapping[str, Callable[..., Any]] = {
        **_ARITHMETIC, "**": _rational_power, "abs": abs, "min": min, "max": max,
        "floor": lambda x: Fraction(math.floor(x)),
        **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos"), _not_rational),
    }  # fmt: skip

    def number(self, value: Fraction) -> Fraction:
        return value

    def constant(self, name: str) -> Fraction:
        raise _NotRationalError

    def integer(self, value: Fraction) -> int | None:
        return int(value) if value.denominator == 1 else None


def exact_value(node: Node, names: Names) -> Fraction | None:
    """The expression as an exact rational, or None if it is not plainly one."""
    try:
        return evaluate(node, names, _RATIONALS)
    except (_NotRationalError, ZeroDivisionError, KeyError, FormulaError):
        return None


# ---------------------------------------------------------------------------------------------------- Arb balls
def ball_power(a: Any, b: Any) -> Any:
    """a ** b for balls: integer powers of anything, real powers of what is not negative."""
    from flint import arb

    exponent = b.unique_fmpz() if b.is_exact() and abs(b) < arb((1, 4096)) else None  # 2**(10**9) is not written out
    if exponent is not None:
        return _whole_power(a, exponent) if exponent >= 0 else 1 / _whole_power(a, -exponent)
    if a > 0:
        return a**b
    if b > 0 and a >= 0:  # the ball touches 0, where the power is 0
        top = a.upper()
        return arb(0) if a.is_zero() else arb(0).union(top**b)
    return arb("nan")


def _whole_power(a: Any, n: Any) -> Any:
    """a ** n for n >= 0; the library answers nan for a ball around 0."""
    from flint import arb

    if a != 0 or a.is_exact() or n == 0 or not a.is_finite():
        return a**n
    ends = a.lower() ** n, a.upper() ** n
    return arb(0).union(ends[0]).union(ends[1]) if n % 2 == 0 else ends[0].union(ends[1])


class _Balls(Algebra):
    operations: Mapping[str, Callable[..., Any]] = {
        **_ARITHMETIC, "**": ball_power, "exp": lambda x: ball_exp(x), "log": lambda x: x.log(),
        "sqrt": lambda x: x.sqrt(), "sin": lambda x: x.sin(), "cos": lambda x: x.cos(), "abs": abs,
        "floor": lambda x: x.floor(), "min": lambda x, y: x.min(y), "max": lambda x, y: x.max(y),
    }  # fmt: skip

    def number(self, value: Fraction) -> Any:
        return to_ball(value)

    def constant(self, name: str) -> Any:
        from flint import arb

        return arb.pi() if name == "pi" else arb("-inf")

    def integer(self, value: Any) -> int | None:
        whole = value.unique_fmpz() if value.is_exact() else None
        return None if whole is None else int(whole)

    def where(self, node: Node, names: Names) -> Any:
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        yes = _COMPARE[str(node.value)](left, right)
        no = _COMPARE[{"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[str(node.value)]](left, right)
        if yes or no:
            return evaluate(node.args[2] if yes else node.args[3], names, self)
        a, b = (evaluate(n, names, self) for n in node.args[2:])
        return a.union(b)  # over a range of t both may be met


def to_ball(value: Any) -> Any:
    """A ball around an exact number; a ball is returned as it is."""
    from flint import arb, fmpq

    if isinstance(value, arb):
        return value
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return arb(value)


def ball_value(node: Node, names: Names) -> Any:
    """A ball that contains the expression, at the current precision; not finite where it is undefined."""
    return evaluate(node, {n: to_ball(v) for n, v in names.items()}, _BALLS)


def ball_exp(value: Any) -> Any:
    """exp of a ball, with exp(-inf) = 0."""
    from flint import arb

    return arb(0) if value.is_exact() and value == arb("-inf") else value.exp()


def ball_log(value: Any) -> Any:
    """log of a ball, with log(0) = -inf."""
    from flint import arb

    return arb("-inf") if value.is_zero() else value.log()


# ---------------------------------------------------------------------------------------------------- arrays
class _Arrays(Algebra):
    def __init__(self) -> None:
        import numpy

        self.lib = numpy
        one = {op: getattr(numpy, op) for op in ("exp", "log", "sqrt", "sin", "cos", "abs", "floor")}
        self.operations = {**_ARITHMETIC, "**": numpy.power, "min": numpy.minimum, "max": numpy.maximum, **one}

    def number(self, value: Fraction) -> Any:
        return self.lib.float64(float(value))

    def constant(self, name: str) -> float:
        return _DOUBLES.constant(name)

    def integer(self, value: Any) -> int | None:
        return _DOUBLES.integer(float(value))

    def where(self, node: Node, names: Names) -> Any:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.where(_COMPARE[str(node.value)](left, right), a, b)


def array_value(node: Node, weight: bool, names: Names) -> Any:
    """The bias on a numpy array of distances, in double precision; nan where it is undefined."""
    import numpy

    with numpy.errstate(all="ignore"):
        value = evaluate(node, names, _Arrays()) + numpy.zeros_like(names["t"])
        return numpy.log(value) if weight else value


# ---------------------------------------------------------------------------------------------------- tensors
class _Tensors(Algebra):
    def __init__(self) -> None:
        import torch

        self.is_tensor = torch.is_tensor
        self.lib = torch
        doubles = _DOUBLES.operations
        one = {"exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos,
               "abs": torch.abs, "floor": torch.floor}  # fmt: skip
        two = {"min": torch.minimum, "max": torch.maximum}
        self.operations = {
            **_ARITHMETIC,
            "**": lambda a, b: torch.pow(a, b) if self.is_tensor(a) or self.is_tensor(b) else doubles["**"](a, b),
            "/": lambda a, b: a / b if self.is_tensor(a) or self.is_tensor(b) else doubles["/"](a, b),
            **{op: self._one(f, doubles[op]) for op, f in one.items()},
            **{op: self._two(f, doubles[op]) for op, f in two.items()},
        }

    def _one(self, tensor: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: tensor(x) if self.is_tensor(x) else plain(x)

    def _two(self, tensor: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(x: Any, y: Any) -> Any:
            if not self.is_tensor(x) and not self.is_tensor(y):
                return plain(x, y)
            like = x if self.is_tensor(x) else y
            return tensor(*(self.lib.as_tensor(v, dtype=like.dtype, device=like.device) for v in (x, y)))

        return call

    def number(self, value: Fraction) -> float:
        return float(value)

    def constant(self, name: str) -> float:
        return _DOUBLES.constant(name)

    def integer(self, value: Any) -> int | None:
        return _DOUBLES.integer(float(value))

    def where(self, node: Node, names: Names) -> Any:
        """Each branch is taken only at distances where it counts, so that no nan reaches a gradient."""
        torch, t = self.lib, names["t"]
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        chosen = _COMPARE[str(node.value)](left, right)
        if not self.is_tensor(chosen):
            return evaluate(node.args[2] if chosen else node.args[3], names, self)
        values = []
        for mask, branch in ((chosen, node.args[2]), (~chosen, node.args[3])):
            if not mask.any():
                values.append(torch.zeros((), dtype=t.dtype, device=t.device))
                continue
            inside = torch.where(mask, t, -math.inf)
            last = inside.amax(-1, keepdim=True)
            safe = torch.where(torch.isinf(last), inside.amax(), last)
            value = evaluate(branch, {**names, "t": torch.where(mask, t, safe)}, self)
            values.append(torch.as_tensor(value, dtype=t.dtype, device=t.device))
        return torch.where(chosen, *values)


def torch_value(node: Node, weight: bool, names: Names) -> Any:
    """The bias on a tensor of distances; parameters may be numbers or tensors that broadcast against t."""
    import torch

    value = evaluate(node, names, _Tensors()) + torch.zeros_like(names["t"])
    return torch.log(value) if weight else value


# ---------------------------------------------------------------------------------------------------- sympy
class _Sympy(Algebra):
    def __init__(self) -> None:
        import sympy

        self.lib = sympy
        self.operations = {
            **_ARITHMETIC, "**": operator.pow, "exp": sympy.exp, "log": sympy.log, "sqrt": sympy.sqrt, "sin": sympy.sin,
            "cos": sympy.cos, "abs": sympy.Abs, "floor": sympy.floor, "min": sympy.Min, "max": sympy.Max,
        }  # fmt: skip

    def number(self, value: Fraction) -> Any:
        return self.lib.Rational(value.numerator, value.denominator)

    def constant(self, name: str) -> Any:
        return self.lib.pi if name == "pi" else -self.lib.oo

    def integer(self, value: Any) -> int | None:
        return int(value) if value.is_Integer else None

    def where(self, node: Node, names: Names) -> Any:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.Piecewise((a, _COMPARE[str(node.value)](left, right)), (b, True))


def sympy_value(node: Node) -> Any:
    """The expression in sympy, with exact numbers."""
    import sympy

    names: dict[str, Any] = {name: sympy.Symbol(name, real=True) for name in node.free()}
    names["t"] = sympy.Symbol("t", nonnegative=True)
    return evaluate(node, names, _Sympy())


_DOUBLES, _RATIONALS, _BALLS = _Doubles(), _Rationals(), _Balls()
ball_algebra = _BALLS
