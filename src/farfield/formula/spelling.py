"""How expressions are written: as text that parses back to itself, as LaTeX, as MathML; coq/terms.py adds Coq.

One walk serves all of them. A `Rendering` is a table with one rule for each operation: how tightly the result holds
together, how tightly each part must (a part that does not gets brackets), and a template. In a text `$0`, `$1`, ... are
the places of the parts. An element of MathML is a list, its name first and then its children; there a number is the
place of a part. A page builds elements with createElementNS and textContent, so that nothing a person typed can become
markup; `markup` writes one out, escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

from farfield.formula.functions import CALLS, DERIVED, RELATIONS, STATEMENTS, rule_table
from farfield.formula.tree import Node

# how tightly a spelling holds together: a sum sign swallows what follows, a leading minus needs no bracket in front
RELATION, OPEN, SUM, SIGNED, TERM, UNARY, POWER, CALL, ATOM = range(9)
Element = list[Any]
Written = TypeVar("Written", str, Element)
_PLACE = re.compile(r"\$(\d)")


@dataclass(frozen=True)
class Rule(Generic[Written]):
    """How one operation is written: the strength of the whole, those that its parts need (0 unless given), a template.

    Where the template depends on the node or on its written parts, it is a function of them.
    """

    strength: int
    needs: tuple[int, ...]
    template: Written | Callable[[Node, list[Written]], Written]


@dataclass(frozen=True)
class Rendering(Generic[Written]):
    """A way to write expressions: what numbers and names look like, with their strength, brackets, and the rules."""

    number: Callable[[Fraction], tuple[Written, int]]
    name: Callable[[str], tuple[Written, int]]
    brackets: Written
    rules: Mapping[str, Rule[Written]]

    def write(self, node: Node) -> Written:
        """The expression in this rendering."""
        return self.spell(node)[0]

    def spell(self, node: Node) -> tuple[Written, int]:
        """The expression, and how tightly it holds together."""
        if isinstance(node.value, Fraction):
            return self.number(node.value)
        if node.op == "name":
            return self.name(node.value)
        rule = self.rules[node.op]
        needs = rule.needs + (0,) * len(node.args)
        parts = [self.hold(self.spell(a), need) for a, need in zip(node.args, needs, strict=False)]
        template = rule.template(node, parts) if callable(rule.template) else rule.template
        return _fill(template, parts), rule.strength

    def hold(self, part: tuple[Written, int], need: int) -> Written:
        """A part, in brackets unless it holds together as tightly as it must."""
        return part[0] if part[1] >= need else _fill(self.brackets, [part[0]])


def _fill(template: Written, parts: list[Written]) -> Written:
    """A template with the parts in their places."""
    if isinstance(template, str):
        return _PLACE.sub(lambda place: parts[int(place[1])], template)
    return [parts[x] if isinstance(x, int) else _fill(x, parts) if isinstance(x, list) else x for x in template]


def table(name: str, rules: Mapping[str, Rule[Written]]) -> dict[str, Rule[Written]]:
    """The rules of a rendering; every operation of a formula and of a proof must have one."""
    return rule_table(name, rules, ("pi", "-inf", "where", "sum", *STATEMENTS))


def _arguments(function: str) -> str:
    return ", ".join(f"${i}" for i in range(CALLS[function]))


# ---------------------------------------------------------------------------------------------------- text
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
        padded = stripped.rjust(1 - tens, "0")
        return f"{padded[:tens]}.{padded[tens:]}"
    return f"{stripped}e{tens}"


TEXT = Rendering[str](lambda value: (decimal_text(value), ATOM), lambda name: (name, ATOM), "($0)", table("text", {
    "pi": Rule(ATOM, (), "pi"),
    "-inf": Rule(ATOM, (), "-inf"),
    "+": Rule(SUM, (SUM, TERM), "$0 + $1"),
    "-": Rule(SUM, (SUM, TERM), "$0 - $1"),
    "*": Rule(TERM, (TERM, UNARY), "$0*$1"),
    "/": Rule(TERM, (TERM, UNARY), "$0/$1"),
    "neg": Rule(UNARY, (UNARY,), "-$0"),
    "**": Rule(POWER, (ATOM, UNARY), "$0**$1"),
    **{f: Rule(ATOM, (), f"{f}({_arguments(f)})") for f in CALLS},
    "where": Rule(ATOM, (), lambda n, _: f"where($0 {n.value} $1, $2, $3)"),
    "sum": Rule(ATOM, (), lambda n, _: f"sum($0, {n.value}, $1, $2)"),
    **{sign: Rule(RELATION, (RELATION, SUM), f"$0 {sign} $1") for sign in RELATIONS},
    "apply": Rule(ATOM, (), lambda n, _: f"{n.value}($0)"),
    "order": Rule(ATOM, (), "O($0)"),
    "...": Rule(ATOM, (), "..."),
}))  # fmt: skip

# ---------------------------------------------------------------------------------------------------- LaTeX
_GREEK = dict(zip(
    ("alpha", "beta", "gamma", "delta", "theta", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau", "omega"),
    "αβγδθκλμνρστω", strict=True,
))  # fmt: skip
_SPECIAL = {
    **{c: "\\" + c for c in "&%$#_{}"}, "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_LATEX_SIGNS = {"=": "=", "!=": r"\ne", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge", "->": r"\to"}
_LATEX_CALLS = {
    **{f: rf"\operatorname{{{f}}}" for f in DERIVED},
    **{f: rf"\{f}" for f in ("exp", "sin", "cos", "min", "max", "tanh", "cosh", "sinh", "tan")},
    "log": r"\ln", "log2": r"\log_{2}", "log10": r"\log_{10}",
}  # fmt: skip


def escape(words: str) -> str:
    """Plain words for LaTeX."""
    return "".join(_SPECIAL.get(c, c) for c in words)


def _split_name(name: str) -> tuple[str, str]:
    """A parameter's name as a stem and an index: a1 is a with index 1, k_max is k with index max."""
    stem, _, index = name.partition("_")
    if not index and name.rstrip("0123456789") not in ("", name):
        stem = name.rstrip("0123456789")
        index = name[len(stem) :]
    return stem, index.replace("_", ",")


def _latex_name(name: object) -> str:
    stem, index = _split_name(str(name))
    letter = rf"\{stem}" if stem in _GREEK else stem if len(stem) == 1 else rf"\mathrm{{{escape(stem)}}}"
    return f"{letter}_{{{escape(index)}}}" if index else letter


def _latex_number(value: Fraction) -> tuple[str, int]:
    digits, _, tens = decimal_text(value).partition("e")
    return (rf"{digits} \cdot 10^{{{tens}}}", TERM) if tens else (digits, ATOM)


LATEX = Rendering[str](_latex_number, lambda name: (_latex_name(name), ATOM), r"\left($0\right)", table("LaTeX", {
    "pi": Rule(ATOM, (), r"\pi"),
    "-inf": Rule(ATOM, (), r"-\infty"),
    "+": Rule(SUM, (SUM, TERM), "$0 + $1"),
    "-": Rule(SUM, (SUM, TERM), "$0 - $1"),
    "*": Rule(TERM, (SIGNED, POWER), lambda _, p: r"$0 \cdot $1" if p[1][:1].isdigit() else r"$0 \, $1"),
    "/": Rule(POWER, (), r"\frac{$0}{$1}"),
    "neg": Rule(SIGNED, (TERM,), "-$0"),
    "**": Rule(POWER, (ATOM,), "{$0}^{$1}"),
    **{f: Rule(ATOM, (), rf"{shown}\left({_arguments(f)}\right)") for f, shown in _LATEX_CALLS.items()},
    "sqrt": Rule(ATOM, (), r"\sqrt{$0}"),
    "abs": Rule(ATOM, (), r"\left|$0\right|"),
    "floor": Rule(ATOM, (), r"\left\lfloor $0\right\rfloor"),
    "where": Rule(ATOM, (), lambda n, _: (
        rf"\begin{{cases}} $2, & $0 {_LATEX_SIGNS[str(n.value)]} $1 \\ $3, & \text{{otherwise}} \end{{cases}}")),
    "sum": Rule(OPEN, (TERM,), lambda n, _: rf"\sum_{{{_latex_name(n.value)}=$1}}^{{$2}} $0"),
    **{sign: Rule(RELATION, (RELATION, OPEN), f"$0 {shown} $1") for sign, shown in _LATEX_SIGNS.items()},
    "apply": Rule(ATOM, (), lambda n, _: f"{_latex_name(n.value)}($0)"),
    "order": Rule(ATOM, (), r"O\!\left($0\right)"),
    "...": Rule(ATOM, (), r"\cdots"),
}))  # fmt: skip

# ---------------------------------------------------------------------------------------------------- MathML
_TINY = Fraction(1, 1000)  # below it, a number is written with a power of ten
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "->": "→", "-": "−"}


def _sign(sign: object) -> Element:
    return ["mo", _SIGNS.get(str(sign), str(sign))]


def _between(left: str, inside: Element | int, right: str) -> Element:
    return ["mrow", ["mo", left], inside, ["mo", right]]


def _infix(sign: str) -> Element:
    return ["mrow", 0, _sign(sign), 1]


def _mathml_name(name: object) -> Element:
    stem, index = _split_name(str(name))
    letter = ["mi", _GREEK.get(stem, stem)]
    return ["msub", letter, ["mi", index]] if index else letter


def _mathml_number(value: Fraction) -> tuple[Element, int]:
    digits, _, tens = decimal_text(value).partition("e")
    if not tens and 0 < value < _TINY:
        shift = len(digits) - len(digits[2:].lstrip("0")) - 1  # 0.00012: four places
        digits, tens = decimal_text(value * 10**shift), f"-{shift}"
    if not tens:
        return ["mn", digits], ATOM
    return ["mrow", ["mn", digits], _sign("·"), ["msup", ["mn", "10"], ["mn", tens.replace("-", "−")]]], TERM


def _mathml_product(n: Node, parts: list[Element]) -> Element:
    right = parts[1][2] if parts[1][1] == ["mo", "("] else parts[1]
    apart = _begins_with_digit(right) or any(a.op == "name" and len(str(a.value)) > 1 for a in n.args)
    return _infix("·" if apart else "\u2062")


def _begins_with_digit(element: Element) -> bool:
    first = element[1] if element[0] != "msqrt" else ""
    return first[:1].isdigit() if isinstance(first, str) else _begins_with_digit(first)


def _mathml_call(function: str) -> Element:
    name = "ln" if function == "log" else function
    arguments = [0] if CALLS[function] == 1 else [0, ["mo", ","], 1]
    return ["mrow", ["mi", name], ["mo", "\u2061"], _between("(", ["mrow", *arguments], ")")]


def _mathml_where(n: Node, _: list[Element]) -> Element:
    test = ["mrow", 0, _sign(n.value), 1]
    rows = (["mtr", ["mtd", 2], ["mtd", test]], ["mtr", ["mtd", 3], ["mtd", ["mtext", "otherwise"]]])
    return ["mrow", ["mo", "{"], ["mtable", *rows]]


def _mathml_sum(n: Node, _: list[Element]) -> Element:
    below = ["mrow", _mathml_name(n.value), _sign("="), 1]
    return ["mrow", ["munderover", ["mo", "∑"], below, 2], 0]


MATHML = Rendering[Element](
    _mathml_number, lambda name: (_mathml_name(name), ATOM), _between("(", 0, ")"), table("MathML", {
        "pi": Rule(ATOM, (), ["mi", "π"]),
        "-inf": Rule(ATOM, (), ["mrow", _sign("-"), ["mi", "∞"]]),
        "+": Rule(SUM, (SUM, TERM), _infix("+")),
        "-": Rule(SUM, (SUM, TERM), _infix("-")),
        "*": Rule(TERM, (SIGNED, POWER), _mathml_product),
        "/": Rule(POWER, (), ["mfrac", 0, 1]),
        "neg": Rule(SIGNED, (TERM,), ["mrow", _sign("-"), 0]),
        "**": Rule(POWER, (ATOM,), ["msup", 0, 1]),
        **{f: Rule(POWER, (), _mathml_call(f)) for f in CALLS},
        "sqrt": Rule(ATOM, (), ["msqrt", 0]),
        "abs": Rule(ATOM, (), _between("|", 0, "|")),
        "floor": Rule(ATOM, (), _between("⌊", 0, "⌋")),
        "where": Rule(ATOM, (), _mathml_where),
        "sum": Rule(SUM, (TERM,), _mathml_sum),
        **{sign: Rule(RELATION, (RELATION, OPEN), _infix(sign)) for sign in RELATIONS},
        "apply": Rule(ATOM, (), lambda n, _: ["mrow", _mathml_name(n.value), _between("(", ["mrow", 0], ")")]),
        "order": Rule(ATOM, (), ["mrow", ["mi", "O"], _between("(", 0, ")")]),
        "...": Rule(ATOM, (), ["mo", "⋯"]),
    }))  # fmt: skip


def markup(element: Element | str) -> str:
    """An element as the text of a page, with everything in it escaped."""
    if isinstance(element, str):
        return html.escape(element)
    name, *children = element
    return f"<{name}>{''.join(markup(c) for c in children)}</{name}>"


def _pieces(node: Node) -> list[Element]:
    """The expression in pieces between which a line may end: the sides of a relation, and its sign."""
    if node.op not in RELATIONS:
        return [["mrow", MATHML.write(node)]]
    left, right = node.args
    return [*_pieces(left), ["mrow", _sign(node.op)], *_pieces(right)]


# ---------------------------------------------------------------------------------------------------- sentences
@dataclass(frozen=True, repr=False)
class Sentence:
    """Words and expressions, in the order in which they are read; they are spelt at the edge."""

    parts: tuple[str | Node, ...]

    def __str__(self) -> str:
        return "".join(p if isinstance(p, str) else TEXT.write(p) for p in self.parts)

    def __repr__(self) -> str:
        return f"Sentence({str(self)!r})"

    def latex(self) -> str:
        """The sentence in LaTeX: words escaped, mathematics between dollar signs."""
        return "".join(escape(p) if isinstance(p, str) else f"${LATEX.write(p)}$" for p in self.parts)

    def mathml(self) -> list[dict[str, str | Element]]:
        """The sentence in pieces for a page: {"words": text} and {"math": element}; a line may end after each."""
        out: list[dict[str, str | Element]] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append({"words": part.replace(">=", "≥").replace("<=", "≤")})
            else:
                out += [{"math": element} for element in _pieces(part)]
        return out

    def html(self) -> str:
        """The sentence as markup."""
        return "".join(
            markup(p["words"]) if "words" in p else f"<math>{markup(p['math'])}</math>" for p in self.mathml()
        )


def say(*parts: str | Node | Sentence) -> Sentence:
    """A sentence from words, expressions and other sentences."""
    flat: list[str | Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Sentence) else (part,):
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            elif piece != "":
                flat.append(piece)
    return Sentence(tuple(flat))


def join(sentences: Iterable[str | Node | Sentence], between: str) -> Sentence:
    """Sentences with the same words between them."""
    parts: list[str | Node | Sentence] = []
    for sentence in sentences:
        parts += [between, sentence] if parts else [sentence]
    return say(*parts)
