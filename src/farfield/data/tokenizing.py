"""A stranger's tokenizer at work in a process of its own, with limits: it may not run for ever, nor take all memory.

A `tokenizer.json` holds regular expressions and replacements, which can take time or room without bound on a short
text. Plain byte-level BPE, such as ours, has neither and needs no process.
"""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SECONDS = 60  # of the processor, for one lot of text (4 MB at most), and to load the tokenizer
MEMORY = 6 << 30  # bytes, of addresses
PROGRAM = "import farfield.data.tokenizing as t; t.work()"


class UnboundedTokenizerError(ValueError):
    """A tokenizer that did not end in time, took too much memory, or failed."""


def is_plain(tokenizer: Tokenizer | dict[str, Any]) -> bool:
    """Whether it is byte-level BPE without rules of its own, whose work grows no faster than its text."""
    about = tokenizer if isinstance(tokenizer, dict) else json.loads(tokenizer.to_str())
    before, model = about.get("pre_tokenizer") or {}, about.get("model") or {}
    return (
        before.get("type") == "ByteLevel"
        and model.get("type") == "BPE"
        and (about.get("post_processor") or before).get("type") == "ByteLevel"
        and not any(about.get(part) for part in ("normalizer", "padding", "truncation"))
    )


@contextlib.contextmanager
def limited(description: str, what: str) -> Iterator[Any]:
    """A function from texts to the tokens of each, computed in a process with limits.

    Args:
        description: The tokenizer as JSON.
        what: Its name in a sentence.
    """
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", PROGRAM],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    asked, answered = child.stdin, child.stdout
    assert asked is not None
    assert answered is not None

    def ask(data: bytes) -> bytes:
        try:
            asked.write(struct.pack("<Q", len(data)) + data)
            asked.flush()
            (size,) = struct.unpack("<Q", answered.read(8))
            return answered.read(size)
        except (OSError, struct.error):
            raise UnboundedTokenizerError(
                f"The tokenizer {what} was given up: it needed more than {SECONDS} seconds of the processor or "
                f"{MEMORY >> 30} GB for a piece of text, or failed."
            ) from None

    def encode(texts: Sequence[str]) -> list[np.ndarray]:
        found = ask(json.dumps(list(texts)).encode())
        ends = np.frombuffer(found[: 8 * len(texts)], dtype=np.uint64)
        return np.split(np.frombuffer(found[8 * len(texts) :], dtype=np.uint32), ends[:-1].astype(int))

    try:
        ask(description.encode())
        yield encode
    finally:
        child.kill()
        with contextlib.suppress(OSError):
            child.communicate()


def try_out(tokenizer: Tokenizer | dict[str, Any], text: str, what: str) -> None:
    """Refuse a tokenizer, or what a file says of one, that would not end, or not stay within bounds, on this text."""
    if not is_plain(tokenizer):
        description = json.dumps(tokenizer) if isinstance(tokenizer, dict) else tokenizer.to_str()
        with limited(description, what) as encode:
            encode([text])


def work() -> None:
    """What the process does: read a tokenizer, then lots of texts, and answer each with its tokens."""
    from tokenizers import Tokenizer

    tokenizer = None
    while head := sys.stdin.buffer.read(8):
        data = sys.stdin.buffer.read(struct.unpack("<Q", head)[0])
        _allow()
        if tokenizer is None:
            tokenizer = Tokenizer.from_str(data.decode())
            answer = b""
        else:
            encoded = tokenizer.encode_batch_fast(json.loads(data), add_special_tokens=False)
            ends = np.cumsum([len(each.ids) for each in encoded], dtype=np.uint64)
            answer = ends.tobytes() + b"".join(np.asarray(each.ids, dtype=np.uint32).tobytes() for each in encoded)
        sys.stdout.buffer.write(struct.pack("<Q", len(answer)) + answer)
        sys.stdout.buffer.flush()


def _allow() -> None:
    """The limits of one answer, where the system has them."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + SECONDS, resource.RLIM_INFINITY))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if most < 0 else min(MEMORY, most), most))
