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
from farfield.measure import rises
from farfield.measure.rise import ROSE, STAYED, UNKNOWN
from farfield.study.cell import RECORDS, SPEED, read_record
from farfield.study.plan import Plan
from farfield.study.published import GROUPS, necessity, sufficiency

FILE = "study.json"
PLAIN, SLIDING = "non-overlapping", "sliding"
CONVERGES, DIVERGES, MIXED, UNDECIDED, NONE = "converges", "diverges", "mixed", "undecided", "not-applicable"


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

    @cached_property
    def perplexity(self) -> np.ndarray:
        """Non-overlapping perplexity, (seeds, lengths)."""
        rows = [[float("nan") if x is None else x for x in record["perplexity"][PLAIN]] for record in self.records]
        return np.array(rows, dtype=float)

    @property
    def mean(self) -> np.ndarray:
        return self.perplexity.mean(0)

    @property
    def relative(self) -> np.ndarray:
        """The mean perplexity over that at the training length."""
        return self.mean / self.mean[0]

    @property
    def rises(self) -> list[float]:
        """For each seed, the rise of perplexity at the longest length (measure/rise.py)."""
        return [float(x) for x in rises(self.perplexity)[:, -1]]

    @property
    def rise(self) -> float:
        return float(np.mean(self.rises))

    @property
    def answer(self) -> str:
        """ "rose" if it did in some seed, "level" if it is in all, else "cannot be told"."""
        answers = {str(record["extrapolation"]["answer"]) for record in self.records}
        return ROSE if ROSE in answers else STAYED if answers == {STAYED} else UNKNOWN

    def heads(self) -> list[dict[str, Any]]:
        return [head for record in self.records for head in record["heads"]]

    @property
    def leak(self) -> float | None:
        """The mean over heads of the share of the longest row that lies beyond the training length."""
        leaks = [head["leak"] for head in self.heads()]
        return None if not leaks or None in leaks else float(np.mean(leaks))

    @property
    def verdict(self) -> str:
        """The verdict on the heads as they were trained: all converge, all diverge, or some of each."""
        verdicts = {head["verdict"] for head in self.heads()}
        if len(verdicts) == 1:
            return verdicts.pop()
        return MIXED if verdicts <= {CONVERGES, DIVERGES} else UNDECIDED

    @property
    def horizon(self) -> tuple[int, bool] | None:
        """The shortest practical horizon of its heads, and whether it is certain; None if there is none."""
        horizons = [head["horizon"] for head in self.heads()]
        if not horizons or None in horizons:
            return None
        least = min(horizons, key=lambda h: h["tokens"])
        return int(least["tokens"]), bool(least["certain"])


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

    def group(self, encoding: str) -> str:
        """`sufficiency` or `necessity`: the paper's table for its own encodings, the verdict for others."""
        if encoding in GROUPS:
            return GROUPS[encoding]
        entries = self.of_encoding(encoding)
        return "necessity" if entries and entries[0].verdict == DIVERGES else "sufficiency"

    def grouped(self, group: str) -> list[str]:
        return [e for e in self.encodings if self.group(e) == group]

    @staticmethod
    def published(corpus: str, encoding: str) -> list[float] | None:
        """The paper's perplexities at 512 to 9216 tokens on the data set that this corpus stands for."""
        return sufficiency(corpus, encoding) or necessity(corpus, encoding)


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
    study = Study(plan.preset, plan.corpora, plan.encodings, whole, read_speed(out), missing)
    if not whole:
        raise ValueError(f"No run of this study is finished in {str(out)!r}: run it without --only first.")
    return study


def fits(record: dict[str, Any]) -> bool:
    """Whether a record has what is read from it, with as many numbers as lengths."""
    try:
        count = len(record["lengths"])
        tables = [record["perplexity"][PLAIN], record["perplexity"][SLIDING], record["stderr"]]
        return (
            count > 0
            and all(len(table) == count for table in tables)
            and all(isinstance(tables[0][i], float | int) and tables[0][i] > 0 for i in (0, -1))
            and record["extrapolation"]["answer"] in (ROSE, STAYED, UNKNOWN)
            and all({"verdict", "leak", "horizon", "trf", "erf"} <= set(head) for head in record["heads"])
            and {"receptive", "truncation", "training_length", "machine", "seconds"} <= set(record)
        )
    except (KeyError, TypeError, AttributeError):
        return False


def read_speed(out: Path) -> dict[str, Any] | None:
    """What each way of inference cost, if it was measured."""
    try:
        record = json.loads((out / RECORDS / f"{SPEED}.json").read_bytes())
        return record if {"relative", "timings", "cell"} <= set(record) else None
    except (OSError, ValueError, TypeError):
        return None


def save(study: Study, out: Path) -> Path:
    """All records in one file, for programs and for the explorer."""
    fields = {
        "version": 2,
        "preset": study.preset,
        "runs": study.records,
        "speed": study.speed,
        "missing": study.missing,
    }
    durable.replace_file(out / FILE, json.dumps(fields, allow_nan=False).encode())
    return out / FILE
