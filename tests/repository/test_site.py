"""The site builds offline, without a warning, and takes nothing from another host."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="the site needs the extra docs: pip install -e '.[docs]'")
pytest.importorskip("mkdocstrings_handlers.python", reason="the site needs the extra docs: pip install -e '.[docs]'")

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}  # nobody listens there


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as the command of CONTRIBUTING.md makes it."""
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(call, cwd=ROOT, env=OFFLINE, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_it_builds_strictly_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=[\"']?([^\"'\s>]+)", text)
        loaded += re.findall(r"<link[^>]*\bhref=[\"']?([^\"'\s>]+)", text)
        assert not [target for target in loaded if re.match(r"(?:https?:)?//", target)], page.name
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.findall(r"url\([\"']?(?:https?:)?//[^)]*\)|@import[^;]*//", text), sheet.name


def test_every_page_of_docs_is_on_it(site: Path) -> None:
    missing = [
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not (site / page.relative_to(ROOT / "docs")).with_suffix(".html").exists()
    ]
    assert not missing


def test_every_encoding_has_its_formula_verdict_and_picture(site: Path) -> None:
    from farfield import ENCODINGS

    text = (site / "encodings.html").read_text(encoding="utf-8")
    for name, encoding in ENCODINGS.items():
        entry = text.partition(f'<h2 id="{name}">')[2].partition("<h2")[0]
        assert entry, name
        if encoding.formula is not None:
            assert "<strong>Verdict:</strong>" in entry
            assert "Receptive field" in entry
            assert (site / "encodings" / f"{name}.png").stat().st_size > 1000


def test_what_the_package_offers_has_its_entry_and_a_sentence(site: Path) -> None:
    import farfield

    text = "".join(page.read_text(encoding="utf-8") for page in sorted((site / "api").glob("*.html")))
    rooms = {"ENCODINGS", "measure", "nn", "scaling", "study"}  # a list, which `farfield zoo` prints, and modules
    for name in set(farfield.__all__) - rooms:
        places = (f'id="{module}.{name}" class="doc doc-heading"' for module in _homes(getattr(farfield, name)))
        entry = next((text.partition(p)[2] for p in places if p in text), "").partition(' class="doc doc-heading"')[0]
        assert "<p>" in entry, name
    assert 'id="farfield.study.conduct.study"' in text  # the room that is a function


def _homes(offered: Any) -> list[str]:
    """The module in which something is defined, and the packages around it."""
    parts = offered.__module__.split(".")
    return [".".join(parts[:n]) for n in range(len(parts), 0, -1)]


def test_commands_of_the_pages_survive(site: Path) -> None:
    """Fences with words such as `no-run` are not Python-Markdown's; they must still become blocks."""
    text = (site / "training.html").read_text(encoding="utf-8")
    assert "```" not in text
    assert "no-run" not in text


def test_the_map_has_every_file_with_its_sentence(site: Path) -> None:
    text = (site / "files.html").read_text(encoding="utf-8")
    for folder in ("src/farfield", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            assert path.name == "__init__.py" or f"<code>{path.name}</code>" in text, path
    assert "The named encodings: one formula each" in text


def test_the_mathematics_is_set(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"\$[^$\n]+\$", text), page.name
    assert (site / "mathematics.html").read_text(encoding="utf-8").count("<math") > 140


def test_no_heading_stops_the_script_that_marks_it(site: Path) -> None:
    """Bootstrap asks for a heading by `#name`, which must not begin with a digit."""
    for page in (page for page in site.rglob("*.html") if page.name != "404.html"):  # which is the theme's own
        assert not re.findall(r"""<h\d[^>]* id=["']?\d[^>]*>""", page.read_text(encoding="utf-8")), page.name


def test_search_and_navigation_from_the_disk(site: Path) -> None:
    """No server, no worker: the pages are opened as files."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip(f"{chromium} is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(chromium), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1300, "height": 800})
        page.set_default_timeout(120_000)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        tops = page.eval_on_selector_all(".navbar .nav-link", "all => all.map((a) => a.getBoundingClientRect().top)")
        assert len({round(top) for top in tops if top}) == 1
        page.click("text=Search")
        page.locator("#mkdocs-search-query").press_sequentially("ladder")
        page.wait_for_selector("#mkdocs-search-results article")
        assert "Bertrand" in page.inner_text("#mkdocs-search-results")
        browser.close()
    assert errors == []
