"""Conditions made short: what the others imply is left out, decided by linear arithmetic on exact constants.

A relation such as a - b > 1/2 is linear in its quantities, where a product of parameters counts as a quantity
of its own. Fourier-Motzkin elimination shows that some relations cannot hold together; what it does not show may still
be so, and then a condition is only longer than it need be.
"""

from __future__ import annotations

from fractions import Fraction

from farfield.theory.exact import signs
from farfield.theory.exact.constants import Const, Monomial

Case = tuple[tuple[Const, int], ...]  # a conjunction of sign conditions
AT_LEAST, AT_MOST, UNEQUAL = 2, -2, 3  # signs of a condition beside 1, 0, -1
_OPPOSITE = {1: (AT_MOST,), 0: (1, -1), -1: (AT_LEAST,), AT_LEAST: (-1,), AT_MOST: (1,), UNEQUAL: (0,)}
_WEAKER = {1: (AT_LEAST,), -1: (AT_MOST,)}
_MOST_ROWS = 60


class _Row:
    """The inequality: sum of coefficient * quantity + constant > 0, or >= 0."""

    __slots__ = ("coefficients", "constant", "strict")

    def __init__(self, coefficients: dict[Monomial, Fraction], constant: Const, strict: bool):
        self.coefficients, self.constant, self.strict = coefficients, constant, strict

    def plus(self, other: _Row, factor: Fraction) -> _Row:
        total = dict(self.coefficients)
        for m, q in other.coefficients.items():
            total[m] = total.get(m, Fraction(0)) + factor * q
        kept = {m: q for m, q in total.items() if q}
        return _Row(kept, self.constant + other.constant * factor, self.strict or other.strict)


def _row(c: Const, strict: bool) -> _Row:
    moving = {m: q for m, q in c.terms.items() if any(a.parameters for a, _ in m)}
    return _Row(moving, Const({m: q for m, q in c.terms.items() if m not in moving}), strict)


def _rows(case: Case) -> list[list[_Row]]:
    """The inequalities of a case, once for each way in which its `!=` may hold."""
    ways: list[list[_Row]] = [[]]
    for c, s in case:
        if s == UNEQUAL:
            ways = [[*way, _row(side, True)] for way in ways for side in (c, -c)]
            continue
        own = [_row(c if s > 0 else -c, s in (1, -1))] if s else [_row(c, False), _row(-c, False)]
        ways = [[*way, *own] for way in ways]
    return ways


def impossible(case: Case) -> bool:
    """Whether the conditions are proven to contradict each other."""
    return all(_infeasible(rows) for rows in _rows(case))


def _infeasible(rows: list[_Row]) -> bool:
    while True:
        for row in rows:
            if not row.coefficients:
                sign = signs.known_sign(row.constant) if row.constant.terms else 0
                if sign is not None and (sign < 0 or (sign == 0 and row.strict)):
                    return True
        rows = [row for row in rows if row.coefficients]
        if not rows or len(rows) > _MOST_ROWS:
            return False
        quantity = next(iter(rows[0].coefficients))
        kept = [row for row in rows if quantity not in row.coefficients]
        up = [row for row in rows if row.coefficients.get(quantity, 0) > 0]
        down = [row for row in rows if row.coefficients.get(quantity, 0) < 0]
        rows = kept + [d.plus(u, -d.coefficients[quantity] / u.coefficients[quantity]) for u in up for d in down]


def shorter(mine: list[Case], others: list[Case], given: Case) -> list[Case]:
    """The same set of parameters with fewer conditions: each case may grow as long as it meets none of the others."""
    if len(mine) * len(others) > 400:
        return mine
    grown = [_grown(case, others, given) for case in mine if not impossible((*case, *given))]
    kept: list[Case] = []
    for i, case in enumerate(grown):
        rest = [*kept, *grown[i + 1 :]]
        if not any(_within(case, other, given) for other in rest):
            kept.append(case)
    return kept


def _grown(case: Case, others: list[Case], given: Case) -> Case:
    kept = list(case)
    for pair in sorted(case, key=lambda pair: -len(pair[0].terms)):  # the most involved first
        i = kept.index(pair)
        without = (*kept[:i], *kept[i + 1 :])
        if all(impossible((*without, *other, *given)) for other in others):
            kept.pop(i)
            continue
        for weaker in _WEAKER.get(pair[1], ()):
            wider = (*without, (pair[0], weaker))
            if all(impossible((*wider, *other, *given)) for other in others):
                kept[i] = (pair[0], weaker)
                break
    return tuple(kept)


def _within(case: Case, other: Case, given: Case) -> bool:
    """Whether one case is proven to lie within another."""
    return all(impossible((*case, (c, negated), *given)) for c, s in other for negated in _OPPOSITE[s])
