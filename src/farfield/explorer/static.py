"""A page without a server: the explorer as a folder that any web host serves, with Python running in the browser.

Pyodide comes from the npm registry and python-flint's wheel from PyPI, both when the folder is built and with their
checksums pinned here. The folder names no other host.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from farfield.data.durable import cache_folder, replace_file
from farfield.explorer.question import read
from farfield.explorer.replies import Reply, reply, zoo_list
from farfield.zoo import ENCODINGS

MARK = "farfield-explorer.json"  # a folder with this file is one of ours
_PYPI = "https://files.pythonhosted.org/packages"
_ROOMS = ("formula", "zoo", "theory", "explorer")
_FILES = ("*.py*", "models/*.py", "nn/__init__.py*", "nn/decoder/__init__.py", "nn/decoder/registration.py")
_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class Pinned:
    """A file of a registry, and what it must be."""

    address: str
    sha256: str

    @property
    def name(self) -> str:
        return self.address.rpartition("/")[2]


PYODIDE = Pinned(
    "https://registry.npmjs.org/pyodide/-/pyodide-314.0.7.tgz",
    "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
)
FLINT = Pinned(
    f"{_PYPI}/2f/6b/660e6982354b07080fc23459b0e30e02b84076dc7876c48de07e30e1da4b/"
    "python_flint-0.9.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl",
    "b31f5c00e0e36040ab58d00b3025156e20869b990d776e4bf90f870b1ee11ad3",
)
LAZY_LOADER = Pinned(
    f"{_PYPI}/83/60/d497a310bde3f01cb805196ac61b7ad6dc5dcf8dce66634dc34364b20b4f/lazy_loader-0.4-py3-none-any.whl",
    "342aa8e14d543a154047afb4ba8ef17f5563baad3fc610d7b15b213b0f119efc",
)
PARTS = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")  # of Pyodide


def build(folder: Path, study: Sequence[Reply] | None, seconds: float, say: Callable[[str], None]) -> None:
    """Write the page into a folder, which must be new, empty, or one of ours.

    Args:
        folder: where the page goes.
        study: the results of a study to show, as `load_study` gives them.
        seconds: how long one question may take in the browser.
        say: is told what is being done.

    Raises:
        ValueError: the folder holds something else, or a file could not be fetched, or is not what it must be.
    """
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).exists())):
        raise ValueError(f"{folder} is not empty and no page of the explorer: choose another folder")
    say(f"Pyodide and python-flint (kept in {cache_folder() / 'static'})")
    parts = {f"pyodide/{name}": content for name, content in _pyodide().items()}
    parts[FLINT.name] = fetch(FLINT)
    parts["farfield.zip"] = _archive()
    size = sum(len(content) for content in parts.values())
    say("the answers for every named encoding")
    python = {"wheel": FLINT.name, "archive": "farfield.zip", "bytes": size}
    begin = {"zoo": zoo_list(), "study": study, "seconds": seconds, "python": python}
    parts |= {"start.json": _json(begin), "answers.json": _json(answers())}
    for entry in (files("farfield.explorer") / "page").iterdir():
        parts[entry.name] = entry.read_bytes()
    parts["index.html"] = _as_static(parts["index.html"].decode()).encode()
    parts[MARK] = _json({"pyodide": PYODIDE.name, "flint": FLINT.name})
    if folder.exists():
        shutil.rmtree(folder)
    for name, content in parts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    say(f"{folder}: {sum(len(c) for c in parts.values()) / 1e6:.0f} MB, for any web host")


def fetch(wanted: Pinned) -> bytes:
    """A pinned file, from the cache or from its registry."""
    kept = cache_folder() / "static" / wanted.name
    if kept.exists() and _digest(kept.read_bytes()) == wanted.sha256:
        return kept.read_bytes()
    try:
        with urllib.request.urlopen(wanted.address, timeout=60) as answer:
            content: bytes = answer.read()
    except (OSError, urllib.error.URLError) as error:
        host = wanted.address.split("/")[2]
        raise ValueError(f"{wanted.name} could not be fetched from {host}: {error}") from None
    if _digest(content) != wanted.sha256:
        raise ValueError(f"{wanted.name} is not the file that is pinned here: its sha256 is {_digest(content)}")
    kept.parent.mkdir(parents=True, exist_ok=True)
    replace_file(kept, content)
    return content


def answers() -> dict[str, Reply]:
    """What the page asks about each named encoding as it stands, so that it is useful before Python is there."""
    out: dict[str, Reply] = {}
    usual = [("heads", "8"), ("head", "8")]
    for name, encoding in ENCODINGS.items():
        own = [("f", name), *usual, ("from", "0")]
        asked = [("verdict", own), ("coq", own), ("code", [*own, ("epsilon", "0.01"), ("bound", "5")])]
        if encoding.formula is not None:
            asked += [
                ("fields", [*own, ("epsilon", "0.01")]),
                ("window", [*own, ("context", "512"), ("epsilon", "0.01"), ("bound", "5")]),
                ("drawn", [*own, ("context", "512")]),
                ("claimed", [*own, ("context", "512"), ("epsilon", "0.01")]),
                ("condition", [("f", name), ("from", "0")]),
                ("heads", [field for field in own if field[0] != "head"]),
            ]
        for kind, fields in asked:
            out[_key(kind, fields)] = _whole(kind, fields)
    both = [("f", "alibi"), ("f", "sandwich"), *usual]  # what the page begins with
    out[_key("compare", both)] = _whole("compare", both)
    return out


def _whole(kind: str, fields: list[tuple[str, str]]) -> Reply:
    """An answer with all its parts."""
    rows: list[object] = []
    while True:
        answer, fault = reply(read(kind, [*fields, ("skip", str(len(rows)))] if rows else fields))
        assert not fault, fault
        further = answer.get("rows")
        rows += further if isinstance(further, list) else []
        if not answer.get("rest"):
            return {**answer, "rows": rows} if rows else answer


def _key(kind: str, fields: list[tuple[str, str]]) -> str:
    return _json([kind, fields]).decode()


def _pyodide() -> dict[str, bytes]:
    """The files of Pyodide that are needed, without the addresses of hosts that a page would otherwise know."""
    out = {}
    with tarfile.open(fileobj=io.BytesIO(fetch(PYODIDE))) as archive:
        for name in PARTS:
            member = archive.extractfile(f"package/{name}")
            assert member is not None
            content = member.read()
            if name.endswith(".mjs"):
                text = re.sub(r"^//# sourceMappingURL=.*$", "", content.decode(), flags=re.MULTILINE)
                content = re.sub(r"https://cdn\.jsdelivr\.net/pyodide/[^\"'`]*", "./", text).encode()
            out[name] = content
        lock = archive.extractfile("package/pyodide-lock.json")
        assert lock is not None
        info = json.loads(lock.read())["info"]
    return {**out, "pyodide-lock.json": _json({"info": info, "packages": {}})}


def _archive() -> bytes:
    """Farfield's theory and lazy_loader as a zip that is the same whenever it is made."""
    package = files("farfield")
    root = Path(str(package))
    patterns = (*_FILES, *(f"{room}/**/*.py" for room in _ROOMS))
    paths = [path for pattern in patterns for path in root.glob(pattern) if path.is_file()]
    chosen = {f"farfield/{path.relative_to(root).as_posix()}": path.read_bytes() for path in paths}
    with zipfile.ZipFile(io.BytesIO(fetch(LAZY_LOADER))) as wheel:
        chosen |= {name: wheel.read(name) for name in wheel.namelist() if "/tests/" not in name}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(chosen):
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), chosen[name], zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _as_static(page: str) -> str:
    """The page, told that it has no server, and forbidden whatever it does not need."""
    policy = f'<meta http-equiv="content-security-policy" content="{_POLICY}">'
    return page.replace("<title>", f'{policy}\n<meta name="farfield-static" content="yes">\n<title>', 1)


def _json(data: object) -> bytes:
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
