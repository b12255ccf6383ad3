"""What comes in: a question of the page and a study's results, read with suspicion, every field and number bounded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from farfield.formula import FormulaError
from farfield.formula.formula import MAX_LENGTH
from farfield.reading import read_json
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.fields.windows import exact_bound

LONGEST_QUERY = 8192  # characters of an address
LONGEST_CONFIGURATION = 256 << 10  # characters of a config.json
MOST_HEADS = 64
MOST_TOKENS = 65_536  # of a context
FARTHEST_START = 1_000_000
MOST_ENCODINGS = 6  # side by side
_ENCODING = {"f", "set", "heads", "head", "from"}  # one encoding, its parameters and its head
FIELDS = {  # the kinds of questions, and what may be given with each
    "verdict": _ENCODING,
    "code": _ENCODING | {"epsilon", "bound"},
    "coq": _ENCODING,
    "fields": _ENCODING | {"epsilon", "skip"},
    "window": _ENCODING | {"context", "epsilon", "bound"},
    "drawn": _ENCODING | {"context"},
    "claimed": _ENCODING | {"context", "epsilon"},
    "condition": {"f", "from", "assume"},
    "heads": {"f", "set", "heads", "from", "skip"},
    "compare": {"f", "set", "heads", "head"},
    "design": {"f", "set", "heads", "head", "parameter", "reach", "epsilon"},
    "inspect": {"config", "epsilon", "bound"},
}


@dataclass(frozen=True)
class Question:
    """What is asked: of one formula, or of several with the settings of each."""

    kind: str
    formulas: tuple[str, ...]
    values: tuple[dict[str, str], ...]  # the parameters that were set, for each formula
    heads: int = 8
    head: int = 8
    start: int = 0
    context: int = 512
    epsilon: str = "0.01"
    bound: str = "5"
    parameter: str = ""
    reach: int = 4096
    skip: int = 0  # parts of the answer that the page has already
    configuration: str = ""  # of a model, as it was pasted
    assume: str = ""  # of open parameters

    @property
    def formula(self) -> str:
        return self.formulas[0]

    @property
    def given(self) -> dict[str, str]:
        return self.values[0]


def read(kind: str, fields: list[tuple[str, str]]) -> Question:
    """The question behind the fields of a query; one sentence if it is none."""
    if kind not in FIELDS:
        raise ValueError(f"there is no answer to {kind[:20]!r}")
    once: dict[str, str] = {}
    for name, value in fields:
        if name not in FIELDS[kind]:
            raise ValueError(f"the explorer knows no field {name[:20]!r} here")
        if name in once and name not in ("f", "set"):
            raise ValueError(f"the field {name!r} was given twice")
        once[name] = value
    epsilon, bound = once.get("epsilon", "0.01").strip(), once.get("bound", "" if kind == "inspect" else "5").strip()
    exact_epsilon(epsilon)
    if bound or kind != "inspect":
        exact_bound(bound)
    if kind == "inspect":
        pasted = once.get("config", "")
        if len(pasted) > LONGEST_CONFIGURATION:
            raise ValueError(f"a configuration has at most {LONGEST_CONFIGURATION:,} characters, not {len(pasted):,}")
        return Question(kind, (), (), epsilon=epsilon, bound=bound, configuration=pasted)
    formulas = tuple(value for name, value in fields if name == "f")
    if not 1 <= len(formulas) <= (MOST_ENCODINGS if kind == "compare" else 1):
        raise ValueError("give one formula" if kind != "compare" else f"give 2 to {MOST_ENCODINGS} formulas")
    if any(len(formula) > MAX_LENGTH for formula in formulas):
        raise ValueError(f"a formula has at most {MAX_LENGTH} characters")
    heads = _whole(once, "heads", 8, 1, MOST_HEADS, "number of heads")
    head = _whole(once, "head", heads, 1, MOST_HEADS, "head")
    if head > heads:
        raise ValueError(f"there is no head {head} among {heads}")
    return Question(
        kind,
        formulas,
        _values([value for name, value in fields if name == "set"], len(formulas)),
        heads,
        head,
        _whole(once, "from", 0, 0, FARTHEST_START, "first distance"),
        _whole(once, "context", 512, 2, MOST_TOKENS, "context"),
        epsilon,
        bound,
        once.get("parameter", ""),
        _whole(once, "reach", 4096, 1, 10**12, "reach"),
        _whole(once, "skip", 0, 0, 1000, "number of known parts"),
        assume=once.get("assume", ""),
    )


def _values(settings: list[str], formulas: int) -> tuple[dict[str, str], ...]:
    """Settings such as 0.k=1/16: the formula's place, the parameter, the value."""
    table: list[dict[str, str]] = [{} for _ in range(formulas)]
    for setting in settings:
        place, dot, rest = setting.partition(".")
        name, equals, value = rest.partition("=")
        if not (place.isascii() and place.isdigit() and dot and name.strip() and equals and value.strip()):
            raise FormulaError("a setting is written 0.k=1/16: formula, parameter, value", setting[:80])
        if len(place) > 2 or int(place) >= formulas:
            raise ValueError(f"there is no formula {place[:9]}")
        table[int(place)][name.strip()] = value.strip()
    return tuple(table)


def _whole(once: dict[str, str], name: str, default: int, least: int, most: int, words: str) -> int:
    text = once.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and least <= int(text) <= most):
        raise ValueError(f"the {words} must be a whole number from {least} to {most}, not {text[:20]!r}")
    return int(text)


# ------------------------------------------------------------------------------------------------ a study's results
def load_study(folder: str | Path) -> list[dict[str, object]]:
    """The runs in FOLDER/study.json, each with its perplexity by length; one sentence if the folder holds none."""
    path = Path(folder) / "study.json"
    if not Path(folder).is_dir():
        raise ValueError(f"there is no study folder {str(folder)!r}")
    runs = read_json(path, 8 << 20, exact=True).get("runs")
    if not isinstance(runs, list) or len(runs) > 2000:
        raise ValueError(f"{path} has no list 'runs' of at most 2000 runs")
    return [_run(run, f"run {i} of {path}") for i, run in enumerate(runs, 1)]


def _run(run: object, where: str) -> dict[str, object]:
    def require(allowed: bool, words: str) -> None:
        if not allowed:
            raise ValueError(f"{where} {words}")

    def is_whole(value: object, least: int) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value < 1 << 53

    def is_perplexity(value: object) -> bool:
        return value is None or (isinstance(value, int | float) and value is not True and 0 < value < math.inf)

    if not isinstance(run, dict):
        raise ValueError(f"{where} is no object")
    for name in ("corpus", "encoding"):
        text = run.get(name)
        require(
            isinstance(text, str) and 1 <= len(text) <= 200, f"needs a text of at most 200 characters as its {name}"
        )
    for name, least in (("seed", 0), ("training_length", 1)):
        require(is_whole(run.get(name), least), f"needs a whole number >= {least} as its {name}")
    lengths, perplexity = run.get("lengths"), run.get("perplexity")
    if not isinstance(lengths, list) or not 1 <= len(lengths) <= 200 or not all(is_whole(n, 1) for n in lengths):
        raise ValueError(f"{where} needs 1 to 200 whole numbers >= 1 as its lengths")
    if not isinstance(perplexity, dict):
        raise ValueError(f"{where} has no object 'perplexity'")
    measured = {name: perplexity[name] for name in ("non-overlapping", "sliding") if name in perplexity}
    for values in measured.values():
        count = f"must have one perplexity for each of its {len(lengths)} lengths"
        require(isinstance(values, list) and len(values) == len(lengths), count)
        require(all(map(is_perplexity, values)), "has a perplexity that is no positive number")
    names = ("corpus", "encoding", "seed", "training_length", "lengths")
    return {**{name: run[name] for name in names}, "perplexity": measured}
