"""Step functions: a weight that depends on t only through floor(g(t)) is constant on blocks, and summed by blocks."""

from __future__ import annotations

from typing import Any

from flint import arb, ctx, fmpz

from farfield.formula import Formula, Node
from farfield.theory.errors import UndecidedError
from farfield.theory.sums.branches import direction, sign_at
from farfield.theory.sums.closed import Series
from farfield.theory.sums.evaluation import Weight, compiled
from farfield.theory.sums.panels import _LOW, Far

_MOST_BLOCKS = 20_000


def step_of(formula: Formula) -> Node | None:
    """The inner function g if t occurs only inside floor(g(t)) with one rising g; else None."""
    floors = {n for n in formula.node.walk() if n.op == "floor" and n.free()}
    if len(floors) != 1:
        return None
    (floor,) = floors

    def outside(node: Node) -> bool:
        if node == floor:
            return False
        return node.value == "t" if node.op == "name" else any(outside(a) for a in node.args)

    return None if outside(formula.node) else floor.args[0]


class Blocks(Series):
    """b(t) = f(floor(g(t))) for a rising g: the sum of (length of the block) * (its weight)."""

    method = "sum over the blocks of a step function"

    def __init__(self, weight: Weight, start: int, inner: Node, far: Far):
        super().__init__(weight, start)
        self.inner, self._far = inner, far
        self._edges = [start]  # the first distance of each block
        self._tails: dict[int, tuple[list[Any], Any]] = {}
        if direction(inner, start) != 1:
            raise UndecidedError("the steps of the formula do not rise")

    def _level(self, t: int) -> int:
        """floor(g(t)), exactly."""
        for bits in (64, 1024, 1 << 14):  # a large value, such as t**1000, has many digits
            with ctx.workprec(bits + t.bit_length()):
                value = compiled(self.inner)(arb(fmpz(t)), False)
                whole = value.floor().unique_fmpz()
                nearest = (value.mid() + arb("0.5")).floor().unique_fmpz() if value.rad() < 0.25 else None
            if whole is not None:
                return int(whole)
            if nearest is not None:
                near = int(nearest)
                return near if sign_at(Node("-", (self.inner, _whole(near))), t) >= 0 else near - 1
        raise UndecidedError("the steps of the formula are too large to be told apart")

    def _next_edge(self, edge: int) -> int:
        level = self._level(edge)
        low, step = edge, max(1, edge - self._edges[-2] if len(self._edges) > 1 else 1)
        while self._level(low + step) == level:
            low, step = low + step, 2 * step
            if low.bit_length() > 4096:
                raise UndecidedError("a step of the formula has no end that could be found")
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._level(middle) == level else (low, middle)
        return high

    def _prepare(self) -> tuple[list[Any], Any]:
        if ctx.prec in self._tails:
            return self._tails[ctx.prec]
        small = self.weight(self.start).abs_upper() * arb(2) ** -ctx.prec
        checked = 1
        while True:
            if len(self._edges) >= checked and self._edges[-1] >= 2:  # the bound is one of distances from 2 on
                with ctx.workprec(_LOW):
                    rest = self._far(arb(fmpz(self._edges[-1])).log())
                if rest is not None and rest <= small:
                    break
                checked = len(self._edges) + 1 + len(self._edges) // 8
            if len(self._edges) > _MOST_BLOCKS:
                raise UndecidedError(f"the sum needs more than {_MOST_BLOCKS} blocks")
            self._edges.append(self._next_edge(self._edges[-1]))
        tails = [arb(0).union(rest)]
        for low, high in zip(self._edges[-2::-1], self._edges[:0:-1], strict=True):
            tails.append(tails[-1] + self.weight(low) * arb(fmpz(high - low)))
        self._tails[ctx.prec] = (tails[::-1], rest)
        return self._tails[ctx.prec]

    def _tail(self, j: int) -> Any:
        import bisect

        tails, rest = self._prepare()
        edges = self._edges[: len(tails)]
        place = bisect.bisect_right(edges, j) - 1
        if place + 1 >= len(edges):
            return arb(0).union(rest)
        return tails[place + 1] + self.weight(edges[place]) * arb(fmpz(edges[place + 1] - j))


def _whole(n: int) -> Node:
    from farfield.formula import number

    return number(n)
