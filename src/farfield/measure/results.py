"""What there is to measure, what was measured, and where it is kept: scores on disk, one by one, to go on from."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from farfield.data import durable
from farfield.measure.models import Window
from farfield.measure.protocols import Chunk, non_overlapping, sliding
from farfield.measure.statistics import relative_change
from farfield.reading import read_json

PROTOCOLS = ("non-overlapping", "sliding", "windowed", "tail")
VERSION = 3  # of what is saved


@dataclass(frozen=True)
class Trial:
    """One thing to measure: a protocol at a length, with its stride, its windows, or the tail of its bias."""

    length: int
    protocol: str
    stride: int | None = None
    window: Window = None
    epsilon: str | None = None
    tail: str | None = None

    def chunks(self, tokens: int) -> list[Chunk]:
        """How a segment of so many scored tokens is read."""
        if self.protocol == "sliding":
            assert self.stride is not None
            return sliding(tokens, self.length, self.stride)
        return non_overlapping(tokens, self.length)

    def key(self) -> list[Any]:
        """What tells it from other conditions, as JSON keeps it."""
        window = self.window if self.window is None or isinstance(self.window, int) else [str(w) for w in self.window]
        return [self.length, self.protocol, self.stride, window, self.epsilon, self.tail]


@dataclass(frozen=True)
class Score:
    """What one protocol gives at one length.

    Attributes:
        stderr: Of the perplexity, over the blocks of the text.
        seconds: That it took here: next to nothing where a longer length had done the work.
        blocks: Sums of the losses of blocks of the text (its segments), the same blocks for every score.
        key: Of its condition.
        positions: Non-overlapping: the loss by number of tokens seen, with its error where there are several blocks.
        context_gain: At the training length, non-overlapping: how many nats the context beyond 8 tokens gains, and the
            error of that.
        extra: What else is said of it: stride, windows and what they lose, the tail and its leak.
    """

    length: int
    protocol: str
    tokens: int
    loss: float
    perplexity: float
    stderr: float | None
    seconds: float
    blocks: list[float]
    key: list[Any]
    positions: list[dict[str, float]] | None = None
    context_gain: tuple[float, float | None] | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def against(self, other: Score) -> tuple[float, float | None]:
        """The relative change of perplexity against another score on the same text, and its error, paired by block."""
        return relative_change(self.blocks, other.blocks, self.tokens)

    def json(self) -> dict[str, Any]:
        """What `--json` prints."""
        six = ("length", "protocol", "tokens", "loss", "perplexity", "stderr")
        return {**{name: finite(getattr(self, name)) for name in six}, **self.extra}


def finite(value: Any) -> Any:
    """JSON has no infinity: a perplexity that overflowed is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Store:
    """Scores on disk: one file for a model and a text, replaced whole after every score."""

    def __init__(self, folder: Path | None, about: dict[str, Any]) -> None:
        self.about = json.loads(json.dumps(about))
        self.rows: list[dict[str, Any]] = []
        self.path: Path | None = None
        if folder is None:
            return
        digest = hashlib.sha256(json.dumps(self.about, sort_keys=True).encode()).hexdigest()[:12]
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"evaluation-{digest}.json"
        try:
            kept = read_json(self.path)
            if kept["about"] == self.about:
                self.rows = [vars(TypeAdapter(Score).validate_python(row)) for row in kept["rows"]]
        except (ValueError, KeyError, TypeError):
            self.rows = []  # nothing there yet, or not ours

    def find(self, condition: Trial) -> Score | None:
        return next((Score(**row) for row in self.rows if row["key"] == condition.key()), None)

    def add(self, score: Score) -> None:
        self.rows.append(vars(score))
        if self.path is not None:
            durable.replace_file(self.path, json.dumps({"about": self.about, "rows": self.rows}, indent=1).encode())
