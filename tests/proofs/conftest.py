"""Coq for the tests: the library compiled once, and files checked with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from farfield.theory.coq.library import compile_library, coqc, write_library

sys.path.insert(0, str(Path(__file__).parent))  # the generator and what the tests share stand beside them
Check = Callable[[str, str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def library() -> Path:
    """The library, compiled from its sources in the user's cache, in a folder that is named by their digest."""
    if shutil.which("coqc") is None:
        pytest.skip("Coq is not installed: apt install coq libcoq-coquelicot libcoq-interval")
    folder = write_library()
    compile_library(folder, everything=True)
    return folder


@pytest.fixture
def check_file(library: Path, tmp_path: Path) -> Check:
    """Let Coq check the text of a file: its name without .v, and the text; why a `Fail` failed is printed."""

    def check(name: str, text: str) -> subprocess.CompletedProcess[str]:
        source = tmp_path / f"{name}.v"
        source.write_text(text, encoding="utf-8")
        return coqc(library, source, "-test-mode")

    return check
