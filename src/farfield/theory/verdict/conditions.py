"""The exact condition on open parameters, made short, from the parts of the domain that the checker has proven.

A condition is a disjunction of cases, each a conjunction of relations such as p > 1. Relations that the others imply
are left out, and cases that touch are joined; both only where the checker's region shows that nothing changes.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from flint import ctx, fmpq

from farfield.formula import Formula, Node, constant, tree
from farfield.formula.functions import primitive
from farfield.formula.spelling import Sentence, join, say
from farfield.formula.tree import substitute
from farfield.theory.checker.families import SIGNS, Family, Leaf, Tree, far
from farfield.theory.checker.monomials import (
    Expansion,
    constant_node,
    expansion_node,
    level_node,
    monomial_node,
    power_bases,
    size_node,
)
from farfield.theory.errors import EmptyRegionError, UndecidedError, UnknownError
from farfield.theory.exact.constants import Constant, rational
from farfield.theory.exact.intervals import Interval, exactly
from farfield.theory.exact.regions import (
    ANY,
    NULL,
    POSITIVE,
    Region,
    Signs,
    normal,
    opposite,
    parameters_of,
    presuppositions,
    sign_at,
)

VERDICTS = ("converges", "diverges", "undecided", "undefined")
Case = tuple[tuple[Constant, Signs], ...]
MAX_PAIRS = 400  # of cases that are compared with each other
MAX_WORK = 1500  # signs that are looked at to make a condition shorter
_POINTS = 300
_VALUES = [exactly(fmpq(n, 12)) for n in (0, 12, -12, 24, -24, 6, -6, 18, 36, -36, 4, -9, 15, 60, -54, 1)]
_SYMBOLS = {signs: symbol for symbol, signs in SIGNS.items()}


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

    def at(self, parameters: Mapping[str, Any]) -> str | None:
        """The verdict at one point, such as {"p": 2, "a": "1/3"}; None if it cannot be told there.

        A point at which a relation has no value is in no case, and what is in no case is "undefined".
        """
        point = {name: constant(value) for name, value in parameters.items()}
        for verdict, result in self.cases.items():
            for case in result:
                holds = [relation_holds(one, point) for one in case]
                if False not in holds:
                    return None if None in holds else verdict
        return "undefined"

    def latex(self) -> str:
        """The condition in LaTeX."""
        return self.sentence.latex()

    def html(self) -> str:
        """The condition as markup."""
        return self.sentence.html()


def relation_holds(relation: Node, point: Mapping[str, Node]) -> bool | None:
    """Whether a relation such as p > 1 holds at a point; False where a side has no value, None if it is not known."""
    gap = primitive(substitute(Node("-", relation.args), point))
    try:
        side = far(lambda evaluator: evaluator.calculus.sign(evaluator.value(gap)))
    except UndecidedError:
        side = None
    if side is None:
        with ctx.workprec(256):
            return None if Formula(gap).ball(0).is_finite() else False
    return side in SIGNS[relation.op]


# ---------------------------------------------------------------------------------------------------- cases
def cases(branch: Tree, wanted: Callable[[Leaf], bool]) -> list[Case]:
    """The parts of the domain with such leaves; signs that lead to the same are taken together."""
    if isinstance(branch, Leaf):
        return [()] if wanted(branch) else []
    results = {s: cases(child, wanted) for s, child in branch.children}
    groups: list[tuple[Signs, list[Case]]] = []
    for s, result in results.items():
        for i, (signs, other) in enumerate(groups):
            if other == result:
                groups[i] = (signs | {s}, other)
                break
        else:
            groups.append((frozenset((s,)), result))
    out: list[Case] = []
    for signs, result in groups:
        everything = signs == frozenset(results)
        core, flip = normal(branch.constant)
        relation = (core, signs if flip > 0 else opposite(signs))
        out += [case if everything else (relation, *case) for case in result]
    return out


class Cover:
    """Which cases are possible, for parameters in one region: shown by a point, or refuted by a proof."""

    def __init__(self, family: Family):
        self.region = family.region
        atoms = [a for c in family.parameters.values() for a in parameters_of(c)]
        dice = random.Random(0)
        every = list(itertools.islice(itertools.product(_VALUES, repeat=len(atoms)), 2000))
        points = [dict(zip(atoms, values, strict=True)) for values in dice.sample(every, min(len(every), _POINTS))]
        self.points = [p for p in points if all(sign_at(c, p) in signs for c, signs in self.region.facts)]
        self._signs: dict[Constant, list[int | None]] = {}
        self._known: dict[frozenset[tuple[Constant, Signs]], bool] = {}
        self._end = self.region.work + MAX_WORK

    def impossible(self, case: Case) -> bool:
        """Whether it is proven that no parameters satisfy all relations."""
        key = frozenset(case)
        if key not in self._known:
            relations = _one_for_each((*case, *(need for c, _ in case for need in presuppositions(c))))
            contradiction = any(not signs for _, signs in relations)
            self._known[key] = contradiction or (not self._is_seen(relations) and self._is_refuted(relations))
        return self._known[key]

    def _is_seen(self, case: Case) -> bool:
        for c, _ in case:
            if c not in self._signs:
                self._signs[c] = [sign_at(c, point) for point in self.points]
        columns = [(self._signs[c], signs) for c, signs in case]
        return any(all(column[i] in signs for column, signs in columns) for i in range(len(self.points)))

    def _is_refuted(self, case: Case) -> bool:
        if self.region.work > self._end:
            return False
        try:
            with ExitStack() as stack:
                for c, signs in case:
                    stack.enter_context(self.region.assuming(c, signs))
                return False
        except EmptyRegionError:
            return True
        except UnknownError:
            return False

    def shorter(self, mine: list[Case], others: list[Case]) -> list[Case]:
        """The same parameters with fewer relations: each case may grow as long as it meets none of the others."""
        if len(mine) * len(others) > MAX_PAIRS:
            return mine
        grown = [self._grown(_one_for_each(case), others) for case in mine if not self.impossible(case)]
        kept: list[Case] = []
        for i, case in enumerate(grown):
            if not any(self._within(case, other) for other in (*kept, *grown[i + 1 :])):
                kept.append(case)
        return self._joined(kept, others)

    def _grown(self, case: Case, others: list[Case]) -> Case:
        """The case without the relations that it does not need to stay apart from the others."""
        kept = list(case)
        for pair in sorted(case, key=lambda pair: -len(pair[0].terms)):  # the most involved first
            without = tuple(other for other in kept if other != pair)
            if all(self.impossible((*without, *other)) for other in others):
                kept.remove(pair)
        return tuple(kept)

    def plain(self, case: Case) -> Case:
        """The case without relations that its others imply."""
        kept = list(_one_for_each(case))
        for pair in sorted(kept, key=lambda pair: -len(pair[0].terms)):
            others = tuple(other for other in kept if other != pair)
            if self.impossible((*others, (pair[0], ANY - pair[1]))):
                kept.remove(pair)
        return tuple(kept)

    def _within(self, case: Case, other: Case) -> bool:
        """Whether one case is proven to lie within another; a relation does not hold where a side has no value."""
        needed = (*other, *(need for c, _ in other for need in presuppositions(c)))
        return all(self.impossible((*case, (c, ANY - signs))) for c, signs in needed)

    def _joined(self, result: list[Case], others: list[Case]) -> list[Case]:
        """The same with cases joined: one that may have a border of its own makes others superfluous."""
        for i, case in enumerate(result):
            rest = result[:i] + result[i + 1 :]
            for k, (c, signs) in enumerate(case):
                for wider in (signs | NULL, signs | opposite(signs)):
                    pair = () if wider == ANY else ((c, wider),)
                    larger = (*case[:k], *pair, *case[k + 1 :])
                    inside = [other for other in rest if self._within(other, larger)] if wider != signs else []
                    if inside and all(self.impossible((*larger, *other)) for other in others):
                        left = [other for other in rest if other not in inside]
                        return self._joined([*left[:i], larger, *left[i:]], others)
        return result


def _one_for_each(case: Iterable[tuple[Constant, Signs]]) -> Case:
    """A case with one relation for each constant."""
    total: dict[Constant, Signs] = {}
    for c, signs in case:
        total[c] = total.get(c, ANY) & signs
    return tuple((c, signs) for c, signs in total.items() if signs != ANY)


# ---------------------------------------------------------------------------------------------------- relations
def relation(c: Constant, signs: Signs) -> Node:
    """A sign condition as a person writes it: p > 1, a*p = 1, mod(p, 2) = 0."""
    c, flip = normal(c)
    signs = signs if flip > 0 else opposite(signs)
    moving = Constant({product: q for product, q in c.terms.items() if any(a.region is not None for a, _ in product)})
    right = moving - c
    left = _remainder(moving)
    if left is None and not right.terms and len(moving.terms) == 2 and min(moving.terms.values()) < 0:
        right = Constant({product: -q for product, q in moving.terms.items() if q < 0})  # a - b > 0 is a > b
        moving = moving + right
    return tree.relation(left or constant_node(moving), _SYMBOLS[signs], constant_node(right))


def _relations(case: Case) -> tuple[Node, ...]:
    """The relations of a case; that a number is whole is left out where it is a multiple of a whole number anyway."""
    result = tuple(relation(c, signs) for c, signs in case)
    multiples = {(one.args[0].args[0], one.args[0].args[1] != tree.ONE) for one in result if _is_multiple(one)}
    return tuple(
        one
        for one in result
        if not _is_multiple(one) or one.args[0].args[1] != tree.ONE or (one.args[0].args[0], True) not in multiples
    )


def _is_multiple(one: Node) -> bool:
    """Whether a relation is mod(x, n) = 0."""
    return one.op == "=" and one.args[0].op == "mod" and one.args[1] == tree.ZERO


def _remainder(c: Constant) -> Node | None:
    """mod(x, n) for x - n*floor(x/n)."""
    for product, q in c.terms.items():
        if len(product) == 1 and product[0][0].kind == "floor" and product[0][1] == 1 and q < 0 and q.q == 1:
            x = c - Constant({product: q})
            if product[0][0].of * rational(-q) == x:
                return tree.call("mod", constant_node(x), tree.fraction(int(-q.p)))
    return None


def _any_of(result: Sequence[Sequence[Node]]) -> Sentence:
    return join((join(case, " and ") for case in result), ", or ")


# ---------------------------------------------------------------------------------------------------- the answer
@dataclass(frozen=True)
class FamilyCertificate:
    """What is claimed of every part of the domain: as steps of a proof, and as plain data with all that is required."""

    steps: tuple[Sentence, ...]
    parts: tuple[dict[str, Any], ...]

    def json(self) -> dict[str, Any]:
        """The certificate as plain data."""
        return {"claim": "family", "small": "1/1024", "parts": list(self.parts)}


def decide_family(
    formula: Formula, assumptions: Sequence[Node]
) -> tuple[str, ParameterCondition | None, FamilyCertificate]:
    """(verdict, condition, certificate) of a formula with open parameters, for all that satisfy the assumptions."""
    family = Family(formula)
    with ExitStack() as stack:
        for one in assumptions:
            _assume(stack, family, one, assumptions)
        root = family.tree()
        result = {v: cases(root, partial(_decides, v)) for v in VERDICTS}
        shown, cover = {}, Cover(family)
        for v in VERDICTS:
            others = [case for other in VERDICTS if other != v for case in result[other]]
            short = (_with_bases(case, family.region) for case in cover.shorter(result[v], others))
            shown[v] = tuple(_relations(case) for case in short if case is not None)
        leaves = list(_leaves(root, ()))
        certificate = FamilyCertificate(tuple(_steps(root, cover)), tuple(_json(*leaf) for leaf in leaves))
    free = [n for n in formula.parameters if not any(n in one.free() for one in assumptions)]
    verdict, condition = _condition(shown, join([*assumptions, *map(tree.name, free)], ", "))
    return verdict, condition, certificate


def _with_bases(case: Case, region: Region) -> Case | None:
    """The case with a > 0 where a**b stands in it and nothing else says so; None if no parameters satisfy it."""
    bases = dict.fromkeys(x for c, _ in case for x in power_bases(c))
    try:
        with ExitStack() as stack:
            for c, signs in case:
                if not any(power_bases(c)):
                    stack.enter_context(region.assuming(c, signs))
            return (*((x, POSITIVE) for x in bases if region.signs(x) != POSITIVE), *case)
    except EmptyRegionError:
        return None


def _assume(stack: ExitStack, family: Family, one: Node, assumptions: Sequence[Node]) -> None:
    """Enter the part of the domain where an assumption holds; one sentence if that is not possible."""
    try:
        stack.enter_context(family.region.assuming(*family.relation(one)))
    except EmptyRegionError:
        raise ValueError(f"no parameters satisfy all of {join(assumptions, ', ')}") from None
    except UnknownError:
        text = join([one], "")
        raise ValueError(
            f"{text} has no value for some parameters: assume first where it has one, such as a > 0"
        ) from None


def _condition(
    shown: dict[str, tuple[tuple[Node, ...], ...]], every: Sentence
) -> tuple[str, ParameterCondition | None]:
    undefined = say(" (it is undefined if ", _any_of(shown["undefined"]), ")") if any(shown["undefined"]) else say()
    if shown["undecided"]:
        parts = [say(f"{v} if ", _any_of(shown[v])) for v in VERDICTS[:3] if shown[v]]
        return "undecided", ParameterCondition(join(parts, "; "), shown) if all(shown["undecided"]) else None
    if not shown["converges"] and not shown["diverges"]:
        raise UndecidedError("the formula seems to have no value for large t, whatever the parameters are")
    if not shown["converges"]:
        return "diverges", ParameterCondition(say("diverges for every ", every, undefined), shown)
    if not shown["diverges"] and (not undefined.parts or not any(shown["converges"])):
        return "converges", ParameterCondition(say("converges for every ", every), shown)
    return "converges", ParameterCondition(
        say("converges if and only if ", _any_of(shown["converges"]), undefined), shown
    )


def _leaves(branch: Tree, path: tuple[Node, ...]) -> Iterator[tuple[tuple[Node, ...], Leaf]]:
    """The parts of the domain, each with its relations."""
    if isinstance(branch, Leaf):
        yield path, branch
        return
    for s, child in branch.children:
        yield from _leaves(child, (*path, relation(branch.constant, frozenset((s,)))))


def _steps(root: Tree, cover: Cover) -> Iterator[Sentence]:
    """What is proven, a step for each claim: leaves with the same claim are one step."""
    claims = {str(claim): claim for _, leaf in _leaves(root, ()) for claim in [_claim(leaf)]}
    for text, claim in claims.items():
        found = [cover.plain(case) for case in cases(root, partial(_claims, text))]
        where = _any_of([_relations(case) for case in dict.fromkeys(found)])
        yield say("if ", where, ": ", claim) if where.parts else claim


def _decides(verdict: str, leaf: Leaf) -> bool:
    return leaf.verdict == verdict


def _claims(text: str, leaf: Leaf) -> bool:
    return str(_claim(leaf)) == text


def _claim(leaf: Leaf) -> Sentence:
    if leaf.verdict in ("undefined", "undecided"):
        return say({"undefined": "the formula has no value: ", "undecided": "not decided: "}[leaf.verdict], leaf.reason)
    if leaf.kind == "parts":
        return say(
            "for all large t ", join((_inequality(part) for part in leaf.parts), ", "), ", and the sum converges"
        )
    b = tree.apply("b")
    if leaf.kind == "finite" and leaf.part is None:
        return say(tree.relation(b, "=", tree.ZERO), " for all large t, so the sum has finitely many terms")
    weight, log_weight = leaf.part or b, leaf.log_weight
    known = (
        say()
        if leaf.part is None
        else say(tree.relation(b, "<=" if leaf.verdict == "converges" else ">=", weight), " and ")
    )
    grows = _growth(tree.call("log", weight), log_weight, leaf.kind) if leaf.kind != "finite" else say()
    return say(known, grows, ", so ", _inequality(leaf), f" for all large t, and the sum {leaf.verdict}")


def _growth(log_weight: Node, f: Expansion, kind: str) -> Sentence:
    """How the logarithm of a weight grows: its first terms, or a bound where only bounds of the first one are known."""
    lead = f[0][1] if f else None
    if isinstance(lead, Interval) and (lead.negative if kind == "upper" else lead.positive):
        side = "at most a negative" if kind == "upper" else "at least a positive"
        return say(log_weight, f" is {side} multiple of ", monomial_node(f[0][0]))
    return say(tree.relation(log_weight, "=", expansion_node(f)))


def _inequality(leaf: Leaf) -> Sentence:
    """b(t) <= bound, of the weight or the part that decides."""
    weight = leaf.part or tree.apply("b")
    if leaf.kind == "finite":
        return say(tree.relation(weight, "=", tree.ZERO))
    return say(tree.relation(weight, "<=" if leaf.kind == "upper" else ">=", _bound(leaf)))


def _bound(leaf: Leaf) -> Node:
    """1/(t * log(t) * ... ** exponent)."""
    last = tree.power(level_node(leaf.depth), constant_node(leaf.exponent))
    return tree.quotient(tree.ONE, tree.product([*map(level_node, range(leaf.depth)), last]))


def _json(path: tuple[Node, ...], leaf: Leaf) -> dict[str, Any]:
    """The claim about one part: `from` lists what is at most `small` from the distance on from which it holds."""
    data: dict[str, Any] = {"if": [Formula(one).text() for one in path], "verdict": leaf.verdict}
    if leaf.parts:
        data["parts"] = [_claim_json(part) for part in leaf.parts]
    return {**data, **_claim_json(leaf)} if leaf.kind else {**data, "reason": leaf.reason}


def _claim_json(leaf: Leaf) -> dict[str, Any]:
    data: dict[str, Any] = {"claim": leaf.kind, **({"of": Formula(leaf.part).text()} if leaf.part else {})}
    if leaf.kind in ("upper", "lower"):
        data["bound"] = Formula(_bound(leaf)).text()
    if leaf.requirements:
        data["from"] = [Formula(size_node(f)).text() for f in leaf.requirements]
    return data
