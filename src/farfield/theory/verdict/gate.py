"""The gate: a verdict on a concrete formula is said only with a certificate that the independent checker accepts."""

from __future__ import annotations

from typing import Any

from farfield.formula import Formula
from farfield.theory.checker.claims import Claim, read
from farfield.theory.checker.examination import examine
from farfield.theory.errors import UndecidedError


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
    ranked = sorted(bounds, key=lambda c: ((1,) * c.depth, c.exponent))
    upper = kinds == {"upper"}
    chosen, constants = ranked[0 if upper else -1], [c.ln_constant for c in bounds]
    latest = max((c.start for c in bounds), key=lambda place: (place.nesting, place.whole))
    return Claim(chosen.kind, latest, max(constants) if upper else min(constants), chosen.depth, chosen.exponent).json()
