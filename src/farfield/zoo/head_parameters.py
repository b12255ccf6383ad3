"""What a person chooses for the parameters of each head: values, ranges to learn them in, and the slopes k."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farfield import zoo
from farfield.zoo.learned import Learned, learned_parameters


def slope_values(text: str, heads: int) -> Any:
    """What "alibi", "learned" or "0.5, 0.25, ..." gives k: None is ALiBi's slopes; learned ones start there."""
    word = text.strip().lower()
    if word == "alibi":
        return None
    if word == "learned":
        first = tuple(zoo.number(value) for value in zoo.slopes(heads))
        return Learned((min(first), max(first)), 0.0, values=first).json()
    given = [part.strip() for part in text.split(",")]
    for part in given:
        try:
            good = zoo.number(part) == zoo.number(part)
        except ValueError:
            good = False
        if not good:
            raise ValueError(
                f"the slopes are alibi, learned, or numbers with commas such as 1/2,1/4, not {part[:40]!r}"
            )
    if len(given) not in (1, heads):
        raise ValueError(f"k has {len(given)} values for {heads} heads: give one, or one for each head")
    return given if len(given) > 1 else given[0]


def chosen_parameters(
    encoding: zoo.Encoding,
    heads: int,
    given: Mapping[str, Any],
    learn: str | Mapping[str, Any] | None = None,
    slopes: str | None = None,
) -> dict[str, Any]:
    """Parameters from values, ranges to learn and slopes, as a configuration holds them; each may be given once."""
    chosen = dict(given)
    more = {name: rule.json() for name, rule in learned_parameters(learn).items()}
    if slopes is not None:
        zoo.require_parameters(encoding, ["k"])
        if "k" in more:
            raise ValueError("k is given twice, by its slopes and by a range to learn it in")
        own = slope_values(slopes, heads)
        more |= {} if own is None else {"k": own}
    for name, value in more.items():
        if name in chosen:
            raise ValueError(f"{name} is given twice, by a value and by what is learned or its slopes")
        chosen[name] = value
    zoo.require_parameters(encoding, chosen)
    return chosen


def with_slopes(encoding: zoo.Encoding, text: str, heads: int | None) -> tuple[zoo.Encoding, int]:
    """An encoding whose k has these slopes, and the number of heads: as many as there are slopes unless given.

    Args:
        encoding: whose formula has a k.
        text: "alibi", or numbers with commas.
        heads: how many, where somebody says it.
    """
    zoo.require_parameters(encoding, ["k"])
    count = heads if heads is not None else len(text.split(",")) if "," in text else None
    if count is None:
        raise ValueError(f"the slopes {text[:40]!r} are those of how many heads? Give --heads too, such as --heads 8")
    given = slope_values(text, count)
    if isinstance(given, dict):
        raise ValueError("slopes that are learned have no values before training: leave k open to get the condition")
    if given is None:
        return encoding, count
    every = [str(value) for value in given] if isinstance(given, list) else [str(given)] * count
    return encoding.with_rule(zoo.Parameter("k", "", zoo.PerHead(lambda number, _: every, "given"))), count


def said_slopes(encoding: zoo.Encoding, heads: int, given: Mapping[str, Any] | None = None) -> str:
    """What k is where nobody says it: "k: ALiBi's slopes, 1/2 ... 1/256"; nothing if the formula has no such k."""
    if encoding.formula is None or "k" not in encoding.formula.parameters or "k" in (given or {}):
        return ""
    if encoding.rule("k") != zoo.SLOPE.given:
        return ""
    ordered = sorted(zoo.slopes(heads), key=zoo.number, reverse=True)
    return f"k: ALiBi's slopes, {ordered[0]}" + (f" ... {ordered[-1]}" if heads > 1 else "")
