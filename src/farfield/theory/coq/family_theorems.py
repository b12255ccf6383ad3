"""Verdicts for all parameters: the families whose theorem stands in the Coq library.

Each is a pattern of the formula language. A parameter of the pattern stands for a parameter of the formula or for a
constant; what is open is bound by `forall`, and a hypothesis about constants is proven on the spot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from farfield.formula import Formula, Node, parse
from farfield.formula.algebras import exact_value
from farfield.theory.coq.terms import atom, coq_name, spell, weight
from farfield.theory.errors import OutsideCoqError

ALL = "for every"  # the rest of the condition is the domains of the open parameters


@dataclass(frozen=True)
class Case:
    """What a verdict may say of a family, and the theorem that says it; {p} stands for the parameter p."""

    condition: str
    claim: str  # about the series {series}
    lemma: str
    hypotheses: tuple[str, ...] = ()


@dataclass(frozen=True)
class FamilyTheorem:
    """A pattern, the domains of its parameters as verdicts print them, and what may be said of it."""

    pattern: str
    domains: Mapping[str, str]
    cases: tuple[Case, ...]
    weight: str | None = None  # where a sum has an open number of terms, the weight with {m} for it


_IFF = "ex_series {series} <-> %s"
_SUM, _NO_SUM = "ex_series {series}", "~ ex_series {series}"
_CONVERGES, _DIVERGES = f"converges {ALL}", f"diverges {ALL}"
_ONLY = "converges if and only if "
_NEGATIVE = " (it is undefined if {k} < 0)"
_WAVES = "head (fun j => cos (INR t / Rpower {r} (2 * INR (S j) / {d}))) {m} - {d} / 2"
_SLOPE = {"k": "{k} > 0"}
_KERPLE = {"a": "{a} > 0", "p": "{p} > 0"}
_BOTH = ("0 < {a}", "0 < {p}")

FAMILIES = (
    FamilyTheorem("-k*t", _SLOPE, (Case(_ONLY + "{k} > 0", _IFF % "0 < {k}", "alibi_converges_iff {k}"),)),
    FamilyTheorem("-log(1 + (k*t)**2)", _SLOPE, (
        Case(_CONVERGES, _SUM, "type1_converges {k}", ("0 < {k}",)),
        Case(_ONLY + "{k} != 0", _IFF % "{k} <> 0", "type1_converges_iff {k}"),
    )),
    FamilyTheorem("-log(3 + k*t)**2", _SLOPE, (
        Case(_CONVERGES, _SUM, "type2_converges {k}", ("0 < {k}",)),
        Case(_ONLY + "{k} > 0" + _NEGATIVE, _IFF % "0 < {k}", "type2_converges_iff {k}", ("0 <= {k}",)),
    )),
    FamilyTheorem("-log(1 + k*t)", _SLOPE, (
        Case(_DIVERGES, _NO_SUM, "inverse_diverges {k}", ("0 < {k}",)),
        Case("diverges for every {k}" + _NEGATIVE, _NO_SUM, "inverse_diverges_from_0 {k}", ("0 <= {k}",)),
    )),
    FamilyTheorem("-log(3 + k*t) - log(log(3 + k*t))", _SLOPE, (
        Case(_DIVERGES, _NO_SUM, "inverse_log_diverges {k}", ("0 < {k}",)),
        Case("diverges for every {k}" + _NEGATIVE, _NO_SUM, "inverse_log_diverges_from_0 {k}", ("0 <= {k}",)),
    )),
    FamilyTheorem("-p*log(1 + a*t)", _KERPLE, (
        Case(_ONLY + "{p} > 1", _IFF % "1 < {p}", "kerple_log_converges_iff {p} {a}", ("0 < {a}",)),
        Case(_ONLY + "{a} > 0 and {p} > 1 (it is undefined if {a} < 0)", _IFF % "0 < {a} /\\ 1 < {p}",
             "kerple_log_converges_iff_both {p} {a}", ("0 <= {a}",)),
        Case(_CONVERGES, _SUM, "kerple_log_converges {p} {a}", ("1 < {p}", "0 < {a}")),
        Case(_DIVERGES, _NO_SUM, "kerple_log_diverges {p} {a}", ("{p} <= 1", "0 < {a}")),
    )),
    FamilyTheorem("-a*t**p", _KERPLE, (
        Case(_CONVERGES, _SUM, "kerple_power_converges {a} {p}", _BOTH),
        Case(_ONLY + "{p} > 0 and {a} > 0", _IFF % "0 < {p} /\\ 0 < {a}", "kerple_power_converges_iff_both {a} {p}"),
        Case(_ONLY + "{a} > 0", _IFF % "0 < {a}", "kerple_power_converges_iff {a} {p}", ("0 < {p}",)),
        Case(_ONLY + "{p} > 0", _IFF % "0 < {p}", "kerple_power_converges_iff_power {a} {p}", ("0 < {a}",)),
    )),
    FamilyTheorem("-t*k", {}, (Case(_ONLY + "{k} > 0", _IFF % "0 < {k}", "decay_converges_iff {k}"),)),
    FamilyTheorem("t*log(g)", {},
        (Case(_ONLY + "{g} < 1", _IFF % "{g} < 1", "retention_converges_iff {g}", ("0 < {g}",)),)),
    FamilyTheorem("-k*t + m", {"k": "{k} > 0", "m": "{m} > 0"},
           (Case(_CONVERGES, _SUM, "shifted_alibi_converges {k} {m}", ("0 < {k}",)),)),
    FamilyTheorem("m", {"m": "{m} > 0"}, (
        Case(_DIVERGES, _NO_SUM, "constant_diverges {m}"),
        Case("diverges for every {m}", _NO_SUM, "constant_diverges {m}"),
    )),
    FamilyTheorem("where(t < w*d, where(t - d*floor(t/d) < 1, 0, -inf), -inf)", {"w": "{w} >= 1", "d": "{d} >= 1"},
           (Case(_CONVERGES, _SUM, "dilated_window_converges {w} {d}"),)),
    FamilyTheorem("-k*floor(t/m)", {"k": "{k} > 0", "m": "{m} >= 1"},
           (Case(_CONVERGES, _SUM, "segments_converge {k} {m}", ("0 < {k}", "1 <= {m}")),)),
    FamilyTheorem("m*exp(-g*t)", {"m": "{m} > 0", "g": "{g} > 0"},
           (Case(_DIVERGES, _NO_SUM, "shrinking_diverges {m} {g}", ("0 < {m}",)),)),
    FamilyTheorem("-p*log(t + 1)", {}, (Case(_ONLY + "{p} > 1", _IFF % "1 < {p}", "power_law_converges_iff {p}"),)),
    FamilyTheorem("-k*sqrt(t)", {}, (Case(_ONLY + "{k} > 0", _IFF % "0 < {k}", "root_converges_iff {k}"),)),
    *(FamilyTheorem(f"where(t {sign} w, 0, -inf)", {"w": "{w} >= 1"}, (
        Case(_CONVERGES, _SUM, f"{lemma} {{w}}"),
        Case("converges for every {w}", _SUM, f"{lemma} {{w}}"),
    )) for sign, lemma in (("<", "window_mask_converges"), ("<=", "window_paper_mask_converges"))),
    FamilyTheorem("where(t < 113, near, far)", {"near": "{near}", "far": "{far}"},
           (Case(_DIVERGES, _NO_SUM, "t5_diverges {near} {far}"),)),
    FamilyTheorem("(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)/s", {"r": "{r} > 0", "d": "{d} >= 2", "s": "{s} > 0"},
           (Case(_DIVERGES, _NO_SUM, "sandwich_bias_diverges {r} {d} {s} {m}", ("{d} = 2 * INR {m}",)),),
           f"exp (({_WAVES}) / {{s}})"),
    FamilyTheorem("k*(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)", {"k": "{k} > 0", "r": "{r} > 0", "d": "{d} >= 2"},
           (Case(_DIVERGES, _NO_SUM, "sandwich_paper_bias_diverges {k} {r} {d} {m}", ("{d} = 2 * INR {m}",)),),
           f"exp ({{k}} * ({_WAVES}))"),
)  # fmt: skip


def family_theorem(formula: Formula, condition: str, start: int) -> tuple[str, str]:
    """The statement of a verdict for all parameters, and its proof."""
    if start:
        raise OutsideCoqError("with open parameters the sum must start at t = 0")
    for family, matched in _matches(formula):
        for case in family.cases:
            if _said(family, case, matched) == condition:
                return _theorem(family, case, matched)
    raise OutsideCoqError(
        "open parameters are proven for the families of the zoo only; give every parameter a value, such as "
        f"--set {formula.parameters[0]}=1/16"
    )


def _theorem(family: FamilyTheorem, case: Case, matched: Mapping[str, Node]) -> tuple[str, str]:
    names = {p: coq_name(str(node.value)) if node.op == "name" else atom(node) for p, node in matched.items()}
    opened = [coq_name(str(node.value)) for node in matched.values() if node.op == "name"]
    variables = f"({' '.join(opened)} : R)"
    if family.weight is None:
        text = spell(weight(_pattern(family.pattern)), names)[0]
    else:
        waves = exact_value(matched["d"], {})
        names["m"] = "m" if waves is None else str(waves / 2)
        variables += " (m : nat)" if waves is None else ""
        text = family.weight.format(**names)
    hypotheses = [h.format(**names) for h in case.hypotheses]
    shown = [h for h in hypotheses if not set(opened).isdisjoint(h.split())]
    claim = case.claim.format(series=f"(fun t : nat => {text})", **names)
    claim = f"({claim})" if shown and "<->" in claim else claim
    lemma = " ".join([case.lemma.format(**names), *("_" for _ in hypotheses)])
    proof = f"Proof. intros. refine ({lemma}){'; side' if hypotheses else ''}. Qed."
    return f"Theorem sum : forall {variables}, {''.join(f'{h} -> ' for h in shown)}{claim}.", proof


def _said(family: FamilyTheorem, case: Case, matched: Mapping[str, Node]) -> str:
    """The condition as the verdict would print it for these parameters."""
    names = {p: str(node.value) if node.op == "name" else "?" for p, node in matched.items()}
    text = case.condition
    if text.endswith(ALL):
        text += " " + ", ".join(domain for p, domain in family.domains.items() if matched[p].op == "name")
    return text.format(**names)


@cache
def _pattern(text: str) -> Node:
    return parse(text).node


def _matches(formula: Formula) -> Iterator[tuple[FamilyTheorem, dict[str, Node]]]:
    for family in FAMILIES:
        matched: dict[str, Node] = {}
        fits = not formula.weight and _unify(_pattern(family.pattern), formula.node, matched, frozenset())
        opened = [node.value for node in matched.values() if node.op == "name"]
        if fits and len(set(opened)) == len(opened):
            yield family, matched


def _unify(pattern: Node, node: Node, matched: dict[str, Node], bound: frozenset[str]) -> bool:
    """Whether the formula is the pattern with its parameters replaced; `matched` says by what."""
    if pattern.op == "name" and pattern.value != "t" and pattern.value not in bound:
        if node.op != "name" and node.free():
            return False
        if node.op == "name" and (node.value == "t" or node.value in bound):
            return False
        return matched.setdefault(str(pattern.value), node) == node
    if (pattern.op, pattern.value, len(pattern.args)) != (node.op, node.value, len(node.args)):
        return False
    if pattern.op == "sum":
        bound = bound | {str(pattern.value)}
    return all(_unify(p, n, matched, bound) for p, n in zip(pattern.args, node.args, strict=True))
