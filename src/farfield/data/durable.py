"""Writing files so that they survive: on the disk before anyone is told, and whole or not there.

All of a run's lasting writes go through the functions here; the fault tests kill the process before and after each. A
folder may have been prepared by someone else, so no link is followed and no name that can be guessed is written to.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

_STAGED = re.compile(r"\..+\.[0-9a-f]{16}\.staged")
HOLLOW = 1 << 30  # bytes from which on holes in a file are looked for
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class DiskFullError(ValueError):
    """There was no room for a file; what was there before is untouched."""


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise as_disk_full(error, path) from error


def append_line(path: Path, line: str) -> None:
    """Add a line to a file that is not a link."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o666), "a") as file:
        file.write(line + "\n")


def open_own(path: Path) -> int:
    """Open a file for reading and writing, made if it is not there; a link or anything else but a file is refused."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | _NO_LINK, 0o666)
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(handle)
        raise OSError(errno.ELOOP, "It is not a plain file", str(path))
    return handle


def staged_name(path: Path) -> Path:
    """A name beside a file that nobody can have guessed, under which to write it."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.staged")


def remove_staged(folder: Path) -> None:
    """Remove what killed processes left under such names, in a folder that is locked."""
    for entry in folder.iterdir():
        if _STAGED.fullmatch(entry.name):
            remove(entry)


def remove(path: Path) -> None:
    """Remove a file, a folder with all that is in it, or a link but not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def replace_files(folder: Path, write: Callable[[Path], object]) -> None:
    """Let someone else's function write files into a folder of ours, each of which is then put into its place."""
    staged = staged_name(folder / "files")
    staged.mkdir(mode=0o700)
    try:
        write(staged)
        for path in sorted(staged.iterdir()):
            os.rename(path, folder / path.name)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def cache_folder() -> Path:
    """Where tokens and tokenizers are kept: $FARFIELD_CACHE, or farfield in the user's cache folder."""
    if chosen := os.environ.get("FARFIELD_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "farfield"


def private_folder(path: Path) -> Path:
    """A folder that only its owner may write to; made if it is not there."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if hasattr(os, "getuid"):
        about = path.stat()
        if about.st_uid != os.getuid():
            raise ValueError(
                f"The folder {str(path)!r} belongs to another user, who could change what is read from it: "
                "choose one of your own with FARFIELD_CACHE."
            )
        if about.st_mode & 0o022:
            path.chmod(about.st_mode & 0o7755)
    return path


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
    staged = staged_name(path)
    try:
        write_file(staged, data)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    rename(staged, path)


def sha256_of(path: Path) -> str:
    """The sha256 of a file's contents; a pipe or a device, which need not end, or nothing but holes is refused."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{str(path)!r} cannot be read: it is not a file.")
    with path.open("rb") as file:
        if _is_hollow(file.fileno()):
            raise ValueError(f"{str(path)!r} is not read: of its {path.stat().st_size:,} bytes hardly any are there.")
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_hollow(handle: int) -> bool:
    """Whether a large file takes less than a hundredth of its size on the disk, because the rest was never written."""
    about = os.fstat(handle)
    if about.st_size < HOLLOW or not hasattr(os, "SEEK_HOLE") or 51_200 * about.st_blocks > about.st_size:
        return False
    try:  # some file systems do not tell the blocks; those that do also tell where the holes are
        hole = os.lseek(handle, 0, os.SEEK_HOLE)
    except OSError:
        return False
    os.lseek(handle, 0, os.SEEK_SET)
    return hole < about.st_size


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
