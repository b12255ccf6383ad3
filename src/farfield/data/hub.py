"""Data sets of the Hugging Face hub as corpora, streamed: nothing is stored but the tokens.

Needs the extra `hub` (the package `datasets`) and, the first time, the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from farfield.data.corpus import Corpus, CorpusError, FilesRead, Passage, assigned_split


@dataclass(frozen=True)
class HubSource:
    """One data set: its id, its configuration, and whether its records are the lines of one long text."""

    path: str
    config: str | None = None
    lines: bool = False


# The paper's four data sets, by the names it gives them. Where there are two, documents alternate.
NAMED: dict[str, tuple[HubSource, ...]] = {
    "wikitext-103": (HubSource("Salesforce/wikitext", "wikitext-103-raw-v1", lines=True),),
    "books": (HubSource("emozilla/pg19"),),
    "github": (HubSource("timaeus/pile-github"),),
    "wikibook": (HubSource("wikimedia/wikipedia", "20231101.en"), HubSource("emozilla/pg19")),
}

_THEIR_NAME = {"train": ("train",), "valid": ("validation", "valid", "dev"), "test": ("test",)}
_TEXT_FIELDS = ("text", "content", "code")


def open_hub(name: str, *, split_seed: int, limit: int | None) -> Corpus:
    """The corpus `wikitext-103`, `books`, `github`, `wikibook`, or `hub:OWNER/NAME[:CONFIG]`."""
    if name in NAMED:
        sources = NAMED[name]
    else:
        path, _, config = name.removeprefix("hub:").partition(":")
        if not path:
            raise CorpusError(f"{name!r} names no data set; write hub:OWNER/NAME or hub:OWNER/NAME:CONFIG.")
        sources = (HubSource(path, config or None),)

    def passages(split: str, _: FilesRead) -> Iterator[Passage]:
        streams = [(source, _texts(source, split, split_seed)) for source in sources]
        while streams:
            for source, stream in list(streams):
                text = next(stream, None)
                if text is None:
                    streams.remove((source, stream))
                elif text:
                    yield Passage(text, not source.lines)

    def identity(split: str, _: FilesRead) -> dict[str, Any]:
        # what the hub calls it: the tokens themselves are hashed once they are made
        return {"hub": [(source.path, source.config) for source in sources], "seed": split_seed}

    return Corpus(name, passages, identity, limit)


def _texts(source: HubSource, split: str, seed: int) -> Iterator[str]:
    try:
        import datasets
    except ImportError:
        raise CorpusError(
            f"The corpus {source.path!r} comes from the Hugging Face hub and needs the package datasets: "
            "pip install 'farfield[hub]'."
        ) from None
    try:
        available = datasets.get_dataset_split_names(source.path, source.config)
        theirs = next((their for their in _THEIR_NAME[split] if their in available), None)
        # A data set that has only a train split is cut by the seed.
        cut = not any(their in available for ours in ("valid", "test") for their in _THEIR_NAME[ours])
        if theirs is None and not cut:
            raise CorpusError(f"The data set {source.path!r} has no {split} split (it has {', '.join(available)}).")
        stream = datasets.load_dataset(source.path, source.config, split=theirs or available[0], streaming=True)
        for number, record in enumerate(stream):
            if cut and assigned_split(number, seed) != split:
                continue
            field = next((field for field in _TEXT_FIELDS if isinstance(record.get(field), str)), None)
            if field is None:
                raise CorpusError(
                    f"The data set {source.path!r} has no text: its fields are {', '.join(record)}, "
                    f"and one of {', '.join(_TEXT_FIELDS)} is needed."
                )
            yield record[field].encode(errors="replace").decode()
    except CorpusError:
        raise
    except Exception as error:  # whatever the network, the hub or a reader of files raises
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CorpusError(
            f"The data set {source.path!r} cannot be read from the Hugging Face hub ({reason}); "
            "check the name and the network, or give the path of a folder of text."
        ) from None
