"""What a study measured: the records of its cells, seeds put together, the published numbers beside them.

Everything that tables, figures and sentences say is read from here. Records are files that may come from elsewhere, so
one that does not fit is left out, with a sentence, and never believed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from farfield.data import durable
from farfield.measure.predictions import joint_verdict, mean_leak
from farfield.measure.rise import Extrapolation, from_json, pooled
from farfield.measure.statistics import two_levels
from farfield.reading import read_json
from farfield.study.cell import RECORDS, SPEED, read_record
from farfield.study.plan import TWINS, Plan
from farfield.study.published import GROUPS, published_perplexities
from farfield.study.schema import fits

FILE = "study.json"
PLAIN, SLIDING = "non-overlapping", "sliding"
CONVERGES, DIVERGES, MIXED, UNDECIDED, NONE = "converges", "diverges", "mixed", "undecided", "not-applicable"
BULKY = ("blocks", "truncation", "receptive", "training")  # what study.json leaves to the records


@dataclass(frozen=True)
class Entry:
    """All seeds of one encoding on one corpus."""

    corpus: str
    encoding: str
    records: tuple[dict[str, Any], ...]

    @property
    def training_length(self) -> int:
        return int(self.records[0]["training_length"])

    @property
    def lengths(self) -> list[int]:
        return list(self.records[0]["lengths"])

    @property
    def farthest(self) -> float:
        """The longest length, in training lengths."""
        return self.lengths[-1] / self.training_length

    @property
    def stands_for(self) -> str | None:
        """The paper's data set that its corpus stands for, if that was declared."""
        return self.records[0].get("stands_for")

    @cached_property
    def perplexity(self) -> np.ndarray:
        """Non-overlapping perplexity, (seeds, lengths)."""
        rows = [[float("nan") if x is None else x for x in record["perplexity"][PLAIN]] for record in self.records]
        return np.array(rows, dtype=float)

    @property
    def mean(self) -> np.ndarray:
        return self.perplexity.mean(0)

    @cached_property
    def errors(self) -> list[float | None]:
        """The standard error of the mean perplexity at each length, from text and seeds."""
        stderr = [record["stderr"] for record in self.records]
        return [two_levels(self.perplexity[:, i], [row[i] for row in stderr])[1] for i in range(len(self.lengths))]

    @property
    def relative(self) -> np.ndarray:
        """The mean perplexity over that at the training length."""
        return self.mean / self.mean[0]

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """Change and rise at every length, over all seeds, with errors, and whether it extrapolates."""
        return pooled([from_json(record["extrapolation"]) for record in self.records])

    @property
    def answer(self) -> str:
        return self.extrapolation.answer

    @property
    def rise(self) -> float:
        """The rise of perplexity at the longest length."""
        return self.extrapolation.lengths[-1].rise

    @property
    def rise_error(self) -> float | None:
        return self.extrapolation.lengths[-1].rise_error

    @property
    def gain(self) -> tuple[float, float | None] | None:
        """How many nats context gains within the training length, and the error of that."""
        return self.extrapolation.context_gain

    @property
    def damage(self) -> tuple[float, float | None]:
        """The far-field damage: perplexity at the longest length over that with heads cut at the training length."""
        pairs = [record["damage"] for record in self.records]
        return two_levels([value for value, _ in pairs], [error for _, error in pairs])

    @property
    def cut(self) -> tuple[float, float | None]:
        """The change against 1x that is left at the longest length if heads are cut at the training length."""
        pairs = [record["cut"]["change"] for record in self.records]
        return two_levels([value for value, _ in pairs], [error for _, error in pairs])

    @property
    def parameters(self) -> dict[str, Any]:
        """What was given for the parameters of the formula: values, or how they are learned."""
        return self.records[0]["settings"].get("parameters") or {}

    def heads(self) -> list[dict[str, Any]]:
        return [head for record in self.records for head in record["heads"]]

    @property
    def leak(self) -> float | None:
        """The mean over heads of the share of the longest row that lies beyond the training length."""
        return mean_leak(self.heads())

    @property
    def verdict(self) -> str:
        """The verdict on the heads as they were trained: all converge, all diverge, or some of each."""
        return joint_verdict(head["verdict"] for head in self.heads())

    @property
    def horizon(self) -> tuple[int, bool] | None:
        """The shortest practical horizon of its heads, and whether it is certain; None if there is none."""
        horizons = [head["horizon"] for head in self.heads()]
        if not horizons or None in horizons:
            return None
        least = min(horizons, key=lambda h: h["tokens"])
        return int(least["tokens"]), bool(least["certain"])

    @property
    def published(self) -> list[float] | None:
        """The paper's perplexities at 512 to 9216 tokens on the data set that the corpus stands for."""
        return published_perplexities(self.stands_for, self.encoding)


@dataclass(frozen=True)
class Study:
    """Everything that was measured."""

    preset: str
    corpora: list[str]
    encodings: list[str]
    entries: dict[tuple[str, str], Entry]
    speed: dict[str, Any] | None
    missing: list[str] = field(default_factory=list)

    def entry(self, corpus: str, encoding: str) -> Entry | None:
        return self.entries.get((corpus, encoding))

    def of_encoding(self, encoding: str) -> list[Entry]:
        return [self.entries[c, encoding] for c in self.corpora if (c, encoding) in self.entries]

    def of_corpus(self, corpus: str) -> list[Entry]:
        return [self.entries[corpus, e] for e in self.encodings if (corpus, e) in self.entries]

    @property
    def records(self) -> list[dict[str, Any]]:
        return [record for entry in self.entries.values() for record in entry.records]

    @property
    def seeds(self) -> int:
        return max((len(entry.records) for entry in self.entries.values()), default=0)

    @property
    def farthest(self) -> float:
        """The longest length that was measured, in training lengths."""
        return max(entry.farthest for entry in self.entries.values())

    def group(self, encoding: str) -> str:
        """`sufficiency` or `necessity`: the paper's table for its own encodings, the verdict for others."""
        if encoding in GROUPS:
            return GROUPS[encoding]
        entries = self.of_encoding(encoding)
        diverges = entries and entries[0].verdict == DIVERGES
        return "necessity" if diverges or encoding in TWINS else "sufficiency"

    def grouped(self, group: str) -> list[str]:
        return [e for e in self.encodings if self.of_encoding(e) and self.group(e) == group]


def collect(plan: Plan, out: Path) -> Study:
    """The records of a plan that are there."""
    entries: dict[tuple[str, str], list[dict[str, Any]]] = {}
    missing = []
    for cell in plan.cells:
        record = read_record(out, cell)
        others = entries.get((cell.corpus, cell.encoding), [])
        if record is None or not fits(record) or any(o["lengths"] != record["lengths"] for o in others):
            missing.append(f"{cell.corpus}, {cell.encoding}, seed {cell.seed}")
            continue
        entries.setdefault((cell.corpus, cell.encoding), []).append(record)
    whole = {key: Entry(*key, tuple(records)) for key, records in entries.items()}
    if not whole:
        raise ValueError(f"No run of this study is finished in {str(out)!r}: run it without --only first.")
    return Study(plan.preset, plan.corpora, plan.encodings, whole, read_speed(out), missing)


def read_speed(out: Path) -> dict[str, Any] | None:
    """What each way of inference cost, if it was measured."""
    try:
        record = read_json(out / RECORDS / f"{SPEED}.json")
        return record if {"relative", "timings", "cell"} <= set(record) else None
    except ValueError:
        return None


def save(study: Study, out: Path) -> Path:
    """All records in one file without what is bulky, for programs and for the explorer."""
    fields = {
        "version": 3,
        "preset": study.preset,
        "runs": [{name: value for name, value in record.items() if name not in BULKY} for record in study.records],
        "speed": study.speed,
        "missing": study.missing,
    }
    durable.replace_file(out / FILE, json.dumps(fields, allow_nan=False).encode())
    return out / FILE
