"""The verdict on an encoding: does the sum of b(t) = exp(r(t)) converge, for which parameters, and why.

`check` is sound in every case: it says "converges" or "diverges" only with a proof, and "undecided" otherwise. The
proof of a concrete formula ends in a certificate, an inequality from an explicit distance on (ladder.py); a formula
with open parameters gets a decision tree over the signs that matter (regions.py) and the exact condition.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from flint import arb

from farfield.formula import Formula, FormulaError
from farfield.theory.checker.examination import statement
from farfield.theory.errors import UndecidedError, UndefinedError
from farfield.theory.exact.constants import Const, ball, log, sign, text
from farfield.theory.exact.precision import precision
from farfield.theory.verdict import oscillation
from farfield.theory.verdict.conditions import Leaf, condition_text, explore
from farfield.theory.verdict.corners import corners
from farfield.theory.verdict.domain import refuse_undefined, require_defined
from farfield.theory.verdict.gate import accepted, weakest
from farfield.theory.verdict.horizon import Horizon, horizon
from farfield.theory.verdict.ladder import Rung, certificate, decide, safe_decimal
from farfield.theory.verdict.regions import Region, domain
from farfield.zoo import Encoding, find

BUDGET = 1.5  # seconds of work for one verdict
FAMILY_BUDGET = 0.7  # of them for the cases of open parameters


@dataclass(frozen=True)
class Verdict:
    """What is proven about a series, and the proof."""

    formula: str
    verdict: str  # "converges", "diverges", "undecided", "not-applicable"
    condition: str | None = None  # for open parameters
    steps: list[str] = field(default_factory=list)  # the proof; mathematics stands between backticks
    certificate: dict[str, Any] | None = None
    horizon: Horizon | None = None
    start: int = 0

    @property
    def proof(self) -> list[str]:
        """The steps of the proof as plain text."""
        return [step.replace("`", "") for step in self.steps]

    def latex(self) -> str:
        """The verdict and its proof as LaTeX."""
        from farfield.theory.verdict.typeset import proof_latex

        return proof_latex(self)

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "formula": self.formula,
            "verdict": self.verdict,
            "condition": self.condition,
            "proof": self.proof,
            "certificate": self.certificate,
            "horizon": None if self.horizon is None else self.horizon.json(),
            "from": self.start,
        }


def check(
    encoding: str | Formula | Encoding,
    *,
    start: int = 0,
    weight: bool = False,
    budget: float = BUDGET,
    parameters: Mapping[str, Any] | None = None,
    **more: Any,
) -> Verdict:
    """Decide whether the series of an encoding converges; parameters that are not given stay open.

    `start` is the first distance of the series, for formulas that are undefined at 0.
    """
    named = encoding if isinstance(encoding, Encoding) else None
    if isinstance(encoding, str):
        named = find(encoding, weight=weight)
    formula = encoding if isinstance(encoding, Formula) else named.formula if named else None
    if formula is None:
        assert named is not None
        return Verdict(named.name, "not-applicable", steps=[f"{named.name}: {named.note}"])
    if not isinstance(start, int) or not 0 <= start < 2**63:
        raise FormulaError(f"the series must start at a distance of 0 or more, not {start}", formula.text())
    formula = formula.bind({**(parameters or {}), **more})
    deadline = time.thread_time() + budget
    try:
        if formula.parameters:
            domains = [p.domain for p in named.parameters if p.name in formula.parameters] if named else []
            verdict = _check_family(formula.primitive, domains, start, deadline)
        else:
            verdict = _check_concrete(formula.primitive, start, deadline)
            accepted(formula.primitive, verdict.verdict, verdict.certificate, start)
    except UndecidedError as error:
        verdict = Verdict("", "undecided", steps=[f"not decided: {error}"], start=start)
    return replace(verdict, formula=formula.text())


def _check_concrete(formula: Formula, start: int, deadline: float) -> Verdict:
    try:
        require_defined(formula, start, deadline)
        rung = decide(formula, Region(), deadline)
    except UndefinedError as error:
        raise UndecidedError(f"{error}, so the formula seems to have no value for large t") from None
    except UndecidedError as error:
        for other in (_check_oscillating, _check_corners, _check_parts):
            try:
                found = other(formula, start, deadline)
            except UndecidedError:
                continue
            if found is not None:
                return found
        raise error
    proof, claim = list(rung.steps), certificate(formula, rung, deadline)
    if claim is not None:
        proof[-1] = _explicit_step(claim, rung)
    proof.append(f"the sum of `b(t)` over t >= {start} {rung.verdict}")
    far = horizon(formula, start) if rung.verdict == "diverges" else None
    if far is not None:
        proof.append(far.sentence())
    return Verdict(formula.text(), rung.verdict, None, proof, claim, far, start)


def _explicit_step(claim: Mapping[str, Any], rung: Rung) -> str:
    if claim["claim"] == "finite":
        return f"`b(t) = 0` for all t >= {claim['from']}: the sum has finitely many terms"
    ends = "converges" if rung.verdict == "converges" else "diverges"
    why = "the terms do not tend to 0" if claim["exponent"] == "0" else f"the sum of that bound {ends} (integral test)"
    return f"explicitly, `{statement(claim)}`; {why}"


def _check_oscillating(formula: Formula, start: int, deadline: float) -> Verdict | None:
    """Weights with a trigonometric factor that touches zero: decided by their mean (oscillation.py)."""
    parts = oscillation.factor(formula)
    if parts is None:
        return None
    require_defined(parts.rest, start, deadline)
    rung = decide(parts.rest, Region(), deadline)
    claim = certificate(parts.rest, rung, deadline)
    if claim is None:
        return None
    waves = []
    for node, e, absolute in parts.waves:
        p = oscillation.polynomial(node)
        if not absolute and not oscillation.never_negative(p):
            return None
        waves.append((node, e, p))
    shown = " * ".join(f"abs({Formula(node).text()})**{e}" for node, e, _ in waves)
    proof = [f"`b(t) = h(t) * {shown}` with `h(t) = {parts.rest.text().removeprefix('weight: ')}`"]
    with precision(128):
        shift = arb(0)
        if rung.verdict == "converges":
            for _, e, p in waves:
                shift += ball(log(oscillation.size(p))) * (arb(e.numerator) / e.denominator)
            claim = _shifted(claim, shift)
            proof += [f"{step} (for h)" for step in rung.steps[:-1]]
            proof.append(_explicit_step(claim, rung))
            proof.append("the sum of `b(t)` converges")
            return Verdict(formula.text(), "converges", None, proof, claim, None, start)
        product: oscillation.Waves | None = None
        nodes = []
        for node, e, p in waves:
            even, twice = oscillation.even_power(node, e)
            nodes.append(Formula(even).text())
            shift -= ball(log(oscillation.size(p))) * (arb((twice - e).numerator) / (twice - e).denominator)
            power = p
            for _ in range(twice - 1):
                power = oscillation.multiply(power, p)
            product = power if product is None else oscillation.multiply(product, power)
    assert product is not None
    average = oscillation.mean(product)
    if sign(average) <= 0 or claim["claim"] != "lower":
        return None
    factor = "*".join(f"({n})" for n in nodes)
    claim = {**_shifted(claim, shift), "claim": "mean", "factor": factor, "mean": _safe_mean(average)}
    proof.append(f"`q(t) = {claim['factor']}` has the mean `{text(average)}` over the integers")
    proof.append(f"explicitly, `{statement(claim)}`")
    proof.append("with s(t) for the bound, the sum of (q(t) - mean)*s(t) converges (Dirichlet), that of s(t) diverges")
    proof.append("so the sum of q(t)*s(t) diverges, and the sum of `b(t)` diverges")
    return Verdict(formula.text(), "diverges", None, proof, claim, None, start)


def _check_corners(formula: Formula, start: int, deadline: float) -> Verdict | None:
    """Waves in an exponent that cross the border: decided if every extreme has the same verdict (corners.py)."""
    require_defined(formula, start, deadline)
    certificates: list[dict[str, Any] | None] = []
    verdicts, proof = set(), ["for each t, `b(t)` is monotone in its waves, so it lies between the extremes:"]
    for said, still in corners(formula, deadline):
        try:
            rung = decide(still, Region(), deadline)
        except UndefinedError:
            return None
        verdicts.add(rung.verdict)
        certificates.append(certificate(still, rung, deadline))
        first, *others = rung.steps
        proof += [f"with `{said}`: {first}", *others]
    if len(verdicts) != 1:
        return None
    (verdict,) = verdicts
    if verdict == "diverges" and any(n.op == "floor" for n in formula.node.walk()):
        return None  # with steps, which extreme is the smallest may change for ever
    claim = weakest(certificates)
    if claim is not None:
        proof.append(f"explicitly, `{statement(claim)}`")
    proof.append(f"so the sum of `b(t)` over t >= {start} {verdict}")
    return Verdict(formula.text(), verdict, None, proof, claim, None, start)


def _check_parts(formula: Formula, start: int, deadline: float) -> Verdict | None:
    """A weight that is a sum of weights: it converges if both do, and diverges if one does."""
    if not formula.weight or formula.node.op != "+":
        return None
    found = [_check_concrete(replace(formula, node=part, source=""), start, deadline) for part in formula.node.args]
    proof = [f"`b(t)` is a sum of two weights, and the first of them, `{found[0].formula.removeprefix('weight: ')}`:"]
    proof += [*found[0].steps, f"the other, `{found[1].formula.removeprefix('weight: ')}`:", *found[1].steps]
    verdict = "diverges" if any(v.verdict == "diverges" for v in found) else "converges"
    proof.append(f"so the sum of `b(t)` over t >= {start} {verdict}")
    claim: dict[str, Any] | None = None
    for i, part in enumerate(found):
        if part.verdict == "diverges" and part.certificate is not None:
            claim = {"claim": "part", "index": i, "part": part.certificate}
    if verdict == "converges" and all(part.certificate is not None for part in found):
        claim = {"claim": "sum", "parts": [part.certificate for part in found]}
    return Verdict(formula.text(), verdict, None, proof, claim, None, start)


def _safe_mean(average: Const) -> str:
    """A rational at or below a positive constant."""
    with precision(128):
        return str(average.rational) if average.rational is not None else safe_decimal(ball(average), up=False)


def _shifted(claim: dict[str, Any], shift: arb) -> dict[str, Any]:
    up = claim["claim"] == "upper"
    return {**claim, "ln_constant": safe_decimal(arb(claim["ln_constant"]) + shift, up)}


def _check_family(formula: Formula, domains: list[str], start: int, deadline: float) -> Verdict:
    """A formula with open parameters: every case, and the exact condition."""
    refuse_undefined(formula, start)
    deadline = min(deadline, time.thread_time() + FAMILY_BUDGET)

    def leaf(region: Region) -> Leaf:
        try:
            rung = decide(formula, region, deadline)
        except UndefinedError as error:
            return Leaf("undefined", (str(error),))
        except UndecidedError as error:
            return Leaf("undecided", (str(error),))
        return Leaf(rung.verdict, rung.steps)

    verdict, condition, proof = condition_text(explore(domain(domains), leaf, deadline), formula.parameters, domains)
    if len(domains) == 1 and verdict == "converges":  # a single parameter: is its domain the condition itself?
        free = condition_text(explore(Region(), leaf, deadline), formula.parameters, [])
        if free[1] == f"converges if and only if {domains[0]}":
            verdict, condition, proof = free
    return Verdict(formula.text(), verdict, condition, proof, None, None, start)
