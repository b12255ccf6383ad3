"""A formula as a term of Coq: what `proofs/Formula.v` reads back into a formula of its own.

The distance is `INR t`. `power` is the language's `**`, with 0**p = 0; a whole exponent is `^`. A sum is written out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from farfield.formula import Formula, FormulaError, Node, index_range, number
from farfield.formula.algebras import exact_value, float_value
from farfield.formula.functions import reading
from farfield.formula.tree import substitute
from farfield.theory.errors import OutsideCoqError

SUM, TERM, UNARY, POWER, CALL, ATOM = range(6)  # how tightly a spelling holds together
Spelling = tuple[str, int]
MAX_CHARACTERS = 60_000  # of one term
_CLEAN = {*"acdefghijklmnopqrsuvwxyz", "near", "far"}  # names that hide nothing of the library


def coq_name(name: str) -> str:
    """A parameter as an identifier of Coq that is neither a keyword nor a name of the library."""
    return name if name in _CLEAN else f"{name}'"


def fraction(value: Fraction) -> Spelling:
    """An exact number of the real line."""
    if value < 0:
        return f"- {_wrap(fraction(-value), UNARY)}", UNARY
    if value.denominator == 1:
        return str(value.numerator), ATOM
    return f"{value.numerator} / {value.denominator}", TERM


def _wrap(part: Spelling, level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"


def rational(value: Fraction) -> str:
    """An exact number of type Q."""
    return str(value.numerator) if value.denominator == 1 else f"({value.numerator} # {value.denominator})"


def nat(n: int) -> str:
    """A natural number that need not be written with n strokes."""
    return f"{n}%nat" if n <= 100 else f"(Z.to_nat {n})"


def wrapped(text: str) -> str:
    """A sentence of Coq in lines of at most 120 characters where that is possible."""
    return textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@dataclass
class Term:
    """The spelling of the parts of one formula."""

    names: Mapping[str, str] = field(default_factory=dict)  # of open parameters

    def spell(self, node: Node) -> Spelling:
        """A part as text, with how tightly it holds together."""
        if node.op == "number":
            assert isinstance(node.value, Fraction)
            return fraction(node.value)
        if node.op == "name":
            return ("INR t", CALL) if node.value == "t" else (self.names[str(node.value)], ATOM)
        if node.op == "pi":
            return "PI", ATOM
        if node.op == "-inf":
            raise OutsideCoqError("the bias -inf stands where it is not a branch of a sum of where(...)")
        return _RULES[node.op](self, node)

    def weight(self, node: Node) -> Spelling:
        """exp of a bias, with 0 for -inf."""
        if all(n.op != "-inf" for n in node.walk()):
            return f"exp {_wrap(self.spell(node), ATOM)}", CALL
        if node.op == "-inf":
            return "0", ATOM
        if node.op == "where":
            return self.choice(node, self.weight)
        if node.op == "+":
            left, right = (self.weight(part) for part in node.args)
            return f"{_wrap(left, TERM)} * {_wrap(right, UNARY)}", TERM
        if node.op == "-":
            return self.weight(Node("+", (node.args[0], Node("neg", (node.args[1],)))))
        return self.spell(node)

    def choice(self, node: Node, read: Callable[[Node], Spelling]) -> Spelling:
        """where(...) with its branches read in some way."""
        left, right, yes, no = node.args
        if node.value in (">", ">="):
            left, right = right, left
        test = "Rlt_dec" if node.value in ("<", ">") else "Rle_dec"
        sides = " ".join(_wrap(self.spell(side), ATOM) for side in (left, right))
        return f"if {test} {sides} then {read(yes)[0]} else {read(no)[0]}", SUM - 1

    def power(self, node: Node) -> Spelling:
        """A power: ^ for a whole exponent, Rpower for a positive constant, `power` otherwise."""
        base, exponent = node.args
        exact = exact_value(exponent, {})
        if exact is not None and exact.denominator == 1:
            whole = f"{_wrap(self.spell(base), ATOM)} ^ {abs(exact.numerator)}"
            return (whole, POWER) if exact >= 0 else (f"/ ({whole})", UNARY)
        function = "Rpower" if not base.free() and float_value(base, {}) > 0 else "power"
        return f"{function} {_wrap(self.spell(base), ATOM)} {_wrap(self.spell(exponent), ATOM)}", CALL

    def sum(self, node: Node) -> Spelling:
        """A sum with its terms written out."""
        indices = index_range(node)
        if indices is None:
            raise OutsideCoqError("a sum whose number of terms is open has no term of its own in Coq")
        terms = [self.spell(substitute(node.args[0], {str(node.value): number(j)})) for j in indices]
        if not terms:
            return "0", ATOM
        text = " + ".join([_wrap(terms[0], SUM), *(_wrap(term, TERM) for term in terms[1:])])
        return (text, SUM) if len(terms) > 1 else terms[0]


Rule = Callable[[Term, Node], Spelling]


def _infix(sign: str, level: int) -> Rule:
    def rule(term: Term, node: Node) -> Spelling:
        left, right = (term.spell(a) for a in node.args)
        return f"{_wrap(left, level)} {sign} {_wrap(right, level + 1)}", level

    return rule


def _call(function: str) -> Rule:
    return lambda term, node: (" ".join([function, *(_wrap(term.spell(a), ATOM) for a in node.args)]), CALL)


def _not_in_coq(_: Term, node: Node) -> Spelling:
    raise OutsideCoqError(f"the proofs in Coq know no {node.op}")


_RULES: dict[str, Rule] = reading("Coq", {
    "+": _infix("+", SUM),
    "-": _infix("-", SUM),
    "*": _infix("*", TERM),
    "/": _infix("/", TERM),
    "neg": lambda term, node: (f"- {_wrap(term.spell(node.args[0]), UNARY)}", UNARY),
    "**": lambda term, node: term.power(node),
    "exp": _call("exp"),
    "log": _call("ln"),
    "sqrt": _call("sqrt"),
    "sin": _call("sin"),
    "cos": _call("cos"),
    "abs": _call("Rabs"),
    "floor": _call("floor"),
    **dict.fromkeys(("atan", "erf", "gamma"), _not_in_coq),
    "min": _call("Rmin"),
    "max": _call("Rmax"),
    "where": lambda term, node: term.choice(node, term.spell),
    "sum": lambda term, node: term.sum(node),
}, ("where", "sum"))  # fmt: skip


def weight_term(formula: Formula) -> str:
    """The weight b(t) of a formula as a term of Coq in which the distance is `INR t`."""
    formula = formula.primitive
    names = {name: coq_name(name) for name in formula.parameters}
    try:
        text = (Term(names).spell if formula.weight else Term(names).weight)(formula.node)[0]
    except RecursionError:
        raise OutsideCoqError("the formula is too deep for Coq") from None
    except FormulaError as error:
        raise OutsideCoqError(error.sentence) from None
    if len(text) > MAX_CHARACTERS:
        raise OutsideCoqError(f"written out for Coq the formula has more than {MAX_CHARACTERS} characters")
    return text
