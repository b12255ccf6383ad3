"""How the work of one attention call is cut, and the one vector that stands for every mask.

A work item holds the samples whose real tokens lie in the same place (padding is sliced away, never masked) and
neighbouring heads with the same window and, for grouped queries, the same key head. Its queries go in chunks, each with
only the keys that it may see.

Shapes: B samples, H query heads, N keys, L = N + LARGEST_CHUNK.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from torch import Tensor

from farfield.nn.attention.flash.skip import BiasSums

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

LARGEST_CHUNK = 768  # rows; from here on the CPU kernel works in its largest blocks
FAR = 4096  # keys in sight from which these blocks save more than the keys that a large chunk wastes
NEAR = 2048  # keys in sight up to which the smallest chunk of full speed is best


@dataclass(frozen=True)
class WorkItem:
    """Work that one kernel call can do: samples and heads alike in padding, window and key head."""

    samples: slice
    heads: slice
    key_heads: slice
    queries: slice  # the real ones
    real: slice  # the real keys; the last query stands at the last of them
    window: int
    sight: int  # how many keys a row touches, at most, with ordinary inputs
    chunk: int
    skips: bool

    @property
    def keys(self) -> int:
        return self.real.stop - self.real.start

    @property
    def first(self) -> int:
        """The position of the first query among the real keys."""
        return self.keys - (self.queries.stop - self.queries.start)

    @property
    def size(self) -> float:
        """About how many logits there are to compute: decides who does the item, never what is computed."""
        samples, heads = self.samples.stop - self.samples.start, self.heads.stop - self.heads.start
        growing = max(0, min(self.sight, self.keys) - self.first)  # rows that see all that came before them
        rows = self.keys - self.first
        seen = growing * (self.first + growing / 2) + (rows - growing) * self.sight
        # A chunk touches keys after its first row besides, and costs a call: together about its own length a row.
        return samples * heads * (seen + rows * self.chunk)

    def at_queries(self, x: Tensor) -> Tensor:
        """The part of a tensor (B, H, M, ...) that belongs to this item."""
        return x[self.samples, self.heads, self.queries]

    def at_keys(self, x: Tensor) -> Tensor:
        """The part of a tensor (B, Hk, N, D) that belongs to this item, with its own number of heads."""
        return x[self.samples, self.key_heads, self.real]

    def chunks(self) -> Iterator[tuple[int, int, int]]:
        """Positions a..b-1 of the queries of each chunk, and the first key that the window lets them see."""
        a = self.first
        while a < self.keys:
            large = min(a, self.window) >= FAR and not self.skips
            b = min(self.keys, a + (LARGEST_CHUNK if large else self.chunk))
            yield a, b, max(0, a - self.window + 1)
            a = b


@dataclass(frozen=True)
class Span:
    """Neighbouring samples whose real tokens are the keys `start` to `end` (excluded)."""

    samples: slice
    start: int
    end: int


def spans_of(mask: Bool[Tensor, "B N"] | None, samples: int, keys: int) -> list[Span]:
    """Where the real tokens of each sample lie, neighbours alike taken together."""
    if mask is None:
        return [Span(slice(0, samples), 0, keys)]
    ends = zip(mask.int().argmax(-1).tolist(), mask.sum(-1).tolist(), strict=True)
    spans, b = [], 0
    for (start, count), alike in groupby(ends):
        size = len(list(alike))
        spans.append(Span(slice(b, b + size), start, start + count))
        b += size
    return spans


def plan(
    spans: list[Span], queries: int, keys: int, windows: list[int], key_heads: int, sums: BiasSums | None
) -> list[WorkItem]:
    """Cut the work into items; `windows` holds one number of tokens for each head, at most `keys`."""
    group = len(windows) // key_heads
    usual = [keys] * len(windows) if sums is None else sums.usual_window(queries)
    # Within a window nothing is skipped: which keys a row touches must not depend on keys outside its window.
    skips = [u < keys and w == keys for u, w in zip(usual, windows, strict=True)]
    runs = [0]
    for h in range(1, len(windows)):
        alike = windows[h] == windows[h - 1] and skips[h] == skips[h - 1] and (group == 1 or h % group)
        if not alike or (skips[h] and max(usual[h], usual[h - 1]) > 1.25 * min(usual[h], usual[h - 1])):
            runs.append(h)
    items = []
    for span in spans:
        first = max(span.start, keys - queries)  # where the first real query stands
        if first >= span.end:
            continue
        for h, stop in zip(runs, [*runs[1:], len(windows)], strict=True):
            # What is skipped in one sample must not depend on another sample.
            alone = [slice(b, b + 1) for b in range(span.samples.start, span.samples.stop)]
            for samples in alone if skips[h] else [span.samples]:
                items.append(
                    WorkItem(
                        samples=samples,
                        heads=slice(h, stop),
                        key_heads=slice(h, stop) if group == 1 else slice(h // group, h // group + 1),
                        queries=slice(first - keys + queries, span.end - keys + queries),
                        real=slice(span.start, span.end),
                        window=windows[h],
                        sight=min(windows[h], usual[h]),
                        chunk=192 if min(windows[h], keys) <= NEAR and not skips[h] else 256,
                        skips=skips[h],
                    )
                )
    return items


def shares(items: list[WorkItem], count: int) -> list[list[tuple[int, WorkItem]]]:
    """Cut items by heads, into about `count` shares or as many as there are, each item with its number.

    No two shares have a head, a key head or a bias in common, and a share keeps the order of its items: what is summed
    over samples or over grouped queries is summed in one order, whatever the number of shares. Heads that skip keys
    together stay together, because they choose together where to begin.
    """
    together: dict[int, list[tuple[int, WorkItem]]] = {}
    for numbered in enumerate(items):
        together.setdefault(numbered[1].key_heads.start, []).append(numbered)
    most = sum(item.size for item in items) / count
    parts = []
    for share in together.values():
        heads = share[0][1].heads
        cut = all(item.heads == item.key_heads and not item.skips for _, item in share)  # not grouped queries
        step = heads.stop - heads.start
        if cut:
            each = sum(item.size for _, item in share) / step
            step = max(1, min(step, int(most / each)))
        for h in range(heads.start, heads.stop, step):
            part = slice(h, min(h + step, heads.stop))
            parts.append([(i, replace(item, heads=part, key_heads=part) if cut else item) for i, item in share])
    return parts


def line_of(bias: Float[Tensor, "H N"], windows: list[int]) -> Float[Tensor, "H L"]:
    """The bias from the farthest distance to the token itself, and minus infinity for the future.

    `line[:, N - 1 - t]` is the bias at distance t, minus infinity from the head's window on.
    """
    heads, n = bias.shape
    line = bias.new_full((heads, n + LARGEST_CHUNK), float("-inf"))
    line[:, :n] = bias.flip(-1)
    for h, window in enumerate(windows):
        line[h, : n - window] = float("-inf")
    return line


def mask_of(line: Float[Tensor, "H L"], heads: slice, a: int, b: int, s: int, e: int) -> Tensor:
    """The mask of the queries at b-1, ..., a (in this order) and the keys s..e-1: a view of `line`, no copy."""
    n = line.shape[1] - LARGEST_CHUNK
    size = (1, heads.stop - heads.start, b - a, e - s)
    return line.as_strided(size, (0, line.stride(0), 1, 1), heads.start * line.stride(0) + n - b + s)
