"""What a study consists of: one cell for each corpus, encoding and seed, keyed by its configuration.

The key of a cell is a name that a person can read and a digest of everything that decides its result, so a second call
finds what is there, and a changed option never mixes with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from farfield import zoo
from farfield.data import durable
from farfield.measure import MULTIPLES
from farfield.reading import read_json
from farfield.study.escaping import plain
from farfield.training.settings import PRESETS, Settings, preset_settings, settings_from
from farfield.zoo.head_parameters import chosen_parameters
from farfield.zoo.learned import Learned, learned_parameters

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
# Two formulas with the verdict that their neighbour does not have: what decides at 18x is the leak.
TWINS = (
    "-1.01*log(1 + k*t)",  # converges, and leaks as inverse does
    "log(exp(-k*t) + 0.000001)",  # diverges, and leaks hardly more than alibi
)
# What takes the place of the bias beyond the training length of every trained model (measure/tails.py). The last two
# set the verdict against the leak: one diverges and leaks little, the other converges and leaks nearly as a constant.
SLOW = "c - 2*log(1 + t/(16*m))"
TAILS = ("cut", "r - 2*log(t/m)", "r - log(t/m)", "alibi", "inverse", "constant", "c - 4", SLOW)
# The paper's data sets, by the corpora that are these or declare that they stand for one.
STANDS_FOR = {name: name for name in ("wikitext-103", "books", "github", "wikibook")} | {"python": "github"}
PAPER_CORPORA = ("wikitext-103", "books", "github", "wikibook")
STUDY_PRESETS = (*(name for name in PRESETS if not name.startswith("paper")), "paper", "paper-wikitext", "paper-base")
FILE, CELLS = "plan.json", "cells"


@dataclass(frozen=True)
class Measurement:
    """How every model of a study is measured; lengths are multiples of the training length.

    Attributes:
        segments: Of the longest length each, spread over the whole test split.
        multiples: The lengths at which perplexity is measured.
        sliding: Those at which it is also measured with a sliding window.
        tails: Interventions on the bias beyond the training length, measured at the longest length.
        control: Segments for the untrained control.
        receptive: Length of the rows whose attention is measured.
        chunks: How many of them.
        hypothesis: Length of the rows in which delta(i, j) is measured.
    """

    segments: int = 40
    multiples: tuple[float, ...] = tuple(map(float, MULTIPLES))
    sliding: tuple[float, ...] = (1, 4)
    tails: tuple[str, ...] = TAILS
    control: int = 12
    receptive: int = 4
    chunks: int = 8
    hypothesis: int = 18

    def lengths(self, training_length: int, multiples: Sequence[float] | None = None) -> list[int]:
        return [max(1, round(m * training_length)) for m in (self.multiples if multiples is None else multiples)]


MEASUREMENTS = {
    "long": Measurement(sliding=(1,), tails=("cut", "r - 2*log(t/m)", "constant", SLOW)),
    "tiny": Measurement(segments=8, control=4, chunks=2),
    "geometry": Measurement(segments=12, sliding=(1,), tails=("cut", "constant"), control=3, chunks=2, hypothesis=4),
}


@dataclass(frozen=True)
class Cell:
    """One model to be trained and measured.

    Attributes:
        corpus: How tables and figures call it.
        stands_for: The paper's data set that it is compared with, if any.
    """

    corpus: str
    encoding: str
    seed: int
    settings: Settings
    measurement: Measurement
    stands_for: str | None = None

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
            "stands_for": self.stands_for,
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
        (out / CELLS).mkdir(parents=True, exist_ok=True)
        for cell in self.cells:  # its key tells it from every other, so another plan in this folder takes none away
            path = out / CELLS / f"{cell.key}.json"
            if not path.exists():
                durable.replace_file(path, json.dumps(cell.json(), indent=1).encode())
        durable.replace_file(out / FILE, json.dumps(fields, indent=1).encode())


def make_plan(
    preset: str = "small",
    corpora: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    seeds: int = 1,
    precision: str | None = None,
    *,
    first_seed: int = 0,
    stands_for: Mapping[str, str] | None = None,
    learn: str | Mapping[str, Any] | None = None,
    slopes: str | None = None,
) -> Plan:
    """The plan of a study: `python`, the paper's nine encodings and the twins unless something else is given.

    What is learned, and the slopes, hold for every encoding whose formula has these parameters.
    """
    if preset not in STUDY_PRESETS:
        raise ValueError(f"There is no study preset {preset!r}: choose from {', '.join(STUDY_PRESETS)}.")
    if not 1 <= seeds <= 1000:
        raise ValueError(f"{seeds} seeds were asked for; it must be from 1 to 1000.")
    on_gpus = preset.startswith("paper")
    sources = list(corpora) if corpora else list(PAPER_CORPORA if on_gpus else ("python",))
    rules = learned_parameters(learn)
    names = [_encoding(text, rules) for text in (encodings or (ENCODINGS if on_gpus else (*ENCODINGS, *TWINS)))]
    _require_use(names, [*rules, *(["k"] if slopes is not None else [])])
    for what, given in (("corpus", sources), ("encoding", names)):
        twice = [one for one in given if given.count(one) > 1]
        if twice:
            raise ValueError(f"The {what} {twice[0]!r} was given twice.")
    declared = _declared(stands_for or {}, sources)
    measurement = MEASUREMENTS.get(preset, Measurement())
    cells = []
    for seed in range(first_seed, first_seed + seeds):  # all encodings once before any of them twice
        for source, label in zip(sources, _labels(sources), strict=True):
            for name in names:
                size = _training_preset(preset, declared.get(source))
                how: dict[str, Any] = {"encoding": name, "corpus": source, "seed": seed, "precision": precision}
                if chosen := _chosen(name, preset_settings(size).heads, rules, slopes):
                    how["parameters"] = chosen
                settings = preset_settings(size, **how)
                cells.append(Cell(label, name, seed, settings, measurement, declared.get(source)))
    return Plan(preset, tuple(cells))


def _declared(given: Mapping[str, str], sources: Sequence[str]) -> dict[str, str]:
    """Which of the paper's data sets each corpus stands for: only what is declared, nothing is guessed from a name."""
    declared = {source: STANDS_FOR[source] for source in sources if source in STANDS_FOR}
    known = sorted(set(STANDS_FOR.values()))
    for data_set, source in given.items():
        if data_set not in known:
            raise ValueError(f"The paper has no data set {data_set!r}: choose from {', '.join(known)}.")
        if source not in sources:
            raise ValueError(f"{source!r} cannot stand for {data_set}: the corpora are {', '.join(sources)}.")
        declared[source] = data_set
    return declared


def read_plan(out: Path) -> Plan | None:
    """The plan of the last call in this folder; None if there was none."""
    path = out / FILE
    if not path.exists():
        return None
    try:
        fields = read_json(path)
        cells = [_read_cell(cell, str(path)) for cell in fields["cells"]]
        return Plan(str(fields["preset"]), tuple(cells))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"The plan in {str(path)!r} cannot be read ({error}): remove the file, or choose another --out."
        ) from None


def read_cell(out: Path, key: str) -> Cell | None:
    """One cell, of the last plan of a folder or an earlier one."""
    path = out / CELLS / f"{key}.json"
    try:
        if key == Path(key).name and len(key) < 200 and path.is_file():
            return _read_cell(read_json(path), str(path))
    except (KeyError, TypeError, ValueError):
        pass
    plan = read_plan(out)
    return next((cell for cell in plan.cells if cell.key == key), None) if plan else None


def _read_cell(fields: dict[str, Any], where: str) -> Cell:
    measurement = dict(fields["measurement"])
    for name in ("multiples", "sliding", "tails"):
        measurement[name] = tuple(measurement[name])
    settings = settings_from(fields["settings"], where)
    stands_for = fields["stands_for"] if fields.get("stands_for") in STANDS_FOR.values() else None
    return Cell(
        plain(fields["corpus"]), settings.encoding, settings.seed, settings, Measurement(**measurement), stands_for
    )


def _training_preset(preset: str, data_set: str | None) -> str:
    """The paper trains a smaller model on WikiText-103 than on the rest."""
    if preset != "paper":
        return preset
    return "paper-wikitext" if data_set == "wikitext-103" else "paper-base"


def _chosen(name: str, heads: int, rules: Mapping[str, Learned], slopes: str | None) -> dict[str, Any]:
    """The parameters of one encoding, from what is learned and the slopes that it has."""
    encoding = zoo.find(name)
    own = () if encoding.formula is None or encoding.name == "t5" else encoding.formula.parameters
    learn = {parameter: rule for parameter, rule in rules.items() if parameter in own}
    return chosen_parameters(encoding, heads, {}, learn, slopes if "k" in own and "k" not in learn else None)


def _require_use(names: Sequence[str], given: Sequence[str]) -> None:
    """One sentence if a parameter that is to be learned, or k, is in none of the formulas."""
    formulas = [formula for name in names if (formula := zoo.find(name).formula) is not None]
    for parameter in given:
        if not any(parameter in formula.parameters for formula in formulas):
            raise ValueError(f"No encoding here has a parameter {parameter!r} that could be learned or set.")


def _encoding(text: str, learned: Mapping[str, Any]) -> str:
    """The name of the zoo's encoding, or the formula as it was typed; one sentence if it is neither."""
    encoding = zoo.find(text)
    if encoding.name in zoo.ENCODINGS:
        return encoding.name
    assert encoding.formula is not None
    open_ = [name for name in encoding.formula.parameters if name != "k" and name not in learned]
    if open_:
        raise ValueError(
            f"The formula {text!r} leaves {', '.join(open_)} open: write numbers for them (k is the ALiBi slope of "
            f'each head), or let them be learned, such as --learn "{open_[0]}=0:2".'
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
