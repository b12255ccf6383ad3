"""The far part of a sum: a proven bound of the weights beyond a distance X.

The checker's calculus on [X, oo) gives b(t) <= e**c / (t * ln t ... l_m**s) for all t >= X, and the sum of that is
bounded by its first term and its integral. The verdict is found once for a formula; each X then costs one expansion.
Large exponents s hold only from large X on, so several are tried, the largest first.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from flint import arb, ctx

from farfield.formula import Formula, Node
from farfield.theory.checker.claims import Claim, Place
from farfield.theory.checker.examination import ORDERS
from farfield.theory.checker.expansions import Calculus, Expansion
from farfield.theory.checker.families import Leaf
from farfield.theory.checker.monomials import Domain, logarithms
from farfield.theory.checker.waves import polynomial
from farfield.theory.errors import UndecidedError, UnknownError
from farfield.theory.exact.constants import ONE, Constant, ball, rational, real_power
from farfield.theory.exact.intervals import Interval, span
from farfield.theory.sums.shapes import Log, Shape, constant_part, shape
from farfield.theory.verdict.ladder import decide, excess, log_weights
from farfield.theory.verdict.touching import factor, size

_EXPONENTS = (1024, 256, 128, 64, 48, 32, 24, 16, 12, 8, 6, 5, 4, 3, Fraction(5, 2), 2, Fraction(3, 2), Fraction(6, 5))
_SHARES = ("1", "0.99", "0.9", "0.5")  # of the exponent beyond 1 that the verdict found


class FarTail:
    """log X -> an upper bound of the sum of b(t) over t >= X, or None if none is proven from there on."""

    def __init__(self, formula: Formula):
        self.formula, self.shape = formula, shape(formula)

    @cached_property
    def _leaf(self) -> Leaf | None:
        """Where on the logarithmic scale the weights lie; None if they are not shown to have a sum."""
        try:
            leaf = decide(self.formula)
        except UndecidedError:
            return None
        return leaf if leaf.verdict == "converges" else None

    @cached_property
    def _majorant(self) -> tuple[FarTail | None, Constant]:
        return _majorant(self.formula)

    def __call__(self, ln_x: arb) -> arb | None:
        with ctx.workprec(128):
            quick = _power_of_log(self.shape, ln_x)
            if quick is not None:
                return quick
            if self._leaf is None:
                return self._by_majorant(ln_x)
            low = (span(ln_x.exp()), *logarithms(span(ln_x)))
            for order in ORDERS:
                calculus = Calculus(Domain(low, None), *order)
                for log_weight in log_weights(self.formula, calculus):
                    bound = arb(0) if log_weight is None else _best(log_weight, calculus, low, self._leaf)
                    if bound is not None:
                        return bound
        return None

    def _by_majorant(self, ln_x: arb) -> arb | None:
        """The bound of a larger weight: waves at their largest, branches that change for ever at the larger one."""
        larger, factor = self._majorant
        bound = None if larger is None else larger(ln_x)
        return None if bound is None else (bound * ball(factor)).upper()


def _best(log_weight: Expansion, calculus: Calculus, low: tuple[Interval, ...], leaf: Leaf) -> arb | None:
    best: arb | None = None
    for s in _exponents(leaf):
        try:
            c = excess(log_weight, calculus, Claim("upper", Place(0), Fraction(0), leaf.depth, s))
        except (UnknownError, OverflowError):
            continue
        if c is None:
            continue
        bound = _sum_bound(low, leaf.depth, ball(s), c)
        if best is not None and not bound < best:
            break
        best = bound
    return best


def _exponents(leaf: Leaf) -> list[Fraction]:
    """Exponents up to the limit that the verdict found, the largest first; rational ones, rounded down."""
    if leaf.limit is None:
        return [Fraction(s) for s in _EXPONENTS]
    most = leaf.limit.fraction
    if most is None:
        low = ball(leaf.limit).lower()
        most = Fraction(int((low * 2**40).floor().fmpz()), 2**40)
    return [1 + (most - 1) * Fraction(share) for share in _SHARES if most > 1]


def _power_of_log(a: Shape | None, ln_x: arb) -> arb | None:
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


def _sum_bound(low: tuple[Interval, ...], depth: int, s: arb, c: arb) -> arb:
    """e**c times (first term + integral) of 1/(t * ln t ... l_depth**s) from X on."""
    first, last = c, low[depth + 1]
    for i in range(1, depth + 1):
        first -= low[i].low
    first -= s * last.low
    integral = c + (1 - s) * last.low - (s - 1).log()
    return (first.exp() + integral.exp()).upper()


def _majorant(formula: Formula) -> tuple[FarTail | None, Constant]:
    """The far tail of a weight h and a constant c with b(t) <= c*h(t), h without waves in a factor, or None."""
    larger = _larger_branch(formula.node)
    if larger != formula.node:
        return FarTail(formula.with_node(larger)), ONE
    try:
        parts = factor(formula)
        if parts is None:
            return None, ONE
        most = ONE
        for node, e, _ in parts.waves:
            most = most * real_power(size(polynomial(node)), rational(e))
    except UndecidedError:
        return None, ONE
    return FarTail(parts.rest), most


def _larger_branch(node: Node) -> Node:
    """The larger of the two branches of a choice, whichever holds; -inf is the smaller one of any two."""
    if node.op != "where":
        return node
    yes, no = (_larger_branch(a) for a in node.args[2:])
    if "-inf" in (yes.op, no.op):
        return no if yes.op == "-inf" else yes
    return Node("max", (yes, no))
