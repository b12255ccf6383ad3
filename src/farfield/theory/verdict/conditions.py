"""The exact condition on open parameters, from a decision tree over the signs that matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from farfield.formula import Node, build
from farfield.formula.sentence import Sentence, joined, say
from farfield.theory.budget import Work
from farfield.theory.errors import EmptyRegionError, SplitError, UndecidedError
from farfield.theory.exact import signs
from farfield.theory.exact.constants import Const
from farfield.theory.verdict.linear import AT_LEAST, AT_MOST, UNEQUAL, Case, shorter
from farfield.theory.verdict.regions import Region, domain, domain_relation, linear, relation

MAX_LEAVES = 240
MAX_JOINED = 12  # cases among which pairs are sought that make one


@dataclass(frozen=True)
class Leaf:
    """What happens in one region."""

    verdict: str  # "converges", "diverges", "undecided", "undefined"
    steps: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class Branch:
    """The sign of a constant decides; None where a sign is impossible."""

    const: Const
    children: tuple[tuple[int, Tree], ...]


Tree = Leaf | Branch


def explore(region: Region, leaf: Callable[[Region], Leaf], work: Work) -> Tree:
    """Run a procedure under every combination of signs that it asks for."""
    count = 0

    def visit(here: Region) -> Tree:
        nonlocal count
        count += 1
        if count > MAX_LEAVES or work.done:
            return Leaf("undecided", (say("there are too many cases"),))
        try:
            return leaf(here)
        except SplitError as split:
            return divide(here, split.const)

    def divide(here: Region, const: Const) -> Tree:
        children: list[tuple[int, Tree]] = []
        for s in (1, 0, -1):
            try:
                children.append((s, visit(here.assume(const, s))))
            except EmptyRegionError:
                continue
            except SplitError as other:  # solving const = 0 needs another sign first
                return divide(here, other.const)
            except UndecidedError as error:
                children.append((s, Leaf("undecided", (say(str(error)),))))
        if len({child for _, child in children}) == 1:
            return children[0][1]
        return Branch(const, tuple(children))

    return visit(region)


def cases(tree: Tree, verdict: str) -> list[Case]:
    """The regions with one verdict, as a disjunction of conjunctions, merged where signs agree."""
    if isinstance(tree, Leaf):
        return [()] if tree.verdict == verdict else []
    result = {s: cases(child, verdict) for s, child in tree.children}
    if len({tuple(c) for c in result.values()}) == 1:  # whatever the sign, as far as it is possible
        return next(iter(result.values()))
    merged: list[Case] = []
    done: set[int] = set()
    for a, b, name in ((1, 0, AT_LEAST), (-1, 0, AT_MOST), (1, -1, UNEQUAL)):
        if a in result and b in result and result[a] and result[a] == result[b] and not done & {a, b}:
            merged += [((tree.const, name), *case) for case in result[a]]
            done |= {a, b}
    for s in (1, 0, -1):
        if s in result and s not in done:
            merged += [((tree.const, s), *case) for case in result[s]]
    return _joined([_without_implied(case) for case in merged])


@dataclass(frozen=True)
class Bounds:
    """Bounds on one quantity: (bound, strict), or None where there is none."""

    low: tuple[Const, bool] | None
    high: tuple[Const, bool] | None

    def joined(self, other: Bounds) -> Bounds | None:
        """The union, if it has no gap."""
        for a, b in ((self, other), (other, self)):  # a reaches down to b's upper end
            if a.low is not None and b.high is not None:
                gap = signs.sign(a.low[0] - b.high[0])
                if gap > 0 or (gap == 0 and a.low[1] and b.high[1]):
                    return None
        return Bounds(_outer(self.low, other.low, -1), _outer(self.high, other.high, 1))


def _outer(a: tuple[Const, bool] | None, b: tuple[Const, bool] | None, side: int) -> tuple[Const, bool] | None:
    if a is None or b is None:
        return None
    gap = signs.sign(a[0] - b[0]) * side
    return a if gap > 0 else b if gap < 0 else (a[0], a[1] and b[1])


def _interval(case: Case, moving: Const) -> tuple[Bounds, Case] | None:
    """The bounds on one quantity and the other conditions; None if the case has none, or a hole."""
    low = high = None
    rest, seen = [], False
    for c, s in case:
        line = linear(c)
        if line is None or line[0] != moving:
            rest.append((c, s))
            continue
        if s == UNEQUAL:
            return None
        seen = True
        if s in (1, AT_LEAST, 0):
            low = (line[1], s == 1)
        if s in (-1, AT_MOST, 0):
            high = (line[1], s == -1)
    return (Bounds(low, high), tuple(rest)) if seen else None


def _joined(result: list[Case]) -> list[Case]:
    """Join cases that differ in touching intervals of one quantity."""
    if len(result) > MAX_JOINED:
        return result
    for i, a in enumerate(result):
        for j, b in enumerate(result):
            if i >= j:
                continue
            for c, _ in a:
                line = linear(c)
                one = _interval(a, line[0]) if line else None
                two = _interval(b, line[0]) if line else None
                if one is None or two is None or set(one[1]) != set(two[1]):
                    continue
                both = one[0].joined(two[0])
                if both is None or line is None:
                    continue
                moving = c + line[1]
                bounds: Case = ()
                if both.low is not None:
                    bounds += ((moving - both.low[0], 1 if both.low[1] else AT_LEAST),)
                if both.high is not None:
                    bounds += ((moving - both.high[0], -1 if both.high[1] else AT_MOST),)
                others = [x for k, x in enumerate(result) if k not in (i, j)]
                return _joined([(*bounds, *one[1]), *others])
    return result


def _without_implied(case: Case) -> Case:
    """Drop bounds on a parameter that a tighter one implies."""
    kept: list[tuple[Const, int]] = []
    for i, (c, s) in enumerate(case):
        line = linear(c)
        implied = False
        for j, (other, o) in enumerate(case):
            tighter = linear(other)
            if i == j or line is None or tighter is None or line[0] != tighter[0]:
                continue
            gap = signs.sign(tighter[1] - line[1])
            if o == 0 and (gap == s or gap == 0 or s in (AT_LEAST, AT_MOST, UNEQUAL)):
                implied = True  # the parameter has one value, which satisfies everything else
            elif s == 1 and o in (1, AT_LEAST):
                implied |= gap > 0 or (gap == 0 and o == 1 and j < i)
            elif s == -1 and o in (-1, AT_MOST):
                implied |= gap < 0 or (gap == 0 and o == -1 and j < i)
            elif s == UNEQUAL and o in (1, -1):
                implied |= gap * o >= 0
        if not implied:
            kept.append((c, s))
    return tuple(kept)


class ParameterCondition(str):
    """For which parameters a series converges: a text that carries its cases.

    `cases` maps "converges", "diverges", "undecided" and "undefined" to the regions with that verdict: a tuple of
    conjunctions, each a tuple of relations such as p > 1.
    """

    cases: dict[str, tuple[tuple[Node, ...], ...]]
    sentence: Sentence

    def __new__(cls, sentence: Sentence, cases: dict[str, tuple[tuple[Node, ...], ...]]) -> ParameterCondition:
        made = super().__new__(cls, str(sentence))
        made.sentence, made.cases = sentence, cases
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.sentence, self.cases

    def latex(self) -> str:
        """The condition in LaTeX."""
        return self.sentence.latex()

    def html(self) -> str:
        """The condition as markup."""
        return self.sentence.html()


def _relations(result: list[Case], given: Case) -> tuple[tuple[Node, ...], ...]:
    """Conjunctions of relations; what the domain says already is left out."""
    return tuple(tuple(relation(c, s) for c, s in case if (c, s) not in given) for case in result)


def _any_of(cases: tuple[tuple[Node, ...], ...]) -> Sentence:
    return joined((joined(case, " and ") for case in cases), ", or ")


def family(
    tree: Tree, names: Sequence[str], domains: list[str]
) -> tuple[str, ParameterCondition | None, list[Sentence]]:
    """(verdict, condition, proof) of a formula with open parameters."""
    verdicts = ("converges", "diverges", "undecided", "undefined")
    result = {v: cases(tree, v) for v in verdicts}
    given = domain(domains).facts
    shown = {}
    for v in verdicts:
        short = shorter(result[v], [case for other in verdicts if other != v for case in result[other]], given)
        shown[v] = _relations(short, given)
    known = [domain_relation(d) for d in domains]
    everything = joined([d for d in known if d is not None] or [build.name(n) for n in names], ", ")
    proof = _proof(tree)
    undefined = say(" (it is undefined if ", _any_of(shown["undefined"]), ")") if any(shown["undefined"]) else say()
    if shown["undecided"]:
        parts = [say(f"{v} if ", _any_of(shown[v])) for v in verdicts[:3] if shown[v]]
        return "undecided", ParameterCondition(joined(parts, "; "), shown) if all(shown["undecided"]) else None, proof
    if not shown["converges"]:
        return "diverges", ParameterCondition(say("diverges for every ", everything, undefined), shown), proof
    if not shown["diverges"] and (not undefined.parts or not any(shown["converges"])):
        return "converges", ParameterCondition(say("converges for every ", everything), shown), proof
    words = say("converges if and only if ", _any_of(shown["converges"]), undefined)
    return "converges", ParameterCondition(words, shown), proof


def _proof(tree: Tree, assumed: Sentence | None = None) -> list[Sentence]:
    """The steps of every case, in order."""
    if isinstance(tree, Leaf):
        ends = {"undefined": "the formula has no value: ", "undecided": "not decided: "}
        lead = say("if ", assumed, ": ") if assumed else say()
        first, *others = tree.steps
        return [say(lead, ends.get(tree.verdict, ""), first), *others]
    out = []
    for s, child in tree.children:
        here = say(relation(tree.const, s))
        out += _proof(child, say(assumed, " and ", here) if assumed else here)
    return out
