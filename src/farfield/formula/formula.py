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
from typing import TYPE_CHECKING, Any, NoReturn

from farfield.formula.grammar import MAX_MAGNITUDE, Parser
from farfield.formula.tree import FormulaError, Node, expanded_size, fold, index_range, number, substitute

if TYPE_CHECKING:
    from flint import arb

__all__ = ["Formula", "FormulaError", "Node", "constant", "expanded_size", "fold", "index_range", "number", "parse"]

MAX_LENGTH = 1000  # characters
MAX_PARTS = 400  # nodes of the expression
MAX_DEPTH = 100  # of the expression
MAX_EXPONENT = 1000  # of a constant power
MAX_EXPANDED = 20_000  # nodes after every sum is written out


@dataclass(frozen=True)
class Formula:
    """A checked formula of the bias `r(t)`, or of the weight `b(t) = exp(r(t))` if `weight` is set."""

    node: Node
    weight: bool = False
    source: str = field(default="", compare=False, repr=False)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names still open, in order of their first appearance."""
        free = self.node.free() - {"t"}
        seen = sorted((n.column, str(n.value)) for n in self.node.walk() if n.op == "name" and n.value in free)
        return tuple(dict.fromkeys(name for _, name in seen))

    def bind(self, values: Mapping[str, Fraction | float | int | str] | None = None, /, **more: Any) -> Formula:
        """The same formula with some parameters replaced by constants: numbers, or texts such as "log(2)/8"."""
        values = {**(values or {}), **more}
        for name in values:
            if name not in self.parameters:
                has = f"its parameters are {', '.join(self.parameters)}" if self.parameters else "it has no parameters"
                near = difflib.get_close_matches(name, self.parameters, 1)
                hint = f"; did you mean '{near[0]}'?" if near else ""
                raise FormulaError(f"the formula has no parameter {name[:20]!r}: {has}{hint}", self.text(), 1)
        nodes = {name: constant(value) for name, value in values.items()}
        bound = replace(self, node=substitute(self.node, nodes), source="")
        _check(bound.node, bound.text())
        return bound

    def __str__(self) -> str:
        return self.text()

    # The readings: each is one fold with its own algebra (algebras.py).
    def text(self) -> str:
        """The formula as text that parses back to itself."""
        from farfield.formula import text as spelling

        return ("weight: " if self.weight else "") + spelling.text(self.node)

    def latex(self) -> str:
        """The formula as LaTeX."""
        from farfield.formula import text as spelling

        return spelling.latex(self.node)

    def float(self, t: float, **parameters: float) -> float:
        """The bias at distance t in double precision; nan where it is undefined."""
        from farfield.formula import algebras as readings

        value = readings.float_value(self.node, {"t": t, **parameters})
        return readings.float_log(value) if self.weight else value

    def ball(self, t: Any, **parameters: Any) -> arb:
        """An Arb ball that contains the bias at t (a number, or a ball for a range) at the current precision."""
        from farfield.formula import algebras as readings

        value = readings.ball_value(self.node, {"t": t, **parameters})
        return readings.ball_log(value) if self.weight else value

    def weight_ball(self, t: Any, **parameters: Any) -> arb:
        """An Arb ball that contains the weight b(t) = exp(r(t))."""
        from farfield.formula import algebras as readings

        value = readings.ball_value(self.node, {"t": t, **parameters})
        return value if self.weight else readings.ball_exp(value)

    def array(self, t: Any, **parameters: Any) -> Any:
        """The bias on a numpy array of distances in double precision."""
        from farfield.formula import algebras as readings

        return readings.array_value(self.node, self.weight, {"t": t, **parameters})

    def torch(self, t: Any, **parameters: Any) -> Any:
        """The bias on a tensor of distances, with gradients to the parameters that are tensors."""
        from farfield.formula import algebras as readings

        return readings.torch_value(self.node, self.weight, {"t": t, **parameters})

    def sympy(self) -> Any:
        """The formula as a sympy expression in t (a non-negative symbol) and real parameters."""
        from farfield.formula import algebras as readings

        return readings.sympy_value(self.node)


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
        _check(node, body)
    except FormulaError as error:
        error.text = text
        raise
    if weight and any(n.op == "-inf" for n in node.walk()):
        column = next(n.column for n in node.walk() if n.op == "-inf")
        raise FormulaError("'-inf' is a bias; in a weight write 0", text, column)
    return Formula(node, weight, text)


def constant(value: Fraction | float | int | str) -> Node:
    """The expression of a constant: a number, or a text without t and parameters."""
    if isinstance(value, str):
        node = parse(value).node
        if node.free():
            raise FormulaError(f"the value must be a constant, without {', '.join(sorted(node.free()))}", value)
        return node
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise FormulaError(f"the value must be a finite number, not {value}", str(value))
    exact = Fraction(str(value)) if isinstance(value, float) else Fraction(value)  # 0.1 means one tenth
    return parse(Formula(number(exact)).text()).node  # under the same limits as a typed number


def _check(node: Node, text: str) -> None:
    """Refuse what is too large, a misplaced -inf, and a constant part that is no sane number."""
    from farfield.formula import algebras as readings

    def fail(sentence: str, column: int) -> NoReturn:
        raise FormulaError(sentence, text, column)

    parts = sum(1 for _ in node.walk())
    if parts > MAX_PARTS:
        fail(f"the formula has {parts} parts; at most {MAX_PARTS} are allowed", 1)
    level, layer = 0, [node]
    while layer:
        level, layer = level + 1, [a for n in layer for a in n.args]
        if level > MAX_DEPTH:
            fail(f"the formula is more than {MAX_DEPTH} operations deep", layer[0].column if layer else 1)
    branches = {id(b) for n in node.walk() if n.op == "where" for b in n.args[2:]}
    for n in node.walk():
        if n.op == "-inf" and id(n) not in branches:
            fail("'-inf' may stand only as a branch of where(...)", n.column)

    try:
        size = expanded_size(node)
    except FormulaError as error:
        fail(error.sentence, error.column)
    if size > MAX_EXPANDED:
        fail(f"the sums written out have more than {MAX_EXPANDED} parts", node.column)

    for n in node.walk():
        if n.op == "**" and not n.args[1].free():
            exponent = readings.float_value(n.args[1], {})
            if not abs(exponent) <= MAX_EXPONENT:
                fail(f"the exponent must lie between -{MAX_EXPONENT} and {MAX_EXPONENT}", n.args[1].column)
        if n.args and n.op != "where" and not n.free():
            value = readings.float_value(n, {})
            if not abs(value) <= 10.0**MAX_MAGNITUDE:
                fault = "is not a real number" if value != value else f"is beyond 10**{MAX_MAGNITUDE}"
                fail(f"a constant part of the formula {fault}", n.column)
