"""What the tests of training share: one cache of tokens, one text, and a run of eight steps on it."""

import os
from pathlib import Path

import pytest

from farfield.training.run import train
from farfield.training.settings import Settings, preset_settings


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tokens and tokenizers are kept, so that no text is read twice."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["FARFIELD_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "valid", "test"):
        lines = (f"{i} sailors went to sea, sea, sea; {i * i} came back for tea.\n" for i in range(500))
        (folder / f"{split}.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="session")
def settings(corpus: Path) -> Settings:
    """Eight steps with learned parameters, evaluated and saved at 3, 6 and 8."""
    return preset_settings("tiny", encoding="kerple-log", corpus=str(corpus), steps=8, evaluate_every=3, save_every=3)


@pytest.fixture(scope="session")
def plain(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The finished run of these settings."""
    folder = tmp_path_factory.mktemp("runs") / "plain"
    assert train(settings, folder, progress=False, log_to="none", say=lambda line: None).finished
    return folder
