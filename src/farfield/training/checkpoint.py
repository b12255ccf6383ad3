"""Checkpoints that can be trusted, and the lock on a run folder.

A checkpoint is a folder `RUN/checkpoints/step-00000040`. It is staged under another name, every file is synced, a
manifest with the size and sha256 of each is written last, and only then the folder gets its name. So whatever has the
name was complete once; and whether it still is, the manifest tells: a file that is missing, shortened, changed by a
single bit, or not in the manifest makes the checkpoint damaged. Damaged ones are never loaded and never deleted: they
are set aside under another name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from farfield.data import durable
from farfield.data.durable import as_disk_full
from farfield.reading import UnreadableError, parse_json, read_bytes

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock: a run folder is not protected there
    fcntl = None  # type: ignore[assignment]

MANIFEST, LOCK = "manifest.json", ".lock"
FOLDER = "checkpoints"
_PREFIX, _STAGED, _OLD, _DAMAGED = "step-", ".staged-", ".old-", "damaged-"
_NAME = re.compile(_PREFIX + "[0-9]{8,18}")


class DamagedCheckpointError(ValueError):
    """A checkpoint that is not what was saved; the message says which file and how."""


class RunLockedError(ValueError):
    """Another process is at work in this run folder."""


Write = Callable[[Path], None]  # writes one file at the path it is given
Listed = dict[str, int | str]  # what a manifest says of a file: its size and sha256
About = dict[str, int | str]  # the circumstances under which a checkpoint was saved, and the last losses


class Checkpoint(NamedTuple):
    """A checkpoint that was verified: its folder, its step, and what was said about it when it was saved."""

    folder: Path
    step: int
    about: About


def stage(run: Path, step: int) -> Path:
    """The empty folder in which the checkpoint of a step is made."""
    home = run / FOLDER
    if home.is_symlink():
        raise ValueError(f"{str(home)!r} is a link: the checkpoints of a run must be in its own folder.")
    staged = home / f"{_STAGED}{step:08d}-{secrets.token_hex(8)}"
    home.mkdir(exist_ok=True)  # but not the folder of the run, if someone took it away
    staged.mkdir()
    return staged


def list_file(path: Path) -> Listed:
    """Make a file lasting, and say what it is."""
    durable.sync_file(path)
    return {"size": path.stat().st_size, "sha256": durable.sha256_of(path)}


def save_checkpoint(
    run: Path,
    step: int,
    files: Mapping[str, Write],
    about: About,
    *,
    keep: int,
    staged: Path | None = None,
    written: Mapping[str, Listed] | None = None,
) -> Path:
    """Save a checkpoint that is whole or not there, and remove all but the newest `keep`.

    `written` are files that stand in the staged folder already, each listed by the process that wrote it.
    """
    home = run / FOLDER
    final, staged = home / f"{_PREFIX}{step:08d}", staged or stage(run, step)
    try:
        listed = dict(written or {})
        for name, write in sorted(files.items()):
            durable.write_with(write, staged / name)
            listed[name] = list_file(staged / name)
        durable.write_file(staged / MANIFEST, _seal({"step": step, "files": listed, "about": about}))
        durable.sync_folder(staged)
        if final.exists():  # the same step, saved before by a run that was disturbed
            _discard(final)
        durable.rename(staged, final)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if isinstance(error, OSError):
            raise as_disk_full(error, final) from error
        raise
    for old in _checkpoints(home)[keep:]:
        _discard(old)
    return final


def verify_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint's manifest and check every file against it."""
    try:
        manifest = _unseal(read_bytes(folder / MANIFEST))
    except UnreadableError as error:
        raise DamagedCheckpointError(str(error).rstrip(".")) from None
    step, listed, about = manifest.get("step"), manifest.get("files"), manifest.get("about")
    if not (isinstance(step, int) and isinstance(listed, dict) and isinstance(about, dict)):
        raise DamagedCheckpointError(f"{MANIFEST}: it cannot be read")
    if not all(isinstance(file, dict) for file in listed.values()):
        raise DamagedCheckpointError(f"{MANIFEST}: it cannot be read")
    if folder.name != f"{_PREFIX}{step:08d}":
        raise DamagedCheckpointError(f"{MANIFEST}: it is of step {step}")
    present = {entry.name for entry in folder.iterdir()} - {MANIFEST}
    for name in sorted(present | set(listed)):
        if name not in present:
            raise DamagedCheckpointError(f"{name}: missing")
        if name not in listed:
            raise DamagedCheckpointError(f"{name}: not in the manifest")
        path = folder / name
        if path.is_symlink() or not path.is_file():
            raise DamagedCheckpointError(f"{name}: not a plain file")
        size = path.stat().st_size
        if size != listed[name].get("size"):
            raise DamagedCheckpointError(f"{name}: {size} bytes instead of {listed[name].get('size')}")
    with ThreadPoolExecutor() as threads:  # the shares of a large model are many, and each takes its time
        for name, sha256 in zip(
            listed, threads.map(lambda name: durable.sha256_of(folder / name), listed), strict=True
        ):
            if sha256 != listed[name].get("sha256"):
                raise DamagedCheckpointError(f"{name}: its sha256 is another one")
    return Checkpoint(folder, step, about)


def newest_checkpoint(run: Path, say: Callable[[str], None]) -> Checkpoint | None:
    """The newest checkpoint that verifies; damaged ones are set aside, with a line for each, and leftovers removed."""
    home = run / FOLDER
    if not home.is_dir() or home.is_symlink():
        return None
    for entry in home.iterdir():
        if entry.name.startswith((_STAGED, _OLD)):
            durable.remove(entry)
    damaged = False
    for folder in _checkpoints(home):
        try:
            checkpoint = verify_checkpoint(folder)
        except DamagedCheckpointError as error:
            aside = _set_aside(folder)
            say(f"The checkpoint {folder.name} is damaged ({error}); it was set aside as {aside.name}.")
            damaged = True
            continue
        return checkpoint
    if damaged:
        say("No checkpoint is whole: the run starts again from its first step.")
    return None


@contextmanager
def run_lock(run: Path) -> Iterator[None]:
    """Hold a run folder for this process; a second process is refused at once."""
    run.mkdir(parents=True, exist_ok=True)
    with os.fdopen(durable.open_own(run / LOCK), "r+") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                owner = file.read(20).strip()
                who = f" (process {owner})" if owner.isdigit() else ""
                raise RunLockedError(f"Another process{who} is at work in the run folder {str(run)!r}.") from None
        file.truncate(0)
        file.seek(0)
        file.write(str(os.getpid()))
        file.flush()
        yield  # the kernel lets go of the lock when the file is closed, however the process ends


def _checkpoints(home: Path) -> list[Path]:
    """Everything that has the name of a checkpoint, newest first."""
    named = [entry for entry in home.iterdir() if _NAME.fullmatch(entry.name)]
    return sorted(named, key=lambda entry: int(entry.name[5:]), reverse=True)


def _discard(folder: Path) -> None:
    """Remove a checkpoint; its name goes first, so that half of it is never taken for a damaged one."""
    old = folder.with_name(f"{_OLD}{folder.name}-{secrets.token_hex(8)}")
    durable.rename(folder, old)
    durable.remove(old)


def _set_aside(folder: Path) -> Path:
    for number in range(1, 1_000_000):
        aside = folder.with_name(f"{_DAMAGED}{folder.name}-{number}")
        if not aside.exists():
            durable.rename(folder, aside)
            return aside
    raise AssertionError("a million damaged checkpoints")


def _canonical(manifest: dict[str, Any]) -> bytes:
    return json.dumps(manifest, sort_keys=True, indent=1).encode()


def _seal(manifest: dict[str, Any]) -> bytes:
    """A manifest with the sha256 of itself, in the one spelling that `_unseal` accepts."""
    return _canonical({**manifest, "sha256": hashlib.sha256(_canonical(manifest)).hexdigest()})


def _unseal(data: bytes) -> dict[str, Any]:
    try:
        manifest = parse_json(data)
        seal = manifest.pop("sha256")
        # compared as bytes: no other spelling of the same JSON passes, so every changed bit shows
        if _seal(manifest) != data or hashlib.sha256(_canonical(manifest)).hexdigest() != seal:
            raise DamagedCheckpointError(f"{MANIFEST}: its sha256 is another one")
        return manifest
    except DamagedCheckpointError:
        raise
    except (ValueError, KeyError, AttributeError, TypeError):
        raise DamagedCheckpointError(f"{MANIFEST}: it cannot be read") from None
