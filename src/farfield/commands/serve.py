"""`farfield serve`: a model behind OpenAI's completions, on this machine, with the bounded cache and its certificate.

One text is written at a time, each with a cache of its own; what the cache can have cost stands in the answer under
"certificate". There is no key: whoever can reach this machine's own address may ask.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Literal

from farfield.commands.options import Flag, Whole, WholeOrNone
from farfield.reading import parse_json

CHUNK = 1024  # tokens of a long prompt that are read at once
MOST_TOKENS = 1 << 20
LARGEST = 64 << 20  # bytes of a request
_KNOWN = {  # fields of a request that are understood; others that change the answer are refused
    *("model", "prompt", "max_tokens", "temperature", "top_p", "seed", "stop", "stream", "stream_options", "echo", "n"),
    *("user", "logprobs", "best_of", "frequency_penalty", "presence_penalty", "suffix", "logit_bias"),
}
_NEUTRAL: dict[str, Any] = {
    "n": 1,
    "best_of": 1,
    "frequency_penalty": 0,
    "presence_penalty": 0,
    "suffix": None,
    "logit_bias": {},
}


def serve_command(
    run: str,
    *,
    port: Whole = 8422,
    epsilon: str = "1e-3",
    logit_bound: str | None = None,
    policy: Literal["widen", "warn", "stop"] = "widen",
    context: WholeOrNone = None,
    full: Flag = False,
    device: str | None = None,
) -> None:
    """Serve a model at http://127.0.0.1:PORT/v1 for programs that speak OpenAI's completions.

    Args:
        run: A run folder of `farfield train`, or the folder or name of a BLOOM or MPT model.
        port: The port on this machine; 0 takes any free one.
        epsilon: The share of attention that a token may lose in any head.
        logit_bound: Choose windows for |q.k|/sqrt(d) up to this bound, instead of measuring them.
        policy: If a token may have lost more than epsilon all the same: `widen` the window, `warn`, or `stop`.
        context: The longest text; needed where the encoding's series diverges.
        full: Keep every key: the usual cache, without a certificate.
        device: Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
    """
    import uvicorn

    from farfield.commands.generate import load_generator
    from farfield.explorer.server import HOST, Impatient, listen

    bounds = None if full else {"logit_bound": logit_bound, "policy": policy, "context": context}
    writer = Writer(run, *load_generator(run, device), epsilon, bounds)
    own = listen(port)
    print(f"{run} is served at http://{HOST}:{own.getsockname()[1]}/v1 (Ctrl-C ends it)", flush=True)
    settings = uvicorn.Config(
        application(writer), http=Impatient, ws="none", log_level="warning", access_log=False, server_header=False
    )
    try:
        uvicorn.Server(settings).run(sockets=[own])
    except KeyboardInterrupt:
        print("the server has ended", file=sys.stderr)


@dataclass
class Wish:
    """What a request asks for, checked."""

    prompts: list[Any]
    tokens: int
    temperature: float
    top_p: float
    seed: int | None
    stop: list[str]
    stream: bool
    echo: bool


def read(body: Any) -> Wish:
    """A request as plain data; one sentence if it is none."""
    if not isinstance(body, dict):
        raise ValueError("a request is a JSON object with a prompt")
    unknown = sorted(set(body) - _KNOWN)
    if unknown:
        raise ValueError(f"the field {unknown[0][:40]!r} is not known here")
    for name, neutral in _NEUTRAL.items():
        if body.get(name, neutral) not in (neutral, None):
            raise ValueError(f"{name} can only be {neutral} here")
    if body.get("logprobs") not in (None, 0):
        raise ValueError("logprobs are not given here")
    prompt = body.get("prompt")
    ids = isinstance(prompt, list) and bool(prompt) and all(_whole(x) for x in prompt)
    prompts = [prompt] if isinstance(prompt, str) or ids else prompt
    if not isinstance(prompts, list) or not 1 <= len(prompts) <= 64 or not all(_is_prompt(p) for p in prompts):
        raise ValueError("the prompt is a text, a list of tokens, or up to 64 of either")
    stop = body.get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if not isinstance(stop, list) or len(stop) > 4 or not all(isinstance(s, str) and s for s in stop):
        raise ValueError("stop is a text, or up to 4 texts")
    tokens = body.get("max_tokens", 16)
    if not _whole(tokens) or not 1 <= tokens <= MOST_TOKENS:
        raise ValueError(f"max_tokens is a whole number from 1 to {MOST_TOKENS}, not {str(tokens)[:20]}")
    temperature, top_p = (_number(body, "temperature", 1.0, 0, 2), _number(body, "top_p", 1.0, 0, 1))
    seed = body.get("seed")
    if seed is not None and not _whole(seed):
        raise ValueError(f"the seed is a whole number, not {str(seed)[:20]}")
    return Wish(prompts, tokens, temperature, top_p, seed, stop, body.get("stream") is True, body.get("echo") is True)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_prompt(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and bool(value) and all(_whole(x) for x in value))


def _number(body: dict[str, Any], name: str, usual: float, least: float, most: float) -> float:
    value = body.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{name} is a number from {least} to {most}, not {str(value)[:20]}")
    return float(value)


class Writer:
    """A model that writes one text at a time, each with a bounded cache of its own; `bounds` None keeps every key."""

    def __init__(self, name: str, model: Any, tokenizer: Any, epsilon: str, bounds: dict[str, Any] | None):
        import farfield
        from farfield.data.tokenizing import Limited, is_plain

        self.name, self.model, self.tokenizer, self.epsilon, self.bounds = name, model, tokenizer, epsilon, bounds
        if bounds is not None:
            farfield.bound(model, epsilon, **bounds)
            farfield.BoundedCache(model, epsilon, **bounds)  # says at once if there is none
        self._one = threading.Lock()
        backend = tokenizer.backend_tokenizer
        self._limited = None if is_plain(backend) else Limited(backend.to_str(), f"of {name!r}")

    def write(self, wish: Wish, index: int, say: Callable[[str], None] | None = None) -> dict[str, Any]:
        """One choice with its certificate; `say` is told each piece of text as it is written."""
        with self._one:
            return self._write(wish, index, say)

    def _write(self, wish: Wish, index: int, say: Callable[[str], None] | None) -> dict[str, Any]:
        import torch

        import farfield

        ids = self._ids(wish.prompts[index])
        options: dict[str, Any] = {"max_new_tokens": wish.tokens, "do_sample": wish.temperature > 0}
        if wish.temperature > 0:
            options |= {"temperature": wish.temperature, "top_p": wish.top_p or 1e-9}
        if wish.stop:
            options |= {"stop_strings": wish.stop, "tokenizer": self.tokenizer}
        cache = None
        if self.bounds is not None:
            cache = farfield.BoundedCache(self.model, self.epsilon, **self.bounds)
            options |= {"past_key_values": cache, "prefill_chunk_size": CHUNK}
        if say is not None:
            options["streamer"] = _Pieces(self.tokenizer, say)
        if wish.seed is not None:
            torch.manual_seed(wish.seed + index)
        with torch.no_grad():
            done = self.model.generate(ids, attention_mask=torch.ones_like(ids), **options)
        written = done[0, ids.shape[1] :]
        text = self.tokenizer.decode(written, skip_special_tokens=True)
        ended = len(written) < wish.tokens
        for stop in wish.stop:
            text, separator, _ = text.partition(stop)
            ended = ended or bool(separator)
        return {
            "text": (self.tokenizer.decode(ids[0], skip_special_tokens=True) if wish.echo else "") + text,
            "finish_reason": "stop" if ended else "length",
            "prompt_tokens": ids.shape[1],
            "completion_tokens": len(written),
            "certificate": None if cache is None else cache.certificate().json(),
        }

    def _ids(self, prompt: Any) -> Any:
        import torch

        size = self.model.get_input_embeddings().num_embeddings
        if isinstance(prompt, str) and self._limited is not None:
            self._limited([prompt])  # what does not end, or not stay within bounds, is found out there
        ids = self.tokenizer(prompt)["input_ids"] if isinstance(prompt, str) else prompt
        if not ids:
            raise ValueError("the prompt has no tokens; give some text")
        if max(ids) >= size:
            raise ValueError(f"the vocabulary has {size} tokens, so there is no token {max(ids)}")
        return torch.tensor([ids], device=self.model.device)


class _Pieces:
    """Tells each token's text as soon as it is whole; a streamer of transformers."""

    def __init__(self, tokenizer: Any, say: Callable[[str], None]):
        self.tokenizer, self.say, self.told, self.prompt = tokenizer, say, "", True
        self.ids: list[int] = []

    def put(self, value: Any) -> None:
        if self.prompt:
            self.prompt = False
            return
        self.ids.extend(value.reshape(-1).tolist())
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True)
        if text.startswith(self.told) and not text.endswith("\ufffd"):
            self.say(text[len(self.told) :])
            self.told = text

    def end(self) -> None:
        text = self.tokenizer.decode(self.ids, skip_special_tokens=True)
        self.say(text[len(self.told) :])


def application(writer: Writer) -> Any:
    """The web application: /v1/models and /v1/completions, for requests to this machine's own address."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

    born = int(time.time())

    async def models(request: Any) -> Any:
        one = {"id": writer.name, "object": "model", "created": born, "owned_by": "farfield"}
        return JSONResponse({"object": "list", "data": [one]})

    async def completions(request: Any) -> Any:
        try:
            body = bytearray()
            async for part in request.stream():
                body += part
                if len(body) > LARGEST:
                    raise ValueError(f"a request has at most {LARGEST >> 20} MB")
            wish = read(_parsed(bytes(body)))
            if wish.stream and (len(wish.prompts) > 1 or wish.stop or wish.echo):
                raise ValueError("a stream has one prompt, and neither stop nor echo")
            if wish.stream:
                return StreamingResponse(_stream(writer, wish), media_type="text/event-stream")
            done = [await run_in_threadpool(writer.write, wish, i) for i in range(len(wish.prompts))]
        except (ValueError, RuntimeError) as error:  # a person's mistake, or a certificate that policy "stop" refused
            return JSONResponse(_error(str(error)), 400)
        return JSONResponse(_answer(writer, done))

    routes = [Route("/v1/models", models), Route("/v1/completions", completions, methods=["POST"])]
    guard = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return Starlette(routes=routes, middleware=[guard])


def _parsed(body: bytes) -> Any:
    try:
        return parse_json(body)
    except ValueError as error:
        raise ValueError(f"the request is not JSON that can be read: {error}") from None


def _error(sentence: str) -> dict[str, Any]:
    return {"error": {"message": sentence, "type": "invalid_request_error", "param": None, "code": None}}


def _frame(writer: Writer, choices: list[dict[str, Any]]) -> dict[str, Any]:
    about = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time())}
    return {**about, "model": writer.name, "choices": choices}


def _answer(writer: Writer, done: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("text", "finish_reason", "certificate")
    choices = [{"index": i, "logprobs": None, **{n: one[n] for n in names}} for i, one in enumerate(done)]
    used = {name: sum(one[name] for one in done) for name in ("prompt_tokens", "completion_tokens")}
    return {**_frame(writer, choices), "usage": {**used, "total_tokens": sum(used.values())}}


async def _stream(writer: Writer, wish: Wish) -> AsyncIterator[str]:
    """Server-sent events: a piece of text each, then the certificate, then [DONE]."""
    import asyncio

    loop, pieces = asyncio.get_running_loop(), asyncio.Queue[Any]()

    def tell(piece: Any) -> None:
        loop.call_soon_threadsafe(pieces.put_nowait, piece)

    def work() -> None:
        try:
            tell(writer.write(wish, 0, tell))
        except (ValueError, RuntimeError) as error:
            tell(error)

    threading.Thread(target=work, daemon=True).start()
    frame = _frame(writer, [])
    while True:
        piece = await pieces.get()
        if isinstance(piece, Exception):
            yield f"data: {json.dumps(_error(str(piece)))}\n\n"
            return
        done = isinstance(piece, dict)
        choice = {"index": 0, "logprobs": None, "text": "" if done else piece, "finish_reason": None}
        if done:
            choice |= {"finish_reason": piece["finish_reason"], "certificate": piece["certificate"]}
        if done or piece:
            yield f"data: {json.dumps({**frame, 'choices': [choice]})}\n\n"
        if done:
            yield "data: [DONE]\n\n"
            return
