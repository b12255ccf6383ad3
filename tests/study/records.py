"""Studies made by hand, for tests that need no training: records with chosen perplexities and heads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from farfield.measure.rise import answer, rises
from farfield.study.cell import record_path
from farfield.study.collected import Study, collect
from farfield.study.plan import Cell, make_plan

MULTIPLES = (1, 2, 4, 18)
LEVEL, FALLING, RISING = (100.0, 100.5, 100.2, 100.1), (100.0, 98.0, 97.0, 96.5), (100.0, 99.0, 103.0, 120.0)


def record(
    cell: Cell, perplexity: Sequence[float], verdict: str = "converges", leak: float | None = 0.1
) -> dict[str, Any]:
    """The record of a cell as `run_cell` writes it."""
    base = cell.settings.length
    rise = float(rises(perplexity).max())
    head = {
        "parameters": {"k": 0.5},
        "verdict": verdict,
        "horizon": None,
        "leak": leak,
        "trf": {"0.1": 5, "0.01": 10} if verdict == "converges" else {"0.1": None, "0.01": None},
        "trf_of_rows": {"0.1": 4, "0.01": 9},
        "erf": {"0.1": 4, "0.01": 8},
    }
    return {
        "version": 2,
        **cell.json(),
        "training_length": base,
        "lengths": [m * base for m in MULTIPLES],
        "perplexity": {"non-overlapping": list(perplexity), "sliding": [perplexity[0], None, None, perplexity[-1]]},
        "stderr": [1.0] * len(MULTIPLES),
        "test_tokens": 1000,
        "extrapolation": {"answer": answer(rise, 0.001), "largest_rise": rise, "largest_rise_error": 0.001},
        "tokens_seen": [],
        "heads": [{"layer": 1, "head": h + 1, **head} for h in range(2)],
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
        "seconds": {"training": 1.0, "measuring": 1.0},
        "machine": {"processor": "a processor", "device": "CPU", "cores": 2, "torch": "2", "python": "3"},
    }


def study_of(
    out: Path,
    perplexities: Mapping[str, Sequence[float]],
    *,
    corpora: Sequence[str] = ("python",),
    verdicts: Mapping[str, str] | None = None,
    leaks: Mapping[str, float | None] | None = None,
    seeds: int = 1,
) -> Study:
    """A study whose models have these perplexities at 1x, 2x, 4x and 18x, by encoding."""
    plan = make_plan("tiny", list(corpora), list(perplexities), seeds)
    out.mkdir(parents=True, exist_ok=True)
    plan.save(out)
    (out / "records").mkdir(exist_ok=True)
    for cell in plan.cells:
        found = record(
            cell,
            perplexities[cell.encoding],
            (verdicts or {}).get(cell.encoding, "converges"),
            (leaks or {}).get(cell.encoding, 0.1),
        )
        record_path(out, cell).write_text(json.dumps(found))
    return collect(plan, out)
