"""The general method: Euler-Maclaurin for any smooth weight, with nothing assumed about its shape.

The sum from N to X is an integral (Arb's verified integration in u = log x), boundary terms from power series, and a
remainder bounded panel by panel: on [x, x + w] Cauchy's inequality gives |b^(2p)|/(2p)! <= M/r**2p, where M bounds
|b| on the complex rectangle at distance r around the panel. The sum beyond X is bounded by a majorant that the
convergence proof supplies. No convexity or monotonicity is needed anywhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from flint import acb, arb, ctx, fmpz

from farfield.theory.budget import TimeUpError, tick
from farfield.theory.errors import IntegralError, NotReachedError, NotSmoothError, UndecidedError
from farfield.theory.sums.closed import Series
from farfield.theory.sums.eulermaclaurin import bernoulli, correction
from farfield.theory.sums.weight import Weight

Far = Callable[[arb], arb | None]  # log X -> an upper bound of the sum over t >= X, or None if it is not proven there
LOW = 64  # bits for bounds
_DIRECT = 1 << 10  # up to here terms are simply added
_LONGEST = 1 << 15  # never add more terms than this
FIRST = (32, 64, 128, 256, 512, 1024, 4096)  # where Euler-Maclaurin may begin, counted from the start
_ENDS = (7, 9, 10, 11, 12, 13, 14, 16, 18, 20, 24, 28, 32, *(int(32 * 1.25**i) for i in range(1, 40)))
_MOST_PANELS = 4000
_MOST_EVALUATIONS = 80  # of the weight in one integral, for each bit of precision


def _largest(weight: Weight, low: arb, high: arb, r: arb) -> arb:
    """A bound of |b| at distance r around [low, high], or infinity."""
    try:
        value = weight.largest(acb((low - r).union(high + r), arb(0).union(r).union(-r)))
    except (NotSmoothError, ZeroDivisionError, ValueError):
        return arb("inf")
    return value if value.is_finite() else arb("inf")


class SmoothSum:
    """The sum of b(t) over j <= t < X for every j from `first` on, at one precision and to one absolute error."""

    def __init__(self, weight: Weight, first: int, end: arb, error: arb):
        self.weight, self.first, self.end, self.error = weight, first, end, error
        self.pairs, self.remainder = self._remainder()
        self.at_end = self._boundary(end)
        self.knots, self.integrals = self._integrals()

    # -- the remainder ------------------------------------------------------------------------------------------
    def _remainder(self) -> tuple[int, arb]:
        with ctx.workprec(LOW):
            low = arb(fmpz(self.first))
            high, radius, largest = self._panel(low, None)
            for p in range(2, 400):
                bound = self._bound(p, high - low, radius, largest)
                if bound < self.error / 16:
                    break
            else:
                raise NotReachedError
            p += 2  # a little more, so that all panels together stay below the error
            total, x, ratio, wide = arb(0), low, radius / low if low > 0 else None, False
            for _ in range(_MOST_PANELS):
                if not x < self.end:
                    return p, total.upper()
                high, radius, largest = self._panel(x, ratio, p, wide)
                piece = self._bound(p, high - x, radius, largest)
                if wide and not piece < self.error / 4096:
                    wide, ratio = False, None
                    continue
                total += piece
                if not total < self.error:
                    raise NotReachedError
                wide = bool(piece < self.error / 4096 and x > 4 * low)
                x, ratio = high, radius / high
            raise NotReachedError

    @staticmethod
    def _bound(p: int, width: arb, radius: arb, largest: arb) -> arb:
        return (abs(bernoulli(2 * p, LOW)) * width * largest / radius ** (2 * p)).upper()

    def _panel(self, x: arb, ratio: arb | None, p: int = 8, wide: bool = False) -> tuple[arb, arb, arb]:
        """A panel from x on: its end, the radius of the discs, the bound of |b| on them."""
        best: tuple[arb, arb, arb, arb] | None = None
        tries = (0.6, 0.4, 0.25, 0.15, 0.08, 0.04, 0.02, 0.01, 0.004) if ratio is None else (1.3, 1.0, 0.75)
        for share in tries:
            radius = (x * share if ratio is None else x * min(float((ratio * share).mid()), 0.7)).mid()
            high = (8 * x if wide else x + radius / 2).mid()
            if high > self.end:
                high = self.end
            largest = _largest(self.weight, x, high, radius)
            if not largest.is_finite():
                continue
            badness = largest.log() - 2 * p * radius.log() if largest > 0 else arb(-(10**9))
            if best is None or badness < best[0]:
                best = (badness, high, radius, largest)
        if best is None:
            if ratio is not None:
                return self._panel(x, None, p)
            raise NotReachedError
        return best[1:]

    # -- the boundary and the integral --------------------------------------------------------------------------
    def _boundary(self, x: arb) -> arb:
        """b(x)/2 - sum of B_2k/(2k)! b^(2k-1)(x)."""
        jet = self.weight.jet(x, 2 * self.pairs)
        total = jet[0] / 2
        for k in range(1, self.pairs + 1):
            total -= correction(jet, k)
        return total

    def _integrals(self) -> tuple[list[arb], list[arb]]:
        """Knots in u = log x, and the integral from each knot to the end."""
        knots, step, stop = [arb(max(self.first, 1)).log().mid()], arb(1), self.end.log()
        while (knots[-1] + step) < stop:
            knots.append((knots[-1] + step).mid())
            step = (step * 2).min(arb(32)) if len(knots) > 4 else step
        values = [self._integral(knots[-1], stop)]
        for a, b in zip(knots[-2::-1], knots[:0:-1], strict=True):
            values.append(values[-1] + self._integral(a, b))
        return knots, values[::-1]

    def _integral(self, a: arb, b: arb) -> arb:
        def integrand(u: acb, analytic: bool) -> acb:
            x = u.exp()
            try:
                tick()
                return x * self.weight.call(x, analytic)
            except (NotSmoothError, ZeroDivisionError, TimeUpError):  # nothing may be raised through Arb
                return acb("nan")

        goal = self.error / 64
        value = acb.integral(
            integrand,
            acb(a),
            acb(b),
            abs_tol=goal,
            rel_tol=arb(2) ** -ctx.prec,
            eval_limit=_MOST_EVALUATIONS * ctx.prec,
        ).real
        tick()
        if not value.is_finite() or (not value.rad() < self.error * 16 and value.rel_accuracy_bits() < ctx.prec // 2):
            raise IntegralError
        return value

    def tail(self, j: int) -> arb:
        """The sum over j <= t < X."""
        x = arb(fmpz(j))
        u = x.log()
        after = next((i for i, knot in enumerate(self.knots) if knot >= u), None)
        if after is None:
            integral = self._integral(u, self.end.log())
        else:
            integral = self.integrals[after] + self._integral(u, self.knots[after])
        return integral + self._boundary(x) - self.at_end + arb(0, self.remainder)


def smooth_sum(weight: Weight, start: int, end: arb, error: arb) -> tuple[SmoothSum, arb] | None:
    """Euler-Maclaurin from the first of several distances at which it reaches the precision, and its tail."""
    for offset in FIRST:
        if not start + offset < end:
            return None
        with contextlib.suppress(NotReachedError):
            result = SmoothSum(weight, start + offset, end, error)
            return result, result.tail(result.first)
    return None


class General(Series):
    """Any convergent series: terms one by one, then Euler-Maclaurin, then the bound of the far part.

    The enclosures have an absolute error of about B * 2**-precision where that can be had; a weight that oscillates
    and falls slowly gets the width that the bound of its far part leaves.
    """

    method = "Euler-Maclaurin with verified integrals"

    def __init__(self, weight: Weight, start: int, far: Far):
        super().__init__(weight, start)
        self._far = far
        self._bounds: dict[int, arb | None] = {}
        self._parts: dict[int, tuple[list[arb], SmoothSum | None, arb]] = {}
        self._smooth = True

    def far(self, k: int) -> arb | None:
        """An upper bound of the sum over t >= 2**k, or None."""
        if k not in self._bounds:
            with ctx.workprec(LOW):
                self._bounds[k] = self._far(arb(k) * arb(2).log())
        return self._bounds[k]

    def _scale(self) -> arb:
        """A lower bound of B: the largest of the first weights."""
        with ctx.workprec(LOW):
            top = max((self.term(t).abs_lower() for t in range(self.start, self.start + 16)), key=float)
        if not top > 0:
            raise UndecidedError("the first weights are all 0, and so the sum could not be enclosed")
        return top

    def _end(self, error: arb) -> int | None:
        """The first exponent k tried for which the sum from 2**k on is below the error."""
        least = max(6, self.start.bit_length() + 1)
        for k in _ENDS:
            bound = self.far(k) if k >= least else None
            if bound is not None and bound <= error:
                return k
        return None

    def _prepare(self) -> tuple[list[arb], SmoothSum | None, arb]:
        key = 0 if self.rough else ctx.prec
        if key in self._parts:
            return self._parts[key]
        error = self._scale() * arb(2) ** -ctx.prec
        k = self._end(error)
        parts = None
        if k is not None and k > _DIRECT.bit_length() and self._smooth:
            parts = self._by_panels(k, error)
        if parts is None:
            parts = self._one_by_one(k)
            if not parts[2] <= error:
                self.rough, self._parts[0] = True, parts
        self._parts[ctx.prec] = parts
        return parts

    def _by_panels(self, k: int, error: arb) -> tuple[list[arb], SmoothSum | None, arb] | None:
        rest = self.far(k)
        assert rest is not None
        try:
            result = smooth_sum(self.weight, self.start, arb(2) ** k, error)
        except (NotSmoothError, IntegralError):
            self._smooth = False
            return None
        if result is None:
            return None
        smooth, tail = result
        return self.add_terms(smooth.first, tail + arb(0).union(rest)), smooth, rest

    def _one_by_one(self, k: int | None) -> tuple[list[arb], SmoothSum | None, arb]:
        """Add the terms below 2**k; if no k will do, as many as is sensible, and keep the bound of the rest."""
        most = _LONGEST.bit_length() - 1
        if k is None or k > most:
            k = next((n for n in (most, most - 1, most - 2) if self.far(n) is not None), None)
            if k is None:
                raise UndecidedError("no bound of the far part of the sum could be proven")
        rest = self.far(k)
        assert rest is not None
        return self.add_terms(1 << k, arb(0).union(rest)), None, rest

    def _tail(self, j: int) -> arb:
        tails, smooth, rest = self._prepare()
        if j - self.start < len(tails):
            return tails[j - self.start]
        if smooth is not None and arb(fmpz(j)) < smooth.end:
            return smooth.tail(j) + arb(0).union(rest)
        bound = self.far(j.bit_length() - 1)
        return arb(0).union(rest if bound is None else bound.min(rest))
