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
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SECONDS = 60  # of the processor, for one lot of text (4 MB at most), and to load the tokenizer
MEMORY = 6 << 30  # bytes, of addresses
MOST_GROWTH, MOST_DECODERS = 64, 32  # of a decoder: how many times longer it makes a text, and its parts
PROGRAM = "import farfield.data.tokenizing as t; t.work()"


class UnboundedTokenizerError(ValueError):
    """A tokenizer that did not end in time, took too much memory, or failed."""


def is_plain(tokenizer: Tokenizer | dict[str, Any]) -> bool:
    """Whether it is byte-level BPE without rules of its own, whose work grows no faster than its text."""
    about = tokenizer if isinstance(tokenizer, dict) else json.loads(tokenizer.to_str())
    before, model = about.get("pre_tokenizer") or {}, about.get("model") or {}
    after = about.get("post_processor") or before
    template = after.get("type") == "TemplateProcessing" and len(after["single"]) <= 4  # transformers puts one there
    return (
        before.get("type") == "ByteLevel"
        and model.get("type") == "BPE"
        and (template or after.get("type") == "ByteLevel")
        and not any(about.get(part) for part in ("normalizer", "padding", "truncation"))
        and not any(model.get(part) for part in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
    )


def refuse_growing_decoder(tokenizer: Tokenizer, what: str) -> None:
    """Refuse a tokenizer whose tokens, turned into text again, could take time or room without bound.

    That is done token by token while a model writes, so there is no process with limits for it.
    """
    growth, todo, count = 1.0, [json.loads(tokenizer.to_str()).get("decoder")], 0
    while todo:
        decoder = todo.pop()
        kind = decoder.get("type") if isinstance(decoder, dict) else None
        if kind == "Sequence":
            todo += decoder.get("decoders") or []
            continue
        count += 1
        if kind == "Replace":
            pattern, size = decoder["pattern"].get("String"), len(decoder["content"])
            # an expression; each place of a text; each time that the pattern stands there
            growth *= float("inf") if pattern is None else max(1, size / len(pattern)) if pattern else 1 + size
        elif kind in ("BPEDecoder", "WordPiece", "CTC"):  # they may put a blank between any two characters
            growth *= 2
    if growth > MOST_GROWTH or count > MOST_DECODERS:
        raise UnboundedTokenizerError(
            f"The tokenizer {what} is not used: by its decoder a text could grow without bound, or take for ever."
        )


class Limited:
    """A tokenizer at work in one process with limits, which is started when a text comes and again after it ended.

    Args:
        description: The tokenizer as JSON.
        what: Its name in a sentence.
    """

    def __init__(self, description: str, what: str) -> None:
        self.description, self.what = description, what
        self.child: subprocess.Popen[bytes] | None = None

    def __call__(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The tokens of each text."""
        try:
            if self.child is not None and self.child.poll() is not None:
                self.close()  # someone ended it since the last text
            if self.child is None:
                self.child = subprocess.Popen(
                    [sys.executable, "-P", "-c", PROGRAM],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
                self._ask(self.child, self.description.encode())
            reply = self._ask(self.child, json.dumps(list(texts)).encode())
        except (OSError, EOFError, struct.error):
            self.close()
            raise UnboundedTokenizerError(
                f"The tokenizer {self.what} was given up: it needed more than {SECONDS} seconds of the processor or "
                f"{MEMORY >> 30} GB for a piece of text, or failed."
            ) from None
        if not texts:
            return []
        ends = np.frombuffer(reply[: 8 * len(texts)], dtype=np.uint64)
        return np.split(np.frombuffer(reply[8 * len(texts) :], dtype=np.uint32), ends[:-1].astype(int))

    @staticmethod
    def _ask(child: subprocess.Popen[bytes], data: bytes) -> bytes:
        asked, answered = child.stdin, child.stdout
        assert asked is not None
        assert answered is not None
        asked.write(struct.pack("<Q", len(data)) + data)
        asked.flush()
        (size,) = struct.unpack("<Q", answered.read(8))
        if len(answer := answered.read(size)) < size:
            raise EOFError("the process ended while it answered")
        return answer

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.kill()
            with contextlib.suppress(OSError):
                self.child.communicate()
            self.child = None


def try_out(tokenizer: Tokenizer | dict[str, Any], text: str, what: str) -> None:
    """Refuse a tokenizer, or what a file says of one, that would not end, or not stay within bounds, on this text."""
    if not is_plain(tokenizer):
        description = json.dumps(tokenizer) if isinstance(tokenizer, dict) else tokenizer.to_str()
        with contextlib.closing(Limited(description, what)) as encode:
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
