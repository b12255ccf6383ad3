"""Numbers with their errors: bootstrap over blocks of text, quantiles of counts, rank correlation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from flint import arb

DRAWS = 1000  # of the bootstrap
BLOCKS = 40  # of text that a bootstrap should have at least


def blocks_of(values: np.ndarray) -> np.ndarray:
    """The sums of values by block of text: by segment (the rows), or by parts of them where there are few segments."""
    segments, tokens = values.shape
    parts = min(tokens, -(-BLOCKS // segments))
    starts = np.arange(parts) * tokens // parts
    return np.add.reduceat(values, starts, axis=1).ravel()


def draws(blocks: int, seed: int = 0) -> np.ndarray:
    """Which blocks each draw of the bootstrap takes, (draws, blocks): the same ones for every measurement."""
    return np.random.default_rng(seed).integers(blocks, size=(DRAWS, blocks))


def ratio_error(sums: np.ndarray, counts: np.ndarray, of: Callable[[np.ndarray], np.ndarray]) -> float | None:
    """The standard error of `of(sum / count)`, by bootstrap over blocks; None if there is only one.

    Args:
        sums: Of each block, (..., blocks).
        counts: How many values each has, (blocks,) or as `sums`.
        of: What is asked of the means (..., draws), such as `np.exp`.
    """
    if sums.shape[-1] < 2:
        return None
    pick = draws(sums.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        return float(of(sums[..., pick].sum(-1) / counts[..., pick].sum(-1)).std(ddof=1))


def relative_change(now: Sequence[float], before: Sequence[float], tokens: float) -> tuple[float, float | None]:
    """The relative change of perplexity between two measurements of the same text, and its standard error.

    Args:
        now: Sums of losses by block of text.
        before: The same of the measurement that it is compared with. Tokens that are hard in both cancel, so the error
            is far smaller than those of the two perplexities.
        tokens: Of all blocks together.
    """
    difference = np.asarray(now, dtype=float) - np.asarray(before, dtype=float)
    counts = np.full(len(difference), tokens / len(difference))
    change = float(np.expm1(difference.sum() / tokens))
    return change, ratio_error(difference, counts, np.exp)


def quantiles(counts: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """For counts[..., j] of the value j, the smallest value that at least a share of all does not exceed."""
    running = counts.cumsum(-1)
    total = running[..., -1:]
    return np.stack([(running < np.ceil(share * total)).sum(-1) for share in shares], -1)


@cache
def share_interval(right: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share (Clopper and Pearson): it covers the true one in at least 95 % of all samples."""

    def lower(count: int) -> float:
        low, high = 0.0, 1.0
        for _ in range(50 if count else 0):
            middle = (low + high) / 2
            as_many = arb(middle).beta_lower(count, trials - count + 1, regularized=True)  # P(at least count are right)
            low, high = (middle, high) if float(as_many) < 0.025 else (low, middle)
        return low

    return lower(right), 1 - lower(trials - right)


def two_levels(values: Sequence[float] | np.ndarray, errors: Sequence[float | None]) -> tuple[float, float | None]:
    """The mean over seeds and its standard error, from what the text leaves open and from how much seeds differ.

    All seeds are measured on the same text, so its error does not shrink with their number; that of the seeds does. Of
    one seed only the first is known.

    Args:
        values: One for each seed.
        errors: What the text leaves open of each; None where it is not known.
    """
    mean = float(np.mean(values))
    if any(error is None for error in errors):
        return mean, None
    text = float(np.mean([error for error in errors if error is not None]))
    seeds = float(np.var(values, ddof=1)) / len(values) if len(values) > 1 else 0.0
    return mean, float(np.hypot(text, np.sqrt(seeds)))


def ranks(values: Sequence[float] | np.ndarray) -> np.ndarray:
    """The ranks of values from 1, equal values sharing the mean of theirs; infinity is the largest."""
    _, place, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[place]


def rank_correlation(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> float | None:
    """Spearman's rank correlation; None for fewer than three pairs, or if one side is the same everywhere."""
    if len(first) < 3:
        return None
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return None if size == 0 else float(a @ b / size)


def cluster_interval(
    first: Sequence[float], second: Sequence[float], *factors: Sequence[str], draws: int = DRAWS
) -> tuple[float, float] | None:
    """The 95 % interval of a rank correlation over points that are not independent, by bootstrap over clusters.

    Args:
        first: One side of the points.
        second: The other.
        factors: For each point the cluster that it belongs to, by one factor after another (encodings, texts). Every
            draw takes the clusters of each factor with replacement, and with them all of their points: models of one
            encoding are one observation, however many seeds they have.
        draws: Of the bootstrap.

    Returns:
        The interval; None where the clusters are too few, less than four by the first factor.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    levels = [np.unique(np.asarray(factor), return_inverse=True)[1] for factor in factors]
    if not len(x) or levels[0].max() < 3:
        return None
    random = np.random.default_rng(0)
    values = []
    for _ in range(draws):
        times = np.ones(len(x), dtype=int)
        for level in levels:
            count = level.max() + 1
            if count > 1:
                times *= np.bincount(random.integers(count, size=count), minlength=count)[level]
        drawn = np.repeat(np.arange(len(x)), times)
        value = rank_correlation(x[drawn], y[drawn]) if len(drawn) else None
        if value is not None:
            values.append(value)
    if len(values) < draws // 2:
        return None
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)


def area_under_curve(values: Sequence[float] | np.ndarray, positive: Sequence[bool] | np.ndarray) -> float:
    """How often a positive case has the larger of two values, ties counting half; NaN if all cases are alike."""
    chosen = np.asarray(positive, dtype=bool)
    count, others = int(chosen.sum()), int((~chosen).sum())
    if not count or not others:
        return float("nan")
    return float((ranks(values)[chosen].sum() - count * (count + 1) / 2) / (count * others))
