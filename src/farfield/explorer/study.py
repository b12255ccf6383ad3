"""The results of a study folder, read with suspicion: FOLDER/study.json and nothing else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from farfield.reading import read_json

_LARGEST = 8 << 20  # bytes of study.json
_MOST_RUNS = 2000
_MOST_LENGTHS = 200
_LONGEST_NAME = 200
PROTOCOLS = ("non-overlapping", "sliding")


def load(folder: str | Path) -> list[dict[str, Any]]:
    """The runs of a study, each with its perplexity by length; one sentence if the folder holds none."""
    path = Path(folder) / "study.json"
    if not Path(folder).is_dir():
        raise ValueError(f"there is no study folder {str(folder)!r}")
    runs = read_json(path, _LARGEST, exact=True).get("runs")
    if not isinstance(runs, list) or len(runs) > _MOST_RUNS:
        raise ValueError(f"{path} has no list 'runs' of at most {_MOST_RUNS} runs")
    return [_run(run, f"run {i} of {path}") for i, run in enumerate(runs, 1)]


def _run(run: Any, where: str) -> dict[str, Any]:
    if not isinstance(run, dict):
        raise ValueError(f"{where} is no object")
    out: dict[str, Any] = {name: _name(run.get(name), name, where) for name in ("corpus", "encoding")}
    out |= {name: _whole(run.get(name), name, where, least) for name, least in (("seed", 0), ("training_length", 1))}
    lengths = run.get("lengths")
    if not isinstance(lengths, list) or not 1 <= len(lengths) <= _MOST_LENGTHS:
        raise ValueError(f"{where} has no list 'lengths' of 1 to {_MOST_LENGTHS} lengths")
    out["lengths"] = [_whole(n, "lengths", where, 1) for n in lengths]
    perplexity = run.get("perplexity")
    if not isinstance(perplexity, dict):
        raise ValueError(f"{where} has no object 'perplexity'")
    out["perplexity"] = {p: _perplexities(perplexity[p], len(lengths), where) for p in PROTOCOLS if p in perplexity}
    return out


def _perplexities(values: Any, count: int, where: str) -> list[float | None]:
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"{where} must have one perplexity for each of its {count} lengths")
    for v in values:
        if v is not None and (isinstance(v, bool) or not isinstance(v, int | float) or not 0 < v < math.inf):
            raise ValueError(f"{where} has a perplexity that is no positive number: {str(v)[:40]!r}")
    return [None if v is None else float(v) for v in values]


def _name(value: Any, name: str, where: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= _LONGEST_NAME:
        raise ValueError(f"{where} needs a text of at most {_LONGEST_NAME} characters as its {name}")
    return value


def _whole(value: Any, name: str, where: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 1 << 53:
        raise ValueError(f"{where} needs whole numbers >= {least} as its {name}, not {str(value)[:40]!r}")
    return value
