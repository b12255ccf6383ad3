"""The worst case over a class of biases: how much of a row can lie beyond a window, whatever the members choose.

With upper envelope E, lower envelope e, a sink of logit s and logits within +-M, the share of a row beyond j is at most

    exp(2M)*T / (exp(2M)*T + H + exp(M)*exp(s)),    T = sum of exp(E(t)) for t >= j,    H = sum of exp(e(t)) for t < j

and it is attained, in the limit of long rows, where the class has members that do: near keys choose e and far ones E.
It falls as j grows, so the smallest j is found by doubling and halving, every comparison decided by enclosures.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

from flint import arb, ctx, fmpq

from farfield.formula import Formula
from farfield.formula.algebras import ball_value
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.exact.signs import ball
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import series
from farfield.theory.verdict.biases import envelope_of
from farfield.zoo import Encoding, find

_FARTHEST = 1 << 60
_MOST_BITS = 4096


class WorstCase:
    """A class of biases without open parameters, as something whose windows can be asked for.

    Args:
        encoding: what the formula came from; it knows which parameters are positive.
        formula: the class.
        context: rows of so many tokens only; without it, rows of every length.
        start: the first distance; a class is judged from 0 on.
    """

    def __init__(
        self, encoding: str | Formula | Encoding, formula: Formula, context: int | None = None, start: int = 0
    ):
        if start:
            raise ValueError(f"the worst case over a class of biases is told from distance 0 on, not from {start}")
        self.formula = formula
        result = envelope_of(find(encoding), formula)
        if result.upper is None:
            raise UndecidedError("nothing bounds the class from above, so no window can be told")
        if result.lower is None and result.sink is None:
            raise UndecidedError("nothing bounds the nearest keys of the class from below, so no window can be told")
        self.exact = result.tight
        self.sink = result.sink
        self.lower = result.lower
        self.context = context
        self.upper = series(result.upper) if context is None else Row(result.upper, context)  # refuses what diverges

    @cached_property
    def _whole_lower(self) -> Any:
        """The sums of the lower envelope, if they are finite."""
        if self.lower is None:
            return None
        if self.context is not None:
            return Row(self.lower, self.context)
        try:
            return series(self.lower)
        except (DivergenceError, UndecidedError):
            return None

    def _head(self, j: int) -> Any:
        if self.lower is None:
            return arb(0)
        whole = self._whole_lower
        return whole.B() - whole.tail(j) if whole is not None else Row(self.lower, j).B()

    def near(self) -> Any:
        """The smallest that the keys of a long row and its sink can add up to."""
        whole = self._whole_lower
        if whole is None and self.lower is not None:
            raise UndecidedError("what the nearest keys add up to at least could not be enclosed")
        return (arb(0) if whole is None else whole.B()) + self._sink(arb(0))

    def _sink(self, m: Any) -> Any:
        return arb(0) if self.sink is None else (m + ball_value(self.sink, {})).exp()

    def share(self, j: int, logit_bound: Fraction = Fraction(0)) -> Any:
        """The largest share of a row beyond j, as a ball."""
        m = ball(logit_bound)
        far = (2 * m).exp() * self.upper.tail(j)
        return far / (far + self._head(j) + self._sink(m))

    def smallest(self, epsilon: Fraction, logit_bound: Fraction = Fraction(0), *, strict: bool = True) -> int:
        """The smallest j beyond which less than a share epsilon lies (at most epsilon, if not strict)."""
        limit = fmpq(epsilon.numerator, epsilon.denominator)

        def enough(j: int) -> bool:
            bits = 128
            while bits <= _MOST_BITS:
                with ctx.workprec(bits):
                    share = self.share(j, logit_bound)
                    if share < limit or (share.is_zero() and not strict):
                        return True
                    if share > limit or (share.is_exact() and strict and share == limit):
                        return False
                bits *= 4
            raise UndecidedError(f"whether {j} tokens are enough could not be decided")

        high = 1
        while not enough(high):
            high *= 2
            if high > _FARTHEST:
                raise UndecidedError(f"the window is wider than {_FARTHEST:,} tokens")
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


def worst_said(exact: bool) -> str:
    """Whether the worst case is attained, in words."""
    return "attained by members of the class" if exact else "a bound: the class may never attain it"
