"""Weights that differ on a sparse set of distances, such as the powers of two: one series on the set, one off it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from farfield.formula import Formula, FormulaError, build
from farfield.formula.sentence import say
from farfield.formula.tree import T, substitute
from farfield.theory.checker.examination import residue_class
from farfield.theory.checker.sparse import SparseSet, sparse_sets
from farfield.theory.errors import UndecidedError
from farfield.theory.verdict.gate import PartVerdict, Settle, Settled


def by_sparse_sets(formula: Formula, start: int, settle: Settle) -> Settled | None:
    """The series converges if it does on the set and off it, and diverges if it does on one of them."""
    for one in sparse_sets(formula):
        settled = _by(one, formula, start, settle)
        if settled is not None:
            return settled
    return None


def _by(one: SparseSet, formula: Formula, start: int, settle: Settle) -> Settled | None:
    claim: dict[str, Any] = {"claim": "sparse", "base": one.base, "power": one.power, "shift": one.shift}
    there = build.relation(T, "=", substitute(one.node, {"t": build.name("n")}))
    proof = [say("the weights at ", there, " and those at all other distances")]
    on = _tried(settle, one.along(formula), one.first(start))
    if on is not None:
        proof += [say("on the set, with n called t: ", on.steps[0]), *on.steps[1:]]
        if on.verdict == "diverges":
            return Settled("diverges", tuple(proof), {**claim, "on": on.certificate, "off": None})
    rest = one.resolved(formula, False)
    if rest.node == formula.node:
        return None
    off = _tried(settle, rest, start)
    if off is None:
        return None
    if off.verdict == "converges":
        if on is None:
            return None
        proof += [say("at all other distances: ", off.steps[0]), *off.steps[1:]]
        return Settled("converges", tuple(proof), {**claim, "on": on.certificate, "off": off.certificate})
    m, r = one.outside
    off = _tried(settle, residue_class(rest, m, r), max(1, -((r - start) // m)))
    if off is None or off.verdict != "diverges":
        return None
    proof += [say(f"no t = {m}*n + {r} is in the set; there, with n called t: ", off.steps[0]), *off.steps[1:]]
    return Settled("diverges", tuple(proof), {**claim, "on": None, "off": off.certificate})


def _tried(settle: Settle, formula: Formula, start: int) -> PartVerdict | None:
    try:
        result = settle(replace(formula, source=""), start)
    except (UndecidedError, FormulaError):
        return None
    return result if result.certificate is not None else None
