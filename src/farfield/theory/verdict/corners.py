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

from flint import ctx, fmpq

from farfield.formula import Formula, Node, number, tree
from farfield.formula.algebras import exact_value
from farfield.formula.functions import WAVES, rule_table
from farfield.formula.spelling import Sentence, join, say
from farfield.theory.checker.claims import MAX_DEPTH, Certificate, Claim, Place, wording
from farfield.theory.checker.evaluation import Evaluator
from farfield.theory.checker.families import far
from farfield.theory.checker.monomials import UNIT, exponentials
from farfield.theory.errors import UndecidedError, UnknownError
from farfield.theory.exact.intervals import Interval, exactly
from farfield.theory.verdict.verdict import B, Settle, Verdict, conclusion

MAX_WAVES = 3
LATER = (Place(1 << 30), Place(50, 1), Place(1000, 1), Place(10**6, 1), Place(50, 2))


def by_corners(formula: Formula, start: int, settle: Settle) -> Verdict | None:
    """Waves in an exponent that cross the border: decided if every extreme has the same verdict."""
    steps = [say("for each t, ", B, " is monotone in its waves, so it lies between the extremes:")]
    results = []
    for held, still in far(lambda evaluator: list(corners(formula, evaluator))):
        result = settle(still, start)
        results.append(result)
        steps += [say("with ", held, ": ", result.steps[0]), *result.steps[1:]]
    verdicts = {result.verdict for result in results}
    if len(verdicts) != 1:
        return None
    (verdict,) = verdicts
    if verdict == "diverges" and any(n.op == "floor" for n in formula.node.walk()):
        return None  # with steps, which extreme is the smallest may change for ever
    claim = weakest([result.certificate for result in results])
    if claim is None:
        return None
    steps += [say("explicitly, ", wording(claim)), conclusion(verdict, start)]
    return Verdict(formula.text(), verdict, None, tuple(steps), claim, start=start)


def corners(formula: Formula, evaluator: Evaluator) -> Iterator[tuple[Sentence, Formula]]:
    """The formula with every wave at one of its extremes, and how to say so; nothing if that bounds nothing."""
    waves = list(_waves(evaluator, formula.node, ()))
    if not 0 < len(waves) <= MAX_WAVES:
        return
    for ends in product(*(range(2) for _ in waves)):
        node, held = formula.node, []
        for (path, extremes), end in zip(waves, ends, strict=True):
            held.append(tree.relation(_at(formula.node, path), "=", tree.fraction(extremes[end])))
            node = _put(node, path, number(extremes[end]))
        yield join(held, " and "), formula.with_node(node)


def _waves(
    evaluator: Evaluator, node: Node, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], tuple[Fraction, Fraction]]]:
    """The largest bounded waves below a node, each with its place and its extremes."""
    if not any(n.op in WAVES and "t" in n.free() for n in node.walk()):
        return
    extremes = _extremes(evaluator, node)
    if extremes is not None:
        yield path, extremes
        return
    for i, arg in enumerate(node.args):
        if any(n.op in WAVES and "t" in n.free() for n in arg.walk()):
            if not _MONOTONE[node.op](evaluator, node, i):
                raise UndecidedError("an oscillation in which the weight is not monotone")
            yield from _waves(evaluator, arg, (*path, i))


def _extremes(evaluator: Evaluator, node: Node) -> tuple[Fraction, Fraction] | None:
    """The bounds of a part in which the distance stands only inside waves."""
    if not _is_made_of_waves(node):
        return None
    try:
        f = evaluator.value(node)
    except UnknownError:
        return None
    if len(f) != 1 or f[0][0] != UNIT or not isinstance(f[0][1], Interval):
        return None
    low, high = (end.fraction for end in f[0][1].ends)
    return None if low is None or high is None else (low, high)


def _is_made_of_waves(node: Node) -> bool:
    return "t" not in node.free() or node.op in WAVES or (node.op != "name" and all(map(_is_made_of_waves, node.args)))


def _power_is_monotone(evaluator: Evaluator, node: Node, i: int) -> bool:
    whole = exact_value(node.args[1], {})
    odd = whole is not None and whole.denominator == 1 and whole % 2 == 1 and whole > 0
    return odd or evaluator.sign(node.args[0]) > 0


_MONOTONE: dict[str, Callable[[Evaluator, Node, int], bool]] = rule_table("monotone in an argument, the others held", {
    **dict.fromkeys(("+", "-", "neg", "*", "exp", "log", "sqrt", "floor", "min", "max"), lambda *_: True),
    **dict.fromkeys(("sin", "cos", "abs", "where", "sum"), lambda *_: False),
    "/": lambda r, node, i: i == 0 or r.sign(node.args[1]) != 0,
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


# ---------------------------------------------------------------------------------------------------- one bound for all
def weakest(certificates: list[Certificate | None]) -> Claim | None:
    """One bound that all of these imply for large t: the largest upper, or the smallest lower one."""
    bounds = [c for c in certificates if isinstance(c, Claim)]
    kinds = {c.kind for c in bounds}
    if len(bounds) != len(certificates) or kinds not in ({"upper"}, {"lower"}):
        return None
    upper = kinds == {"upper"}
    ranked = sorted(bounds, key=lambda c: (*(1,) * c.depth, c.exponent, *(0,) * (MAX_DEPTH - c.depth)))
    chosen, constants = ranked[0 if upper else -1], [c.ln_constant for c in bounds]
    latest = max((c.start for c in bounds), key=lambda place: (place.nesting, place.whole))
    later = [p for p in LATER if (p.nesting, p.whole) > (latest.nesting, latest.whole)]
    start = next((p for p in (latest, *later) if all(_outweighs(c, chosen, p, upper) for c in bounds)), latest)
    return Claim(chosen.kind, start, max(constants) if upper else min(constants), chosen.depth, chosen.exponent)


def _outweighs(one: Claim, chosen: Claim, place: Place, upper: bool) -> bool:
    """Whether the scale of one bound is on the right side of that of the chosen one at a place."""
    with ctx.workprec(128):
        levels = exponentials(place.whole, place.nesting)
        gap = _ln_scale(one, levels) - _ln_scale(chosen, levels)
    return gap.not_negative if upper else gap.not_positive or one == chosen


def _ln_scale(claim: Claim, levels: tuple[Interval, ...]) -> Interval:
    total = exactly(0)
    for i in range(1, claim.depth + 2):
        c = exactly(1) if i <= claim.depth else exactly(fmpq(claim.exponent.numerator, claim.exponent.denominator))
        total = total + c * (levels[i] if i < len(levels) else exactly(0))
    return total
