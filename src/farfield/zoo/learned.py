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
        if self.values is not None:
            where = "at " + ", ".join(f"{v:g}" for v in self.values[:8]) + (", ..." if len(self.values) > 8 else "")
        else:
            where = f"spread over {low} to {high}" if self.spread else f"in U({low}, {high})"
        if self.least is None and self.most is None:
            return f"learned, starts {where}"
        both = self.least is not None and self.most is not None
        one_sided = f"at most {self.most:g}" if self.least is None else f"at least {self.least:g}"
        return f"learned, starts {where}, kept {f'{self.least:g} to {self.most:g}' if both else one_sided}"

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which numbers a value is kept."""
        return -math.inf if self.least is None else self.least, math.inf if self.most is None else self.most

    @property
    def edges(self) -> tuple[float, float]:
        """The least and the largest value at which a head may start."""
        (least, most), starts = self.bounds, self.values or self.start
        return min(max(min(starts), least), most), min(max(max(starts), least), most)

    def json(self) -> dict[str, object]:
        """As a model's configuration holds it."""
        last = {"spread": self.spread} if self.values is None else {"values": list(self.values)}
        return {"start": list(self.start), "least": self.least, "most": self.most, **last}

    def spell(self, name: str) -> str:
        """As a person writes it."""
        low, high, least, most = (repr(x).removesuffix(".0") for x in (*self.start, *self.bounds))
        return f"{name}={low}:{high} in {least}:{most}"


def learned_rule(name: str, value: object) -> Learned:
    """How a parameter is learned, from "0:2 in 0:inf", (0, 2), a `Learned` or the table of a configuration.

    Args:
        name: of the parameter, for the message.
        value: what a person or a file says; it is checked.
    """
    if isinstance(value, Learned):
        value = value.json()
    if isinstance(value, str):
        return _parse(name, value)
    if isinstance(value, Mapping):
        unknown = [key for key in value if key not in _FIELDS]
        if unknown or "start" not in value:
            what = f"{str(unknown[0])[:40]!r}" if unknown else "no 'start'"
            raise ValueError(f"the learned parameter {name} has {what}; it takes {', '.join(_FIELDS)}")
        return _of_table(name, value)
    if isinstance(value, Sequence) and len(value) == 2:
        return _of_table(name, {"start": value, "spread": True, **_same_sign(value)})
    raise ValueError(f"the learned parameter {name} takes a range, such as (0, 2) or '0:2', not {str(value)[:40]!r}")


def learned_parameters(rules: str | Mapping[str, object] | None) -> dict[str, Learned]:
    """How each parameter is learned, by its name: from "a=0:2, p=0.5:1.5", or {"a": (0, 2), "p": "0.5:1.5"}."""
    if rules is None:
        return {}
    if isinstance(rules, Mapping):
        return {name: learned_rule(name, value) for name, value in rules.items()}
    result: dict[str, Learned] = {}
    for part in rules.split(","):
        name, equals, text = (word.strip() for word in part.partition("="))
        if not equals or not text or not _NAME.fullmatch(name):
            raise ValueError(f"what is learned is written NAME=LOW:HIGH, {EXAMPLE}, not {part.strip()[:40]!r}")
        if name in result:
            raise ValueError(f"the range of {name} is given twice")
        result[name] = _parse(name, text)
    return result


def _parse(name: str, text: str) -> Learned:
    """The rule in "0:2" or "0:2 in 0:inf"; one number is where every head starts."""
    span, *bounds = re.split(r"\sin\s", text, maxsplit=1)
    start = [_number(name, word) for word in span.split(":")]
    edges = [_number(name, word) for word in bounds[0].split(":")] if bounds else []
    if len(start) > 2 or (bounds and len(edges) != 2):
        raise ValueError(f"the range of {name} is written LOW:HIGH, {EXAMPLE}, not {text.strip()[:40]!r}")
    start = start * 2 if len(start) == 1 else start
    table = dict(zip(("least", "most"), edges, strict=True)) if bounds else _same_sign(start)
    return _of_table(name, {"start": start, "spread": True, **table})


def _same_sign(start: Sequence[float]) -> dict[str, float]:
    """The bounds where none are given: a range on one side of 0 stays there."""
    try:
        low, high = start
        return {"least": 0.0} if low >= 0 else {"most": 0.0} if high <= 0 else {}
    except TypeError:
        return {}


def _of_table(name: str, table: Mapping[str, object]) -> Learned:
    """The rule that a table stands for, if all in it is sound."""
    start, values, spread = table["start"], table.get("values"), table.get("spread", False)
    if not isinstance(start, Sequence) or isinstance(start, str) or len(start) != 2:
        raise ValueError(
            f"the start of the learned parameter {name} is a range of two numbers, not {str(start)[:40]!r}"
        )
    if not isinstance(spread, bool) or isinstance(values, str) or not isinstance(values, Sequence | None):
        raise ValueError(f"of the learned parameter {name}, spread is true or false, and values are a list of numbers")
    edges = [None if table.get(edge) is None else _number(name, table[edge]) for edge in ("least", "most")]
    least, most = (None if edge is None or math.isinf(edge) else edge for edge in edges)
    starts = None if values is None else tuple(_finite(name, v) for v in values)
    low, high = (_finite(name, v) for v in start)
    rule = Learned((low, high), least, most, spread, starts)
    _require_consistent(name, rule)
    return rule


def _number(name: str, value: object) -> float:
    """A number, or a fraction as text; infinity too."""
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float | Fraction):
            raise ValueError
        number = float(Fraction(value)) if isinstance(value, str) and "/" in value else float(value)
    except (ValueError, ZeroDivisionError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"the range of {name} needs numbers, {EXAMPLE}, not {str(value)[:40]!r}")
    return number


def _finite(name: str, value: object) -> float:
    number = _number(name, value)
    if abs(number) > 1e30:
        raise ValueError(f"the learned parameter {name} starts at {number:g}; it must start within -1e30 to 1e30")
    return number


def _require_consistent(name: str, rule: Learned) -> None:
    (low, high), (least, most) = rule.start, rule.bounds
    if low > high:
        raise ValueError(f"the range of {name} is upside down: it goes from {low:g} to {high:g}")
    if least > most:
        raise ValueError(f"the bounds of {name} are upside down: they go from {least:g} to {most:g}")
    first, last = min(rule.values or rule.start), max(rule.values or rule.start)
    strict = rule.spread or rule.values  # else a start outside is moved to the bound
    if last < least or first > most or (strict and (first < least or last > most)):
        raise ValueError(
            f"{name} starts in {first:g} to {last:g}, which is not within its bounds, {least:g} to {most:g}"
        )
