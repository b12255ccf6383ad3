"""The parameters of an encoding as the page's sliders see them: value, where it comes from, and range."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

from farfield.formula import Formula, FormulaError
from farfield.theory.verdict.convergence import check
from farfield.zoo import Encoding, Fixed, Learned, Parameter, PerHead, Value, number
from farfield.zoo.learned import learned_rule


@dataclass(frozen=True)
class Slider:
    """One parameter: the exact text of its value, and the slider that moves it."""

    name: str
    text: str
    number: float
    origin: str  # in words: who gave the value
    given: bool
    domain: str
    least: float
    most: float
    step: int  # 0: any number; otherwise whole numbers in these steps
    logarithmic: bool
    value: str = ""  # with which sums and curves are computed: the middle of a range that is learned
    learned: bool = False


def sliders(encoding: Encoding, given: dict[str, str], heads: int, head: int) -> list[Slider]:
    """A slider for each parameter of the formula, in the order of their appearance."""
    formula = encoding.formula
    if formula is None:
        return []
    ranges = {name: learned_rule(name, text) for name, text in given.items() if ":" in text}
    values = {name: _middle(ranges[name]) if name in ranges else text for name, text in given.items()}
    formula.bind(values)  # refuses a name that it does not have, and a value that is none
    rules = encoding.heads(heads)[head - 1]
    known = {p.name: p for p in encoding.parameters}
    made = [
        _slider(formula, name, known.get(name), rules.get(name), values.get(name), head) for name in formula.parameters
    ]
    return [
        replace(s, value=s.text) if s.name not in ranges else _learned(s, given[s.name], ranges[s.name]) for s in made
    ]


def _learned(s: Slider, text: str, rule: Learned) -> Slider:
    origin = f"{rule.text.removeprefix('learned, ')}; here the middle"
    return replace(s, value=s.text, text=text, learned=True, origin=origin)


def learned_sentence(encoding: Encoding, moved: tuple[Slider, ...], start: int) -> str | None:
    """What is proven of the ranges to be learned: the condition, and the verdict at their ends; None without any."""
    open_ = {s.name: learned_rule(s.name, s.text) for s in moved if s.learned}
    if not open_ or encoding.formula is None:
        return None
    family = encoding.formula.bind({s.name: s.value for s in moved if not s.learned})
    whole = check(family, start=start)
    said = f"learned, with {', '.join(open_)} open: {whole.condition or whole.verdict}"
    if len(open_) > 2:
        return said
    ends = []
    for corner in itertools.product(*(dict.fromkeys(rule.start) for rule in open_.values())):
        values = {name: str(Fraction(str(value))) for name, value in zip(open_, corner, strict=True)}
        try:
            verdict = check(family, start=start, parameters=values).verdict
        except FormulaError:
            verdict = "has no value"
        ends.append(f"{', '.join(f'{name} = {value:g}' for name, value in zip(open_, corner, strict=True))} {verdict}")
    return f"{said}; where heads may start: {'; '.join(ends)}"


def _middle(rule: Learned) -> str:
    return str(Fraction(str(rule.start[0])) / 2 + Fraction(str(rule.start[1])) / 2)


def _slider(
    formula: Formula, name: str, known: Parameter | None, rule: Value | None, given: str | None, head: int
) -> Slider:
    usual, origin = _usual(known, rule, head)
    text = usual if given is None else given
    value, normal = number(text), number(usual)
    whole = _steps(formula, name, usual)
    domain = known.domain if known is not None else ""
    kind = known.given if known is not None else None
    least, most, logarithmic = normal / 1000, normal * 1000, True
    if isinstance(kind, Learned):
        least, most = (-10.0, 10.0) if kind.start == (0, 0) else (kind.least or 0.0, kind.most or 2 * kind.start[1])
        logarithmic = False
    elif whole:
        least, most = float(whole), 512.0 if whole == 2 else 65_536.0
    if not 0 < least < most:
        least, most, logarithmic = min(-10.0, -2 * abs(normal)), max(10.0, 2 * abs(normal)), False
    if value <= 0 and logarithmic:
        least, most, logarithmic = min(-10.0, 2 * value), max(10.0, -2 * value), False
    return Slider(
        name, text, value, "set here" if given is not None else origin, given is not None, domain,
        min(least, value), max(most, value), whole, logarithmic,
    )  # fmt: skip


def _usual(known: Parameter | None, rule: Value | None, head: int) -> tuple[str, str]:
    """The value where nobody sets one, and where it comes from."""
    kind = known.given if known is not None else None
    if rule is not None:
        if isinstance(kind, Fixed):
            return str(rule), kind.text
        return str(rule), f"{kind.text if isinstance(kind, PerHead) else 'ALiBi slope'} of head {head}"
    if isinstance(kind, Learned):
        return _middle(kind), f"{kind.text}; here the middle"
    return (kind.example if isinstance(kind, Fixed) and kind.example else "1"), "an example"


def _steps(formula: Formula, name: str, usual: str) -> int:
    """0 if the parameter may be any number; otherwise the step between the whole numbers that make a difference."""
    for n in formula.node.walk():
        if n.op == "sum" and name in (n.args[1].free() | n.args[2].free()):
            try:
                formula.bind({name: str(Fraction(usual) + 1)})
            except (FormulaError, ValueError):
                return 2
            return 1
        if n.op == "where" and name in (n.args[0].free() | n.args[1].free()):
            return 1
    return 0
