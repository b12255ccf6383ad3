"""What strangers do to a model folder: changes that the attacks on folders, on weights and on runs share."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

Change = Callable[[Path], object]
WEIGHTS = "model.safetensors"
DEEP = b"[" * 100_000


def written(name: str, data: bytes) -> Change:
    """Another file in the place of this one."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(data)

    return change


def shortened(name: str) -> Change:
    """Half of a file."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def pipe(name: str) -> Change:
    """A pipe that nobody writes to."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return change


def link(name: str, target: str) -> Change:
    """A link to something else."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return change


def hollow(name: str, size: int) -> Change:
    """A file of so many bytes, none of which is on the disk."""

    def change(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).touch()
        os.truncate(folder / name, size)

    return change


def reconfigured(change: Callable[[dict[str, Any]], object]) -> Change:
    """The configuration, changed."""

    def both(folder: Path) -> None:
        fields = json.loads((folder / "config.json").read_text())
        change(fields)
        (folder / "config.json").write_text(json.dumps(fields))

    return both


def turned(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """The weights, changed."""

    def both(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})

    return both


def unnoted(change: Change) -> Change:
    """The same in a folder that notes no digest: one that was not made by `farfield train`."""

    def both(folder: Path) -> None:
        change(folder)
        (folder / "finished.json").unlink()

    return both


def safetensors(header: object, data: bytes = bytes(64), size: int | None = None) -> Change:
    """Weights with this header, in front of this data."""
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return written(WEIGHTS, (len(head) if size is None else size).to_bytes(8, "little") + head + data)
