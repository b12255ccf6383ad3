"""What inference costs: the paper's Table 1, and windowed attention, which it does not have.

Four ways to score a text with a model that should see w tokens at a time: non-overlapping chunks of w; sliding window
inference, every window of w read anew for one token; full-length inference, no window at all; and windowed attention,
one pass over the text in which every layer attends to the last w tokens.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from farfield.measure.models import Model, Window
from farfield.measure.protocols import Chunk, non_overlapping, sliding, token_losses
from farfield.measure.text import Text, training_length_of
from farfield.measure.values import Timing

WINDOWS = (16, 32, 64, 128, 256, 512)  # the paper's (its 258 is a misprint, docs/errata.md E24)
PAPER = {"sliding": 44.35, "non-overlapping": 1.0, "full": 1.0}
ORDER = ("non-overlapping", "sliding", "windowed", "full")


@dataclass(frozen=True)
class Speed:
    """All timings of one model, and the table of relative times."""

    model: str
    length: int
    timings: list[Timing]

    @property
    def sentence(self) -> str:
        """What a token costs, in one sentence."""
        of = self.relative()
        ratios = f"sliding windows take {of['sliding']:.3g} times and windowed attention {of['windowed']:.3g} times"
        return f"{self.model}: {ratios} as long for a token as non-overlapping windows."

    def of(self, protocol: str) -> list[Timing]:
        return [t for t in self.timings if t.protocol == protocol]

    def relative(self) -> dict[str, float]:
        """The average time of a token, relative to non-overlapping inference: the paper's Table 1."""
        mean = {p: float(np.mean([t.per_token for t in self.of(p)])) for p in ORDER if self.of(p)}
        return {p: value / mean["non-overlapping"] for p, value in mean.items()}

    def json(self) -> dict[str, Any]:
        base = {t.window: t.per_token for t in self.of("non-overlapping")}
        rows = [
            {**asdict(t), "relative": t.per_token / base[t.window] if t.window in base else None} for t in self.timings
        ]
        about = {"model": self.model, "length": self.length, "relative": self.relative(), "paper": PAPER}
        return {**about, "timings": rows}


def measure_speed(
    model: Model,
    text: Text,
    *,
    windows: Sequence[int] = WINDOWS,
    length: int | None = None,
    sliding_tokens: int | None = None,
    repeats: int = 3,
    watch: Callable[[str], None] | None = None,
) -> Speed:
    """Time the four ways on the first segment of a text, one after the other for each window.

    Args:
        model: What `load_model` or `as_model` gives.
        text: What `load_text` gives.
        windows: Tokens that a prediction may see.
        length: Of the pass of full-length inference and of windowed attention; 18 times the training length unless
            given, or the whole text if that is shorter.
        sliding_tokens: Time the sliding window on the first so many tokens only; all unless given. Every perplexity
            is then of these, so that all are of the same tokens.
        repeats: The fastest of so many counts (of one, for the sliding window).
        watch: Called with what is timed next.

    Returns:
        Time and perplexity of each way and window.
    """
    tokens = text.span
    for w in windows:
        if not 1 <= w <= tokens:
            raise ValueError(f"A window of {w} tokens was given for a text of {tokens}; it must be from 1 to that.")
    if repeats < 1:
        raise ValueError(f"{repeats} repeats were asked for; it must be at least 1.")
    length = min(tokens, 18 * training_length_of(model) if length is None else length)
    if model.longest is not None and max(length, *windows) > model.longest:
        raise ValueError(
            f"The positions of {model.name} are learned, one by one, and end at {model.longest}: "
            f"it cannot read {max(length, *windows)} tokens; give --length and --windows up to {model.longest}."
        )
    few = tokens if sliding_tokens is None else min(tokens, sliding_tokens)
    warm = min(256, tokens)
    token_losses(model, text.ids[:1, : warm + 1], non_overlapping(warm, warm))

    def timed(label: str, protocol: str, w: int | None, chunks: list[Chunk], cut: Window, count: int, n: int) -> Timing:
        if watch is not None:
            watch(label)
        best, losses = float("inf"), np.zeros(1)
        for _ in range(count):
            start = time.perf_counter()
            losses = token_losses(model, text.ids[:1, : n + 1], chunks, cut)
            best = min(best, time.perf_counter() - start)
        return Timing(protocol, w, n, best, float(np.exp(losses[:, :few].mean())))

    timings = []
    for w in windows:
        timings += [
            timed(f"non-overlapping {w}", "non-overlapping", w, non_overlapping(tokens, w), None, repeats, tokens),
            timed(f"windowed {w}", "windowed", w, non_overlapping(tokens, length), w, repeats, tokens),
            timed(f"sliding {w}", "sliding", w, sliding(few, w, 1), None, 1, few),
        ]
    timings.append(timed("full length", "full", None, non_overlapping(tokens, length), None, repeats, tokens))
    return Speed(model.name, length, timings)
