"""A formula spelt out: as text that parses back to itself, and as LaTeX. Both are folds of the tree."""

from __future__ import annotations

from fractions import Fraction

from farfield.formula.tree import Node, fold

_SUM, _TERM, _UNARY, _POWER, _ATOM = range(1, 6)  # how tightly a spelling holds together
_LEVELS = {"+": (_SUM, _SUM, _TERM), "-": (_SUM, _SUM, _TERM), "*": (_TERM, _TERM, _UNARY), "/": (_TERM, _TERM, _UNARY)}
_OPEN, _SIGNED = 0.5, 1.5  # LaTeX only: a sum sign swallows what follows; a leading minus needs no bracket in front
Spelling = tuple[str, float]


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
    """The expression as text that parses back to the same expression."""

    def wrap(part: Spelling, level: float) -> str:
        return part[0] if part[1] >= level else f"({part[0]})"

    def leaf(n: Node) -> Spelling:
        if isinstance(n.value, Fraction):
            return decimal_text(n.value), _ATOM
        return (n.op if n.op in ("pi", "-inf") else str(n.value)), _ATOM

    def join(n: Node, parts: list[Spelling]) -> Spelling:
        if n.op in _LEVELS:
            level, left, right = _LEVELS[n.op]
            sign = f" {n.op} " if level == _SUM else n.op
            return wrap(parts[0], left) + sign + wrap(parts[1], right), level
        if n.op == "neg":
            return "-" + wrap(parts[0], _UNARY), _UNARY
        if n.op == "**":
            return wrap(parts[0], _ATOM) + "**" + wrap(parts[1], _UNARY), _POWER
        inside = [p[0] for p in parts]
        if n.op == "where":
            inside = [f"{inside[0]} {n.value} {inside[1]}", *inside[2:]]
        if n.op == "sum":
            inside = [inside[0], str(n.value), *inside[1:]]
        return f"{n.op}({', '.join(inside)})", _ATOM

    return fold(node, leaf, join)[0]


_LATEX_CALLS = {
    "exp": r"\exp\left(%s\right)", "log": r"\ln\left(%s\right)", "sqrt": r"\sqrt{%s}", "sin": r"\sin\left(%s\right)",
    "cos": r"\cos\left(%s\right)", "abs": r"\left|%s\right|", "floor": r"\left\lfloor %s\right\rfloor",
    "min": r"\min\left(%s, %s\right)", "max": r"\max\left(%s, %s\right)",
}  # fmt: skip
_GREEK = {"alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda_", "mu", "nu", "rho", "sigma", "tau", "omega"}


def latex_name(name: str) -> str:
    """A parameter's name in LaTeX."""
    stem, _, index = name.partition("_")
    if not index and name.rstrip("0123456789") != name:
        stem = name.rstrip("0123456789")
        index = name[len(stem) :]
    head = stem if len(stem) == 1 else rf"\{stem}" if stem in _GREEK else rf"\mathrm{{{stem}}}"
    return f"{head}_{{{index.replace('_', ',')}}}" if index else head


def latex(node: Node) -> str:
    """The expression as LaTeX."""

    def wrap(part: Spelling, level: float) -> str:
        return part[0] if part[1] >= level else rf"\left({part[0]}\right)"

    def leaf(n: Node) -> Spelling:
        if isinstance(n.value, Fraction):
            digits, _, tens = decimal_text(n.value).partition("e")
            return (rf"{digits} \cdot 10^{{{tens}}}", _TERM) if tens else (digits, _ATOM)
        return {"pi": r"\pi", "-inf": r"-\infty"}.get(n.op) or latex_name(str(n.value)), _ATOM

    def join(n: Node, parts: list[Spelling]) -> Spelling:
        inside = [p[0] for p in parts]
        if n.op == "/":
            return rf"\frac{{{inside[0]}}}{{{inside[1]}}}", _ATOM
        if n.op == "*":
            right = wrap(parts[1], _POWER)
            sign = r" \cdot " if right[:1].isdigit() else r" \, "
            return wrap(parts[0], _SIGNED) + sign + right, _TERM
        if n.op in _LEVELS:
            level, left, right_level = _LEVELS[n.op]
            return f"{wrap(parts[0], left)} {n.op} {wrap(parts[1], right_level)}", level
        if n.op == "neg":
            return "-" + wrap(parts[0], _TERM), _SIGNED
        if n.op == "**":
            base = wrap(parts[0], _ATOM)
            if n.args[0].op == "/":
                base = rf"\left({base}\right)"
            return f"{{{base}}}^{{{inside[1]}}}", _POWER
        if n.op == "where":
            compare = {"<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}[str(n.value)]
            return (
                rf"\begin{{cases}} {inside[2]}, & {inside[0]} {compare} {inside[1]} \\ "
                rf"{inside[3]}, & \text{{otherwise}} \end{{cases}}"
            ), _ATOM
        if n.op == "sum":
            return rf"\sum_{{{latex_name(str(n.value))}={inside[1]}}}^{{{inside[2]}}} {wrap(parts[0], _TERM)}", _OPEN
        return _LATEX_CALLS[n.op] % tuple(inside), _ATOM

    return fold(node, leaf, join)[0]
