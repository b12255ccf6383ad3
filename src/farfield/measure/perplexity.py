"""Perplexity against length: every protocol, with errors, on the same tokens, and the answer whether it extrapolates.

Non-overlapping is the paper's: chunks of n tokens, every token scored. The tokens at the start of each chunk have
little context, and longer chunks have fewer of them: so perplexity falls with n even in a model that looks at nearby
tokens only. Sliding window inference has no such tokens; the loss at each position shows how much they cost.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from farfield.measure.cutting import LostMass, trf_windows
from farfield.measure.memory import memory_sentence
from farfield.measure.models import Model, Window
from farfield.measure.predictions import series_of
from farfield.measure.protocols import Chunk, Known, non_overlapping, token_losses
from farfield.measure.results import PROTOCOLS, VERSION, Score, Store, Trial
from farfield.measure.rise import LEVEL, Extrapolation, extrapolation
from farfield.measure.statistics import blocks_of, ratio_error
from farfield.measure.tails import replaced_tail
from farfield.measure.text import Text, check_text, parse_lengths, possible_lengths, training_length_of

NEAR = (5, 8)  # tokens seen: what the gain from context is compared with


@dataclass(frozen=True)
class Evaluation:
    """All scores, in the order of lengths and protocols, with what a person should know about them."""

    training_length: int
    rows: list[Score]
    level: float
    notes: list[str]
    saved: Path | None

    def of(self, protocol: str) -> list[Score]:
        """The scores by one protocol."""
        return [row for row in self.rows if row.protocol == protocol]

    def extrapolation(self, protocol: str = "non-overlapping") -> Extrapolation | None:
        """Whether it extrapolates by one protocol; None if the training length is not among its rows."""
        rows = {row.length: row for row in self.of(protocol)}
        if self.training_length not in rows:
            return None
        blocks = {n: row.blocks for n, row in rows.items()}
        base = next(row for row in self.rows if row.length == self.training_length)
        perplexities = {n: row.perplexity for n, row in rows.items()}
        return extrapolation(
            perplexities, self.training_length, self.level, blocks, base.tokens, context_gain=base.context_gain
        )

    def by_tokens_seen(self) -> list[dict[str, float]]:
        """The loss by how many tokens a token could see, over the chunks of all lengths; with its error, or nan."""
        rows = self.of("non-overlapping")
        longest = max((row.length for row in rows), default=0)
        totals: dict[tuple[float, float], np.ndarray] = {}
        for row in rows:
            for p in row.positions or []:
                whole = p["to"] == max(1, 2 * (p["from"] - 1)) or row.length == longest
                if whole:
                    total = totals.setdefault((p["from"], p["to"]), np.zeros(3))
                    # The lengths share their text, so their errors do not cancel: the mean of them is no smaller.
                    total += p["tokens"] * np.array([1.0, p["loss"], p.get("error", np.nan)])
        return [
            {"from": a, "to": b, "tokens": int(n), "loss": float(x / n), "error": float(e / n)}
            for (a, b), (n, x, e) in sorted(totals.items())
        ]

    def json(self) -> list[dict[str, Any]]:
        return [row.json() for row in self.rows]


def evaluate(
    model: Model,
    text: Text,
    lengths: str | Sequence[int | str] | None = None,
    *,
    protocols: Sequence[str] = ("non-overlapping", "sliding"),
    stride: int | None = None,
    window: int | None = None,
    epsilon: str | float | Fraction | None = None,
    tails: Sequence[str] = (),
    level: float = LEVEL,
    batch: int | None = None,
    out: Path | None = None,
    watch: Callable[[str, int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Evaluation:
    """Measure the perplexity of a model on a text at several lengths, by several protocols.

    Args:
        model: What `load_model` or `as_model` gives.
        text: What `load_text` gives.
        lengths: Tokens or multiples such as "1x,18x"; the paper's 14 multiples of the training length unless given.
        protocols: Some of "non-overlapping", "sliding", "windowed".
        stride: Of the sliding window; half the length unless given; 1 is the paper's.
        window: Also measure with every head cut at so many tokens.
        epsilon: Also measure with each head cut at its TRF(epsilon).
        tails: Also measure with the bias beyond the training length replaced by each of these (measure/tails.py):
            "cut", "constant", the name of an encoding, or a formula such as "r - 2*log(t/m)".
        level: The largest rise of perplexity that still counts as extrapolation.
        batch: Samples read at once; halved where it does not fit, with the same result.
        out: A folder for the results, written score by score; a second call goes on where the first stopped. Nothing
            is kept for a network of yours (`as_model`), which nothing tells from others.
        watch: Called with what is being measured, the tokens done and the tokens to do.
        say: Called with one sentence on the memory that is expected, before anything is measured.

    Returns:
        The scores, and whether the model extrapolates.

    Raises:
        ValueError: If the text is too short for a length, or an option makes no sense.
    """
    training_length = training_length_of(model)
    wanted = parse_lengths(lengths, training_length)
    wanted, ended = possible_lengths(model, wanted)
    check_text(text.span, wanted, f"The {text.about.get('split', '')} text".replace("  ", " "))
    conditions = list_conditions(model, wanted, protocols, stride, window, epsilon, tails)
    if say is not None:
        say(memory_sentence(model, max(wanted)))
    rows, saved = score_all(model, text, conditions, batch=batch, out=out, watch=watch)
    notes = [model.stretched] if model.stretched else []
    return Evaluation(training_length, rows, level, notes + ended, saved)


def score_all(
    model: Model,
    text: Text,
    conditions: Sequence[Trial],
    *,
    batch: int | None = None,
    out: Path | None = None,
    watch: Callable[[str, int, int], None] | None = None,
    certify: bool = True,
) -> tuple[list[Score], Path | None]:
    """The scores of conditions, in their order, and where they are kept; those that are kept are not measured again."""
    about = {"version": VERSION, "training_length": model.training_length, **model.identity, **text.about}
    about["tokens"] = hashlib.sha256(np.ascontiguousarray(text.ids, dtype=np.int64).tobytes()).hexdigest()
    store = Store(out if model.identity else None, about)  # without an identity old and new weights would be mixed up
    rows: dict[int, Score] = {}
    # The longest first: its chunks hold the shorter ones that start where they do. Where windows are timed against
    # the full length, nothing is shared.
    timed = certify and any(one.window for one in conditions)
    known: Known | None = {} if model.keeps_prefixes and not timed else None
    order = sorted(range(len(conditions)), key=lambda i: (-conditions[i].length, i))
    for number, place in enumerate(order):
        condition = conditions[place]
        row = store.find(condition)
        if row is None:
            label = f"{condition.protocol} at {condition.length}"
            done = [number * text.tokens]

            def advance(tokens: int, label: str = label, done: list[int] = done) -> None:
                done[0] += tokens
                if watch is not None:
                    watch(label, done[0], text.tokens * len(conditions))

            row = measure(model, text.ids, condition, batch, advance, known, certify)
            store.add(row)
        rows[place] = row
    return [rows[i] for i in range(len(conditions))], store.path


def list_conditions(
    model: Model,
    lengths: list[int],
    protocols: Sequence[str],
    stride: int | None,
    window: int | None,
    epsilon: str | float | Fraction | None,
    tails: Sequence[str] = (),
) -> list[Trial]:
    """What is to be measured, length by length."""
    unknown = [p for p in protocols if p not in PROTOCOLS]
    if unknown:
        raise ValueError(f"There is no protocol {unknown[0]!r}: choose from {', '.join(PROTOCOLS[:3])}.")
    if stride is not None and not 1 <= stride <= min(lengths):
        raise ValueError(f"The stride is {stride}; it must be from 1 to the shortest length, {min(lengths)}.")
    if window is not None and window < 1:
        raise ValueError(f"A window of {window} tokens was given; it must be at least 1: the token itself.")
    if "windowed" in protocols and window is None and epsilon is None:
        raise ValueError("Windowed evaluation needs a window in tokens, or an epsilon to cut each head at its TRF.")
    for tail in tails:
        with replaced_tail(model, tail):  # a mistake shows before anything is measured
            pass
    cuts: list[tuple[Window, str | None]] = []
    if window is not None:
        cuts.append((window, None))
    if epsilon is not None:
        cuts.append((trf_windows(model, epsilon), str(epsilon)))
    conditions = []
    for n in lengths:
        if "non-overlapping" in protocols or cuts or tails:
            conditions.append(Trial(n, "non-overlapping"))
        if "sliding" in protocols:
            conditions.append(Trial(n, "sliding", stride=stride or max(1, n // 2)))
        conditions += [Trial(n, "windowed", window=cut, epsilon=share) for cut, share in cuts]
        if n > (model.training_length or n):
            conditions += [Trial(n, "tail", tail=tail) for tail in tails]
    return conditions


def measure(
    model: Model,
    segments: np.ndarray,
    condition: Trial,
    batch: int | None = None,
    advance: Callable[[int], None] | None = None,
    known: Known | None = None,
    certify: bool = True,
) -> Score:
    """Measure one condition; `known` holds losses of longer chunks, and takes these; `certify` what windows lose."""
    segments = np.atleast_2d(segments)
    chunks = condition.chunks(segments.shape[1] - 1)
    window = cap_windows(condition.window, condition.length)
    extra: dict[str, Any] = {"stride": condition.stride} if condition.protocol == "sliding" else {}
    start = time.perf_counter()
    with nullcontext() if condition.tail is None else replaced_tail(model, condition.tail):
        if condition.tail is not None:
            series = series_of(model, condition.length)
            known, extra = None, {"tail": condition.tail, "leak": series.leak, "verdict": series.verdict}
        losses = token_losses(model, segments, chunks, window, batch=batch, advance=advance, known=known)
    seconds = time.perf_counter() - start
    if condition.protocol == "windowed":
        extra = {"window": window, "epsilon": condition.epsilon}
        extra |= _lost(model, segments, chunks, window) if certify else {}
    loss = float(losses.mean())
    sums, counts = blocks_of(losses), blocks_of(np.ones_like(losses))
    plain = condition.protocol == "non-overlapping"
    gain = None
    if plain and condition.length == model.training_length and condition.length >= 2 * NEAR[1]:
        short = non_overlapping(losses.shape[1], NEAR[1])
        near = token_losses(model, segments, short, batch=batch, known=known)
        gain = context_gain(near, losses, condition.length)
    return Score(
        condition.length,
        condition.protocol,
        losses.size,
        loss,
        float(np.exp(loss)) if loss < 700 else float("inf"),
        ratio_error(sums, counts, np.exp) if loss < 700 else None,
        seconds,
        sums.tolist(),
        condition.key(),
        by_position(losses, condition.length) if plain else None,
        gain,
        extra,
    )


def cap_windows(window: Window, length: int) -> Window:
    """Windows no longer than the text in sight: a receptive field may have hundreds of digits."""
    if window is None or isinstance(window, int):
        return window
    return [min(w, length) for w in window]


def _lost(model: Model, segments: np.ndarray, chunks: list[Chunk], window: Window) -> dict[str, float]:
    """What the windows cut off: the certified and the true share of attention, over every row of the text."""
    lost = LostMass()
    model.show([segment[chunk.start : chunk.stop] for segment in segments for chunk in chunks], lost.visit, window)
    return {
        "certified_lost_mass": lost.certified,
        "lost_mass": lost.measured,
        "mean_certified_lost_mass": lost.mean_certified,
        "mean_lost_mass": lost.mean_measured,
    }


def by_position(losses: np.ndarray, length: int) -> list[dict[str, float]]:
    """The mean loss by how many tokens of its chunk a token could see: 1, 2, 3-4, 5-8, ...; with its error."""
    seen = np.arange(losses.shape[1]) % length + 1
    rows, low = [], 1
    while low <= min(length, losses.shape[1]):
        high = min(length, 1 if low == 1 else 2 * (low - 1))
        some = losses[:, (seen >= low) & (seen <= high)]
        row = {"from": low, "to": high, "tokens": some.size, "loss": float(some.mean())}
        error = ratio_error(blocks_of(some), blocks_of(np.ones_like(some)), lambda means: means)
        rows.append(row if error is None else {**row, "error": error})
        low = high + 1
    return rows


def context_gain(near: np.ndarray, losses: np.ndarray, length: int) -> tuple[float, float | None]:
    """How many nats lower the loss of a token is if it sees half of `length` or more than if it sees 5 to 8 tokens.

    A model that gains nothing from its context cannot lose anything either. Both are of the same tokens, so that their
    difficulty cancels; with the standard error, over blocks of text.

    Args:
        near: The losses of a text in chunks of 8 tokens, (segments, tokens).
        losses: In chunks of `length`.
        length: Of them, at least 16.
    """
    place = np.arange(losses.shape[1])
    both = (place % NEAR[1] + 1 >= NEAR[0]) & (place % length >= length // 2)
    sums, counts = blocks_of((near - losses) * both), blocks_of(np.broadcast_to(both, losses.shape) * 1.0)
    return float(sums.sum() / counts.sum()), ratio_error(sums, counts, lambda means: means)
