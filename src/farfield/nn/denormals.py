"""Flush denormal numbers to zero while a block runs, in every thread that computes, and leave the process as it was.

A weight like exp(-100) is a denormal number in float32, on which some processors take a hundred times as long; it made
the backward pass of attention 3 times slower. torch sets the switch of the calling thread only. The threads of the
OpenMP pool are told one by one, through the runtime that torch itself uses; where that runtime cannot be reached, only
the calling thread and threads that it starts later are switched.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import torch


@contextlib.contextmanager
def flush_denormals() -> Iterator[bool]:
    """Flush denormals inside the block; gives False where the processor cannot."""
    before = is_flushing()
    able = torch.set_flush_denormal(True)
    if able:
        in_every_thread(lambda: torch.set_flush_denormal(True))
    try:
        yield able
    finally:
        if able:
            in_every_thread(lambda: torch.set_flush_denormal(before))
            torch.set_flush_denormal(before)


def is_flushing() -> bool:
    """Whether the calling thread takes denormals for zero."""
    return float(torch.tensor(2.0**-130) * 2.0**20) == 0.0


def in_every_thread(act: Callable[[], Any]) -> int:
    """Call a function once in each thread of the OpenMP pool; how many threads called it (0: out of reach)."""
    runtime = _openmp()
    if runtime is None:
        return 0
    calls: list[None] = []

    def body(_: int | None) -> None:
        act()
        calls.append(None)

    runtime.GOMP_parallel(_Body(body), None, torch.get_num_threads(), 0)
    return len(calls)


_Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@functools.cache
def _openmp() -> ctypes.CDLL | None:
    """The GNU OpenMP runtime in torch's own folder, if torch came with it."""
    for file in (pathlib.Path(torch.__file__).parent / "lib").glob("libgomp*"):
        runtime = ctypes.CDLL(str(file))
        runtime.GOMP_parallel.argtypes = [_Body, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        runtime.GOMP_parallel.restype = None
        return runtime
    return None
