"""What the site needs beyond the pages: those of the root, all files, all encodings, Markdown as GitHub reads it.

mkdocs.yml names this file as a hook of mkdocs.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from markdown.extensions.toc import slugify
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
FROM_THE_ROOT = {
    "results/README.md": "results.md",
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
sys.path.insert(0, str(Path(__file__).resolve().parent))  # for the file beside this one
from mathematics_set import Mathematics, set_fences  # noqa: E402

RESULTS = "results"
LIVE = os.environ.get("FARFIELD_SITE_EXPLORER") == "1"  # with the explorer as a page of the site; needs the registries
MAPPED = ("src/farfield", "tests", "benchmarks")  # the folders of the map of files
FENCE = re.compile(r"^```.*?^```[ \t]*$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Set the mathematics of every page, and give its headings names."""
    config["markdown_extensions"].append(Mathematics())
    config["mdx_configs"]["toc"]["slugify"] = _name_of_heading
    return config


def _name_of_heading(text: str, separator: str) -> str:
    """What a link calls a heading; the script that marks the one in sight stops at a name that begins with a digit."""
    name = slugify(text, separator)
    return f"at{separator}{name}" if name[:1].isdigit() else name


def on_post_build(config: Any, **_: Any) -> None:
    """A search that needs no server, and the explorer itself where it is asked for."""
    place = Path(config["site_dir"]) / "search"
    index = (place / "search_index.json").read_text(encoding="utf-8")
    (place / "search_index.js").write_text(f"var farfieldIndex = {index};", encoding="utf-8")
    first, found, _ = (place / "main.js").read_text(encoding="utf-8").partition("if (!window.Worker) {\n  console.log")
    assert found, "mkdocs has another search than docs/search.js knows"
    own = (ROOT / "docs" / "search.js").read_text(encoding="utf-8")
    (place / "main.js").write_text(first + own, encoding="utf-8")
    if LIVE:
        from farfield.explorer.static import build

        build(place.parent / "live", None, 5, say=lambda words: None)


def on_files(files: Files, config: Any) -> Files:
    """Take in the pages of the root; README.md would otherwise be taken for the home page."""
    for name, page in FROM_THE_ROOT.items():
        if (ROOT / name).exists():
            files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for figure in sorted((ROOT / RESULTS).rglob("*.svg")):
        files.append(File.generated(config, figure.relative_to(ROOT).as_posix(), abs_src_path=str(figure)))
    files.append(File.generated(config, "files.md", content=map_of_files()))
    pictures = Path(mkdtemp())
    files.append(File.generated(config, "encodings.md", content=_catalogue().page(pictures)))
    for picture in sorted(pictures.glob("*.png")):
        files.append(File.generated(config, f"encodings/{picture.name}", abs_src_path=str(picture)))
    return files


def _catalogue() -> Any:
    """catalogue.py, which lies beside this file."""
    spec = spec_from_file_location("catalogue", Path(__file__).with_name("catalogue.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def map_of_files() -> str:
    """Every Python file with the first sentence of its docstring, folder by folder."""
    out = [
        "# Every file",
        "Written when the site is built, from the first lines of each docstring.",
    ]
    for top in MAPPED:
        folders = sorted({path.parent for path in (ROOT / top).rglob("*.py")})
        for folder in folders:
            own = folder / "__init__.py"
            out.append(f"## {folder.relative_to(ROOT)}/")
            if own.exists():
                out.append(_sentence(own))
            rows = [f"| `{path.name}` | {_sentence(path)} |" for path in sorted(folder.glob("*.py")) if path != own]
            if rows:
                out.append("\n".join(["| file | what it is |", "| --- | --- |", *rows]))
    return "\n\n".join(out) + "\n"


def _sentence(path: Path) -> str:
    """The first sentence of a file's docstring, safe in a table."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links to the pages of the root, plain fences, and lists that need no empty line before them."""
    inside = page.file.src_uri in FROM_THE_ROOT.values()
    if LIVE and page.file.src_uri == "explorer.md":
        markdown = markdown.replace("\n", '\n\n<p><a href="live/index.html"><b>Open the explorer</b></a></p>\n', 1)
    markdown = set_fences(markdown).replace("](../../results/", "](../results/")
    for name, new in FROM_THE_ROOT.items():
        markdown = re.sub(rf"\]\((?:\.\./)?{re.escape(name)}", f"]({new}", markdown)
    if page.file.src_uri == FROM_THE_ROOT[f"{RESULTS}/README.md"]:  # it stood among its pictures
        markdown = re.sub(r"(!\[[^\]]*\]\()(?!https?:)", rf"\1{RESULTS}/", markdown)
    if inside:  # these pages link from the root
        markdown = re.sub(r"\]\((?:\.\./)?docs/", "](", markdown)
        markdown = re.sub(r"(?<!!)\[([^\]]*)\]\((?!https?:|#)([^)#]*?)(?:#[^)]*)?\)", _only_pages, markdown)
    markdown = re.sub(r"^```(\w+)[ \t]+[^\n]+$", r"```\1", markdown, flags=re.MULTILINE)
    parts, place = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [_loose_lists(markdown[place : fence.start()]), fence[0]]
        place = fence.end()
    return "".join([*parts, _loose_lists(markdown[place:])])


def _only_pages(link: re.Match[str]) -> str:
    """A link to a page stays; one to another file of the repository, which the site does not have, becomes its name."""
    return link[0] if link[2].endswith(".md") else f"{link[1]}"


def _loose_lists(text: str) -> str:
    """An empty line before a list that follows a line of text, which Python-Markdown needs and GitHub does not."""
    return re.sub(r"^(?![-*|#>\s]|\d+\. )(.+)\n(?=(?:[-*]|\d+\.) )", r"\1\n\n", text, flags=re.MULTILINE)
