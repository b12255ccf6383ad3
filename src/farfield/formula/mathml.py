"""A formula, or the mathematics of a proof, as MathML.

An element is a list, its name first and then its children: elements, or one text. A page builds it with
createElementNS and textContent, so that nothing a person typed can become markup; `markup` writes it out, escaped.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from farfield.formula.functions import CALLS, CLASSES, RELATIONS, STATEMENTS, reading
from farfield.formula.latex import ATOM, GREEK, OPEN, POWER, RELATION, SIGNED, SUM, TERM, split_name
from farfield.formula.plain_text import decimal_text
from farfield.formula.tree import Node, fold

Element = list[Any]
Spelling = tuple[Element, int]
Rule = Callable[[Node, list[Spelling]], Spelling]
_TINY = Fraction(1, 1000)  # below it, a number is written with a power of ten
_LETTERS = dict(zip(GREEK, "αβγδθκλμνρστω", strict=True))
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "-": "−"}


def mathml(node: Node) -> Element:
    """The expression as an element."""
    return fold(node, _leaf, lambda n, parts: _RULES[n.op](n, parts))[0]


def pieces(node: Node) -> list[Element]:
    """The expression in pieces between which a line may end: the sides of a relation, and its sign."""
    if node.op not in RELATIONS:
        return [["mrow", mathml(node)]]
    left, right = node.args
    return [*pieces(left), ["mrow", _sign(node.op)], *pieces(right)]


def markup(element: Element | str) -> str:
    """An element as the text of a page, with everything in it escaped."""
    if isinstance(element, str):
        return html.escape(element)
    name, *children = element
    return f"<{name}>{''.join(markup(c) for c in children)}</{name}>"


def plain(words: str) -> str:
    """Words between mathematics, with the signs that a page has."""
    return words.replace(">=", "≥").replace("<=", "≤")


def _leaf(n: Node) -> Spelling:
    if isinstance(n.value, Fraction):
        digits, _, tens = decimal_text(n.value).partition("e")
        if not tens and 0 < n.value < _TINY:
            shift = len(digits) - len(digits[2:].lstrip("0")) - 1  # 0.00012: four places
            digits, tens = decimal_text(n.value * 10**shift), f"-{shift}"
        if not tens:
            return ["mn", digits], ATOM
        power = ["msup", ["mn", "10"], ["mn", tens.replace("-", "−")]]
        return ["mrow", ["mn", digits], _sign("·"), power], TERM
    whole: dict[str, Element] = {"pi": ["mi", "π"], "-inf": ["mrow", _sign("-"), ["mi", "∞"]], "...": ["mo", "⋯"]}
    return whole.get(n.op) or _name(str(n.value)), ATOM


def _name(name: str) -> Element:
    stem, index = split_name(name)
    letter = ["mi", _LETTERS.get(stem, stem)]
    return ["msub", letter, ["mi", index]] if index else letter


def _sign(sign: str) -> Element:
    return ["mo", _SIGNS.get(sign, sign)]


def _bracket(inside: Element, left: str = "(", right: str = ")") -> Element:
    return ["mrow", ["mo", left], inside, ["mo", right]]


def _wrap(part: Spelling, level: int) -> Element:
    return part[0] if part[1] >= level else _bracket(part[0])


def _infix(sign: str, level: int, right: int) -> Rule:
    return lambda _, parts: (["mrow", _wrap(parts[0], level), _sign(sign), _wrap(parts[1], right)], level)


def _product(n: Node, parts: list[Spelling]) -> Spelling:
    apart = _begins_with_digit(parts[1][0]) or any(a.op == "name" and len(str(a.value)) > 1 for a in n.args)
    return ["mrow", _wrap(parts[0], SIGNED), _sign("·" if apart else "\u2062"), _wrap(parts[1], POWER)], TERM


def _begins_with_digit(element: Element) -> bool:
    first = element[1] if element[0] != "msqrt" else ""
    return first[:1].isdigit() if isinstance(first, str) else _begins_with_digit(first)


def _power(n: Node, parts: list[Spelling]) -> Spelling:
    base = _bracket(parts[0][0]) if n.args[0].op == "/" else _wrap(parts[0], ATOM)
    return ["msup", base, parts[1][0]], POWER


def _arguments(parts: list[Spelling]) -> Element:
    return ["mrow", *(x for i, (part, _) in enumerate(parts) for x in ([["mo", ","]] if i else []) + [part])]


def _call(n: Node, parts: list[Spelling]) -> Spelling:
    name = ["mi", {"log": "ln", "atan": "arctan", "gamma": "Γ"}.get(n.op, n.op)]
    return ["mrow", name, ["mo", "\u2061"], _bracket(_arguments(parts))], POWER


def _where(n: Node, parts: list[Spelling]) -> Spelling:
    left, right, yes, no = (p[0] for p in parts)
    rows = [[yes, ["mrow", left, _sign(str(n.value)), right]], [no, ["mtext", "otherwise"]]]
    table = ["mtable", *(["mtr", *(["mtd", cell] for cell in row)] for row in rows)]
    return ["mrow", ["mo", "{"], table], ATOM


def _sum(n: Node, parts: list[Spelling]) -> Spelling:
    below = ["mrow", _name(str(n.value)), _sign("="), parts[1][0]]
    return ["mrow", ["munderover", ["mo", "∑"], below, parts[2][0]], _wrap(parts[0], TERM)], SUM


_RULES: dict[str, Rule] = reading("MathML", {
    "+": _infix("+", SUM, TERM),
    "-": _infix("-", SUM, TERM),
    "*": _product,
    "/": lambda _, parts: (["mfrac", parts[0][0], parts[1][0]], ATOM),
    "neg": lambda _, parts: (["mrow", _sign("-"), _wrap(parts[0], TERM)], SIGNED),
    "**": _power,
    **dict.fromkeys((*CALLS, *CLASSES), _call),
    "sqrt": lambda _, parts: (["msqrt", parts[0][0]], ATOM),
    "abs": lambda _, parts: (_bracket(parts[0][0], "|", "|"), ATOM),
    "floor": lambda _, parts: (_bracket(parts[0][0], "⌊", "⌋"), ATOM),
    "where": _where,
    "sum": _sum,
    **{sign: _infix(sign, RELATION, OPEN) for sign in RELATIONS},
    "apply": lambda n, parts: (["mrow", _name(str(n.value)), _bracket(_arguments(parts))], ATOM),
    "order": lambda _, parts: (["mrow", ["mi", "O"], _bracket(parts[0][0])], ATOM),
    "...": lambda n, _: (["mo", "⋯"], ATOM),
}, ("where", "sum", *CLASSES, *STATEMENTS))  # fmt: skip
