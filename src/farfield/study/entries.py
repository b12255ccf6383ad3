"""What a study measured: the records of its cells, seeds put together, the published numbers beside them.

Everything that tables, figures and sentences say is read from here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from farfield.data import durable
from farfield.measure.predictions import Head, joint_verdict, mean_leak
from farfield.measure.rise import Extrapolation, pooled
from farfield.measure.statistics import two_levels
from farfield.measure.values import Verdict, WithError
from farfield.study.plan import TWINS, Plan
from farfield.study.published import GROUPS, published_perplexities
from farfield.study.record import PLAIN, VERSION, Record, SpeedRecord, read_record, read_speed
from farfield.theory.verdict.horizon import Horizon

FILE = "study.json"
CONVERGES: Verdict = "converges"
DIVERGES: Verdict = "diverges"
MIXED: Verdict = "mixed"
UNDECIDED: Verdict = "undecided"
NONE: Verdict = "not-applicable"
# What study.json has of a record; the rest is in the records.
BRIEF = {"corpus", "encoding", "seed", "stands_for", "training_length", "lengths", "perplexity", "stderr", "damage"}


@dataclass(frozen=True)
class Entry:
    """All seeds of one encoding on one corpus."""

    corpus: str
    encoding: str
    records: tuple[Record, ...]

    @property
    def first(self) -> Record:
        """The record of the first seed, for what all have in common."""
        return self.records[0]

    @property
    def training_length(self) -> int:
        return self.first.training_length

    @property
    def lengths(self) -> list[int]:
        return self.first.lengths

    @property
    def farthest(self) -> float:
        """The longest length, in training lengths."""
        return self.lengths[-1] / self.training_length

    @cached_property
    def perplexity(self) -> np.ndarray:
        """Non-overlapping perplexity, (seeds, lengths)."""
        return np.array([record.perplexity[PLAIN] for record in self.records], dtype=float)

    @property
    def mean(self) -> np.ndarray:
        return self.perplexity.mean(0)

    @cached_property
    def errors(self) -> list[float | None]:
        """The standard error of the mean perplexity at each length, from text and seeds."""
        stderr = [record.stderr for record in self.records]
        return [two_levels(self.perplexity[:, i], [row[i] for row in stderr])[1] for i in range(len(self.lengths))]

    @property
    def relative(self) -> np.ndarray:
        """The mean perplexity over that at the training length."""
        return self.mean / self.mean[0]

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """Change and rise at every length, over all seeds, with errors, and whether it extrapolates."""
        return pooled([record.extrapolation for record in self.records])

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
    def gain(self) -> WithError | None:
        """How many nats context gains within the training length, and the error of that."""
        return self.extrapolation.context_gain

    @property
    def damage(self) -> WithError:
        """The far-field damage: perplexity at the longest length over that with heads cut at the training length."""
        return self._mean(lambda record: record.damage)

    @property
    def cut(self) -> WithError:
        """The change against 1x that is left at the longest length if heads are cut at the training length."""
        return self._mean(lambda record: record.cut.change)

    def _mean(self, number: Callable[[Record], WithError]) -> WithError:
        """The mean over seeds of a number that each record has with its error."""
        values, errors = zip(*(number(record) for record in self.records), strict=True)
        return two_levels(values, errors)

    @property
    def heads(self) -> list[Head]:
        return [head for record in self.records for head in record.heads]

    @property
    def leak(self) -> float | None:
        """The mean over heads of the share of the longest row that lies beyond the training length."""
        return mean_leak(self.heads)

    @property
    def verdict(self) -> Verdict:
        """The verdict on the heads as they were trained: all converge, all diverge, or some of each."""
        return joint_verdict(head.verdict for head in self.heads)

    @property
    def horizon(self) -> Horizon | None:
        """The shortest practical horizon of its heads; None if one of them has none."""
        horizons = [head.horizon for head in self.heads if head.horizon is not None]
        return min(horizons, key=lambda h: h.tokens) if horizons and len(horizons) == len(self.heads) else None

    @property
    def published(self) -> list[float] | None:
        """The paper's perplexities at 512 to 9216 tokens on the data set that the corpus stands for."""
        return published_perplexities(self.first.stands_for, self.encoding)


@dataclass(frozen=True)
class Study:
    """Everything that was measured."""

    preset: str
    corpora: list[str]
    encodings: list[str]
    entries: dict[tuple[str, str], Entry]
    speed: SpeedRecord | None
    missing: list[str] = field(default_factory=list)

    def entry(self, corpus: str, encoding: str) -> Entry | None:
        return self.entries.get((corpus, encoding))

    def of_encoding(self, encoding: str) -> list[Entry]:
        return [self.entries[c, encoding] for c in self.corpora if (c, encoding) in self.entries]

    def of_corpus(self, corpus: str) -> list[Entry]:
        return [self.entries[corpus, e] for e in self.encodings if (corpus, e) in self.entries]

    @property
    def records(self) -> list[Record]:
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
    """The records of a plan that are there, and the names of those that are not."""
    records: dict[tuple[str, str], list[Record]] = {}
    missing = []
    for cell in plan.cells:
        record = read_record(out, cell)
        others = records.get((cell.corpus, cell.encoding), [])
        if record is None or any(other.lengths != record.lengths for other in others):
            missing.append(cell.label)
        else:
            records.setdefault((cell.corpus, cell.encoding), []).append(record)
    if not records:
        raise ValueError(f"No run of this study is finished in {str(out)!r}: run it without --only first.")
    entries = {key: Entry(*key, tuple(seeds)) for key, seeds in records.items()}
    return Study(plan.preset, plan.corpora, plan.encodings, entries, read_speed(out), missing)


def save(study: Study, out: Path) -> Path:
    """The outcome of every run in one file, for programs and for the explorer."""
    runs = [
        {
            **record.model_dump(mode="json", include=BRIEF),
            "leak": record.leak,
            "verdict": record.verdict,
            "rise": record.rise,
            "answer": record.extrapolation.answer,
        }
        for record in study.records
    ]
    fields = {"version": VERSION, "preset": study.preset, "runs": runs, "missing": study.missing}
    fields["relative_inference_time"] = None if study.speed is None else study.speed.relative
    durable.replace_file(out / FILE, json.dumps(fields, allow_nan=False).encode())
    return out / FILE
