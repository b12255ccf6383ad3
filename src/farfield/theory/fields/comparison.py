"""The paper's comparison theorem: which of two encodings has the smaller receptive field.

Theorem (the paper's third, repaired): if a(t)/A <= b(t)/B for all t >= t0, then TRF_a(epsilon) <= TRF_b(epsilon) for
every epsilon with TRF_b(epsilon) >= t0. So the limit of r_a(t) - r_b(t) decides as epsilon -> 0. It says nothing about
large epsilon, where the order may be the other way round: TRF_a > TRF_b exactly for the epsilon in the intervals
(tail_b(j)/B, tail_a(j)/A], j = 1, 2, ..., and these are listed. "The smaller series has the smaller TRF" is false: a
TRF does not change when the weights are scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node, tree
from farfield.formula.formula import parameter_table
from farfield.formula.spelling import Sentence, markup, say
from farfield.theory.checker.evaluation import Evaluator
from farfield.theory.checker.expansions import add, negative
from farfield.theory.checker.families import far
from farfield.theory.checker.monomials import UNIT, Expansion, expansion_node
from farfield.theory.checker.monomials import compare as compare_monomials
from farfield.theory.errors import DivergenceError, UndecidedError, UnknownError
from farfield.theory.exact.constants import ZERO, Constant, ball
from farfield.theory.fields.receptive import exact_epsilon, smallest
from farfield.theory.sums.closed import Series
from farfield.theory.sums.series import Encoding, Pieces, series
from farfield.theory.sums.shapes import Shape, shape
from farfield.zoo import WIDTH, Parameters, bound_formula, find

_EVERY = 256  # every j up to here is looked at
EVERY_INTERVAL = 64  # the exact intervals of epsilon are listed for j up to here
_BITS = 128
_FARTHEST = 1 << 40


@dataclass(frozen=True)
class Crossing:
    """A stretch of j on which the order of the two tails is the same, and the epsilons that it covers."""

    larger: str  # "a" or "b": whose receptive field is larger there
    first: int
    last: int | None
    epsilon_low: float
    epsilon_high: float

    def contains(self, epsilon: float) -> bool:
        """Whether epsilon lies in the covered stretch; between its intervals the two fields may be equal."""
        return self.epsilon_low < epsilon <= self.epsilon_high


@dataclass(frozen=True)
class Comparison:
    """Which of two encodings has the smaller receptive field as epsilon -> 0, why, and where the order turns."""

    a: str
    b: str
    smaller: str | None  # "a", "b", "equal", "limit" (equal for small epsilon), or None if it could not be decided
    steps: tuple[Sentence, ...]
    crossings: tuple[Crossing, ...] = ()
    intervals: tuple[tuple[str, float, float], ...] = field(default=())  # (whose is larger, above, up to)
    looked_down_to: float = 0.0
    formulas: tuple[Formula, Formula] | None = field(default=None, repr=False)

    @property
    def proof(self) -> list[str]:
        """The steps as plain text."""
        return [str(step) for step in self.steps]

    def __str__(self) -> str:
        steps = (f"{n:4}. {step}" for n, step in enumerate(self.steps, 1))
        return "\n".join([self.sentence(), *steps, *self.turns()])

    def _repr_html_(self) -> str:
        """The comparison and its proof for a notebook."""
        steps = "".join(f"<li>{step.html()}</li>" for step in self.steps)
        turns = "".join(f"<p>{markup(turn)}</p>" for turn in self.turns())
        return f"<p>{markup(self.sentence())}</p><ol>{steps}</ol>{turns}"

    def figure(self, path: str | Path | None = None, *, context: int = 512) -> Any:
        """Both receptive fields as a figure; with a path, written as its ending says."""
        from farfield.theory.fields.curves import curve, fields_figure

        assert self.formulas is not None
        curves = [curve(n, f, context) for n, f in zip((self.a, self.b), self.formulas, strict=True)]
        return fields_figure(curves, path, context=context)

    def json(self) -> dict[str, object]:
        """The comparison as plain data."""
        name = {"a": self.a, "b": self.b}
        ends = ("epsilon_above", "epsilon_low"), ("epsilon_up_to", "epsilon_high")
        return {
            **name,
            "smaller": name.get(self.smaller or "", self.smaller),
            "reason": self.proof,
            "crossings": [
                {
                    "larger": name[c.larger],
                    "first": c.first,
                    "last": c.last,
                    **{key: getattr(c, end) for key, end in ends},
                }
                for c in self.crossings
            ],
            "looked_down_to": self.looked_down_to,
        }

    def sentence(self) -> str:
        if self.smaller is None:
            return f"which of {self.a} and {self.b} has the smaller receptive field as epsilon -> 0 was not decided"
        if self.smaller == "equal":
            return f"{self.a} and {self.b} have the same receptive field for every epsilon"
        if self.smaller == "limit":
            return f"{self.a} and {self.b} have the same receptive field for every epsilon that is small enough"
        one, other = (self.a, self.b) if self.smaller == "a" else (self.b, self.a)
        return f"{one} has the smaller receptive field as epsilon -> 0; {other} sees further"

    def turns(self) -> list[str]:
        """For which epsilon whose field is the larger: interval by interval if they are few, else as one stretch."""
        name = {"a": self.a, "b": self.b}
        return [f"{name[c.larger]} {self._where(c)}" for c in self.crossings]

    def _where(self, c: Crossing) -> str:
        own = [
            f"{low:.6g} < epsilon <= {high:.6g}"
            for whose, low, high in self.intervals
            if whose == c.larger and c.epsilon_low <= low and high <= c.epsilon_high
        ]
        if c.last is not None and c.last <= EVERY_INTERVAL and 0 < len(own) <= 3:
            return f"reaches further exactly for {' and '.join(own)}"
        low = f"{c.epsilon_low:.6g} < " if c.epsilon_low else ""
        if not c.epsilon_high:
            return "reaches further, or equally far, for epsilon < 1e-300"
        return f"reaches further, or equally far, for {low}epsilon <= {c.epsilon_high:.6g}"


def compare(
    a: Encoding,
    b: Encoding,
    *,
    parameters: Parameters | tuple[Parameters, Parameters] | None = None,
    width: int = WIDTH,
    names: tuple[str, str] | None = None,
) -> Comparison:
    """Compare two encodings by the growth of their weights, and find where their receptive fields cross.

    Args:
        a: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        b: the other one.
        parameters: values for the parameters of both, or two sets of values, one for each.
        width: of one head, for encodings that depend on it.
        names: what to call the two.
    """
    each = parameters if isinstance(parameters, tuple) else _shared(a, b, parameter_table(parameters))
    one, other = (bound_formula(e, given, width=width) for e, given in zip((a, b), each, strict=True))
    names = names or (_name(a, one), _name(b, other))
    if one.is_bounded_family or other.is_bounded_family:
        return _of_families((one, other), names)
    a_series, b_series = (_series_or_none(f) for f in (one, other))
    if a_series is None or b_series is None:
        smaller, steps = _with_divergent(names, a_series is not None, b_series is not None)
        return Comparison(*names, smaller, tuple(steps), formulas=(one, other))
    smaller, steps = _decide(one.primitive, other.primitive, a_series, b_series, names)
    if smaller == "equal":
        return Comparison(*names, smaller, tuple(steps), formulas=(one, other))
    last = {"a": -1, "b": 1}.get(smaller or "", 0)
    crossings, intervals, lowest = _crossings(a_series, b_series, last)
    if last and not (crossings and crossings[-1].larger == {-1: "b", 1: "a"}[last]):  # the second route
        smaller = None
        steps.append(say("no receptive field that was computed shows this order, so it is not called proven"))
    return Comparison(*names, smaller, tuple(steps), tuple(crossings), tuple(intervals), lowest, (one, other))


def ranking(converging: list[str], diverging: list[str], pairs: list[Comparison]) -> list[str]:
    """Which of several sees how far as epsilon goes to 0, in one or two sentences; nothing beyond what was decided.

    Args:
        converging: the names of those that have a receptive field.
        diverging: the names of those that have none.
        pairs: the comparisons of each with each.
    """
    if len(pairs) == 1:
        return [pairs[0].sentence()]
    among = [pair for pair in pairs if pair.a in converging and pair.b in converging]
    sentences = []
    if any(pair.smaller is None for pair in among):
        decided = sum(pair.smaller is not None for pair in among)
        sentences.append(f"not every pair was decided: {decided} of {len(among)} (see --proof)")
    elif converging:
        smaller = [{"a": pair.a, "b": pair.b}.get(pair.smaller or "") for pair in among]
        order = sorted(converging, key=lambda name: -smaller.count(name))  # how many see further
        groups = (" = ".join(names) for _, names in groupby(order, key=smaller.count))
        sentences.append(f"as epsilon -> 0, from the nearest to the farthest: {' < '.join(groups)}")
    if diverging:
        sentences.append(f"without a receptive field, because the sum diverges: {'; '.join(diverging)}")
    return sentences


def _of_families(formulas: tuple[Formula, Formula], names: tuple[str, str]) -> Comparison:
    """Bounded families, by the worst case of each as epsilon -> 0: the tail of the upper bound over the nearest keys.

    The tails decide where one is of another order than the other; where they differ by a factor, so do the heads: the
    sum of the lower bound, and the sink.
    """
    from farfield.theory.fields.windows import WorstCase

    steps = [say("of a bounded family the worst case counts: far keys at its upper bound, near keys at its lower")]
    if formulas[0] == formulas[1]:
        return Comparison(*names, "equal", (*steps, say("both are the same formula")), formulas=formulas)
    upper = [f.upper_bound for f in formulas]
    result = compare(upper[0], upper[1], names=names)
    smaller, more = result.smaller, list(result.steps)
    weights = [_series_or_none(f) for f in upper]
    goes_on = all(w is not None and not (isinstance(w, Pieces) and w.rest is None) for w in weights)
    if goes_on and (gap := limit_of_difference(upper[0].primitive, upper[1].primitive)).limit == "constant":
        near = [WorstCase(f).near if f.is_bounded_family else series(f).B for f in formulas]
        first = say(f"a is {names[0]}, b is {names[1]}; A and B are the smallest that their nearest keys can add up to")
        smaller, more = _constant_gap(gap, near[0], near[1], names, [first, *gap.steps])
    elif smaller == "equal":  # weights that end at the same distance, over other heads
        smaller = "limit"
    return Comparison(*names, smaller, (*steps, *more), looked_down_to=result.looked_down_to, formulas=formulas)


def _shared(a: Encoding, b: Encoding, values: Parameters) -> tuple[Parameters, Parameters]:
    """The values for each of two encodings: those of the parameters that it has."""
    formulas = [find(e).formula for e in (a, b)]
    each = [() if f is None else f.parameters for f in formulas]
    for name in values:
        if not any(name in names for names in each):
            has = ", ".join(sorted({*each[0], *each[1]})) or "none"
            raise ValueError(f"neither encoding has a parameter {name[:20]!r}; their parameters: {has}")
    first, second = ({n: v for n, v in values.items() if n in names} for names in each)
    return first, second


def _name(encoding: Encoding, formula: Formula) -> str:
    if isinstance(encoding, str):
        return encoding
    return formula.text() if isinstance(encoding, Formula) else encoding.name


def _series_or_none(formula: Formula) -> Series | None:
    try:
        return series(formula)
    except DivergenceError:
        return None


def _with_divergent(names: tuple[str, str], a: bool, b: bool) -> tuple[str | None, list[Sentence]]:
    steps = [
        say(f"the sum of the weights of {n} diverges: it has no receptive field")
        for n, converges in zip(names, (a, b), strict=True)
        if not converges
    ]
    if not a and not b:
        return None, steps
    steps.append(say("the other one converges, so its receptive field is finite for every epsilon"))
    return "a" if a else "b", steps


def _decide(
    one: Formula, other: Formula, a: Series, b: Series, names: tuple[str, str]
) -> tuple[str | None, list[Sentence]]:
    """The order as epsilon -> 0 from the limit of r_a - r_b, with its steps."""
    if one == other:
        return "equal", [say("both are the same formula")]
    if any(isinstance(s, Pieces) and s.rest is None for s in (a, b)):
        return _by_ends([s.end if isinstance(s, Pieces) else math.inf for s in (a, b)], names)
    shapes = [shape(f) for f in (one, other)]
    if shapes[0] is not None and shapes[1] is not None and _but_constant(shapes[0]) == _but_constant(shapes[1]):
        return "equal", [say("the two biases differ by a constant, which scales the weights: shares stay the same")]
    gap = limit_of_difference(one, other)
    steps = [say(f"a is {names[0]}, b is {names[1]}"), *gap.steps]
    if gap.limit in ("+inf", "-inf"):
        first, last = names if gap.limit == "-inf" else names[::-1]
        steps.append(
            say(
                f"so the weight of {first} over that of {last} tends to 0, whatever the two sums are: from some t0 "
                f"on, b(t)/B of {first} is the smaller one"
            )
        )
        steps.append(
            say(
                f"by the comparison theorem TRF of {first} <= TRF of {last} for every epsilon for which the latter is "
                "at least t0"
            )
        )
        return ("a" if gap.limit == "-inf" else "b"), steps
    if gap.limit == "constant":
        return _constant_gap(gap, a.B, b.B, names, steps)
    steps.append(say("the limit of the difference of the two biases does not decide the order"))
    return None, steps


def _by_ends(ends: list[float], names: tuple[str, str]) -> tuple[str | None, list[Sentence]]:
    """Of weights that end, the one that ends first has the smaller receptive field for small epsilon."""
    if math.nan in ends:
        return None, [say("where the weights end could not be told")]
    steps = [
        say(
            f"the weights of {name} go on" if end == math.inf else f"the last weight of {name} is that of t = {end - 1}"
        )
        for name, end in zip(names, ends, strict=True)
    ]
    steps.append(say("for epsilon small enough all of the weights that end are reached, and nothing beyond them"))
    if ends[0] == ends[1]:
        return "limit", steps
    return ("a" if ends[0] < ends[1] else "b"), steps


def _but_constant(a: Shape) -> Shape:
    return {atom: c for atom, c in a.items() if atom is not None}


def _constant_gap(
    gap: Gap, a: Callable[[], arb], b: Callable[[], arb], names: tuple[str, str], steps: list[Sentence]
) -> tuple[str | None, list[Sentence]]:
    with ctx.workprec(_BITS):
        value = arb(0) if gap.value is None else ball(gap.value)
        ratio = value.exp() * b() / a()
        shown = f"{float(ratio.mid()):.6g}"
        steps.append(say(f"so (weight of {names[0]})/A over (weight of {names[1]})/B tends to {shown}"))
        if ratio < 1 or ratio > 1:
            smaller = "a" if ratio < 1 else "b"
            first = names[0] if smaller == "a" else names[1]
            side = "below" if ratio < 1 else "above"
            steps.append(say(f"which is {side} 1: {first} has the smaller TRF in the limit"))
            return smaller, steps
    steps.append(say("which is 1 to the precision used: the order as epsilon -> 0 is not decided"))
    return None, steps


# ---------------------------------------------------------------------------------------------------- the limit
def _log_weight(formula: Formula, evaluator: Evaluator) -> Expansion | None:
    """ln b(t) for large t; None where the weight is 0."""
    if not formula.weight:
        return evaluator.value_or_none(formula.node)
    if evaluator.value_or_none(formula.node) == ():
        return None
    return evaluator.size_without_waves(formula.node).log


@dataclass(frozen=True)
class Gap:
    """The limit of r_a(t) - r_b(t) as t -> infinity: "+inf", "-inf", "constant", "bounded" or "unknown"."""

    limit: str
    value: Constant | None
    steps: tuple[Sentence, ...]


def limit_of_difference(a: Formula, b: Formula) -> Gap:
    """How the difference of two biases behaves at infinity, with the steps that show it."""
    try:
        return far(lambda evaluator: _gap(a, b, evaluator))
    except UndecidedError as error:
        return Gap("unknown", None, (say(str(error)),))


def _gap(a: Formula, b: Formula, evaluator: Evaluator) -> Gap:
    one, other = (_log_weight(f, evaluator) for f in (a, b))
    if one is None or other is None:
        limit = "constant" if one is other else "-inf" if one is None else "+inf"
        return Gap(limit, None, (say("one of the weights is 0 from some distance on"),))
    gap = add(one, negative(other))
    a_of_t, b_of_t = tree.apply("r_a"), tree.apply("r_b")
    both = ((a_of_t, one), (b_of_t, other), (Node("-", (a_of_t, b_of_t)), gap))
    steps = tuple(say(tree.relation(left, "=", expansion_node(right))) for left, right in both)
    order = compare_monomials(gap[0][0], UNIT) if gap else -1
    if order > 0:
        side = evaluator.calculus.sign(gap)
        if side is None:
            raise UnknownError("the difference of two biases oscillates")
        return Gap("+inf" if side > 0 else "-inf", None, steps)
    c = gap[0][1] if order == 0 else ZERO
    return Gap("constant", c, steps) if isinstance(c, Constant) else Gap("bounded", None, steps)


# ---------------------------------------------------------------------------------------------------- crossings
def _crossings(a: Series, b: Series, last: int) -> tuple[list[Crossing], list[tuple[str, float, float]], float]:
    """Stretches of j with one order of the tails, for every j up to 256 and then on a grid refined at each change.

    They are followed down to epsilon = 1e-12, and further if the order in the limit, `last`, is not met before.
    """
    end = 1
    for s in (a, b):
        try:
            end = max(end, smallest(s, exact_epsilon("1e-12")))
        except UndecidedError:
            end = max(end, _EVERY)
    with ctx.workprec(_BITS + end.bit_length()):
        share_a, share_b = _share(a), _share(b)

        def order(j: int) -> int:
            gap = share_a(j) - share_b(j)
            return 1 if gap > 0 else -1 if gap < 0 else 0

        while last and order(end) == -last and end < _FARTHEST:
            end *= 2
        lowest = float(share_a(end).max(share_b(end)).mid())
        first = max(a.start, b.start) + 1
        places = list(range(first, min(end, _EVERY) + 1))
        j = _EVERY
        while j < end:
            j = min(end, j + max(1, j // 8))
            places.append(j)
        signs = [order(j) for j in places]
        runs: list[tuple[int, int, int]] = []
        low = places[0] if places else first
        for i in range(1, len(places)):
            if signs[i] != signs[i - 1]:
                edge = _change(order, places[i - 1], places[i])
                runs.append((signs[i - 1], low, edge - 1))
                low = edge
        if places:
            runs.append((signs[-1], low, places[-1]))
        result = [_crossing(s, lo, hi, share_a, share_b, hi == end and s == last) for s, lo, hi in runs if s]
        near = [
            _interval(s, j, share_a, share_b) for s, j in zip(signs, places, strict=True) if s and j <= EVERY_INTERVAL
        ]
    return result, _merged(near), lowest


def _share(s: Series) -> Callable[[int], arb]:
    total = s.B()
    return lambda j: s.tail(j) / total


def _change(order: Callable[[int], int], low: int, high: int) -> int:
    """The first j after `low` with another order than at `low`, if there is one change between the two."""
    here = order(low)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if order(middle) == here else (low, middle)
    return high


def _interval(s: int, j: int, share_a: Callable[[int], arb], share_b: Callable[[int], arb]) -> tuple[str, float, float]:
    ends = sorted((float(share_a(j).mid()), float(share_b(j).mid())))
    return ("a" if s > 0 else "b", ends[0], ends[1])


def _crossing(
    s: int, low: int, high: int, share_a: Callable[[int], arb], share_b: Callable[[int], arb], last: bool
) -> Crossing:
    above, below = (share_a, share_b) if s > 0 else (share_b, share_a)
    bottom = 0.0 if last else float(below(high).mid())
    return Crossing("a" if s > 0 else "b", low, None if last else high, bottom, float(above(low).mid()))


def _merged(intervals: list[tuple[str, float, float]]) -> list[tuple[str, float, float]]:
    """Overlapping intervals of the same order join, from large epsilon to small."""
    joined: list[tuple[str, float, float]] = []
    for whose, low, high in intervals:
        if joined and joined[-1][0] == whose and high >= joined[-1][1]:
            joined[-1] = (whose, low, joined[-1][2])
        else:
            joined.append((whose, low, high))
    return joined
