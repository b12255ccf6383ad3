"""Many emitted proofs in few files for Coq to accept, and what it refused by computation."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farfield.theory.coq.files import file_text
from farfield.theory.coq.library import coqc

# some of what a test goes through, and all of it every night
EVERY = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["some", "all"])


def accepted(library: Path, folder: Path, blocks: dict[str, str]) -> None:
    """Coq accepts all blocks, in two files at once; the error names the block."""
    names = list(blocks)
    files = []
    for i, some in enumerate((names[::2], names[1::2])):
        files.append(folder / f"blocks_{i}.v")
        modules = [f"Block_{names.index(name)}" for name in some]
        files[-1].write_text(file_text([blocks[name] for name in some], modules), encoding="utf-8")
    with ThreadPoolExecutor(2) as pool:
        for path, done in zip(files, pool.map(lambda file: coqc(library, file), files), strict=True):
            lines = path.read_text(encoding="utf-8").splitlines()
            where = re.search(r"line (\d+)", done.stderr)
            before = [] if where is None else [x for x in lines[: int(where[1])] if x.startswith("Module Block_")]
            which = names[int(before[-1].removeprefix("Module Block_").rstrip("."))] if before else ""
            assert done.returncode == 0, f"{which}: {done.stderr[-800:]}"


def refusals(done: subprocess.CompletedProcess[str]) -> int:
    """How many commands failed because the checker computed false, and not for another reason."""
    said = " ".join((done.stdout + done.stderr).split())
    return said.count('The term "eq_refl" has type "true = true" while it is expected to have type "')
