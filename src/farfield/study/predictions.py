"""What the theory says of each head of a trained model, with the parameters that it learned.

The verdict on the head's own series, its practical horizon if it diverges late, the leak from the training length to
the longest one that was measured, and its receptive fields, theoretical and empirical, side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farfield.formula import Formula, FormulaError
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import leak
from farfield.theory.verdict.convergence import check

if TYPE_CHECKING:
    from farfield.measure import ByAttention, Model

FARTHEST = 10**15  # receptive fields beyond it are written as this


def heads_of(model: Model, training_length: int, longest: int, fields: ByAttention) -> list[dict[str, Any]]:
    """One entry for each layer and head, in their order."""
    known: dict[Any, dict[str, Any]] = {}
    median = fields.median()
    table = []
    for layer in range(model.layers):
        for head in range(model.heads):
            known_formula = model.formula_of(layer, head)
            said: dict[str, Any] = {"parameters": None, "verdict": "not-applicable", "horizon": None, "leak": None}
            if known_formula is not None:
                formula, values = known_formula
                key = (formula.text(), tuple(sorted(values.items())))
                if key not in known:
                    known[key] = of_head(formula, values, training_length, longest)
                said = known[key]
            rows = fields.row_trf
            table.append(
                {
                    "layer": layer + 1,
                    "head": head + 1,
                    **said,
                    "trf": {e: _capped(fields.trf[i][layer][head]) for i, e in enumerate(fields.epsilons)},
                    "trf_of_rows": {
                        e: None if rows is None else int(rows[i, layer, head]) for i, e in enumerate(fields.epsilons)
                    },
                    "erf": {e: int(median[i, layer, head]) for i, e in enumerate(fields.epsilons)},
                }
            )
    return table


def of_head(formula: Formula, values: dict[str, Any], training_length: int, longest: int) -> dict[str, Any]:
    """The verdict, the horizon and the leak of one series."""
    try:
        verdict = check(formula, parameters=values)
        horizon = None if verdict.horizon is None else verdict.horizon.json()
        said: dict[str, Any] = {"parameters": values, "verdict": verdict.verdict, "horizon": horizon}
    except FormulaError:
        said = {"parameters": values, "verdict": "undecided", "horizon": None}
    try:
        said["leak"] = float(leak(formula, training_length, longest, parameters=values))
    except (ValueError, UndecidedError):
        said["leak"] = None
    return said


def _capped(tokens: int | None) -> int | None:
    return None if tokens is None else min(tokens, FARTHEST)
