"""A formula as a term of Coq: what `proofs/Formula.v` reads back into a formula of its own.

The distance is `INR t`. `power` is the language's `**` of what is not negative, with 0**p = 0 and 0**0 = 1; a whole
exponent is `^`. A sum is written out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from flint import arb

from farfield.formula import Formula, FormulaError, Node, index_range, number, tree
from farfield.formula.algebras import exact_value, float_value
from farfield.formula.functions import is_whole, rule_table
from farfield.formula.spelling import ATOM, CALL, OPEN, POWER, SUM, TERM, UNARY, Rendering, Rule
from farfield.formula.tree import substitute
from farfield.theory.errors import OutsideCoqError, UnknownError
from farfield.theory.exact.intervals import INFINITY, Interval, range_of

MAX_CHARACTERS = 60_000  # of one term
_CLEAN = {*"acdefghijklmnopqrsuvwxyz", "near", "far"}  # names that hide nothing of the library


def coq_name(name: str) -> str:
    """A parameter as an identifier of Coq that is neither a keyword nor a name of the library."""
    return name if name in _CLEAN else f"{name}'"


def rational(value: Fraction) -> str:
    """An exact number of type Q."""
    return str(value.numerator) if value.denominator == 1 else f"({value.numerator} # {value.denominator})"


def nat(n: int) -> str:
    """A natural number that need not be written with n strokes."""
    return f"{n}%nat" if n <= 100 else f"(Z.to_nat {n})"


def wrap(text: str) -> str:
    """A sentence of Coq in lines of at most 120 characters where that is possible."""
    return textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


# ---------------------------------------------------------------------------------------------------- the rendering
def fraction(value: Fraction) -> tuple[str, int]:
    """An exact number of the real line."""
    if value < 0:
        text, strength = fraction(-value)
        return f"- {text if strength >= UNARY else f'({text})'}", UNARY
    if value.denominator == 1:
        return str(value.numerator), ATOM
    return f"{value.numerator} / {value.denominator}", TERM


_CALLS = {
    "exp": "exp", "log": "ln", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "abs": "Rabs", "floor": "floor",
}  # fmt: skip
_RULES: dict[str, Rule[str]] = rule_table("Coq", {
    "pi": Rule(ATOM, (), "PI"),
    "+": Rule(SUM, (SUM, TERM), "$0 + $1"),
    "-": Rule(SUM, (SUM, TERM), "$0 - $1"),
    "*": Rule(TERM, (TERM, UNARY), "$0 * $1"),
    "/": Rule(TERM, (TERM, UNARY), "$0 / $1"),
    "neg": Rule(UNARY, (UNARY,), "- $0"),
    **{f: Rule(CALL, (ATOM,), f"{function} $0") for f, function in _CALLS.items()},
    **{f: Rule(CALL, (ATOM, ATOM), f"R{f} $0 $1") for f in ("min", "max", "power")},
    "**": Rule(CALL, (ATOM, ATOM), "power $0 $1"),
    "whole power": Rule(POWER, (ATOM,), lambda n, _: f"$0 ^ {n.value}"),
    "inverse": Rule(UNARY, (), "/ ($0)"),
    "where": Rule(OPEN, (ATOM, ATOM), lambda n, _: (
        f"if {'Rlt_dec' if n.value == '<' else 'Rle_dec'} $0 $1 then $2 else $3")),
}, ("pi", "where", "power", "whole power", "inverse"))  # fmt: skip


def spell(node: Node, names: Mapping[str, str] | None = None) -> tuple[str, int]:
    """An expression as text, with how tightly it holds together; open parameters by these names."""

    def name(word: str) -> tuple[str, int]:
        return ("INR t", CALL) if word == "t" else ((names or {})[word], ATOM)

    return Rendering(fraction, name, "($0)", _RULES).spell(_prepare(node))


def atom(node: Node) -> str:
    """An expression that may stand as an argument."""
    text, strength = spell(node)
    return text if strength == ATOM else f"({text})"


def _prepare(node: Node) -> Node:
    """The expression with sums written out, powers as Coq has them, and conditions with < or <=."""
    if node.op == "-inf":
        raise OutsideCoqError("the bias -inf stands where it is not a branch of a sum of where(...)")
    if node.op == "sum":
        indices = index_range(node)
        if indices is None:
            raise OutsideCoqError("a sum whose number of terms is open has no term of its own in Coq")
        terms = [_prepare(substitute(node.args[0], {str(node.value): number(j)})) for j in indices]
        return reduce(lambda total, term: Node("+", (total, term)), terms) if terms else tree.ZERO
    args = tuple(_prepare(a) for a in node.args)
    if node.op == "**":
        return _power(*node.args, *args)
    if node.op == "where" and node.value in (">", ">="):
        return Node("where", (args[1], args[0], *args[2:]), "<" if node.value == ">" else "<=")
    return replace(node, args=args)


def _power(base: Node, exponent: Node, *prepared: Node) -> Node:
    """A power: ^ for a whole exponent, Rpower for a positive constant, `power` otherwise."""
    exact = exact_value(exponent, {})
    if exact is not None and exact.denominator == 1:
        power = Node("whole power", prepared[:1], str(abs(exact.numerator)))
        return power if exact >= 0 else Node("inverse", (power,))
    if not base.free() and float_value(base, {}) > 0:
        return Node("power", prepared)
    if is_whole(exponent) and not _is_never_negative(base):
        raise OutsideCoqError("a power of something that may be negative has no term in Coq, unless it is constant")
    return Node("**", prepared)


def _is_never_negative(node: Node) -> bool:
    """Whether a part is at least 0 at every distance."""
    try:
        return not node.free() - {"t"} and range_of(Formula(node), Interval(arb(0), INFINITY)).not_negative
    except UnknownError:
        return False


# ---------------------------------------------------------------------------------------------------- weights
def weight(node: Node) -> Node:
    """exp of a bias, with 0 for -inf."""
    if all(n.op != "-inf" for n in node.walk()):
        return Node("exp", (node,))
    if node.op == "-inf":
        return tree.ZERO
    if node.op == "where":
        return replace(node, args=(*node.args[:2], *map(weight, node.args[2:])))
    if node.op == "+":
        return Node("*", tuple(map(weight, node.args)))
    if node.op == "-":
        return weight(Node("+", (node.args[0], Node("neg", (node.args[1],)))))
    return node


def weight_term(formula: Formula) -> str:
    """The weight b(t) of a formula as a term of Coq in which the distance is `INR t`."""
    formula = formula.primitive
    names = {name: coq_name(name) for name in formula.parameters}
    try:
        text = spell(formula.node if formula.weight else weight(formula.node), names)[0]
    except RecursionError:
        raise OutsideCoqError("the formula is too deep for Coq") from None
    except FormulaError as error:
        raise OutsideCoqError(error.sentence) from None
    if len(text) > MAX_CHARACTERS:
        raise OutsideCoqError(f"written out for Coq the formula has more than {MAX_CHARACTERS} characters")
    return text
