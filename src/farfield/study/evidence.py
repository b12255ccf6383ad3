"""The evidence of a study: leak against rise, dose against response, TRF against ERF, and what a control shows of each.

Models of one encoding are not independent observations, nor are the heads of one model: every rank correlation has an
interval by bootstrap over encodings and texts as clusters, and the value of the untrained control stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from farfield import zoo
from farfield.formula import FormulaError
from farfield.measure.statistics import cluster_interval, rank_correlation
from farfield.measure.values import Verdict
from farfield.study.entries import CONVERGES, DIVERGES, MIXED, NONE, Entry, Study
from farfield.study.record import CUT, Network, Record
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import leak

PAPER_LENGTHS, PAPER_HEADS = (512, 9216), 8
CODES = {CONVERGES: 0.0, MIXED: 0.5, DIVERGES: 1.0}  # of verdicts, to be ranked


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
    """One network, one intervention on it, or one of its heads: what its own parameters predict, and what was seen.

    Attributes:
        predicted: The leak, or the TRF.
        verdict: On the series that was in force.
        seen: The rise, the far-field damage, or the ERF.
        paper_leak: The leak of the encoding in the paper's geometry, if it is known before training.
        tail: Of an intervention.
        change: Of an intervention: the change of perplexity against 1x.
    """

    encoding: str
    corpus: str
    seed: int
    predicted: float
    verdict: Verdict
    seen: float
    paper_leak: float | None = None
    tail: str = ""
    change: float = float("nan")


@cache
def paper_leak(encoding: str) -> float | None:
    """The leak in the paper's geometry, 512 to 9,216 tokens with 8 heads; None where parameters are learned."""
    formula, heads = zoo.find(encoding).formula, zoo.find(encoding).heads(PAPER_HEADS)
    if formula is None or set(formula.parameters) - set(heads[0]):
        return None
    try:
        return float(np.mean([float(leak(formula, *PAPER_LENGTHS, parameters=dict(head))) for head in heads]))
    except (FormulaError, UndecidedError, ValueError):
        return None


def known_before_training(entry: Entry) -> bool:
    """Whether an encoding learns none of its parameters, so that its leak is known before training."""
    return zoo.find(entry.encoding).formula is not None and not learned_names(entry)


def learned_names(entry: Entry) -> list[str]:
    """The parameters of the formula that the models of an encoding learned."""
    encoding, chosen = zoo.find(entry.encoding), entry.first.settings.parameters
    fixed = set(encoding.heads(1)[0]) | set(chosen)
    names = () if encoding.formula is None else encoding.formula.parameters
    return [name for name in names if name not in fixed or isinstance(chosen.get(name), dict)]


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


def of_change(point: Observation) -> float:
    return point.change


class Evidence:
    """The observations of a study and their correlations; each is computed once.

    Args:
        study: What was measured.
        untrained: Of the control, with the parameters that it has itself, and not of the trained models.
    """

    def __init__(self, study: Study, *, untrained: bool = False) -> None:
        self.study = study
        self.networks: list[tuple[Record, Network]] = [
            (record, record.control if untrained else record) for record in study.records
        ]

    @cached_property
    def control(self) -> Evidence:
        """The same of the untrained networks."""
        return Evidence(self.study, untrained=True)

    @cached_property
    def models(self) -> list[Observation]:
        """Leak and rise of every network that has a formula."""
        points = []
        for record, network in self.networks:
            if (share := network.leak) is not None:
                papers = None if record.settings.parameters else paper_leak(record.encoding)
                points.append(Observation(*_names(record), share, network.verdict, network.rise, papers))
        return points

    @cached_property
    def interventions(self) -> list[Observation]:
        """Leak and far-field damage, for every model and every tail that it was given, its own too.

        The damage is perplexity at the longest length over that of the same model with its heads cut at the training
        length, minus 1. The cut itself is left out: its leak and its damage are 0 by definition.
        """
        points = []
        for record, network in self.networks:
            for dose in network.interventions:
                if dose.leak is not None and dose.tail != CUT:
                    change = dose.change[0]
                    damage = (1 + change) / (1 + network.cut.change[0]) - 1
                    about = (*_names(record), dose.leak, dose.verdict, damage)
                    points.append(Observation(*about, tail=dose.tail, change=change))
        return points

    def heads(self, epsilon: str = "0.01") -> list[Observation]:
        """TRF of rows as long as the measured ones, and ERF, of every head that has both."""
        points = []
        for record, network in self.networks:
            for head in network.heads:
                tokens = head.trf_of_rows.get(epsilon)
                if head.verdict != NONE and tokens is not None:
                    points.append(Observation(*_names(record), tokens, head.verdict, head.erf[epsilon]))
        return points

    @cached_property
    def fields_text(self) -> str:
        """TRF of rows and ERF over heads before and after training, in words; empty without a correlation."""
        before, after = (correlated(one.heads(), by_leak) for one in (self.control, self))
        if before is None or after is None:
            return ""
        text = f"training takes the rank correlation of TRF and ERF from {before.value:.2f} to {after.text}"
        fixed = {key for key, entry in self.study.entries.items() if known_before_training(entry)}
        heads = ([p for p in one.heads() if (p.corpus, p.encoding) in fixed] for one in (self.control, self))
        start, end = (correlated(points, by_leak) for points in heads)
        if start is not None and end is not None and end.points < after.points:
            text += f", of encodings that learn no parameter from {start.value:.2f} to {end.text}"
        return f"{text}: it {'weakens' if after.value < before.value else 'keeps'} what the bias does by itself"

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
    def within_models(self) -> list[float]:
        """Leak and far-field damage over the interventions on one model, for each model."""
        models: dict[tuple[str, str, int], list[Observation]] = {}
        for point in self.interventions:
            models.setdefault((point.encoding, point.corpus, point.seed), []).append(point)
        ranks = [rank_correlation([p.predicted for p in own], [p.seen for p in own]) for own in models.values()]
        return [rank for rank in ranks if rank is not None]


def _names(record: Record) -> tuple[str, str, int]:
    return record.encoding, record.corpus, record.seed
