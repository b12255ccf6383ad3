"""The grammar of formulas: text to an expression by recursive descent, or one sentence that says what is wrong.

expression  = term  { ("+" | "-") term }
term        = unary { ("*" | "/") unary }
unary       = { "-" | "+" } power
power       = atom [ "**" unary ]
atom        = number | "pi" | "t" | parameter | "(" expression ")" | function "(" arguments ")"
            | "sum(" expression "," index "," first "," last ")"
            | "where(" expression ("<" | "<=" | ">" | ">=") expression "," branch "," branch ")"
branch      = expression | "-inf"

`as_meant` reads what people write elsewhere: `^`, `ln`, `²`, `λ`, `−`, `·` and their like.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NoReturn

from farfield.formula.functions import CALLS, COMPARISONS
from farfield.formula.tree import FormulaError, Node

MAX_NESTING = 40  # brackets, signs and powers inside one another
MAX_DIGITS = 50  # of one number
MAX_MAGNITUDE = 300  # a constant lies within 10 ** +-MAX_MAGNITUDE

FORMS = ("sum", "where")  # functions with a grammar of their own
_SPELLINGS = {
    "ln": "log", "cosine": "cos", "sine": "sin", "tangent": "tan", "logistic": "sigmoid", "power": "**",
    "pow": "**", "root": "sqrt", "maximum": "max", "minimum": "min", "absolute": "abs",
    "sigma": "sum", "piecewise": "where", "if": "where",
}  # fmt: skip
_GONE = {
    **{f: f"the function '{f}' left the language: no published encoding uses it" for f in ("atan", "erf", "gamma")},
    "between": "'between' left the language: give two formulas, such as 'upper: -k*t + m; lower: -k*t - m'",
    "sink": "'sink' left the language: give its logit after the formula, such as 'where(t < w, 0, -inf); sink: s'",
}
_NOT_PARAMETERS = {
    "x": "the distance is called 't' here, not 'x'",
    "e": "write exp(...) for a power of e",
    "nan": "'nan' is not a number",
    "inf": "'inf' may stand only as '-inf' in a branch of where(...)",
    "oo": "write '-inf' in a branch of where(...)",
    "infinity": "write '-inf' in a branch of where(...)",
    "lambda": "'lambda' is not a formula",
}
_OTHER_SIGNS = {
    "√": "write 'sqrt(...)'",
    "|": "write 'abs(...)' for an absolute value",
    "=": "'=' has no place in a formula; give a parameter its value with --set",
    "[": "write round brackets",
    "{": "write round brackets",
}
_MEANT_SIGNS = {
    "^": "**", "−": "-", "–": "-", "—": "-", "·": "*", "×": "*", "⋅": "*", "∙": "*", "÷": "/", "∕": "/", "≤": "<=",
    "≥": ">=", "π": "pi", "λ": "lam", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "θ": "theta", "σ": "sigma",
    "μ": "mu", "τ": "tau", "ω": "omega", "\u00a0": " ", "\u202f": " ",
}  # fmt: skip
_MEANT_WORDS = {"ln": "log", "Log": "log", "Exp": "exp", "Sqrt": "sqrt", "lambda": "lam", "√": "sqrt"}
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_MEANT = re.compile(
    rf"[{re.escape(''.join(_MEANT_SIGNS))}]|[⁰¹²³⁴-⁹]+|√(?=\()|\b(?:ln|Log|Exp|Sqrt|lambda)\b(?=\s*\()|\blambda\b"
)
_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|//|<=|>=|[-+*/(),<>])|(?P<space>[ \t]+)"
)
_PARAMETER = re.compile(r"[a-z][a-z0-9_]*")


def literal(word: str, column: int = 1) -> Fraction:
    """The exact value of a typed number, unless it is beyond all measure."""
    mantissa, _, exponent = word.lower().partition("e")
    if len(mantissa) > MAX_DIGITS:
        sentence = f"the number has {len(mantissa)} digits; at most {MAX_DIGITS} are allowed"
        raise FormulaError(sentence, word, column)
    if len(exponent) > 5 or abs(int(exponent or 0)) + len(mantissa) > MAX_MAGNITUDE:
        raise FormulaError(f"the number is beyond 10**{MAX_MAGNITUDE} or its inverse", word, column)
    return Fraction(mantissa.rstrip(".") + ("e" + exponent if exponent else ""))


class Parser:
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
        if _MEANT_SIGNS.get(c, "").strip():
            sentence = f"the character {shown} has no place in a formula; write '{_MEANT_SIGNS[c]}'"
        raise FormulaError(_OTHER_SIGNS.get(c, sentence), self.text, place + 1)

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
            kind, result, _ = self.tokens[self.at]
            self.fail(f"expected '{word}' {where}, found {'the end' if kind == 'end' else repr(result)}")

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
        return self._chain(self.term, "+", "-")

    def term(self) -> Node:
        return self._chain(self.unary, "*", "/")

    def _chain(self, part: Callable[[], Node], *signs: str) -> Node:
        """Parts with these signs between them, from left to right."""
        node = part()
        while True:
            column = self.tokens[self.at][2]
            op = self.take(*signs)
            if op is None:
                return node
            node = Node(op, (node, part()), column=column)

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
            return Node("number", (), literal(word, column), column)
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

    def name(self, word: str, column: int) -> Node:
        if word == "pi":
            return Node("pi", column=column)
        if word in self.indices:
            return Node("name", (), word, column)
        if word in CALLS or word in FORMS:
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
        if word in _GONE:
            self.fail(_GONE[word], column)
        if word not in CALLS:
            near = difflib.get_close_matches(word.lower()[:20], [*CALLS, *FORMS], 1)
            hint = _SPELLINGS.get(word) or (near[0] if near else "")
            known = ", ".join([*CALLS, *FORMS])
            ask = f"write '{hint}'" if hint else f"known are {known}; a product is written with '*'"
            self.fail(f"the function {word[:20]!r} is not known; {ask}", column)
        args = [self.expression()]
        while self.take(","):
            args.append(self.expression())
        self.need(")", f"to close {word}(")
        wanted = CALLS[word]
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
        if kind != "name" or not _PARAMETER.fullmatch(word) or word in {"t", "pi", *CALLS, *FORMS}:
            self.fail("the second argument of sum is its index, such as j", column)
        return word

    def relations(self) -> list[Node]:
        """Relations with commas between them, such as a > 0, 0 < b <= 1."""
        result: list[Node] = []
        while True:
            left, count = self.expression(), len(result)
            while comparison := self.take(*COMPARISONS):
                right = self.expression()
                result.append(Node(comparison, (left, right)))
                left = right
            if len(result) == count:
                self.fail("an assumption is a comparison such as a > 0")
            if not self.take(","):
                break
        if self.tokens[self.at][0] != "end":
            self.fail(f"{self.tokens[self.at][1][:20]!r} has no place in an assumption such as a > 0, b <= 1")
        return result

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


def as_meant(text: str) -> tuple[str, str]:
    """What a person typed in the spelling of formulas, and what was taken for what; ("", "") if it is that already."""
    meanings: dict[str, str] = {}

    def write(match: re.Match[str]) -> str:
        sign = match[0]
        meaning = _MEANT_SIGNS.get(sign) or _MEANT_WORDS.get(sign) or f"**{sign.translate(_SUPERSCRIPTS)}"
        if meaning.strip():
            meanings[sign] = meaning
        return meaning

    written = _MEANT.sub(write, text)
    if written == text:
        return "", ""
    changes = [f"'{sign}' as '{meaning}'" for sign, meaning in meanings.items()] or ["an unusual space as a space"]
    return written, f"read {', '.join(changes)}"
