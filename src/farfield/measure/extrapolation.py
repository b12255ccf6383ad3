"""Does a model extrapolate? The paper's Definition 2.1, and the one-sided rise that answers what people mean by it.

The Definition asks |ppl_n - ppl_m| / ppl_m < delta for every length n, with m the training length. It counts a
perplexity that falls against a model, and no delta separates the paper's own two groups by it (docs/errata.md, E12).
The rise, ppl_n over the lowest perplexity at any length up to n, minus 1, does: at most 1.5 % for every encoding that
the paper calls extrapolating, at least 19 % for those that it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DELTA = 0.05


@dataclass(frozen=True)
class LengthVerdict:
    """One length: its change against the training length, its rise over the lowest so far, and the two answers."""

    length: int
    change: float
    rise: float
    by_definition: bool
    extrapolates: bool
    change_error: float | None = None


@dataclass(frozen=True)
class Verdict:
    """All lengths, and the overall answers: by the paper's Definition, and by the one-sided rise."""

    training_length: int
    delta: float
    lengths: list[LengthVerdict]

    @property
    def largest_change(self) -> float:
        return max(abs(v.change) for v in self.lengths)

    @property
    def largest_rise(self) -> float:
        return max(v.rise for v in self.lengths)

    @property
    def by_definition(self) -> bool:
        return all(v.by_definition for v in self.lengths)

    @property
    def extrapolates(self) -> bool:
        return all(v.extrapolates for v in self.lengths)

    @property
    def sentence(self) -> str:
        last = max(v.length for v in self.lengths)
        if last == self.training_length:
            return "Only the training length was measured: nothing can be said about extrapolation."
        word = "extrapolates" if self.extrapolates else "does not extrapolate"
        text = f"It {word} from {self.training_length} to {last} tokens: perplexity rises by at most "
        text += f"{self.largest_rise:.2%} above its lowest (limit {self.delta:.2%})."
        if self.by_definition != self.extrapolates:
            held = "holds" if self.by_definition else "fails"
            text += f" The paper's Definition {held}: the largest change either way is {self.largest_change:.2%}."
        return text

    def json(self) -> dict[str, object]:
        return {
            "training_length": self.training_length,
            "delta": self.delta,
            "extrapolates": self.extrapolates,
            "by_definition": self.by_definition,
            "largest_rise": self.largest_rise,
            "largest_change": self.largest_change,
            "lengths": [vars(v) for v in self.lengths],
        }


def verdict(
    perplexities: Mapping[int, float],
    training_length: int,
    delta: float = DELTA,
    errors: Mapping[int, float | None] | None = None,
) -> Verdict:
    """The answers for perplexities by length, of which the training length must be one."""
    if not 0 < delta < float("inf"):
        raise ValueError(f"delta is {delta}; it must be a positive number, such as 0.05 for 5 %.")
    if training_length not in perplexities:
        raise ValueError(
            f"The training length {training_length} was not measured, so there is nothing to compare with; "
            f"measured: {', '.join(map(str, sorted(perplexities))) or 'none'}."
        )
    base = perplexities[training_length]
    rows, lowest = [], float("inf")
    for length in sorted(n for n in perplexities if n >= training_length):
        lowest = min(lowest, perplexities[length])
        change, rise = perplexities[length] / base - 1, perplexities[length] / lowest - 1
        error = (errors or {}).get(length)
        rows.append(LengthVerdict(length, change, rise, abs(change) < delta, rise < delta, error))
    return Verdict(training_length, delta, rows)
