"""Flush denormal numbers to zero while a block runs, in every thread that computes, and leave the process as it was.

A weight like exp(-100) is a denormal number in float32, on which some processors take a hundred times as long; it made
the backward pass of attention 3 times slower. torch sets the switch of the calling thread only. The threads of the
OpenMP pool are told one by one (threads.py); where they cannot be reached, only the calling thread and threads that it
starts later are switched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from farfield.nn.attention.flash.threads import in_every_thread


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
