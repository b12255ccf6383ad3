"""The record of a cell: a value that is written when its model is measured, and read by all that tells of a study.

Records are files, one for each cell in `records/`, or all in `records.zip`; they may come from elsewhere, so one that
does not fit its cell, or whose parts do not fit together, is not believed.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, model_validator

from farfield.data import durable
from farfield.measure.predictions import Head, joint_verdict, mean_leak
from farfield.measure.rise import Extrapolation
from farfield.measure.values import (
    Change,
    Count,
    Length,
    Name,
    Number,
    Positive,
    Share,
    Timing,
    Value,
    Verdict,
    WithError,
)
from farfield.reading import MOST_BYTES, parse_json, read_bytes
from farfield.study.plan import Cell

FOLDER, ARCHIVE = "records", "records.zip"
SPEED = "speed"
VERSION: Literal[4] = 4  # of a record
Protocol = Literal["non-overlapping", "sliding"]
PLAIN: Protocol = "non-overlapping"
SLIDING: Protocol = "sliding"
AS_TRAINED, CUT = "as trained", "cut"  # two of the tails
Losses = list[dict[Literal["step", "loss", "eval_loss", "valid_loss"], Number]]


class Cut(Value):
    """Heads cut at the training length: perplexity at the longest length, and its change against 1x."""

    perplexity: Number | None = None
    change: Change


class Intervention(Value):
    """Another tail on the same model, or its own ("as trained"): its series, perplexity, and change against 1x."""

    tail: Name
    leak: Share | None
    verdict: Verdict
    perplexity: Number | None = None
    change: Change


class Network(Value):
    """What was measured of one network, trained or not, each with its own parameters."""

    extrapolation: Extrapolation
    damage: WithError
    cut: Cut
    interventions: list[Intervention]
    heads: list[Head]

    @property
    def rise(self) -> float:
        """The rise of perplexity at the longest length."""
        return self.extrapolation.lengths[-1].rise

    @property
    def leak(self) -> float | None:
        """The mean over heads of the share of the longest row that lies beyond the training length."""
        return mean_leak(self.heads)

    @property
    def verdict(self) -> Verdict:
        """The verdict on all heads."""
        return joint_verdict(head.verdict for head in self.heads)


class Control(Network):
    """The same network before its first update, on fewer segments and lengths."""

    segments: Length
    lengths: list[Length]


class PaperCurve(Value):
    """The paper's view of a receptive field: the share of the row by epsilon."""

    field: list[Number]
    epsilon: list[Number]


class Receptive(Value):
    """The share of attention at each distance, the mean over layers, heads and queries."""

    length: Length
    burn_in: Count
    queries: Count
    mass: list[Number]
    paper: PaperCurve


class TruncationRecord(Value):
    """delta(i, j) and its bounds by window, median over heads and queries."""

    length: Length
    windows: list[Length]
    delta: list[Number]
    lost: list[Number]
    sharper: list[Number]
    paper: list[Number]


class TestText(Value):
    """The text on which a model was measured."""

    tokens: Length
    segments: Length
    segment: Length


class Seconds(Value):
    """What a record cost, by the clock and by the processor."""

    training: Number
    measuring: Number
    processor_training: Number
    processor_measuring: Number


class Machine(Value):
    """Where something was measured."""

    processor: Name = "unknown"
    device: Name = "unknown"
    cores: Count | None = None
    threads: Count | None = None
    torch: Name = "unknown"
    python: Name = "unknown"

    @property
    def text(self) -> str:
        return f"{self.processor}, {self.cores} cores, {self.device}, torch {self.torch}, Python {self.python}"


class Record(Cell, Network):
    """Everything that was measured of one model.

    Attributes:
        blocks: By length, the summed losses of the same blocks of text.
        tokens_seen: At 1x, the loss by number of tokens seen.
        training: The loss by step.
    """

    version: Literal[4] = VERSION
    training_length: Length
    lengths: Annotated[list[Length], Field(min_length=1)]
    perplexity: dict[Protocol, list[Positive | None]]
    stderr: list[Number | None]
    blocks: list[list[Number]]
    test: TestText
    tokens_seen: list[dict[str, Number]]
    control: Control
    receptive: Receptive
    truncation: TruncationRecord
    parameters: Count
    training: Losses
    seconds: Seconds
    machine: Machine

    @model_validator(mode="after")
    def _sizes(self) -> Record:
        count = len(self.lengths)
        plain = self.perplexity.get(PLAIN, [])
        columns: list[list[Any]] = [plain, self.perplexity.get(SLIDING, []), self.stderr, self.blocks]
        columns.append(self.extrapolation.lengths)
        heads = self.heads + self.control.heads
        curves = [self.truncation.delta, self.truncation.lost, self.truncation.sharper, self.truncation.paper]
        wrong = [
            any(len(column) != count for column in columns),
            not plain or plain[0] is None or plain[-1] is None,
            sorted(set(self.lengths)) != self.lengths,
            len({len(block) for block in self.blocks}) > 1,
            self.training_length != self.extrapolation.training_length,
            len(self.control.heads) != len(self.heads),
            len({frozenset(by) for head in heads for by in (head.erf, head.trf, head.trf_of_rows)}) > 1,
            any(len(curve) != len(self.truncation.windows) for curve in curves),
            len(self.receptive.paper.field) != len(self.receptive.paper.epsilon),
            any("step" not in line for line in self.training),
        ]
        if any(wrong):
            raise ValueError("the parts of the record do not fit together")
        return self


class SpeedRecord(Cell):
    """What each way of inference costs with the model of one cell.

    Attributes:
        cell: The key of that cell.
        length: Tokens of one pass of full-length inference.
    """

    version: Count = VERSION
    cell: Name
    model: Name
    length: Length
    relative: dict[Name, Positive]
    timings: Annotated[list[Timing], Field(min_length=1)]
    machine: Machine

    @cached_property
    def by_way(self) -> dict[str, list[Timing]]:
        """The timings of each way of inference, by window."""
        ways = dict.fromkeys(timing.protocol for timing in self.timings)
        rows = sorted(self.timings, key=lambda timing: timing.window or 0)
        return {way: [timing for timing in rows if timing.protocol == way] for way in ways}


Kind = TypeVar("Kind", Record, SpeedRecord)


def record_path(out: Path, key: str) -> Path:
    return out / FOLDER / f"{key}.json"


def write_record(out: Path, key: str, record: Record | SpeedRecord) -> None:
    """Leave a record, whole or not at all."""
    path = record_path(out, key)
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.replace_file(path, record.model_dump_json().encode())


def read_record(out: Path, cell: Cell) -> Record | None:
    """What was measured of a cell, if it is finished."""
    record = _read(out, cell.key, Record)
    return record if record is not None and record.key == cell.key else None


def read_speed(out: Path) -> SpeedRecord | None:
    """What each way of inference cost, if it was measured."""
    return _read(out, SPEED, SpeedRecord)


def _read(out: Path, key: str, kind: type[Kind]) -> Kind | None:
    """A record from the folder, or from the archive if it is not there; None if there is none that fits."""
    path = record_path(out, key)
    try:
        data = read_bytes(path) if path.exists() else _unpack(out, path.name)[path.name]
        return kind.model_validate(parse_json(data, exact=True))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _unpack(out: Path, *names: str) -> dict[str, bytes]:
    """The records of these names in the archive, or all of them.

    Raises:
        ValueError: If there is no archive, or it cannot be read.
        KeyError: If one is not in there.
    """
    records = {}
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(out / ARCHIVE))) as archive:
            for name in names or archive.namelist():
                with archive.open(name) as file:
                    records[name] = file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # RuntimeError: it wants a password
        raise ValueError(f"{str(out / ARCHIVE)!r} cannot be read: {error}.") from None
    if any(len(data) > MOST_BYTES for data in records.values()):
        raise ValueError(f"{str(out / ARCHIVE)!r} holds a file of more than {MOST_BYTES:,} bytes.")
    return records


def pack(out: Path) -> Path:
    """Put all records of a folder into `records.zip`, beside those that are in it, and take the folder away.

    A record in the folder is newer than one of its name in the archive. The archive is the old or the new one at every
    moment, and a file is removed only when it is in there as it stands.
    """
    paths = sorted((out / FOLDER).glob("*.json"))
    records = _unpack(out) if (out / ARCHIVE).exists() else {}
    records |= {path.name: read_bytes(path) for path in paths}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(records):  # without dates: the same records give the same file
            about = zipfile.ZipInfo(name)
            about.external_attr = 0o644 << 16
            archive.writestr(about, records[name], zipfile.ZIP_DEFLATED, 9)
    durable.replace_file(out / ARCHIVE, packed.getvalue())
    for path in paths:
        if read_bytes(path) == records[path.name]:
            path.unlink()
    with suppress(OSError):  # another process has just left a record there
        (out / FOLDER).rmdir()
    return out / ARCHIVE
