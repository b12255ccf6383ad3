"""Tokens of a corpus in a memory-mapped file.

It is made once for a corpus, a split and a tokenizer, under a key that is the digest of the three, written to a
temporary name and renamed. Whoever reads it checks its digest first.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farfield.data.corpus import Corpus, CorpusError, Passage
from farfield.data.durable import cache_folder, private_folder, sha256_of, sync_folder, write_file
from farfield.data.tokenizer import end_token, tokenizer_digest, vocabulary_size
from farfield.data.tokenizing import Limited, is_plain
from farfield.reading import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock: what is left behind stays there
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
ENCODE_AT_ONCE = 1 << 22  # characters handed to the tokenizer together


@dataclass(frozen=True)
class Tokens:
    """The tokens of one split, memory-mapped."""

    ids: np.ndarray  # uint16 or uint32, never loaded as a whole
    sha256: str
    path: Path

    def __len__(self) -> int:
        return len(self.ids)


def tokenize(
    corpus: Corpus, split: str, tokenizer: Tokenizer, *, cache: Path | None = None, progress: bool = False
) -> Tokens:
    """The tokens of a split: from the cache, or made now, documents separated by the end token."""
    cache = cache_folder() if cache is None else cache
    key = hashlib.sha256(f"tokens 1 {corpus.digest(split)} {tokenizer_digest(tokenizer)}".encode()).hexdigest()
    folder = cache / "tokens" / key[:32]
    opened = _opened(folder)
    if opened is not None:
        return opened
    home = private_folder(folder.parent)
    _remove_abandoned(home)
    staged = home / f".{folder.name}.{secrets.token_hex(8)}"
    staged.mkdir(mode=0o700)
    lock = _held(staged)
    try:
        _write_tokens(staged, corpus, split, tokenizer, progress)
        (staged / LOCK).unlink()
        sync_folder(staged)
        if folder.exists() and _opened(folder) is None:
            shutil.rmtree(folder)  # half a file from a full disk, or damaged since
        try:
            os.rename(staged, folder)
        except OSError:
            if _opened(folder) is None:
                raise
        sync_folder(home)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        os.close(lock)
    made = _opened(folder)
    assert made is not None
    return made


def _held(staged: Path) -> int:
    """A lock in a folder that is being made; the kernel lets go of it with the process."""
    handle = os.open(staged / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return handle


def _remove_abandoned(home: Path) -> None:
    """Remove folders that nobody makes any more: their processes were killed."""
    for staged in home.glob(".*") if fcntl is not None else ():
        try:
            handle = os.open(staged / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue  # just begun, or just finished
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(staged, ignore_errors=True)
        except OSError:
            pass
        finally:
            os.close(handle)


def _opened(folder: Path) -> Tokens | None:
    """The tokens in a folder, if they are what was written."""
    try:
        about = read_json(folder / "about.json")
        path = folder / "tokens.bin"
        dtype = {"uint16": np.uint16, "uint32": np.uint32}[about["dtype"]]
        if path.stat().st_size != about["count"] * np.dtype(dtype).itemsize:
            return None
        state = path.stat()
        if _digest(path, state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns) != about["sha256"]:
            return None
        return Tokens(np.memmap(path, dtype=dtype, mode="r"), about["sha256"], path)
    except (OSError, ValueError, KeyError, TypeError):
        return None


@functools.lru_cache(maxsize=64)  # as long as it is the same file, one look at it is enough for a process
def _digest(path: Path, size: int, inode: int, written: int, changed: int) -> str:
    return sha256_of(path)


def _write_tokens(folder: Path, corpus: Corpus, split: str, tokenizer: Tokenizer, progress: bool) -> None:
    dtype = np.dtype(np.uint16 if vocabulary_size(tokenizer) <= 1 << 16 else np.uint32)
    total, count = hashlib.sha256(), 0
    with (folder / "tokens.bin").open("wb") as file:
        for ids in _encoded(_watched(corpus, split, progress), tokenizer):
            data = np.asarray(ids, dtype=dtype).tobytes()
            file.write(data)
            total.update(data)
            count += len(ids)
        file.flush()
        os.fsync(file.fileno())
    if not count:
        raise CorpusError(f"The {split} split of the corpus {corpus.name!r} is empty.")
    about = {"dtype": dtype.name, "count": count, "sha256": total.hexdigest(), "corpus": corpus.name, "split": split}
    write_file(folder / "about.json", json.dumps(about).encode())


def _encoded(passages: Iterator[Passage], tokenizer: Tokenizer) -> Iterator[list[int]]:
    """The tokens of each passage, with the end token behind a document's last."""
    if is_plain(tokenizer):

        def encode(texts: list[str]) -> list[list[int]]:
            return [each.ids for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]

        yield from _in_lots(passages, encode, end_token(tokenizer))
    else:
        with contextlib.closing(Limited(tokenizer.to_str(), "of this text")) as limited:
            yield from _in_lots(passages, limited, end_token(tokenizer))


def _in_lots(
    passages: Iterator[Passage], encode: Callable[[list[str]], list[Any]], end: tuple[str, int] | None
) -> Iterator[list[int]]:
    waiting: list[Passage] = []

    def flush() -> Iterator[list[int]]:
        for passage, ids in zip(waiting, encode([passage.text for passage in waiting]), strict=True):
            yield [*ids, end[1]] if end and passage.last else ids
        waiting.clear()

    size = 0
    for passage in passages:
        waiting.append(passage)
        size += len(passage.text)
        if size >= ENCODE_AT_ONCE:
            yield from flush()
            size = 0
    yield from flush()


def _watched(corpus: Corpus, split: str, progress: bool) -> Iterator[Passage]:
    """The passages of a split, with a bar that counts the text as it goes by; empty text is left out."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not (progress and console.is_terminal), transient=True) as bar:
        task = bar.add_task(f"tokens of the {split} split", total=None)
        empty = True
        for passage in corpus.passages(split):
            bar.advance(task, len(passage.text))
            empty = empty and not passage.text
            if not empty:
                yield passage
