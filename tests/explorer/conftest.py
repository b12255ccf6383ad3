"""A real explorer: the command in a process of its own, asked over HTTP."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest

FARFIELD = Path(sys.executable).with_name("farfield")
STUDY = {
    "runs": [
        {
            "corpus": corpus,
            "encoding": encoding,
            "seed": seed,
            "training_length": 64,
            "lengths": [64, 128, 256, 576],
            "perplexity": {
                "non-overlapping": [level + seed, level - 1, level - 2, last],
                "sliding": [level, level - 1, None, last],
            },
        }
        for corpus in ("python", "<b>wiki</b>")
        for encoding, level, last in (("alibi", 93.4, 90.6), ("type1", 91.4, 87.8), ("inverse", 97.6, 199.4))
        for seed in (0, 1)
    ]
}


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def data(self):
        return json.loads(self.body)


@dataclass
class Explorer:
    process: subprocess.Popen[str]
    address: str
    folder: Path

    @property
    def port(self) -> int:
        return int(self.address.rstrip("/").rpartition(":")[2])

    def get(self, path: str, fields=(), *, method: str = "GET", headers=None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        query = f"?{urlencode(list(fields))}" if fields else ""
        with contextlib.closing(connection):
            connection.request(method, path + query, headers=headers or {})
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def ask(self, kind: str, *fields: tuple[str, str]) -> dict:
        return self.get(f"/api/{kind}", fields).data


def start(folder: Path, *arguments: str) -> Explorer:
    process = subprocess.Popen(
        [FARFIELD, "explore", "--port", "0", "--no-browser", *arguments],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "http://127.0.0.1:" in line, (line, process.stderr.read() if process.stderr else "")
    address = next(word for word in line.split() if word.startswith("http://"))
    return Explorer(process, address, folder)


def stop(explorer: Explorer) -> tuple[int, str, str]:
    explorer.process.send_signal(signal.SIGINT)
    out, err = explorer.process.communicate(timeout=60)
    return explorer.process.returncode, out, err


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.json").write_text(json.dumps(STUDY), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def explorer(tmp_path_factory, study):
    running = start(tmp_path_factory.mktemp("explorer"), "--study", str(study), "--seconds", "120")
    yield running
    code, _, err = stop(running)
    assert code == 0
    assert "Traceback" not in err, err


@pytest.fixture
def run():
    """Start an explorer of one's own; whatever is left at the end is ended."""
    started = []

    def begin(folder: Path, *arguments: str) -> Explorer:
        started.append(start(folder, *arguments))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate(timeout=60)
