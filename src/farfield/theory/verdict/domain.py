"""Where a formula is defined: the first distance at which it has no value, or a proof that there is none.

Only four things can go wrong: log or gamma of what is not positive, division by zero, sqrt or a real power of something
negative, a negative weight. From some distance on the explicit expansion proves that none does; below it each is
checked with balls at the first distances, and over ranges that are cut where they do not tell (intervals.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flint import arb, ctx, fmpz

from farfield.formula import Formula, FormulaError, Node
from farfield.formula.algebras import Balls, Names, ball_power, evaluate, exact_value
from farfield.formula.functions import reading
from farfield.theory.budget import Work
from farfield.theory.errors import FaultError, LargerStartError, MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.verdict.engines import Explicit
from farfield.theory.verdict.intervals import RANGES, Range
from farfield.theory.verdict.ladder import starts
from farfield.theory.verdict.reader import bias

SINGLES = 64  # distances that are looked at one by one
REACH = 1500  # without an explicit expansion, ranges go up to 2**REACH
BUDGET = 3000  # evaluations


def _guard(x: Any, good: bool, bad: bool, reason: str) -> None:
    if not good and not x.is_nan():
        raise FaultError(reason, bad)


def _log(x: Any) -> Any:
    _guard(x, x > 0, x <= 0, "log of a number that is not positive")
    return x.log()


def _gamma(x: Any) -> Any:
    _guard(x, x > 0, x <= 0, "gamma of a number that is not positive")
    return x.gamma()


def _sqrt(x: Any) -> Any:
    _guard(x, x >= 0, x < 0, "sqrt of a negative number")
    return x.sqrt() if x > 0 else arb(0).union(x.upper().sqrt())


def _divide(x: Any, y: Any) -> Any:
    _guard(y, y != 0, y.is_zero(), "a division by zero")
    return x / y


def _power(x: Any, y: Any) -> Any:
    whole = y.unique_fmpz() if y.is_exact() else None
    if whole is not None and whole < 0:
        _guard(x, x != 0, x.is_zero(), "a negative power of zero")
    elif whole is None and not x > 0 and not y.is_nan():
        bad = x < 0 or (x.is_zero() and y <= 0)
        _guard(x, x >= 0 and y > 0, bad, "a real power of a number that is not positive")
    return ball_power(x, y)


_DEFINED_EVERYWHERE = ("+", "-", "*", "neg", "exp", "sin", "cos", "abs", "floor", "min", "max", "atan", "erf")
_RULES: dict[str, Callable[..., Any]] = reading("balls with guards", {
    **{op: Balls.operations[op] for op in _DEFINED_EVERYWHERE},
    "log": _log, "gamma": _gamma, "sqrt": _sqrt, "/": _divide, "**": _power,
})  # fmt: skip


class _Guarded(Balls):
    """Balls, but every operation makes sure that it is defined."""

    operations = _RULES

    def sum(self, node: Node, names: Names) -> Any:
        if any(evaluate(bound, names, self).is_nan() for bound in node.args[1:]):
            return arb("nan")
        return super().sum(node, names)


_GUARDED = _Guarded()


def _look(formula: Formula, t: Any) -> None:
    """Raise FaultError if the formula is not defined, or not provably so, at t (a number or a range).

    A part with an open parameter is not a number here, and gets the benefit of the doubt.
    """
    value = evaluate(formula.node, {"t": t, **dict.fromkeys(formula.parameters, arb("nan"))}, _GUARDED)
    if formula.weight and not value >= 0 and not formula.parameters:
        ends = evaluate(
            formula.node, {"t": Range(t.lower(), t.upper())}, RANGES
        )  # a ball around [0, 1] reaches below 0
        _guard(value, ends.low >= 0, value < 0, "a negative weight")


def _moving_guards(formula: Formula) -> bool:
    """Whether anything that could go wrong depends on t."""

    def risky(n: Node) -> bool:
        if n.op in ("log", "gamma", "sqrt", "**"):
            whole = n.op == "**" and (e := exact_value(n.args[1], {})) is not None and e.denominator == 1 and e >= 0
            return not whole and any("t" in a.free() for a in n.args)
        return n.op == "/" and "t" in n.args[1].free()

    return formula.weight or any(risky(n) for n in formula.node.walk())


def require_defined(formula: Formula, start: int, work: Work) -> None:
    """Make sure that a formula without open parameters is defined at every distance from `start` on.

    FormulaError names the first distance where it is not; UndecidedError says where it could not be told.
    """
    _require_at(formula, fmpz(start))
    if _moving_guards(formula):
        end = _defined_from(formula, work)
        for t in range(start + 1, min(end, start + SINGLES)):
            _require_at(formula, fmpz(t))
        if end > start + SINGLES:
            _require_range(formula, fmpz(start + SINGLES), fmpz(end))


def refuse_undefined(formula: Formula, start: int) -> None:
    """FormulaError if a formula with open parameters is undefined at one of the first distances, whatever they are."""
    for t in range(start, start + SINGLES):
        try:
            _require_at(formula, fmpz(t))
        except UndecidedError:
            continue


def _defined_from(formula: Formula, work: Work) -> int:
    """A distance from which on the expansion proves every log, quotient and root to be defined."""
    for name, ln_start in starts():
        try:
            with ctx.workprec(128):
                bias(Explicit(ln_start, 4, work), formula)
            return int(name) if name.isdigit() else _whole(ln_start)
        except (LargerStartError, MoreTermsError, OverflowError):
            continue
        except (UndecidedError, UndefinedError):
            break
    return 1 << REACH


def _whole(ln_start: arb) -> int:
    """An integer at or above exp(ln_start), as far as one can be written down."""
    if not ln_start < REACH:
        return 1 << REACH
    with ctx.workprec(2 * REACH):
        return int(ln_start.exp().ceil().upper().unique_fmpz())


def _require_at(formula: Formula, t: fmpz) -> None:
    for bits in (64, 512, 4096):
        with ctx.workprec(max(bits, t.bit_length() + 64) if t.bit_length() < 10_000 else bits):
            try:
                return _look(formula, arb(t))
            except FaultError as fault:
                if fault.certain:
                    sentence = f"the formula is undefined at distance t = {t}: {fault.reason}{_way_out(formula, t)}"
                    raise FormulaError(sentence, formula.text()) from None
                reason = fault.reason
    raise UndecidedError(f"it could not be proven that the formula is defined at t = {t} ({reason})")


def _way_out(formula: Formula, t: fmpz) -> str:
    """Where to start the series instead, if it is defined from there on for a while."""
    for start in range(int(t) + 1, int(t) + 9) if t < 1000 else ():
        try:
            for later in range(start, start + 8):
                _look(formula, arb(later))
        except FaultError:
            continue
        return f"; start the series later with --from {start}"
    return ""


def _require_range(formula: Formula, first: fmpz, end: fmpz) -> None:
    """Show that the formula is defined on [first, end], by ranges that are cut where they do not tell."""
    spent = 0
    todo: list[tuple[fmpz, fmpz]] = [(first, end)]
    with ctx.workprec(64):
        while todo:
            low, high = todo.pop()
            spent += 1
            if spent > BUDGET:
                raise UndecidedError(f"it could not be proven that the formula is defined beyond t = {_short(low)}")
            try:
                value = evaluate(formula.node, {"t": Range(arb(low).lower(), arb(high).upper())}, RANGES)
                if formula.weight and not value.low >= 0:
                    raise FaultError("a negative weight", bool(value.high < 0))
            except FaultError as fault:
                if high - low <= 1:
                    _require_at(formula, low)
                    _require_at(formula, high)
                elif fault.certain:  # nowhere defined in here: its first distance is bad
                    _require_at(formula, low)
                else:
                    bits = (low.bit_length() + high.bit_length()) // 2
                    middle = fmpz(1) << bits if high > 4 * low else (low + high) // 2
                    todo += [(middle, high), (low, middle)]


def _short(t: fmpz) -> str:
    return str(t) if t.bit_length() < 60 else f"2**{t.bit_length() - 1}"
