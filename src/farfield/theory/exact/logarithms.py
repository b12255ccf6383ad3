"""Exact constants made of rationals and logarithms of rationals, for the ties that no precision decides.

`tail(j) = epsilon * B` happens: weights 2**-t at epsilon = 1/2, a window of 512 at epsilon = 1/2. Balls around two
equal numbers overlap for ever; here equality is decided, not approximated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from farfield.formula import Node, fold

_LIMIT = 10**6  # bits of an integer that a tie may cost


@dataclass(frozen=True)
class LogForm:
    """The number plain + sum of q * log(x) over rationals x > 0 with rational coefficients q."""

    plain: Fraction
    logs: tuple[tuple[Fraction, Fraction], ...] = ()  # (x, q)

    def __add__(self, other: LogForm) -> LogForm:
        merged = dict(self.logs)
        for x, q in other.logs:
            merged[x] = merged.get(x, Fraction(0)) + q
        return LogForm(self.plain + other.plain, tuple((x, q) for x, q in merged.items() if q and x != 1))

    def times(self, factor: Fraction) -> LogForm:
        return LogForm(self.plain * factor, tuple((x, q * factor) for x, q in self.logs if factor))

    def is_zero(self) -> bool:
        """Whether it is zero, exactly: exp(plain) is algebraic only for plain = 0 (Lindemann)."""
        return self.plain == 0 and not any(_over_coprimes(self.logs).values())

    def exp(self) -> Fraction | None:
        """The rational number exp(form), or None if it is not rational or too long to write."""
        if self.plain != 0:
            return None
        powers = _over_coprimes(self.logs)
        if any(q.denominator != 1 for q in powers.values()):
            return None  # coprime bases that are no perfect powers: an irrational root
        if sum(abs(q) * n.bit_length() for n, q in powers.items()) > _LIMIT:
            return None
        value = Fraction(1)
        for n, q in powers.items():
            value *= Fraction(n) ** int(q)
        return value


def log_of(x: Fraction) -> LogForm:
    """log(x) of a positive rational."""
    return LogForm(Fraction(0), ((x, Fraction(1)),) if x != 1 else ())


def _over_coprimes(logs: tuple[tuple[Fraction, Fraction], ...]) -> dict[int, Fraction]:
    """The exponents over pairwise coprime integers > 1 that are no perfect powers: unique, so zero means zero."""
    base = _coprime([n for x, _ in logs for n in (x.numerator, x.denominator)])
    powers: dict[int, Fraction] = {}
    for n in base:
        root, times = _root(n)
        total = Fraction(0)
        for x, q in logs:
            total += q * (_valuation(x.numerator, n) - _valuation(x.denominator, n))
        powers[root] = powers.get(root, Fraction(0)) + total * times
    return powers


def _coprime(numbers: list[int]) -> list[int]:
    """Pairwise coprime integers > 1 whose products are all the given numbers."""
    base: list[int] = []
    todo = [n for n in numbers if n > 1]
    while todo:
        n = todo.pop()
        for i, m in enumerate(base):
            common = math.gcd(n, m)
            if common > 1:
                base.pop(i)
                todo += [p for p in (n // common, m // common, common) if p > 1]
                break
        else:
            base.append(n)
    return base


def _valuation(n: int, base: int) -> int:
    count = 0
    while n % base == 0:
        n, count = n // base, count + 1
    return count


def _root(n: int) -> tuple[int, int]:
    """The integer r that is no perfect power, and e, with n = r**e."""
    from flint import fmpz

    for e in range(n.bit_length(), 1, -1):
        root = int(fmpz(n).root(e))
        if root**e == n:
            return root, e
    return n, 1


def log_form(node: Node) -> LogForm | None:
    """The exact form of a constant expression, or None if it is no combination of rationals and their logs."""

    def leaf(n: Node) -> LogForm | None:
        return LogForm(n.value) if isinstance(n.value, Fraction) else None

    def join(n: Node, parts: list[LogForm | None]) -> LogForm | None:
        if n.op == "log":
            return product_form(n.args[0])
        if any(p is None for p in parts):
            return None
        first, *rest = [p for p in parts if p is not None]
        if n.op == "neg":
            return first.times(Fraction(-1))
        if n.op in ("+", "-"):
            return first + rest[0].times(Fraction(1 if n.op == "+" else -1))
        if n.op == "*":
            for one, other in ((first, rest[0]), (rest[0], first)):
                if not one.logs:
                    return other.times(one.plain)
        if n.op == "/" and not rest[0].logs and rest[0].plain:
            return first.times(1 / rest[0].plain)
        if n.op in ("**", "sqrt") and not first.logs:
            power = rest[0] if rest else LogForm(Fraction(1, 2))
            if not power.logs and power.plain.denominator == 1 and abs(power.plain) <= 1000:
                return LogForm(first.plain ** int(power.plain)) if first.plain or power.plain > 0 else None
            if first.plain > 0 and not power.logs:
                value = log_of(first.plain).times(power.plain).exp()
                return None if value is None else LogForm(value)
        if n.op == "exp":
            value = first.exp()
            return None if value is None else LogForm(value)
        return None

    return fold(node, leaf, join)


def product_form(node: Node) -> LogForm | None:
    """The exact form of log(node) for a positive constant made of products, powers and roots of rationals."""
    if isinstance(node.value, Fraction):
        return log_of(node.value) if node.value > 0 else None
    if node.op == "exp":
        return log_form(node.args[0])
    if node.op == "sqrt":
        inner = product_form(node.args[0])
        return None if inner is None else inner.times(Fraction(1, 2))
    if node.op in ("*", "/"):
        left, right = product_form(node.args[0]), product_form(node.args[1])
        return None if left is None or right is None else left + right.times(Fraction(1 if node.op == "*" else -1))
    if node.op == "**":
        inner, power = product_form(node.args[0]), log_form(node.args[1])
        return None if inner is None or power is None or power.logs else inner.times(power.plain)
    plain = log_form(node)
    return log_of(plain.plain) if plain is not None and not plain.logs and plain.plain > 0 else None
