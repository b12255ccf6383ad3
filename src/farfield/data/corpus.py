"""Corpora: where the text of a run comes from, read passage by passage and never trusted.

A corpus is named in one of three ways:

* `python`: the source of the standard library of the running Python, which is on every machine;
* a file or a folder of text by its path: `.txt` or `.jsonl`, plain or compressed (`.gz`, `.xz`, `.zst`);
* a data set of the Hugging Face hub: `wikitext-103`, `books`, `github`, `wikibook`, or `hub:OWNER/NAME[:CONFIG]`.

Each has the splits train, valid and test: by the names of the files (or of the data set's own splits), otherwise cut
by a seed, where out of every 20 documents one goes to valid and one to test.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farfield.data.durable import sha256_of
from farfield.data.textfiles import CorpusError, Errors, FilesRead, Passage, documents, is_text

SPLITS = ("train", "valid", "test")

CUT = 4096  # characters of a document, where text that names no split is cut by a seed
GROUP = 20  # of so many documents one is for valid and one for test

_SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}


@dataclass(frozen=True)
class Corpus:
    """Text in three splits, read passage by passage; `open_corpus` makes one from a name or a path."""

    name: str
    _passages: Callable[[str, FilesRead], Iterator[Passage]]
    _identity: Callable[[str, FilesRead], dict[str, Any]]
    limit: int | None = None
    division: str = ""  # which files went where, in a sentence, if their names say so

    def passages(self, split: str, files: FilesRead | None = None) -> Iterator[Passage]:
        """The text of a split; a limit holds for train, and a tenth of it for valid and test."""
        _check_split(split)
        left = self._limit_of(split)
        for text, last in self._passages(split, files or FilesRead()):
            if left is None:
                yield Passage(text, last)
                continue
            size = len(text.encode())
            if size >= left:
                yield Passage(text.encode()[:left].decode(errors="ignore"), True)
                return
            left -= size
            yield Passage(text, last)

    def digest(self, split: str, files: FilesRead | None = None) -> str:
        """The sha256 of everything that decides the text of a split; given `files`, of what was read with these."""
        _check_split(split)
        identity = self._identity(split, files or FilesRead())
        identity |= {"split": split, "limit": self._limit_of(split), "rule": 1}
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


def by_seed(documents: Iterable[Iterable[Passage]], split: str, seed: int) -> Iterator[Passage]:
    """The documents that a seed gives to a split."""
    for number, document in enumerate(documents):
        if assigned_split(number, seed) == split:
            yield from document


def _python_corpus(seed: int, limit: int | None) -> Corpus:
    root = Path(sysconfig.get_path("stdlib"))
    skipped = {"site-packages", "dist-packages", "__pycache__"}
    files = sorted(p for p in root.rglob("*.py") if not skipped & set(p.relative_to(root).parts))

    @functools.cache  # 31 MB, read once for its digest and for its tokens
    def sources() -> list[tuple[str, str]]:
        read = []
        for file in files:
            try:
                text = file.read_bytes().decode()
            except (UnicodeDecodeError, OSError):
                continue  # a few of Python's own test files are broken on purpose
            if text:
                read.append((file.relative_to(root).as_posix(), text))
        return read

    def identity(split: str, _: FilesRead) -> dict[str, Any]:
        total = hashlib.sha256()
        for number, (label, text) in enumerate(sources()):
            if assigned_split(number, seed) == split:
                total.update(f"{label}\0{len(text)}\0".encode() + text.encode())
        return {"python": total.hexdigest()}

    def passages(split: str, _: FilesRead) -> Iterator[Passage]:
        return by_seed(([Passage(text, True)] for _, text in sources()), split, seed)

    return Corpus("python", passages, identity, limit)


def _path_corpus(name: str, path: Path, seed: int, errors: Errors, limit: int | None) -> Corpus:
    single = path.is_file()
    files = [path] if single else sorted(p for p in path.rglob("*") if p.is_file() and is_text(p))
    if not files:
        raise CorpusError(
            f"The folder {str(path)!r} holds no text: files must end in .txt or .jsonl, or in .gz, .xz or .zst."
        )
    labels = {file: "" if single else file.relative_to(path).as_posix() for file in files}
    # one file is the whole corpus, whatever it is called
    named = {file: split for file in files if not single and (split := _split_in_name(labels[file]))}

    def chosen(split: str) -> list[Path]:
        return [file for file, its in named.items() if its == split] if named else files

    def passages(split: str, files_read: FilesRead) -> Iterator[Passage]:
        if not chosen(split):
            raise CorpusError(
                f"The corpus {str(path)!r} has no {split} split: no file or folder in it is called {split} "
                f"(found {', '.join(sorted(set(named.values())))})."
            )
        read = (documents(file, errors, files_read) for file in chosen(split))
        if named:
            return itertools.chain.from_iterable(read)
        if len(files) < GROUP:
            read = (iter([part]) for document in read for part in _recut(document))
        return by_seed(read, split, seed)

    def identity(split: str, files_read: FilesRead) -> dict[str, Any]:
        read = files_read.files
        hashes = [(labels[file], read[file].digest() if file in read else sha256_of(file)) for file in chosen(split)]
        return {"files": hashes, "seed": None if named else seed, "errors": errors}

    return Corpus(name, passages, identity, limit, _division(path, labels, named))


def _division(path: Path, labels: dict[Path, str], named: dict[Path, str]) -> str:
    """Which files went where."""
    if not named:
        return ""
    where = {split: [labels[file] for file, its in named.items() if its == split] for split in SPLITS}
    where["not read"] = [label for file, label in labels.items() if file not in named]
    parts = [f"{split}: {_list(files)}" for split, files in where.items() if files]
    return f"The files in {str(path)!r}, by their names: {'; '.join(parts)}."


def _list(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _split_in_name(label: str) -> str | None:
    """train, valid or test, if that is the very name of the file, of a part between dots, or of its folder.

    `train.txt.xz`, `wiki.valid.txt`, `dev/part-1.jsonl`, and numbered parts: `train-00001-of-00004.jsonl`.
    """
    *folders, file = label.lower().split("/")
    parts = [re.sub(r"[-_]\d+([-_]of[-_]\d+)?$", "", part) for part in file.split(".")]
    return next((_SPLIT_NAMES[part] for part in (*parts, *reversed(folders)) if part in _SPLIT_NAMES), None)


def _recut(passages: Iterator[Passage]) -> Iterator[Passage]:
    """Documents of about `CUT` characters, cut at the end of a line where there is one."""
    for text, _ in passages:
        start = 0
        while start < len(text):
            end = min(len(text), start + CUT)
            line_end = text.rfind("\n", start, end) + 1
            if end < len(text) and line_end > start:
                end = line_end
            yield Passage(text[start:end], True)
            start = end
