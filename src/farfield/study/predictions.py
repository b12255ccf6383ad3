"""Predictions that can fail: how much perplexity will rise beyond the training length, written before any training.

Each predictor is one number that a formula gives before training (`PREDICTORS`). Which rise goes with that number was
observed on the models of our default study, each with several tails (`observations.json`, which
benchmarks/observations.py makes from results/): the prediction is the isotonic fit through these observations, in
log(1 + rise). An encoding that is among them is predicted from the others alone. The interval held the rise of nine
observations in ten whose encoding the fit had not seen; its width is in proportion to the predicted rise plus 2 %.

The observations are of models with 6 layers, trained on 64 tokens of Python's source. At another size or on another
text the order of the encodings is what the fit can foretell, and the interval is not meant to hold.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
from pydantic import ValidationError

import farfield
from farfield import zoo
from farfield.data import durable
from farfield.formula import Formula
from farfield.measure.statistics import area_under_curve, draws, rank_correlation
from farfield.measure.values import Count, Length, Name, Number, Value
from farfield.reading import parse_json, read_json
from farfield.study.entries import Study
from farfield.study.plan import Cell, Measurement, Plan
from farfield.table import Number as Digits
from farfield.table import Table
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.network import network_leak
from farfield.theory.fields.receptive import leak
from farfield.theory.verdict.convergence import check
from farfield.training.settings import Settings
from farfield.words import percent, short

FILE = "predictions.json"
MAIN = "network leak by head"
SMALL = float(np.log1p(0.02))  # a rise that counts as none
_CODES = {"converges": 0.0, "diverges": 1.0}
Heads = Sequence[Mapping[str, Any]]


# ------------------------------------------------------------------------------------- numbers known before training
def _network_leak(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    table = {name: [head[name] for head in heads] for name in formula.parameters}
    return float(network_leak(formula, train, test, layers=layers, heads=len(heads), parameters=table))


def _network_leak_by_head(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    leaks = {
        values: float(network_leak(formula, train, test, layers=layers, parameters=dict(values)))
        for values in {tuple(head.items()) for head in heads}
    }
    return float(np.mean([leaks[tuple(head.items())] for head in heads]))


def _leak(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    return float(np.mean([float(leak(formula, train, test, parameters=dict(head))) for head in heads]))


def _verdict(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    return float(np.mean([_CODES.get(check(formula.bind(head)).verdict, 0.5) for head in heads]))


def _bias(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    return float(np.mean([np.clip(_biases(formula, head, test)[-1], -50, 50) for head in heads]))


def _entropy(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> float:
    entropies = []
    for head in heads:
        logits = _biases(formula, head, test)
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        shares = shares[shares > 0]
        entropies.append(-float(shares @ np.log(shares)))
    return float(np.mean(entropies))


def _biases(formula: Formula, head: Mapping[str, Any], tokens: int) -> np.ndarray:
    """The bias of one head in a row of so many tokens, relative to that of the token itself."""
    distances = np.arange(tokens, dtype=float)
    values = formula.array(distances, {name: float(zoo.number(value)) for name, value in head.items()})
    row = np.broadcast_to(np.asarray(np.log(values) if formula.weight else values, dtype=float), distances.shape)
    return row - row[0]


# The number that each predictor goes by, and what it is.
PREDICTORS: dict[str, tuple[Callable[[Formula, Heads, int, int, int], float], str]] = {
    MAIN: (_network_leak_by_head, "each head followed alone through all layers, then the mean over heads"),
    "network leak": (_network_leak, "all heads of each layer together, through all layers"),
    "leak": (_leak, "the share of a row of one layer beyond the training length"),
    "verdict": (_verdict, "0 if the series converges, 1 if it diverges, the mean over heads"),
    "bias": (_bias, "the bias at the longest distance, the mean over heads"),
    "entropy": (_entropy, "the entropy of the longest row with equal logits, the mean over heads"),
}


def numbers(formula: Formula, heads: Heads, layers: int, train: int, test: int) -> dict[str, float]:
    """What each predictor goes by, for a network whose layers have these heads."""
    values = {}
    for name, (compute, _) in PREDICTORS.items():
        with suppress(UndecidedError, ValueError), answer_in_time():
            values[name] = compute(formula, heads, layers, train, test)
    return values


# ------------------------------------------------------------------------------------------------------------ the fit
@dataclass(frozen=True)
class CalibrationPoint:
    """A trained model of the default study with one tail: its predictors, and the rise that was seen, over seeds."""

    encoding: str
    tail: str
    rise: float
    numbers: Mapping[str, float]


@cache
def observations() -> tuple[CalibrationPoint, ...]:
    """What the fits go through."""
    rows = parse_json((files("farfield.study") / "observations.json").read_bytes())
    return tuple(CalibrationPoint(**row) for row in rows)


def _scale(name: str, values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Leaks as -log(1 - leak): how much is left within the training length differs by powers of ten."""
    x = np.asarray(values, dtype=float)
    return -np.log(np.clip(1 - x, 1e-12, None)) if "leak" in name else x


def isotonic(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rising function that is nearest to points, by least squares: its values at the different x, in order."""
    places, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    blocks: list[tuple[float, int, int]] = []  # mean, points, places
    for mean, count in zip(np.bincount(index, weights=y) / counts, counts, strict=True):
        blocks.append((float(mean), int(count), 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (a, n, i), (b, m, j) = blocks[-2:]
            blocks[-2:] = [((a * n + b * m) / (n + m), n + m, i + j)]
    return places, np.repeat([b[0] for b in blocks], [b[2] for b in blocks])


@cache
def _fit(name: str, without: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    points = [p for p in observations() if p.encoding != without and name in p.numbers]
    return isotonic(_scale(name, [p.numbers[name] for p in points]), np.log1p([p.rise for p in points]))


@cache
def _errors(name: str) -> tuple[float, float]:
    """Nine of ten errors lie between these multiples of (predicted + `SMALL`); the encoding itself is left out."""
    errors = []
    for point in observations():
        if name in point.numbers:
            expected = float(np.interp(_scale(name, [point.numbers[name]]), *_fit(name, point.encoding))[0])
            errors.append((np.log1p(point.rise) - expected) / (expected + SMALL))
    low, high = np.quantile(errors, (0.05, 0.95))
    return min(0.0, float(low)), max(0.0, float(high))


class Expected(Value):
    """What one predictor says of one encoding: its number, and the rise with its 90 % interval."""

    value: Number
    rise: Number
    low: Number
    high: Number


def expected(name: str, value: float, without: str | None) -> Expected:
    """The rise that goes with the number of a predictor, from the observations of other encodings than `without`."""
    center = float(np.interp(_scale(name, [value]), *_fit(name, without))[0])
    low, high = (max(0.0, center + error * (center + SMALL)) for error in _errors(name))
    rounded = (round(float(x), 6) for x in (value, *np.expm1([center, low, high])))
    return Expected(**dict(zip(("value", "rise", "low", "high"), rounded, strict=True)))


# ----------------------------------------------------------------------------------------------------- a file of them
class Prediction(Value):
    """What is predicted of one encoding, by every predictor; empty if its bias is not known before training."""

    encoding: Name
    by: dict[Name, Expected]

    @property
    def main(self) -> Expected | None:
        return self.by.get(MAIN)


class Predictions(Value):
    """What will be trained, and what is predicted of it."""

    version: Name
    observations: Name
    preset: Name
    corpus: Name
    settings: dict[str, Any]
    measurement: Measurement
    training_length: Length
    test_length: Length
    predictions: tuple[Prediction, ...]
    digest: Name = ""

    def checksum(self) -> str:
        """A digest of everything but itself."""
        text = json.dumps(self.model_dump(mode="json", exclude={"digest"}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def of(self, encoding: str) -> Prediction | None:
        return next((p for p in self.predictions if p.encoding == encoding), None)

    def save(self, path: Path) -> None:
        durable.replace_file(path, self.model_dump_json(indent=1).encode())

    def plan(self, seeds: int, first_seed: int = 0) -> Plan:
        """What must be trained to see whether the predictions hold."""
        cells = []
        for seed in range(first_seed, first_seed + seeds):
            for one in self.predictions:
                settings = {**self.settings, "encoding": one.encoding, "seed": seed}
                about = {"corpus": self.corpus, "encoding": one.encoding, "seed": seed}
                cells.append(Cell.model_validate({**about, "settings": settings, "measurement": self.measurement}))
        return Plan(preset=self.preset, cells=tuple(cells))


def predict(plan: Plan) -> Predictions:
    """What is predicted of every encoding of a plan, on its first text."""
    cells = {cell.encoding: cell for cell in reversed(plan.cells) if cell.corpus == plan.corpora[0]}
    first = plan.cells[0]
    train, test = first.settings.length, first.measurement.lengths(first.settings.length)[-1]
    listed = [_predict(cells[name].settings, train, test) for name in plan.encodings]
    fields = first.settings.model_dump(mode="json", exclude={"encoding", "seed"})
    result = Predictions(
        version=farfield.__version__,
        observations=hashlib.sha256((files("farfield.study") / "observations.json").read_bytes()).hexdigest(),
        preset=plan.preset,
        corpus=plan.corpora[0],
        settings=fields,
        measurement=first.measurement,
        training_length=train,
        test_length=test,
        predictions=tuple(listed),
    )
    return result.model_copy(update={"digest": result.checksum()})


def _predict(settings: Settings, train: int, test: int) -> Prediction:
    encoding = zoo.find(settings.encoding)
    heads = encoding.heads(settings.heads, cast(Any, settings.parameters), width=settings.width // settings.heads)
    formula = encoding.formula
    if not _known(formula, heads):
        return Prediction(encoding=settings.encoding, by={})
    values = numbers(formula, heads, settings.layers, train, test)
    name = _observed_as(formula, heads, settings, test)
    return Prediction(encoding=settings.encoding, by={key: expected(key, x, name) for key, x in values.items()})


def _known(formula: Formula | None, heads: Heads) -> TypeGuard[Formula]:
    """Whether the bias has a formula whose parameters all have values before training."""
    return formula is not None and not any(
        isinstance(head.get(p, {}), Mapping) for head in heads for p in formula.parameters
    )


def _observed_as(formula: Formula, heads: Heads, settings: Settings, test: int) -> str | None:
    """The encoding of the observations that has the same biases, however it is spelled."""
    rows = [_biases(formula, head, test) for head in heads]
    for name in dict.fromkeys(point.encoding for point in observations()):
        other = zoo.find(name)
        others = other.heads(settings.heads, width=settings.width // settings.heads)
        if _known(other.formula, others) and all(
            np.allclose(row, _biases(other.formula, head, test), rtol=1e-9)
            for row, head in zip(rows, others, strict=True)
        ):
            return name
    return None


def read_predictions(path: Path) -> Predictions:
    """Predictions from a file; ValueError if they were changed after they were written."""
    try:
        result = Predictions.model_validate(read_json(path))
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ValueError(f"{str(path)!r} holds no predictions ({reason}): write them with farfield predict.") from None
    if result.digest != result.checksum():
        raise ValueError(f"{str(path)!r} was changed after it was written: its digest does not match.")
    return result


# ------------------------------------------------------------------------------------------------- whether they held
@dataclass(frozen=True)
class Outcome:
    """One encoding: what was predicted of it, and the rise that was seen, with its error and that of each seed."""

    encoding: str
    by: Mapping[str, Expected]
    rise: float
    error: float | None
    seeds: tuple[float, ...]

    def held(self, name: str = MAIN) -> bool:
        """Whether the rise lies in the interval, or within two standard errors of it."""
        slack = 2 * (self.error or 0.0)
        return self.by[name].low - slack <= self.rise <= self.by[name].high + slack


@dataclass(frozen=True)
class PredictorScore:
    """How well one predictor did over encodings; each with its 95 % interval by bootstrap over encodings.

    Attributes:
        r2: The share of the variance of log(1 + rise) that the predictions explain; negative if worse than the mean.
        rank: The rank correlation with the rise.
        auc: How often an encoding that rises by more than 2 % has a larger number than one that does not.
        covered: The share of outcomes inside of their 90 % interval.
    """

    predictor: str
    points: Count
    r2: tuple[float, float, float]
    rank: tuple[float, float, float]
    auc: tuple[float, float, float]
    covered: tuple[float, float, float]


def outcomes(predictions: Predictions, study: Study) -> list[Outcome]:
    """What was predicted of each encoding, beside what its models did."""
    entries = (study.entry(predictions.corpus, prediction.encoding) for prediction in predictions.predictions)
    return [
        Outcome(entry.encoding, prediction.by, entry.rise, entry.rise_error, tuple(r.rise for r in entry.records))
        for prediction, entry in zip(predictions.predictions, entries, strict=True)
        if entry is not None and prediction.by
    ]


def outcome_table(listed: Sequence[Outcome]) -> Table:
    """Each prediction beside its outcome, the largest rise first."""
    rows = []
    for outcome in sorted(listed, key=lambda outcome: -outcome.rise):
        main = outcome.by[MAIN]
        interval = f"{percent(main.rise)} ({percent(main.low)} to {percent(main.high)})"
        seen, held = percent(outcome.rise, outcome.error), "held" if outcome.held() else "failed"
        rows.append((short(outcome.encoding), Digits(main.value, digits=4), interval, seen, held))
    columns = ("encoding", MAIN, "predicted rise", "observed rise", "prediction")
    return Table(columns, rows, "Predictions written before training, and what came out", left=("encoding",))


def score_table(listed: Sequence[Outcome]) -> Table:
    """How well each predictor did."""
    scores = [result for name in PREDICTORS if (result := score(listed, name)) is not None]
    rows = [
        (s.predictor, *(f"{v:.2f} ({low:.2f} to {high:.2f})" for v, low, high in (s.r2, s.rank, s.auc, s.covered)))
        for s in scores
    ]
    columns = ("predictor", "R2", "rank correlation", "AUC, rise > 2 %", "inside its 90 % interval")
    return Table(columns, rows, f"Over {len(listed)} encodings", left=("predictor",))


def score(outcomes: Sequence[Outcome], name: str) -> PredictorScore | None:
    """The score of one predictor; None with fewer than four encodings."""
    points = [outcome for outcome in outcomes if name in outcome.by]
    if len(points) < 4:
        return None
    value = np.array([p.by[name].value for p in points])
    guess = np.log1p([p.by[name].rise for p in points])
    seen = np.log1p([p.rise for p in points])
    inside = np.array([p.held(name) for p in points], dtype=float)

    def measures(pick: np.ndarray) -> tuple[float, ...]:
        spread = seen[pick] - seen[pick].mean()
        total = float(spread @ spread)
        error = seen[pick] - guess[pick]
        rank = rank_correlation(value[pick], seen[pick])
        return (
            1 - float(error @ error) / total if total > 0 else np.nan,
            np.nan if rank is None else rank,
            area_under_curve(value[pick], seen[pick] > SMALL),
            float(inside[pick].mean()),
        )

    drawn = np.array([measures(pick) for pick in draws(len(points))])
    with warnings.catch_warnings(action="ignore"):  # of a measure that no draw has
        limits = np.nanquantile(drawn, (0.025, 0.975), axis=0).T
    rows = [(v, float(a), float(b)) for v, (a, b) in zip(measures(np.arange(len(points))), limits, strict=True)]
    return PredictorScore(name, len(points), *rows)
