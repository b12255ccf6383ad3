"""Studies made by hand, for tests that need no training: records with chosen perplexities and heads."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from farfield.measure.rise import extrapolation
from farfield.study.entries import Entry, Study, collect
from farfield.study.plan import TAILS, Cell, make_plan
from farfield.study.record import VERSION, Record, write_record

MULTIPLES = (1, 2, 4, 18)
LEVEL, FALLING, RISING = (100.0, 100.5, 100.2, 100.1), (100.0, 98.0, 97.0, 96.5), (100.0, 99.0, 103.0, 120.0)
SEGMENTS, TOKENS = 40, 100


def answers(
    perplexity: Sequence[float], base: int, *, verdict: str, leak: float | None, noise: float, gain: float, draw: Any
) -> dict[str, Any]:
    """What is said of perplexities at the multiples: with errors from blocks of text that differ by `noise`."""
    hard = draw.normal(0, 0.2, SEGMENTS)
    blocks = {
        m * base: TOKENS * (np.log(p) + hard + draw.normal(0, noise, SEGMENTS))
        for m, p in zip(MULTIPLES, perplexity, strict=True)
    }
    named = {m * base: p for m, p in zip(MULTIPLES, perplexity, strict=True)}
    result = extrapolation(named, base, blocks=blocks, tokens=SEGMENTS * TOKENS, context_gain=(gain, 0.01))
    change = perplexity[-1] / perplexity[0] - 1
    doses = [] if leak is None else [("as trained", leak, verdict, change)]
    doses += [
        (tail, share, word, change * share)
        for tail, share, word in (
            ("cut", 0.0, "converges"),
            ("constant", 0.9, "diverges"),
            ("r - log(t/m)", 0.05, "converges"),
        )
        if leak is not None
    ]
    return {
        "extrapolation": result,
        "damage": [change * 0.9, 0.002],
        "cut": {"perplexity": perplexity[0], "change": [0.01, 0.002]},
        "interventions": [
            {"tail": tail, "leak": share, "verdict": word, "perplexity": perplexity[0] * (1 + c), "change": [c, 0.002]}
            for tail, share, word, c in doses
        ],
        "blocks": [b.tolist() for b in blocks.values()],
    }


def record(
    cell: Cell,
    perplexity: Sequence[float],
    verdict: str = "converges",
    leak: float | None = 0.1,
    noise: float = 0.002,
    gain: float = 0.5,
) -> Record:
    """The record of a cell as `run_cell` leaves it."""
    base = cell.settings.length
    draw = np.random.default_rng(cell.seed)
    about = {"verdict": verdict, "leak": leak, "draw": draw}
    said = answers(perplexity, base, noise=noise, gain=gain, **about)
    untrained = [500.0 * (1 + 1e-4 * (p / perplexity[0] - 1)) for p in perplexity]
    control = answers(untrained, base, noise=1e-5, gain=0.0, **about)
    control.pop("blocks")
    head = {
        "parameters": {"k": 0.5},
        "verdict": verdict,
        "horizon": None,
        "leak": leak,
        "trf": {"0.1": 5, "0.01": 10} if verdict == "converges" else {"0.1": None, "0.01": None},
        "trf_of_rows": {"0.1": 4, "0.01": 9},
        "erf": {"0.1": 4, "0.01": 8},
    }
    fields = {
        "version": VERSION,
        **dict(cell),
        "training_length": base,
        "lengths": [m * base for m in MULTIPLES],
        "perplexity": {"non-overlapping": list(perplexity), "sliding": [perplexity[0], None, None, perplexity[-1]]},
        "stderr": [1.0] * len(MULTIPLES),
        "test": {"tokens": SEGMENTS * TOKENS, "segments": SEGMENTS, "segment": TOKENS},
        **said,
        "tokens_seen": [],
        "heads": [{"layer": 1, "head": h + 1, **head} for h in range(2)],
        "control": {
            "segments": 4,
            "lengths": [m * base for m in MULTIPLES],
            **control,
            "heads": [{"layer": 1, "head": h + 1, **head, "erf": {"0.1": 4, "0.01": 9}} for h in range(2)],
        },
        "receptive": {
            "length": 4,
            "burn_in": 2,
            "queries": 8,
            "mass": [0.5, 0.3, 0.15, 0.05],
            "paper": {"field": [0.0, 0.5, 1.0], "epsilon": [1.0, 0.5, 0.0]},
        },
        "truncation": {
            "length": 16,
            "windows": [1, 2, 4],
            "delta": [1.0, 0.5, 0.1],
            "lost": [0.5, 0.2, 0.1],
            "sharper": [2.0, 1.0, 0.2],
            "paper": [4.0, 2.0, 0.4],
        },
        "parameters": 1234,
        "training": [{"step": 1, "loss": 5.0}, {"step": 2, "loss": 4.0}],
        "seconds": {"training": 1.0, "measuring": 1.0, "processor_training": 1.0, "processor_measuring": 1.0},
        "machine": {"processor": "a processor", "device": "CPU", "cores": 2, "torch": "2", "python": "3"},
    }
    return Record.model_validate(fields)


def study_of(
    out: Path,
    perplexities: Mapping[str, Sequence[float]],
    *,
    corpora: Sequence[str] = ("python",),
    verdicts: Mapping[str, str] | None = None,
    leaks: Mapping[str, float | None] | None = None,
    seeds: int = 1,
    preset: str = "small",
    stands_for: Mapping[str, str] | None = None,
    **more: Any,
) -> Study:
    """A study whose models have these perplexities at 1x, 2x, 4x and 18x, by encoding."""
    plan = make_plan(preset, list(corpora), list(perplexities), seeds, stands_for=stands_for)
    plan.save(out)
    for cell in plan.cells:
        verdict, leak = (verdicts or {}).get(cell.encoding, "converges"), (leaks or {}).get(cell.encoding, 0.1)
        write_record(out, cell.key, record(cell, perplexities[cell.encoding], verdict, leak, **more))
    return collect(plan, out)


def change(study: Study, edit: Callable[[dict[str, Any], int], None], encodings: Sequence[str] | None = None) -> Study:
    """The same study with other records: `edit` takes each as JSON, with its number, and changes it in place."""
    tables = [json.loads(record.model_dump_json()) for record in study.records]
    for number, fields in enumerate(tables):
        if encodings is None or fields["encoding"] in encodings:
            edit(fields, number)
    records = iter([Record.model_validate(fields) for fields in tables])
    entries = {key: Entry(*key, tuple(next(records) for _ in old.records)) for key, old in study.entries.items()}
    return replace(study, entries=entries)


__all__ = ["FALLING", "LEVEL", "RISING", "TAILS", "change", "record", "study_of"]
