"""A formula as text that parses back to itself, and the mathematics of a proof in the same spelling."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from farfield.formula.functions import CALLS, CLASSES, RELATIONS, STATEMENTS, reading
from farfield.formula.tree import Node, fold

RELATION, SUM, TERM, UNARY, POWER, ATOM = range(6)  # how tightly a spelling holds together
Spelling = tuple[str, int]
Rule = Callable[[Node, list[Spelling]], Spelling]


def decimal_text(value: Fraction) -> str:
    """A finite decimal, exactly, as the parser reads it."""
    tens = 0
    while value.denominator != 1:
        value, tens = value * 10, tens - 1
    digits = str(value.numerator)
    stripped = digits.rstrip("0") or "0"
    tens += len(digits) - len(stripped) if stripped != "0" else 0
    if 0 <= tens <= 12:
        return stripped + "0" * tens
    if -12 <= tens < 0:
        whole = stripped.rjust(1 - tens, "0")
        return f"{whole[:tens]}.{whole[tens:]}"
    return f"{stripped}e{tens}"


def text(node: Node) -> str:
    """The expression as text; an expression of the formula language parses back to itself."""
    return fold(node, _leaf, lambda n, parts: _RULES[n.op](n, parts))[0]


def _leaf(n: Node) -> Spelling:
    if isinstance(n.value, Fraction):
        return decimal_text(n.value), ATOM
    return (n.op if n.op in ("pi", "-inf", "...") else str(n.value)), ATOM


def _wrap(part: Spelling, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def _infix(sign: str, level: int, right: int) -> Rule:
    return lambda _, parts: (_wrap(parts[0], level) + sign + _wrap(parts[1], right), level)


def _call(n: Node, parts: list[Spelling]) -> Spelling:
    return f"{n.value or n.op}({', '.join(p[0] for p in parts)})", ATOM


def _where(n: Node, parts: list[Spelling]) -> Spelling:
    left, right, *branches = (p[0] for p in parts)
    return f"where({left} {n.value} {right}, {', '.join(branches)})", ATOM


def _sum(n: Node, parts: list[Spelling]) -> Spelling:
    body, first, last = (p[0] for p in parts)
    return f"sum({body}, {n.value}, {first}, {last})", ATOM


_RULES: dict[str, Rule] = reading("text", {
    "+": _infix(" + ", SUM, TERM),
    "-": _infix(" - ", SUM, TERM),
    "*": _infix("*", TERM, UNARY),
    "/": _infix("/", TERM, UNARY),
    "neg": lambda _, parts: ("-" + _wrap(parts[0], UNARY), UNARY),
    "**": lambda _, parts: (_wrap(parts[0], ATOM) + "**" + _wrap(parts[1], UNARY), POWER),
    **dict.fromkeys((*CALLS, *CLASSES), _call),
    "where": _where,
    "sum": _sum,
    **{sign: _infix(f" {sign} ", RELATION, SUM) for sign in RELATIONS},
    "apply": _call,
    "order": lambda _, parts: (f"O({parts[0][0]})", ATOM),
    "...": lambda n, _: ("...", ATOM),
}, ("where", "sum", *CLASSES, *STATEMENTS))  # fmt: skip
