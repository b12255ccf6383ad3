"""What there is to measure, what was measured, and where it is kept: scores on disk, one by one, to go on from."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farfield.data import durable
from farfield.measure.models import Window
from farfield.measure.protocols import Chunk, non_overlapping, sliding

PROTOCOLS = ("non-overlapping", "sliding", "windowed")
VERSION = 1  # of what is saved


@dataclass(frozen=True)
class Condition:
    """One thing to measure: a protocol at a length, with its stride or its windows."""

    length: int
    protocol: str
    stride: int | None = None
    window: Window = None
    epsilon: str | None = None

    def chunks(self, tokens: int) -> list[Chunk]:
        """How a text of so many scored tokens is read."""
        if self.protocol == "sliding":
            assert self.stride is not None
            return sliding(tokens, self.length, self.stride)
        return non_overlapping(tokens, self.length)

    def key(self) -> list[Any]:
        """What tells it from other conditions, as JSON keeps it."""
        window = self.window if self.window is None or isinstance(self.window, int) else [str(w) for w in self.window]
        return [self.length, self.protocol, self.stride, window, self.epsilon]


@dataclass(frozen=True)
class Score:
    """What one protocol gives at one length; `stderr` is that of the perplexity (None: there is only one chunk)."""

    length: int
    protocol: str
    tokens: int
    loss: float
    perplexity: float
    stderr: float | None
    seconds: float  # that it took here: next to nothing where a longer length had done the work
    blocks: list[float]  # sums of the losses of 64 equal blocks of the text, the same for every score
    key: list[Any]
    positions: list[dict[str, float]] | None = None  # non-overlapping: the loss by number of tokens seen
    extra: dict[str, Any] = field(default_factory=dict)

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
            kept = json.loads(self.path.read_bytes())
            if kept["about"] == self.about:
                self.rows = [vars(Score(**row)) for row in kept["rows"]]
        except (OSError, ValueError, KeyError, TypeError):
            self.rows = []  # nothing there yet, or not ours

    def find(self, condition: Condition) -> Score | None:
        return next((Score(**row) for row in self.rows if row["key"] == condition.key()), None)

    def add(self, score: Score) -> None:
        self.rows.append(vars(score))
        if self.path is not None:
            durable.replace_file(self.path, json.dumps({"about": self.about, "rows": self.rows}, indent=1).encode())
