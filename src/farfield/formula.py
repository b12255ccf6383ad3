"""A formula: text to a checked, immutable expression in the distance `t` and named parameters.

The text is read by a small recursive-descent parser over a closed vocabulary. Nothing that a person types is ever
handed to Python: no eval, no compile. Limits on length, size and depth are enforced before any other work, so that
a hostile text costs a sentence and not the machine.

    expression  = term  { ("+" | "-") term }
    term        = unary { ("*" | "/") unary }
    unary       = { "-" | "+" } power
    power       = atom [ "**" unary ]
    atom        = number | "pi" | "t" | parameter | "(" expression ")" | function "(" arguments ")"
                | "sum(" expression "," index "," first "," last ")"
                | "where(" expression ("<" | "<=" | ">" | ">=") expression "," branch "," branch ")"
    branch      = expression | "-inf"
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from flint import arb

MAX_LENGTH = 1000  # characters
MAX_PARTS = 400  # nodes of the expression
MAX_DEPTH = 100  # of the expression
MAX_NESTING = 40  # brackets, signs and powers inside one another
MAX_DIGITS = 50  # of one number
MAX_MAGNITUDE = 300  # a constant lies within 10 ** +-MAX_MAGNITUDE
MAX_EXPONENT = 1000  # of a constant power
MAX_TERMS = 1024  # of one sum
MAX_EXPANDED = 20_000  # nodes after every sum is written out

FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "sin": 1, "cos": 1, "abs": 1, "floor": 1, "min": 2, "max": 2}
COMPARISONS = ("<", "<=", ">", ">=")
_SPELLINGS = {
    "ln": "log", "log1p": "log(1 + ...)", "log2": "log(...)/log(2)", "log10": "log(...)/log(10)", "cosine": "cos",
    "sine": "sin", "power": "**", "pow": "**", "root": "sqrt", "maximum": "max", "minimum": "min", "absolute": "abs",
    "sigma": "sum", "piecewise": "where", "if": "where",
}  # fmt: skip
_NOT_PARAMETERS = {
    "x": "the distance is called 't' here, not 'x'",
    "e": "write exp(...) for a power of e",
    "nan": "'nan' is not a number",
    "inf": "'inf' may stand only as '-inf' in a branch of where(...)",
    "oo": "write '-inf' in a branch of where(...)",
    "infinity": "write '-inf' in a branch of where(...)",
    "i": "the distance from query to key is called 't' here, and complex numbers have no place",
    "lambda": "'lambda' is not a formula",
}
_SIGNS = {
    "^": "'^' is not a power here; write '**'",
    "−": "this is not the minus sign of the keyboard; write '-'",
    "–": "this is not the minus sign of the keyboard; write '-'",
    "×": "write '*' for a product",
    "·": "write '*' for a product",
    "÷": "write '/' for a quotient",
    "π": "write 'pi'",
    "√": "write 'sqrt(...)'",
    "|": "write 'abs(...)' for an absolute value",
    "=": "'=' has no place in a formula; give a parameter its value with --set",
    "[": "write round brackets",
    "{": "write round brackets",
}
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|//|<=|>=|[-+*/(),<>])|(?P<space>[ \t]+)"
)
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*")


class FormulaError(ValueError):
    """A text that is no formula: one sentence, the column, and a caret under the text."""

    def __init__(self, sentence: str, text: str = "", column: int = 1):
        self.sentence, self.text, self.column = sentence, text, column
        super().__init__(f"{sentence} (column {column})")

    def pointer(self) -> str:
        """The text around the column and a caret under it, safe to print on any terminal."""
        first = max(0, self.column - 41)
        shown = self.text[first : first + 80]
        shown = "".join(c if c.isprintable() and c.isascii() else "?" for c in shown)
        return f"  {shown}\n  {' ' * (self.column - 1 - first)}^"


@dataclass(frozen=True, slots=True)
class Node:
    """One part of a formula: an operation and what it is applied to."""

    op: str  # "number", "name", "pi", "-inf", "neg", "+", ..., a function, "where", "sum"
    args: tuple[Node, ...] = ()
    value: Fraction | str = ""  # of a number; a name; the comparison of a where; the index of a sum
    column: int = field(default=1, compare=False, repr=False)

    def walk(self) -> Iterator[Node]:
        """This node and everything below it, without recursion."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(node.args)

    def free(self) -> frozenset[str]:
        """The names in it that no sum binds."""
        if self.op == "name":
            return frozenset((str(self.value),))
        inside = frozenset().union(*(a.free() for a in self.args[:1]))
        outside = frozenset().union(*(a.free() for a in self.args[1:]))
        return (inside - {str(self.value)} if self.op == "sum" else inside) | outside


def number(value: Fraction | int, column: int = 1) -> Node:
    """A rational constant as the text would spell it: decimals as numbers, other fractions as quotients."""
    value = Fraction(value)
    if value < 0:
        return Node("neg", (number(-value, column),), column=column)
    rest = value.denominator
    for p in (2, 5):
        while rest % p == 0:
            rest //= p
    if rest == 1:
        return Node("number", (), value, column)
    top, bottom = Node("number", (), Fraction(value.numerator)), Node("number", (), Fraction(value.denominator))
    return Node("/", (top, bottom), column=column)


class _Parser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str):
        self.text = text
        self.tokens = list(self._tokenise())
        self.at = 0
        self.nesting = 0
        self.indices: list[str] = []

    def _tokenise(self) -> Iterator[tuple[str, str, int]]:
        place = 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None:
                self._fail_at_character(place)
            kind, word = match.lastgroup or "", match.group()
            if kind != "space":
                yield kind, word, place + 1
            place = match.end()
        yield "end", "", len(self.text) + 1

    def _fail_at_character(self, place: int) -> NoReturn:
        c = self.text[place]
        shown = repr(c) if c.isprintable() else f"U+{ord(c):04X}"
        sentence = f"the character {shown} has no place in a formula; use numbers, names and + - * / ** ( ) ,"
        raise FormulaError(_SIGNS.get(c, sentence), self.text, place + 1)

    def fail(self, sentence: str, column: int | None = None) -> NoReturn:
        raise FormulaError(sentence, self.text, self.tokens[self.at][2] if column is None else column)

    def take(self, *words: str) -> str | None:
        kind, word, _ = self.tokens[self.at]
        if kind == "sign" and word in words:
            self.at += 1
            return word
        return None

    def need(self, word: str, where: str) -> None:
        if self.take(word) is None:
            kind, found, _ = self.tokens[self.at]
            self.fail(f"expected '{word}' {where}, found {'the end' if kind == 'end' else repr(found)}")

    def deeper(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            self.fail(f"the formula is nested more than {MAX_NESTING} deep")

    def whole(self) -> Node:
        node = self.expression()
        kind, word, _ = self.tokens[self.at]
        if kind != "end":
            before = self.tokens[self.at - 1]
            if kind in ("name", "number") or word == "(":
                product = f"{before[1]}*{word}" if len(word) + len(before[1]) < 20 else "a '*'"
                self.fail(f"expected an operator before {word[:20]!r}; a product is written {product}")
            if word in COMPARISONS:
                self.fail("a comparison may stand only as the first argument of where(...)")
            if word == "//":
                self.fail("'//' is not known; write floor(a/b)")
            self.fail(f"{word!r} has no opening bracket" if word == ")" else f"{word!r} has no place here")
        return node

    def expression(self) -> Node:
        node = self.term()
        while True:
            column = self.tokens[self.at][2]
            op = self.take("+", "-")
            if op is None:
                return node
            node = Node(op, (node, self.term()), column=column)

    def term(self) -> Node:
        node = self.unary()
        while True:
            column = self.tokens[self.at][2]
            op = self.take("*", "/")
            if op is None:
                return node
            node = Node(op, (node, self.unary()), column=column)

    def unary(self) -> Node:
        column = self.tokens[self.at][2]
        sign = self.take("-", "+")
        if sign is None:
            return self.power()
        self.deeper()
        if sign == "-" and self.tokens[self.at][1] == "inf":
            self.at += 1
            node = Node("-inf", column=column)
        else:
            node = self.unary()
            node = Node("neg", (node,), column=column) if sign == "-" else node
        self.nesting -= 1
        return node

    def power(self) -> Node:
        base = self.atom()
        column = self.tokens[self.at][2]
        if self.take("**") is None:
            return base
        self.deeper()
        node = Node("**", (base, self.unary()), column=column)
        self.nesting -= 1
        return node

    def atom(self) -> Node:
        kind, word, column = self.tokens[self.at]
        if kind == "number":
            self.at += 1
            return Node("number", (), self.literal(word, column), column)
        if kind == "name":
            self.at += 1
            if self.take("("):
                self.deeper()
                node = self.call(word, column)
                self.nesting -= 1
                return node
            return self.name(word, column)
        if self.take("("):
            self.deeper()
            node = self.expression()
            self.need(")", f"to close the bracket of column {column}")
            self.nesting -= 1
            return node
        self.fail(
            "the formula ends where a number, a name or a bracket should follow"
            if kind == "end"
            else f"a number, a name or a bracket should stand before {word!r}"
        )

    def literal(self, word: str, column: int) -> Fraction:
        mantissa, _, exponent = word.lower().partition("e")
        if len(mantissa) > MAX_DIGITS:
            self.fail(f"the number has {len(mantissa)} digits; at most {MAX_DIGITS} are allowed", column)
        if len(exponent) > 5 or abs(int(exponent or 0)) + len(mantissa) > MAX_MAGNITUDE:
            self.fail(f"the number is beyond 10**{MAX_MAGNITUDE} or its inverse", column)
        return Fraction(mantissa.rstrip(".") + ("e" + exponent if exponent else ""))

    def name(self, word: str, column: int) -> Node:
        if word == "pi":
            return Node("pi", column=column)
        if word in self.indices:
            return Node("name", (), word, column)
        if word in FUNCTIONS or word in ("sum", "where"):
            self.fail(f"'{word}' is a function; write {word}(...)", column)
        if word in _SPELLINGS and word != "if":
            self.fail(f"'{word}' is not known; write '{_SPELLINGS[word]}'", column)
        if word in _NOT_PARAMETERS:
            self.fail(_NOT_PARAMETERS[word], column)
        if not _PARAMETER.fullmatch(word):
            hint = f"; write '{word.lower()}'" if _PARAMETER.fullmatch(word.lower()) and len(word) < 20 else ""
            self.fail(f"the name {word[:20]!r} is not allowed: names are a-z, then a-z, 0-9 or _{hint}", column)
        return Node("name", (), word, column)

    def call(self, word: str, column: int) -> Node:
        if word == "sum":
            return self.sum(column)
        if word == "where":
            return self.where(column)
        if word not in FUNCTIONS:
            near = difflib.get_close_matches(word.lower()[:20], [*FUNCTIONS, "sum", "where"], 1)
            hint = _SPELLINGS.get(word) or (near[0] if near else "")
            known = ", ".join([*FUNCTIONS, "sum", "where"])
            ask = f"write '{hint}'" if hint else f"known are {known}; a product is written with '*'"
            self.fail(f"the function {word[:20]!r} is not known; {ask}", column)
        args = [self.expression()]
        while self.take(","):
            args.append(self.expression())
        self.need(")", f"to close {word}(")
        wanted = FUNCTIONS[word]
        if len(args) != wanted:
            self.fail(f"{word} takes {wanted} argument{'s' * (wanted > 1)}, not {len(args)}", column)
        return Node(word, tuple(args), column=column)

    def sum(self, column: int) -> Node:
        form = "in sum(expression, j, 1, N)"
        start = self.at  # the index follows the expression, which needs it: look ahead for it
        index = self._index_of_sum(start)
        self.indices.append(index)
        body = self.expression()
        self.indices.pop()
        self.need(",", form)
        self.at += 1  # the index itself, read by the look-ahead
        self.need(",", form)
        first = self.expression()
        self.need(",", form)
        last = self.expression()
        self.need(")", form)
        for bound in (first, last):
            if bound.free() & ({"t"} | set(self.indices)):
                self.fail("the bounds of a sum may not depend on t or on another sum", bound.column)
        return Node("sum", (body, first, last), index, column)

    def _index_of_sum(self, start: int) -> str:
        depth, place = 0, start
        while True:
            kind, word, column = self.tokens[place]
            if kind == "end" or (word == ")" and depth == 0):
                self.fail("a sum is written sum(expression, j, 1, N)", column)
            if word == "," and depth == 0:
                break
            depth += (word == "(") - (word == ")")
            place += 1
        kind, word, column = self.tokens[place + 1]
        if kind != "name" or not _PARAMETER.fullmatch(word) or word in {"t", "pi", "sum", "where", *FUNCTIONS}:
            self.fail("the second argument of sum is its index, such as j", column)
        return word

    def where(self, column: int) -> Node:
        form = "in where(t < w, a, b)"
        left = self.expression()
        comparison = self.take(*COMPARISONS)
        if comparison is None:
            self.fail(f"expected one of {' '.join(COMPARISONS)} {form}")
        right = self.expression()
        self.need(",", form)
        a = self.expression()
        self.need(",", form)
        b = self.expression()
        self.need(")", form)
        return Node("where", (left, right, a, b), comparison, column)


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
        bound = replace(self, node=_substitute(self.node, nodes), source="")
        _check(bound.node, bound.text())
        return bound

    def __str__(self) -> str:
        return self.text()

    # The readings: each is one fold with its own algebra (readings.py).
    def text(self) -> str:
        """The formula as text that parses back to itself."""
        from farfield import readings

        return ("weight: " if self.weight else "") + readings.text(self.node)

    def latex(self) -> str:
        """The formula as LaTeX."""
        from farfield import readings

        return readings.latex(self.node)

    def float(self, t: float, **parameters: float) -> float:
        """The bias at distance t in double precision; nan where it is undefined."""
        from farfield import readings

        value = readings.float_value(self.node, {"t": t, **parameters})
        return readings.float_log(value) if self.weight else value

    def ball(self, t: Any, **parameters: Any) -> arb:
        """An Arb ball that contains the bias at t (a number, or a ball for a range) at the current precision."""
        from farfield import readings

        value = readings.ball_value(self.node, {"t": t, **parameters})
        return readings.ball_log(value) if self.weight else value

    def weight_ball(self, t: Any, **parameters: Any) -> arb:
        """An Arb ball that contains the weight b(t) = exp(r(t))."""
        from farfield import readings

        value = readings.ball_value(self.node, {"t": t, **parameters})
        return value if self.weight else readings.ball_exp(value)

    def array(self, t: Any, **parameters: Any) -> Any:
        """The bias on a numpy array of distances in double precision."""
        from farfield import readings

        return readings.array_value(self.node, self.weight, {"t": t, **parameters})

    def torch(self, t: Any, **parameters: Any) -> Any:
        """The bias on a tensor of distances, with gradients to the parameters that are tensors."""
        from farfield import readings

        return readings.torch_value(self.node, self.weight, {"t": t, **parameters})

    def sympy(self) -> Any:
        """The formula as a sympy expression in t (a non-negative symbol) and real parameters."""
        from farfield import readings

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
        node = _Parser(body).whole()
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


def index_range(node: Node, names: Mapping[str, Fraction] | None = None) -> range | None:
    """The indices of a sum node, or None while a parameter leaves its bounds open."""
    from farfield import readings

    bounds = []
    for bound in node.args[1:]:
        if bound.free() - set(names or {}):
            return None
        value = readings.exact_value(bound, names or {})
        if value is None or value.denominator != 1:
            raise FormulaError("the bounds of a sum must be whole numbers", column=bound.column)
        bounds.append(int(value))
    if bounds[1] - bounds[0] + 1 > MAX_TERMS:
        terms = bounds[1] - bounds[0] + 1
        terms_text = str(terms) if terms < 10**12 else "too many"
        raise FormulaError(f"the sum has {terms_text} terms; at most {MAX_TERMS} are allowed", column=node.column)
    return range(bounds[0], bounds[1] + 1)


def expanded_size(node: Node) -> int:
    """How many parts the expression has when every sum is written out."""
    inside = [expanded_size(a) for a in node.args]
    if node.op != "sum":
        return 1 + sum(inside)
    indices = index_range(node)
    return inside[0] * (1 if indices is None else max(1, len(indices)))


def fold(node: Node, leaf: Callable[[Node], Any], join: Callable[[Node, list[Any]], Any]) -> Any:
    """Combine a tree bottom-up: `leaf` for what has no parts, `join` for an operation and its combined parts."""
    if not node.args:
        return leaf(node)
    return join(node, [fold(a, leaf, join) for a in node.args])


def _substitute(node: Node, nodes: Mapping[str, Node]) -> Node:
    if node.op == "name":
        return nodes.get(str(node.value), node)
    if node.op == "sum":
        inner = {name: n for name, n in nodes.items() if name != node.value}
        body, *bounds = node.args
        return replace(node, args=(_substitute(body, inner), *(_substitute(b, nodes) for b in bounds)))
    return replace(node, args=tuple(_substitute(a, nodes) for a in node.args)) if node.args else node


def _check(node: Node, text: str) -> None:
    """Refuse what is too large, a misplaced -inf, and a constant part that is no sane number."""
    from farfield import readings

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
