"""Certified sums of any convergent encoding: head, tail and B as enclosures.

    series("-2*log(t + 1)").B()         [1.64493406684823 +/- 3e-15]
    series("type1", parameters={"k": "1/16"}).tail(512)

A formula gets the best method that fits it: a closed form, Euler-Maclaurin with a closed integral, pieces, blocks of
a step function, and for everything else the general method. Every value is an Arb ball that contains the truth.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, ctx

from farfield import zoo
from farfield.formula import Formula, Node
from farfield.formula.functions import ROUGH
from farfield.theory.errors import DivergenceError, UndecidedError, ZeroWeightsError
from farfield.theory.exact.constants import exp
from farfield.theory.sums.branches import has_switch, pieces, ratio_at
from farfield.theory.sums.closed import Geometric, Series, closed
from farfield.theory.sums.eulermaclaurin import smooth
from farfield.theory.sums.evaluation import Weight
from farfield.theory.sums.panels import Far, General
from farfield.theory.sums.partial import Stretch, undefined
from farfield.theory.sums.shapes import shape, without_idle_floors
from farfield.theory.sums.steps import Blocks, step_of
from farfield.theory.verdict.biases import refuse_class
from farfield.zoo import bound_formula

Encoding = str | Formula | zoo.Encoding


def series(
    encoding: Encoding, *, start: int = 0, parameters: Mapping[str, Any] | None = None, width: int = zoo.WIDTH
) -> Series:
    """The certified series of an encoding; an error if it does not converge.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        start: the first distance that is summed.
        parameters: a value for each parameter that the encoding leaves open, such as {"k": "1/16"}.
        width: of one head, for encodings that depend on it.
    """
    if isinstance(start, bool) or not isinstance(start, int) or start < 0:
        raise ValueError(f"the start must be a whole number >= 0, not {str(start)[:40]}")
    bound = bound_formula(encoding, parameters, width=width)
    if bound.is_class:
        refuse_class(encoding, bound, "a sum")
    return _series(bound.primitive, start)


def far_bound(formula: Formula) -> Far:
    """The hook to the convergence proof: log X -> an upper bound of the sum over t >= X."""
    from farfield.theory.sums.far import FarTail

    return FarTail(formula)


def require_convergence(formula: Formula, start: int) -> None:
    """Raise the error that says why there is no sum, unless the series is proven to converge."""
    from farfield.theory.verdict import convergence

    verdict = convergence.check(formula, start=start).verdict
    if verdict == "diverges":
        raise DivergenceError("", formula.text())
    if verdict != "converges":
        raise UndecidedError(f"whether the weights of {formula.text()} have a finite sum could not be decided")


@lru_cache(maxsize=1024)
def _series(formula: Formula, start: int) -> Series:
    try:
        return _best(formula, start)
    except DivergenceError as error:
        raise DivergenceError(error.reason, formula.text()) from None


def _best(formula: Formula, start: int) -> Series:
    formula = replace(formula, node=without_idle_floors(formula.node))
    weight = Weight(formula)
    with ctx.workprec(64):
        first = weight(start)
    if not first.is_finite() or first < 0:
        raise ValueError(undefined(formula, start))
    if has_switch(formula.node):
        try:
            return Pieces(weight, start)
        except UndecidedError:
            require_convergence(formula, start)
            return _by_residues(weight, start) or General(weight, start, far_bound(formula))
    result = shape(formula)
    if result is not None:
        chosen = closed(weight, result, start) or smooth(weight, result, start)
        if chosen is not None:
            return chosen
    require_convergence(formula, start)
    inner = step_of(formula)
    if inner is not None:
        try:
            return Blocks(weight, start, inner, far_bound(formula))
        except UndecidedError:
            pass
    return _by_residues(weight, start) or General(weight, start, far_bound(formula))


def _by_residues(weight: Weight, start: int) -> Series | None:
    """The sum over residue classes in which what repeats stands still, if there are such and each has a sum."""
    from farfield.theory.verdict.classes import modulus

    m = modulus(weight.formula)
    try:
        return Residues(weight, start, m) if m > 1 else None
    except UndecidedError:
        return None


class Residues(Series):
    """Distances t = m*n + r: for each r a series in n of its own."""

    method = "residue classes"

    def __init__(self, weight: Weight, start: int, modulus: int):
        from farfield.theory.verdict.classes import classes

        super().__init__(weight, start)
        self.modulus = modulus
        each = enumerate(classes(weight.formula, modulus))
        self.parts = [None if _is_zero(one) else _series(one, max(0, self._first(r, start))) for r, one in each]
        if not any(self.parts):
            raise ZeroWeightsError(weight.formula.text())

    @property
    def rough(self) -> bool:  # type: ignore[override]
        return any(part is not None and part.rough for part in self.parts)

    def _first(self, r: int, j: int) -> int:
        """The smallest n with modulus*n + r >= j."""
        return -((r - j) // self.modulus)

    def term(self, j: int) -> Any:
        """b(j) by its class, where nothing jumps."""
        part = self.parts[j % self.modulus]
        return arb(0) if part is None else part.term(j // self.modulus)

    def _tail(self, j: int) -> Any:
        return sum((p.tail(max(0, self._first(r, j))) for r, p in enumerate(self.parts) if p is not None), arb(0))


def _is_zero(formula: Formula) -> bool:
    """Whether all weights of a class are shown to be 0."""
    if has_switch(formula.node):
        try:
            _series(formula, 0)
        except ZeroWeightsError:
            return True
        except (DivergenceError, UndecidedError):
            pass
        return False
    if not formula.weight or any(n.op in ROUGH and "t" in n.free() for n in formula.node.walk()):
        return False
    from farfield.theory.verdict.reader import vanishes

    return vanishes(formula)


class Pieces(Series):
    """A formula in pieces: finite stretches, then the series of the last piece."""

    method = "pieces"

    def __init__(self, weight: Weight, start: int):
        super().__init__(weight, start)
        result = pieces(weight.formula, start)
        self.stretches = [Stretch(p.formula, p.first, p.last) for p in result if p.formula and p.last is not None]
        end = result[-1]
        self.last = None if end.formula is None else _series(end.formula, end.first)
        if self.last is None and not self.stretches:
            raise ZeroWeightsError(weight.formula.text())

    @property
    def rough(self) -> bool:  # type: ignore[override]
        return self.last is not None and self.last.rough

    @property
    def end(self) -> float:
        """The distance from which on all weights are 0: infinity if there is none, nan if it could not be told."""
        if self.last is not None:
            return math.inf
        end = max(s.last for s in self.stretches)
        return end if self.term(end - 1) > 0 else math.nan

    def term(self, j: int) -> Any:
        """b(j) by the piece that holds there: at the edge a ball around t could not tell the branches apart."""
        if self.last is not None and j >= self.last.start:
            return self.last.term(j)
        return sum((s.weight(j) for s in self.stretches if s.first <= j < s.last), arb(0))

    def _tail(self, j: int) -> Any:
        total = sum((s.from_(j) for s in self.stretches if s.last > j), arb(0))
        return total if self.last is None else total + self.last.tail(j)

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        here, whole = self._exact(j), self._exact(0)
        return None if here is None or whole is None else here == epsilon * whole

    def _exact(self, j: int) -> Fraction | None:
        """The tail in units of the first weight, as a rational number if it is one."""
        if not self.stretches:
            return None
        unit = self.stretches[0].unit()
        total = exact_tail(self.last, j, unit) if self.last is not None else Fraction(0)
        for stretch in self.stretches:
            part = stretch.exact(j, unit)
            if total is None or part is None:
                return None
            total += part
        return total


def exact_tail(s: Series, j: int, unit: Node) -> Fraction | None:
    """The tail of a geometric series in units of one weight, as a rational number if it is one."""
    if not isinstance(s, Geometric):
        return None
    first, ratio = ratio_at(s.formula, max(j, s.start), unit), exp(-s.k).rational
    return None if ratio is None or first is None else first / (1 - ratio)


def sum_json(s: Series, digits: int = 20) -> dict[str, str]:
    """B as the middle and the radius of an enclosure, for a program; the radius is rounded up."""
    with ctx.workprec(max(128, 4 * digits + 32)):
        total = s.B()
        middle = total.str(digits, radius=False)
        radius = (total - arb(middle)).abs_upper() * arb("1.001")
        return {"mid": middle, "rad": "0" if radius.is_zero() else (radius * arb("1.01")).upper().str(3, radius=False)}


__all__ = ["DivergenceError", "Series", "UndecidedError", "series", "sum_json"]
