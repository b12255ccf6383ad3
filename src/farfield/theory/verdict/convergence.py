"""The verdict on an encoding: does the sum of b(t) = exp(r(t)) converge, for which parameters, and why.

`check` is sound in every case: it says "converges" or "diverges" only with a proof, and "undecided" otherwise. The
`ROUTES` propose a certificate for a formula without open parameters, and the checker proves it; a formula with open
parameters gets the exact condition, from cases that the checker has proven (conditions.py). Where a formula has no
value (a log of what is not positive, a division by zero, a root or a real power of something negative, a negative
weight), the first such distance is named: the first distances are looked at one by one; that all others are defined is
proven by the checker, and where it refuses, the place is sought.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from flint import arb, ctx, fmpz

from farfield.formula import Formula, FormulaError, Node, constant
from farfield.formula.algebras import Balls, ball_power, evaluate
from farfield.formula.formula import Value
from farfield.formula.functions import rule_table
from farfield.formula.spelling import say
from farfield.formula.tree import substitute
from farfield.theory.checker.examination import examine
from farfield.theory.errors import FaultError, UndecidedError, UnknownError
from farfield.theory.exact.intervals import Interval, range_of
from farfield.theory.verdict.answers import answer_for, family_verdict, without_bias
from farfield.theory.verdict.conditions import decide_family
from farfield.theory.verdict.corners import by_corners
from farfield.theory.verdict.horizon import horizon
from farfield.theory.verdict.ladder import by_ladder
from farfield.theory.verdict.splits import by_branches, by_common_factors, by_residues, by_summands
from farfield.theory.verdict.touching import by_waves
from farfield.theory.verdict.verdict import Settle, Verdict
from farfield.zoo import Encoding, find

__all__ = ["Verdict", "check"]
SINGLES = 64  # distances that are looked at one by one
FARTHEST = 1 << 64  # up to where a distance without a value is sought
EVALUATIONS = 3000

# the routes to a verdict on a formula without open parameters, in the order in which they are tried
ROUTES: tuple[Callable[[Formula, int, Settle], Verdict | None], ...] = (
    by_ladder, by_waves, by_corners, by_summands, by_common_factors, by_residues, by_branches,
)  # fmt: skip


def check(
    encoding: str | Formula | Encoding,
    *,
    start: int = 0,
    weight: bool = False,
    parameters: Mapping[str, Value] | None = None,
    assume: str | None = None,
) -> Verdict:
    """Decide whether the series of an encoding converges, and prove it.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        start: the first distance of the series, for formulas that are undefined at 0.
        weight: the text gives the weight b(t) = exp(r(t)) instead of the bias.
        parameters: values of parameters, such as {"k": "1/16"}; those that are not given stay open.
        assume: what may be assumed of open parameters, such as "a > 0, b > 0".
    """
    named = find(encoding, weight=weight).assuming(assume)
    formula = named.formula
    if formula is None:
        return without_bias(named)
    if not isinstance(start, int) or not 0 <= start < 2**63:
        raise FormulaError(f"the series must start at a distance of 0 or more, not {start}", formula.text())
    formula = formula.bind(parameters or {})
    assumptions = _open_assumptions(named, parameters or {})
    if formula.is_bounded_family:
        _require_members(formula, start)
        upper, lower = (_check_one(bound, assumptions, start) for bound in (formula.upper_bound, formula.lower_bound))
        return family_verdict(formula, upper, lower, _about(formula, assumptions))
    verdict = _check_one(formula, assumptions, start)
    if verdict.verdict == "converges":
        return replace(verdict, answer="windowed")
    return answer_for(verdict, formula, assumptions) if verdict.verdict == "diverges" else verdict


def _require_members(formula: Formula, start: int) -> None:
    """One sentence if at some early distance the lower bound is above the upper one: no bias lies between."""
    upper, lower = formula.upper_bound, formula.lower_bound
    for t in () if formula.parameters else range(start, start + 64):
        high, low = upper.ball(t), lower.ball(t)
        if low > high:
            where = f"at t = {t} the lower bound {float(low.mid()):g} is above the upper bound {float(high.mid()):g}"
            raise FormulaError(f"{where}: no bias lies between them; exchange the two formulas", formula.text())


def _about(formula: Formula, assumptions: tuple[Node, ...]) -> tuple[Node, ...]:
    """The assumptions about parameters of one formula."""
    return tuple(one for one in assumptions if one.free() <= set(formula.parameters))


def _check_one(formula: Formula, assumptions: tuple[Node, ...], start: int) -> Verdict:
    """The verdict on one formula."""
    try:
        if formula.parameters:
            verdict = _check_family(formula.primitive, _about(formula, assumptions), start)
        else:
            verdict = _check_concrete(formula.primitive, start)
            if verdict.verdict == "diverges" and (far := horizon(formula, start)) is not None:
                verdict = replace(verdict, horizon=far, steps=(*verdict.steps, say(far.sentence())))
    except UndecidedError as error:
        verdict = Verdict("", "undecided", steps=(say(f"not decided: {error}"),), start=start)
    return replace(verdict, formula=formula.text())


def _check_concrete(formula: Formula, start: int) -> Verdict:
    """The verdict on a formula without open parameters, with a certificate that the checker has accepted."""
    require_defined(formula, start)
    try:
        verdict = settle(formula, start)
    except UndecidedError:
        seek_undefined(formula, start)
        raise
    assert verdict.certificate is not None, "what is settled has a certificate"
    examination = examine(formula, verdict.verdict, verdict.certificate, start=start)
    if not examination.accepted:
        seek_undefined(formula, start)
        raise UndecidedError(
            f"the series seems to be one that {verdict.verdict}, but the checker does not accept its certificate: "
            f"{examination.refused}; please report this formula"
        )
    return replace(verdict, proven=examination.proof)


def settle(formula: Formula, start: int) -> Verdict:
    """The verdict of the first route that ends in a certificate; UndecidedError with what stopped the ladder."""
    reason: Exception | None = None
    for route in ROUTES:
        try:
            result = route(formula, start, settle)
        except (UndecidedError, FormulaError) as error:  # a part of a formula may have no value of its own
            reason = reason or error
            continue
        if result is not None:
            return result
    raise reason or UndecidedError("no route led to a certificate")


def _check_family(formula: Formula, assumptions: tuple[Node, ...], start: int) -> Verdict:
    """A formula with open parameters: every case, proven, and the exact condition."""
    require_defined(formula, start)
    verdict, condition, certificate = decide_family(formula, assumptions)
    if len(assumptions) == 1 and verdict == "converges":  # is what is assumed the condition itself?
        free = decide_family(formula, ())
        if free[1] == f"converges if and only if {Formula(assumptions[0]).text()}":
            verdict, condition, certificate = free
    proven = () if condition is None else (f"each case for all its parameters: {condition}",)
    steps = certificate.steps
    return Verdict(formula.text(), verdict, condition, steps, cases=certificate, start=start, proven=proven)


def _open_assumptions(named: Encoding, parameters: Mapping[str, Value]) -> tuple[Node, ...]:
    """What may be assumed of the parameters that are still open."""
    values = {name: constant(value) for name, value in parameters.items()}
    for relation in named.assumptions:
        for name in sorted(relation.free()):
            if named.formula is not None:
                named.formula.require(name)
    nodes = (substitute(relation, values) for relation in named.assumptions)
    return tuple(node for node in nodes if node.free())


# ---------------------------------------------------------------------------------------------------- the domain
def _guard(x: arb, good: bool, bad: bool, reason: str) -> None:
    if not good and not x.is_nan():
        raise FaultError(reason, bad)


def _log(x: arb) -> arb:
    _guard(x, x > 0, x <= 0, "log of a number that is not positive")
    return x.log()


def _sqrt(x: arb) -> arb:
    _guard(x, x >= 0, x < 0, "sqrt of a negative number")
    return x.sqrt() if x > 0 else arb(0).union(x.upper().sqrt())


def _divide(x: arb, y: arb) -> arb:
    _guard(y, y != 0, y.is_zero(), "a division by zero")
    return x / y


def _power(x: arb, y: arb) -> arb:
    whole = y.unique_fmpz() if y.is_exact() else None
    if whole is not None and whole < 0:
        _guard(x, x != 0, x.is_zero(), "a negative power of zero")
    elif whole is None and not x > 0 and not y.is_nan():
        bad = x < 0 or (x.is_zero() and y <= 0)
        _guard(x, x >= 0 and y > 0, bad, "a real power of a number that is not positive")
    return ball_power(x, y)


_DEFINED_EVERYWHERE = ("+", "-", "*", "neg", "exp", "sin", "cos", "abs", "floor", "min", "max")
_RULES: dict[str, Callable[..., arb]] = rule_table("balls with guards", {
    **{op: Balls.operations[op] for op in _DEFINED_EVERYWHERE}, "log": _log, "sqrt": _sqrt, "/": _divide, "**": _power,
})  # fmt: skip


class _Guarded(Balls):
    """Balls, but every operation makes sure that it is defined."""

    operations = _RULES

    def sum(self, node: Node, names: Mapping[str, arb]) -> arb:
        if any(evaluate(bound, names, self).is_nan() for bound in node.args[1:]):
            return arb("nan")
        return super().sum(node, names)


_GUARDED = _Guarded()


def _look(formula: Formula, t: arb) -> None:
    """FaultError if the formula has no value at t, or may have none, whatever its open parameters are."""
    value = evaluate(formula.node, {"t": t, **dict.fromkeys(formula.parameters, arb("nan"))}, _GUARDED)
    if formula.weight and not formula.parameters:
        _guard(value, value >= 0, value < 0, "a negative weight")


def require_defined(formula: Formula, start: int) -> None:
    """FormulaError if the formula is undefined at one of the first distances, whatever its open parameters are."""
    for t in range(start, start + SINGLES):
        _require_at(formula, t)


def seek_undefined(formula: Formula, start: int) -> None:
    """FormulaError if a distance beyond the first ones is found at which the formula has no value."""
    todo, spent = [(start + SINGLES, FARTHEST)], 0
    with ctx.workprec(64):
        while todo and spent < EVALUATIONS:
            low, high = todo.pop()
            spent += 1
            try:
                value = range_of(formula, Interval(arb(low).lower(), arb(high).upper()))
                if not formula.weight or value.not_negative:
                    continue
            except UnknownError:
                pass
            if high - low <= 1:
                _require_at(formula, low)
                _require_at(formula, high)
            else:
                middle = 1 << ((low.bit_length() + high.bit_length()) // 2) if high > 4 * low else (low + high) // 2
                todo += [(middle, high), (low, middle)]


def _require_at(formula: Formula, t: int) -> None:
    for bits in (64, 512, 4096):
        with ctx.workprec(bits + t.bit_length()):
            try:
                return _look(formula, arb(fmpz(t)))
            except FaultError as fault:
                if fault.certain:
                    sentence = f"the formula is undefined at distance t = {t}: {fault.reason}{_way_out(formula, t)}"
                    raise FormulaError(sentence, formula.text()) from None


def _way_out(formula: Formula, t: int) -> str:
    """Where to start the series instead, if it is defined from there on for a while."""
    for start in range(t + 1, t + 9) if t < 1000 else ():
        try:
            for later in range(start, start + 8):
                _look(formula, arb(later))
        except FaultError:
            continue
        return f"; start the series later with --from {start}"
    return ""
