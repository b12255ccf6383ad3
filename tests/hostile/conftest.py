"""Each test here is one attack of the kind that its module names (KIND), or as many as it says with `attacks(n)`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = "the cat sat on the mat and the dog ran to the hill where the sun was low and the day was long "


@pytest.fixture(autouse=True)
def attacks(request: Any) -> Callable[[int], None]:
    """Counts a test as one attack; call it with another number."""
    pair = [request.module.KIND, 1]
    request.node.user_properties.append(("hostile", pair))

    def are(count: int) -> None:
        pair[1] = count

    return are


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
