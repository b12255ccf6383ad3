"""A verdict and its proof as LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from farfield.formula import FormulaError, parse
from farfield.formula import latex as spelling
from farfield.theory.checker.examination import statement

if TYPE_CHECKING:
    from farfield.theory.verdict.convergence import Verdict

_SPECIAL = {
    **{c: "\\" + c for c in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_RELATION = re.compile(r" (<=|>=|=|->) ")
_RELATIONS = {"<=": r"\le", ">=": r"\ge", "=": "=", "->": r"\to"}
_REMAINDER = re.compile(r"\bO\(")
STANDING = {"wwb": "b(t)", "wwq": "q(t)", "wwh": "h(t)"}  # functions that a proof speaks of, as names for the parser

# ("relation", "<="), ("plus", "+"), ("expression", a tree), ("order", what stands in O(...)), ("words", plain text)
Part = tuple[str, Any]


def escape(words: str) -> str:
    """Plain words for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in words)


def parts(snippet: str) -> list[Part]:
    """A snippet of a proof, written in the formula language with b(t), q(t), h(t) and O(...), taken apart."""
    found: list[Part] = []
    for i, side in enumerate(_RELATION.split(snippet)):
        found += [("relation", side)] if i % 2 else _side(side)
    return found


def _side(side: str) -> list[Part]:
    match = _REMAINDER.search(side)
    if not match:
        return [_expression(side)]
    before = side[: match.start()].rstrip().removesuffix("+").rstrip()
    inside = _expression(side[match.end() : -1])
    order: Part = ("order", inside[1]) if inside[0] == "expression" else ("words", side[match.start() :])
    return [_expression(before), ("plus", "+"), order] if before else [order]


def _expression(words: str) -> Part:
    named = words
    for name, function in STANDING.items():
        named = named.replace(function, name)
    try:
        return "expression", parse(named).node
    except FormulaError:
        return "words", words


def mathematics(snippet: str) -> str:
    """A snippet of a proof as LaTeX mathematics."""
    return " ".join(_part_latex(*part) for part in parts(snippet))


def _part_latex(kind: str, value: Any) -> str:
    if kind in ("relation", "plus"):
        return _RELATIONS.get(value, value)
    if kind == "words":
        return rf"\text{{{escape(value)}}}"
    shown = spelling.latex(value)
    for name, function in STANDING.items():
        shown = shown.replace(rf"\mathrm{{{name}}}", function)
    return rf"O\!\left({shown}\right)" if kind == "order" else shown


def step_latex(step: str) -> str:
    """One step of a proof: words as they are, what stands between backticks as mathematics."""
    pieces = step.split("`")
    return "".join(f"${mathematics(p)}$" if i % 2 else escape(p) for i, p in enumerate(pieces))


def proof_latex(verdict: Verdict) -> str:
    """The statement and the steps as a list."""
    formula = parse(verdict.formula) if verdict.verdict != "not-applicable" else None
    name = "b(t)" if formula is not None and formula.weight else "r(t)"
    head = f"${name} = {formula.latex()}$: " if formula is not None else f"{escape(verdict.formula)}: "
    lines = [head + escape(verdict.condition or verdict.verdict) + ".", r"\begin{enumerate}"]
    for step in verdict.steps:
        if verdict.certificate is not None and step.startswith("explicitly, `"):
            rest = step.split("`", 2)[2]
            lines.append(rf"  \item explicitly, ${statement(verdict.certificate, latex=True)}${step_latex(rest)}")
        else:
            lines.append(rf"  \item {step_latex(step)}")
    return "\n".join([*lines, r"\end{enumerate}"])
