"""Independent tasks, shared out among the threads that torch itself computes with.

Many calls of attention are small: a head that reaches as far as no other head has its own chain of kernel calls, each
too short for two threads. Such chains do not depend on each other, so each goes to one thread as a whole. The threads
are those of torch's OpenMP pool, entered through the runtime that torch came with. Inside it every operation knows that
its neighbours are busy and computes in its own thread, as with one thread, to the bit. No setting of the process is
changed, no thread is started or left behind. Where the runtime cannot be reached, tasks run one after the other.

What it gains, with two threads at 9,216 tokens (docs/attention.md): ALiBi with skipping takes 0.42 instead of 0.56
times the bias-free kernel, a learned bias with its backward 1.19 instead of 1.86 times, and 0.34 instead of 0.73 with
skipping. `share_threads(False)`, or FARFIELD_SHARE_THREADS=0 in the environment, turns it off.
"""

from __future__ import annotations

import ctypes
import functools
import heapq
import os
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

LEAST = 1 << 21  # logits; with less to do, sharing costs more than it saves
UNFAIR = 1.25  # times the fair share of a thread: longer than this, and the other threads wait too long


_enabled = os.environ.get("FARFIELD_SHARE_THREADS", "1") != "0"


def share_threads(enabled: bool) -> bool:
    """Turn the sharing of independent kernel calls among torch's threads on or off; no result depends on it.

    Args:
        enabled: False runs every call after the other, each with all threads of torch.

    Returns:
        Whether it was on before.
    """
    global _enabled
    before, _enabled = _enabled, bool(enabled)
    return before


class ThreadTask(NamedTuple):
    """Something to do, and about how much it is (logits to compute)."""

    size: float
    act: Callable[[], Any]


def threads_for(size: float) -> int:
    """How many threads would share work of this size; 1 where it is too little or cannot be shared."""
    if (
        not _enabled or size < LEAST or _openmp() is None or torch._C._len_torch_dispatch_stack()
    ):  # a mode watches one thread alone
        return 1
    return torch.get_num_threads()


def share(tasks: list[ThreadTask]) -> None:
    """Run every task once; tasks must not touch the same memory.

    As long as some thread would have far more than a fair share, the largest task is run by all threads together; then
    every thread takes the largest task that is left. The first error ends the work and is raised here.
    """
    left = sorted(tasks, key=lambda task: task.size)
    threads = threads_for(sum(task.size for task in left))
    while left and (threads == 1 or _longest(left, threads) * threads > UNFAIR * sum(task.size for task in left)):
        left.pop().act()
    if not left:
        return
    inference, errors = torch.is_inference_mode_enabled(), list[BaseException]()
    waiting = reversed(left)  # one iterator for all threads: each task is taken once

    def work() -> None:
        try:  # the modes belong to a thread; tasks run inside an autograd function, which records nothing
            with torch.inference_mode(inference), torch.no_grad():
                for task in waiting:
                    if errors:
                        return
                    task.act()
        except BaseException as error:  # an interrupt too: nothing may leave a callback
            errors.append(error)

    in_every_thread(work)
    if errors:
        raise errors[0]


def _longest(tasks: list[ThreadTask], threads: int) -> float:
    """What the busiest thread gets if each in turn takes the largest task that is left; `tasks` by rising size."""
    loads = [0.0] * threads
    for task in reversed(tasks):
        heapq.heapreplace(loads, loads[0] + task.size)
    return max(loads)


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
