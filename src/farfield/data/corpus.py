"""Corpora: where the text of a run comes from, read piece by piece and never trusted.

A corpus is named in one of three ways:

* `python`: the source of the standard library of the running Python, which is on every machine;
* a file or a folder of text by its path: `.txt` or `.jsonl`, plain or compressed (`.gz`, `.xz`, `.zst`);
* a data set of the Hugging Face hub: `wikitext-103`, `books`, `github`, `wikibook`, or `hub:OWNER/NAME[:CONFIG]`.

Each has the splits train, valid and test: by the names of the files (or of the data set's own splits), otherwise cut
by a seed, where out of every 20 documents one goes to valid and one to test.
"""

from __future__ import annotations

import codecs
import functools
import gzip
import hashlib
import json
import lzma
import re
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

SPLITS = ("train", "valid", "test")
Errors = Literal["strict", "replace"]

BLOCK = 1 << 20  # bytes that are read and decoded at a time
CUT = 4096  # characters of a document, where text that names no split is cut by a seed
GROUP = 20  # of so many documents one is for valid and one for test
MOST_EXPANSION = 200  # a compressed file may grow to this many times its size ...
FREE_EXPANSION = 64 << 20  # ... or to this many bytes, whichever is more
LONGEST_RECORD = 64 << 20  # characters of one line of .jsonl

_SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}
_KINDS = (".txt", ".jsonl")
_COMPRESSIONS = (".gz", ".xz", ".zst")


class Piece(NamedTuple):
    """A stretch of text, and whether its document ends with it."""

    text: str
    last: bool


class CorpusError(ValueError):
    """Something about the text that its owner has to mend; the message is one sentence."""


@dataclass(frozen=True)
class Corpus:
    """Text in three splits, read piece by piece; `open_corpus` makes one from a name or a path."""

    name: str
    _pieces: Callable[[str], Iterator[Piece]]
    _identity: Callable[[str], dict[str, Any]]
    limit: int | None = None

    def pieces(self, split: str) -> Iterator[Piece]:
        """The text of a split; a limit holds for train, and a tenth of it for valid and test."""
        _check_split(split)
        left = self._limit_of(split)
        for text, last in self._pieces(split):
            if left is None:
                yield Piece(text, last)
                continue
            size = len(text.encode())
            if size >= left:
                yield Piece(text.encode()[:left].decode(errors="ignore"), True)
                return
            left -= size
            yield Piece(text, last)

    def digest(self, split: str) -> str:
        """The sha256 of everything that decides the text of a split."""
        _check_split(split)
        identity = {**self._identity(split), "split": split, "limit": self._limit_of(split), "rule": 1}
        return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()

    def _limit_of(self, split: str) -> int | None:
        if self.limit is None:
            return None
        return self.limit if split == "train" else max(1, self.limit // 10)


def open_corpus(name: str, *, split_seed: int = 0, errors: Errors = "strict", limit: int | None = None) -> Corpus:
    """The corpus of this name or path.

    `limit` is the most bytes of training text to read (a tenth of it for valid and test); `errors="replace"` goes on
    over invalid UTF-8 instead of refusing it; `split_seed` decides the splits of text that names none.
    """
    if errors not in ("strict", "replace"):
        raise CorpusError(f"errors is {errors!r}; it may be 'strict' or 'replace'.")
    if limit is not None and limit < 1:
        raise CorpusError(f"The limit of a corpus is {limit} bytes; it must be at least 1.")
    if name == "python":
        return _python_corpus(split_seed, limit)
    from farfield.data import hub

    if name in hub.NAMED or name.startswith("hub:"):
        return hub.open_hub(name, split_seed=split_seed, limit=limit)
    path = Path(name).expanduser()
    if not path.exists():
        raise CorpusError(
            f"There is no corpus {name!r}: give python, {', '.join(hub.NAMED)}, hub:OWNER/NAME, "
            "or the path of a file or folder of text."
        )
    return _path_corpus(name, path, split_seed, errors, limit)


def assigned_split(number: int, seed: int) -> str:
    """The split of the document with this number when nothing but the seed decides: 18 : 1 : 1, exactly."""
    group, place = divmod(number, GROUP)
    draw = hashlib.sha256(f"{seed}:{group}".encode()).digest()
    valid = draw[0] % GROUP
    test = (valid + 1 + draw[1] % (GROUP - 1)) % GROUP
    return "valid" if place == valid else "test" if place == test else "train"


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise CorpusError(f"There is no split {split!r}: a corpus has train, valid and test.")


# --- the standard library -------------------------------------------------------------------------------------------


def _python_corpus(seed: int, limit: int | None) -> Corpus:
    root = Path(sysconfig.get_path("stdlib"))
    skipped = {"site-packages", "dist-packages", "__pycache__"}
    files = sorted(p for p in root.rglob("*.py") if not skipped & set(p.relative_to(root).parts))

    @functools.cache  # 31 MB, read once for its digest and for its tokens
    def documents() -> list[tuple[str, str]]:
        found = []
        for file in files:
            try:
                text = file.read_bytes().decode()
            except (UnicodeDecodeError, OSError):
                continue  # a few of Python's own test files are broken on purpose
            if text:
                found.append((file.relative_to(root).as_posix(), text))
        return found

    def chosen(split: str) -> Iterator[tuple[str, str]]:
        return (one for number, one in enumerate(documents()) if assigned_split(number, seed) == split)

    def identity(split: str) -> dict[str, Any]:
        total = hashlib.sha256()
        for label, text in chosen(split):
            total.update(f"{label}\0{len(text)}\0".encode() + text.encode())
        return {"python": total.hexdigest()}

    return Corpus("python", lambda split: (Piece(text, True) for _, text in chosen(split)), identity, limit)


# --- files and folders ----------------------------------------------------------------------------------------------


def _path_corpus(name: str, path: Path, seed: int, errors: Errors, limit: int | None) -> Corpus:
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and _is_text(p))
    root = path.parent if path.is_file() else path
    if not files:
        raise CorpusError(
            f"The folder {str(path)!r} holds no text: files must end in .txt or .jsonl, or in .gz, .xz or .zst."
        )
    named = [(file, split) for file in files if (split := _split_in_name(file.relative_to(root)))]
    if path.is_file():
        named = []  # one file is the whole corpus, whatever it is called
    by_file = len(files) >= GROUP

    def pieces(split: str) -> Iterator[Piece]:
        if named:
            wanted = [file for file, its in named if its == split]
            if not wanted:
                raise CorpusError(
                    f"The corpus {str(path)!r} has no {split} split: no file or folder in it is called {split} "
                    f"(found {', '.join(sorted({its for _, its in named}))})."
                )
            for file in wanted:
                yield from _documents(file, errors)
            return
        number = 0
        for file in files:
            for piece in _documents(file, errors) if by_file else _recut(_documents(file, errors)):
                if assigned_split(number, seed) == split:
                    yield piece
                number += 0 if by_file else 1
            number += 1 if by_file else 0

    def identity(split: str) -> dict[str, Any]:
        chosen = [file for file, its in named if its == split] if named else files
        hashes = [(file.relative_to(root).as_posix() if not path.is_file() else "", _sha256(file)) for file in chosen]
        return {"files": hashes, "seed": None if named else seed, "errors": errors}

    return Corpus(name, pieces, identity, limit)


def _is_text(path: Path) -> bool:
    return path.suffix in _KINDS or path.suffix in _COMPRESSIONS


def _split_in_name(relative: Path) -> str | None:
    """train, valid or test, if a word of the file's path says so (`train.txt.xz`, `dev/part-1.jsonl`)."""
    for part in reversed(relative.parts):
        for word in re.split(r"[^a-z]+", part.lower()):
            if word in _SPLIT_NAMES:
                return _SPLIT_NAMES[word]
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _documents(path: Path, errors: Errors) -> Iterator[Piece]:
    suffixes = [s for s in path.suffixes if s not in _COMPRESSIONS]
    return _records(path, errors) if suffixes and suffixes[-1] == ".jsonl" else _whole_file(path, errors)


def _whole_file(path: Path, errors: Errors) -> Iterator[Piece]:
    """A text file as one document, in pieces that end with a line."""
    kept = ""
    for text in _decoded(path, errors):
        kept += text
        cut = kept.rfind("\n") + 1
        if cut:
            yield Piece(kept[:cut], False)
            kept = kept[cut:]
        elif len(kept) > 8 * BLOCK:  # a line without end
            yield Piece(kept, False)
            kept = ""
    yield Piece(kept, True)


def _records(path: Path, errors: Errors) -> Iterator[Piece]:
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
                yield Piece(found.encode(errors="replace").decode(), True)


def _with_end(texts: Iterator[str]) -> Iterator[str]:
    yield from texts
    yield "\n"


def _recut(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Documents of about `CUT` characters, cut at the end of a line where there is one."""
    for text, _ in pieces:
        start = 0
        while start < len(text):
            end = min(len(text), start + CUT)
            line_end = text.rfind("\n", start, end) + 1
            if end < len(text) and line_end > start:
                end = line_end
            yield Piece(text[start:end], True)
            start = end


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
        # a frame may ask for a window of up to 2 GB of memory: 128 MB is what `zstd` itself allows by default
        return zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(
            path.open("rb"), read_across_frames=True, closefd=True
        )
    return path.open("rb")
