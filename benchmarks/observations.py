"""Make the observations that predictions go by: every model of the default study, with each tail that it was given.

    python benchmarks/observations.py            writes src/farfield/study/observations.json from results/

A row is an encoding with a tail: the numbers of all predictors, and the rise at 18 times the training length, the mean
over seeds. Of a changed tail the records have the change against 1x alone; the rise that goes with a change is read
off the models as trained, by an isotonic fit (which errs by 0.5 % at most on these).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from farfield import zoo
from farfield.formula import Formula
from farfield.measure.tails import tail_formula
from farfield.nn.bias import Bias
from farfield.study.entries import collect
from farfield.study.plan import read_plan
from farfield.study.predictions import isotonic, numbers
from farfield.study.record import AS_TRAINED, Record

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src" / "farfield" / "study" / "observations.json"


def with_tail(record: Record, tail: str) -> tuple[Formula, list[dict[str, float]]]:
    """The formula of a model with a tail, and the parameters of each head of its first layer."""
    settings = record.settings
    formula = zoo.find(record.encoding).formula
    assert formula is not None
    heads = [dict(head.parameters or {}) for head in record.heads[: settings.heads]]
    if tail != AS_TRAINED:
        formula = tail_formula(formula, tail, record.training_length)
        width = settings.width // settings.heads
        others = dict(Bias("alibi", settings.heads, width).fixed)
        if tail in zoo.ENCODINGS:
            others |= {f"tail_{p}": v for p, v in Bias(tail, settings.heads, width).fixed.items()}
        for name in set(others) & set(formula.parameters):
            value = others[name]
            for i, head in enumerate(heads):
                head.setdefault(name, value[i] if isinstance(value, list) else value)
    return formula, [{name: head[name] for name in formula.parameters} for head in heads]


def records_of(folder: Path) -> list[Record]:
    """The models of a study that were also measured with other tails."""
    plan = read_plan(folder)
    assert plan is not None
    return [record for record in collect(plan, folder).records if record.interventions]


def row(records: list[Record], encoding: str, tail: str) -> dict[str, Any]:
    """What is known of an encoding with a tail, over seeds."""
    trained = [(r.extrapolation.lengths[-1].change, r.rise) for r in records]
    places, values = isotonic(*map(np.array, zip(*trained, strict=True)))
    rises, predictors = [], []
    for record in records:
        for dose in record.interventions:
            if (record.encoding, dose.tail) == (encoding, tail):
                rise = record.rise if tail == AS_TRAINED else float(np.interp(dose.change[0], places, values))
                rises.append(max(rise, dose.change[0]))
                predictors.append(_numbers(record, tail))
    means = {name: float(f"{np.mean([x[name] for x in predictors]):.10g}") for name in predictors[0]}
    return {"encoding": encoding, "tail": tail, "rise": round(float(np.mean(rises)), 6), "numbers": means}


_CACHE: dict[str, dict[str, float]] = {}


def _numbers(record: Record, tail: str) -> dict[str, float]:
    formula, heads = with_tail(record, tail)
    key = f"{formula} {heads}"
    if key not in _CACHE:
        _CACHE[key] = numbers(formula, heads, record.settings.layers, record.training_length, record.lengths[-1])
    return _CACHE[key]


def rows(records: list[Record]) -> list[dict[str, Any]]:
    """One row for each encoding and tail."""
    pairs = dict.fromkeys((record.encoding, dose.tail) for record in records for dose in record.interventions)
    return [row(records, encoding, tail) for encoding, tail in pairs]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "results")
    chosen = parser.parse_args()
    table = rows(records_of(chosen.folder))
    TARGET.write_text("[\n" + ",\n".join(map(json.dumps, table)) + "\n]\n", encoding="utf-8")
    print(f"{len(table)} observations in {TARGET}")
