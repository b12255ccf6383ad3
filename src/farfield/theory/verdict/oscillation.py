"""Weights that touch zero again and again: a trigonometric factor times something that is decided without it.

b(t) = |p(t)|**e * h(t), p a trigonometric polynomial. Above, |p| <= the sum of its amplitudes. Below,
|p|**e >= p**(2m) / max|p|**(2m - e) with 2m >= e, and q = p**(2m) has a mean over the integers that can be computed
exactly: a wave of frequency w averages to 0 unless w is a multiple of 2 pi. If the mean is positive and s(t) decreases
slowly enough that sum of s(t) diverges, then so does the sum of q(t)*s(t) (Dirichlet's test for q - mean).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from farfield.formula import Formula, Node, build, number
from farfield.formula.algebras import exact_value
from farfield.formula.functions import WAVES, reading
from farfield.theory.budget import Work
from farfield.theory.errors import UndecidedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import PI, ZERO, Const, rational
from farfield.theory.verdict.engines import Asymptotic
from farfield.theory.verdict.monomials import UNIT, ell
from farfield.theory.verdict.reader import Reader
from farfield.theory.verdict.regions import Region

Waves = dict[tuple[Const, Const], Const]  # (frequency, phase) -> amplitude of cos(frequency * t + phase)
MAX_WAVES = 400


@dataclass(frozen=True)
class Factored:
    """b(t) = product of p_i**e_i times `rest`; each p_i comes with whether it stands inside abs."""

    waves: tuple[tuple[Node, Fraction, bool], ...]
    rest: Formula


def factor(formula: Formula) -> Factored | None:
    """Split off the trigonometric factors of a weight, or None if there are none."""
    waves: list[tuple[Node, Fraction, bool]] = []
    rest: list[tuple[Node, Fraction]] = []

    def visit(node: Node, e: Fraction, absolute: bool = False) -> None:
        """node ** e as a factor of the weight."""
        if node.op in ("*", "/"):
            visit(node.args[0], e, absolute)
            visit(node.args[1], e if node.op == "*" else -e, absolute)
        elif node.op == "abs":
            visit(node.args[0], e, True)
        elif node.op == "sqrt":
            visit(node.args[0], e / 2, absolute)
        elif node.op == "**" and (power := exact_value(node.args[1], {})) is not None:
            visit(node.args[0], e * power, absolute or power % 2 == 0)
        elif node.op == "exp":
            visit_log(node.args[0], e)
        elif e > 0 and any(n.op in WAVES and "t" in n.free() for n in node.walk()):
            waves.append((node, e, absolute))
        else:
            rest.append((Node("abs", (node,)) if absolute else node, e))

    def visit_log(node: Node, e: Fraction) -> None:
        """exp(e * node) as a factor of the weight."""
        if node.op in ("+", "-"):
            visit_log(node.args[0], e)
            visit_log(node.args[1], e if node.op == "+" else -e)
        elif node.op == "neg":
            visit_log(node.args[0], -e)
        elif node.op == "log":
            visit(node.args[0], e)
        elif node.op == "*" and (scale := exact_value(node.args[0], {})) is not None:
            visit_log(node.args[1], e * scale)
        else:
            rest.append((Node("exp", (node,)), e))

    visit(formula.node if formula.weight else Node("exp", (formula.node,)), Fraction(1))
    if not waves:
        return None
    product = build.product([build.power(node, build.fraction(e)) for node, e in rest])
    return Factored(tuple(waves), Formula(product, weight=True))


def polynomial(node: Node) -> Waves:
    """A trigonometric polynomial with linear phases as a sum of waves; UndecidedError if it is none."""
    return _read(Reader(Asymptotic(Region(), 3, Work(1))), node)


def _read(reader: Reader, node: Node) -> Waves:
    if "t" not in node.free():
        return {(ZERO, ZERO): reader.constant(node)}
    return _none(reader, node) if node.op == "name" else _RULES[node.op](reader, node)


def _none(reader: Reader, node: Node) -> Waves:
    raise UndecidedError("an oscillating factor that is no trigonometric polynomial")


Rule = Callable[[Reader, Node], Waves]


def _plus(sign: int) -> Rule:
    def rule(reader: Reader, node: Node) -> Waves:
        left, right = (_read(reader, a) for a in node.args)
        return _add(left, _scaled(right, rational(sign)))

    return rule


def _quotient(reader: Reader, node: Node) -> Waves:
    top, bottom = node.args
    if "t" in bottom.free():
        return _none(reader, node)
    return _scaled(_read(reader, top), constants.power(reader.constant(bottom), Fraction(-1)))


def _power(reader: Reader, node: Node) -> Waves:
    power = exact_value(node.args[1], {})
    if power is None or power.denominator != 1 or not 0 < power <= 8:
        return _none(reader, node)
    return functools.reduce(multiply, [_read(reader, node.args[0])] * int(power))


def _sum(reader: Reader, node: Node) -> Waves:
    total: Waves = {}
    for j in reader.indices_of(node):
        total = _add(total, reader.at_index(node, rational(j), lambda body: _read(reader, body)))
    return total


def _wave(shift: Const) -> Rule:
    def rule(reader: Reader, node: Node) -> Waves:
        frequency, phase = linear_phase(reader, node.args[0])
        return {(frequency, phase + shift): rational(1)}

    return rule


_RULES: dict[str, Rule] = reading("trigonometric polynomials", {
    "+": _plus(1),
    "-": _plus(-1),
    "neg": lambda reader, node: _scaled(_read(reader, node.args[0]), rational(-1)),
    "*": lambda reader, node: multiply(*(_read(reader, a) for a in node.args)),
    "/": _quotient,
    "**": _power,
    "sum": _sum,
    "cos": _wave(ZERO),
    "sin": _wave(PI * rational(Fraction(-1, 2))),
    **dict.fromkeys(("exp", "log", "sqrt", "abs", "floor", "min", "max", "atan", "erf", "gamma", "where"), _none),
}, ("where", "sum"))  # fmt: skip


def linear_phase(reader: Reader, node: Node) -> tuple[Const, Const]:
    """(w, c) with node = w*t + c."""
    s = reader.expand(node)
    frequency = phase = ZERO
    for m, c in s.terms:
        if m == ell(0):
            frequency = c
        elif m == UNIT:
            phase = c
        else:
            raise UndecidedError("a wave whose phase is not linear in t")
    if s.rest is not None:
        raise UndecidedError("a wave whose phase is not linear in t")
    return frequency, phase


def _scaled(a: Waves, c: Const) -> Waves:
    return {key: amplitude * c for key, amplitude in a.items()}


def _add(a: Waves, b: Waves) -> Waves:
    total = dict(a)
    for key, amplitude in b.items():
        total[key] = total.get(key, ZERO) + amplitude
    if len(total) > MAX_WAVES:
        raise UndecidedError("a trigonometric polynomial with too many terms")
    return {k: v for k, v in total.items() if v.terms}


def multiply(a: Waves, b: Waves) -> Waves:
    """cos x cos y = (cos(x - y) + cos(x + y)) / 2."""
    total: Waves = {}
    half = rational(Fraction(1, 2))
    for (w1, p1), c1 in a.items():
        for (w2, p2), c2 in b.items():
            for w, p in ((w1 - w2, p1 - p2), (w1 + w2, p1 + p2)):
                total = _add(total, {(w, p): c1 * c2 * half})
    return total


def mean(waves: Waves) -> Const:
    """The mean over the integers, exactly."""
    total = ZERO
    for (frequency, phase), amplitude in waves.items():
        if _is_full_turn(frequency):
            total = total + amplitude * constants.trigonometric("cos", phase)
    return total


def _is_full_turn(frequency: Const) -> bool:
    """Whether a frequency is a multiple of 2 pi; pi is transcendental, so no algebraic number but 0 is one."""
    if not frequency.terms or signs.sign(frequency) == 0:
        return True
    turns = (frequency / (PI * rational(2))).rational
    if turns is not None:
        return turns.denominator == 1
    if all(signs.is_algebraic(a) for m in frequency.terms for a, _ in m):
        return False
    raise UndecidedError("a frequency that may be a multiple of 2 pi")


def size(waves: Waves) -> Const:
    """The sum of the amplitudes: an upper bound of |p|."""
    total = ZERO
    for amplitude in waves.values():
        total = total + (amplitude if signs.sign(amplitude) >= 0 else -amplitude)
    return total


def never_negative(waves: Waves) -> bool:
    """Whether the constant part outweighs all waves."""
    still = sum((a for (w, p), a in waves.items() if not w.terms and not p.terms), ZERO)
    moving = size({k: a for k, a in waves.items() if k[0].terms or k[1].terms})
    return signs.sign(still - moving) >= 0


def even_power(node: Node, e: Fraction) -> tuple[Node, int]:
    """(p**(2m), 2m) with 2m >= e."""
    twice = 2 * max(1, math.ceil(e / 2))
    return Node("**", (node, number(twice))), twice
