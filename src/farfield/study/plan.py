"""What a study consists of: one cell for each corpus, encoding and seed, keyed by its configuration.

The key of a cell is a name that a person can read and a digest of everything that decides its result, so a second call
finds what is there, and a changed option never mixes with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from farfield import zoo
from farfield.data import durable
from farfield.measure import MULTIPLES
from farfield.study.escaping import plain
from farfield.training.settings import PRESETS, Settings, preset_settings, settings_from

ENCODINGS = (
    "sinusoidal",
    "alibi",
    "kerple-log",
    "kerple-power",
    "sandwich",
    "type1",
    "type2",
    "inverse",
    "inverse-log",
)  # the paper's, in the order of its tables
PAPER_CORPORA = ("wikitext-103", "books", "github", "wikibook")
STUDY_PRESETS = ("tiny", "small", "paper", *(name for name in PRESETS if name.startswith("paper-")))
FILE = "plan.json"


@dataclass(frozen=True)
class Measurement:
    """How every model of a study is measured; lengths are multiples of the training length."""

    tokens: int | None  # of the test text; None: all of it
    multiples: tuple[float, ...] = tuple(map(float, MULTIPLES))
    sliding: tuple[float, ...] = (1, 2, 4, 8, 18)
    receptive: int = 4  # length of the rows whose attention is measured
    chunks: int = 8  # how many of them
    hypothesis: int = 18  # length of the rows in which delta(i, j) is measured

    def lengths(self, training_length: int, multiples: Sequence[float] | None = None) -> list[int]:
        return [max(1, round(m * training_length)) for m in (self.multiples if multiples is None else multiples)]


MEASUREMENTS = {
    "tiny": Measurement(2_000, chunks=2),
    "small": Measurement(40_000),
    "paper": Measurement(None, sliding=(1, 2, 4)),
}


@dataclass(frozen=True)
class Cell:
    """One model to be trained and measured."""

    corpus: str  # how tables and figures call it
    encoding: str
    seed: int
    settings: Settings
    measurement: Measurement

    @property
    def key(self) -> str:
        """A file name that tells the cell from every other."""
        return self._name({"settings": self.settings.identity(), "measurement": asdict(self.measurement)})

    @property
    def run_key(self) -> str:
        """The name of the run folder: another measurement needs no other training."""
        return self._name(self.settings.identity())

    def _name(self, decided_by: dict[str, Any]) -> str:
        digest = hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()[:10]
        return f"{slug(self.corpus)}-{slug(self.encoding)}-seed{self.seed}-{digest}"

    def json(self) -> dict[str, Any]:
        return {
            "corpus": self.corpus,
            "encoding": self.encoding,
            "seed": self.seed,
            "settings": self.settings.model_dump(mode="json"),
            "measurement": asdict(self.measurement),
        }


@dataclass(frozen=True)
class Plan:
    """All cells of a study, and the preset they come from."""

    preset: str
    cells: tuple[Cell, ...]

    @property
    def corpora(self) -> list[str]:
        return list(dict.fromkeys(cell.corpus for cell in self.cells))

    @property
    def encodings(self) -> list[str]:
        return list(dict.fromkeys(cell.encoding for cell in self.cells))

    @property
    def seeds(self) -> list[int]:
        return sorted({cell.seed for cell in self.cells})

    def save(self, out: Path) -> None:
        fields = {"preset": self.preset, "cells": [cell.json() for cell in self.cells]}
        durable.replace_file(out / FILE, json.dumps(fields, indent=1).encode())


def make_plan(
    preset: str = "small",
    corpora: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    seeds: int = 1,
    precision: str | None = None,
) -> Plan:
    """The plan of a study; `python` and the paper's nine encodings unless something else is given."""
    if preset not in STUDY_PRESETS:
        raise ValueError(f"There is no study preset {preset!r}: choose from {', '.join(STUDY_PRESETS)}.")
    if not 1 <= seeds <= 1000:
        raise ValueError(f"{seeds} seeds were asked for; it must be from 1 to 1000.")
    sources = list(corpora) if corpora else list(PAPER_CORPORA if preset.startswith("paper") else ("python",))
    names = [_encoding(text) for text in (encodings or ENCODINGS)]
    for what, given in (("corpus", sources), ("encoding", names)):
        twice = [one for one in given if given.count(one) > 1]
        if twice:
            raise ValueError(f"The {what} {twice[0]!r} was given twice.")
    measurement = MEASUREMENTS["paper" if preset.startswith("paper") else preset]
    labels = _labels(sources)
    cells = []
    for seed in range(seeds):  # all encodings once before any of them twice
        for source, label in zip(sources, labels, strict=True):
            for name in names:
                size = _training_preset(preset, source)
                settings = preset_settings(size, encoding=name, corpus=source, seed=seed, precision=precision)
                cells.append(Cell(label, name, seed, settings, measurement))
    return Plan(preset, tuple(cells))


def read_plan(out: Path) -> Plan | None:
    """The plan of the last call in this folder; None if there was none."""
    path = out / FILE
    if not path.exists():
        return None
    try:
        fields = json.loads(path.read_bytes())
        cells = [_read_cell(cell, str(path)) for cell in fields["cells"]]
        return Plan(str(fields["preset"]), tuple(cells))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The plan in {str(path)!r} cannot be read ({error}): remove the file, or choose another --out."
        ) from None


def _read_cell(fields: dict[str, Any], where: str) -> Cell:
    measurement = dict(fields["measurement"])
    for name in ("multiples", "sliding"):
        measurement[name] = tuple(measurement[name])
    settings = settings_from(fields["settings"], where)
    return Cell(plain(fields["corpus"]), settings.encoding, settings.seed, settings, Measurement(**measurement))


def _training_preset(preset: str, corpus: str) -> str:
    """The paper trains a smaller model on WikiText-103 than on the rest."""
    if preset != "paper":
        return preset
    return "paper-wikitext" if "wikitext" in slug(corpus) else "paper-base"


def _encoding(text: str) -> str:
    """The name of the zoo's encoding, or the formula as it was typed; one sentence if it is neither."""
    encoding = zoo.find(text)
    if encoding.name in zoo.ENCODINGS:
        return encoding.name
    assert encoding.formula is not None
    open_ = [name for name in encoding.formula.parameters if name != "k"]
    if open_:
        raise ValueError(
            f"The formula {text!r} leaves {', '.join(open_)} open: write numbers for them "
            "(k is the ALiBi slope of each head), or use an encoding of the zoo that learns its parameters."
        )
    return text.strip()


def _labels(sources: Sequence[str]) -> list[str]:
    """Short names for corpora: the last part of a path, with a number where two would be the same."""
    labels: list[str] = []
    for source in sources:
        path = Path(source).expanduser()
        name = path.resolve().name.split(".")[0] if path.exists() and source != "python" else source
        name = plain(name)
        label, number = name, 2
        while label in labels:
            label, number = f"{name} {number}", number + 1
        labels.append(label)
    return labels


def slug(text: str) -> str:
    """A text as a part of a file name: letters, digits and hyphens, not too many."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40].strip("-") or "x"
