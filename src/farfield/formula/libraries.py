"""The values of a formula in other libraries: numpy arrays, torch tensors and sympy expressions.

A table names the library's function for each operation, so that nothing is imported before it is used. Tensors
broadcast, and gradients reach the parameters that are tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import Any

from farfield.formula.algebras import ARITHMETIC, COMPARE, DOUBLES, Algebra, evaluate
from farfield.formula.functions import rule_table
from farfield.formula.tree import Node

LibraryValue = Any  # of a library that is imported only when it is used
_SAME = {op: op for op in ("exp", "log", "sqrt", "sin", "cos", "abs", "floor", "tanh", "cosh", "sinh", "tan")}
_FLOATS = {**_SAME, **{op: op for op in ("log1p", "expm1", "log2", "log10")}, "min": "minimum", "max": "maximum"}
_NUMPY = rule_table("numpy", {
    **ARITHMETIC, "**": "power", **_FLOATS, "softplus": lambda np, x: np.logaddexp(x, 0),
})  # fmt: skip
_TORCH = rule_table("torch", {
    **ARITHMETIC, "**": "pow", **_FLOATS, "sigmoid": "sigmoid",
    "softplus": lambda torch, x: torch.logaddexp(x, torch.zeros_like(x)),
})  # fmt: skip
_SYMPY = rule_table("sympy", {
    **ARITHMETIC, "**": "Pow", **_SAME, "abs": "Abs", "min": "Min", "max": "Max",
})  # fmt: skip


class _OfLibrary(Algebra[LibraryValue]):
    """Values of a library; a table names its functions, or has rules that take the library first."""

    def __init__(self, library: LibraryValue, rules: Mapping[str, LibraryValue]):
        self.lib = library
        self.operations = {op: self._resolve(op, rule) for op, rule in rules.items()}

    def _resolve(self, op: str, rule: LibraryValue) -> Callable[..., LibraryValue]:
        if isinstance(rule, str):
            return getattr(self.lib, rule)
        return rule if op in ARITHMETIC else partial(rule, self.lib)

    def number(self, value: Fraction) -> LibraryValue:
        return float(value)

    def constant(self, name: str) -> LibraryValue:
        return DOUBLES.constant(name)

    def integer(self, value: LibraryValue) -> int | None:
        return DOUBLES.integer(float(value))


class _Arrays(_OfLibrary):
    def number(self, value: Fraction) -> LibraryValue:
        return self.lib.float64(float(value))

    def where(self, node: Node, names: Mapping[str, LibraryValue]) -> LibraryValue:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.where(COMPARE[str(node.value)](left, right), a, b)


def array_value(node: Node, weight: bool, names: Mapping[str, LibraryValue]) -> LibraryValue:
    """The bias on a numpy array of distances, in double precision; nan where it is undefined."""
    import numpy

    with numpy.errstate(all="ignore"):
        value = evaluate(node, names, _Arrays(numpy, _NUMPY)) + numpy.zeros_like(names["t"])
        return numpy.log(value) if weight else value


class _Tensors(_OfLibrary):
    def _resolve(self, op: str, rule: LibraryValue) -> Callable[..., LibraryValue]:
        """The operation of tensors if one of its arguments is one, else that of doubles."""
        torch, plain, call = self.lib, DOUBLES.operations[op], super()._resolve(op, rule)

        def mixed(*args: LibraryValue) -> LibraryValue:
            like = next((x for x in args if torch.is_tensor(x)), None)
            if like is None:
                return plain(*args)
            if op in ("min", "max"):
                args = tuple(torch.as_tensor(x, dtype=like.dtype, device=like.device) for x in args)
            return call(*args)

        return mixed

    def where(self, node: Node, names: Mapping[str, LibraryValue]) -> LibraryValue:
        """Each branch is taken only at distances where it counts, so that no nan reaches a gradient."""
        torch, t = self.lib, names["t"]
        left, right = evaluate(node.args[0], names, self), evaluate(node.args[1], names, self)
        chosen = COMPARE[str(node.value)](left, right)
        if not torch.is_tensor(chosen):
            return evaluate(node.args[2] if chosen else node.args[3], names, self)
        values = []
        masks: tuple[LibraryValue, LibraryValue] = (chosen, ~chosen)
        for mask, branch in zip(masks, node.args[2:], strict=True):
            if not mask.any():
                values.append(torch.zeros((), dtype=t.dtype, device=t.device))
                continue
            inside = torch.where(mask, t, -math.inf)
            last = inside.amax(-1, keepdim=True)
            safe = torch.where(torch.isinf(last), inside.amax(), last)
            value = evaluate(branch, {**names, "t": torch.where(mask, t, safe)}, self)
            values.append(torch.as_tensor(value, dtype=t.dtype, device=t.device))
        return torch.where(chosen, *values)


def torch_value(node: Node, weight: bool, names: Mapping[str, LibraryValue]) -> LibraryValue:
    """The bias on a tensor of distances; parameters may be numbers or tensors that broadcast against t."""
    import torch

    value = evaluate(node, names, _Tensors(torch, _TORCH)) + torch.zeros_like(names["t"])
    return torch.log(value) if weight else value


class _Sympy(_OfLibrary):
    def number(self, value: Fraction) -> LibraryValue:
        return self.lib.Rational(value.numerator, value.denominator)

    def constant(self, name: str) -> LibraryValue:
        return self.lib.pi if name == "pi" else -self.lib.oo

    def integer(self, value: LibraryValue) -> int | None:
        return int(value) if value.is_Integer else None

    def where(self, node: Node, names: Mapping[str, LibraryValue]) -> LibraryValue:
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        return self.lib.Piecewise((a, COMPARE[str(node.value)](left, right)), (b, True))


def sympy_value(node: Node) -> LibraryValue:
    """The expression in sympy, with exact numbers."""
    import sympy

    names: dict[str, LibraryValue] = {name: sympy.Symbol(name, real=True) for name in node.free()}
    names["t"] = sympy.Symbol("t", nonnegative=True)
    return evaluate(node, names, _Sympy(sympy, _SYMPY))
