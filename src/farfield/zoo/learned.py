"""Parameters that a model learns: where its heads start, and the bounds between which their values are kept.

A person writes "a=0:2, p=0.5:1.5 in 0.01:3": a starts between 0 and 2, p between 0.5 and 1.5, and p is kept from 0.01
to 3. Without bounds a parameter keeps the sign of its range: one that starts at 0 or above stays there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

EXAMPLE = 'such as "a=0:2, p=0.5:1.5 in 0.01:3"'
_NAME = re.compile(r"[A-Za-z_]\w*")
_FIELDS = ("start", "least", "most", "spread", "values")


@dataclass(frozen=True)
class Learned:
    """A value learned for each head, one set for all layers or one for each.

    Args:
        start: the range in which the heads start.
        least: the lower bound; None is none.
        most: the upper bound; None is none.
        spread: each head starts in its own part of the range, in an order by chance; else anywhere in it.
        values: where each head starts, instead.
    """

    start: tuple[float, float]
    least: float | None = None
    most: float | None = None
    spread: bool = field(default=False, repr=False)
    values: tuple[float, ...] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        if self.start == (0, 0):
            return "learned, starts at 0"
        low, high = (f"{v:g}" for v in self.start)
        where = f"in U({low}, {high})" if not self.spread and self.values is None else f"spread over {low} to {high}"
        if self.values is not None:
            where = "at " + ", ".join(f"{v:g}" for v in self.values[:8]) + (", ..." if len(self.values) > 8 else "")
        if self.least is None and self.most is None:
            return f"learned, starts {where}"
        bound = f"{self.least:g} to {self.most:g}" if self.least is not None and self.most is not None else ""
        one_sided = f"at most {self.most:g}" if self.least is None else f"at least {self.least:g}"
        return f"learned, starts {where}, kept {bound or one_sided}"

    @property
    def edges(self) -> tuple[float, float]:
        """The least and the largest value at which a head may start."""
        low, high = (min(self.values), max(self.values)) if self.values else self.start
        least, most = (-math.inf if self.least is None else self.least), (math.inf if self.most is None else self.most)
        return min(max(low, least), most), min(max(high, least), most)

    def json(self) -> dict[str, Any]:
        """As a model's configuration holds it."""
        table: dict[str, Any] = {"start": list(self.start), "least": self.least, "most": self.most}
        if self.values is not None:
            return {**table, "values": list(self.values)}
        return {**table, "spread": self.spread}

    def spelled(self, name: str) -> str:
        """As a person writes it."""
        low, high = (-math.inf if self.least is None else self.least, math.inf if self.most is None else self.most)
        return f"{name}={_short(self.start[0])}:{_short(self.start[1])} in {_short(low)}:{_short(high)}"


def learned(name: str, given: Any) -> Learned:
    """How a parameter is learned, from "0:2 in 0:inf", (0, 2), a `Learned` or the table of a configuration.

    Args:
        name: of the parameter, for the message.
        given: what a person or a file says; it is checked.
    """
    if isinstance(given, Learned):
        given = given.json()
    if isinstance(given, str):
        return _read(name, given)
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in _FIELDS]
        if unknown or "start" not in given:
            what = f"{str(unknown[0])[:40]!r}" if unknown else "no 'start'"
            raise ValueError(f"the learned parameter {name} has {what}; it takes {', '.join(_FIELDS)}")
        table = dict(given)
    elif isinstance(given, Sequence) and len(given) == 2:
        table = {"start": given, "spread": True, **_same_sign(given)}
    else:
        raise ValueError(
            f"the learned parameter {name} takes a range, such as (0, 2) or '0:2', not {str(given)[:40]!r}"
        )
    start, values = table["start"], table.get("values")
    if not isinstance(start, Sequence) or isinstance(start, str) or len(start) != 2:
        raise ValueError(
            f"the start of the learned parameter {name} is a range of two numbers, not {str(start)[:40]!r}"
        )
    if (
        not isinstance(table.get("spread", False), bool)
        or isinstance(values, str)
        or not isinstance(values, Sequence | None)
    ):
        raise ValueError(f"of the learned parameter {name}, spread is true or false, and values are a list of numbers")
    bounds = [None if table.get(edge) is None else _number(name, table[edge]) for edge in ("least", "most")]
    bounds = [None if b is None or math.isinf(b) else b for b in bounds]
    numbers = None if values is None else tuple(_finite(name, v) for v in values)
    low, high = (_finite(name, v) for v in start)
    return _consistent(name, Learned((low, high), bounds[0], bounds[1], table.get("spread", False), numbers))


def learned_parameters(given: str | Mapping[str, Any] | None) -> dict[str, Learned]:
    """How each parameter is learned, by its name: from "a=0:2, p=0.5:1.5", or {"a": (0, 2), "p": "0.5:1.5"}."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {name: learned(name, one) for name, one in given.items()}
    rules: dict[str, Learned] = {}
    for part in given.split(","):
        name, equals, text = (word.strip() for word in part.partition("="))
        if not equals or not text or not _NAME.fullmatch(name):
            raise ValueError(f"what is learned is written NAME=LOW:HIGH, {EXAMPLE}, not {part.strip()[:40]!r}")
        if name in rules:
            raise ValueError(f"the range of {name} is given twice")
        rules[name] = _read(name, text)
    return rules


def _read(name: str, text: str) -> Learned:
    """The rule in "0:2" or "0:2 in 0:inf"; one number is where every head starts."""
    range_, kept, bounds = re.split(r"\s(in)\s", text, maxsplit=1) if re.search(r"\sin\s", text) else (text, "", "")
    start = [_number(name, word) for word in range_.split(":")]
    if len(start) == 1:
        start *= 2
    edges = [_number(name, word) for word in bounds.split(":")] if kept else []
    if len(start) != 2 or (kept and len(edges) != 2):
        raise ValueError(f"the range of {name} is written LOW:HIGH, {EXAMPLE}, not {text.strip()[:40]!r}")
    table = dict(zip(("least", "most"), edges, strict=True)) if kept else _same_sign(start)
    return learned(name, {"start": start, "spread": True, **table})


def _same_sign(start: Sequence[Any]) -> dict[str, float]:
    """The bounds where none are given: a range on one side of 0 stays there."""
    try:
        low, high = start
        return {"least": 0.0} if low >= 0 else {"most": 0.0} if high <= 0 else {}
    except TypeError:
        return {}


def _number(name: str, value: Any) -> float:
    """A number, or a fraction as text; infinity too."""
    text = value.strip() if isinstance(value, str) else value
    try:
        if isinstance(text, bool) or not isinstance(text, str | int | float | Fraction):
            raise ValueError
        number = float(Fraction(text)) if isinstance(text, str) and "/" in text else float(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"the range of {name} needs numbers, {EXAMPLE}, not {str(value)[:40]!r}")
    return number


def _finite(name: str, value: Any) -> float:
    number = _number(name, value)
    if abs(number) > 1e30:
        raise ValueError(f"the learned parameter {name} starts at {number:g}; it must start within -1e30 to 1e30")
    return number


def _consistent(name: str, rule: Learned) -> Learned:
    low, high = rule.start
    least = -math.inf if rule.least is None else rule.least
    most = math.inf if rule.most is None else rule.most
    if low > high:
        raise ValueError(f"the range of {name} is upside down: it goes from {low:g} to {high:g}")
    if least > most:
        raise ValueError(f"the bounds of {name} are upside down: they go from {least:g} to {most:g}")
    first = rule.values or rule.start
    outside = min(first) < least or max(first) > most
    if outside and (rule.spread or rule.values or max(first) < least or min(first) > most):
        raise ValueError(
            f"{name} starts in {min(first):g} to {max(first):g}, which is not within its bounds, {least:g} to {most:g}"
        )
    return rule


def _short(value: float) -> str:
    return repr(value).removesuffix(".0")
