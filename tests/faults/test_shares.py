"""A run that is divided among processes goes on with the same losses, wherever it is killed and with how many."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from farfield.training.checkpoint import newest_checkpoint

SHARD = {"means": {"shard": True}}


def losses(nursery: Any, run: Path) -> list[float]:
    return [loss for _, _, loss in nursery.outcome(run)[1]]


def finished_like(nursery: Any, undisturbed: Any, run: Path, processes: int = 2) -> None:
    """Go on to the end; the losses are those of one process, up to rounding, and the model is as whole as its own."""
    ended = nursery.start(run, processes=processes, **SHARD)
    assert ended["status"] == 0, nursery.said(run)
    assert ended["others"] == [0] * (processes - 1)
    assert losses(nursery, run) == pytest.approx([loss for _, _, loss in undisturbed.outcome[1]], rel=1e-6)
    weights, expected = load_file(run / "model.safetensors"), load_file(undisturbed.run / "model.safetensors")
    assert {name: w.shape for name, w in weights.items()} == {name: w.shape for name, w in expected.items()}
    assert [path.name for path in run.rglob(".*") if path.name != ".lock"] == []


@pytest.mark.parametrize("processes", [2, 4])
def test_several_processes_give_the_losses_of_one(
    nursery: Any, undisturbed: Any, tmp_path: Path, processes: int
) -> None:
    finished_like(nursery, undisturbed, tmp_path / "run", processes)
    newest = newest_checkpoint(tmp_path / "run", pytest.fail)
    shares = [path for path in newest.folder.iterdir() if path.name.startswith("shard-")]
    assert len(shares) == processes
    sizes = sorted(path.stat().st_size for path in shares)
    whole = sum(path.stat().st_size for path in (undisturbed.run / "checkpoints/step-00000012").glob("*.safetensors"))
    assert sizes[-1] < 1.3 * whole / processes  # each wrote its share


@pytest.fixture(scope="session")
def operations(nursery: Any, tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """The writes, syncs and renames of each of two processes."""
    counted = []
    for rank in range(2):
        run = tmp_path_factory.mktemp("counted") / f"run-{rank}"
        kill = {"operation": 0, "when": "before", "rank": rank}
        assert nursery.start(run, kill, processes=2, **SHARD)["status"] == 0, nursery.said(run)
        counted.append(nursery.operations(run))
    return counted


@pytest.mark.parametrize("case", range(8))
def test_a_kill_of_one_process_changes_nothing(
    nursery: Any, undisturbed: Any, operations: list[list[str]], tmp_path: Path, case: int
) -> None:
    """Four at random moments, four in a save: of either process, before its share is written, in it, and after."""
    run, rank, draw = tmp_path / "run", case % 2, random.Random(case)
    if case < 4:
        kill: dict[str, Any] = {"seconds": draw.uniform(0.2, 1.0) * undisturbed.seconds, "rank": rank}
    else:
        saves = [n for n, name in enumerate(operations[rank], start=1) if name == "write"]
        # the other process writes its shares only; the main process starts with three small files
        write = saves[1] if rank else [n for n in saves if n > 9][len(saves) // 3]
        kill = {"operation": write, "when": "before" if case < 6 else "during", "rank": rank}
    ended = nursery.start(run, kill, processes=2, **SHARD)
    assert ended["status"] == -9 or (case < 4 and ended["status"] == 0), nursery.said(run)
    finished_like(nursery, undisturbed, run)


def test_another_number_of_processes_goes_on_with_the_same_losses(
    nursery: Any, undisturbed: Any, operations: list[list[str]], tmp_path: Path
) -> None:
    """Two, then three (of which one has two of the four samples of a batch), then one that holds everything."""
    run = tmp_path / "run"
    for processes, step in ((2, 4), (3, 8)):
        kill = {"lines": 2 if step == 4 else 4, "signal": 15}
        ended = nursery.start(run, kill, processes=processes, **SHARD)
        assert ended["status"] in (143, 0), nursery.said(run)
    assert "processes: 2 before, 3 now" in nursery.said(run)
    ended = nursery.start(run)
    assert ended["status"] == 0, nursery.said(run)
    assert losses(nursery, run) == pytest.approx([loss for _, _, loss in undisturbed.outcome[1]], rel=1e-6)


def test_a_run_of_one_process_can_be_divided_later(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    renames = [n for n, name in enumerate(undisturbed.operations, start=1) if name == "rename"]
    run = tmp_path / "run"
    assert nursery.start(run, {"operation": renames[4] + 3, "when": "before"})["status"] == -9
    finished_like(nursery, undisturbed, run)


def test_a_damaged_share_is_noticed_and_the_run_goes_back(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert nursery.start(run, processes=2, **SHARD)["status"] == 0
    (run / "finished.json").unlink()
    share = next((run / "checkpoints" / "step-00000012").glob("shard-00002*"))
    data = bytearray(share.read_bytes())
    data[-5] ^= 1
    share.write_bytes(data)
    finished_like(nursery, undisturbed, run)
    assert "step-00000012 is damaged" in nursery.said(run)
    assert "Going on from step 8" in nursery.said(run)


def test_a_disk_that_is_full_for_one_process_is_one_sentence_for_all(nursery: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = nursery.start(run, file_size=100_000, processes=2, **SHARD)  # its share is larger
    assert (ended["status"], ended["others"]) == (2, [2]), nursery.said(run)
    assert "There is no room on the disk" in nursery.said(run)
    assert "Traceback" not in nursery.said(run)
    assert list((run / "checkpoints").iterdir()) == []


def test_a_loss_that_is_not_finite_stops_all_processes(nursery: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = nursery.start(run, processes=2, learning_rate=1e30, save_every=1, log_every=1, **SHARD)
    assert (ended["status"], ended["others"]) == (2, [2]), nursery.said(run)
    failure = json.loads((run / "failure.json").read_text())
    assert newest_checkpoint(run, pytest.fail).step == failure["step"] - 1


def test_a_checkpoint_that_does_not_fit_is_refused_before_it_is_loaded(
    nursery: Any, undisturbed: Any, tmp_path: Path
) -> None:
    """A manifest that is right about moments that are wrong: sealed anew by someone who knows how."""
    from safetensors.torch import save_file

    from farfield.training.checkpoint import save_checkpoint, verify_checkpoint

    run = tmp_path / "run"
    shutil.copytree(undisturbed.run, run)
    (run / "finished.json").unlink()
    folder = run / "checkpoints" / "step-00000012"
    about = verify_checkpoint(folder).about
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    moments = load_file(folder / "optimizer.safetensors")
    name = "embedding.weight.exp_avg"
    moments[name] = torch.zeros(3)
    files = {n: (lambda path, data=data: path.write_bytes(data)) for n, data in kept.items()}
    files["optimizer.safetensors"] = lambda path: save_file(moments, path)
    save_checkpoint(run, 12, files, about, keep=2)
    ended = nursery.start(run)
    assert ended["status"] == 2, nursery.said(run)
    assert f"{name!r} is (3,) of torch.float32, but the model has (257, 32)" in nursery.said(run)
