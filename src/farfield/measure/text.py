"""The text that a model is measured on, and at which lengths.

Text is spread over a whole split, so that no few documents decide. Lengths are the paper's 14 multiples of the training
length, or those that a user gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from farfield.measure.models import Model

# 512 to 9216 tokens in the paper, whose training length is 512
MULTIPLES = tuple(Fraction(m) for m in ("1", "1.5", "2", "2.5", "3", "3.5", *map(str, (4, 6, 8, 10, 12, 14, 16, 18))))


@dataclass(frozen=True)
class Text:
    """Tokens to measure on, and what they are: results on other tokens are not mixed with these.

    Attributes:
        ids: The segments, (segments, tokens + 1); the first token of each is only context. One segment may be given
            as a plain row.
        about: Where they come from.
    """

    ids: np.ndarray
    about: dict[str, str | int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", np.atleast_2d(self.ids))

    @property
    def span(self) -> int:
        """Tokens to score in each segment."""
        return self.ids.shape[1] - 1

    @property
    def tokens(self) -> int:
        """Tokens to score in all segments."""
        return self.span * len(self.ids)

    def chunks(self, length: int, count: int) -> list[np.ndarray]:
        """At most `count` chunks of `length` tokens to score, spread over the text; each has one token more."""
        places = [(s, a) for s in range(len(self.ids)) for a in range(0, self.span - length + 1, length)]
        chosen = [places[round(i)] for i in np.linspace(0, len(places) - 1, min(count, len(places)))]
        return [np.ascontiguousarray(self.ids[s, a : a + length + 1], dtype=np.int64) for s, a in chosen]


def spread(ids: np.ndarray, tokens: int | None, segment: int | None) -> np.ndarray:
    """Segments of `segment` scored tokens spread evenly over a split, as many as `tokens` allows: (count, segment + 1).

    Without `segment` the first `tokens` are one segment. Segments never overlap.
    """
    scored = len(ids) - 1 if tokens is None else min(tokens, len(ids) - 1)
    count = 1 if segment is None else min(scored // segment, len(ids) // (segment + 1))
    if segment is None or count < 2:
        return np.asarray(ids[: scored + 1])[None]
    starts = np.linspace(0, len(ids) - segment - 1, count).astype(int)
    return np.stack([ids[start : start + segment + 1] for start in starts])


def training_length_of(model: Model) -> int:
    """The training length of a model, which the multiples refer to."""
    if model.training_length is None:
        raise ValueError(f"{model.name!r} does not say its training length: give --training-length.")
    return model.training_length


def parse_lengths(text: str | Sequence[int | str] | None, training_length: int) -> list[int]:
    """The lengths in "512,1024,18x": tokens, or multiples of the training length; the paper's 14 unless given."""
    if text is None:
        text = [f"{m}x" for m in MULTIPLES if (m * training_length).denominator == 1]
    words = text.replace(" ", ",").split(",") if isinstance(text, str) else text
    lengths = sorted({_length(str(word), training_length) for word in words if word != ""})
    if not lengths:
        raise ValueError(
            'No length was given: write --lengths with tokens or multiples, such as "512,1024" or "1x,18x".'
        )
    return lengths


def _length(word: str, training_length: int) -> int:
    word = word.strip().lower()
    try:
        value = Fraction(word.removesuffix("x")) * (training_length if word.endswith("x") else 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError(
            f"{word[:40]!r} is not a length: give tokens such as 512, or multiples of the training length such as 18x."
        ) from None
    if value < 1:
        raise ValueError(f"A length of {word[:40]} was given; it must be at least 1 token.")
    if value.denominator != 1:
        near = training_length * round(value / training_length) or training_length
        raise ValueError(
            f"{word[:40]} is not a whole number of tokens (the training length is {training_length}); "
            f"the nearest multiple is {near}."
        )
    return int(value)


def possible_lengths(model: Model, lengths: list[int]) -> tuple[list[int], list[str]]:
    """The lengths that the model can read, and a sentence if its positions end before the longest."""
    if model.longest is None or max(lengths) <= model.longest:
        return lengths, []
    possible = [n for n in lengths if n <= model.longest]
    sentence = (
        f"The positions of {model.name} are learned, one by one, and end at {model.longest}: "
        "it cannot read more tokens than that, let alone extrapolate"
    )
    if not possible:
        raise ValueError(f"{sentence}; all lengths given are longer.")
    return possible, [f"{sentence}; lengths are measured up to {max(possible)}."]


def check_text(tokens: int, lengths: list[int], what: str) -> None:
    """Refuse a text that is shorter than the longest length, and say which lengths can be done."""
    if tokens >= max(lengths):
        return
    able = [n for n in lengths if n <= tokens]
    rest = f"these lengths can be done: {','.join(map(str, able))}" if able else "none of these lengths can be done"
    raise ValueError(f"{what} has {tokens} tokens to score, too few for the length {max(lengths)}; {rest}.")
