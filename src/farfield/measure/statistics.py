"""Numbers with their errors: bootstrap over blocks of text, quantiles of counts, rank correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

DRAWS = 1000  # of the bootstrap
BLOCKS = 64  # of text, for comparisons of two measurements of the same tokens


def block_sums(losses: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of the losses of each block of `size` tokens, and the number of tokens in each."""
    starts = np.arange(0, len(losses), size)
    return np.add.reduceat(losses, starts), np.diff(np.append(starts, len(losses)))


def draws(blocks: int, seed: int = 0) -> np.ndarray:
    """Which blocks each draw of the bootstrap takes, (draws, blocks): the same ones for every measurement."""
    return np.random.default_rng(seed).integers(blocks, size=(DRAWS, blocks))


def perplexity_error(losses: np.ndarray, size: int) -> float | None:
    """The standard error of exp(mean loss), by bootstrap over blocks of `size` tokens; None if there is only one."""
    sums, counts = block_sums(losses, size)
    if len(sums) < 2:
        return None
    pick = draws(len(sums))
    return float(np.exp(sums[pick].sum(1) / counts[pick].sum(1)).std(ddof=1))


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
