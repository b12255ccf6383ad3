"""A verdict and its proof as LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from farfield.formula import FormulaError, parse
from farfield.theory.certificate import statement

if TYPE_CHECKING:
    from farfield.theory.convergence import Verdict

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


def escape(words: str) -> str:
    """Plain words for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in words)


def mathematics(snippet: str) -> str:
    """A snippet of a proof, written in the formula language with b(t), g(t) and O(...), as LaTeX mathematics."""
    parts = _RELATION.split(snippet)
    return " ".join(_RELATIONS[p] if i % 2 else _side(p) for i, p in enumerate(parts))


def _side(side: str) -> str:
    order = ""
    match = _REMAINDER.search(side)
    if match:
        before = side[: match.start()].rstrip().removesuffix("+").rstrip()
        order = rf"O\!\left({_expression(side[match.end() : -1])}\right)"
        if not before:
            return order
        return f"{_expression(before)} + {order}"
    return _expression(side)


def _expression(words: str) -> str:
    standing = {"b(t)": "wwb", "q(t)": "wwq", "h(t)": "wwh"}
    for function, name in standing.items():
        words = words.replace(function, name)
    try:
        shown = parse(words).latex()
    except FormulaError:
        return rf"\text{{{escape(words)}}}"
    for function, name in standing.items():
        shown = shown.replace(rf"\mathrm{{{name}}}", function)
    return shown


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
