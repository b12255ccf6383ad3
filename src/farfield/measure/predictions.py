"""What the theory says of each head of a model, with the parameters that it has: verdict, horizon, leak, TRF, ERF."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from farfield.formula import Formula
from farfield.nn.learned_heads import verdict_on
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import leak

if TYPE_CHECKING:
    from farfield.measure.attended import ByAttention
    from farfield.measure.models import Model

FARTHEST = 10**15  # receptive fields beyond it are written as this
NO_FORMULA = {"parameters": None, "verdict": "not-applicable", "horizon": None, "leak": None}


def head_of(model: Model, layer: int, head: int, length: int) -> dict[str, Any]:
    """The parameters of a head, the verdict on its series, its horizon, and the leak up to a row of `length`."""
    known = model.formula_of(layer, head)
    if known is None or model.training_length is None:
        return NO_FORMULA
    return _of_series(known[0], tuple(sorted(known[1].items())), model.training_length, length)


@cache
def _of_series(
    formula: Formula, values: tuple[tuple[str, Any], ...], training_length: int, length: int
) -> dict[str, Any]:
    given = dict(values)
    said: dict[str, Any] = {"parameters": given, "verdict": "undecided", "horizon": None, "leak": None}
    if (verdict := verdict_on(formula, values)) is not None:
        said["verdict"] = verdict.verdict
        said["horizon"] = None if verdict.horizon is None else verdict.horizon.json()
    with suppress(ValueError, UndecidedError), answer_in_time():
        said["leak"] = float(leak(formula, training_length, length, parameters=given))
    return said


def series_of(model: Model, length: int) -> dict[str, Any]:
    """The leak of a model, the mean over its heads and layers, and its verdict: of all heads, or "mixed"."""
    heads = [head_of(model, layer, head, length) for layer in range(model.layers) for head in range(model.heads)]
    return {"leak": mean_leak(heads), "verdict": joint_verdict(head["verdict"] for head in heads)}


def mean_leak(heads: Any) -> float | None:
    """The mean leak of heads; None if one is not known."""
    leaks = [head["leak"] for head in heads]
    return None if not leaks or None in leaks else float(np.mean(leaks))


def leak_beyond(model: Model, distance: int, length: int) -> float | None:
    """The share of a row of `length` that the formulas leave beyond a distance: the mean over heads, or None."""
    heads = [model.formula_of(layer, head) for layer in range(model.layers) for head in range(model.heads)]
    return mean_leak([_of_series(known[0], tuple(sorted(known[1].items())), distance, length) if known else NO_FORMULA
                      for known in heads])  # fmt: skip


def joint_verdict(verdicts: Any) -> str:
    """The one verdict of all heads, "mixed" if some converge and some diverge, else "undecided"."""
    counts = Counter(verdicts)
    if len(counts) == 1:
        return str(next(iter(counts)))
    return "mixed" if set(counts) <= {"converges", "diverges", "mixed"} else "undecided"


def heads_of(model: Model, length: int, fields: ByAttention) -> list[dict[str, Any]]:
    """What the theory says of each layer and head, beside its receptive fields, in their order."""
    median, rows = fields.median(), fields.row_trf
    return [
        {
            "layer": layer + 1,
            "head": head + 1,
            **head_of(model, layer, head, length),
            "trf": {e: _capped(fields.trf[i][layer][head]) for i, e in enumerate(fields.epsilons)},
            "trf_of_rows": {
                e: None if rows is None else int(rows[i, layer, head]) for i, e in enumerate(fields.epsilons)
            },
            "erf": {e: int(median[i, layer, head]) for i, e in enumerate(fields.epsilons)},
        }
        for layer in range(model.layers)
        for head in range(model.heads)
    ]


def _capped(tokens: int | None) -> int | None:
    return None if tokens is None else min(tokens, FARTHEST)
