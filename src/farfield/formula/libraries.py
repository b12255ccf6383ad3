"""The readings of a formula in other libraries: numpy arrays, torch tensors and sympy expressions.

A table names the library's function for each operation, so that nothing is imported before it is used. Tensors
broadcast, and gradients reach the parameters that are tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from farfield.formula.algebras import ARITHMETIC, COMPARE, DOUBLES, Algebra, Names, evaluate
from farfield.formula.functions import reading
from farfield.formula.tree import Node

_SAME = {op: op for op in ("exp", "log", "sqrt", "sin", "cos", "abs", "floor", "tanh", "cosh", "sinh", "tan")}
_FLOATS = {**_SAME, **{op: op for op in ("log1p", "expm1", "log2", "log10")}, "min": "minimum", "max": "maximum"}
_NUMPY = reading("numpy", {
    **ARITHMETIC, "**": "power", **_FLOATS, "atan": "arctan", "softplus": lambda np, x: np.logaddexp(x, 0),
    **{op: lambda np, x, op=op: np.vectorize(DOUBLES.operations[op], otypes=[float])(x) for op in ("erf", "gamma")},
})  # fmt: skip
_TORCH = reading("torch", {
    **ARITHMETIC, "**": "pow", **_FLOATS, "sigmoid": "sigmoid", "atan": "atan", "erf": "erf",
    "gamma": lambda torch, x: torch.exp(torch.lgamma(torch.where(x > 0, x, math.nan))),
    "softplus": lambda torch, x: torch.logaddexp(x, torch.zeros_like(x)),
})  # fmt: skip
_SYMPY = reading("sympy", {
    **ARITHMETIC, "**": "Pow", **_SAME, "abs": "Abs", "min": "Min", "max": "Max", "atan": "atan", "erf": "erf",
    "gamma": "gamma",
})  # fmt: skip


def _resolved(library: Any, table: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    """The table with names replaced by functions of the library."""

    def resolve(op: str, rule: Any) -> Callable[..., Any]:
        if isinstance(rule, str):
            return getattr(library, rule)
        return rule if op in ARITHMETIC else lambda *args: rule(library, *args)

    return {op: resolve(op, rule) for op, rule in table.items()}


class _Arrays(Algebra):
    def __init__(self) -> None:
        import numpy

        self.lib, self.operations = numpy, _resolved(numpy, _NUMPY)

    def number(self, value: Fraction) -> Any:
        return self.lib.float64(float(value))

    def constant(self, name: str) -> float:
        return DOUBLES.constant(name)

    def integer(self, value: Any) -> int | None:
        return DOUBLES.integer(float(value))

    def where(self, node: Node, names: Names) -> Any:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.where(COMPARE[str(node.value)](left, right), a, b)


def array_value(node: Node, weight: bool, names: Names) -> Any:
    """The bias on a numpy array of distances, in double precision; nan where it is undefined."""
    import numpy

    with numpy.errstate(all="ignore"):
        value = evaluate(node, names, _Arrays()) + numpy.zeros_like(names["t"])
        return numpy.log(value) if weight else value


class _Tensors(Algebra):
    def __init__(self) -> None:
        import torch

        self.lib = torch
        self.operations = {op: self._mixed(op, call) for op, call in _resolved(torch, _TORCH).items()}

    def _mixed(self, op: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The operation of tensors if one of its arguments is one, else that of doubles."""
        torch, plain = self.lib, DOUBLES.operations[op]

        def mixed(*args: Any) -> Any:
            like = next((x for x in args if torch.is_tensor(x)), None)
            if like is None:
                return plain(*args)
            if op in ("min", "max"):
                args = tuple(torch.as_tensor(x, dtype=like.dtype, device=like.device) for x in args)
            return call(*args)

        return mixed

    def number(self, value: Fraction) -> float:
        return float(value)

    def constant(self, name: str) -> float:
        return DOUBLES.constant(name)

    def integer(self, value: Any) -> int | None:
        return DOUBLES.integer(float(value))

    def where(self, node: Node, names: Names) -> Any:
        """Each branch is taken only at distances where it counts, so that no nan reaches a gradient."""
        torch, t = self.lib, names["t"]
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        chosen = COMPARE[str(node.value)](left, right)
        if not torch.is_tensor(chosen):
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


class _Sympy(Algebra):
    def __init__(self) -> None:
        import sympy

        self.lib, self.operations = sympy, _resolved(sympy, _SYMPY)

    def number(self, value: Fraction) -> Any:
        return self.lib.Rational(value.numerator, value.denominator)

    def constant(self, name: str) -> Any:
        return self.lib.pi if name == "pi" else -self.lib.oo

    def integer(self, value: Any) -> int | None:
        return int(value) if value.is_Integer else None

    def where(self, node: Node, names: Names) -> Any:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.Piecewise((a, COMPARE[str(node.value)](left, right)), (b, True))


def sympy_value(node: Node) -> Any:
    """The expression in sympy, with exact numbers."""
    import sympy

    names: dict[str, Any] = {name: sympy.Symbol(name, real=True) for name in node.free()}
    names["t"] = sympy.Symbol("t", nonnegative=True)
    return evaluate(node, names, _Sympy())
