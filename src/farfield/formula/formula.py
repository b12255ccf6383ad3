"""A formula: text to a checked, immutable expression in the distance `t` and named parameters.

The text is read by a small recursive-descent parser over a closed vocabulary. Nothing that a person types is ever
handed to Python: no eval, no compile. Limits on length, size and depth are enforced before any other work, so that
a hostile text costs a sentence and not the machine.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

from farfield.formula import algebras
from farfield.formula.functions import ROW, is_class, primitive
from farfield.formula.grammar import MAX_MAGNITUDE, Parser, literal
from farfield.formula.plain_text import decimal_text
from farfield.formula.tree import FormulaError, Node, number, substitute

if TYPE_CHECKING:
    from flint import arb

MAX_LENGTH = 1000  # characters
MAX_PARTS = 400  # nodes of the expression
MAX_DEPTH = 100  # of the expression
MAX_EXPONENT = 1000  # of a constant power
MAX_EXPANDED = 20_000  # nodes after every sum is written out


@dataclass(frozen=True, repr=False)
class Formula:
    """A checked formula of the bias `r(t)`, or of the weight `b(t) = exp(r(t))` if `weight` is set."""

    node: Node
    weight: bool = False
    source: str = field(default="", compare=False)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names still open, in order of their first appearance."""
        free = self.node.free() - {"t", ROW}
        seen = sorted((n.column, str(n.value)) for n in self.node.walk() if n.op == "name" and n.value in free)
        return tuple(dict.fromkeys(name for _, name in seen))

    @cached_property
    def is_class(self) -> bool:
        """Whether it stands for many biases: it has between(lo, hi), sink(s) or the row i in it."""
        return is_class(self.node)

    @cached_property
    def primitive(self) -> Formula:
        """The same formula with derived functions such as tanh written out: what theory works with."""
        node = primitive(self.node)
        return self if node is self.node else replace(self, node=node)

    def require(self, name: str) -> None:
        """One sentence if the formula has no parameter of this name."""
        if name not in self.parameters:
            has = f"its parameters are {', '.join(self.parameters)}" if self.parameters else "it has no parameters"
            near = difflib.get_close_matches(name, self.parameters, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"the formula has no parameter {name[:20]!r}: {has}{hint}")

    def bind(self, values: Mapping[str, Fraction | float | int | str]) -> Formula:
        """The same formula with some parameters replaced by constants.

        Args:
            values: for each parameter a number, or a constant as text such as "log(2)/8".
        """
        for name in parameter_table(values):
            self.require(name)
        nodes = {name: constant(value) for name, value in values.items()}
        bound = replace(self, node=substitute(self.node, nodes), source="")
        try:
            if any(n.args for n in nodes.values()):
                _check_size(bound.node)
            _check_constants(bound.node, self.node, nodes)
        except FormulaError as error:
            error.text = bound.text()
            raise
        return bound

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Formula({self.text()!r})"

    # The readings; each is a table over the functions of the language.
    def text(self) -> str:
        """The formula as text that parses back to itself."""
        from farfield.formula.plain_text import text

        return ("weight: " if self.weight else "") + text(self.node)

    def latex(self) -> str:
        """The formula as LaTeX."""
        from farfield.formula.latex import latex

        return latex(self.node)

    def mathml(self) -> list[Any]:
        """The formula as an element of MathML: its name, then its children."""
        from farfield.formula.mathml import mathml

        return mathml(self.node)

    def float(self, t: float, parameters: Mapping[str, Any] | None = None) -> float:
        """The bias at distance t in double precision; nan where it is undefined."""
        value = algebras.float_value(self.node, {**(parameters or {}), "t": t})
        return algebras.float_log(value) if self.weight else value

    def ball(self, t: Any, parameters: Mapping[str, Any] | None = None) -> arb:
        """An Arb ball that contains the bias at t (a number, or a ball for a range) at the current precision."""
        value = algebras.ball_value(self.node, {**(parameters or {}), "t": t})
        return algebras.ball_log(value) if self.weight else value

    def weight_ball(self, t: Any, parameters: Mapping[str, Any] | None = None) -> arb:
        """An Arb ball that contains the weight b(t) = exp(r(t))."""
        value = algebras.ball_value(self.node, {**(parameters or {}), "t": t})
        return value if self.weight else algebras.ball_exp(value)

    def array(self, t: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """The bias on a numpy array of distances in double precision."""
        from farfield.formula.libraries import array_value

        return array_value(self.node, self.weight, {**(parameters or {}), "t": t})

    def torch(self, t: Any, parameters: Mapping[str, Any] | None = None) -> Any:
        """The bias on a tensor of distances, with gradients to the parameters that are tensors."""
        from farfield.formula.libraries import torch_value

        return torch_value(self.node, self.weight, {**(parameters or {}), "t": t})

    def sympy(self) -> Any:
        """The formula as a sympy expression in t (a non-negative symbol) and real parameters."""
        from farfield.formula.libraries import sympy_value

        return sympy_value(self.node)


def parse(text: str, *, weight: bool = False) -> Formula:
    """Read a formula; raise FormulaError with one sentence and the column if it is none.

    A text that begins with "weight:" gives the weight b(t) instead of the bias r(t), as `weight=True` does.
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is a text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text)} characters; at most {MAX_LENGTH} are allowed", text[:200])
    body = text
    prefix = re.match(r"\s*(weight|bias)\s*:", text)
    if prefix:
        weight = prefix.group(1) == "weight"
        body = " " * prefix.end() + text[prefix.end() :]  # columns stay those of the text
    if not body.strip():
        raise FormulaError("the formula is empty; type for example '-k*t'", text)
    try:
        node = Parser(body).whole()
        _check_size(node)
        _check_constants(node)
    except FormulaError as error:
        error.text = text
        raise
    if weight and any(n.op == "-inf" for n in node.walk()):
        column = next(n.column for n in node.walk() if n.op == "-inf")
        raise FormulaError("'-inf' is a bias; in a weight write 0", text, column)
    return Formula(node, weight, text)


def parameter_table(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of parameters that a person gives, by their names; one sentence if it is no table."""
    if not isinstance(given, Mapping | None):
        raise ValueError(f'parameters are a table such as {{"k": "1/16"}}, not {str(given)[:40]!r}')
    return dict(given or {})


def constant(value: Fraction | float | int | str) -> Node:
    """The expression of a constant: a number, or a text without t and parameters."""
    if isinstance(value, str):
        node = parse(value).node
        if node.free():
            raise FormulaError(f"the value must be a constant, without {', '.join(sorted(node.free()))}", value)
        return node
    if isinstance(value, bool) or not isinstance(value, Real):
        raise FormulaError(f"the value must be one number, or a constant as text, not {type(value).__name__}")
    if not isinstance(value, Rational) and not abs(value) < float("inf"):
        raise FormulaError(f"the value must be a finite number, not {value}", str(value))
    if isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    else:
        exact = Fraction(str(value))  # 0.1 means one tenth
    if max(exact.numerator.bit_length(), exact.denominator.bit_length()) > 4 * MAX_MAGNITUDE:
        raise FormulaError(f"the number is beyond 10**{MAX_MAGNITUDE} or its inverse")
    node = number(exact)
    for part in node.walk():  # under the same limits as a typed number
        if isinstance(part.value, Fraction):
            literal(decimal_text(part.value))
    return node


def _check_size(node: Node) -> None:
    """Refuse what is too large, and a misplaced -inf."""
    parts = sum(1 for _ in node.walk())
    if parts > MAX_PARTS:
        raise FormulaError(f"the formula has {parts} parts; at most {MAX_PARTS} are allowed")
    branches = {id(b) for n in node.walk() if n.op == "where" for b in n.args[2:]}
    for n in node.walk():
        if n.op == "-inf" and id(n) not in branches:
            raise FormulaError("'-inf' may stand only as a branch of where(...)", column=n.column)
    _check_depth(node)
    if algebras.expanded_size(node) > MAX_EXPANDED:
        raise FormulaError(f"the sums written out have more than {MAX_EXPANDED} parts", column=node.column)
    _check_depth(primitive(node))


def _check_depth(node: Node) -> None:
    level, layer = 0, [node]
    while layer:
        level, column, layer = level + 1, layer[0].column, [a for n in layer for a in n.args]
        if level > MAX_DEPTH:
            raise FormulaError(f"the formula is more than {MAX_DEPTH} operations deep", column=column)


def _check_constants(node: Node, before: Node | None = None, bound: Mapping[str, Node] | None = None) -> None:
    """Refuse a constant part that is no sane number; after binding, only the parts that changed are looked at."""
    if before is not None and (before.op == "name" or before.free().isdisjoint(bound or {})):
        return
    for i, part in enumerate(node.args):
        _check_constants(part, None if before is None else before.args[i], bound)
    if node.op == "sum":
        algebras.index_range(node)
    if node.op == "**" and not node.args[1].free() and not is_class(node.args[1]):
        exponent = algebras.float_value(node.args[1], {})
        if not abs(exponent) <= MAX_EXPONENT:
            sentence = f"the exponent must lie between -{MAX_EXPONENT} and {MAX_EXPONENT}"
            raise FormulaError(sentence, column=node.args[1].column)
    if node.args and node.op != "where" and not node.free() and not is_class(node):
        value = algebras.float_value(node, {})
        if not abs(value) <= 10.0**MAX_MAGNITUDE:
            fault = "is not a real number" if value != value else f"is beyond 10**{MAX_MAGNITUDE}"
            raise FormulaError(f"a constant part of the formula {fault}", column=node.column)
