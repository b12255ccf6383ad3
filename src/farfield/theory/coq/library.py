"""The Coq library of Farfield on disk: where its sources are, how they are compiled, and what Coq says of a file."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from farfield.theory.coq.files import LIBRARY_VERSION

PACKAGES = "apt install coq libcoq-coquelicot libcoq-interval make"
_QUIET = ("-w", "-ambiguous-paths")


@dataclass(frozen=True)
class Acceptance:
    """Coq has accepted a file: after how many seconds, and how long the library took to compile before that."""

    seconds: float
    library_seconds: float

    def __str__(self) -> str:
        before = f", after {self.library_seconds:.1f} s for the library" if self.library_seconds >= 0.1 else ""
        return f"Coq accepts it ({self.seconds:.1f} s{before})"


def sources() -> Path:
    """The folder with the sources: inside the installed package, or proofs/ of the repository."""
    packaged = Path(__file__).parent / "proofs"
    folder = packaged if packaged.is_dir() else Path(__file__).parents[4] / "proofs"
    if not (folder / "Emit.v").is_file():
        raise ValueError(f"the sources of the Coq library are missing: there is no {folder}")
    return folder


def _files() -> list[Path]:
    folder = sources()
    names = re.findall(r"^\w+\.v$", (folder / "_CoqProject").read_text(encoding="utf-8"), re.MULTILINE)
    return [folder / name for name in ("_CoqProject", "Makefile", *names)]


def default_folder() -> Path:
    """Where the library is compiled unless a person says otherwise; another text of it has another folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in _files())).hexdigest()
    return cache / "farfield" / f"coq-{LIBRARY_VERSION}-{digest[:8]}"


def write_library(folder: Path | None = None) -> Path:
    """Write the sources to a folder, unless they are there; returns the folder."""
    folder = default_folder() if folder is None else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in _files():
            target = folder / source.name
            if not target.is_file() or target.read_bytes() != source.read_bytes():
                shutil.copyfile(source, target)
                target.with_suffix(".vo").unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"the Coq library cannot be written to {folder}: {error.strerror}; give --library") from None
    return folder


def command(folder: Path, file: Path) -> str:
    """What a person types to have Coq check a file, without Farfield."""
    library, name = shlex.quote(str(folder)), shlex.quote(str(file))
    return f"make -s -C {library} emit && coqc -R {library} Farfield {name}"


def verify_coq(text: str, folder: Path | None = None) -> Acceptance:
    """Let Coq check the text of a file; one sentence if it is not installed or does not accept it.

    Args:
        text: what `Verdict.coq` or `FieldTable.coq` gives.
        folder: of the compiled library; in the user's cache unless given.
    """
    if shutil.which("coqc") is None:
        raise ValueError(f"Coq is not installed, so nothing was verified: {PACKAGES}")
    folder = write_library(folder)
    begin = time.perf_counter()
    compile_library(folder)
    middle = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "proof.v"
        source.write_text(text, encoding="utf-8")
        done = coqc(folder, source)
    if done.returncode:
        raise ValueError(f"Coq does not accept the file: {_complaint(done)}")
    return Acceptance(time.perf_counter() - middle, middle - begin)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time compiles in a folder."""
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def coqc(folder: Path, source: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run Coq on one file with the library of a folder."""
    arguments = ["coqc", *_QUIET, *options, "-R", str(folder), "Farfield", str(source)]
    return subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=source.parent)


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    said = " ".join((done.stderr.partition("Error:")[2] or done.stderr or done.stdout).split())
    if "Coquelicot" in said or ("Interval" in said and "physical path" in said):
        return f"Coquelicot or Interval is missing: {PACKAGES}"
    return said[:300]


def _needed(everything: bool) -> dict[str, list[str]]:
    """The modules that Emit needs, or all, each with those that it needs itself, in the order of _CoqProject."""
    needs: dict[str, list[str]] = {}
    for path in _files():
        if path.suffix != ".v":
            continue
        text = path.read_text(encoding="utf-8")
        lines = re.findall(r"From Farfield Require (?:Import|Export) ([\w\s]+)\.", text)
        needs[path.stem] = [name for line in lines for name in line.split()]
    if everything:
        return needs
    wanted, todo = {"Emit"}, ["Emit"]
    while todo:
        for name in needs[todo.pop()]:
            if name not in wanted:
                wanted.add(name)
                todo.append(name)
    return {name: parts for name, parts in needs.items() if name in wanted}


def compile_library(folder: Path, *, everything: bool = False) -> None:
    """Compile what is not compiled by this Coq, two modules at a time; `everything` is also what no file needs."""
    with _locked(folder):
        _compile(folder, _needed(everything))


def _compile(folder: Path, needed: dict[str, list[str]]) -> None:
    version = subprocess.run(["coqc", "--version"], capture_output=True, text=True, check=False).stdout
    marker = folder / ".compiled-by"
    if not marker.is_file() or marker.read_text(encoding="utf-8") != version:
        for old in folder.glob("*.vo"):
            old.unlink()
    jobs: dict[str, Future[bool]] = {}

    def compiled(name: str, parts: list[str]) -> bool:
        """Whether it had to be compiled: then what needs it must be, too."""
        changed = [jobs[part].result() for part in parts]
        if not any(changed) and (folder / f"{name}.vo").is_file():
            return False
        done = coqc(folder, folder / f"{name}.v")
        if done.returncode:
            raise ValueError(f"Coq does not accept {name}.v of the library: {_complaint(done)}")
        return True

    with ThreadPoolExecutor(2) as pool:
        for name, parts in needed.items():
            jobs[name] = pool.submit(compiled, name, parts)
        for job in jobs.values():
            job.result()
    marker.write_text(version, encoding="utf-8")
