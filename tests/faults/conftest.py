"""The nursery, and what an undisturbed run gives."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SETTINGS: dict[str, Any] = {
    "encoding": "kerple-log",  # learned parameters are part of what must survive
    "steps": 12,
    "save_every": 4,
    "evaluate_every": 6,
    "log_every": 3,  # saves fall between two lines of the metrics
    "evaluate_tokens": 64,
}
TEXT = "".join(f"{i} green bottles, hanging on the wall; and {i * 7 % 13} more.\n" for i in range(600))


Outcome = tuple[str, list[tuple[int, str, float]]]


@dataclass
class Nursery:
    """Runs in real processes: `start` waits for one to end."""

    process: subprocess.Popen[str]
    corpus: Path

    def start(
        self,
        run: Path,
        kill: dict[str, Any] | None = None,
        *,
        file_size: int = 0,
        processes: int = 1,
        means: dict[str, Any] | None = None,
        **changes: Any,
    ) -> dict[str, Any]:
        settings = {**SETTINGS, "corpus": str(self.corpus), **changes}
        order = {"run": str(run), "settings": settings, "kill": kill, "file_size": file_size}
        order |= {"processes": processes, "means": means or {}}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def finish(self, run: Path, **changes: Any) -> Outcome:
        """Go on with a run to its end, which must leave no debris; its weights and every loss, to the bit."""
        ended = self.start(run, **changes)
        assert ended["status"] == 0, self.said(run)
        assert [path.name for path in run.rglob(".*") if path.name != ".lock"] == []
        return self.outcome(run)

    def outcome(self, run: Path) -> Outcome:
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        losses = [(line["step"], key, line[key]) for line in lines for key in ("loss", "valid_loss") if key in line]
        return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest(), losses

    def said(self, run: Path) -> str:
        return Path(f"{run}.said").read_text()

    def operations(self, run: Path) -> list[str]:
        """The writes, syncs and renames of a run that was counted."""
        return [line.split()[1] for line in Path(f"{run}.operations").read_text().splitlines()]


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    home = tmp_path_factory.mktemp("nursery")
    corpus = home / "text"
    corpus.mkdir()
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.txt").write_text(TEXT)
    environment = {**os.environ, "FARFIELD_CACHE": str(home / "cache")}
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("nursery.py"))]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=home
    )
    assert process.stdout.readline() == "ready\n"
    yield Nursery(process, corpus)
    process.communicate()  # closes its input, which ends it


@dataclass
class Undisturbed:
    """What a run gives that nothing happens to, how long it takes, and its operations on files."""

    outcome: Outcome
    seconds: float
    operations: list[str]
    run: Path


@pytest.fixture(scope="session")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    assert nursery.start(run, {"operation": 0, "when": "before"})["status"] == 0, nursery.said(run)
    again = run.with_name("again")
    ended = nursery.start(again)
    assert nursery.outcome(run) == nursery.outcome(again)
    return Undisturbed(nursery.outcome(run), ended["seconds"], nursery.operations(run), run)
