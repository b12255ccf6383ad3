"""What a formula's parts mean to the checker: an expansion of the value and of ln|value|, on one domain of distances.

Each operation makes sure that it is defined on the whole domain, or raises UnknownError. The logarithm of a product is
the sum of the logarithms, so that what stands on both sides of a claim cancels exactly. A factor that touches 0 again
and again, such as cos(t), has no bound for its logarithm; it is kept by name in `waves` with its exponent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

from flint import arb, fmpq

from farfield.formula import Formula, Node, number
from farfield.formula.functions import WAVES, reading
from farfield.formula.tree import substitute
from farfield.theory.checker import constants, special
from farfield.theory.checker.constants import MINUS, ONE, Constant, UnknownError, rational, sign
from farfield.theory.checker.expansions import (
    NULL,
    Calculus,
    Expansion,
    add,
    between,
    constant,
    negative,
    scale,
)
from farfield.theory.checker.intervals import UNIT_WAVE, Interval, exactly, span
from farfield.theory.checker.monomials import UNIT, T, compare


@dataclass(frozen=True)
class Size:
    """ln|value|: an expansion, and factors that may vanish, each with its exponent."""

    log: Expansion
    waves: dict[Node, Constant] = field(default_factory=dict)

    def plus(self, other: Size, times: Constant = ONE) -> Size:
        """The size of a product with a power of another."""
        waves = dict(self.waves)
        for node, e in other.waves.items():
            total = waves.pop(node, constants.ZERO) + e * times
            if sign(total):
                waves[node] = total
        return Size(add(self.log, scale(other.log, UNIT, times)), waves)


class NothingType:
    """Minus infinity, the bias of a distance that is not seen."""


NOTHING = NothingType()
Value = Expansion | NothingType


class Choices:
    """Which argument counts in parts that are one of two (where, max, min), where the domain does not decide it.

    What is `decided` is assumed, with what follows for the waves of its condition; other such parts are gathered in
    `open` and read as anything between the two.
    """

    def __init__(self, decided: dict[Node, int] | None = None, waves: dict[Node, Interval] | None = None):
        self.decided, self.waves = decided or {}, waves or {}
        self.open: list[Node] = []

    def of(self, node: Node) -> int | None:
        """The argument that is assumed to count, or None."""
        result = self.decided.get(node)
        if result is None:
            self.open.append(node)
        return result

    def split(self, node: Node) -> list[Choices]:
        """Both possibilities for one part."""
        return [Choices({**self.decided, node: i}, _narrowed(self.waves, node, i == 0)) for i in range(2)]


def _narrowed(waves: dict[Node, Interval], node: Node, holds: bool) -> dict[Node, Interval]:
    """What a condition such as sin(t) < 1/2 says of its wave if it holds, or does not."""
    if node.op != "where":
        return waves
    wave, bound = node.args[:2]
    below = (node.value in ("<", "<=")) == holds
    if bound.op in WAVES:
        wave, bound, below = bound, wave, not below
    if wave.op not in WAVES or "t" in bound.free():
        return waves
    limit = span(Formula(bound).ball(arb(0)))
    known = waves.get(wave, UNIT_WAVE)
    side = Interval(arb(-1), limit.high.max(arb(-1))) if below else Interval(limit.low.min(arb(1)), arb(1))
    return {**waves, wave: known.meet(side)}


class Reading:
    """The parts of one formula on one domain."""

    def __init__(self, calculus: Calculus, choices: Choices | None = None, by_logarithms: bool = False):
        self.calculus = calculus
        self.choices = Choices() if choices is None else choices
        self.by_logarithms = by_logarithms  # sums of weights are seen by the logarithms of their parts
        self._values: dict[int, Value] = {}
        self._kept: list[Node] = []

    # ------------------------------------------------------------------------------------------------ values
    def value(self, node: Node) -> Expansion:
        """The value of a part that is finite everywhere."""
        result = self.value_or_nothing(node)
        if isinstance(result, NothingType):
            raise UnknownError("-inf inside a formula")
        return result

    def value_or_nothing(self, node: Node) -> Value:
        """The value of a part, or NOTHING for -inf."""
        result = self._values.get(id(node))
        if result is None:
            self.calculus.effort.spend(1)
            result = _VALUES[node.op](self, node)
            if node.args and "t" not in node.free():
                result = _simplified(result)
            self._values[id(node)] = result
            self._kept.append(node)
        return result

    def values(self, node: Node) -> list[Expansion]:
        """The values of a part's arguments."""
        return [self.value(a) for a in node.args]

    # ------------------------------------------------------------------------------------------------ signs and sizes
    def sign(self, node: Node) -> int:
        """1 or -1 where the part has this sign on the whole domain; UnknownError otherwise."""
        if node.op in _SIGNS:
            try:
                return _SIGNS[node.op](self, node)
            except UnknownError:
                pass
        result = self.calculus.sign(self.value(node))
        if result is None or result == 0:
            raise UnknownError("the sign of a part")
        return result

    def not_negative(self, node: Node) -> bool:
        """Whether a part is shown to have a value on the whole domain that is at least 0."""
        rule = _NOT_NEGATIVE.get(node.op)
        with contextlib.suppress(UnknownError):
            if rule is not None and rule(self, node):
                return True
        with contextlib.suppress(UnknownError):
            if self.calculus.never_negative(self.value(node)):
                return True
        return self.sign(node) == 1

    def size(self, node: Node) -> Size:
        """ln|value|, wherever the value is not 0; it may be 0 only where a wave of the result is."""
        special = _SIZES.get(node.op)
        if special is not None:
            try:
                return special(self, node)
            except UnknownError:
                pass
        f = self.value(node)
        side = self.calculus.sign(f)
        if side in (1, -1):
            return Size(self.calculus.log(f if side == 1 else negative(f)))
        if not f or not any(n.op in ("sin", "cos") for n in node.walk()):
            raise UnknownError("the size of a part that may be 0")
        return Size(NULL, {node: ONE})

    def size_without_waves(self, node: Node) -> Size:
        """The same for a part that is never 0."""
        size = self.size(node)
        if size.waves:
            raise UnknownError("a part that may be 0")
        return size

    def log(self, node: Node) -> Expansion:
        """The logarithm of a part that is positive."""
        if self.sign(node) != 1:
            raise UnknownError("a logarithm of something that is not positive")
        size = self.size(node)
        return self.calculus.log(self.value(node)) if size.waves else size.log

    def wave_range(self, node: Node) -> Interval:
        """The range of |wave|."""
        return self.calculus.range(self.value(node)).abs()


# ------------------------------------------------------------------------------------------------ the table of values
def _name(r: Reading, node: Node) -> Value:
    if node.value != "t":
        raise UnknownError(f"the name {node.value}")
    return ((T, ONE),)


def _simplified(value: Value) -> Value:
    """A constant in its simplest form."""
    if not isinstance(value, NothingType) and len(value) == 1 and isinstance(value[0][1], Constant):
        return ((value[0][0], constants.simplified(value[0][1])),)
    return value


def _number(r: Reading, node: Node) -> Value:
    return constant(rational(node.value))


def _plus(r: Reading, node: Node) -> Value:
    left, right = (r.value_or_nothing(a) for a in node.args)
    if isinstance(left, NothingType) or isinstance(right, NothingType):
        return NOTHING
    return r.calculus.tidy(add(left, right))


def _minus(r: Reading, node: Node) -> Value:
    left, right = r.value_or_nothing(node.args[0]), r.value(node.args[1])
    return NOTHING if isinstance(left, NothingType) else r.calculus.tidy(add(left, negative(right)))


def _times(r: Reading, node: Node) -> Value:
    f, g = r.values(node)
    return r.calculus.power(f, rational(2)) if node.args[0] == node.args[1] else r.calculus.multiply(f, g)


def _over(r: Reading, node: Node) -> Value:
    f, g = r.values(node)
    return r.calculus.multiply(f, r.calculus.inverse(g))


def _exponent(r: Reading, node: Node) -> Constant | None:
    """An exponent that does not depend on the distance."""
    f = r.value(node)
    if not f:
        return constants.ZERO
    return f[0][1] if len(f) == 1 and f[0][0] == UNIT and isinstance(f[0][1], Constant) else None


def _power(r: Reading, node: Node) -> Value:
    base, e = node.args[0], _exponent(r, node.args[1])
    if e is None:
        return r.calculus.exp(r.calculus.multiply(r.value(node.args[1]), r.log(base)))
    f = r.value(base)
    if e.rational is not None and e.rational.q == 1:
        return r.calculus.power(f, e)
    try:
        return r.calculus.power(f, e)
    except UnknownError:
        return r.calculus.exp(scale(r.log(base), UNIT, e))


def _exp(r: Reading, node: Node) -> Value:
    f = r.value_or_nothing(node.args[0])
    return NULL if isinstance(f, NothingType) else r.calculus.exp(f)


def _log(r: Reading, node: Node) -> Value:
    return r.log(node.args[0])


def _sqrt(r: Reading, node: Node) -> Value:
    return r.calculus.power(r.value(node.args[0]), rational(fmpq(1, 2)))


def _wave(r: Reading, node: Node) -> Value:
    f = r.calculus.wave(r.value(node.args[0]), node.op)
    known = r.choices.waves.get(node)
    return f if known is None else constant(r.calculus.range(f).meet(known))


def _log_gamma(r: Reading, node: Node) -> Expansion:
    return special.log_gamma(r.calculus, r.value(node.args[0]), r.log(node.args[0]))


def _gamma(r: Reading, node: Node) -> Value:
    f = r.value(node.args[0])
    if f and compare(f[0][0], UNIT) > 0:
        return r.calculus.exp(_log_gamma(r, node))
    return special.gamma_near(r.calculus, f)


def _max(r: Reading, node: Node) -> Value:
    left, right = (r.value_or_nothing(a) for a in node.args)
    if isinstance(left, NothingType) or isinstance(right, NothingType):
        return right if isinstance(left, NothingType) else left
    return _larger(r, node, left, right)


def _larger(r: Reading, node: Node, left: Expansion, right: Expansion) -> Expansion:
    """The larger of two values, or the one that is assumed to count."""
    if r.calculus.larger_of(left, right) is not None:
        return r.calculus.larger(left, right)
    chosen = r.choices.of(node)
    return r.calculus.larger(left, right) if chosen is None else (left, right)[chosen]


def _min(r: Reading, node: Node) -> Value:
    left, right = (r.value_or_nothing(a) for a in node.args)
    if isinstance(left, NothingType) or isinstance(right, NothingType):
        return NOTHING
    return negative(_larger(r, node, negative(left), negative(right)))


def branch(r: Reading, node: Node) -> bool | None:
    """Whether the condition of a where holds on the whole domain (True), nowhere (False), or is open (None)."""
    left, right = (r.value(a) for a in node.args[:2])
    below = node.value in ("<", "<=")
    gap = add(right, negative(left)) if below else add(left, negative(right))
    if node.value in ("<", ">"):
        if r.calculus.sign(gap) == 1:
            return True
        if r.calculus.never_negative(negative(gap)):
            return False
    else:
        if r.calculus.never_negative(gap):
            return True
        if r.calculus.sign(gap) == -1:
            return False
    chosen = r.choices.of(node)
    return None if chosen is None else chosen == 0


def _between(r: Reading, node: Node) -> Value:
    """A value that is only known within its bounds (members.py tells them apart)."""
    return between(*r.values(node))


def _where(r: Reading, node: Node) -> Value:
    chosen = branch(r, node)
    if chosen is not None:
        return r.value_or_nothing(node.args[2 if chosen else 3])
    return between(r.value(node.args[2]), r.value(node.args[3]))


def _sum(r: Reading, node: Node) -> Value:
    body, *bounds = node.args
    ends = []
    for bound in bounds:
        e = _exponent(r, bound)
        if e is None or e.rational is None or e.rational.q != 1:
            raise UnknownError("the bounds of a sum")
        ends.append(int(e.rational.p))
    total: Expansion = NULL
    for j in range(ends[0], ends[1] + 1):
        total = r.calculus.tidy(add(total, r.value(substitute(body, {str(node.value): number(j)}))))
    return total


def _nothing(r: Reading, node: Node) -> Value:
    return NOTHING


_RULES: dict[str, Callable[[Reading, Node], Value]] = {
    "name": _name,
    "number": _number,
    "pi": lambda r, node: constant(constants.pi()),
    "-inf": _nothing,
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _over,
    "neg": lambda r, node: negative(r.value(node.args[0])),
    "**": _power,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "sin": _wave,
    "cos": _wave,
    "abs": lambda r, node: r.calculus.abs(r.value(node.args[0])),
    "floor": lambda r, node: r.calculus.floor(r.value(node.args[0])),
    "atan": lambda r, node: special.atan(r.calculus, r.value(node.args[0])),
    "erf": lambda r, node: special.erf(r.calculus, r.value(node.args[0])),
    "gamma": _gamma,
    "min": _min,
    "max": _max,
    "where": _where,
    "between": _between,
    "sum": _sum,
}
_VALUES = reading("checker: expansions", _RULES, more=("name", "number", "pi", "-inf", "where", "sum", "between"))


# ------------------------------------------------------------------------------------------------ the table of signs
def _sign_of_root(r: Reading, node: Node) -> int:
    """The sign of a power or a root of something positive."""
    if r.sign(node.args[0]) != 1:
        raise UnknownError("a root of something that may be negative")
    for exponent in node.args[1:]:
        r.value(exponent)
    return 1


def _sign_of_exp(r: Reading, node: Node) -> int:
    r.value(node.args[0])
    return 1


def _sign_of_sum(r: Reading, node: Node) -> int:
    left, right = (r.sign(a) for a in node.args)
    if left != right:
        raise UnknownError("left to the value")
    return left


_SIGNS: dict[str, Callable[[Reading, Node], int]] = {
    "exp": _sign_of_exp,
    "+": _sign_of_sum,
    "*": lambda r, node: r.sign(node.args[0]) * r.sign(node.args[1]),
    "/": lambda r, node: r.sign(node.args[0]) * r.sign(node.args[1]),
    "neg": lambda r, node: -r.sign(node.args[0]),
    "sqrt": _sign_of_root,
    "**": _sign_of_root,
    "gamma": _sign_of_root,
    **dict.fromkeys(("atan", "erf"), lambda r, node: r.sign(node.args[0])),
}


def _even_power(r: Reading, node: Node) -> bool:
    e = _exponent(r, node.args[1])
    if e is not None and e.rational is not None and e.rational.q == 1 and e.rational >= 0 and e.rational.p % 2 == 0:
        r.value(node.args[0])
        return True
    return e is not None and sign(e) >= 0 and r.not_negative(node.args[0])


def _has_value(r: Reading, node: Node) -> bool:
    r.value_or_nothing(node)
    return True


_NOT_NEGATIVE: dict[str, Callable[[Reading, Node], bool]] = {
    "abs": _has_value,
    "exp": _has_value,
    "sqrt": lambda r, node: r.not_negative(node.args[0]),
    "+": lambda r, node: all(r.not_negative(a) for a in node.args),
    "*": lambda r, node: all(r.not_negative(a) for a in node.args),
    "/": lambda r, node: r.not_negative(node.args[0]) and r.sign(node.args[1]) == 1,
    **dict.fromkeys(("min", "atan", "erf"), lambda r, node: all(r.not_negative(a) for a in node.args)),
    "**": _even_power,
}


# ------------------------------------------------------------------------------------------------ the table of sizes
def _size_of_power(r: Reading, node: Node) -> Size:
    base, e = node.args[0], _exponent(r, node.args[1])
    if e is None:
        return Size(r.calculus.multiply(r.value(node.args[1]), r.log(base)))
    if not (e.rational is not None and e.rational.q == 1) and not r.not_negative(base):
        raise UnknownError("a real power of something that may be negative")
    return Size(NULL).plus(r.size(base) if sign(e) > 0 else r.size_without_waves(base), e)


def _size_of_root(r: Reading, node: Node) -> Size:
    if not r.not_negative(node.args[0]):
        raise UnknownError("a root of something that may be negative")
    return Size(NULL).plus(r.size(node.args[0]), rational(fmpq(1, 2)))


def _size_of_where(r: Reading, node: Node) -> Size:
    chosen = branch(r, node)
    if chosen is not None:
        return r.size(node.args[2 if chosen else 3])
    a, b = (r.size(n) for n in node.args[2:])
    if a.waves or b.waves:
        raise UnknownError("a factor that touches 0 in a branch")
    return Size(between(a.log, b.log))


def _size_of_sum(r: Reading, node: Node) -> Size:
    """ln(x + y) of positive parts by their logarithms: the larger, and ln(1 + smaller/larger)."""
    if not r.by_logarithms and not _is_wide(r, node):
        raise UnknownError("left to the value")
    if any(r.sign(a) != 1 for a in node.args):
        raise UnknownError("the sign of a summand")
    left, right = (r.log(a) for a in node.args)
    smaller_over_larger = negative(r.calculus.abs(add(left, negative(right))))
    most = (exactly(1) + r.calculus.range(smaller_over_larger).exp()).log().high.min(exactly(2).log().high)
    return Size(add(r.calculus.larger(left, right), constant(Interval(arb(0), most))))


def _is_wide(r: Reading, node: Node) -> bool:
    """Whether the value of a part says nothing of its size."""
    with contextlib.suppress(UnknownError):
        f = r.value(node)
        return not f or (isinstance(f[0][1], Interval) and f[0][1].contains_zero())
    return True


def _size_of_choice(r: Reading, node: Node) -> Size:
    """max or min of positive parts."""
    if any(r.sign(a) != 1 for a in node.args):
        raise UnknownError("the sign of a part")
    left, right = (r.log(a) for a in node.args)
    if node.op == "max":
        return Size(_larger(r, node, left, right))
    return Size(negative(_larger(r, node, negative(left), negative(right))))


_SIZES: dict[str, Callable[[Reading, Node], Size]] = {
    "exp": lambda r, node: Size(r.value(node.args[0])),
    "gamma": lambda r, node: Size(_log_gamma(r, node)),
    "*": lambda r, node: r.size(node.args[0]).plus(r.size(node.args[1])),
    "/": lambda r, node: r.size(node.args[0]).plus(r.size_without_waves(node.args[1]), MINUS),
    "neg": lambda r, node: r.size(node.args[0]),
    "abs": lambda r, node: r.size(node.args[0]),
    "sqrt": _size_of_root,
    "**": _size_of_power,
    "+": _size_of_sum,
    "where": _size_of_where,
    "max": _size_of_choice,
    "min": _size_of_choice,
}
