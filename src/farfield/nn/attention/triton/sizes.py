"""The sizes of the kernels' tiles: what fits registers and shared memory without spilling (see `resources.py`)."""

from __future__ import annotations

from typing import NamedTuple

import torch

ON_AMD = torch.version.hip is not None
SHIFT_ROWS = 16  # of the kernel that prepares the backward pass


class Tiles(NamedTuple):
    """How many queries and keys a tile has, and how many warps and pipeline stages work on it."""

    rows: int
    keys: int
    warps: int
    stages: int

    def options(self) -> dict[str, int]:
        """The tile as a kernel is told of it."""
        return {"BM": self.rows, "BN": self.keys, "num_warps": self.warps, "num_stages": self.stages}


def padded(width: int) -> int:
    """The width of a head up to a power of two, at least 16: what a matrix product takes."""
    return max(16, 1 << (width - 1).bit_length())


def forward_tiles(width: int, dtype: torch.dtype, amd: bool = ON_AMD) -> Tiles:
    """For the forward kernel; `width` is that of a head, padded."""
    half = dtype != torch.float32
    if width > 128:
        return _for(amd, Tiles(64, 32, 8, 1) if half else Tiles(32, 16, 8, 1))
    if half:
        return _for(amd, Tiles(64, 64, 8, 2))
    return _for(amd, Tiles(16, 32, 8, 1) if width > 64 else Tiles(32, 32, 4, 1))


def keys_tiles(width: int, dtype: torch.dtype, amd: bool = ON_AMD) -> Tiles:
    """For the gradients of keys and values."""
    half = dtype != torch.float32
    if width > 128:
        return _for(amd, Tiles(32, 32, 8, 1) if half else Tiles(16, 16, 4, 1))
    if half:
        return _for(amd, Tiles(32, 32, 8, 1) if width > 64 else Tiles(64, 64, 8, 1))
    return _for(amd, Tiles(32, 16, 8 if width > 64 else 4, 1))


def queries_tiles(width: int, dtype: torch.dtype, learned: bool = False, amd: bool = ON_AMD) -> Tiles:
    """For the gradients of queries; small and square with a learned bias, because diagonals are summed.

    Never more rows than in the forward kernel, which notes for each block of its rows which keys it left out.
    """
    half = dtype != torch.float32
    if width > 128 or (learned and not half):
        return _for(amd, Tiles(32, 32, 8, 1) if half and not learned else Tiles(16, 16, 8 if width == 128 else 4, 1))
    if half and not learned and width <= 64:
        return _for(amd, Tiles(64, 64, 8, 1))
    if not half and width > 64:
        return _for(amd, Tiles(16, 32, 4, 1))
    return _for(amd, Tiles(32, 32, 8, 1) if width > 64 or not learned else Tiles(32, 32, 4, 1))


def decode_tiles(rows: int, width: int, dtype: torch.dtype) -> Tiles:
    """For decoding; `rows` are the queries of all heads that share a key head."""
    keys = 32 if width > 128 or dtype == torch.float32 else 64
    return Tiles(max(16, 1 << (rows - 1).bit_length()), keys, 4, 1 if dtype == torch.float32 else 2)


def _for(amd: bool, tiles: Tiles) -> Tiles:
    """A warp has 64 threads on an AMD GPU: four of them leave each thread twice the registers that eight would."""
    return tiles._replace(warps=min(tiles.warps, 4)) if amd else tiles
