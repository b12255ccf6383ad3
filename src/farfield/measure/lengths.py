"""Which lengths to measure: the paper's 14 multiples of the training length, or those that a person gives."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from farfield.measure.models import Model

# 512 to 9216 tokens in the paper, whose training length is 512
MULTIPLES = tuple(Fraction(m) for m in ("1", "1.5", "2", "2.5", "3", "3.5", *map(str, (4, 6, 8, 10, 12, 14, 16, 18))))


def training_length_of(model: Model) -> int:
    """The training length of a model, which the multiples refer to."""
    if model.training_length is None:
        raise ValueError(f"{model.name!r} does not say its training length: give --training-length.")
    return model.training_length


def parse_lengths(text: str | Sequence[int | str] | None, training_length: int) -> list[int]:
    """The lengths in "512,1024,18x": tokens, or multiples of the training length; the paper's 14 unless given."""
    if text is None:
        given: list[int | str] = [f"{m}x" for m in MULTIPLES if (m * training_length).denominator == 1]
    else:
        given = list(text.replace(" ", ",").split(",")) if isinstance(text, str) else list(text)
    lengths = sorted({_length(one, training_length) for one in given if one != ""})
    if not lengths:
        raise ValueError(
            'No length was given: write --lengths with tokens or multiples, such as "512,1024" or "1x,18x".'
        )
    return lengths


def _length(one: int | str, training_length: int) -> int:
    word = str(one).strip().lower()
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


def notes_on(lengths: list[int], training_length: int) -> list[str]:
    """What a person should know about these lengths, one sentence each."""
    odd = [n for n in lengths if (2 * n) % training_length]
    if not odd:
        return []
    return [
        f"Not multiples of half the training length {training_length}: {', '.join(map(str, odd))}; "
        "they are measured all the same, on the same tokens, but they are none of the paper's lengths."
    ]


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
