"""What a study consists of and costs: one cell for each corpus, encoding and seed, keyed by its configuration.

The key of a cell is a name that a person can read and a digest of everything that decides its result, so a second call
finds what is there, and a changed option never mixes with it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, ValidationError, model_validator

from farfield import zoo
from farfield.data import durable
from farfield.measure import MULTIPLES
from farfield.measure.values import Count, Length, Name, Value
from farfield.reading import read_json
from farfield.training.scaling import PROCESSORS, training_cost
from farfield.training.settings import PRESETS, Settings, preset_settings, settings_from
from farfield.words import plain
from farfield.zoo.encoding import choose_parameters, slopes_sentence
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
GPU = "a100"  # on which the paper's sizes are counted


def _read_settings(fields: Settings | Any) -> Settings:
    return fields if isinstance(fields, Settings) else settings_from(fields, "a cell")


class Measurement(Value):
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

    segments: Length = 40
    multiples: tuple[int | float, ...] = tuple(map(float, MULTIPLES))
    sliding: tuple[int | float, ...] = (1, 4)  # of these types: a key tells 1 from 1.0
    tails: tuple[Name, ...] = TAILS
    control: Length = 12
    receptive: Length = 4
    chunks: Length = 8
    hypothesis: Length = 18

    def lengths(self, training_length: int, multiples: Sequence[float] | None = None) -> list[int]:
        return [max(1, round(m * training_length)) for m in (self.multiples if multiples is None else multiples)]


MEASUREMENTS = {
    "long": Measurement(sliding=(1,), tails=("cut", "r - 2*log(t/m)", "constant", SLOW)),
    "tiny": Measurement(segments=8, control=4, chunks=2),
    "geometry": Measurement(segments=12, sliding=(1,), tails=("cut", "constant"), control=3, chunks=2, hypothesis=4),
}


class Cell(Value):
    """One model to be trained and measured.

    Attributes:
        corpus: How tables and figures call it.
        stands_for: The paper's data set that it is compared with, if any.
    """

    corpus: Annotated[Name, AfterValidator(plain)]
    encoding: Name
    seed: Count
    stands_for: Literal["wikitext-103", "books", "github", "wikibook"] | None = None
    settings: Annotated[Settings, BeforeValidator(_read_settings)]
    measurement: Measurement

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if (self.encoding, self.seed) != (self.settings.encoding, self.settings.seed):
            raise ValueError("encoding or seed are not those of the settings")
        return self

    @property
    def label(self) -> str:
        return plain(f"{self.corpus}, {self.encoding}, seed {self.seed}")

    @property
    def key(self) -> str:
        """A file name that tells the cell from every other."""
        measurement = self.measurement.model_dump(mode="json")
        return self._name({"settings": self.settings.identity(), "measurement": measurement})

    @property
    def run_key(self) -> str:
        """The name of the run folder: another measurement needs no other training."""
        return self._name(self.settings.identity())

    def _name(self, decided_by: dict[str, Any]) -> str:
        digest = hashlib.sha256(json.dumps(decided_by, sort_keys=True).encode()).hexdigest()[:10]
        return f"{slug(self.corpus)}-{slug(self.encoding)}-seed{self.seed}-{digest}"


class Plan(Value):
    """All cells of a study, and the preset they come from."""

    preset: Name
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
        (out / CELLS).mkdir(parents=True, exist_ok=True)
        for cell in self.cells:  # its key tells it from every other, so another plan in this folder takes none away
            path = out / CELLS / f"{cell.key}.json"
            if not path.exists():
                durable.replace_file(path, cell.model_dump_json().encode())
        durable.replace_file(out / FILE, self.model_dump_json().encode())


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
    sizes: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a study: `python`, the paper's nine encodings and the twins unless something else is given.

    What is learned, and the slopes, hold for every encoding whose formula has these parameters. Sizes are settings of
    training that take the place of the preset's, and `segments` of the test text.
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
    for what, texts in (("corpus", sources), ("encoding", names)):
        if twice := [text for text in texts if texts.count(text) > 1]:
            raise ValueError(f"The {what} {twice[0]!r} was given twice.")
    declared = _declared(stands_for or {}, sources)
    measurement = MEASUREMENTS.get(preset, Measurement())
    changes = {name: value for name, value in (sizes or {}).items() if value is not None}
    if (segments := changes.pop("segments", None)) is not None:
        if not 1 <= segments <= 100_000:
            raise ValueError(f"{segments} segments of the test text were asked for; it must be from 1 to 100,000.")
        measurement = measurement.model_copy(update={"segments": segments})
    cells = []
    for seed in range(first_seed, first_seed + seeds):  # all encodings once before any of them twice
        for source, label in zip(sources, _labels(sources), strict=True):
            for name in names:
                size = _training_preset(preset, declared.get(source))
                how: dict[str, Any] = {"encoding": name, "corpus": source, "seed": seed, "precision": precision}
                how |= _in_proportion(size, changes)
                if chosen := _chosen(name, how.get("heads") or preset_settings(size).heads, rules, slopes):
                    how["parameters"] = chosen
                settings = preset_settings(size, **how)
                about = {"corpus": label, "encoding": name, "seed": seed, "stands_for": declared.get(source)}
                cells.append(Cell.model_validate({**about, "settings": settings, "measurement": measurement}))
    return Plan(preset=preset, cells=tuple(cells))


def _in_proportion(preset: str, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that were chosen; the feed-forward layers are as wide as before in proportion to the hidden states."""
    usual = preset_settings(preset)
    return {"feed_forward": changes.get("width", usual.width) * usual.feed_forward // usual.width, **changes}


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
        return Plan.model_validate(read_json(path))
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
    except ValueError as error:
        reason = str(error)
    raise ValueError(f"The plan in {str(path)!r} cannot be read ({reason}): remove the file, or choose another --out.")


def find_cell(out: Path, key: str) -> Cell:
    """The cell of this key, of the last plan of a folder or an earlier one."""
    path = out / CELLS / f"{key}.json"
    cell = None
    with suppress(ValueError):
        if key == Path(key).name and len(key) < 200 and path.is_file():
            cell = Cell.model_validate(read_json(path))
    if cell is None:
        plan = read_plan(out)
        cell = next((cell for cell in plan.cells if cell.key == key), None) if plan else None
    if cell is None or cell.key != key:
        raise ValueError(f"There is no cell {key[:80]!r} in the plan of {str(out)!r}.")
    return cell


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
    return choose_parameters(encoding, heads, {}, learn, slopes if "k" in own and "k" not in learn else None)


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


def sentences(plan: Plan, todo: Sequence[Cell]) -> list[str]:
    """How many runs there are, how many are left, and for the paper's sizes what they take on a GPU."""
    parts = [(len(plan.encodings), "encoding"), (len(plan.corpora), "corpus"), (len(plan.seeds), "seed")]
    words = " x ".join(f"{n} {name if n == 1 else 'corpora' if name == 'corpus' else name + 's'}" for n, name in parts)
    count, done = len(plan.cells), len(plan.cells) - len(todo)
    lines = [f"{words}: {count} run{'' if count == 1 else 's'}" + (f", {done} of them done already." if done else ".")]
    for cell in plan.cells:
        if slopes := slopes_sentence(zoo.find(cell.encoding), cell.settings.heads, cell.settings.parameters):
            lines.append(f"{slopes}, in every formula with a k (--slopes gives others, or learns them).")
            break
    if todo and plan.preset.startswith("paper"):
        cost = reduce(add, (training_cost(cell.settings, gpu=GPU) for cell in todo))
        processor = PROCESSORS[GPU]
        lines.append(
            f"Training them takes about {cost.gpu_hours:,.0f} GPU-hours on {GPU.upper()}s in "
            f"{todo[0].settings.precision} ({cost.flops:.1e} FLOP at {processor.utilisation:.0%} of the peak), "
            f"{cost.memory_bytes / 1e9:.0f} GB on each, and about ${cost.dollars:,.0f} at "
            f"${processor.dollars_per_hour:g} an hour (docs/scaling.md)."
        )
    return lines
