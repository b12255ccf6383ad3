"""The sizes of the kernels' tiles: what fits registers and shared memory without spilling (see `resources.py`)."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Tiles(NamedTuple):
    """How many queries and keys a tile has, and how many warps and pipeline stages work on it."""

    rows: int
    keys: int
    warps: int
    stages: int


def padded(width: int) -> int:
    """The width of a head up to a power of two, at least 16: what a matrix product takes."""
    return max(16, 1 << (width - 1).bit_length())


def forward_tiles(width: int, dtype: torch.dtype) -> Tiles:
    """For the forward kernel; `width` is that of a head, padded."""
    wide, half = width > 64, dtype != torch.float32
    if width > 128:
        return Tiles(64, 32, 8, 1) if half else Tiles(32, 16, 8, 1)
    if half:
        return Tiles(64, 64, 8, 2)
    return Tiles(32, 32, 8, 1) if wide else Tiles(32, 32, 4, 1)


def backward_tiles(width: int, dtype: torch.dtype, learned: bool = False) -> Tiles:
    """For the backward kernels; small and square with a learned bias, because diagonals are summed."""
    half = dtype != torch.float32 and not learned
    if width > 128:
        return Tiles(32, 32, 8, 1) if half else Tiles(16, 16, 4, 1)
    if half:
        return Tiles(32, 32, 8, 1) if width > 64 else Tiles(64, 64, 8, 1)
    if learned and dtype == torch.float32:
        return Tiles(16, 16, 4, 1)
    return Tiles(32, 32, 8, 1) if width > 64 or not learned else Tiles(32, 32, 4, 1)


def decode_tiles(rows: int, width: int, dtype: torch.dtype) -> Tiles:
    """For decoding; `rows` are the queries of all heads that share a key head."""
    keys = 32 if width > 128 or dtype == torch.float32 else 64
    return Tiles(max(16, 1 << (rows - 1).bit_length()), keys, 4, 1 if dtype == torch.float32 else 2)
