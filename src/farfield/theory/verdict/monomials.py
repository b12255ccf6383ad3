"""Monomials of the logarithmic scale: l_0**a_0 * l_1**a_1 * ... * exp(phi), l_0 = t, l_1 = ln t, l_2 = ln ln t, ..."""

from __future__ import annotations

from collections.abc import Iterable

from farfield.theory.exact import constants
from farfield.theory.exact.constants import ONE, Const


class Mono:
    """A monomial of the logarithmic scale: powers of l_i, and exp of a sum of larger monomials."""

    __slots__ = ("_hash", "phi", "powers")

    def __init__(self, powers: tuple[tuple[int, Const], ...] = (), phi: tuple[tuple[Mono, Const], ...] = ()):
        self.powers, self.phi = powers, phi
        self._hash = hash((powers, phi))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Mono) or self._hash != other._hash:
            return False
        return self.powers == other.powers and self.phi == other.phi

    def __repr__(self) -> str:
        parts = [_power_text(level(i), a) for i, a in self.powers]
        if self.phi:
            parts.append("exp(" + sum_text((c, repr(m)) for m, c in self.phi) + ")")
        return "*".join(parts) or "1"


def level(i: int) -> str:
    """The name of l_i: t, log(t), log(log(t)) ..."""
    return "log(" * i + "t" + ")" * i


def _power_text(name: str, e: Const) -> str:
    if e == ONE:
        return name
    shown = constants.text(e)
    return f"{name}**{shown}" if shown.isalnum() else f"{name}**({shown})"


def sum_text(parts: Iterable[tuple[Const, str]]) -> str:
    """A sum of coefficient times name, as a person writes it."""
    out = ""
    for c, name in parts:
        shown = constants.text(c)
        negative = shown.startswith("-") and " " not in shown
        body = shown[1:] if negative else shown
        if " " in body:
            body = f"({body})"
        body = name if body == "1" and name != "1" else body if name == "1" else f"{body}*{name}"
        out += (" - " if negative else " + ") + body if out else ("-" if negative else "") + body
    return out or "0"


UNIT = Mono()


def ell(i: int, power: Const = ONE) -> Mono:
    """The monomial l_i."""
    return Mono(((i, power),))
