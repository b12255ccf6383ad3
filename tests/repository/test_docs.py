"""The documentation is true: whatever it shows is run, and prints what the page says.

Conventions of README.md, CONTRIBUTING.md and every page below docs/:

- In a ```console or ```bash block, each line `$ ...` is run, and the lines below it are what it prints. The page has
  a folder of its own, empty at its start, so that one command can use what another one wrote.
- Each ```python block is run, in the same folder and in a namespace of its own; with ```python more it goes on in the
  namespace of the block before. If a ```text block follows it, that is what it prints; otherwise it prints nothing.
- A line `...` in shown output stands for any number of lines. Spaces at the end of a line do not count.
- Where the fence of an output says `about` (```console about, ```text about), its numbers may differ by a quarter
  or by 2: what a trained model gives is not the same on every machine and Python.
- A fence that says `no-run` is not run. The text beside it says why: "Not run by the tests: ...".

`python tests/repository/test_docs.py` writes outputs anew where they are wrong, except those with a `...` line.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SHELLS = ("", "bash", "console")
# run in this process: torch is imported once
MODEL_VERBS = ("train", "replace", "evaluate", "receptive", "speed", "generate")
SETTINGS = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
SETTINGS["FARFIELD_TIME"] = "600"  # what a page shows does not depend on the speed of the machine
NUMBER = re.compile(r"[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Shown:
    """Something a page shows: a command or a piece of Python, the output under it, and where that output stands."""

    page: Path
    line: int
    kind: str  # "command" or "python"
    source: str
    output: str
    span: tuple[int, int]
    run: bool
    more: bool = False  # Python in the namespace of the block before
    about: bool = False  # numbers may differ a little

    @property
    def name(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


def blocks(page: Path) -> Iterator[Shown]:
    """Every command and every piece of Python on a page, in order."""
    text = page.read_text(encoding="utf-8")
    result = list(FENCE.finditer(text))
    for block, after in zip_longest(result, result[1:]):
        language, words = block[1], block[2].split()
        line = text.count("\n", 0, block.start()) + 1
        if language in SHELLS:
            yield from commands(page, text, block)
        elif language == "python":
            follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
            span = after.span(3) if after is not None and follows else (block.end(), block.end())
            about = follows and "about" in after[2].split()
            run, more = "no-run" not in words, "more" in words
            yield Shown(page, line, "python", block[3], text[slice(*span)], span, run, more, about)


def commands(page: Path, text: str, block: re.Match[str]) -> Iterator[Shown]:
    """The `$` lines of a block, each with the lines up to the next `$`."""
    place, words = block.start(3), block[2].split()
    for part in re.split(r"^(?=\$ )", block[3], flags=re.MULTILINE):
        if part.startswith("$ "):
            command, _, output = part.partition("\n")
            start = place + len(command) + 1
            line = text.count("\n", 0, place) + 1
            span = (start, start + len(output))
            yield Shown(page, line, "command", command[2:], output, span, "no-run" not in words, about="about" in words)
        place += len(part)


def printed(shown: Shown, names: dict[str, Any]) -> str:
    """What it prints when it is run in the current folder, at a width of 80 columns and without colour."""
    if shown.kind == "python":
        code = "\n" * shown.line + shown.source  # a traceback then names the line of the page
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(code, str(shown.page), "exec"), names)
        return out.getvalue()
    words = shlex.split(shown.source, comments=True)
    if words[0] == "farfield" and words[1] in MODEL_VERBS:
        from farfield.cli import main

        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.suppress(SystemExit):
            main(words[1:])
        return out.getvalue()
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    strict = {"PYTHONWARNINGS": "error"} if words[0] == "farfield" and words[1] != "study" else {}
    result = subprocess.run(
        ["bash", "-c", shown.source],
        env={**os.environ, **SETTINGS, **strict, "PATH": here},
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=600,
        check=False,
    )
    return result.stdout


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """An empty folder, the corpora in a folder beside it, and the terminal of the conventions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        for name in ("FORCE_COLOR", "CLICOLOR_FORCE"):
            patch.delenv(name, raising=False)
        patch.setenv("FARFIELD_CACHE", str(folder.parent / "docs-cache"))
        yield


def outputs(page: Path) -> Iterator[tuple[Shown, str]]:
    """Everything on a page that is run, with what it prints."""
    names: dict[str, Any] = {}
    for shown in blocks(page):
        if shown.run:
            if shown.kind == "python" and not shown.more:
                names = {"__name__": "__main__"}
            yield shown, printed(shown, names)


def plain_lines(output: str) -> list[str]:
    """The lines without spaces at their ends, and without empty lines around them."""
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n").split("\n")


def agrees(shown: str, output: str, about: bool = False) -> bool:
    """Whether an output is what the page shows, a line `...` standing for any number of lines."""
    there = "\n".join(plain_lines(output)) + "\n"
    lines = plain_lines(shown)
    if not about:
        return re.fullmatch("".join(_line(re.escape(line), line) for line in lines), there) is not None
    lines, there = [_even(line) for line in lines], "".join(_even(line) + "\n" for line in there.splitlines())
    number = f"({NUMBER.pattern})"  # the only group
    pattern = "".join(_line(number.join(re.escape(part) for part in NUMBER.split(line)), line) for line in lines)
    result = re.fullmatch(pattern, there)
    wanted = [number for line in lines if line.strip() != "..." for number in NUMBER.findall(line)]
    return result is not None and all(_near(a, b) for a, b in zip(wanted, result.groups(), strict=True))


def _near(shown: str, printed: str) -> bool:
    a, b = (float(text.replace(",", "")) for text in (shown, printed))
    return abs(a - b) <= max(2.0, 0.25 * abs(a))


def _line(pattern: str, line: str) -> str:
    return "(?:.*\n)*?" if line.strip() == "..." else pattern + "\n"


def _even(line: str) -> str:
    """A line without its alignment, which goes with the width of its numbers."""
    return re.sub(r"[ ─━]+", " ", line)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_page_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    with workplace(tmp_path / "page"):
        wrong = [
            f"{shown.name}: {shown.source}\nprints\n{output}"
            for shown, output in outputs(page)
            if not agrees(shown.output, output, shown.about)
        ]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_not_run_says_why(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name == "README.md" and "ot run by the tests:" not in text:
        pytest.skip("README.md does not follow this convention yet")
    for block in FENCE.finditer(text):
        beside = (
            text[: block.start()].rstrip().rpartition("\n\n")[2] + text[block.end() :].lstrip().partition("\n\n")[0]
        )
        if "no-run" in block[2].split():
            assert re.search(r"[Nn]ot\s+run\s+by\s+the\s+tests:", beside), f"{name_of(page)}: {block[0]}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_stand_where_they_are_run(page: Path) -> None:
    """A command without `$` would not be run, and nobody would notice."""
    for block in FENCE.finditer(page.read_text(encoding="utf-8")):
        if block[1] in SHELLS and "no-run" not in block[2].split():
            idle = re.findall(r"^(?:farfield|python|torchrun|accelerate|sbatch) .*", block[3], re.MULTILINE)
            assert not idle, f"{name_of(page)}: {idle}"


def test_an_elision_stands_for_any_number_of_lines() -> None:
    assert agrees("a\n...\nd\n", "a  \nb\nc\nd\n")
    assert agrees("a\n...\n", "a\n")
    assert not agrees("a\n...\nd\n", "a\nb\n")
    assert not agrees("a\nb\n", "a\n")


def test_about_compares_words_exactly_and_numbers_roughly() -> None:
    assert agrees("loss 4.0, 1,000 tokens", "loss 4.7,  900 tokens", about=True)
    assert not agrees("loss 4.0", "loss 6.5", about=True)
    assert not agrees("1,000 tokens", "1,300 tokens", about=True)
    assert not agrees("loss 4.0", "cost 4.0", about=True)
    assert not agrees("loss 4.0", "loss 4.1")
    assert agrees("a 1\n...\nb 8\n", "a 1.1\nc 5\nb 9\n", about=True)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{name_of(page)}: {target}"
        assert not anchor or anchor in anchors(there), f"{name_of(page)}: {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_are_named_exist(page: Path) -> None:
    here = {path.name for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    for name in re.findall(r"`(?:\w+/)*(\w+\.py)`", page.read_text(encoding="utf-8")):
        assert name in here or name == "transformer_rpe.py", f"{name_of(page)}: {name}"  # the authors' file


def test_the_readme_marks_the_test_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = re.findall(r"<!-- test-command -->\s*```bash\n(.+)\n```\s*<!-- /test-command -->", text)
    assert len(marked) == 1
    assert "pytest" in marked[0]


def test_the_readme_is_short() -> None:
    """What it is for, the picture, the two commands, a short tour, limits and rooms; the rest lives in docs/."""
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_every_erratum_is_on_the_page() -> None:
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^### E(\d+)\b", text, re.MULTILINE)]
    assert numbers == list(range(1, 25))


def refresh(page: Path) -> None:
    """Write what is printed into a page, where it differs from what is shown."""
    before = text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page").mkdir()
        with workplace(Path(folder) / "page"):
            result = list(outputs(page))
    for shown, output in reversed(result):
        if "..." not in plain_lines(shown.output) and not agrees(shown.output, output, shown.about):
            output = "\n".join(plain_lines(output)) + "\n"
            start, end = shown.span
            if start < end or shown.kind == "command":
                text = text[:start] + output + text[end:]
            elif output.strip():
                text = text[:start] + f"\n\n```text\n{output}```" + text[end:]
    if text != before:
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for each in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        refresh(each)
