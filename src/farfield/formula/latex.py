"""A formula, or the mathematics of a proof, as LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from farfield.formula.functions import CLASSES, DERIVED, STATEMENTS, reading
from farfield.formula.plain_text import decimal_text
from farfield.formula.tree import Node, fold

# how tightly a spelling holds together: a sum sign swallows what follows, a leading minus needs no bracket in front
RELATION, OPEN, SUM, SIGNED, TERM, POWER, ATOM = range(7)
Spelling = tuple[str, int]
Rule = Callable[[Node, list[Spelling]], Spelling]

GREEK = ("alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau", "omega")
_SPECIAL = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def escape(words: str) -> str:
    """Plain words for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in words)


def latex(node: Node) -> str:
    """The expression as LaTeX."""
    return fold(node, _leaf, lambda n, parts: _RULES[n.op](n, parts))[0]


def split_name(name: str) -> tuple[str, str]:
    """A parameter's name as a stem and an index: a1 is a with index 1, k_max is k with index max."""
    stem, _, index = name.partition("_")
    if not index and name.rstrip("0123456789") not in ("", name):
        stem = name.rstrip("0123456789")
        index = name[len(stem) :]
    return stem, index.replace("_", ",")


def _name(name: str) -> str:
    stem, index = split_name(name)
    letter = rf"\{stem}" if stem in GREEK else stem if len(stem) == 1 else rf"\mathrm{{{escape(stem)}}}"
    return f"{letter}_{{{escape(index)}}}" if index else letter


def _leaf(n: Node) -> Spelling:
    if isinstance(n.value, Fraction):
        digits, _, tens = decimal_text(n.value).partition("e")
        return (rf"{digits} \cdot 10^{{{tens}}}", TERM) if tens else (digits, ATOM)
    return {"pi": r"\pi", "-inf": r"-\infty", "...": r"\cdots"}.get(n.op) or _name(str(n.value)), ATOM


def _wrap(part: Spelling, level: int) -> str:
    return part[0] if part[1] >= level else rf"\left({part[0]}\right)"


def _infix(sign: str, level: int, right: int) -> Rule:
    return lambda _, parts: (f"{_wrap(parts[0], level)} {sign} {_wrap(parts[1], right)}", level)


def _call(before: str, after: str = r"\right)") -> Rule:
    return lambda _, parts: (f"{before}{', '.join(p[0] for p in parts)}{after}", ATOM)


def _product(_: Node, parts: list[Spelling]) -> Spelling:
    right = _wrap(parts[1], POWER)
    sign = r"\cdot" if right[:1].isdigit() else r"\,"
    return f"{_wrap(parts[0], SIGNED)} {sign} {right}", TERM


def _power(n: Node, parts: list[Spelling]) -> Spelling:
    base = rf"\left({parts[0][0]}\right)" if n.args[0].op == "/" else _wrap(parts[0], ATOM)
    return f"{{{base}}}^{{{parts[1][0]}}}", POWER


def _where(n: Node, parts: list[Spelling]) -> Spelling:
    left, right, yes, no = (p[0] for p in parts)
    test = f"{left} {_RELATIONS[str(n.value)]} {right}"
    return rf"\begin{{cases}} {yes}, & {test} \\ {no}, & \text{{otherwise}} \end{{cases}}", ATOM


def _sum(n: Node, parts: list[Spelling]) -> Spelling:
    below = f"{_name(str(n.value))}={parts[1][0]}"
    return rf"\sum_{{{below}}}^{{{parts[2][0]}}} {_wrap(parts[0], TERM)}", OPEN


_RELATIONS = {"=": "=", "!=": r"\ne", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "->": r"\to"}
_NAMES = {"atan": r"\arctan", "erf": r"\operatorname{erf}", "gamma": r"\Gamma"}
_RULES: dict[str, Rule] = reading("LaTeX", {
    "+": _infix("+", SUM, TERM),
    "-": _infix("-", SUM, TERM),
    "*": _product,
    "/": lambda _, parts: (rf"\frac{{{parts[0][0]}}}{{{parts[1][0]}}}", ATOM),
    "neg": lambda _, parts: ("-" + _wrap(parts[0], TERM), SIGNED),
    "**": _power,
    "log": _call(r"\ln\left("),
    "sqrt": _call(r"\sqrt{", "}"),
    "abs": _call(r"\left|", r"\right|"),
    "floor": _call(r"\left\lfloor ", r"\right\rfloor"),
    **{f: _call(rf"\operatorname{{{f}}}\left(") for f in (*DERIVED, *CLASSES)},
    **{f: _call(rf"\{f}\left(") for f in ("exp", "sin", "cos", "min", "max", "tanh", "cosh", "sinh", "tan")},
    **{f: _call(rf"{shown}\left(") for f, shown in _NAMES.items()},
    **{f"log{n}": _call(rf"\log_{{{n}}}\left(") for n in (2, 10)},
    "where": _where,
    "sum": _sum,
    **{sign: _infix(shown, RELATION, OPEN) for sign, shown in _RELATIONS.items()},
    "apply": lambda n, parts: (rf"{_name(str(n.value))}({', '.join(p[0] for p in parts)})", ATOM),
    "order": _call(r"O\!\left("),
    "...": lambda n, _: (r"\cdots", ATOM),
}, ("where", "sum", *CLASSES, *STATEMENTS))  # fmt: skip
