"""The explorer comes back when its workers die, closes connections on which nothing moves, and answers any question."""

import asyncio
import os
import random
import socket
import string
import time
from urllib.parse import quote

import pytest

from farfield.explorer import server, work
from farfield.explorer.question import FIELDS, read

pytestmark = pytest.mark.hostile("the explorer's door")
QUICK = read("condition", [("f", "alibi")])


@pytest.mark.parametrize("deaths", [1, 2, 5])
def test_it_comes_back_when_its_workers_die_while_they_start(monkeypatch, deaths):
    """So many of the first processes die while they import."""
    left, inner = ["a death"] * deaths, work.Pool._run

    async def run(pool, seconds, function, *arguments):
        if function is work.prepare and left:
            left.pop()
            return await inner(pool, seconds, os._exit, 1)
        return await inner(pool, seconds, function, *arguments)

    async def story():
        async with work.Pool(workers=2, seconds=60).open() as pool:
            for _ in range(4):
                try:
                    return await pool.ask(QUICK)
                except work.CutOffError:
                    continue

    monkeypatch.setattr(work.Pool, "_run", run)
    assert asyncio.run(story())["verdict"]["verdict"] == "converges"
    assert left == []


OPENINGS = {
    "says nothing": b"",
    "half a line": b"GET /api/st",
    "no end of the head": b"GET /api/start HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX: ",
    "a body that never comes": b"POST / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 1000000\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


def test_silent_and_half_open_connections_are_closed(run, tmp_path, attacks):
    """Seventy of them are more than it takes at once; afterwards it answers."""
    running = run(tmp_path)
    sockets = []
    for number in range(70):
        one = socket.create_connection(("127.0.0.1", running.port))
        one.sendall(list(OPENINGS.values())[number % len(OPENINGS)].replace(b"PORT", str(running.port).encode()))
        sockets.append(one)
    for one in sockets:
        one.settimeout(60)
        with one:
            try:
                while one.recv(65536):  # until it is closed from the other side
                    pass
            except ConnectionError:
                pass
    assert running.get("/").status == 200
    attacks(70)


def pour(one, asked):
    for _ in range(2000):
        one.sendall(asked)
        time.sleep(0.05)


def test_an_answer_that_nobody_takes_is_given_up(run, tmp_path):
    """Requests without end on one connection whose answers are never read."""
    running = run(tmp_path)
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        one.connect(("127.0.0.1", running.port))
        one.settimeout(4 * server.PATIENCE)
        asked = f"GET /explorer.js HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n\r\n".encode() * 50
        with pytest.raises(OSError, match=r"reset|Broken|timed out"):  # it is closed, or takes no more
            pour(one, asked)
    assert running.get("/").status == 200


RAW = {
    "two hosts": "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nHost: evil\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "an address of another": "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "two lengths": "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "chunks and a length": "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "a negative length": "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nContent-Length: -5\r\n\r\n",
    "a folded header": "GET / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nX: a\r\n b\r\nOrigin: http://evil\r\n\r\n",
    "a bare line feed": "GET / HTTP/1.1\nHost: evil\n\n",
    "a zero byte in the path": "GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "an old version": "GET / HTTP/0.9\r\n\r\n",
    "an upgrade": "GET / HTTP/1.1\r\nHost: evil\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "a proxy's connection": "CONNECT evil:443 HTTP/1.1\r\nHost: evil:443\r\n\r\n",
    "a forwarded host": "GET / HTTP/1.1\r\nHost: evil\r\nX-Forwarded-Host: 127.0.0.1:PORT\r\n\r\n",
    "a method of its own": "EVIL / HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n",
    "a thousand headers": "GET / HTTP/1.1\r\nHost: evil\r\n" + "X: y\r\n" * 1000 + "\r\n",
    "a header of 100 kB": "GET / HTTP/1.1\r\nHost: evil\r\nX: " + "y" * 100_000 + "\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("name", RAW)
def test_what_is_no_proper_request_gets_nothing(explorer, name):
    with socket.create_connection(("127.0.0.1", explorer.port), timeout=60) as one:
        try:
            one.sendall(RAW[name].replace("PORT", str(explorer.port)).encode("latin-1"))
            found = one.recv(65536)
        except ConnectionError:
            found = b""
    assert not found.startswith(b"HTTP/1.1 2"), found[:200]
    assert b"Traceback" not in found
    assert explorer.get("/").status == 200


def test_fuzzed_questions_are_answered(explorer, attacks):
    """Fields, kinds and texts at random: 200, or 4xx with one sentence."""
    draw = random.Random(3)
    fields, kinds = [*sorted(set().union(*FIELDS.values())), "x"], [*FIELDS, "nothing"]
    values = ["alibi", "-k*t", "1", "-1", "0.01", "8", "k", "0.k=1/16", "9.k=2", "", "1e999", "type1", "9" * 50]
    count = 150
    for _ in range(count):
        chosen = []
        for _ in range(draw.randint(0, 6)):
            value = (
                draw.choice(values)
                if draw.random() < 0.7
                else "".join(draw.choices(string.printable + "é\u202e", k=draw.randint(0, 40)))
            )
            chosen.append(f"{draw.choice(fields)}={quote(value)}")
        answer = explorer.get(f"/api/{draw.choice(kinds)}?{'&'.join(chosen)}")
        assert answer.status in (200, 400, 404, 405, 414), (chosen, answer)  # 405: a configuration is posted
        if answer.status != 200:
            assert "\n" not in answer.data["error"]
            assert len(answer.data["error"]) < 400
    attacks(count)


def test_a_worker_that_is_gone_before_it_is_ended_is_replaced(monkeypatch, attacks):
    """anyio then raises ProcessLookupError: seen 10 times while 88 workers were killed."""
    left, inner = ["a death"] * 2, work.to_process.run_sync

    async def run_sync(*arguments, **options):
        if left:
            left.pop()
            raise ProcessLookupError
        return await inner(*arguments, **options)

    async def story():
        async with work.Pool(workers=1, seconds=60).open() as pool:
            return await pool.ask(QUICK)

    monkeypatch.setattr(work.to_process, "run_sync", run_sync)
    assert asyncio.run(story())["verdict"]["verdict"] == "converges"
    attacks(2)
