"""Certified sums of any convergent encoding: head, tail and B as enclosures.

    series("-2*log(t + 1)").B()         [1.64493406684823 +/- 3e-15]
    series("type1", parameters={"k": "1/16"}).tail(512)

A formula gets the best method that fits it: a closed form, Euler-Maclaurin with a closed integral, pieces, blocks of
a step function, and for everything else the general method. Every value is an Arb ball that contains the truth.
"""

from __future__ import annotations

import contextlib
import math
from functools import lru_cache

from flint import arb, ctx

from farfield import zoo
from farfield.formula import Formula
from farfield.formula.functions import ROUGH
from farfield.theory.checker.families import far
from farfield.theory.errors import DivergenceError, UndecidedError, ZeroWeightsError
from farfield.theory.sums.branches import Blocks, pieces, step_of
from farfield.theory.sums.closed import Series, closed
from farfield.theory.sums.eulermaclaurin import smooth
from farfield.theory.sums.far import FarTail
from farfield.theory.sums.panels import General
from farfield.theory.sums.partial import Stretch, Stretches, undefined
from farfield.theory.sums.shapes import has_switch, shape, without_idle_floors
from farfield.theory.sums.weight import Weight
from farfield.theory.verdict import convergence
from farfield.theory.verdict.splits import modulus, residue_classes
from farfield.zoo import bound_formula

Encoding = str | Formula | zoo.Encoding


def series(
    encoding: Encoding, *, start: int = 0, parameters: zoo.Parameters | None = None, width: int = zoo.WIDTH
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
    bound.require_one_bias("a sum")
    return _series(bound.primitive, start)


def require_convergence(formula: Formula, start: int) -> None:
    """Raise the error that says why there is no sum, unless the series is proven to converge."""
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
    formula = formula.with_node(without_idle_floors(formula.node))
    weight = Weight(formula)
    with ctx.workprec(64):
        first = weight(start)
    if not first.is_finite() or first < 0:
        raise ValueError(undefined(formula, start))
    if has_switch(formula.node):
        with contextlib.suppress(UndecidedError):
            return Pieces(weight, start)
    elif (form := shape(formula)) is not None:
        chosen = closed(weight, form, start) or smooth(weight, form, start)
        if chosen is not None:
            return chosen
    require_convergence(formula, start)
    inner = None if has_switch(formula.node) else step_of(formula)
    if inner is not None:
        with contextlib.suppress(UndecidedError):
            return Blocks(weight, start, inner, FarTail(formula))
    return _by_residues(weight, start) or General(weight, start, FarTail(formula))


def _by_residues(weight: Weight, start: int) -> Series | None:
    """The sum over residue classes in which what repeats stands still, if there are such and each has a sum."""
    m = modulus(weight.formula)
    with contextlib.suppress(UndecidedError):
        return Residues(weight, start, m) if m > 1 else None
    return None


class Residues(Series):
    """Distances t = m*n + r: for each r a series in n of its own."""

    method = "residue classes"

    def __init__(self, weight: Weight, start: int, modulus: int):
        super().__init__(weight, start)
        self.modulus = modulus
        each = enumerate(residue_classes(weight.formula, modulus))
        self.parts = [None if _is_zero(one) else _series(one, max(0, self._first(r, start))) for r, one in each]
        if not any(self.parts):
            raise ZeroWeightsError(weight.formula.text())

    @property
    def rough(self) -> bool:  # type: ignore[override]
        return any(part is not None and part.rough for part in self.parts)

    def _first(self, r: int, j: int) -> int:
        """The smallest n with modulus*n + r >= j."""
        return -((r - j) // self.modulus)

    def term(self, j: int) -> arb:
        """b(j) by its class, where nothing jumps."""
        part = self.parts[j % self.modulus]
        return arb(0) if part is None else part.term(j // self.modulus)

    def _tail(self, j: int) -> arb:
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
    elif formula.weight and not any(n.op in ROUGH and "t" in n.free() for n in formula.node.walk()):
        with contextlib.suppress(UndecidedError):
            return far(lambda evaluator: evaluator.value(formula.node)) == ()
    return False


class Pieces(Stretches):
    """A formula in pieces: finite stretches, then the series of the last piece."""

    method = "pieces"

    def __init__(self, weight: Weight, start: int):
        super().__init__(weight, start)
        cut = pieces(weight.formula, start)
        self.stretches = [Stretch(p.formula, p.first, p.last) for p in cut if p.formula and p.last is not None]
        end = cut[-1]
        self.rest = None if end.formula is None else _series(end.formula, end.first)
        if self.rest is None and not self.stretches:
            raise ZeroWeightsError(weight.formula.text())

    @property
    def rough(self) -> bool:  # type: ignore[override]
        return self.rest is not None and self.rest.rough

    @property
    def end(self) -> float:
        """The distance from which on all weights are 0: infinity if there is none, nan if it could not be told."""
        if self.rest is not None:
            return math.inf
        end = max(s.last for s in self.stretches)
        return end if self.term(end - 1) > 0 else math.nan


def sum_json(s: Series, digits: int = 20) -> dict[str, str]:
    """B as the middle and the radius of an enclosure, for a program; the radius is rounded up."""
    with ctx.workprec(max(128, 4 * digits + 32)):
        total = s.B()
        middle = total.str(digits, radius=False)
        radius = (total - arb(middle)).abs_upper() * arb("1.001")
        return {"mid": middle, "rad": "0" if radius.is_zero() else (radius * arb("1.01")).upper().str(3, radius=False)}


__all__ = ["DivergenceError", "Series", "UndecidedError", "series", "sum_json"]
