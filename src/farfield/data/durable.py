"""Writing files so that they survive: on the disk before anyone is told, and whole or not there.

All of a run's lasting writes go through the functions here; the fault tests kill the process before and after each.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path


class DiskFullError(ValueError):
    """There was no room for a file; what was there before is untouched."""


def write_file(path: Path, data: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    try:
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise as_disk_full(error, path) from error


def write_with(write: Callable[[Path], None], path: Path) -> None:
    """Let someone else's function write a file; `sync_file` makes it lasting."""
    try:
        write(path)
    except Exception as error:
        raise as_disk_full(error, path) from error


def sync_file(path: Path) -> None:
    """Wait until a file that someone else wrote is on the disk."""
    try:
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    except OSError as error:
        raise as_disk_full(error, path) from error


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def rename(old: Path, new: Path) -> None:
    """Give a file or folder its final name, which it has wholly or not at all, and make that lasting."""
    os.rename(old, new)
    sync_folder(new.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put new contents in the place of a file: a reader, or a kill, finds the old or the new, never a mixture."""
    staged = path.with_name(f".{path.name}.staged")
    try:
        write_file(staged, data)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    rename(staged, path)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's contents; a pipe or a device is refused, because it need not end."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{str(path)!r} cannot be read: it is not a file.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def as_disk_full(error: Exception, path: Path) -> Exception:
    """The sentence for a full disk or a used-up quota; any other error as it is."""
    spelled = re.search(r"(?:\(os error |\[Errno )(\d+)", str(error))  # how safetensors and torch tell of one
    number = error.errno if isinstance(error, OSError) else int(spelled[1]) if spelled else None
    if number not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return error
    return DiskFullError(
        f"There is no room on the disk for {str(path)!r} ({os.strerror(number)}): "
        "make room and continue; what was saved before is intact."
    )
