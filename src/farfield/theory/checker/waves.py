"""Trigonometric polynomials: their mean value over the whole numbers, and whether they are plainly not negative."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from farfield.formula import Formula, Node

Wave = tuple[Fraction, Fraction]  # the frequency a + b * pi of exp(i * frequency * t)
Waves = dict[Wave, tuple[arb, arb]]  # each with its complex coefficient


def mean_value(node: Node) -> arb | None:
    """The mean over the integers of a trigonometric polynomial with frequencies a + b*pi; None if it is none.

    exp(i (a + b pi) t) has mean 1 if a = 0 and b is even, and mean 0 otherwise.
    """
    waves = _waves(node)
    if waves is None:
        return None
    return sum((real for (a, b), (real, _) in waves.items() if a == 0 and b % 2 == 0), arb(0))


def _waves(node: Node) -> Waves | None:
    """A trigonometric polynomial as a sum of waves, or None if it is none."""
    if "t" not in node.free():
        value = Formula(node).ball(arb(0))
        return {(Fraction(0), Fraction(0)): (value, arb(0))} if value.is_finite() else None
    if node.op in ("sin", "cos"):
        slope, shift = _line(node.args[0]) or (None, None)
        if slope is None or shift is None:
            return None
        half_cos, half_sin = shift.cos() / 2, shift.sin() / 2
        # cos(x) = (e^ix + e^-ix) / 2 and sin(x) = (e^ix - e^-ix) / 2i, with x = slope * t + shift
        pair = (half_cos, half_sin) if node.op == "cos" else (half_sin, -half_cos)
        there: Waves = {slope: pair}
        return _sum_of_waves(there, {(-slope[0], -slope[1]): (pair[0], -pair[1])})
    if node.op == "**":
        times = _whole_power(node)
        base = _waves(node.args[0])
        if base is None or times is None or not 1 <= times <= 16:
            return None
        power = base
        for _ in range(times - 1):
            power = _product_of_waves(power, base)
        return power
    parts = [_waves(a) for a in node.args]
    if any(p is None for p in parts):
        return None
    sides = [p for p in parts if p is not None]
    if node.op == "neg":
        return _product_of_waves(sides[0], {(Fraction(0), Fraction(0)): (arb(-1), arb(0))})
    if node.op == "+":
        return _sum_of_waves(*sides)
    if node.op == "-":
        return _sum_of_waves(sides[0], {w: (-x, -y) for w, (x, y) in sides[1].items()})
    if node.op == "*":
        return _product_of_waves(*sides)
    if node.op == "/" and "t" not in node.args[1].free():
        by = Formula(node.args[1]).ball(arb(0))
        return {w: (x / by, y / by) for w, (x, y) in sides[0].items()}
    return None


def _whole_power(node: Node) -> int | None:
    exponent = _slope(node.args[1])
    return None if exponent is None or exponent[1] or exponent[0].denominator != 1 else int(exponent[0])


def _line(node: Node) -> tuple[Wave, arb] | None:
    """The expression as (a + b*pi) * t + shift with rational a and b, or None."""
    zero = Fraction(0)
    if "t" not in node.free():
        return (zero, zero), Formula(node).ball(arb(0))
    if node.op == "name":
        return (Fraction(1), zero), arb(0)
    if node.op == "neg":
        inside = _line(node.args[0])
        return None if inside is None else ((-inside[0][0], -inside[0][1]), -inside[1])
    if node.op in ("+", "-"):
        left, right = _line(node.args[0]), _line(node.args[1])
        if left is None or right is None:
            return None
        sign = 1 if node.op == "+" else -1
        slope = (left[0][0] + sign * right[0][0], left[0][1] + sign * right[0][1])
        return slope, left[1] + sign * right[1]
    if node.op in ("*", "/"):
        line, other = node.args if "t" in node.args[0].free() else (node.args[1], node.args[0])
        inside, by = _line(line), _slope(other)
        if inside is None or by is None or "t" in other.free() or (node.op == "/" and line is not node.args[0]):
            return None
        (a, b), (c, d) = inside[0], by
        if node.op == "/":
            return None if d or not c else ((a / c, b / c), inside[1] / arb(c.numerator) / c.denominator)
        return None if b and d else ((a * c, a * d + b * c), inside[1] * Formula(other).ball(arb(0)))
    return None


def _slope(node: Node) -> Wave | None:
    """A constant as a + b*pi with rational a and b, or None."""
    if node.op == "pi":
        return Fraction(0), Fraction(1)
    if node.op in ("*", "/"):
        left, right = _slope(node.args[0]), _slope(node.args[1])
        if left is None or right is None or (left[1] and right[1]) or (node.op == "/" and (right[1] or not right[0])):
            return None
        (a, b), (c, d) = left, right
        return (a * c, a * d + b * c) if node.op == "*" else (a / c, b / c)
    if node.op in ("+", "-", "neg"):
        parts = [_slope(x) for x in node.args]
        if any(p is None for p in parts):
            return None
        sides = [p for p in parts if p is not None]
        if node.op == "neg":
            return -sides[0][0], -sides[0][1]
        sign = 1 if node.op == "+" else -1
        return sides[0][0] + sign * sides[1][0], sides[0][1] + sign * sides[1][1]
    return (Fraction(node.value), Fraction(0)) if node.op == "number" else None


def _sum_of_waves(left: Waves, right: Waves) -> Waves:
    nothing = (arb(0), arb(0))
    total = {}
    for wave in left | right:
        (x, y), (u, v) = left.get(wave, nothing), right.get(wave, nothing)
        total[wave] = (x + u, y + v)
    return total


def _product_of_waves(left: Waves, right: Waves) -> Waves:
    total: Waves = {}
    for (a, b), (x, y) in left.items():
        for (c, d), (u, v) in right.items():
            wave: Waves = {(a + c, b + d): (x * u - y * v, x * v + y * u)}
            total = _sum_of_waves(total, wave)
    return total


def never_negative(node: Node) -> bool:
    """Whether the expression is plainly >= 0: squares, absolute values, and their sums and products."""
    if node.op in ("abs", "exp", "sqrt", "number", "pi"):
        return True
    if node.op in ("+", "*", "/", "min"):
        same = node.op in ("*", "/") and node.args[0] == node.args[1]
        return same or all(never_negative(a) for a in node.args)
    if node.op == "**":
        power = _whole_power(node)
        return (power is not None and power % 2 == 0) or never_negative(node.args[0])
    if node.op == "sum":
        return never_negative(node.args[0])
    return False
