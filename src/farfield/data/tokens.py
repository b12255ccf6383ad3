"""Tokens of a corpus in a memory-mapped file.

It is made once for a corpus, a split and a tokenizer, under a key that is the digest of the three, written to a
temporary name and renamed. The key is that of the text as it was read: files that change meanwhile cannot get their
tokens under another's key. Whoever reads it checks its digest first.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farfield.data.corpus import Corpus, CorpusError, FilesRead, Passage
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
    files = FilesRead()

    def place() -> Path:
        key = f"tokens 1 {corpus.digest(split, files)} {tokenizer_digest(tokenizer)}"
        return cache / "tokens" / hashlib.sha256(key.encode()).hexdigest()[:32]

    folder = place()
    opened = _open(folder)
    if opened is not None:
        return opened
    home = private_folder(folder.parent)
    _remove_abandoned(home)
    staged = home / f".{folder.name}.{secrets.token_hex(8)}"
    staged.mkdir(mode=0o700)
    lock = _lock(staged)
    try:
        _write_tokens(staged, corpus, split, tokenizer, progress, files)
        folder = place()  # of what was read just now
        (staged / LOCK).unlink()
        sync_folder(staged)
        if folder.exists() and _open(folder) is None:
            shutil.rmtree(folder)  # half a file from a full disk, or damaged since
        try:
            os.rename(staged, folder)
        except OSError:
            if _open(folder) is None:
                raise
        sync_folder(home)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        os.close(lock)
    made = _open(folder)
    assert made is not None
    return made


def _lock(staged: Path) -> int:
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


def _open(folder: Path) -> Tokens | None:
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


def _write_tokens(
    folder: Path, corpus: Corpus, split: str, tokenizer: Tokenizer, progress: bool, files: FilesRead
) -> None:
    dtype = np.dtype(np.uint16 if vocabulary_size(tokenizer) <= 1 << 16 else np.uint32)
    total, count = hashlib.sha256(), 0
    with (folder / "tokens.bin").open("wb") as file:
        for ids in _encode(_watch(corpus, split, progress, files), tokenizer):
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


def _encode(passages: Iterator[Passage], tokenizer: Tokenizer) -> Iterator[Sequence[int] | np.ndarray]:
    """The tokens of each passage, with the end token behind a document's last."""
    end, plain = end_token(tokenizer), is_plain(tokenizer)
    limited = Limited(tokenizer.to_str(), "of this text")  # starts its process when a text comes

    def encode(texts: list[str]) -> Sequence[Sequence[int] | np.ndarray]:
        if plain:
            return [each.ids for each in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        return limited(texts)

    with contextlib.closing(limited):
        for lot in _lots(passages):
            for passage, ids in zip(lot, encode([passage.text for passage in lot]), strict=True):
                yield [*ids, end[1]] if end and passage.last else ids


def _lots(passages: Iterator[Passage]) -> Iterator[list[Passage]]:
    """The passages some at a time, about `ENCODE_AT_ONCE` characters together."""
    lot: list[Passage] = []
    size = 0
    for passage in passages:
        lot.append(passage)
        size += len(passage.text)
        if size >= ENCODE_AT_ONCE:
            yield lot
            lot, size = [], 0
    yield lot


def _watch(corpus: Corpus, split: str, progress: bool, files: FilesRead) -> Iterator[Passage]:
    """The passages of a split, with a bar that counts the text as it goes by; empty text is left out."""
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), DownloadColumn(), TransferSpeedColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not (progress and console.is_terminal), transient=True) as bar:
        task = bar.add_task(f"tokens of the {split} split", total=None)
        empty = True
        for passage in corpus.passages(split, files):
            bar.advance(task, len(passage.text))
            empty = empty and not passage.text
            if not empty:
                yield passage
