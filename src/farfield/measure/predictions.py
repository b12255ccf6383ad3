"""What the theory says of each head of a model, with the parameters that it has: verdict, horizon, leak, TRF, ERF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, cast

import numpy as np

from farfield.formula import Formula
from farfield.measure.values import Count, Length, Number, Share, Verdict
from farfield.nn.learned_heads import verdict_on
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import leak
from farfield.theory.verdict.horizon import Horizon

if TYPE_CHECKING:
    from farfield.measure.attended import ByAttention
    from farfield.measure.models import Model

FARTHEST = 10**15  # receptive fields beyond it are written as this


@dataclass(frozen=True)
class HeadSeries:
    """The series of a head, or of all heads of a model together.

    Attributes:
        verdict: Whether it converges; "mixed" if some heads of a model converge and some diverge.
        leak: The share of a row that lies beyond the training length (the mean over heads); None if it is not known.
        parameters: Of the head's formula; None without a formula, and of several heads.
        horizon: How far out a divergent series behaves as if it converged.
    """

    verdict: Verdict
    leak: Share | None
    parameters: dict[str, Number] | None = None
    horizon: Horizon | None = None


@dataclass(frozen=True, kw_only=True)
class Head(HeadSeries):
    """A head of a trained model: what the theory says of its series, beside its receptive fields by epsilon.

    Attributes:
        layer: Counted from 1, as heads are.
        trf: In tokens; None where there is none.
        trf_of_rows: The same for rows as long as those whose attention was measured.
        erf: Of the attention, median over queries.
    """

    layer: Length
    head: Length
    trf: dict[str, Count | None]
    trf_of_rows: dict[str, Count | None]
    erf: dict[str, Count]


NO_FORMULA = HeadSeries("not-applicable", None)


def head_of(model: Model, layer: int, head: int, length: int) -> HeadSeries:
    """The parameters of a head, the verdict on its series, its horizon, and the leak up to a row of `length`."""
    known = model.formula_of(layer, head)
    if known is None or model.training_length is None:
        return NO_FORMULA
    return _of_series(known[0], tuple(sorted(known[1].items())), model.training_length, length)


@cache
def _of_series(
    formula: Formula, values: tuple[tuple[str, float], ...], training_length: int, length: int
) -> HeadSeries:
    verdict, share = verdict_on(formula, values), None
    with suppress(ValueError, UndecidedError), answer_in_time():
        share = float(leak(formula, training_length, length, parameters=dict(values)))
    if verdict is None:
        return HeadSeries("undecided", share, dict(values))
    return HeadSeries(cast(Verdict, verdict.verdict), share, dict(values), verdict.horizon)


def series_of(model: Model, length: int) -> HeadSeries:
    """The leak of a model, the mean over its heads and layers, and its verdict: of all heads, or "mixed"."""
    heads = [head_of(model, layer, head, length) for layer in range(model.layers) for head in range(model.heads)]
    return HeadSeries(joint_verdict(head.verdict for head in heads), mean_leak(heads))


def mean_leak(heads: Sequence[HeadSeries]) -> float | None:
    """The mean leak of heads; None if one is not known."""
    leaks = [head.leak for head in heads if head.leak is not None]
    return float(np.mean(leaks)) if leaks and len(leaks) == len(heads) else None


def leak_beyond(model: Model, distance: int, length: int) -> float | None:
    """The share of a row of `length` that the formulas leave beyond a distance: the mean over heads, or None."""
    heads = [model.formula_of(layer, head) for layer in range(model.layers) for head in range(model.heads)]
    return mean_leak([_of_series(known[0], tuple(sorted(known[1].items())), distance, length) if known else NO_FORMULA
                      for known in heads])  # fmt: skip


def joint_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """The one verdict of all heads, "mixed" if some converge and some diverge, else "undecided"."""
    counts = Counter(verdicts)
    if len(counts) == 1:
        return next(iter(counts))
    return "mixed" if set(counts) <= {"converges", "diverges", "mixed"} else "undecided"


def heads_of(model: Model, length: int, fields: ByAttention) -> list[Head]:
    """What the theory says of each layer and head, beside its receptive fields, in their order."""
    median, rows = fields.median(), fields.row_trf
    return [
        Head(
            **vars(head_of(model, layer, head, length)),
            layer=layer + 1,
            head=head + 1,
            trf={e: _capped(fields.trf[i][layer][head]) for i, e in enumerate(fields.epsilons)},
            trf_of_rows={e: None if rows is None else int(rows[i, layer, head]) for i, e in enumerate(fields.epsilons)},
            erf={e: int(median[i, layer, head]) for i, e in enumerate(fields.epsilons)},
        )
        for layer in range(model.layers)
        for head in range(model.heads)
    ]


def _capped(tokens: int | None) -> int | None:
    return None if tokens is None else min(tokens, FARTHEST)
