"""Oscillation across the border: the waves of a formula set to their extremes.

If b(t) is monotone in a bounded wave, it lies between what it would be with the wave held at its lowest and at its
highest value. Held still, the formula no longer oscillates; if it converges at every corner of the box of extremes,
so does the series, and the same for divergence. (Of finitely many functions on the logarithmic scale one is
eventually the largest and one the smallest.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product

from farfield.formula import Formula, Node, build, number
from farfield.formula.algebras import exact_value
from farfield.formula.functions import WAVES, reading
from farfield.formula.sentence import Sentence, joined
from farfield.theory.budget import Work
from farfield.theory.errors import MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.verdict.engines import Asymptotic
from farfield.theory.verdict.monomials import UNIT
from farfield.theory.verdict.reader import Reader
from farfield.theory.verdict.regions import Region

MAX_WAVES = 3


def corners(formula: Formula, work: Work) -> Iterator[tuple[Sentence, Formula]]:
    """The formula with every wave at one of its extremes, and how to say so; nothing if that bounds nothing."""
    reader = Reader(Asymptotic(Region(), 3, work))
    waves = list(_waves(reader, formula.node, ()))
    if not 0 < len(waves) <= MAX_WAVES:
        return
    for ends in product(*(range(2) for _ in waves)):
        node, said = formula.node, []
        for (path, extremes), end in zip(waves, ends, strict=True):
            said.append(build.relation(_at(formula.node, path), "=", build.fraction(extremes[end])))
            node = _put(node, path, number(extremes[end]))
        yield joined(said, " and "), replace(formula, node=node, source="")


def _waves(
    reader: Reader, node: Node, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[Fraction, Fraction]]]:
    """The largest bounded waves below a node, each with its place and its extremes."""
    if not any(n.op in WAVES and "t" in n.free() for n in node.walk()):
        return
    extremes = _extremes(reader, node)
    if extremes is not None:
        yield path, extremes
        return
    for i, arg in enumerate(node.args):
        if any(n.op in WAVES and "t" in n.free() for n in arg.walk()):
            if not _MONOTONE[node.op](reader, node, i):
                raise UndecidedError("an oscillation in which the weight is not monotone")
            yield from _waves(reader, arg, (*path, i))


def _extremes(reader: Reader, node: Node) -> tuple[Fraction, Fraction] | None:
    """The bounds of a part that oscillates without growing."""
    try:
        s = reader.expand(node)
    except (UndecidedError, UndefinedError, MoreTermsError):
        return None
    if s.terms or s.rest is None or s.rest[0] != UNIT or s.rest[1] is None:
        return None
    low, high = (c.rational for c in s.rest[1])
    return None if low is None or high is None else (low, high)


def _power_is_monotone(reader: Reader, node: Node, i: int) -> bool:
    whole = exact_value(node.args[1], {})
    odd = whole is not None and whole.denominator == 1 and whole % 2 == 1 and whole > 0
    return odd or reader.sign(node.args[0]) > 0


_MONOTONE: dict[str, Callable[[Reader, Node, int], bool]] = reading("monotone in an argument, the others held", {
    **dict.fromkeys(
        ("+", "-", "neg", "*", "exp", "log", "sqrt", "floor", "min", "max", "atan", "erf"), lambda *_: True
    ),
    **dict.fromkeys(("sin", "cos", "abs", "gamma", "where", "sum"), lambda *_: False),
    "/": lambda reader, node, i: i == 0 or reader.sign(node.args[1]) != 0,
    "**": _power_is_monotone,
}, ("where", "sum"))  # fmt: skip


def _at(node: Node, path: tuple[int, ...]) -> Node:
    for i in path:
        node = node.args[i]
    return node


def _put(node: Node, path: tuple[int, ...], new: Node) -> Node:
    if not path:
        return new
    args = list(node.args)
    args[path[0]] = _put(args[path[0]], path[1:], new)
    return replace(node, args=tuple(args))
