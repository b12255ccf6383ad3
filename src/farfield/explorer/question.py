"""A question of the page, read from a query with suspicion: every field checked, every number bounded."""

from __future__ import annotations

from dataclasses import dataclass

from farfield.formula import FormulaError
from farfield.formula.formula import MAX_LENGTH
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.fields.windows import exact_bound

LONGEST_QUERY = 8192  # characters of an address
LONGEST_CONFIGURATION = 256 << 10  # characters of a config.json
MOST_HEADS = 64
MOST_TOKENS = 65_536  # of a context
FARTHEST_START = 1_000_000
MOST_ENCODINGS = 6  # side by side
_ONE = {"f", "set", "heads", "head", "from"}  # one encoding, its parameters and its head
FIELDS = {  # the kinds of questions, and what may be given with each
    "verdict": _ONE,
    "code": _ONE | {"epsilon", "bound"},
    "coq": _ONE,
    "fields": _ONE | {"epsilon", "skip"},
    "window": _ONE | {"context", "epsilon", "bound"},
    "drawn": _ONE | {"context"},
    "claimed": _ONE | {"context", "epsilon"},
    "condition": {"f", "from"},
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
    for name, _ in fields:
        if name not in FIELDS[kind]:
            raise ValueError(f"the explorer knows no field {name[:20]!r} here")
    once: dict[str, str] = {}
    formulas, settings = [], []
    for name, value in fields:
        if name == "f":
            formulas.append(value)
        elif name == "set":
            settings.append(value)
        elif name in once:
            raise ValueError(f"the field {name!r} was given twice")
        else:
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
    if not 1 <= len(formulas) <= (MOST_ENCODINGS if kind == "compare" else 1):
        raise ValueError("give one formula" if kind != "compare" else f"give 2 to {MOST_ENCODINGS} formulas")
    if any(len(f) > MAX_LENGTH for f in formulas):
        raise ValueError(f"a formula has at most {MAX_LENGTH} characters")
    heads = _whole(once, "heads", 8, 1, MOST_HEADS, "number of heads")
    head = _whole(once, "head", heads, 1, MOST_HEADS, "head")
    if head > heads:
        raise ValueError(f"there is no head {head} among {heads}")
    return Question(
        kind,
        tuple(formulas),
        _values(settings, len(formulas)),
        heads,
        head,
        _whole(once, "from", 0, 0, FARTHEST_START, "first distance"),
        _whole(once, "context", 512, 2, MOST_TOKENS, "context"),
        epsilon,
        bound,
        once.get("parameter", ""),
        _whole(once, "reach", 4096, 1, 10**12, "reach"),
        _whole(once, "skip", 0, 0, 1000, "number of known parts"),
    )


def _values(settings: list[str], formulas: int) -> tuple[dict[str, str], ...]:
    """Settings such as 0.k=1/16: the formula's place, the parameter, the value."""
    table: list[dict[str, str]] = [{} for _ in range(formulas)]
    for one in settings:
        place, dot, rest = one.partition(".")
        name, equals, value = rest.partition("=")
        if not (place.isascii() and place.isdigit() and dot and name.strip() and equals and value.strip()):
            raise FormulaError("a setting is written 0.k=1/16: formula, parameter, value", one[:80])
        if len(place) > 2 or int(place) >= formulas:
            raise ValueError(f"there is no formula {place[:9]}")
        table[int(place)][name.strip()] = value.strip()
    return tuple(table)


def _whole(once: dict[str, str], name: str, default: int, least: int, most: int, words: str) -> int:
    text = once.get(name, str(default)).strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and least <= int(text) <= most):
        raise ValueError(f"the {words} must be a whole number from {least} to {most}, not {text[:20]!r}")
    return int(text)
