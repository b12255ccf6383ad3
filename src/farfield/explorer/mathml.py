"""Mathematics for the page: a formula or a step of a proof as a tree of MathML elements.

An element is a list, its name first and then its children: elements, or one text. The page builds it with
createElementNS and textContent, so that nothing a person typed can become markup.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from farfield.formula import Formula
from farfield.formula.text import decimal_text
from farfield.formula.tree import Node, fold
from farfield.theory.verdict.typeset import STANDING, parts

Element = list[Any]
_SUM, _SIGNED, _TERM, _POWER, _ATOM = range(1, 6)  # how tightly a piece holds together
_Piece = tuple[Element, int]
_TINY = Fraction(1, 1000)  # below it, a number is written with a power of ten
_FENCES = {"abs": ("|", "|"), "floor": ("⌊", "⌋")}
_NAMES = {"log": "ln"}
_COMPARE = {"<=": "≤", ">=": "≥", "->": "→", "-": "−"}
_GREEK = dict(
    zip(
        ["alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda_", "mu", "nu", "rho", "sigma", "tau", "omega"],
        "αβγδθκλμνρστω",
        strict=True,
    )
)
_STATEMENT = re.compile(r"( for all |, where | has the mean value )")


def formula(given: Formula) -> Element:
    """A formula with what it is on its left: r(t) = ... or b(t) = ..."""
    return ["mrow", _function("b" if given.weight else "r"), _sign("="), expression(given.node)]


def step(text: str) -> list[dict[str, Any]]:
    """A step of a proof: plain words, and mathematics where it stands between backticks."""
    out: list[dict[str, Any]] = []
    for i, piece in enumerate(text.split("`")):
        out += [{"math": element} for element in _snippet(piece)] if i % 2 else [{"words": _plain(piece)}] * bool(piece)
    return out


def _plain(words: str) -> str:
    return words.replace(">=", "≥").replace("<=", "≤")


def _snippet(text: str) -> list[Element]:
    """An equation of a proof, or the statement of a certificate, in pieces between which a line may end."""
    out: list[Element] = [["mrow"]]
    for i, piece in enumerate(_STATEMENT.split(text)):
        if i % 2:
            out.append(["mrow", ["mtext", piece.replace(" ", "\u00a0")]])
            continue
        for kind, value in parts(re.sub(r"\bln\(", "log(", piece.replace("^", "**"))):
            if kind in ("relation", "plus"):
                out.append(["mrow", _sign(value)])
            elif kind == "words":
                out[-1].append(["mtext", value])
            elif kind == "order":
                out[-1] += [["mi", "O"], _bracket(expression(value))]
            else:
                out[-1].append(expression(value))
    return [element for element in out if len(element) > 1]


def expression(node: Node) -> Element:
    """An expression."""
    return fold(node, _leaf, _join)[0]


def _leaf(n: Node) -> _Piece:
    if isinstance(n.value, Fraction):
        digits, _, tens = decimal_text(n.value).partition("e")
        if not tens and 0 < n.value < _TINY:
            shift = len(digits) - len(digits[2:].lstrip("0")) - 1  # 0.00012: four places
            digits, tens = decimal_text(n.value * 10**shift), f"-{shift}"
        if not tens:
            return ["mn", digits], _ATOM
        power = ["msup", ["mn", "10"], ["mn", tens.replace("-", "−")]]
        return ["mrow", ["mn", digits], _sign("·"), power], _TERM
    if n.op in ("pi", "-inf"):
        return (["mi", "π"] if n.op == "pi" else ["mrow", _sign("-"), ["mi", "∞"]]), _ATOM
    return _name(str(n.value)), _ATOM


def _name(name: str) -> Element:
    if name in STANDING:
        return _function(STANDING[name][0])
    stem, _, index = name.partition("_")
    if not index and name.rstrip("0123456789"):
        stem = name.rstrip("0123456789")
        index = name[len(stem) :]
    letter = ["mi", _GREEK.get(stem, stem)]
    return ["msub", letter, ["mi", index.replace("_", ",")]] if index else letter


def _join(n: Node, pieces: list[_Piece]) -> _Piece:
    inside = [p[0] for p in pieces]
    if n.op == "/":
        return ["mfrac", *inside], _ATOM
    if n.op == "*":
        sign = "·" if _begins_with_digit(inside[1]) or _long(n.args[0]) or _long(n.args[1]) else "\u2062"
        return ["mrow", _wrap(pieces[0], _SIGNED), _sign(sign), _wrap(pieces[1], _POWER)], _TERM
    if n.op in ("+", "-"):
        return ["mrow", inside[0], _sign(n.op), _wrap(pieces[1], _TERM)], _SUM
    if n.op == "neg":
        return ["mrow", _sign("-"), _wrap(pieces[0], _TERM)], _SIGNED
    if n.op == "**":
        base = _bracket(inside[0]) if n.args[0].op == "/" else _wrap(pieces[0], _ATOM)
        return ["msup", base, inside[1]], _POWER
    if n.op == "sqrt":
        return ["msqrt", inside[0]], _ATOM
    if n.op in _FENCES:
        return _bracket(inside[0], *_FENCES[n.op]), _ATOM
    if n.op == "where":
        test = ["mrow", inside[0], _sign(str(n.value)), inside[1]]
        rows = [[inside[2], test], [inside[3], ["mtext", "otherwise"]]]
        table = ["mtable", *(["mtr", *(["mtd", cell] for cell in row)] for row in rows)]
        return ["mrow", ["mo", "{"], table], _ATOM
    if n.op == "sum":
        below = ["mrow", _name(str(n.value)), _sign("="), inside[1]]
        return ["mrow", ["munderover", ["mo", "∑"], below, inside[2]], _wrap(pieces[0], _TERM)], _SUM
    comma = [x for i, argument in enumerate(inside) for x in ([["mo", ","]] if i else []) + [argument]]
    return ["mrow", ["mi", _NAMES.get(n.op, n.op)], ["mo", "\u2061"], _bracket(["mrow", *comma])], _POWER


def _wrap(piece: _Piece, level: int) -> Element:
    return piece[0] if piece[1] >= level else _bracket(piece[0])


def _bracket(inside: Element, left: str = "(", right: str = ")") -> Element:
    return ["mrow", ["mo", left], inside, ["mo", right]]


def _function(letter: str) -> Element:
    return ["mrow", ["mi", letter], ["mo", "("], ["mi", "t"], ["mo", ")"]]


def _sign(sign: str) -> Element:
    return ["mo", _COMPARE.get(sign, sign)]


def _long(node: Node) -> bool:
    return node.op == "name" and len(str(node.value)) > 1


def _begins_with_digit(element: Element) -> bool:
    first = element[1] if element[0] != "msqrt" else ""
    return first[:1].isdigit() if isinstance(first, str) else _begins_with_digit(first)
