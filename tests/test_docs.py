"""The documentation is true: whatever it shows is run, and prints what the page says.

Conventions of README.md, CONTRIBUTING.md and docs/*.md:

- In a ```console or ```bash block, each line `$ farfield ...` is run, and the lines below it are what it prints.
- Each ```python block is run in a namespace of its own. If a ```text block follows it, that is what it prints;
  otherwise it prints nothing.
- A line `...` in shown output stands for any number of lines. Spaces at the end of a line do not count.
- A fence that says `no-run` (```console no-run) is not run, nor are the pages in NOT_RUN; they are listed as skipped.

`python tests/test_docs.py` writes the shown outputs anew, except those with a `...` line.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
SHELLS = ("bash", "console")
NOT_RUN = ("attention.md", "training.md")  # pages about torch and trained models: what they show is not run


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

    @property
    def name(self) -> str:
        return f"{self.page.name}:{self.line}"


def blocks(page: Path) -> Iterator[Shown]:
    """Every command and every piece of Python on a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    for block, after in zip_longest(found, found[1:]):
        language, run = block[1], "no-run" not in block[2].split() and page.name not in NOT_RUN
        line = text.count("\n", 0, block.start()) + 1
        if language in SHELLS:
            yield from commands(page, text, block, run)
        elif language == "python":
            follows = after is not None and after[1] == "text" and not text[block.end() : after.start()].strip()
            span = after.span(3) if after is not None and follows else (block.end(), block.end())
            yield Shown(page, line, "python", block[3], text[slice(*span)], span, run)


def commands(page: Path, text: str, block: re.Match[str], run: bool) -> Iterator[Shown]:
    """The `$ farfield` lines of a block, each with the lines up to the next `$`."""
    place = block.start(3)
    for part in re.split(r"^(?=\$ )", block[3], flags=re.MULTILINE):
        if part.startswith("$ farfield"):
            command, _, output = part.partition("\n")
            start = place + len(command) + 1
            line = text.count("\n", 0, place) + 1
            yield Shown(page, line, "command", command[2:], output, (start, start + len(output)), run)
        place += len(part)


def printed(shown: Shown) -> str:
    """What it prints when it is run, at a width of 80 columns and without colour."""
    if shown.kind == "python":
        out = io.StringIO()
        code = "\n" * shown.line + shown.source  # a traceback then names the line of the page
        with contextlib.redirect_stdout(out):
            exec(compile(code, str(shown.page), "exec"), {"__name__": "__main__"})
        return out.getvalue()
    program, *arguments = shlex.split(shown.source)
    plain = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "CLICOLOR_FORCE")}
    settings = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1", "PYTHONWARNINGS": "error"}
    result = subprocess.run(
        [Path(sys.executable).parent / program, *arguments],
        env={**plain, **settings},
        cwd=ROOT,
        text=True,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=60,
        check=False,
    )
    return result.stdout


def plain_lines(output: str) -> list[str]:
    """The lines without spaces at their ends, and without empty lines around them."""
    return "\n".join(line.rstrip() for line in output.splitlines()).strip("\n").split("\n")


def agrees(shown: str, output: str) -> bool:
    """Whether an output is what the page shows, a line `...` standing for any number of lines."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + "\n" for line in plain_lines(shown))
    return re.fullmatch(pattern, "\n".join(plain_lines(output)) + "\n") is not None


SHOWN = [shown for page in PAGES for shown in blocks(page)]
RUN = [pytest.param(s, id=s.name, marks=() if s.run else pytest.mark.skip(reason=f"no-run: {s.source}")) for s in SHOWN]


@pytest.mark.parametrize("shown", RUN)
def test_the_page_shows_what_is_printed(shown: Shown) -> None:
    output = printed(shown)
    assert agrees(shown.output, output), f"{shown.name}: {shown.source}\nprints\n{output}"


def test_an_elision_stands_for_any_number_of_lines() -> None:
    assert agrees("a\n...\nd\n", "a  \nb\nc\nd\n")
    assert agrees("a\n...\n", "a\n")
    assert not agrees("a\n...\nd\n", "a\nb\n")
    assert not agrees("a\nb\n", "a\n")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_modules_that_are_named_exist(page: Path) -> None:
    here = {path.name for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")}
    for name in re.findall(r"`(?:\w+/)*(\w+\.py)`", page.read_text(encoding="utf-8")):
        assert name in here or name == "transformer_rpe.py", f"{page.name}: {name}"  # the authors' file


def test_the_readme_tree_names_files_that_exist() -> None:
    tree = (ROOT / "README.md").read_text(encoding="utf-8").rpartition("```text\n")[2].partition("```")[0]
    folders: list[str] = []
    assert tree.strip()
    for line in tree.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders = [*folders[:depth], name]
        assert (ROOT / "".join(folders)).exists(), "".join(folders)


def test_the_readme_marks_the_test_command() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = re.findall(r"<!-- test-command -->\s*```bash\n(.+)\n```\s*<!-- /test-command -->", text)
    assert len(marked) == 1
    assert "pytest" in marked[0]


def test_every_erratum_is_on_the_page() -> None:
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^### E(\d+)\b", text, re.MULTILINE)]
    assert numbers == list(range(1, 25))


def refresh(page: Path) -> None:
    """Write what is printed into a page, where it differs from what is shown."""
    before = text = page.read_text(encoding="utf-8")
    for shown in reversed(list(blocks(page))):
        if shown.run and "..." not in plain_lines(shown.output):
            output = "\n".join(plain_lines(printed(shown))) + "\n"
            start, end = shown.span
            if start < end or shown.kind == "command":
                text = text[:start] + output + text[end:]
            elif output.strip():
                text = text[:start] + f"\n\n```text\n{output}```" + text[end:]
    if text != before:
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for each in PAGES:
        refresh(each)
