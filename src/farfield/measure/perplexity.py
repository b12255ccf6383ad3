"""Perplexity against length: every protocol, with errors, on the same tokens, and the answer whether it extrapolates.

Non-overlapping is the paper's: chunks of n tokens, every token scored. The tokens at the start of each chunk have
little context, and longer chunks have fewer of them: so perplexity falls with n even in a model that looks at nearby
tokens only. Sliding window inference has no such tokens; the loss at each position shows how much they cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import torch

from farfield.measure.lengths import check_text, notes_on, parse_lengths, possible_lengths, training_length_of
from farfield.measure.loading import Text
from farfield.measure.memory import memory_sentence
from farfield.measure.models import Model, Window
from farfield.measure.protocols import Chunk, Known, token_losses
from farfield.measure.results import PROTOCOLS, VERSION, Condition, Score, Store
from farfield.measure.rise import LEVEL, Extrapolation, extrapolation
from farfield.measure.statistics import BLOCKS, block_sums, perplexity_error
from farfield.measure.windows import LostMass, trf_windows


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
        tokens = rows[self.training_length].tokens
        perplexities = {n: row.perplexity for n, row in rows.items()}
        return extrapolation(perplexities, self.training_length, self.level, blocks, tokens)

    def by_tokens_seen(self) -> list[dict[str, float]]:
        """The loss by how many tokens a token could see, over the chunks of all lengths: the more, the less noise."""
        rows = self.of("non-overlapping")
        longest = max((row.length for row in rows), default=0)
        totals: dict[tuple[float, float], list[float]] = {}
        for row in rows:
            for p in row.positions or []:
                whole = p["to"] == max(1, 2 * (p["from"] - 1)) or row.length == longest
                if whole:
                    total = totals.setdefault((p["from"], p["to"]), [0.0, 0.0])
                    total[0] += p["tokens"]
                    total[1] += p["tokens"] * p["loss"]
        return [{"from": a, "to": b, "tokens": n, "loss": x / n} for (a, b), (n, x) in sorted(totals.items())]

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
        level: The largest rise of perplexity that still counts as extrapolation.
        batch: Samples read at once; halved where it does not fit, with the same result.
        out: A folder for the results, written score by score; a second call goes on where the first stopped.
        watch: Called with what is being measured, the tokens done and the tokens to do.
        say: Called with one sentence on the memory that is expected, before anything is measured.

    Returns:
        The scores, and whether the model extrapolates.

    Raises:
        ValueError: If the text is too short for a length, or an option makes no sense.
    """
    training_length = training_length_of(model)
    wanted = parse_lengths(lengths, training_length)
    notes = notes_on(wanted, training_length)
    wanted, ended = possible_lengths(model, wanted)
    tokens = len(text) - 1
    check_text(tokens, wanted, f"The {text.about.get('split', '')} text".replace("  ", " "))
    conditions = list_conditions(model, wanted, protocols, stride, window, epsilon)
    if say is not None:
        say(memory_sentence(model, max(wanted)))
    store = Store(out, {"version": VERSION, "training_length": training_length, **model.identity, **text.about})
    total = tokens * len(conditions)
    rows: dict[int, Score] = {}
    # The longest first: its chunks hold the shorter ones that start where they do. Where windows are timed against
    # the full length, nothing is shared.
    known: Known | None = {} if model.keeps_prefixes and not any(one.window for one in conditions) else None
    order = sorted(range(len(conditions)), key=lambda i: (-conditions[i].length, i))
    for number, place in enumerate(order):
        condition = conditions[place]
        row = store.find(condition)
        if row is None:
            label = f"{condition.protocol} at {condition.length}"
            done = [number * tokens]

            def advance(more: int, label: str = label, done: list[int] = done) -> None:
                done[0] += more
                if watch is not None:
                    watch(label, done[0], total)

            row = measure(model, text.ids, condition, batch, advance, known)
            store.add(row)
        rows[place] = row
    in_order = [rows[i] for i in range(len(conditions))]
    return Evaluation(training_length, in_order, level, notes + ended, store.path)


def list_conditions(
    model: Model,
    lengths: list[int],
    protocols: Sequence[str],
    stride: int | None,
    window: int | None,
    epsilon: str | float | Fraction | None,
) -> list[Condition]:
    """What is to be measured, length by length."""
    unknown = [p for p in protocols if p not in PROTOCOLS]
    if unknown:
        raise ValueError(f"There is no protocol {unknown[0]!r}: choose from {', '.join(PROTOCOLS)}.")
    if stride is not None and not 1 <= stride <= min(lengths):
        raise ValueError(f"The stride is {stride}; it must be from 1 to the shortest length, {min(lengths)}.")
    if window is not None and window < 1:
        raise ValueError(f"A window of {window} tokens was given; it must be at least 1: the token itself.")
    if "windowed" in protocols and window is None and epsilon is None:
        raise ValueError("Windowed evaluation needs a window in tokens, or an epsilon to cut each head at its TRF.")
    cuts: list[tuple[Window, str | None]] = []
    if window is not None:
        cuts.append((window, None))
    if epsilon is not None:
        cuts.append((trf_windows(model, epsilon), str(epsilon)))
    conditions = []
    for n in lengths:
        if "non-overlapping" in protocols or cuts:
            conditions.append(Condition(n, "non-overlapping"))
        if "sliding" in protocols:
            conditions.append(Condition(n, "sliding", stride=stride or max(1, n // 2)))
        conditions += [Condition(n, "windowed", window=cut, epsilon=share) for cut, share in cuts]
    return conditions


def measure(
    model: Model,
    ids: np.ndarray,
    condition: Condition,
    batch: int | None = None,
    advance: Callable[[int], None] | None = None,
    known: Known | None = None,
) -> Score:
    """Measure one protocol at one length; `known` holds losses of longer ones, and takes these."""
    chunks = condition.chunks(len(ids) - 1)
    window = capped(condition.window, condition.length)
    start = time.perf_counter()
    losses = token_losses(model, ids, chunks, window, batch=batch, advance=advance, known=known)
    seconds = time.perf_counter() - start
    loss = float(losses.mean())
    extra: dict[str, Any] = {}
    if condition.protocol == "sliding":
        extra["stride"] = condition.stride
    if condition.protocol == "windowed":
        extra = {"window": window, "epsilon": condition.epsilon, **_lost(model, ids, chunks, window)}
    return Score(
        condition.length,
        condition.protocol,
        len(losses),
        loss,
        float(np.exp(loss)) if loss < 700 else float("inf"),
        perplexity_error(losses, condition.length) if loss < 700 else None,
        seconds,
        block_sums(losses, -(-len(losses) // BLOCKS))[0].tolist(),
        condition.key(),
        by_position(losses, condition.length) if condition.protocol == "non-overlapping" else None,
        extra,
    )


def capped(window: Window, length: int) -> Window:
    """Windows no longer than the text in sight: a receptive field may have hundreds of digits."""
    if window is None or isinstance(window, int):
        return window
    return [min(w, length) for w in window]


def _lost(model: Model, ids: np.ndarray, chunks: list[Chunk], window: Window) -> dict[str, float]:
    """What the windows cut off: the certified and the true share of attention, over every row of the text."""
    lost = LostMass()
    with torch.inference_mode(), model.watching(lost.visit):
        for chunk in chunks:
            read = torch.from_numpy(np.ascontiguousarray(ids[chunk.start : chunk.stop], dtype=np.int64))
            model.states(read[None].to(model.device), window)
    return {
        "certified_lost_mass": lost.certified,
        "lost_mass": lost.measured,
        "mean_certified_lost_mass": lost.mean_certified,
        "mean_lost_mass": lost.mean_measured,
    }


def by_position(losses: np.ndarray, length: int) -> list[dict[str, float]]:
    """The mean loss by how many tokens of its chunk a token could see: 1, 2, 3-4, 5-8, ..."""
    seen = np.arange(len(losses)) % length + 1
    rows, low = [], 1
    while low <= min(length, len(losses)):
        high = min(length, 1 if low == 1 else 2 * (low - 1))
        some = losses[(seen >= low) & (seen <= high)]
        rows.append({"from": low, "to": high, "tokens": len(some), "loss": float(some.mean())})
        low = high + 1
    return rows
