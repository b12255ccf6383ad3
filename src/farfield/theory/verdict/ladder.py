"""The test of convergence: the ladder of Bertrand, on the expansion of -ln b(t).

With g = -ln b and R_m = lim (g - l_1 - ... - l_m) / l_{m+1}, the series converges if R_m > 1 and diverges if
R_m < 1, by comparison with 1/(t * ln t * ... * l_m**s); if R_m = 1, look one logarithm deeper. Only a lower or an
upper limit is needed, so bounded oscillation does no harm. `certificate` turns the limit into an inequality that
holds for all t from an explicit distance on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from farfield.formula import Formula, Node, build
from farfield.formula.plain_text import decimal_text
from farfield.formula.sentence import Sentence, say
from farfield.theory.budget import Work
from farfield.theory.errors import LargerStartError, MoreTermsError, UndecidedError, UndefinedError
from farfield.theory.exact import constants, signs
from farfield.theory.exact.constants import ONE, ZERO, Const, rational
from farfield.theory.verdict.engines import Asymptotic, Explicit
from farfield.theory.verdict.expansion import MINUS, Engine, Expansion
from farfield.theory.verdict.growth import NOTHING
from farfield.theory.verdict.monomials import UNIT, ell, level
from farfield.theory.verdict.reader import LENGTHS, bias
from farfield.theory.verdict.regions import Region

DEPTH = 6  # logarithms that are tried


B = build.applied("b")
MINUS_LOG = build.negative(build.call("log", B))


@dataclass(frozen=True)
class Rung:
    """Where the ladder stopped: the verdict, the depth m, the limit R_m (None if infinite), and how that is shown."""

    verdict: str
    depth: int
    ratio: Const | None
    steps: tuple[Sentence, ...] = field(compare=False)
    reason: Sentence = field(compare=False)  # why the verdict follows from the last step


def climb(engine: Asymptotic, formula: Formula) -> Rung:
    """Decide the series of a formula, under the assumptions of the engine's region."""
    r = bias(engine, formula)
    if r is NOTHING:
        zero = build.relation(B, "=", build.ZERO)
        return Rung("converges", 0, None, (), say(zero, " from some distance on, so the sum has finitely many terms"))
    g = engine.negative(r)
    steps = [say(build.relation(MINUS_LOG, "=", g.node()), " as t grows")]
    ceiling = _ceiling(engine, g)
    if ceiling is not None:
        if g.rest is not None and g.rest[0] == UNIT:
            low, high = (constants.node(c) for c in g.rest[1])
            steps = [say(MINUS_LOG, " oscillates without growing: its limits lie between ", low, " and ", high)]
        reason = say(
            "so the terms do not tend to 0: every limit of ", B, " is at least ",
            constants.node(constants.exp(-ceiling)), ", and the sum diverges",
        )  # fmt: skip
        return Rung("diverges", 0, ZERO, tuple(steps), reason)
    for depth in range(DEPTH + 1):
        if depth:
            g = engine.add(g, Expansion(((ell(depth), MINUS),)))
        verdict, ratio, shown = _rung(engine, g, depth)
        inner = build.total([MINUS_LOG, *(build.negative(level(i)) for i in range(1, depth + 1))])
        steps.append(say(Node("/", (inner, level(depth + 1))), " ", shown))
        if verdict:
            return Rung(verdict, depth, ratio, tuple(steps), _comparison(verdict, depth, ratio))
        steps.append(say("the limit is exactly 1, so compare one logarithm deeper"))
    raise UndecidedError("it could not be told within six nested logarithms")


def _ceiling(engine: Asymptotic, g: Expansion) -> Const | None:
    """The upper limit of -ln b(t), if it stays bounded."""
    g = engine.led(g)
    if g.terms and engine.compare(g.terms[0][0], UNIT) > 0:
        return None
    if g.rest is None or engine.compare(g.rest[0], UNIT) < 0:
        return next((c for m, c in g.terms if m == UNIT), ZERO)
    return g.rest[1][1] if g.rest[0] == UNIT and g.rest[1] is not None else None


def _comparison(verdict: str, depth: int, ratio: Const | None) -> Sentence:
    if verdict == "diverges" and ratio is None and depth == 0:
        return say("so ", B, " tends to infinity, and the sum diverges")
    factors = [*(level(i) for i in range(depth)), build.power(level(depth), build.name("s"))]
    sign = "<=" if verdict == "converges" else ">="
    bound = build.relation(B, sign, build.quotient(build.ONE, build.product(factors)))
    exponent = build.relation(build.name("s"), ">" if verdict == "converges" else "<", build.ONE)
    end = f" and all large t; the sum of that {verdict} (integral test), and so does the sum of "
    return say("so ", bound, " for some ", exponent, end, B)


def _rung(engine: Asymptotic, g: Expansion, depth: int) -> tuple[str, Const | None, Sentence]:
    """(verdict or "", limit or None for infinity, how to say it) at one depth."""
    g = engine.led(g)
    target, sign = ell(depth + 1), engine.region.sign
    if g.terms and engine.compare(g.terms[0][0], target) > 0:
        if sign(g.terms[0][1]) > 0:
            return "converges", None, say("tends to infinity")
        return "diverges", None, say("tends to minus infinity")
    order = engine.compare(g.rest[0], target) if g.rest is not None else -1
    if order > 0:
        assert g.rest is not None
        side = engine.interval_sign(g.rest[1]) if not g.terms else None
        if side == 1:
            return "converges", None, say("oscillates, but tends to infinity")
        if side == -1:
            return "diverges", None, say("oscillates, but tends to minus infinity")
        raise MoreTermsError("the remainder is too large for the ladder")
    if order == 0:
        assert g.rest is not None
        if g.rest[1] is None:
            raise MoreTermsError("the remainder is too large for the ladder")
        low, high = g.rest[1]
        if low == high:
            raise MoreTermsError("cut too early")
        shown = say("has limits between ", constants.node(low), " and ", constants.node(high))
        if sign(low - ONE) > 0:
            return "converges", low, say(shown, ", above 1")
        if sign(high - ONE) < 0:
            return "diverges", high, say(shown, ", below 1")
        ends = f"{constants.text(low)} and {constants.text(high)}"
        raise UndecidedError(f"the exponent oscillates between {ends}, across 1")
    same = bool(g.terms) and engine.compare(g.terms[0][0], target) == 0
    ratio = g.terms[0][1] if same else ZERO
    gap = sign(ratio - ONE)
    shown = say("tends to ", constants.node(ratio))
    return ("converges" if gap > 0 else "diverges" if gap < 0 else ""), ratio, shown


def decide(formula: Formula, region: Region, work: Work, shortest: int = 3) -> Rung:
    """Climb with longer and longer expansions until the verdict is certain."""
    last = "no expansion was long enough"
    for length in (*range(1, 3), *LENGTHS):
        if length < shortest:
            continue
        try:
            return climb(Asymptotic(region, length, work), formula)
        except MoreTermsError as error:
            last = str(error)
    raise UndecidedError(last)


# ------------------------------------------------------------------------------------------------ explicit bounds
def starts() -> Iterator[tuple[str, arb]]:
    """Distances X from which a bound may hold: (as text, ln X)."""
    for power in (2, 4, 6, 8, 10, 13, 16, 20, 30):
        yield str(1 << power), arb(1 << power).log()
    yield "exp(50)", arb(50)
    yield "exp(1000)", arb(1000)
    yield "exp(1000000)", arb(10) ** 6
    yield "exp(exp(50))", arb(50).exp()
    yield "exp(exp(exp(20)))", arb(20).exp().exp()
    with ctx.workprec(2048):  # exp(1000) to the unit
        furthest = arb(1000).exp().exp()
    yield "exp(exp(exp(1000)))", furthest


def excess(engine: Explicit, g: Expansion, depth: int, exponent: Const, above: bool) -> arb | None:
    """The least c found with g - l_1 - ... - l_depth - exponent * l_{depth+1} >= -c (or <= c) for all t >= X."""
    parts = [Expansion(((ell(i), MINUS),)) for i in range(1, depth + 1)]
    if exponent.terms:
        parts.append(Expansion(((ell(depth + 1), -exponent),)))
    s = engine.add(g, *parts)
    if not above:
        s = engine.negative(s)
    big = [(m, c) for m, c in s.terms if engine.compare(m, UNIT) > 0]
    total, rest = arb(0), None
    for m, c in s.terms:
        if m == UNIT:
            total -= signs.ball(c)
        elif engine.compare(m, UNIT) < 0:
            total += abs(signs.ball(c)) * engine.largest(m)
    if s.rest is not None:
        order = engine.compare(s.rest[0], UNIT)
        if order > 0:
            rest = s.rest
        elif order == 0:
            total -= s.rest[1][0]
        else:
            total += abs(s.rest[1][0]).max(abs(s.rest[1][1])) * engine.largest(s.rest[0])
    if (big or rest) and _least_sign(engine, Expansion(tuple(big), rest)) <= 0:
        return None
    return total.upper()


def _least_sign(engine: Engine, s: Expansion) -> int:
    try:
        return engine.sign(s)
    except UndecidedError:
        return 0


def exponents(rung: Rung) -> list[Const]:
    """Exponents between 1 and the limit R, the neatest first."""
    if rung.verdict == "converges":
        if rung.ratio is None:
            return [rational(2)]
        q = rung.ratio.rational
        middle = _between(Fraction(1), rung.ratio)
        return [rational(middle)] + ([rung.ratio] if q is not None and q > 1 else [])
    candidates = [ZERO, ONE]
    if rung.ratio is not None and (q := rung.ratio.rational) is not None and 0 < q < 1:
        candidates.insert(1, rung.ratio)
    return candidates


def _between(low: Fraction, high: Const) -> Fraction:
    """A short decimal strictly between a rational and a larger constant, about the middle."""
    with ctx.workprec(256):
        middle = (arb(low.numerator) / low.denominator + signs.ball(high)) / 2
        gap = signs.ball(high) - arb(low.numerator) / low.denominator
        for digits in range(1, 70):
            text = middle.mid().str(digits, radius=False)
            value = Fraction(text)
            if value > low and signs.sign(high - rational(value)) > 0 and abs(middle - arb(text)) < gap / 3:
                return value
    raise UndecidedError("the limit is too close to 1")


def certificate(formula: Formula, rung: Rung, work: Work) -> dict[str, Any] | None:
    """An inequality for all t >= X that proves the verdict, or None if none was found."""
    above = rung.verdict == "converges"
    for length in (4, 8, 16):
        for name, ln_start in starts():
            try:
                with ctx.workprec(128):
                    engine = Explicit(ln_start, length, work)
                    r = bias(engine, formula)
                    if r is NOTHING:
                        return {"claim": "finite", "from": name}
                    if rung.depth:
                        engine.level(rung.depth)  # the scale must be positive from X on
                    g = engine.negative(r)
                    for exponent in exponents(rung):
                        c = excess(engine, g, rung.depth, exponent, above)
                        if c is not None and c.is_finite():
                            return _claim(above, rung.depth, exponent, c, name)
            except (LargerStartError, OverflowError):
                continue
            except MoreTermsError:
                break
            except (UndecidedError, UndefinedError):
                return None
    return None


def _claim(above: bool, depth: int, exponent: Const, c: arb, start: str) -> dict[str, Any]:
    if not exponent.terms and depth:
        depth, exponent = depth - 1, ONE  # t*log(t)**0 is t**1
    return {
        "claim": "upper" if above else "lower",
        "ln_constant": safe_decimal(c if above else -c, above),
        "depth": depth,
        "exponent": str(exponent.rational),
        "from": start,
    }


def safe_decimal(value: arb, up: bool) -> str:
    """A short decimal on the safe side of a number."""
    size = max(abs(float(value.mid())), 1e-3)
    step = Fraction(10) ** (len(str(int(size))) - 5)
    steps = value / (arb(step.numerator) / step.denominator)
    whole = steps.upper().ceil() if up else steps.lower().floor()
    exact = Fraction(int(whole.unique_fmpz())) * step
    return ("-" if exact < 0 else "") + decimal_text(abs(exact))
