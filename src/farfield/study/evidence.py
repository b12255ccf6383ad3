"""The evidence of a study: leak against rise, dose against response, TRF against ERF, and what a control shows of each.

Models of one encoding are not independent observations, nor are the heads of one model: every rank correlation has an
interval by bootstrap over encodings and texts as clusters, and the value of the untrained control stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from farfield import zoo
from farfield.formula import FormulaError
from farfield.measure.predictions import joint_verdict, mean_leak
from farfield.measure.statistics import cluster_interval, rank_correlation
from farfield.study.collected import CONVERGES, DIVERGES, MIXED, NONE, Entry, Study
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import leak

PAPER_LENGTHS, PAPER_HEADS = (512, 9216), 8
CODES = {CONVERGES: 0.0, MIXED: 0.5, DIVERGES: 1.0}  # of verdicts, to be ranked
AS_TRAINED, CUT = "as trained", "cut"


@dataclass(frozen=True)
class Correlation:
    """A rank correlation over so many points, with its 95 % interval where there are clusters enough for one."""

    value: float
    interval: tuple[float, float] | None
    points: int

    @property
    def text(self) -> str:
        if self.interval is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.interval[0]:.2f} to {self.interval[1]:.2f})"

    @property
    def positive(self) -> bool | None:
        """Whether it is above 0 beyond doubt; None if there is no interval."""
        return None if self.interval is None else self.interval[0] > 0


@dataclass(frozen=True)
class Observation:
    """One model, one intervention on a model, or one head: what was predicted, what was seen, what the control shows.

    Attributes:
        predicted: The leak, or the TRF.
        verdict: On the series that was in force.
        seen: The rise, the far-field damage, or the ERF; of a trained model.
        control: The same of the untrained one.
        paper_leak: The leak of the encoding in the paper's geometry, if it is known before training.
        tail: Of an intervention.
        change: Of an intervention: the change of perplexity against 1x.
    """

    encoding: str
    corpus: str
    seed: int
    predicted: float
    verdict: str
    seen: float
    control: float
    paper_leak: float | None = None
    tail: str = ""
    change: float = float("nan")


@cache
def paper_leak(encoding: str) -> float | None:
    """The leak in the paper's geometry, 512 to 9,216 tokens with 8 heads; None where parameters are learned."""
    known = zoo.find(encoding)
    heads = known.heads(PAPER_HEADS)
    if known.formula is None or set(known.formula.parameters) - set(heads[0]):
        return None
    try:
        given: list[dict[str, Any]] = [dict(head) for head in heads]
        return float(np.mean([float(leak(known.formula, *PAPER_LENGTHS, parameters=one)) for one in given]))
    except (FormulaError, UndecidedError, ValueError):
        return None


def _paper_leak(record: dict[str, Any]) -> float | None:
    """The same of one model; None if its parameters are not those of its encoding."""
    return None if record["settings"].get("parameters") else paper_leak(record["encoding"])


def known_before_training(entry: Entry) -> bool:
    """Whether an encoding learns none of its parameters, so that its leak is known before training."""
    return zoo.find(entry.encoding).formula is not None and not learned_names(entry)


def learned_names(entry: Entry) -> list[str]:
    """The parameters of the formula that the models of an encoding learned."""
    known, given = zoo.find(entry.encoding), entry.parameters
    usual = set(known.heads(1)[0]) | set(given)
    names = () if known.formula is None else known.formula.parameters
    return [name for name in names if name not in usual or isinstance(given.get(name), dict)]


def correlated(
    points: Sequence[Observation],
    predictor: Callable[[Observation], float | None],
    outcome: Callable[[Observation], float] = lambda point: point.seen,
) -> Correlation | None:
    """The rank correlation of a predictor with an outcome, over the points that have both."""
    pairs = [(x, outcome(p), p) for p in points if (x := predictor(p)) is not None and np.isfinite(outcome(p))]
    first, second = [x for x, _, _ in pairs], [y for _, y, _ in pairs]
    value = rank_correlation(first, second)
    if value is None:
        return None
    clusters = [p.encoding for *_, p in pairs], [p.corpus for *_, p in pairs]
    return Correlation(value, cluster_interval(first, second, *clusters), len(pairs))


def by_leak(point: Observation) -> float:
    return point.predicted


def by_verdict(point: Observation) -> float | None:
    return CODES.get(point.verdict)


def by_paper_leak(point: Observation) -> float | None:
    return point.paper_leak


def of_control(point: Observation) -> float:
    return point.control


def of_change(point: Observation) -> float:
    return point.change


class Evidence:
    """The observations of a study and their correlations; each is computed once."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @cached_property
    def models(self) -> list[Observation]:
        """Leak and rise of every model that has a formula."""
        points = []
        for record in self.study.records:
            share = mean_leak(record["heads"])
            if share is not None:
                verdict = joint_verdict(head["verdict"] for head in record["heads"])
                rises = [part["extrapolation"]["lengths"][-1]["rise"] for part in (record, record["control"])]
                named = _named(record)
                seen, control = rises
                points.append(Observation(*named, share, verdict, seen, control, _paper_leak(record)))
        return points

    @cached_property
    def interventions(self) -> list[Observation]:
        """Leak and far-field damage, for every model and every tail that it was given, its own too.

        The damage is perplexity at the longest length over that of the same model with its heads cut at the training
        length, minus 1. The cut itself is left out: its leak and its damage are 0 by definition.
        """
        points = []
        for record in self.study.records:
            untrained = {one["tail"]: one for one in record["control"]["interventions"]}
            for one in record["interventions"]:
                if one["leak"] is not None and one["tail"] in untrained and one["tail"] != CUT:
                    seen = _damage(one, record)
                    control = _damage(untrained[one["tail"]], record["control"])
                    about = {"tail": one["tail"], "change": one["change"][0]}
                    points.append(Observation(*_named(record), one["leak"], one["verdict"], seen, control, **about))
        return points

    def heads(self, epsilon: str = "0.01", which: str = "trf_of_rows") -> list[Observation]:
        """TRF and ERF of every head that has both; a divergent series has an infinite TRF."""
        points = []
        for record in self.study.records:
            for head, untrained in zip(record["heads"], record["control"]["erf"], strict=True):
                tokens = head[which].get(epsilon)
                if head["verdict"] == NONE or (tokens is None and which == "trf_of_rows"):
                    continue
                theory = float("inf") if tokens is None else float(tokens)
                fields = float(head["erf"][epsilon]), float(untrained[epsilon])
                points.append(Observation(*_named(record), theory, head["verdict"], *fields))
        return points

    @cached_property
    def leak(self) -> Correlation | None:
        """Leak and rise over models."""
        return correlated(self.models, by_leak)

    @cached_property
    def dose(self) -> Correlation | None:
        """Leak and far-field damage over interventions."""
        return correlated(self.interventions, by_leak)

    @cached_property
    def dose_by_verdict(self) -> Correlation | None:
        """The verdict on the changed series and the far-field damage, over interventions."""
        return correlated(self.interventions, by_verdict)

    @cached_property
    def fields(self) -> Correlation | None:
        """TRF of rows and ERF over heads."""
        return correlated(self.heads(), by_leak)

    @cached_property
    def within_models(self) -> list[float]:
        """Leak and far-field damage over the interventions on one model, for each model."""
        models: dict[tuple[str, str, int], list[Observation]] = {}
        for point in self.interventions:
            models.setdefault((point.encoding, point.corpus, point.seed), []).append(point)
        ranks = [rank_correlation([p.predicted for p in own], [p.seen for p in own]) for own in models.values()]
        return [rank for rank in ranks if rank is not None]


def _damage(intervention: dict[str, Any], part: dict[str, Any]) -> float:
    """Perplexity with a tail over that with a cut, minus 1, from their changes against 1x."""
    return float((1 + intervention["change"][0]) / (1 + part["cut"]["change"][0]) - 1)


def _named(record: dict[str, Any]) -> tuple[str, str, int]:
    return str(record["encoding"]), str(record["corpus"]), int(record["seed"])
