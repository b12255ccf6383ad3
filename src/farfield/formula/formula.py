"""A formula: text to a checked, immutable expression in the distance `t` and named parameters.

The text is read by a small recursive-descent parser over a closed vocabulary. Nothing that a person types is ever
handed to Python: no eval, no compile. Limits on length, size and depth are enforced before any other work, so that
a hostile text costs a sentence and not the machine.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any, SupportsFloat

from flint import arb

from farfield.formula import algebras, libraries
from farfield.formula.algebras import Exact
from farfield.formula.functions import primitive
from farfield.formula.grammar import MAX_MAGNITUDE, Parser, literal
from farfield.formula.libraries import LibraryValue
from farfield.formula.spelling import LATEX, MATHML, TEXT, Element, decimal_text
from farfield.formula.tree import FormulaError, Node, number, substitute

Value = Fraction | str | float | int  # a number, or a constant as text where it is irrational: "2**(-1/2)"
Parameters = Mapping[str, Value | Sequence[Value]]  # values by name; a list has one for each head
MAX_LENGTH = 1000  # characters
MAX_PARTS = 400  # nodes of the expression
MAX_DEPTH = 100  # of the expression
MAX_EXPONENT = 1000  # of a constant power
MAX_EXPANDED = 20_000  # nodes after every sum is written out


@dataclass(frozen=True, repr=False)
class Formula:
    """A checked formula of the bias `r(t)`, or of the weight `b(t) = exp(r(t))` if `weight` is set.

    With `lower`, it stands for a bounded family: all biases between the two expressions. A `sink` is the logit of one
    more key, which every row has.
    """

    node: Node
    weight: bool = False
    lower: Node | None = None
    sink: Node | None = None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Its expressions: one, or of a bounded family the upper one, the lower one and the logit of a sink."""
        return tuple(n for n in (self.node, self.lower, self.sink) if n is not None)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names still open, in order of their first appearance."""
        names: list[str] = []
        for node in self.nodes:
            free = node.free() - {"t"}
            names += [name for _, name in sorted((n.column, str(n.value)) for n in node.walk() if n.value in free)]
        return tuple(dict.fromkeys(names))

    @property
    def is_bounded_family(self) -> bool:
        """Whether it stands for all biases between an upper and a lower formula, or for one with a sink."""
        return self.lower is not None or self.sink is not None

    @property
    def upper_bound(self) -> Formula:
        """The bias that no member of a bounded family exceeds: the formula itself."""
        return replace(self, lower=None, sink=None) if self.is_bounded_family else self

    @property
    def lower_bound(self) -> Formula:
        """The bias that no member of a bounded family is below."""
        return self.upper_bound.with_node(self.node if self.lower is None else self.lower)

    def require_one_bias(self, what: str) -> None:
        """One sentence where a question needs one bias and this is a bounded family."""
        if self.is_bounded_family:
            hint = f"ask for its upper bound instead: {self.upper_bound.text()}"
            raise ValueError(f"{what} needs one bias, and {self.text()} is a bounded family of biases; {hint}")

    @property
    def _one_bias(self) -> Node:
        self.require_one_bias("a value")
        return self.node

    def with_node(self, node: Node) -> Formula:
        """A formula of the same kind for another expression."""
        return replace(self, node=node)

    @cached_property
    def primitive(self) -> Formula:
        """The same formula with derived functions such as tanh expanded: what theory works with."""
        return self._each(primitive)

    def _each(self, change: Callable[[Node], Node]) -> Formula:
        lower, sink = (None if n is None else change(n) for n in (self.lower, self.sink))
        return replace(self, node=change(self.node), lower=lower, sink=sink)

    def require(self, name: str) -> None:
        """One sentence if the formula has no parameter of this name."""
        if name not in self.parameters:
            has = f"its parameters are {', '.join(self.parameters)}" if self.parameters else "it has no parameters"
            near = difflib.get_close_matches(name, self.parameters, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"the formula has no parameter {name[:20]!r}: {has}{hint}")

    def bind(self, values: Mapping[str, Value]) -> Formula:
        """The same formula with some parameters replaced by constants.

        Args:
            values: for each parameter a number, or a constant as text such as "log(2)/8".
        """
        for name in parameter_table(values):
            self.require(name)
        nodes = {name: constant(value) for name, value in values.items()}
        bound = self._each(lambda node: substitute(node, nodes))
        try:
            for node, before in zip(bound.nodes, self.nodes, strict=True):
                if any(n.args for n in nodes.values()):
                    _check_size(node)
                _check_constants(node, before, nodes)
        except FormulaError as error:
            error.text = bound.text()
            raise
        return bound

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Formula({self.text()!r})"

    def text(self) -> str:
        """The formula as text that parses back to itself."""
        if not self.is_bounded_family:
            return ("weight: " if self.weight else "") + TEXT.write(self.node)
        named = (("upper", self.node), ("lower", self.lower), ("sink", self.sink))
        return "; ".join(f"{name}: {TEXT.write(node)}" for name, node in named if node is not None)

    def latex(self) -> str:
        """The formula as LaTeX."""
        return LATEX.write(self.node)

    def mathml(self) -> Element:
        """The formula as an element of MathML: its name, then its children."""
        return MATHML.write(self.node)

    def float(self, t: float, parameters: Mapping[str, SupportsFloat] | None = None) -> float:
        """The bias at distance t in double precision; nan where it is undefined."""
        value = algebras.float_value(self._one_bias, {**(parameters or {}), "t": t})
        return algebras.float_log(value) if self.weight else value

    def ball(self, t: Exact, parameters: Mapping[str, Exact] | None = None) -> arb:
        """An Arb ball that contains the bias at t (a number, or a ball for a range) at the current precision."""
        value = algebras.ball_value(self._one_bias, {**(parameters or {}), "t": t})
        return algebras.ball_log(value) if self.weight else value

    def weight_ball(self, t: Exact, parameters: Mapping[str, Exact] | None = None) -> arb:
        """An Arb ball that contains the weight b(t) = exp(r(t))."""
        value = algebras.ball_value(self._one_bias, {**(parameters or {}), "t": t})
        return value if self.weight else algebras.ball_exp(value)

    def array(self, t: LibraryValue, parameters: Mapping[str, LibraryValue] | None = None) -> LibraryValue:
        """The bias on a numpy array of distances in double precision."""
        return libraries.array_value(self._one_bias, self.weight, {**(parameters or {}), "t": t})

    def torch(self, t: LibraryValue, parameters: Mapping[str, LibraryValue] | None = None) -> LibraryValue:
        """The bias on a tensor of distances, with gradients to the parameters that are tensors."""
        return libraries.torch_value(self._one_bias, self.weight, {**(parameters or {}), "t": t})

    def sympy(self) -> LibraryValue:
        """The formula as a sympy expression in t (a non-negative symbol) and real parameters."""
        return libraries.sympy_value(self._one_bias)


def parse_relations(text: str) -> tuple[Node, ...]:
    """Read assumptions such as "a > 0, 0 < b <= 1"; raise FormulaError if a part is none."""
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise FormulaError(f'assumptions are a text such as "a > 0, b > 0" of at most {MAX_LENGTH} characters')
    if not text.strip():
        return ()
    relations = Parser(text).relations()
    for node in relations:
        _check_size(node)
        if "t" in node.free() or not node.free():
            raise FormulaError("an assumption is about parameters, such as a > 0", text)
    return tuple(relations)


def parse(text: str, *, weight: bool = False) -> Formula:
    """Read a formula; raise FormulaError with one sentence and the column if it is none.

    A text that begins with "weight:" gives the weight b(t) instead of the bias r(t), as `weight=True` does.
    """
    if not isinstance(text, str):
        raise FormulaError(f"a formula is a text, not {type(text).__name__}")
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text)} characters; at most {MAX_LENGTH} are allowed", text[:200])
    if re.search(r";|^\s*(upper|lower|sink)\s*:", text):
        return _parse_family(text, weight)
    body = text
    prefix = re.match(r"\s*(weight|bias)\s*:", text)
    if prefix:
        weight = prefix.group(1) == "weight"
        body = " " * prefix.end() + text[prefix.end() :]  # columns stay those of the text
    if not body.strip():
        raise FormulaError("the formula is empty; type for example '-k*t'", text)
    node = _parse_node(body, text)
    if weight and any(n.op == "-inf" for n in node.walk()):
        column = next(n.column for n in node.walk() if n.op == "-inf")
        raise FormulaError("'-inf' is a bias; in a weight write 0", text, column)
    return Formula(node, weight)


def _parse_node(body: str, text: str) -> Node:
    try:
        node = Parser(body).whole()
        _check_size(node)
        _check_constants(node)
    except FormulaError as error:
        error.text = text
        raise
    return node


def _parse_family(text: str, weight: bool) -> Formula:
    """Read "upper: F; lower: G; sink: s", of which the first word may be missing."""
    nodes: dict[str, Node] = {}
    place = 0
    for part in text.split(";"):
        prefix = re.match(r"\s*(upper|lower|sink)\s*:", part)
        name = prefix.group(1) if prefix else "" if nodes else "upper"
        if name == "" or name in nodes or weight or part.strip().startswith("weight"):
            form = "upper: -k*t + m; lower: -k*t - m; sink: s"
            raise FormulaError(f"a bounded family of biases is written '{form}'", text, place + 1)
        end = place + (prefix.end() if prefix else 0)
        nodes[name] = _parse_node(" " * end + text[end : place + len(part)], text)
        place += len(part) + 1
    if "upper" not in nodes or len(nodes) == 1:
        missing = "a lower" if "upper" in nodes else "an upper"
        raise FormulaError(f"{missing} formula is missing, as in 'upper: -k*t + m; lower: -k*t - m'", text)
    if "sink" in nodes and "t" in nodes["sink"].free():
        raise FormulaError("the logit of a sink does not depend on t", text)
    return Formula(nodes["upper"], False, nodes.get("lower"), nodes.get("sink"))


def parameter_table(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of parameters by their names; one sentence if it is no table."""
    if not isinstance(parameters, Mapping | None):
        raise ValueError(f'parameters are a table such as {{"k": "1/16"}}, not {str(parameters)[:40]!r}')
    return dict(parameters or {})


def constant(value: Value) -> Node:
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
        if i != _unused(node):
            _check_constants(part, None if before is None else before.args[i], bound)
    if node.op == "sum":
        algebras.index_range(node)
    if node.op == "**" and not node.args[1].free():
        exponent = algebras.float_value(node.args[1], {})
        if not abs(exponent) <= MAX_EXPONENT:
            sentence = f"the exponent must lie between -{MAX_EXPONENT} and {MAX_EXPONENT}"
            raise FormulaError(sentence, column=node.args[1].column)
    if node.args and node.op != "where" and not node.free():
        value = algebras.float_value(node, {})
        if not abs(value) <= 10.0**MAX_MAGNITUDE:
            fault = "is not a real number" if value != value else f"is beyond 10**{MAX_MAGNITUDE}"
            raise FormulaError(f"a constant part of the formula {fault}", column=node.column)


def _unused(node: Node) -> int | None:
    """Which argument of a `where` is never evaluated, where its condition is plain numbers."""
    if node.op != "where" or node.args[0].free() or node.args[1].free():
        return None
    left, right = (algebras.exact_value(side, {}) for side in node.args[:2])
    if left is None or right is None:
        return None
    return 3 if algebras.COMPARE[str(node.value)](left, right) else 2
