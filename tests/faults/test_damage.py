"""A damaged newest checkpoint is noticed, set aside, and the run still ends with the same bits."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from farfield.training.checkpoint import DamagedCheckpointError, verify_checkpoint

pytestmark = pytest.mark.hostile("damaged checkpoints, from which a run goes on")
FILES = (
    "config.json",
    "manifest.json",
    "model.safetensors",
    "optimizer.safetensors",
    "trainer_state.json",
)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 16
    path.write_bytes(data)


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


KINDS: dict[str, Callable[[Path], None]] = {
    **{f"{name} missing": lambda folder, name=name: (folder / name).unlink() for name in FILES},
    **{f"{name} truncated": lambda folder, name=name: truncate(folder / name) for name in FILES},
    **{f"{name} one bit flipped": lambda folder, name=name: flip(folder / name) for name in FILES},
    "empty folder": empty,
}


@pytest.fixture(scope="session")
def interrupted(nursery: Any, undisturbed: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed after its second checkpoint."""
    renames = [n for n, name in enumerate(undisturbed.operations, start=1) if name == "rename"]
    run = tmp_path_factory.mktemp("interrupted") / "run"
    assert nursery.start(run, {"operation": renames[4] + 3, "when": "before"})["status"] == -9
    assert sorted(os.listdir(run / "checkpoints"))[-2:] == ["step-00000004", "step-00000008"]
    return run


# every kind of damage is noticed without training (tests/training/test_checkpoint.py); here a run goes on after each
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_newest_checkpoint_is_recovered(
    nursery: Any, undisturbed: Any, interrupted: Path, tmp_path: Path, kind: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(interrupted, run)
    KINDS[kind](run / "checkpoints" / "step-00000008")
    assert nursery.finish(run) == undisturbed.outcome
    assert "step-00000008 is damaged" in nursery.said(run)
    assert "Going on from step 4" in nursery.said(run)
    assert (run / "checkpoints" / "damaged-step-00000008-1").is_dir()


def test_when_every_checkpoint_is_damaged_the_run_starts_again(
    nursery: Any, undisturbed: Any, interrupted: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(interrupted, run)
    for folder in (run / "checkpoints").glob("step-*"):
        flip(folder / "model.safetensors")
    assert nursery.finish(run) == undisturbed.outcome
    assert "starts again from its first step" in nursery.said(run)


def test_a_damaged_finished_model_is_made_again(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(undisturbed.run, run)
    flip(run / "model.safetensors")
    assert nursery.finish(run) == undisturbed.outcome


@pytest.mark.hostile("damaged checkpoints, from which a run goes on", 200)
def test_200_random_bit_flips_of_a_real_checkpoint_are_detected(interrupted: Path, tmp_path: Path) -> None:
    shutil.copytree(interrupted / "checkpoints" / "step-00000008", tmp_path / "step-00000008")
    draw = random.Random(3)
    for _ in range(200):
        path = tmp_path / "step-00000008" / draw.choice(FILES)
        whole = path.read_bytes()
        bit = draw.randrange(8 * len(whole))
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(DamagedCheckpointError):
            verify_checkpoint(path.parent)
        path.write_bytes(whole)
    verify_checkpoint(tmp_path / "step-00000008")
