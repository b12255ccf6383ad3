"""The verdict on an encoding: does the sum of b(t) = exp(r(t)) converge, for which parameters, and why.

`check` is sound in every case: it says "converges" or "diverges" only with a proof, and "undecided" otherwise. The
proof of a concrete formula ends in a certificate, an inequality from an explicit distance on (ladder.py); a formula
with open parameters gets a decision tree over the signs that matter (regions.py) and the exact condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, FormulaError, build, parse
from farfield.formula.gather import gathered
from farfield.formula.sentence import Sentence, say
from farfield.formula.tree import T
from farfield.theory.budget import Work
from farfield.theory.checker.wording import wording
from farfield.theory.coq.files import file_text, verdict_block
from farfield.theory.errors import UndecidedError, UndefinedError
from farfield.theory.exact import constants
from farfield.theory.exact.constants import Const, log
from farfield.theory.exact.signs import ball, sign
from farfield.theory.verdict import oscillation
from farfield.theory.verdict.choices import by_choices
from farfield.theory.verdict.classes import by_classes
from farfield.theory.verdict.conditions import Leaf, ParameterCondition, explore, family
from farfield.theory.verdict.confirmation import confirm
from farfield.theory.verdict.corners import corners
from farfield.theory.verdict.domain import refuse_undefined, require_defined
from farfield.theory.verdict.gate import PartVerdict, Settle, accepted, weakest
from farfield.theory.verdict.horizon import Horizon, horizon
from farfield.theory.verdict.ladder import B, Rung, certificate, decide, safe_decimal
from farfield.theory.verdict.regions import Region, domain, domain_relation
from farfield.theory.verdict.sparse_sums import by_sparse_sets
from farfield.theory.verdict.window_answers import no_bias, of_formula
from farfield.zoo import Encoding, find

BUDGET = 1.5  # for one verdict, in seconds of an ordinary machine
LATER = 1000  # what has no value at one of the first distances may have one from here on


@dataclass(frozen=True)
class Verdict:
    """What is proven about a series, and the proof."""

    formula: str
    verdict: str  # "converges", "diverges", "undecided", "not-applicable"
    condition: ParameterCondition | None = None  # for open parameters
    steps: tuple[Sentence, ...] = ()  # the proof
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    horizon: Horizon | None = None
    start: int = 0
    proven: tuple[str, ...] = ()  # what the checker has proven, for all distances
    sampled: tuple[str, ...] = ()  # what was only compared at points: the condition of a family
    answer: str | None = None  # "windowed", "disperses" or "neither", where one is proven
    envelope: dict[str, Any] | None = None  # of a class of biases: its upper and lower envelope, its sink

    @property
    def proof(self) -> list[str]:
        """The steps of the proof as plain text."""
        return [str(step) for step in self.steps]

    @property
    def headline(self) -> Sentence:
        """The formula and what is said of it, in one line."""
        if self.verdict == "not-applicable":
            return say(f"{self.formula}: the theorem does not apply")
        formula = parse(self.formula)
        left = build.applied("b" if formula.weight else "r")
        said = self.verdict if self.condition is None else self.condition.sentence
        return say(build.relation(left, "=", formula.node), ": ", said)

    def __str__(self) -> str:
        return "\n".join([f"{self.headline}", *(f"{n:4}. {step}" for n, step in enumerate(self.steps, 1))])

    def latex(self) -> str:
        """The verdict and its proof as LaTeX."""
        items = [rf"  \item {step.latex()}" for step in self.steps]
        return "\n".join([self.headline.latex() + ".", r"\begin{enumerate}", *items, r"\end{enumerate}"])

    def _repr_html_(self) -> str:
        """The verdict and its proof for a notebook."""
        items = "".join(f"<li>{step.html()}</li>" for step in self.steps)
        return f"<p>{self.headline.html()}</p><ol>{items}</ol>"

    def figure(self, path: str | Path | None = None, *, terms: int = 4096) -> Any:
        """The weights and their partial sums as a figure; with a path, written as its ending says."""
        from farfield.theory.figures import weights_figure

        if self.verdict == "not-applicable" or (formula := parse(self.formula)).parameters:
            raise ValueError(f"a figure needs a formula without open parameters, not {self.formula}")
        return weights_figure(formula, str(self.headline), path, start=self.start, terms=terms)

    def coq(self) -> str:
        """A file for the proof assistant Coq whose theorem is this verdict; ValueError says why there is none."""
        return file_text([self.coq_block()])

    def coq_block(self) -> str:
        """The definitions and theorems of that file, to be joined with others."""
        said = None if self.condition is None else str(self.condition)
        return verdict_block(self.formula, self.verdict, said, self.certificate, self.start, self.envelope)

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "formula": self.formula,
            "verdict": self.verdict,
            "condition": None if self.condition is None else str(self.condition),
            "proof": self.proof,
            "certificate": self.certificate,
            "horizon": None if self.horizon is None else self.horizon.json(),
            "from": self.start,
            "checked": {"proven": list(self.proven), "sampled": list(self.sampled)},
            "answer": self.answer,
            "envelope": self.envelope,
        }


def check(
    encoding: str | Formula | Encoding,
    *,
    start: int = 0,
    weight: bool = False,
    budget: float = BUDGET,
    parameters: Mapping[str, Any] | None = None,
) -> Verdict:
    """Decide whether the series of an encoding converges, and prove it.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        start: the first distance of the series, for formulas that are undefined at 0.
        weight: the text gives the weight b(t) = exp(r(t)) instead of the bias.
        budget: how much work the verdict may cost, in seconds of an ordinary machine: it is counted in steps, so that
            the answer does not depend on the machine.
        parameters: values of parameters, such as {"k": "1/16"}; those that are not given stay open.
    """
    named = find(encoding, weight=weight)
    formula = named.formula
    if formula is None:
        said = no_bias(named.name, named.note)
        return Verdict(named.name, "not-applicable", steps=said.steps, answer=said.kind)
    if not isinstance(start, int) or not 0 <= start < 2**63:
        raise FormulaError(f"the series must start at a distance of 0 or more, not {start}", formula.text())
    formula = formula.bind(parameters or {})
    if formula.is_class:
        from farfield.theory.verdict.biases import check_class

        return check_class(named, formula, start, budget)
    work = Work(budget)
    try:
        if formula.parameters:
            domains = [p.domain for p in named.parameters if p.name in formula.parameters]
            verdict = _check_family(formula.primitive, domains, start, work)
        else:
            verdict = _gated(formula.primitive, start, work)
            if verdict.verdict == "diverges" and (far := horizon(formula, start)) is not None:
                verdict = replace(verdict, horizon=far, steps=(*verdict.steps, say(far.sentence())))
    except UndecidedError as error:
        verdict = Verdict("", "undecided", steps=(say(f"not decided: {error}"),), start=start)
    more = of_formula(formula, verdict.verdict)
    if more.kind == "disperses":
        verdict = replace(verdict, steps=(*verdict.steps, *more.steps))
    return replace(verdict, formula=formula.text(), answer=more.kind)


def _gated(formula: Formula, start: int, work: Work) -> Verdict:
    """The verdict on a concrete formula, with a certificate that the checker has accepted."""
    verdict = _check_concrete(formula, start, work)
    return replace(verdict, proven=accepted(formula, verdict.verdict, verdict.certificate, start))


def _check_concrete(formula: Formula, start: int, work: Work) -> Verdict:
    try:
        require_defined(formula, start, work)
        rung = decide(formula, Region(), work)
    except UndefinedError as error:
        raise UndecidedError(f"{error}, so the formula seems to have no value for large t") from None
    except UndecidedError as error:
        for other in (_check_oscillating, _check_corners, _check_parts, _check_pieces):
            try:
                result = other(formula, start, work)
            except (UndecidedError, FormulaError):  # a part of a formula may have no value of its own
                continue
            if result is not None and result.certificate is not None:
                return result
        raise error
    claim = certificate(formula, rung, work)
    proof = [
        *rung.steps,
        rung.reason if claim is None else _explicit_step(claim, rung),
        _conclusion(rung.verdict, start),
    ]
    return Verdict(formula.text(), rung.verdict, None, tuple(proof), claim, None, start)


def _conclusion(verdict: str, start: int) -> Sentence:
    return say("the sum of ", B, " over ", build.relation(T, ">=", build.fraction(start)), f" {verdict}")


def _explicit_step(claim: Mapping[str, Any], rung: Rung) -> Sentence:
    if claim["claim"] == "finite":
        return say(wording(claim), ": the sum has finitely many terms")
    why = f"the sum of that bound {rung.verdict} (integral test)"
    why = "the terms do not tend to 0" if claim["exponent"] == "0" else why
    return say("explicitly, ", wording(claim), f"; {why}")


def _check_oscillating(formula: Formula, start: int, work: Work) -> Verdict | None:
    """Weights with a trigonometric factor that touches zero: decided by their mean (oscillation.py)."""
    parts = oscillation.factor(formula)
    if parts is None:
        return None
    require_defined(parts.rest, start, work)
    rung = decide(parts.rest, Region(), work)
    claim = certificate(parts.rest, rung, work)
    if claim is None:
        return None
    waves = []
    for node, e, absolute in parts.waves:
        p = oscillation.polynomial(node)
        if not absolute and not oscillation.never_negative(p):
            return None
        waves.append((node, e, p))
    h = build.applied("h")
    shown = [build.power(build.call("abs", node), build.fraction(e)) for node, e, _ in waves]
    proof = [say(build.relation(B, "=", build.product([h, *shown])), " with ", build.relation(h, "=", parts.rest.node))]
    with ctx.workprec(128):
        shift = arb(0)
        if rung.verdict == "converges":
            for _, e, p in waves:
                shift += ball(log(oscillation.size(p))) * (arb(e.numerator) / e.denominator)
            claim = _shifted(claim, shift)
            proof += [say(step, " (for h)") for step in rung.steps]
            proof += [_explicit_step(claim, rung), _conclusion("converges", start)]
            return Verdict(formula.text(), "converges", None, tuple(proof), claim, None, start)
        product: oscillation.Waves | None = None
        nodes = []
        for node, e, p in waves:
            even, twice = oscillation.even_power(node, e)
            nodes.append(even)
            shift -= ball(log(oscillation.size(p))) * (arb((twice - e).numerator) / (twice - e).denominator)
            power = p
            for _ in range(twice - 1):
                power = oscillation.multiply(power, p)
            product = power if product is None else oscillation.multiply(product, power)
    assert product is not None
    average = oscillation.mean(product)
    if sign(average) <= 0 or claim["claim"] != "lower":
        return None
    q = build.product(nodes)
    claim = {**_shifted(claim, shift), "claim": "mean", "factor": Formula(q).text(), "mean": _safe_mean(average)}
    mean = build.relation(build.applied("q"), "=", q)
    proof += [
        say(mean, " has the mean ", constants.node(average), " over the integers"),
        say("explicitly, ", wording(claim)),
        say("with s(t) for the bound, the sum of (q(t) - mean)*s(t) converges (Dirichlet), that of s(t) diverges"),
        say("so the sum of q(t)*s(t) diverges, and the sum of ", B, " diverges"),
    ]
    return Verdict(formula.text(), "diverges", None, tuple(proof), claim, None, start)


def _check_corners(formula: Formula, start: int, work: Work) -> Verdict | None:
    """Waves in an exponent that cross the border: decided if every extreme has the same verdict (corners.py)."""
    require_defined(formula, start, work)
    certificates: list[dict[str, Any] | None] = []
    verdicts, proof = set(), [say("for each t, ", B, " is monotone in its waves, so it lies between the extremes:")]
    for said, still in corners(formula, work):
        try:
            rung = decide(still, Region(), work)
        except UndefinedError:
            return None
        verdicts.add(rung.verdict)
        certificates.append(certificate(still, rung, work))
        first, *others = (*rung.steps, rung.reason)
        proof += [say("with ", said, ": ", first), *others]
    if len(verdicts) != 1:
        return None
    (verdict,) = verdicts
    if verdict == "diverges" and any(n.op == "floor" for n in formula.node.walk()):
        return None  # with steps, which extreme is the smallest may change for ever
    claim = weakest(certificates)
    proof += [] if claim is None else [say("explicitly, ", wording(claim))]
    proof.append(_conclusion(verdict, start))
    return Verdict(formula.text(), verdict, None, tuple(proof), claim, None, start)


def _check_parts(formula: Formula, start: int, work: Work) -> Verdict | None:
    """A weight that is a sum of weights: it converges if both do, and diverges if one does."""
    if not formula.weight or formula.node.op != "+":
        return None
    result = [_check_concrete(replace(formula, node=part, source=""), start, work) for part in formula.node.args]
    first, second = formula.node.args
    proof = [say(B, " is a sum of two weights, and the first of them, ", first, ":"), *result[0].steps]
    proof += [say("the other, ", second, ":"), *result[1].steps]
    verdict = "diverges" if any(v.verdict == "diverges" for v in result) else "converges"
    proof.append(_conclusion(verdict, start))
    claim: dict[str, Any] | None = None
    for i, part in enumerate(result):
        if part.verdict == "diverges" and part.certificate is not None:
            claim = {"claim": "part", "index": i, "part": part.certificate}
    if verdict == "converges" and all(part.certificate is not None for part in result):
        claim = {"claim": "sum", "parts": [part.certificate for part in result]}
    return Verdict(formula.text(), verdict, None, tuple(proof), claim, None, start)


def _check_pieces(formula: Formula, start: int, work: Work) -> Verdict | None:
    """Residue classes and branches that change for ever: each a series of its own (classes.py, choices.py)."""
    for way in (by_factors, by_classes, by_sparse_sets, by_choices):
        try:
            result = way(formula, start, lambda part, first: _check_concrete(part, first, work))
        except (UndecidedError, FormulaError):
            continue
        if result is not None and result.certificate is not None:
            steps = (*result.steps, _conclusion(result.verdict, start))
            return Verdict(formula.text(), result.verdict, None, steps, result.certificate, None, start)
    return None


def by_factors(formula: Formula, start: int, settle: Settle) -> PartVerdict | None:
    """The same weight with the factors that both sides of a sum have taken out."""
    node = gathered(formula.node)
    return None if node == formula.node else settle(replace(formula, node=node, source=""), start)


def _safe_mean(average: Const) -> str:
    """A rational at or below a positive constant."""
    with ctx.workprec(128):
        return str(average.rational) if average.rational is not None else safe_decimal(ball(average), up=False)


def _shifted(claim: dict[str, Any], shift: arb) -> dict[str, Any]:
    up = claim["claim"] == "upper"
    return {**claim, "ln_constant": safe_decimal(arb(claim["ln_constant"]) + shift, up)}


def _check_family(formula: Formula, domains: list[str], start: int, work: Work) -> Verdict:
    """A formula with open parameters: every case, and the exact condition."""
    refuse_undefined(formula, start)

    def leaf(region: Region) -> Leaf:
        try:
            rung = decide(formula, region, work, shortest=1)  # with few terms few orders of them are open
        except UndefinedError as error:
            return Leaf("undefined", (say(str(error)),))
        except UndecidedError as error:
            return Leaf("undecided", (say(str(error)),))
        return Leaf(rung.verdict, (*rung.steps, rung.reason))

    verdict, condition, proof = family(explore(domain(domains), leaf, work), formula.parameters, domains)
    if len(domains) == 1 and verdict == "converges":  # a single parameter: is its domain the condition itself?
        free = family(explore(Region(), leaf, work), formula.parameters, [])
        if free[1] == f"converges if and only if {domains[0]}":
            verdict, condition, proof, domains = *free, []
    sampled: tuple[str, ...] = ()
    if condition is not None:
        known = [r for r in map(domain_relation, domains) if r is not None]
        proof.append(confirm(formula, condition, known, lambda bound: _judge(bound, start)))
        sampled = (str(proof[-1]),)
    return Verdict(formula.text(), verdict, condition, tuple(proof), None, None, start, (), sampled)


def _judge(formula: Formula, start: int) -> str:
    """The verdict on one member of a family, of which only large distances count."""
    for first in (start, start + LATER):
        try:
            return _gated(formula, first, Work(BUDGET)).verdict
        except UndecidedError:
            return "undecided"
        except FormulaError:
            continue
    return "undefined"
