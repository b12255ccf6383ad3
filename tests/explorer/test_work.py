"""Workers: one question each, cut off in time, replaced when they end."""

import asyncio
import os
import signal

import pytest

from farfield.explorer.question import read
from farfield.explorer.work import BusyError, CutOffError, Pool

QUICK = read("condition", [("f", "alibi")])
SLOW = read("window", [("f", "sandwich"), ("set", "0.d=256"), ("context", "65536")])


def with_pool(story, **settings):
    """Run a story with a pool of its own."""

    async def whole():
        pool = Pool(**settings)
        pool.open()
        try:
            await story(pool)
        finally:
            await pool.close()
        assert all(worker.returncode is not None for worker in pool._all)

    asyncio.run(whole())


async def working(pool):
    """Wait until every worker has a question."""
    while not pool._all or pool._starting or pool._idle.qsize():
        await asyncio.sleep(0.01)


def test_a_slow_question_is_cut_off_and_the_next_is_answered():
    async def story(pool):
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"
        with pytest.raises(CutOffError, match="no answer within 1 seconds"):
            await pool.ask(SLOW)
        pool.seconds = 30
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, seconds=1)


def test_too_many_questions_are_refused_at_once():
    async def story(pool):
        first = asyncio.create_task(pool.ask(SLOW))
        await working(pool)
        with pytest.raises(BusyError, match="busy"):
            await pool.ask(QUICK)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, waiting=0, seconds=60)


def test_work_that_nobody_waits_for_is_given_up():
    async def story(pool):
        asked = asyncio.create_task(pool.ask(SLOW))
        await working(pool)
        (worker,) = pool._all
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await worker.wait() == -signal.SIGKILL

    with_pool(story, workers=1, seconds=60)


def test_a_worker_that_ends_gives_a_sentence():
    async def story(pool):
        asked = asyncio.create_task(pool.ask(SLOW))
        await working(pool)
        (worker,) = pool._all
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(CutOffError, match="was cut off"):
            await asked
        assert (await pool.ask(QUICK))["verdict"]["verdict"] == "converges"

    with_pool(story, workers=1, seconds=60)
