"""The samples of a run, and which process takes which of them.

A sample is a pure function of the seed and its number: nothing has to be remembered for a resumed run to see exactly
what an undisturbed one sees, and how many processes share the work does not matter.
"""

from __future__ import annotations

import functools
import hashlib
import itertools

import numpy as np

from farfield.data.corpus import CorpusError
from farfield.data.tokens import Tokens


class Samples:
    """Sample number s of a run: `length` tokens, and the token that follows each, chosen by the seed alone.

    Every epoch cuts the text at another phase into pieces that do not overlap, and takes them in another order.
    """

    def __init__(self, tokens: Tokens, length: int, seed: int, what: str = "train") -> None:
        if len(tokens) < length + 1:
            raise CorpusError(
                f"The {what} split has {len(tokens)} tokens; a length of {length} needs at least {length + 1}."
            )
        self.tokens, self.length, self.seed = tokens, length, seed
        self.pieces = max(1, (len(tokens) - length) // length)
        self._epoch = functools.lru_cache(maxsize=2)(self._draw_epoch)

    def _draw_epoch(self, epoch: int) -> tuple[int, np.ndarray]:
        draw = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        room = len(self.tokens) - 1 - self.pieces * self.length
        return int(draw.integers(0, min(room, self.length - 1) + 1)), draw.permutation(self.pieces)

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        epoch, place = divmod(number, self.pieces)
        phase, order = self._epoch(epoch)
        start = phase + int(order[place]) * self.length
        window = self.tokens.ids[start : start + self.length + 1].astype(np.int64)
        return {"input_ids": window[:-1], "shift_labels": window[1:], "sample_seeds": _seed_of(self.seed, number)}


def _seed_of(seed: int, number: int) -> np.ndarray:
    """What the dropout of one sample is drawn from: a function of the run's seed and the sample's number."""
    mixed = hashlib.sha256(f"dropout {seed} {number}".encode()).digest()
    return np.array(int.from_bytes(mixed[:8], "little") >> 2, dtype=np.int64)


def micro_batches(batch: int, most: int | None, processes: int, rank: int) -> list[range]:
    """Which samples of an update, counted from its first, a process takes, as the micro-batches that it reads at once.

    Every process takes as many micro-batches as any other, of at most `most` samples, because they meet after each;
    where the batch does not come out even, some are smaller than others, and a few may be empty.
    """
    if batch < processes:
        raise ValueError(f"A batch of {batch} samples cannot be shared by {processes} processes.")
    largest = -(-batch // processes)
    count = -(-largest // min(largest, most or largest))
    first, last = batch * rank // processes, batch * (rank + 1) // processes
    cuts = [first + (last - first) * part // count for part in range(count + 1)]
    return [range(start, stop) for start, stop in itertools.pairwise(cuts)]
