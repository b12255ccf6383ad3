"""Work in processes of their own: a formula that takes too long is cut off, and holds up nobody else.

A worker reads one question a line and writes one answer a line, both JSON. The pool hands a question to an idle worker;
past the limit, or when nobody waits for the answer any more, it kills the worker and starts another.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

from farfield.explorer.question import Question, from_plain, plain

SECONDS = 5.0  # for one answer
WORKERS = 4
WAITING = 32  # questions that may wait for a worker
_MEMORY = 4 << 30  # bytes of one worker
_LONGEST = 1 << 24  # bytes of an answer
_ENDED = (BrokenPipeError, ConnectionResetError, asyncio.IncompleteReadError)


class CutOffError(Exception):
    """An answer took too long, or its worker ended."""


class BusyError(Exception):
    """Too much is being worked on already."""


class Pool:
    """A few workers, each with one question at a time."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS, waiting: int = WAITING):
        self.size, self.seconds, self.waiting = workers, seconds, waiting
        self._idle: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
        self._all: set[asyncio.subprocess.Process] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._asked = 0
        self._closed = False

    def open(self) -> None:
        """Start every worker; questions wait until the first is ready."""
        for _ in range(self.size):
            self._replace()

    async def close(self) -> None:
        """End every worker."""
        self._closed = True
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for worker in list(self._all):
            _kill(worker)
        await asyncio.gather(*(w.wait() for w in self._all))

    async def ask(self, question: Question) -> dict[str, Any]:
        """The answer of a worker, within the limit."""
        if self._asked >= self.size + self.waiting:
            raise BusyError("the explorer is busy with other questions; ask again in a moment")
        self._asked += 1
        try:
            worker = await self._take()
            return await self._answer(worker, question)
        finally:
            self._asked -= 1

    async def _take(self) -> asyncio.subprocess.Process:
        try:
            async with asyncio.timeout(2 * self.seconds):
                return await self._idle.get()
        except TimeoutError:
            raise BusyError("the explorer is busy with other questions; ask again in a moment") from None

    async def _answer(self, worker: asyncio.subprocess.Process, question: Question) -> dict[str, Any]:
        assert worker.stdin is not None
        assert worker.stdout is not None
        answered = False
        try:
            async with asyncio.timeout(self.seconds):
                worker.stdin.write(json.dumps(plain(question)).encode() + b"\n")
                await worker.stdin.drain()
                line = await worker.stdout.readuntil()
            answered = True
        except TimeoutError:
            raise CutOffError(
                f"no answer within {self.seconds:g} seconds, so the work on this formula was cut off; "
                "start the explorer with --seconds for a longer limit, or ask on the command line, which has none"
            ) from None
        except _ENDED:
            raise CutOffError("the work on this formula needed more than it may have, and was cut off") from None
        finally:
            if answered:
                self._idle.put_nowait(worker)
            else:
                _kill(worker)
                self._replace()
        return json.loads(line)

    def _replace(self) -> None:
        if not self._closed:
            task = asyncio.get_running_loop().create_task(self._start())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start(self) -> None:
        ended = {w for w in self._all if w.returncode is not None}
        self._all -= ended
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "farfield.explorer.work", str(2 * self.seconds),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=_LONGEST,
        )  # fmt: skip
        self._all.add(worker)
        assert worker.stdout is not None
        try:
            await worker.stdout.readuntil()  # it is ready
        except _ENDED:
            return  # it says why on the terminal
        self._idle.put_nowait(worker)


def _kill(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is None:
        worker.kill()


# ------------------------------------------------------------------------------------------------ inside a worker
def work(seconds: float) -> None:
    """Answer questions until the other side leaves; end by itself if one takes this long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its workers
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    sys.stdout = sys.stderr  # nothing but answers goes there
    _limit_memory()
    from farfield.explorer.answer import answer

    answer(Question("encoding", ("alibi",), ({},)))  # what is imported only once is imported now
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        _end_after(seconds)
        answers.write(json.dumps(_reply(answer, json.loads(line)), allow_nan=False) + "\n")
        answers.flush()
        _end_after(0)


def _reply(answer: Any, data: dict[str, Any]) -> dict[str, Any]:
    from farfield.formula import FormulaError

    try:
        return answer(from_plain(data))
    except FormulaError as error:
        return {"error": str(error), "pointer": error.pointer() if error.text else None}
    except ValueError as error:
        return {"error": str(error)}
    except (MemoryError, RecursionError, OverflowError):
        return {"error": "this formula needs more memory or depth than the explorer gives it"}
    except Exception as error:
        import traceback

        traceback.print_exc()  # on the terminal of whoever runs the explorer
        return {"error": f"Farfield could not answer this ({type(error).__name__}): a fault of Farfield's own"}


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


if __name__ == "__main__":
    work(float(sys.argv[1]))
