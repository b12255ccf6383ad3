"""Work in processes of their own: a formula that takes too long is cut off, and holds up nobody else.

anyio keeps the processes, and kills one that is past its limit or whose answer nobody waits for any more.
"""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar, TypeVarTuple

import anyio
from anyio import to_process

from farfield.explorer.question import Question
from farfield.explorer.replies import Reply, reply

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
SECONDS = 5.0  # for one answer
WORKERS = 4
WAITING = 32  # questions that may wait for a worker
_STARTING = 60.0  # seconds for a new process to import what it needs
_STARTS = 3  # times that a worker is started for a question
_MEMORY = 4 << 30  # bytes of one worker


class CutOffError(Exception):
    """An answer took too long, or its worker ended."""


class BusyError(Exception):
    """Too much is being worked on already."""


class Pool:
    """A few workers, each with one question at a time."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS, waiting: int = WAITING):
        self.size, self.seconds, self.waiting = workers, seconds, waiting
        self._asked = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Pool]:
        """Start every worker; questions wait until the first is ready."""
        self._free, self._ready = anyio.Semaphore(self.size), anyio.Event()
        self._uncounted = anyio.CapacityLimiter(math.inf)  # the semaphore counts
        async with anyio.create_task_group() as starting:
            for _ in range(self.size):
                starting.start_soon(self._start)
            yield self
            starting.cancel_scope.cancel()

    async def ask(self, question: Question) -> Reply:
        """The answer of a worker, within the limit."""
        busy = BusyError("the explorer is busy with other questions; ask again in a moment")
        if self._asked >= self.size + self.waiting:
            raise busy
        self._asked += 1
        try:
            with anyio.move_on_after(_STARTING):
                await self._ready.wait()
            with anyio.move_on_after(2 * self.seconds) as waiting:
                await self._free.acquire()
            if waiting.cancelled_caught:
                raise busy
            try:
                return await self._answer(question)
            finally:
                self._free.release()
        finally:
            self._asked -= 1

    async def _answer(self, question: Question) -> Reply:
        try:
            await self._prepare()
            answer, fault = await self._run(self.seconds, work, question, 2 * self.seconds)
        except TimeoutError:
            raise CutOffError(
                f"no answer within {self.seconds:g} seconds, so the work on this formula was cut off; "
                "start the explorer with --seconds for a longer limit, or use the command line with FARFIELD_TIME=600"
            ) from None
        except anyio.BrokenWorkerProcess:
            raise CutOffError("the work on this formula needed more than it may have, and was cut off") from None
        sys.stderr.write(fault)  # on the terminal of whoever runs the explorer
        return answer

    async def _run(self, seconds: float, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        with anyio.fail_after(seconds):
            try:
                return await to_process.run_sync(function, *arguments, cancellable=True, limiter=self._uncounted)
            except ProcessLookupError as error:  # anyio wants to end a process that has died while it started
                raise anyio.BrokenWorkerProcess from error

    async def _prepare(self) -> None:
        """Have a worker that is ready: at once, unless it is new. One that dies while it starts is tried again."""
        for attempt in range(_STARTS):
            try:
                await self._run(_STARTING, prepare)
                return
            except anyio.BrokenWorkerProcess:
                if attempt == _STARTS - 1:
                    raise

    async def _start(self) -> None:
        # where it fails, the questions that come start workers of their own
        async with self._free:
            with suppress(TimeoutError, anyio.BrokenWorkerProcess):
                await self._prepare()
        self._ready.set()


# ------------------------------------------------------------------------------------------------ inside a worker
_prepared = False


def prepare() -> None:
    """Import what answers need, and take on the limits of a worker; a second time this does nothing."""
    global _prepared
    if _prepared:
        return
    _prepared = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    _limit_memory()
    for kind in ("verdict", "fields", "window", "drawn"):
        reply(Question(kind, ("alibi",), ({},)))


def work(question: Question, seconds: float) -> tuple[Reply, str]:
    """The reply to a question; this process ends by itself if it takes so long that nobody can be waiting."""
    _end_after(seconds)
    try:
        return reply(question)
    finally:
        _end_after(0)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on this system
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY if most < 0 else min(_MEMORY, most), most))


def _end_after(seconds: float) -> None:
    """End this process if the server did not come to do it, even in the middle of a long calculation."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
