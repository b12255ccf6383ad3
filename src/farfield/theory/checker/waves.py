"""Trigonometric polynomials with linear phases, and their mean value over the whole numbers.

cos(w t + p) has the mean cos(p) over the integers if w is a multiple of 2 pi, and otherwise 0; then its partial sums
are bounded. No algebraic number but 0 is a multiple of pi, because pi is transcendental.
"""

from __future__ import annotations

from flint import fmpq

from farfield.formula import Node, index_range, number
from farfield.formula.tree import substitute
from farfield.theory.checker.evaluation import Evaluator
from farfield.theory.checker.expansions import Calculus
from farfield.theory.checker.monomials import UNIT, Domain, T, exponentials
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import MINUS, ONE, ZERO, Constant, rational, sign

MAX_WAVES = 400
Waves = dict[tuple[Constant, Constant], Constant]  # (w, p) -> amplitude of cos(w t + p)


def polynomial(node: Node) -> Waves:
    """A trigonometric polynomial as a sum of waves; UnknownError if it is none."""
    return _waves(node, Evaluator(Calculus(Domain(exponentials(3, 0), None), 2, 8)))


def mean_value(node: Node) -> Constant:
    """The mean over the integers of a trigonometric polynomial, exactly; UnknownError if it is none."""
    total = ZERO
    for (frequency, phase), amplitude in polynomial(node).items():
        if _is_full_turn(frequency):
            total = total + amplitude * constants.cos(phase)
    return total


def _is_full_turn(frequency: Constant) -> bool:
    """Whether a frequency is a multiple of 2 pi."""
    if sign(frequency) == 0:
        return True
    turns = (frequency * constants.inverse(constants.pi() * rational(2))).rational
    if turns is not None:
        return bool(turns.q == 1)
    if all(a.algebraic for product in frequency.terms for a, _ in product):
        return False
    raise UnknownError("a frequency that may be a multiple of 2 pi")


def _waves(node: Node, evaluator: Evaluator) -> Waves:
    if "t" not in node.free():
        f = evaluator.value(node)
        return {(ZERO, ZERO): _exact(f[0][1])} if f else {}
    if node.op in ("sin", "cos"):
        frequency = phase = ZERO
        for m, c in evaluator.value(node.args[0]):
            if m == T:
                frequency = _exact(c)
            elif m == UNIT:
                phase = _exact(c)
            else:
                raise UnknownError("a wave whose phase is not linear in t")
        return {(frequency, phase - constants.pi() * rational(fmpq(1, 2)) if node.op == "sin" else phase): ONE}
    if node.op in ("+", "-"):
        left, right = (_waves(a, evaluator) for a in node.args)
        return _added(left, right if node.op == "+" else _product(right, {(ZERO, ZERO): MINUS}))
    if node.op == "sum":
        total: Waves = {}
        for j in index_range(node) or ():
            total = _added(total, _waves(substitute(node.args[0], {str(node.value): number(j)}), evaluator))
        return total
    if node.op == "neg":
        return _product(_waves(node.args[0], evaluator), {(ZERO, ZERO): MINUS})
    if node.op == "*":
        return _product(*(_waves(a, evaluator) for a in node.args))
    if node.op == "/" and "t" not in node.args[1].free():
        by = _waves(node.args[1], evaluator).get((ZERO, ZERO), ZERO)
        return _product(_waves(node.args[0], evaluator), {(ZERO, ZERO): constants.inverse(by)})
    if node.op == "**" and "t" not in node.args[1].free():
        e = _waves(node.args[1], evaluator).get((ZERO, ZERO), ZERO).rational
        if e is not None and e.q == 1 and 1 <= e <= 16:
            base = power = _waves(node.args[0], evaluator)
            for _ in range(int(e.p) - 1):
                power = _product(power, base)
            return power
    raise UnknownError("a factor that is no trigonometric polynomial")


def _exact(c: object) -> Constant:
    if not isinstance(c, Constant):
        raise UnknownError("a constant that is not known exactly")
    return c


def _added(a: Waves, b: Waves) -> Waves:
    total = dict(a)
    for key, amplitude in b.items():
        total[key] = total.get(key, ZERO) + amplitude
    if len(total) > MAX_WAVES:
        raise UnknownError("a trigonometric polynomial with too many terms")
    return {key: amplitude for key, amplitude in total.items() if amplitude.terms}


def _product(a: Waves, b: Waves) -> Waves:
    """cos x cos y = (cos(x - y) + cos(x + y)) / 2."""
    total: Waves = {}
    half = rational(fmpq(1, 2))
    for (w, p), c in a.items():
        for (v, q), d in b.items():
            for key in ((w - v, p - q), (w + v, p + q)):
                total = _added(total, {key: c * d * half})
    return total
