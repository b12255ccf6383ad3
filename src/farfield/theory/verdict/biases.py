"""The verdict on a class of biases: that on its upper envelope, and which of the three answers is proven."""

from __future__ import annotations

from dataclasses import replace

from farfield.formula import Formula, FormulaError, build
from farfield.formula.plain_text import text
from farfield.formula.sentence import say
from farfield.theory.checker.examination import Examination, examine
from farfield.theory.errors import UndecidedError
from farfield.theory.verdict.convergence import Verdict, check
from farfield.theory.verdict.envelopes import Envelope, envelope
from farfield.theory.verdict.window_answers import of_class
from farfield.zoo import Encoding, Parameter, find


def positive_names(parameters: tuple[Parameter, ...]) -> frozenset[str]:
    """The parameters whose domain says that they are positive."""
    return frozenset(p.name for p in parameters if p.domain.replace(" ", "") in (f"{p.name}>0", f"{p.name}>=1"))


def envelope_of(named: Encoding, formula: Formula) -> Envelope:
    """The envelopes of an encoding that is a class of biases, with the parameters that it has."""
    result = envelope(formula.primitive, positive_names(named.parameters))
    before, after = (sum(n.op == "between" for n in f.node.walk()) for f in (formula, formula.primitive))
    return result if before == after else replace(result, tight=False)  # cosh, written out, chooses twice


def check_class(named: Encoding, formula: Formula, start: int, budget: float) -> Verdict:
    """The verdict on a class of biases, by its envelopes."""
    shown = formula.text()
    try:
        result = envelope_of(named, formula)
    except UndecidedError as error:
        return Verdict(shown, "undecided", steps=(say(f"not decided: {error}"),), start=start)

    def judged(end: Formula | None, otherwise: str) -> Verdict:
        if end is None:
            return Verdict("", otherwise)
        domains = tuple(p for p in named.parameters if p.name in end.parameters)
        return check(Encoding(end.text(), end.text(), domains), start=start, budget=budget)

    try:
        upper, lower = judged(result.upper, "diverges"), judged(result.lower, "undecided")
    except FormulaError as error:
        return Verdict(shown, "undecided", steps=(say(f"not decided: {error.sentence}"),), start=start)
    steps = [say("in every row the bias of a key at distance t lies between e(t) and E(t):")]
    for name, end in (("E", result.upper), ("e", result.lower)):
        if end is None:
            steps.append(say(f"nothing bounds {name}(t)"))
        else:
            steps.append(say(build.relation(build.applied(name), "=", end.node)))
    if result.sink is not None:
        steps.append(say("the sink adds ", build.call("exp", result.sink), " to the denominator of every row"))
    steps += [say("for E: ", step) for step in upper.steps if result.upper is not None]
    known = positive_names(named.parameters)
    said = of_class(result, upper.verdict, lower.verdict, formula.primitive.node, known)
    verdict = upper.verdict
    if verdict == "converges" and said.kind is None and upper.condition is None:
        verdict = "undecided"
        steps.append(say("nothing bounds the nearest keys from below, so the envelope theorem does not apply"))
    if verdict == "diverges" and said.kind is None and not result.tight:
        verdict = "undecided"
        steps.append(
            say("the class stays below E, whose sum diverges: whether its members have a window is not decided")
        )
    steps += said.steps
    sink = None if result.sink is None else text(result.sink)
    ends = {"upper": None if result.upper is None else result.upper.text(), "lower": None if result.lower is None else
            result.lower.text(), "sink": sink, "rows": result.rows, "exact": result.tight,
            "certificate": upper.certificate}  # fmt: skip
    checked = Examination(False)
    if verdict == "converges" and upper.certificate is not None and not formula.parameters:
        checked = examine(formula, verdict, upper.certificate, start=start)  # for every member at once
    return replace(
        Verdict(shown, verdict, upper.condition if verdict == upper.verdict else None, tuple(steps), None, None, start),
        answer=said.kind if verdict != "undecided" or said.kind else None,
        envelope=ends,
        certificate=upper.certificate if checked else None,
        proven=checked.proof,
    )


def upper_envelope(encoding: str | Formula | Encoding, formula: Formula) -> Formula:
    """The bias that no member of a class exceeds.

    Raises:
        UndecidedError: If nothing bounds the class from above.
    """
    upper = envelope_of(find(encoding), formula).upper
    if upper is None:
        raise UndecidedError(f"nothing bounds {formula.text()} from above")
    return upper


def refuse_class(encoding: str | Formula | Encoding, formula: Formula, what: str) -> None:
    """One sentence where a question needs one bias and the formula is a class of them."""
    if not formula.is_class:
        return
    try:
        hint = f"ask for its upper envelope instead: {upper_envelope(encoding, formula).text()}"
    except UndecidedError as error:
        hint = str(error)
    raise ValueError(f"{what} needs one bias, and {formula.text()} is a class of biases; {hint}")
