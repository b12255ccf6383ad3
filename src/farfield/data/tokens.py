"""Tokens of a corpus in a memory-mapped file, and the batches that a run takes from them.

The file is made once for a corpus, a split and a tokenizer, under a key that is the digest of the three, written to a
temporary name and renamed. A batch is a pure function of the seed and the number of the sample: nothing has to be
remembered for a resumed run to see exactly what an undisturbed one sees, and how many processes share the work does
not matter.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from farfield.data.corpus import Corpus, CorpusError, Passage
from farfield.data.durable import sha256_of, sync_folder, write_file
from farfield.data.tokenizer import end_token, tokenizer_digest, vocabulary_size

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ENCODE_AT_ONCE = 1 << 22  # characters handed to the tokenizer together


@dataclass(frozen=True)
class Tokens:
    """The tokens of one split, memory-mapped."""

    ids: np.ndarray  # uint16 or uint32, never loaded as a whole
    sha256: str
    path: Path

    def __len__(self) -> int:
        return len(self.ids)

    def verify(self) -> bool:
        """Whether the file still holds what was written."""
        return sha256_of(self.path) == self.sha256


def cache_folder() -> Path:
    """Where tokens and tokenizers are kept: $FARFIELD_CACHE, or farfield in the user's cache folder."""
    if chosen := os.environ.get("FARFIELD_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "farfield"


def tokenize(
    corpus: Corpus, split: str, tokenizer: Tokenizer, *, cache: Path | None = None, progress: bool = False
) -> Tokens:
    """The tokens of a split: from the cache, or made now, documents separated by the end token."""
    cache = cache_folder() if cache is None else cache
    key = hashlib.sha256(f"tokens 1 {corpus.digest(split)} {tokenizer_digest(tokenizer)}".encode()).hexdigest()
    folder = cache / "tokens" / key[:32]
    found = _opened(folder)
    if found is not None:
        return found
    staged = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    try:
        _write_tokens(staged, corpus, split, tokenizer, progress)
        sync_folder(staged)
        if folder.exists() and _opened(folder) is None:
            shutil.rmtree(folder)  # half a file from a full disk, or damaged since
        try:
            os.rename(staged, folder)
        except OSError:
            if _opened(folder) is None:
                raise
        sync_folder(folder.parent)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    made = _opened(folder)
    assert made is not None
    return made


def _opened(folder: Path) -> Tokens | None:
    try:
        about = json.loads((folder / "about.json").read_text())
        path = folder / "tokens.bin"
        dtype = {"uint16": np.uint16, "uint32": np.uint32}[about["dtype"]]
        if path.stat().st_size != about["count"] * np.dtype(dtype).itemsize:
            return None
        return Tokens(np.memmap(path, dtype=dtype, mode="r"), about["sha256"], path)
    except (OSError, ValueError, KeyError, TypeError):
        return None


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
    end = end_token(tokenizer)
    waiting: list[Passage] = []

    def flush() -> Iterator[list[int]]:
        encoded = tokenizer.encode_batch_fast([passage.text for passage in waiting], add_special_tokens=False)
        for passage, encoding in zip(waiting, encoded, strict=True):
            yield encoding.ids + ([end[1]] if end and passage.last else [])
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


class Samples:
    """Sample number s of a run: `length` tokens, and the token that follows each, chosen by the seed alone.

    Every epoch cuts the text at another phase into pieces that do not overlap, and takes them in another order.
    """

    def __init__(self, tokens: Tokens, length: int, seed: int, what: str = "train") -> None:
        if len(tokens) < length + 1:
            raise CorpusError(
                f"The {what} split has {len(tokens)} tokens; a length of {length} needs at least {length + 1}."
            )
        self.tokens, self.length, self.seed = tokens, length, seed
        self.pieces = max(1, (len(tokens) - length) // length)
        self._epoch = functools.lru_cache(maxsize=2)(self._draw_epoch)

    def _draw_epoch(self, epoch: int) -> tuple[int, np.ndarray]:
        draw = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        room = len(self.tokens) - 1 - self.pieces * self.length
        return int(draw.integers(0, min(room, self.length - 1) + 1)), draw.permutation(self.pieces)

    def __getitem__(self, number: int) -> dict[str, np.ndarray]:
        epoch, place = divmod(number, self.pieces)
        phase, order = self._epoch(epoch)
        start = phase + int(order[place]) * self.length
        window = self.tokens.ids[start : start + self.length + 1].astype(np.int64)
        return {"input_ids": window[:-1], "shift_labels": window[1:], "sample_seeds": _seed_of(self.seed, number)}


def _seed_of(seed: int, number: int) -> np.ndarray:
    """What the dropout of one sample is drawn from: a function of the run's seed and the sample's number."""
    mixed = hashlib.sha256(f"dropout {seed} {number}".encode()).digest()
    return np.array(int.from_bytes(mixed[:8], "little") >> 2, dtype=np.int64)


def numbers_of(step: int, micro_step: int, rank: int, *, batch: int, micro_batch: int, world: int) -> range:
    """The numbers of the samples that a process takes at a step: together the processes take step*batch and on."""
    start = step * batch + (micro_step * world + rank) * micro_batch
    return range(start, start + micro_batch)
