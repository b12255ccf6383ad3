"""The ways a run may end early: signals, a full disk, numbers that are not finite, and what is not the same run."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from farfield.training.checkpoint import newest_checkpoint, run_lock


def checkpoints(run: Path) -> list[str]:
    return sorted(entry.name for entry in (run / "checkpoints").iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_saves_and_leaves_and_the_run_goes_on_to_the_same_bits(
    nursery: Any, tmp_path: Path, number: int
) -> None:
    longer = {"steps": 120, "save_every": 1000, "log_every": 1, "evaluate_every": 60}
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert nursery.start(whole, **longer)["status"] == 0
    ended = nursery.start(run, {"lines": 20, "signal": int(number)}, **longer)
    assert ended["status"] == 128 + number, nursery.said(run)
    assert not (run / "model.safetensors").exists()
    step = newest_checkpoint(run, pytest.fail).step
    assert 20 <= step < 120
    assert f"Stopped at step {step} of 120; go on with: farfield train --resume" in nursery.said(run)
    assert nursery.finish(run, **longer) == nursery.outcome(whole)


def test_a_file_that_may_not_grow_ends_in_one_sentence(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ended = nursery.start(run, file_size=100_000)  # the optimizer's state is larger
    assert ended["status"] == 2, nursery.said(run)
    assert "There is no room on the disk" in nursery.said(run).splitlines()[-1]
    assert "Traceback" not in nursery.said(run)
    assert checkpoints(run) == []
    assert nursery.finish(run) == undisturbed.outcome


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("a small file system can be mounted by root only")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount command")
def test_a_full_disk_leaves_the_older_checkpoints_intact(nursery: Any, undisturbed: Any, small_disk: Path) -> None:
    run = small_disk / "run"
    ended = nursery.start(run, keep=3)  # the third does not fit
    assert ended["status"] == 2, nursery.said(run)
    assert "There is no room on the disk" in nursery.said(run).splitlines()[-1]
    assert checkpoints(run) == ["step-00000004", "step-00000008"]
    assert newest_checkpoint(run, pytest.fail).step == 8
    subprocess.run(["mount", "-o", "remount,size=10M", str(small_disk)], check=True)
    assert nursery.finish(run, keep=3) == undisturbed.outcome


def test_a_loss_that_is_not_finite_stops_before_the_update(nursery: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    changes = {"learning_rate": 1e30, "save_every": 1, "log_every": 1}
    assert nursery.start(run, **changes)["status"] == 2
    failure = json.loads((run / "failure.json").read_text())
    step = failure["step"]
    assert failure["message"] in nursery.said(run)
    assert f"not finite at step {step}" in failure["message"]
    assert failure["samples"] == [4 * (step - 1), 4 * step - 1]
    assert newest_checkpoint(run, pytest.fail).step == step - 1
    # what was saved is whole: with its weights the same step fails in the same way
    assert nursery.start(run, **changes)["status"] == 2
    assert json.loads((run / "failure.json").read_text()) == failure


def test_a_second_process_is_refused_at_once(nursery: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with run_lock(run):
        assert nursery.start(run)["status"] == 2
    assert f"Another process (process {os.getpid()}) is at work" in nursery.said(run)


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"encoding": "type1"}, 'encoding: "kerple-log" before, "type1" now'),
        ({"steps": 13}, "steps: 12 before, 13 now"),
        ({"seed": 5, "batch": 8}, "batch: 4 before, 8 now; seed: 0 before, 5 now"),
    ],
)
def test_changed_settings_are_refused_with_the_difference(
    nursery: Any, undisturbed: Any, tmp_path: Path, changes: dict[str, Any], difference: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(undisturbed.run, run)
    (run / "finished.json").unlink()
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert nursery.start(run, **changes)["status"] == 2
    assert difference in nursery.said(run)
    (run / ".lock").write_bytes(before[run / ".lock"])
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("what", ["corpus", "tokenizer", "formula", "hidden size"])
def test_a_changed_corpus_tokenizer_or_formula_is_refused(
    nursery: Any, undisturbed: Any, tmp_path: Path, what: str
) -> None:
    run, text = tmp_path / "run", tmp_path / "text"
    shutil.copytree(nursery.corpus, text)
    renames = [n for n, name in enumerate(undisturbed.operations, start=1) if name == "rename"]
    kill = {"operation": renames[4] + 3, "when": "before"}
    assert nursery.start(run, kill, corpus=str(text))["status"] == -9
    if what == "corpus":
        (text / "train.txt").write_text((text / "train.txt").read_text().replace("green", "brown"))
    elif what == "tokenizer":
        tokenizer = json.loads((run / "tokenizer.json").read_text())
        tokenizer["model"]["vocab"]["a"], tokenizer["model"]["vocab"]["b"] = 98, 97
        (run / "tokenizer.json").write_text(json.dumps(tokenizer))
    else:
        config = json.loads((run / "config.json").read_text())
        if what == "formula":
            config["training"]["identity"]["formula"] = "-p*log(1 + a*t)**2"
        else:
            config["hidden_size"] = 48
        (run / "config.json").write_text(json.dumps(config))
    assert nursery.start(run, corpus=str(text))["status"] == 2
    expected = {
        "corpus": "identity.corpus: ",
        "tokenizer": "identity.tokenizer: ",
        "formula": 'identity.formula: "-p*log(1 + a*t)**2" before, "-p*log(1 + a*t)" now',
        "hidden size": "hidden_size: 48 before, 32 now",
    }[what]
    assert expected in nursery.said(run)
