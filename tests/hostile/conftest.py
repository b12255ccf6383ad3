"""What attacks share: commands in processes with limits, a corpus, a run; each test counts (see ../conftest.py)."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "study")]  # changes of folders, and records made by hand
_spec = importlib.util.spec_from_file_location("explorer_fixtures", HERE.parent / "explorer" / "conftest.py")
_explorer = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = _explorer
_spec.loader.exec_module(_explorer)
explorer, run, study = _explorer.explorer, _explorer.run, _explorer.study
WORDS = "the cat sat on the mat and the dog ran to the hill where the sun was low and the day was long "


class Forks:
    """Commands in processes with limits (forks.py); those that need torch fork from one that has it."""

    def __init__(self, home: Path, *arguments: str):
        program = str(Path(__file__).with_name("forks.py"))
        environment = {**os.environ, "FARFIELD_CACHE": str(home / "cache"), "COLUMNS": "200"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", program, *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=home,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def __call__(self, *arguments: Any, **limits: Any) -> dict[str, Any]:
        """How a command ended: its status, what it printed, its processor time and memory."""
        order = {"arguments": [str(a) for a in arguments], **limits}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def refusal(self, *arguments: Any, **limits: Any) -> str:
        """The one sentence with which a command must end."""
        ended = self(*arguments, **limits)
        assert ended["status"] == 2, (arguments, ended)
        return one_sentence(ended["err"])


def one_sentence(said: str) -> str:
    """What was said, if it is a sentence of ours with at most a pointer below it."""
    lines = said.rstrip("\n").split("\n")
    assert lines[0].startswith("farfield: "), said
    assert len(lines) in (1, 3), said
    assert len(said) < 1500, said
    return lines[0]


@pytest.fixture(scope="session")
def forks(tmp_path_factory: Any) -> Iterator[Forks]:
    running = Forks(tmp_path_factory.mktemp("forks"))
    yield running
    running.process.communicate()


@pytest.fixture(scope="session")
def torch_forks(tmp_path_factory: Any) -> Iterator[Forks]:
    running = Forks(tmp_path_factory.mktemp("torch_forks"), "torch")
    yield running
    running.process.communicate()


@pytest.fixture
def sentence(capsys: Any) -> Callable[..., str]:
    """Runs a command that must fail with one sentence, and returns it."""
    from farfield.cli import main

    def run(*arguments: Any) -> str:
        with pytest.raises(SystemExit) as end:
            main([str(a) for a in arguments])
        said = capsys.readouterr()
        assert end.value.code not in (0, None), said.out[-500:]
        assert "Traceback" not in said.err
        assert said.err.strip()
        assert len(said.err) < 1500
        return str(said.err)

    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: Any) -> Path:
    """A folder with a few thousand characters for each split."""
    folder = tmp_path_factory.mktemp("corpus")
    for number, (name, times) in enumerate({"train": 80, "valid": 20, "test": 20}.items()):
        (folder / f"{name}.txt").write_text((WORDS[number:] + f"{name} ") * times)
    return Path(folder)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: Any, corpus: Path) -> Path:
    """A finished run of a few steps."""
    from farfield.training.run import train
    from farfield.training.settings import preset_settings

    folder = Path(tmp_path_factory.mktemp("runs")) / "alibi"
    settings = preset_settings("tiny", encoding="alibi", steps=3, corpus=str(corpus))
    train(settings, folder, progress=False, log_to="none", say=lambda line: None)
    return folder
