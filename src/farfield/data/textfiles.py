"""Files of text, plain or compressed, read block by block and never trusted.

A `.txt` file is one document; each line of a `.jsonl` file is one. Invalid UTF-8 is refused with its line and byte.
What the compressed files of a corpus grow to is refused beyond 64 MB, if it is more than 200 times what was read of
them, or more than 20 times and more than the room that is left on the disk.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import itertools
import json
import lzma
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from farfield.data.durable import cache_folder

Errors = Literal["strict", "replace"]

BLOCK = 1 << 20  # bytes that are read and decoded at a time
FREE_EXPANSION = 64 << 20  # bytes to which compressed files may grow whatever they are
MOST_EXPANSION = 200  # times their size, beyond that: text grows 2 to 20 times, and repetitive logs 100
USUAL_EXPANSION = 20  # times, from which on the room on the disk counts
LONGEST_RECORD = 64 << 20  # characters of one line of .jsonl

_KINDS = (".txt", ".jsonl")
_COMPRESSIONS = (".gz", ".xz", ".zst")


class Passage(NamedTuple):
    """A stretch of text, and whether its document ends with it."""

    text: str
    last: bool


class CorpusError(ValueError):
    """Something about the text that its owner has to mend; the message is one sentence."""


class HashedFile(io.FileIO):
    """A file that is hashed as it is read, so that the digest is that of these bytes and of no later ones."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path, self.sha256, self.count, self.ended = path, hashlib.sha256(), 0, False

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.sha256.update(memoryview(buffer)[:count])
        self.count, self.ended = self.count + count, not count
        return count

    def digest(self) -> str:
        """The sha256 of what was read; of a file that was not read to its end, with what follows there now."""
        total = self.sha256.copy()
        if not self.ended:
            with self.path.open("rb") as rest:
                rest.seek(self.count)
                while block := rest.read(BLOCK):
                    total.update(block)
        return total.hexdigest()


class FilesRead:
    """What was read of a corpus's files: each as it was, and how compressed ones grew, which tells text from a bomb."""

    def __init__(self) -> None:
        self.files: dict[Path, HashedFile] = {}
        self.read = self.grown = 0

    def add(self, path: Path, read: int, grown: int) -> None:
        """Count so many more bytes of a file, and those that they have become."""
        self.read, self.grown = self.read + read, self.grown + grown
        if self.grown <= max(FREE_EXPANSION, USUAL_EXPANSION * self.read):
            return
        if self.grown > MOST_EXPANSION * self.read:
            reason = f"{MOST_EXPANSION} times what was read of it"
        elif self.grown > _room():
            reason = f"{USUAL_EXPANSION} times what was read of it, and more than there is room on the disk"
        else:
            return
        raise CorpusError(
            f"{str(path)!r} expands to more than {reason} ({self.read:,} bytes became {self.grown:,}): text hardly "
            "does, so it is not read; if it is text all the same, decompress it first."
        )


def _room() -> int:
    """Bytes that are free on the disk where tokens are kept."""
    folder = cache_folder().absolute()
    return shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free


def is_text(path: Path) -> bool:
    """Whether a file's name says that it holds text."""
    return path.suffix in _KINDS or path.suffix in _COMPRESSIONS


def documents(path: Path, errors: Errors, files: FilesRead) -> Iterator[Passage]:
    """The documents of a file, in passages; files of one corpus share what they may expand to."""
    suffixes = [s for s in path.suffixes if s not in _COMPRESSIONS]
    texts = _decode(path, errors, files)
    return _records(path, texts) if suffixes and suffixes[-1] == ".jsonl" else _whole_file(texts)


def _whole_file(texts: Iterator[str]) -> Iterator[Passage]:
    """A text file as one document, in passages that end with a line."""
    rest = ""
    for text in texts:
        rest += text
        # a line without end is cut anywhere
        cut = rest.rfind("\n") + 1 or (len(rest) if len(rest) > 8 * BLOCK else 0)
        if cut:
            yield Passage(rest[:cut], False)
            rest = rest[cut:]
    yield Passage(rest, True)


def _records(path: Path, texts: Iterator[str]) -> Iterator[Passage]:
    """The `text` of each line of a .jsonl file, each its own document."""
    rest, line = "", 0
    for text in itertools.chain(texts, ["\n"]):
        rest += text
        *lines, rest = rest.split("\n")
        if len(rest) > LONGEST_RECORD:
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
            written = record.get("text", record.get("content")) if isinstance(record, dict) else None
            if not isinstance(written, str):
                raise CorpusError(f"Line {line} of {str(path)!r} has no text: each line needs a string called 'text'.")
            if written:
                # a lone surrogate, which JSON can spell and UTF-8 cannot
                yield Passage(written.encode(errors="replace").decode(), True)


def _decode(path: Path, errors: Errors, files: FilesRead) -> Iterator[str]:
    """The text of a file, block by block; invalid UTF-8 is refused with its line and byte."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    offset, line = 0, 1
    for block in itertools.chain(_expand(path, files), [b""]):
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            bad = line + bytes(error.object[: error.start]).count(10)
            raise CorpusError(
                f"{str(path)!r} is not valid UTF-8 at byte {offset - pending + error.start} (line {bad}); "
                "mend it, or go on with --errors replace."
            ) from None
        offset += len(block)
        line += block.count(b"\n")
        if text:
            yield text


def _expand(path: Path, files: FilesRead) -> Iterator[bytes]:
    """The bytes of a file after decompression."""
    try:
        files.files[path] = HashedFile(path)
        with io.BufferedReader(files.files[path]) as file, _open(path, file) as stream:
            read = 0
            while block := stream.read(BLOCK):
                if stream is not file:
                    files.add(path, file.tell() - read, len(block))
                    read = file.tell()
                yield block
    except CorpusError:
        raise
    except Exception as error:
        theirs = type(error).__name__ in ("ZstdError", "error")  # zstandard and zlib have their own classes
        if not (theirs or isinstance(error, OSError | EOFError | lzma.LZMAError | ValueError)):
            raise
        raise CorpusError(f"{str(path)!r} cannot be read: {error}.") from None


def _open(path: Path, file: BinaryIO) -> BinaryIO:
    if path.suffix == ".gz":
        return gzip.open(file, "rb")  # type: ignore[return-value]
    if path.suffix == ".xz":
        return lzma.open(file, "rb")  # type: ignore[return-value]
    if path.suffix == ".zst":
        try:
            import zstandard
        except ImportError:
            raise CorpusError(f"{str(path)!r} needs the package zstandard: pip install 'farfield[train]'.") from None
        return ZstdFile(file, zstandard)  # type: ignore[return-value]
    return file


class ZstdFile:
    """A .zst file as a stream that notices where it is cut off, which the library's own does not."""

    STEP = 2048  # compressed bytes at a time: of the worst bomb these are 64 MB

    def __init__(self, file: BinaryIO, zstandard: Any) -> None:
        # a frame may ask for a window of up to 2 GB of memory: 128 MB is what `zstd` itself allows by default
        self.decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        self.file, self.frame, self.inside, self.rest = file, self.decompressor.decompressobj(), False, b""

    def __enter__(self) -> ZstdFile:
        return self

    def __exit__(self, *error: object) -> None:
        pass

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
