"""Files of text, plain or compressed, read block by block and never trusted.

A `.txt` file is one document; each line of a `.jsonl` file is one. Invalid UTF-8 is refused with its line and byte, and
so is a compressed file that grows out of all proportion.
"""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

Errors = Literal["strict", "replace"]

BLOCK = 1 << 20  # bytes that are read and decoded at a time
MOST_EXPANSION = 200  # a compressed file may grow to this many times its size ...
FREE_EXPANSION = 64 << 20  # ... or to this many bytes, whichever is more
LONGEST_RECORD = 64 << 20  # characters of one line of .jsonl

_KINDS = (".txt", ".jsonl")
_COMPRESSIONS = (".gz", ".xz", ".zst")


class Passage(NamedTuple):
    """A stretch of text, and whether its document ends with it."""

    text: str
    last: bool


class CorpusError(ValueError):
    """Something about the text that its owner has to mend; the message is one sentence."""


def is_text(path: Path) -> bool:
    """Whether a file's name says that it holds text."""
    return path.suffix in _KINDS or path.suffix in _COMPRESSIONS


def documents(path: Path, errors: Errors) -> Iterator[Passage]:
    """The documents of a file, in passages."""
    suffixes = [s for s in path.suffixes if s not in _COMPRESSIONS]
    return _records(path, errors) if suffixes and suffixes[-1] == ".jsonl" else _whole_file(path, errors)


def _whole_file(path: Path, errors: Errors) -> Iterator[Passage]:
    """A text file as one document, in passages that end with a line."""
    kept = ""
    for text in _decoded(path, errors):
        kept += text
        cut = kept.rfind("\n") + 1
        if cut:
            yield Passage(kept[:cut], False)
            kept = kept[cut:]
        elif len(kept) > 8 * BLOCK:  # a line without end
            yield Passage(kept, False)
            kept = ""
    yield Passage(kept, True)


def _records(path: Path, errors: Errors) -> Iterator[Passage]:
    """The `text` of each line of a .jsonl file, each its own document."""
    kept, line = "", 0
    for text in _with_end(_decoded(path, errors)):
        kept += text
        *lines, kept = kept.split("\n")
        if len(kept) > LONGEST_RECORD:
            raise CorpusError(
                f"Line {line + len(lines) + 1} of {str(path)!r} is longer than {LONGEST_RECORD} characters."
            )
        for content in lines:
            line += 1
            if not content.strip():
                continue
            try:
                record = json.loads(content)
            except (ValueError, RecursionError):
                raise CorpusError(f"Line {line} of {str(path)!r} is not JSON.") from None
            found = record.get("text", record.get("content")) if isinstance(record, dict) else None
            if not isinstance(found, str):
                raise CorpusError(f"Line {line} of {str(path)!r} has no text: each line needs a string called 'text'.")
            if found:
                # a lone surrogate, which JSON can spell and UTF-8 cannot
                yield Passage(found.encode(errors="replace").decode(), True)


def _with_end(texts: Iterator[str]) -> Iterator[str]:
    yield from texts
    yield "\n"


def _decoded(path: Path, errors: Errors) -> Iterator[str]:
    """The text of a file, block by block; invalid UTF-8 is refused with its line and byte."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    offset, line = 0, 1
    for block in _expanded(path):
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block)
        except UnicodeDecodeError as error:
            raise _not_utf8(path, error, offset - pending, line) from None
        offset += len(block)
        line += block.count(b"\n")
        if text:
            yield text
    pending = len(decoder.getstate()[0])
    try:
        text = decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error, offset - pending, line) from None
    if text:
        yield text


def _not_utf8(path: Path, error: UnicodeDecodeError, base: int, line: int) -> CorpusError:
    before = bytes(error.object[: error.start])
    return CorpusError(
        f"{str(path)!r} is not valid UTF-8 at byte {base + error.start} (line {line + before.count(10)}); "
        "mend it, or go on with --errors replace."
    )


def _expanded(path: Path) -> Iterator[bytes]:
    """The bytes of a file after decompression, up to the limit that tells text from a bomb."""
    most = max(FREE_EXPANSION, MOST_EXPANSION * path.stat().st_size)
    compressed = path.suffix in _COMPRESSIONS
    total = 0
    try:
        with _opened(path) as file:
            while block := file.read(BLOCK):
                total += len(block)
                if compressed and total > most:
                    raise CorpusError(
                        f"{str(path)!r} expands to more than {MOST_EXPANSION} times its size "
                        f"({path.stat().st_size} bytes): text does not, so it is not read."
                    )
                yield block
    except CorpusError:
        raise
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise CorpusError(f"{str(path)!r} cannot be read: {error}.") from None
    except Exception as error:
        if type(error).__name__ in ("ZstdError", "error"):  # zstandard and zlib have their own classes
            raise CorpusError(f"{str(path)!r} cannot be read: {error}.") from None
        raise


def _opened(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".xz":
        return lzma.open(path, "rb")  # type: ignore[return-value]
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise CorpusError(f"{str(path)!r} needs the package zstandard: pip install 'farfield[train]'.") from None
        return ZstdFile(path, zstandard)  # type: ignore[return-value]
    return path.open("rb")


class ZstdFile:
    """A .zst file as a stream that notices where it is cut off, which the library's own does not."""

    STEP = 2048  # compressed bytes at a time: of the worst bomb these are 64 MB

    def __init__(self, path: Path, zstandard: Any) -> None:
        # a frame may ask for a window of up to 2 GB of memory: 128 MB is what `zstd` itself allows by default
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self.file, self.frame, self.inside, self.rest = path.open("rb"), self.decompressor.decompressobj(), False, b""

    def __enter__(self) -> ZstdFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def read(self, size: int) -> bytes:
        """At least this many bytes, unless the file ends."""
        parts, length = [], 0
        while length < size:
            data = self.rest or self.file.read(self.STEP)
            if not data:
                if self.inside:
                    raise EOFError("it is cut off")
                break
            parts.append(self.frame.decompress(data))
            length += len(parts[-1])
            self.inside, self.rest = not self.frame.eof, self.frame.unused_data
            if self.frame.eof:
                self.frame = self.decompressor.decompressobj()
        return b"".join(parts)
