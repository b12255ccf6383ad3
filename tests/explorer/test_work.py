"""Workers: one question each, cut off in time, replaced when they end."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from farfield.explorer.question import Question, read
from farfield.explorer.work import BusyError, CutOffError, Pool

QUICK = read("condition", [("f", "alibi")])
SLOW = read("window", [("f", "sandwich"), ("set", "0.d=256"), ("context", "65536")])
CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
needs_list = pytest.mark.skipif(not CHILDREN.exists(), reason="this system does not list a process's children")


def processor_seconds(process):
    """How much a process has worked."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children():
    """Processes that this one started; other tests may have left a server running."""
    return set(CHILDREN.read_text().split()) if CHILDREN.exists() else set()


async def asked_slowly(pool):
    """A slow question, and the one worker, in the middle of it.

    A new worker works for a while before its first question, and this much longer the busier the machine is; so it
    answers a quick one first.
    """
    await pool.ask(QUICK)
    (worker,) = (int(pid) for pid in children() - pool.before)
    since = processor_seconds(worker)
    asked = asyncio.create_task(pool.ask(SLOW))
    while processor_seconds(worker) < since + 0.5:
        await asyncio.sleep(0.01)
    return asked, worker


def with_pool(story, **settings):
    """Run a story with a pool of its own; nothing is left of it afterwards."""

    async def whole():
        async with Pool(**settings).open() as pool:
            pool.before = before
            await story(pool)

    before = children()
    asyncio.run(whole())
    assert children() == before


def test_a_slow_question_is_cut_off_and_the_next_is_answered():
    async def story(pool):
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"
        pool.seconds = 1
        with pytest.raises(CutOffError, match="no answer within 1 seconds"):
            await pool.ask(SLOW)
        pool.seconds = 60
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, seconds=60)


@needs_list
def test_too_many_questions_are_refused_at_once():
    async def story(pool):
        first, _ = await asked_slowly(pool)
        with pytest.raises(BusyError, match="busy"):
            await pool.ask(QUICK)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, waiting=0, seconds=60)


@needs_list
def test_a_question_does_not_wait_for_ever():
    async def story(pool):
        first, _ = await asked_slowly(pool)
        pool.seconds = 0.1
        with pytest.raises(BusyError, match="busy"):
            await pool.ask(QUICK)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    with_pool(story, workers=1, seconds=60)


@needs_list
def test_work_that_nobody_waits_for_is_given_up():
    async def story(pool):
        asked, worker = await asked_slowly(pool)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert str(worker) not in children()

    with_pool(story, workers=1, seconds=60)


@needs_list
def test_a_worker_that_ends_gives_a_sentence():
    async def story(pool):
        asked, worker = await asked_slowly(pool)
        os.kill(worker, signal.SIGKILL)
        with pytest.raises(CutOffError, match="needed more than it may have"):
            await asked
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, seconds=60)


def test_a_fault_of_ours_is_one_sentence_and_its_traceback_is_told(capfd):
    async def story(pool):
        answer = await pool.ask(Question("of no kind", ("alibi",), ({},)))
        assert answer["error"] == "Farfield could not answer this (KeyError): a fault of Farfield's own"

    with_pool(story, workers=1, seconds=60)
    assert "KeyError: 'of no kind'" in capfd.readouterr().err
