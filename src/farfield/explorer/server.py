"""The server of the explorer: one page and its answers, for this machine only.

Only GET, and POST for a pasted configuration; only from a page of its own address, only short queries; every answer
forbids whatever the page does not need (content security policy). Formulas are worked on in other processes (work.py).
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from farfield.explorer.question import LONGEST_CONFIGURATION, LONGEST_QUERY, read
from farfield.explorer.replies import Reply, zoo_list
from farfield.explorer.work import BusyError, CutOffError, Pool
from farfield.reading import parse_json

HOST = "127.0.0.1"
PATIENCE = 5.0  # seconds; a connection on which nothing moves is closed after one to two times this
_MOST_FIELDS = 64  # of a query
_PASTED = "/api/inspect"  # a configuration is too long for a query
_LONGEST_BODY = 8 * LONGEST_CONFIGURATION  # bytes: every character may be escaped
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Impatient(H11Protocol):
    """HTTP that closes a connection on which nothing moves: no whole request comes in, or no answer is taken.

    uvicorn itself lets a client that sends nothing, or half a request, hold its place for ever.
    """

    idle_before: tuple[object, int] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(PATIENCE, self._look)

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        waits = self.cycle is None or self.cycle.response_complete or self.flow.write_paused
        idle = (self.cycle, self.transport.get_write_buffer_size()) if waits else None
        if idle is not None and idle == self.idle_before:
            self.transport.abort()
            return
        self.idle_before = idle
        self.loop.call_later(PATIENCE, self._look)


def listen(port: int) -> socket.socket:
    """A socket on this machine's own address, or one sentence if the port cannot be had."""
    if not 0 <= port <= 65535:
        raise ValueError(f"a port is a number from 0 to 65535, not {port}")
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer on an open connection waits 40 ms
    try:
        own.bind((HOST, port))
        own.listen(128)
    except OSError as error:
        own.close()
        why = "is used by another program" if error.errno == 98 else f"cannot be had ({error.strerror})"
        raise ValueError(f"the port {port} {why}: choose another, or --port 0 for any free one") from None
    return own


def application(port: int, study: Sequence[Reply] | None = None, pool: Pool | None = None) -> ASGIApp:
    """The page, its answers and its guard, for a server at this port."""
    workers = pool or Pool()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with workers.open():
            yield

    async def answer(request: Request) -> Response:
        fields = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        if request.method == "POST":
            fields += _pairs(await _body(request))
        question = read(request.path_params.get("kind", "inspect"), fields)
        try:
            answer = await _while_connected(request, workers.ask(question))
        except (CutOffError, BusyError) as error:
            return _json({"error": str(error)}, 503 if isinstance(error, BusyError) else 504)
        return _json(answer, 400 if "error" in answer else 200)

    async def start(request: Request) -> Response:
        return _json({"zoo": zoo_list(), "study": study})

    page = files("farfield.explorer") / "page"
    routes = [Route("/api/start", start), Route(_PASTED, answer, methods=["POST"]), Route("/api/{kind}", answer)]
    for name in sorted(entry.name for entry in page.iterdir()):
        ending = name[name.rfind(".") :]
        if ending in _KINDS:
            there = "/" if name == "index.html" else f"/{name}"
            routes.append(Route(there, _file((page / name).read_bytes(), _KINDS[ending])))
    inner = Starlette(routes=routes, lifespan=lifespan, exception_handlers={ValueError: _sentence})
    return Guard(inner, port)


def _file(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def give(request: Request) -> Response:
        return Response(content, media_type=kind)

    return give


async def _sentence(request: Request, error: Exception) -> Response:
    return _json({"error": str(error)}, 400)


def _json(data: Reply, status: int = 200) -> Response:
    return Response(json.dumps(data, allow_nan=False), status, media_type="application/json")


async def _body(request: Request) -> bytes:
    """What was sent, if it is not longer than any configuration."""
    out = b""
    async for piece in request.stream():
        out += piece
        if len(out) > _LONGEST_BODY:
            raise ValueError(f"at most {_LONGEST_BODY:,} bytes may be sent")
    return out


def _pairs(body: bytes) -> list[tuple[str, str]]:
    """The fields in a JSON list of pairs of texts, as the page sends them."""
    try:
        sent = parse_json(body)
    except ValueError as error:
        raise ValueError(f"what was sent is no JSON: {error}") from None
    if not isinstance(sent, list) or not all(
        isinstance(one, list) and len(one) == 2 and all(isinstance(text, str) for text in one) for one in sent
    ):
        raise ValueError("what was sent is no list of fields and their values")
    return [(name, value) for name, value in sent]


async def _while_connected(request: Request, asked: Coroutine[None, None, Reply]) -> Reply:
    """The answer, unless the browser leaves first: then the work is given up."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    work, gone = asyncio.ensure_future(asked), asyncio.ensure_future(left())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise CutOffError("nobody waits for this answer any more")
        return work.result()
    finally:
        work.cancel()
        gone.cancel()


class Guard:
    """Refuses what the page never sends, and puts the protecting headers on every answer."""

    def __init__(self, app: ASGIApp, port: int):
        self.app = app
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")} | ({HOST, "localhost"} if port == 80 else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused is not None:
            status, sentence = refused
            await _json({"error": sentence}, status)(scope, receive, _guarded(send))
            return
        await self.app(scope, receive, _guarded(send))

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """A status and a sentence, or None where nothing is wrong."""
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        hosts = [value for name, value in headers if name == "host"]
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "the explorer answers only to its own address"
        for name, value in headers:
            if name == "origin" and value.lower() not in {f"http://{host}" for host in self.hosts}:
                return 403, "the explorer answers only to its own page"
            if name == "sec-fetch-site" and value == "cross-site" and scope["path"] != "/":
                return 403, "the explorer answers only to its own page"
        if scope["method"] != ("POST" if scope["path"] == _PASTED else "GET"):
            return 405, "the explorer knows only GET, and POST for a configuration"
        if len(scope["query_string"]) > LONGEST_QUERY:
            return 414, f"a query has at most {LONGEST_QUERY} characters"
        return None


def _guarded(send: Send) -> Send:
    async def put(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
            message["headers"] = [*message["headers"], *own]
        await send(message)

    return put
