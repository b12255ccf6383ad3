"""Does a model extrapolate? One definition of the rise, with its error, and the paper's Definition 2.1 beside it.

The rise at a length n is ppl_n over the lowest perplexity at any length up to n, minus 1. In the paper's own tables it
is at most 1.5 % for every encoding that the paper calls extrapolating, at least 19 % for those that it does not
(docs/errata.md, E12). The answer at a length is "rose" if the rise exceeds `LEVEL` by two standard errors, "level" if
it stays below by two, else "cannot be told"; a model extrapolates if every length is level. A model that gains
nothing from its context within the training length cannot lose any beyond: for such a one, level is "cannot be told".

The Definition asks |ppl_n - ppl_m| / ppl_m < delta for every length n, with m the training length. It counts a
perplexity that falls against a model: over the paper's 512 to 9,216 tokens a delta of 11 % separates its two groups, by
little (10.5 % against 12.1 %), and up to 8,192 tokens none does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

from farfield.measure.statistics import draws, two_levels
from farfield.measure.values import Length, Name, Number, WithError
from farfield.words import percent, with_error

LEVEL = 0.02  # how far perplexity may rise and still count as level
LEAST_GAIN = 0.03  # nats that context must gain within the training length, more than LEVEL, to be missed at all
SIGMAS = 2  # standard errors that an answer keeps from LEVEL
ROSE, STAYED, UNKNOWN = "rose", "level", "cannot be told"


def require_level(level: float) -> None:
    """One sentence if no rise could be judged by this level."""
    if not 0 < level < float("inf"):
        raise ValueError(f"The level is {level}; it must be a positive number, such as {LEVEL} for {100 * LEVEL:g} %.")


def rises(perplexities: Sequence[float] | np.ndarray) -> np.ndarray:
    """The rise at each length, for perplexities in the order of lengths (the last axis)."""
    values = np.asarray(perplexities, dtype=float)
    return values / np.fmin.accumulate(values, axis=-1) - 1


def answer(rise: float, error: float | None, level: float = LEVEL) -> str:
    """ "rose", "level" or "cannot be told", for a rise and its standard error; None: the error is not known."""
    if not np.isfinite(rise):
        return ROSE  # the perplexity is no number any more
    if error is None or abs(rise - level) <= SIGMAS * error:
        return UNKNOWN
    return ROSE if rise > level else STAYED


def gains(gain: float, error: float | None) -> bool:
    """Whether a gain from context is at least `LEAST_GAIN`, by two standard errors."""
    return gain - SIGMAS * (error or 0.0) >= LEAST_GAIN


@dataclass(frozen=True)
class LengthChange:
    """One length: its change against the training length and its rise, with their standard errors."""

    length: Length
    change: Number
    change_error: Number | None
    rise: Number
    rise_error: Number | None
    answer: Name


@dataclass(frozen=True)
class Extrapolation:
    """What perplexity does from the training length on: every length, and the answer over all of them."""

    training_length: Length
    level: Number
    lengths: Annotated[list[LengthChange], Field(min_length=1)]
    context_gain: WithError | None = None

    @property
    def uses_context(self) -> bool:
        """Whether context gains enough that it could be lost; taken as given where it was not measured."""
        return self.context_gain is None or gains(*self.context_gain)

    @property
    def highest(self) -> LengthChange:
        """The length with the largest rise."""
        return max(self.lengths, key=lambda one: np.nan_to_num(one.rise, nan=np.inf))

    @property
    def largest_change(self) -> float:
        return max(abs(one.change) for one in self.lengths)

    @property
    def by_definition(self) -> bool:
        """Whether the paper's Definition holds, with `level` for its delta."""
        return all(abs(one.change) < self.level for one in self.lengths)

    @property
    def answer(self) -> str:
        """ "rose" if some length did, "level" if all are, else "cannot be told"."""
        answers = {one.answer for one in self.lengths[1:]}
        return ROSE if ROSE in answers else STAYED if answers == {STAYED} and self.uses_context else UNKNOWN

    @property
    def extrapolates(self) -> bool | None:
        """True or False, or None where it cannot be told."""
        return {ROSE: False, STAYED: True}.get(self.answer)

    @property
    def sentence(self) -> str:
        last = self.lengths[-1].length
        if last == self.training_length:
            return "Only the training length was measured: nothing can be said about extrapolation."
        words = {ROSE: "It does not extrapolate", STAYED: "It extrapolates", UNKNOWN: "Whether it extrapolates"}
        text = f"{words[self.answer]} from {self.training_length} to {last} tokens"
        text += " cannot be told: " if self.answer == UNKNOWN else ": "
        rise = percent(self.highest.rise, self.highest.rise_error, digits=2)
        text += f"perplexity rises by at most {rise} above its lowest (limit {percent(self.level)})."
        if self.by_definition != self.extrapolates:
            held = "holds" if self.by_definition else "fails"
            change = percent(self.largest_change, digits=2)
            text += f" The paper's Definition {held}: the largest change either way is {change}."
        if self.context_gain is not None and not self.uses_context and self.answer == UNKNOWN:
            nats = max(0.0, self.context_gain[0])
            text += f" It gains {with_error(nats)} nats from context, and cannot lose what it does not use."
        return text


def pooled(seeds: Sequence[Extrapolation]) -> Extrapolation:
    """Several seeds of one model as one: mean changes and rises, errors from text and seeds (`two_levels`)."""
    first = seeds[0]
    lengths = []
    for same in zip(*(one.lengths for one in seeds), strict=True):
        change, change_error = two_levels([x.change for x in same], [x.change_error for x in same])
        rise, rise_error = two_levels([x.rise for x in same], [x.rise_error for x in same])
        said = answer(rise, rise_error, first.level)
        lengths.append(LengthChange(same[0].length, change, change_error, rise, rise_error, said))
    known = [one.context_gain for one in seeds if one.context_gain is not None]
    gain = two_levels([g for g, _ in known], [e for _, e in known]) if known else None
    return Extrapolation(first.training_length, first.level, lengths, gain)


def extrapolation(
    perplexities: Mapping[int, float],
    training_length: int,
    level: float = LEVEL,
    blocks: Mapping[int, Sequence[float]] | None = None,
    tokens: int = 1,
    context_gain: tuple[float, float | None] | None = None,
) -> Extrapolation:
    """What perplexities by length say, of which the training length must be one.

    Args:
        perplexities: By length.
        training_length: What the changes refer to; shorter lengths do not count.
        level: The largest rise that still counts as level.
        blocks: By length, the summed losses of the same blocks of text: errors are by bootstrap over these, paired,
            because tokens that are hard at one length are hard at all. Without them errors are not known.
        tokens: How many tokens all blocks have together.
        context_gain: How many nats context gains within the training length, with the error of that, if known.

    Returns:
        The change and the rise at every length, with errors, and the answers.

    Raises:
        ValueError: If the training length was not measured, or the level is no positive number.
    """
    require_level(level)
    if training_length not in perplexities:
        raise ValueError(
            f"The training length {training_length} was not measured, so there is nothing to compare with; "
            f"measured: {', '.join(map(str, sorted(perplexities))) or 'none'}."
        )
    lengths = sorted(n for n in perplexities if n >= training_length)
    values = np.array([perplexities[n] for n in lengths], dtype=float)
    change, rise = values / values[0] - 1, rises(values)
    errors: list[tuple[float | None, float | None]] = [(None, None)] * len(lengths)
    if blocks is not None and len({len(blocks[n]) for n in lengths}) == 1 and len(blocks[lengths[0]]) > 1:
        errors = _errors(np.array([blocks[n] for n in lengths], dtype=float), tokens)
    rows = [
        LengthChange(n, float(c), error[0], float(r), error[1], answer(float(r), error[1], level))
        for n, c, r, error in zip(lengths, change, rise, errors, strict=True)
    ]
    return Extrapolation(training_length, level, rows, context_gain)


def _errors(sums: np.ndarray, tokens: int) -> list[tuple[float | None, float | None]]:
    """The standard errors of change and rise at each length, for sums of losses (lengths, blocks)."""
    with np.errstate(over="ignore", invalid="ignore"):
        drawn = np.exp(sums[:, draws(sums.shape[1])].sum(-1) / tokens).T  # (draws, lengths)
        change, rise = (drawn / drawn[:, :1]).std(0, ddof=1), rises(drawn).std(0, ddof=1)
    return [(float(c), float(r)) for c, r in zip(change, rise, strict=True)]
