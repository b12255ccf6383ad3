"""The text that a model is measured on: segments spread over a whole split, so that no few documents decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Text:
    """Tokens to measure on, and what they are: results on other tokens are not mixed with these.

    Attributes:
        ids: The segments, (segments, tokens + 1); the first token of each is only context. One segment may be given
            as a plain row.
        about: Where they come from.
    """

    ids: np.ndarray
    about: dict[str, Any]

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
