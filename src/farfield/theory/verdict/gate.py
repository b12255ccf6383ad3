"""The gate: a verdict on a concrete formula is said only with a certificate that the independent checker accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from flint import ctx, fmpq

from farfield.formula import Formula
from farfield.formula.sentence import Sentence
from farfield.theory.checker.claims import MAX_DEPTH, Claim, Place, read
from farfield.theory.checker.examination import examine
from farfield.theory.checker.intervals import Interval, exactly
from farfield.theory.checker.monomials import exponentials
from farfield.theory.errors import UndecidedError

LATER = (Place(1 << 30), Place(50, 1), Place(1000, 1), Place(10**6, 1), Place(50, 2))


class PartVerdict(Protocol):
    """What a verdict on a part of the work has."""

    @property
    def verdict(self) -> str: ...
    @property
    def steps(self) -> tuple[Sentence, ...]: ...
    @property
    def certificate(self) -> dict[str, Any] | None: ...


@dataclass(frozen=True)
class Settled:
    """A verdict with its proof and its certificate, before the gate."""

    verdict: str
    steps: tuple[Sentence, ...]
    certificate: dict[str, Any] | None


Settle = Callable[
    [Formula, int], PartVerdict
]  # the verdict on a formula from a distance on; UndecidedError if there is none


def accepted(formula: Formula, verdict: str, certificate: dict[str, Any] | None, start: int) -> tuple[str, ...]:
    """The checker's own proof of a verdict; UndecidedError, with what was refused, if it has none."""
    if certificate is None:
        raise UndecidedError(f"the series seems to be one that {verdict}, but no certificate of that was found")
    examination = examine(formula, verdict, certificate, start=start)
    if not examination.accepted:
        raise UndecidedError(
            f"the prover says that the series {verdict}, but the checker does not accept its certificate: "
            f"{examination.refused}; please report this formula"
        )
    return examination.proof


def weakest(certificates: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    """One bound that all of these imply for large t: the largest upper, or the smallest lower one."""
    bounds = [c for c in map(read, filter(None, certificates)) if isinstance(c, Claim)]
    kinds = {c.kind for c in bounds}
    if len(bounds) != len(certificates) or kinds not in ({"upper"}, {"lower"}):
        return None
    upper = kinds == {"upper"}
    ranked = sorted(bounds, key=lambda c: (*(1,) * c.depth, c.exponent, *(0,) * (MAX_DEPTH - c.depth)))
    chosen, constants = ranked[0 if upper else -1], [c.ln_constant for c in bounds]
    latest = max((c.start for c in bounds), key=lambda place: (place.nesting, place.whole))
    later = [p for p in LATER if (p.nesting, p.whole) > (latest.nesting, latest.whole)]
    start = next((p for p in (latest, *later) if all(_outweighs(c, chosen, p, upper) for c in bounds)), latest)
    constant = max(constants) if upper else min(constants)
    return Claim(chosen.kind, start, constant, chosen.depth, chosen.exponent).json()


def _outweighs(one: Claim, chosen: Claim, place: Place, upper: bool) -> bool:
    """Whether the scale of one bound is on the right side of that of the chosen one at a place."""
    with ctx.workprec(128):
        levels = exponentials(place.whole, place.nesting)
        gap = _ln_scale(one, levels) - _ln_scale(chosen, levels)
    return bool(gap.low >= 0 if upper else gap.high <= 0) or one.json() == chosen.json()


def _ln_scale(claim: Claim, levels: tuple[Interval, ...]) -> Interval:
    total = exactly(0)
    for i in range(1, claim.depth + 2):
        c = exactly(1) if i <= claim.depth else exactly(fmpq(claim.exponent.numerator, claim.exponent.denominator))
        total = total + c * (levels[i] if i < len(levels) else exactly(0))
    return total
