"""Monomials of the logarithmic scale: l_0**a_0 * l_1**a_1 * ... * exp(phi), l_0 = t, l_1 = ln t, l_2 = ln ln t, ..."""

from __future__ import annotations

from collections.abc import Iterable

from farfield.formula import Node, build
from farfield.formula.plain_text import text
from farfield.formula.tree import T
from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, Const


class Mono:
    """A monomial of the logarithmic scale: powers of l_i, and exp of a sum of larger monomials."""

    __slots__ = ("_hash", "phi", "powers")

    def __init__(self, powers: tuple[tuple[int, Const], ...] = (), phi: tuple[tuple[Mono, Const], ...] = ()):
        self.powers, self.phi = powers, phi
        self._hash = hash((powers, phi))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mono) or self._hash != other._hash:
            return False
        return self.powers == other.powers and self.phi == other.phi

    def node(self, coefficient: Const = ONE) -> Node:
        """The monomial times a constant, as an expression; what has a negative exponent stands below the line."""
        above: list[Node] = [constants.node(coefficient)]
        below: list[Node] = []
        for i, a in self.powers:
            down = a.rational is not None and a.rational < 0
            (below if down else above).append(build.power(level(i), constants.node(-a if down else a)))
        if self.phi:
            above.append(build.call("exp", sum_node(self.phi)))
        return build.quotient(build.product(above), build.product(below))

    def __repr__(self) -> str:
        return text(self.node())


def level(i: int) -> Node:
    """l_i: t, log(t), log(log(t)) ..."""
    return build.call("log", level(i - 1)) if i else T


def sum_node(terms: Iterable[tuple[Mono, Const]]) -> Node:
    """A sum of coefficient times monomial, as a person writes it."""
    return build.total(m.node(c) for m, c in terms)


UNIT = Mono()


def ell(i: int, power: Const = ONE) -> Mono:
    """The monomial l_i."""
    return Mono(((i, power),))
