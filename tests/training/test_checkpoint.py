"""Checkpoints: whole or not there, and every kind of damage shows."""

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from farfield.data import durable
from farfield.data.durable import DiskFullError
from farfield.training.checkpoint import (
    DamagedCheckpointError,
    RunLockedError,
    newest_checkpoint,
    run_lock,
    save_checkpoint,
    verify_checkpoint,
)


def save(run: Path, step: int, *, keep: int = 2, size: int = 3000) -> Path:
    content = random.Random(step)
    files = {
        "model.safetensors": lambda path: path.write_bytes(content.randbytes(size)),
        "state.json": lambda path: path.write_text(f'{{"step": {step}}}'),
        "empty": lambda path: path.write_bytes(b""),
    }
    run.mkdir(exist_ok=True)
    return save_checkpoint(run, step, files, {"seed": 1}, keep=keep)


def names(run: Path) -> list[str]:
    return sorted(entry.name for entry in (run / "checkpoints").iterdir())


def test_what_was_saved_verifies(tmp_path: Path) -> None:
    folder = save(tmp_path, 40)
    assert verify_checkpoint(folder) == (folder, 40, {"seed": 1})
    assert newest_checkpoint(tmp_path, pytest.fail) == (folder, 40, {"seed": 1})


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 100, 99):
        save(tmp_path, step)
    assert names(tmp_path) == ["step-00000099", "step-00000100"]
    save(tmp_path, 100)  # again, as after a resume
    assert newest_checkpoint(tmp_path, pytest.fail).step == 100


@pytest.mark.parametrize("name", ["model.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "emptied", "bit", "longer", "folder", "link"])
def test_each_kind_of_damage_is_noticed_and_set_aside(tmp_path: Path, name: str, damage: str) -> None:
    save(tmp_path, 20)
    path = save(tmp_path, 40) / name
    data = path.read_bytes()
    if damage == "truncated":
        os.truncate(path, len(data) - 1)
    elif damage == "emptied":
        os.truncate(path, 0)
    elif damage == "bit":
        path.write_bytes(data[:9] + bytes([data[9] ^ 4]) + data[10:])
    elif damage == "longer":
        path.write_bytes(data + b"\n")
    else:
        path.unlink()
        if damage == "folder":
            path.mkdir()
        elif damage == "link":
            (tmp_path / "elsewhere").write_bytes(data)
            path.symlink_to(tmp_path / "elsewhere")
    said: list[str] = []
    if (name, damage) == ("manifest.json", "link"):  # the contents are right: nothing is lost by reading it
        assert newest_checkpoint(tmp_path, said.append).step == 40
        return
    assert newest_checkpoint(tmp_path, said.append).step == 20
    assert len(said) == 1
    assert name in said[0]
    assert "set aside as damaged-step-00000040-1" in said[0]
    assert names(tmp_path) == ["damaged-step-00000040-1", "step-00000020"]
    newest_checkpoint(tmp_path, pytest.fail)


def test_an_empty_folder_a_foreign_file_and_another_step_are_damage(tmp_path: Path) -> None:
    folder = save(tmp_path, 40)
    (folder / "extra").write_text("")
    with pytest.raises(DamagedCheckpointError, match="extra: not in the manifest"):
        verify_checkpoint(folder)
    (folder / "extra").unlink()
    moved = folder.rename(folder.with_name("step-00000041"))
    with pytest.raises(DamagedCheckpointError, match="of step 40"):
        verify_checkpoint(moved)
    shutil.rmtree(moved)
    moved.mkdir()
    said: list[str] = []
    assert newest_checkpoint(tmp_path, said.append) is None
    assert said[-1] == "No checkpoint is whole: the run starts again from its first step."


def test_200_random_bit_flips_are_all_detected(tmp_path: Path) -> None:
    folder = save(tmp_path, 7)
    draw = random.Random(0)
    files = [path for path in folder.iterdir() if path.stat().st_size]
    for _ in range(200):
        path = draw.choice(files)
        data = bytearray(path.read_bytes())
        bit = draw.randrange(8 * len(data))
        whole = bytes(data)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(DamagedCheckpointError):
            verify_checkpoint(folder)
        path.write_bytes(whole)
    verify_checkpoint(folder)


def test_every_byte_of_the_manifest_counts(tmp_path: Path) -> None:
    path = save(tmp_path, 7) / "manifest.json"
    whole = path.read_bytes()
    for byte in range(len(whole)):
        bit = 8 * byte + byte % 8
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        with pytest.raises(DamagedCheckpointError):
            verify_checkpoint(path.parent)


def test_leftovers_of_a_kill_are_removed(tmp_path: Path) -> None:
    save(tmp_path, 5)
    for name in (".staged-00000010", ".old-step-00000001"):
        (tmp_path / "checkpoints" / name).mkdir()
        (tmp_path / "checkpoints" / name / "model.safetensors").write_text("half")
    assert newest_checkpoint(tmp_path, pytest.fail).step == 5
    assert names(tmp_path) == ["step-00000005"]


@pytest.mark.parametrize("failing", ["write", "write_file", "sync_file", "rename"])
def test_a_full_disk_is_one_sentence_and_the_older_checkpoint_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    save(tmp_path, 5)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if failing == "write":
        with pytest.raises(DiskFullError):
            save_checkpoint(tmp_path, 10, {"model": full}, {}, keep=2)
    else:
        with monkeypatch.context() as patch:
            patch.setattr(durable, failing, full)
            with pytest.raises(DiskFullError, match=r"no room on the disk .* what was saved before is intact"):
                save(tmp_path, 10)
    assert names(tmp_path) == ["step-00000005"]
    assert newest_checkpoint(tmp_path, pytest.fail).step == 5


def test_a_second_process_is_refused_at_once(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from farfield.training.checkpoint import run_lock
with run_lock(Path({str(tmp_path)!r})): print("held", flush=True); input()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "held\n"
    with pytest.raises(RunLockedError, match=rf"Another process \(process {other.pid}\)"), run_lock(tmp_path):
        pass
    other.kill()
    other.communicate()
    with run_lock(tmp_path):  # the kernel let go of it
        pass
    with run_lock(tmp_path):
        pass


def test_a_replaced_file_is_old_or_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    durable.replace_file(path, b"old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DiskFullError):
            durable.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    durable.replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["config.json"]
