"""Numbers with their errors: bootstrap over chunks, paired comparison, quantiles of counts, rank correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DRAWS = 1000  # of the bootstrap
BLOCKS = 64  # of text, for comparisons of two measurements of the same tokens


def block_sums(losses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the losses of each chunk of `size` tokens, and the number of tokens in each."""
    starts = np.arange(0, len(losses), size)
    return np.add.reduceat(losses, starts), np.diff(np.append(starts, len(losses)))


def perplexity_error(losses: np.ndarray, size: int, seed: int = 0) -> float | None:
    """The standard error of exp(mean loss), by bootstrap over chunks of `size` tokens; None if there is only one."""
    sums, counts = block_sums(losses, size)
    if len(sums) < 2:
        return None
    pick = np.random.default_rng(seed).integers(len(sums), size=(DRAWS, len(sums)))
    return float(np.exp(sums[pick].sum(1) / counts[pick].sum(1)).std(ddof=1))


def change_error(losses: Sequence[float], before: Sequence[float], tokens: int, seed: int = 0) -> float | None:
    """The standard error of the relative change of perplexity, by bootstrap over the same blocks of text in both.

    losses, before: sums of losses by block (`BLOCKS` of them). Tokens that are hard by both measurements cancel, so
    this is far smaller than the two standard errors suggest.
    """
    now, then = np.asarray(losses), np.asarray(before)
    if len(now) < 2 or len(now) != len(then):
        return None
    pick = np.random.default_rng(seed).integers(len(now), size=(DRAWS, len(now)))
    return float(np.exp((now[pick] - then[pick]).sum(1) / tokens).std(ddof=1))


def quantiles(counts: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """For counts[..., j] of the value j, the smallest value that at least a share of all does not exceed."""
    running = counts.cumsum(-1)
    total = running[..., -1:]
    return np.stack([(running < np.ceil(share * total)).sum(-1) for share in shares], -1)


def ranks(values: Sequence[float]) -> np.ndarray:
    """The ranks of values from 1, equal values sharing the mean of theirs; infinity is the largest."""
    x = np.asarray(values, dtype=float)
    below = (x[:, None] > x[None]).sum(1)
    equal = (x[:, None] == x[None]).sum(1)
    return below + (equal + 1) / 2


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None for fewer than three pairs, or if one side is the same everywhere."""
    if len(first) < 3:
        return None
    a, b = ranks(first), ranks(second)
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return None if size == 0 else float(a @ b / size)
