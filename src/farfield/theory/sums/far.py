"""The far part of a sum: a proven bound of the weights beyond a distance X, from the expansion of the bias.

The expansion with its explicit remainder (theory/engines.py) gives b(t) <= e**c / (t * ln t ... l_m**s) for all t >= X,
and the sum of that is bounded by its first term and its integral. The verdict is found once for a formula; each X then
costs one expansion. Large exponents s hold only from large X on, so several are tried, the largest first.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node
from farfield.theory.budget import Work
from farfield.theory.errors import LargerStartError, MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, Const, rational
from farfield.theory.exact.signs import ball
from farfield.theory.sums.shapes import Log, Shape, constant_part, shape
from farfield.theory.verdict import oscillation
from farfield.theory.verdict.engines import Explicit
from farfield.theory.verdict.growth import NOTHING
from farfield.theory.verdict.ladder import Rung, decide, excess
from farfield.theory.verdict.reader import bias
from farfield.theory.verdict.regions import Region

_BUDGET = 4.0  # work for all bounds of one formula
_EXPONENTS = (1024, 256, 128, 64, 48, 32, 24, 16, 12, 8, 6, 5, 4, 3, Fraction(5, 2), 2, Fraction(3, 2), Fraction(6, 5))
_SHARES = ("1", "0.99", "0.9", "0.5")  # of the exponent beyond 1 that the verdict found


class FarTail:
    """log X -> an upper bound of the sum of b(t) over t >= X, or None if none is proven from there on."""

    def __init__(self, formula: Formula):
        self.formula = formula
        self.shape = shape(formula)
        self._work = Work(_BUDGET)
        self._rung: Rung | None = None
        self._failed = False
        self._majorant: tuple[FarTail | None, Const] | None = None

    def rung(self) -> Rung | None:
        """Where on the logarithmic scale the weights lie, found once."""
        if self._rung is None and not self._failed:
            try:
                result = decide(self.formula, Region(), self._work)
                self._rung = result if result.verdict == "converges" else None
            except (UndecidedError, UndefinedError):
                pass
            self._failed = self._rung is None
        return self._rung

    def __call__(self, ln_x: Any) -> Any | None:
        with ctx.workprec(128):
            quick = _power_of_log(self.shape, ln_x)
        if quick is not None:
            return quick
        rung = self.rung()
        if rung is None:
            return self._by_majorant(ln_x)
        for length in (4, 8, 16):
            try:
                with ctx.workprec(128):
                    engine = Explicit(ln_x, length, self._work)
                    r = bias(engine, self.formula)
                    if r is NOTHING:
                        return arb(0)
                    bound = self._best(engine, engine.negative(r), rung)
                if bound is not None:
                    return bound
            except MoreTermsError:
                continue
            except (LargerStartError, OverflowError, UndecidedError, UndefinedError):
                return None
        return None

    def _by_majorant(self, ln_x: Any) -> Any | None:
        """The bound of a larger weight: waves at their largest, branches that change for ever at the larger one."""
        if self._majorant is None:
            self._majorant = _majorant(self.formula)
        if self._majorant[0] is None:
            return None
        bound = self._majorant[0](ln_x)
        with ctx.workprec(128):
            return None if bound is None else (bound * ball(self._majorant[1])).upper()

    def _best(self, engine: Explicit, g: Any, rung: Rung) -> Any | None:
        exponents: list[Any]
        if rung.ratio is None:
            exponents = [rational(Fraction(s)) for s in _EXPONENTS]
        else:
            one = rational(Fraction(1))
            exponents = [one + (rung.ratio - one) * rational(Fraction(share)) for share in _SHARES]
        best: Any | None = None
        for s in exponents:
            try:
                c = excess(engine, g, rung.depth, s, True)
            except LargerStartError:
                continue  # this exponent holds only from a larger X on
            if c is None or not c.is_finite():
                continue
            bound = _sum_bound(engine, rung.depth, ball(s), c)
            if best is not None and not bound < best:
                break
            best = bound
        return best


def _power_of_log(a: Shape | None, ln_x: Any) -> Any | None:
    """The bound for b(t) = C * n**s * exp(-c*M**q), n = t + a, M = log(k*n), q > 1, which needs no expansion.

    M**q >= M0**(q-1) * M from M0 on, so b(t) <= C * k**-s * (k*n)**-e with e = c*M0**(q-1) - s.
    """
    atoms = [(atom, c) for atom, c in (a or {}).items() if atom is not None]
    main = [(atom, c) for atom, c in atoms if isinstance(atom, Log) and atom.exponent > 1]
    side = [(atom, c) for atom, c in atoms if isinstance(atom, Log) and atom.exponent == 1]
    if a is None or len(main) != 1 or len(side) > 1 or len(atoms) != len(main) + len(side):
        return None
    (atom, c), s = main[0], ball(side[0][1]) if side else arb(0)
    if side and side[0][0].shift != atom.shift:
        return None
    n, k = ln_x.exp() + ball(atom.shift), ball(atom.scale)
    m = (k * n).log()
    if not (k > 0 and m > 0 and ball(c) < 0):
        return None
    e = -ball(c) * m ** (ball(atom.exponent) - 1) - s
    if not e > 1:
        return None
    factor = ball(constant_part(a)).exp() * k**-s
    return (factor * (k * n) ** -e * (1 + n / (e - 1))).upper()


def _sum_bound(engine: Explicit, depth: int, s: Any, c: Any) -> Any:
    """e**c times (first term + integral) of 1/(t * ln t ... l_depth**s) from X on."""
    if depth:
        engine.level(depth)  # must be positive
    last = engine.levels[depth + 1]
    first = c - s * last
    for i in range(1, depth + 1):
        first -= engine.levels[i]
    integral = c + (1 - s) * last - (s - 1).log()
    return (first.exp() + integral.exp()).upper()


def _majorant(formula: Formula) -> tuple[FarTail | None, Const]:
    """The far tail of a weight h and a constant c with b(t) <= c*h(t), h without waves in a factor, or None."""
    larger = _larger_branch(formula.node)
    if larger != formula.node:
        return FarTail(replace(formula, node=larger, source="")), ONE
    try:
        parts = oscillation.factor(formula)
        if parts is None:
            return None, ONE
        size = ONE
        for node, e, _ in parts.waves:
            size = size * constants.real_power(oscillation.size(oscillation.polynomial(node)), rational(e))
    except UndecidedError:
        return None, ONE
    return FarTail(parts.rest), size


def _larger_branch(node: Node) -> Node:
    """The larger of the two branches of a choice, whichever holds; -inf is the smaller one of any two."""
    if node.op != "where":
        return node
    yes, no = (_larger_branch(a) for a in node.args[2:])
    if "-inf" in (yes.op, no.op):
        return no if yes.op == "-inf" else yes
    return Node("max", (yes, no))
