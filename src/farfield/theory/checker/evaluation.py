"""What a formula's parts mean to the checker: an expansion of the value and of ln|value|, on one domain of distances.

Each operation makes sure that it is defined on the whole domain, or raises UnknownError. The logarithm of a product is
the sum of the logarithms, so that what stands on both sides of a claim cancels exactly. A factor that touches 0 again
and again, such as cos(t), has no bound for its logarithm; it is kept by name in `waves` with its exponent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb, fmpq

from farfield.formula import Formula, Node, number
from farfield.formula.functions import WAVES, rule_table
from farfield.formula.tree import substitute
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
from farfield.theory.checker.monomials import UNIT, T
from farfield.theory.errors import UnknownError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import MINUS, ONE, Constant, rational, sign
from farfield.theory.exact.intervals import UNIT_WAVE, Interval, exactly, span
from farfield.theory.exact.spreads import Spread


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


Value = Expansion | None  # None is minus infinity, the bias of a distance that is not seen


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
        return [Choices({**self.decided, node: i}, _narrow(self.waves, node, i == 0)) for i in range(2)]


def _narrow(waves: dict[Node, Interval], node: Node, holds: bool) -> dict[Node, Interval]:
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
    side = Interval(arb(-1), limit.high.max(arb(-1))) if below else Interval(limit.low.min(arb(1)), arb(1))
    return {**waves, wave: waves.get(wave, UNIT_WAVE).meet(side)}


class Evaluator:
    """The parts of one formula on one domain."""

    def __init__(
        self,
        calculus: Calculus,
        choices: Choices | None = None,
        by_logarithms: bool = False,
        parameters: Mapping[str, Constant] | None = None,
    ):
        self.calculus = calculus
        self.choices = Choices() if choices is None else choices
        self.parameters = parameters or {}
        self.by_logarithms = by_logarithms  # sums of weights are seen by the logarithms of their parts
        self._values: dict[Node, Value] = {}

    # ------------------------------------------------------------------------------------------------ values
    def value(self, node: Node) -> Expansion:
        """The value of a part that is finite everywhere."""
        result = self.value_or_none(node)
        if result is None:
            raise UnknownError("-inf inside a formula")
        return result

    def value_or_none(self, node: Node) -> Value:
        """The value of a part, or None for -inf."""
        if node not in self._values:
            self.calculus.effort.spend(1)
            result = _VALUES[node.op](self, node)
            if node.args and "t" not in node.free():
                result = _simplify(result)
            self._values[node] = result
        return self._values[node]

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
def _name(r: Evaluator, node: Node) -> Value:
    if node.value == "t":
        return ((T, ONE),)
    if node.value not in r.parameters:
        raise UnknownError(f"the name {node.value}")
    return constant(r.parameters[str(node.value)])


def _number(r: Evaluator, node: Node) -> Value:
    assert isinstance(node.value, Fraction)
    return constant(rational(node.value))


def _simplify(value: Value) -> Value:
    """A constant in its simplest form."""
    if value is not None and len(value) == 1 and isinstance(value[0][1], Constant):
        return ((value[0][0], constants.simplify(value[0][1])),)
    return value


def _plus(r: Evaluator, node: Node) -> Value:
    left, right = (r.value_or_none(a) for a in node.args)
    return None if left is None or right is None else r.calculus.tidy(add(left, right))


def _minus(r: Evaluator, node: Node) -> Value:
    left, right = r.value_or_none(node.args[0]), r.value(node.args[1])
    return None if left is None else r.calculus.tidy(add(left, negative(right)))


def _times(r: Evaluator, node: Node) -> Value:
    f, g = (r.value(a) for a in node.args)
    return r.calculus.power(f, rational(2)) if node.args[0] == node.args[1] else r.calculus.multiply(f, g)


def _over(r: Evaluator, node: Node) -> Value:
    f, g = (r.value(a) for a in node.args)
    return r.calculus.multiply(f, r.calculus.inverse(g))


def _exponent(r: Evaluator, node: Node) -> Constant | None:
    """An exponent that does not depend on the distance."""
    f = r.value(node)
    if not f:
        return constants.ZERO
    return f[0][1] if len(f) == 1 and f[0][0] == UNIT and isinstance(f[0][1], Constant) else None


def _power(r: Evaluator, node: Node) -> Value:
    base, e = node.args[0], _exponent(r, node.args[1])
    if e is None:
        side = r.calculus.sign(r.value(base)) if r.parameters else 1
        if side == 0 and r.sign(node.args[1]) == 1:
            return NULL
        return r.calculus.exp(r.calculus.multiply(r.value(node.args[1]), r.log(base)))
    f = r.value(base)
    if e.region is not None and r.calculus.sign(f) == -1:
        return _power_of_negative(r, f, e)
    if e.rational is not None and e.rational.q == 1:
        return r.calculus.power(f, e)
    try:
        return r.calculus.power(f, e)
    except UnknownError:
        return r.calculus.exp(scale(r.log(base), UNIT, e))


def _power_of_negative(r: Evaluator, f: Expansion, e: Constant) -> Expansion:
    """A power of something negative, whose exponent has parameters: it must be whole, and even or odd."""
    if sign(e - constants.floor(e)):
        raise UnknownError("a real power of something negative")
    odd = sign(e - constants.floor(e * rational(fmpq(1, 2))) * rational(2))
    size = r.calculus.exp(scale(r.calculus.log(negative(f)), UNIT, e))
    return negative(size) if odd else size


def _exp(r: Evaluator, node: Node) -> Value:
    f = r.value_or_none(node.args[0])
    return NULL if f is None else r.calculus.exp(f)


def _wave(r: Evaluator, node: Node) -> Value:
    f = r.calculus.wave(r.value(node.args[0]), node.op)
    side = r.choices.waves.get(node)
    return f if side is None else constant(r.calculus.range(f).meet(side))


def _max(r: Evaluator, node: Node) -> Value:
    left, right = (r.value_or_none(a) for a in node.args)
    if left is None or right is None:
        return right if left is None else left
    return _larger(r, node, left, right)


def _larger(r: Evaluator, node: Node, left: Expansion, right: Expansion) -> Expansion:
    """The larger of two values, or the one that is assumed to count."""
    if r.calculus.larger_of(left, right) is not None:
        return r.calculus.larger(left, right)
    chosen = r.choices.of(node)
    return r.calculus.larger(left, right) if chosen is None else (left, right)[chosen]


def _min(r: Evaluator, node: Node) -> Value:
    left, right = (r.value_or_none(a) for a in node.args)
    if left is None or right is None:
        return None
    return negative(_larger(r, node, negative(left), negative(right)))


def branch(r: Evaluator, node: Node) -> bool | None:
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


def _where(r: Evaluator, node: Node) -> Value:
    chosen = branch(r, node)
    if chosen is not None:
        return r.value_or_none(node.args[2 if chosen else 3])
    return between(r.value(node.args[2]), r.value(node.args[3]))


def _sum(r: Evaluator, node: Node) -> Value:
    body, *bounds = node.args
    ends = []
    for bound in bounds:
        e = _exponent(r, bound)
        if e is None or (e.rational is None and e.region is None) or (e.rational is not None and e.rational.q != 1):
            raise UnknownError("the bounds of a sum")
        ends.append(e)
    if any(e.rational is None for e in ends):
        return _open_sum(r, node, ends[1] - ends[0] + ONE)
    total: Expansion = NULL
    first, last = (int(e.rational.p) for e in ends if e.rational is not None)
    for j in range(first, last + 1):
        total = r.calculus.tidy(add(total, r.value(substitute(body, {str(node.value): number(j)}))))
    return total


def _open_sum(r: Evaluator, node: Node, count: Constant) -> Value:
    """A sum whose number of terms has parameters, if all terms lie in one interval."""
    index = f"{node.value}'"
    assert count.region is not None
    body = substitute(node.args[0], {str(node.value): Node("name", (), index)})
    f = Evaluator(r.calculus, r.choices, parameters={**r.parameters, index: count.region.parameter(index)}).value(body)
    if len(f) != 1 or f[0][0] != UNIT or type(f[0][1]) is not Interval:
        raise UnknownError("a sum with open bounds of terms that are not merely bounded")
    return NULL if sign(count) <= 0 else constant(f[0][1] * Spread.of(count))


_VALUES: dict[str, Callable[[Evaluator, Node], Value]] = rule_table("checker: expansions", {
    "name": _name,
    "number": _number,
    "pi": lambda r, node: constant(constants.pi()),
    "-inf": lambda r, node: None,
    "+": _plus,
    "-": _minus,
    "*": _times,
    "/": _over,
    "neg": lambda r, node: negative(r.value(node.args[0])),
    "**": _power,
    "exp": _exp,
    "log": lambda r, node: r.log(node.args[0]),
    "sqrt": lambda r, node: r.calculus.power(r.value(node.args[0]), rational(fmpq(1, 2))),
    "sin": _wave,
    "cos": _wave,
    "abs": lambda r, node: r.calculus.abs(r.value(node.args[0])),
    "floor": lambda r, node: r.calculus.floor(r.value(node.args[0])),
    "min": _min,
    "max": _max,
    "where": _where,
    "sum": _sum,
}, ("name", "number", "pi", "-inf", "where", "sum"))  # fmt: skip


# ------------------------------------------------------------------------------------------------ the table of signs
def _sign_of_root(r: Evaluator, node: Node) -> int:
    """The sign of a power or a root of something positive."""
    if r.sign(node.args[0]) != 1:
        raise UnknownError("a root of something that may be negative")
    for exponent in node.args[1:]:
        r.value(exponent)
    return 1


def _sign_of_exp(r: Evaluator, node: Node) -> int:
    r.value(node.args[0])
    return 1


def _sign_of_sum(r: Evaluator, node: Node) -> int:
    left, right = (r.sign(a) for a in node.args)
    if left != right:
        raise UnknownError("left to the value")
    return left


_SIGNS: dict[str, Callable[[Evaluator, Node], int]] = {
    "exp": _sign_of_exp,
    "+": _sign_of_sum,
    "*": lambda r, node: r.sign(node.args[0]) * r.sign(node.args[1]),
    "/": lambda r, node: r.sign(node.args[0]) * r.sign(node.args[1]),
    "neg": lambda r, node: -r.sign(node.args[0]),
    "sqrt": _sign_of_root,
    "**": _sign_of_root,
}


def _even_power(r: Evaluator, node: Node) -> bool:
    e = _exponent(r, node.args[1])
    if e is not None and e.rational is not None and e.rational.q == 1 and e.rational >= 0 and e.rational.p % 2 == 0:
        r.value(node.args[0])
        return True
    return e is not None and sign(e) >= 0 and r.not_negative(node.args[0])


def _has_value(r: Evaluator, node: Node) -> bool:
    r.value_or_none(node)
    return True


_NOT_NEGATIVE: dict[str, Callable[[Evaluator, Node], bool]] = {
    "abs": _has_value,
    "exp": _has_value,
    "sqrt": lambda r, node: r.not_negative(node.args[0]),
    "+": lambda r, node: all(r.not_negative(a) for a in node.args),
    "*": lambda r, node: all(r.not_negative(a) for a in node.args),
    "/": lambda r, node: r.not_negative(node.args[0]) and r.sign(node.args[1]) == 1,
    "min": lambda r, node: all(r.not_negative(a) for a in node.args),
    "**": _even_power,
}


# ------------------------------------------------------------------------------------------------ the table of sizes
def _size_of_power(r: Evaluator, node: Node) -> Size:
    base, e = node.args[0], _exponent(r, node.args[1])
    if e is None:
        return Size(r.calculus.multiply(r.value(node.args[1]), r.log(base)))
    if not (e.rational is not None and e.rational.q == 1) and not r.not_negative(base):
        raise UnknownError("a real power of something that may be negative")
    return Size(NULL).plus(r.size(base) if sign(e) > 0 else r.size_without_waves(base), e)


def _size_of_root(r: Evaluator, node: Node) -> Size:
    if not r.not_negative(node.args[0]):
        raise UnknownError("a root of something that may be negative")
    return Size(NULL).plus(r.size(node.args[0]), rational(fmpq(1, 2)))


def _size_of_where(r: Evaluator, node: Node) -> Size:
    chosen = branch(r, node)
    if chosen is not None:
        return r.size(node.args[2 if chosen else 3])
    a, b = (r.size(n) for n in node.args[2:])
    if a.waves or b.waves:
        raise UnknownError("a factor that touches 0 in a branch")
    return Size(between(a.log, b.log))


def _size_of_sum(r: Evaluator, node: Node) -> Size:
    """ln(x + y) of positive parts by their logarithms: the larger, and ln(1 + smaller/larger)."""
    if not r.by_logarithms and not _is_wide(r, node):
        raise UnknownError("left to the value")
    if any(r.sign(a) != 1 for a in node.args):
        raise UnknownError("the sign of a summand")
    left, right = (r.log(a) for a in node.args)
    smaller_over_larger = negative(r.calculus.abs(add(left, negative(right))))
    most = exactly(2).log().meet((exactly(1) + r.calculus.range(smaller_over_larger).exp()).log())
    return Size(add(r.calculus.larger(left, right), constant(Interval(arb(0), most.high))))


def _is_wide(r: Evaluator, node: Node) -> bool:
    """Whether the value of a part says nothing of its size."""
    with contextlib.suppress(UnknownError):
        f = r.value(node)
        return not f or (not isinstance(f[0][1], Constant) and f[0][1].contains_zero())
    return True


def _size_of_choice(r: Evaluator, node: Node) -> Size:
    """max or min of positive parts."""
    if any(r.sign(a) != 1 for a in node.args):
        raise UnknownError("the sign of a part")
    left, right = (r.log(a) for a in node.args)
    if node.op == "max":
        return Size(_larger(r, node, left, right))
    return Size(negative(_larger(r, node, negative(left), negative(right))))


_SIZES: dict[str, Callable[[Evaluator, Node], Size]] = {
    "exp": lambda r, node: Size(r.value(node.args[0])),
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
