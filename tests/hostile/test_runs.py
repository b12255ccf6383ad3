"""Run folders, checkpoints, caches and corpora that someone else had his hands on."""

import json
import os
import random
import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from farfield.data import durable
from farfield.data.corpus import CorpusError, open_corpus
from farfield.data.durable import cache_folder
from farfield.data.tokenizer import byte_tokenizer
from farfield.data.tokens import tokenize
from farfield.training.checkpoint import run_lock, save_checkpoint, verify_checkpoint
from farfield.training.run import train
from farfield.training.settings import Settings, preset_settings

pytestmark = pytest.mark.hostile("run folders, checkpoints, caches, corpora")
PRECIOUS = "the only copy of a thesis"


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("".join(f"{i} ships, {i * 7 % 13} sails.\n" for i in range(300)))
    return folder


@pytest.fixture(scope="module")
def settings(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    os.environ["FARFIELD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    return preset_settings("tiny", encoding="alibi", corpus=str(text), steps=4, save_every=2, evaluate_tokens=32)


def trained(settings: Settings, run: Path) -> Any:
    return train(settings, run, progress=False, log_to="none", say=lambda line: None)


@pytest.fixture(scope="module")
def finished(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("finished") / "run"
    assert trained(settings, run).finished
    return run


# --- checkpoints that are sealed and wrong ----------------------------------------------------------------------------


def resealed(finished: Path, run: Path, change: Any, step: int = 4) -> None:
    """A copy of a run whose newest checkpoint was changed by someone who knows how manifests are made."""
    shutil.copytree(finished, run)
    (run / "finished.json").unlink()
    folder = run / "checkpoints" / "step-00000004"
    about = dict(verify_checkpoint(folder).about)
    files: dict[str, bytes] = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "manifest.json"}
    moments = load_file(folder / "optimizer.safetensors")
    change(moments, files, about)
    if "optimizer.safetensors" in files:
        save_file(moments, run / "moments")
        files["optimizer.safetensors"] = (run / "moments").read_bytes()
        (run / "moments").unlink()
    writers = {name: (lambda path, data=data: path.write_bytes(data)) for name, data in files.items()}
    shutil.rmtree(run / "checkpoints")
    save_checkpoint(run, step, writers, about, keep=2)


NAME = "layers.0.up.weight.exp_avg"
CHANGES: dict[str, Any] = {
    "too small": lambda m, f, a: m.update({NAME: torch.zeros(3)}),
    "too large": lambda m, f, a: m.update({NAME: torch.zeros(4096, 4096)}),
    "turned": lambda m, f, a: m.update({NAME: m[NAME].T.contiguous()}),
    "empty": lambda m, f, a: m.update({NAME: torch.zeros(0)}),
    "another type": lambda m, f, a: m.update({NAME: m[NAME].double()}),
    "whole numbers": lambda m, f, a: m.update({NAME: m[NAME].long()}),
    "one missing": lambda m, f, a: m.pop(NAME),
    "all missing": lambda m, f, a: f.pop("optimizer.safetensors"),
    "second moment missing": lambda m, f, a: m.pop("embedding.weight.exp_avg_sq"),
    "another step of one": lambda m, f, a: m["embedding.weight.step"].fill_(3),
    "global_step": lambda m, f, a: f.update(
        {"trainer_state.json": f["trainer_state.json"].replace(b'"global_step": 4', b'"global_step": 1000000000')}
    ),
    "no history": lambda m, f, a: f.update({"trainer_state.json": b'{"global_step": 4}'}),
    "history of the future": lambda m, f, a: f.update(
        {"trainer_state.json": b'{"global_step": 4, "log_history": [{"step": 1000000}]}'}
    ),
    "no losses": lambda m, f, a: a.pop("loss_sum"),
    "losses that are no number": lambda m, f, a: a.update(loss_sum="much"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_sealed_checkpoint_that_does_not_fit_is_refused_in_a_sentence(
    finished: Path, settings: Settings, tmp_path: Path, change: str
) -> None:
    resealed(finished, tmp_path / "run", CHANGES[change])
    with pytest.raises(ValueError, match="step-00000004") as error:
        trained(settings, tmp_path / "run")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run" / "finished.json").exists()


def test_a_checkpoint_from_the_future_does_not_finish_a_run(finished: Path, settings: Settings, tmp_path: Path) -> None:
    def change(moments: Any, files: dict[str, bytes], about: Any) -> None:
        for name in moments:
            if name.endswith(".step"):
                moments[name].fill_(10**9)
        files["trainer_state.json"] = b'{"global_step": 1000000000, "log_history": []}'

    resealed(finished, tmp_path / "run", change, step=10**9)
    with pytest.raises(ValueError, match="is of step 1000000000, but the run has 4 steps"):
        trained(settings, tmp_path / "run")


# --- links and folders of others --------------------------------------------------------------------------------------

PLANTED = [
    ".lock", "config.json", "tokenizer.json", "tokenizer_config.json", "metrics.jsonl", "model.safetensors",
    "README.md", "curves.svg", "finished.json", "failure.json", "generation_config.json", ".model.safetensors.staged",
    ".config.json.staged", ".metrics.jsonl.staged",
]  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_link_in_a_run_folder_never_leads_to_another_file(
    finished: Path, settings: Settings, tmp_path: Path, name: str
) -> None:
    """In a run that is there and goes on, one of its files leads to a file of the user."""
    run, precious = tmp_path / "run", tmp_path / "thesis.txt"
    precious.write_text(PRECIOUS)
    shutil.copytree(finished, run)
    (run / "finished.json").unlink()
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(precious)
    try:
        trained(settings, run)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017
    assert precious.read_text() == PRECIOUS


def test_a_hard_link_and_a_pipe_are_no_lock(tmp_path: Path) -> None:
    precious = tmp_path / "thesis.txt"
    precious.write_text(PRECIOUS)
    for plant in (lambda lock: os.link(precious, lock), os.mkfifo, lambda lock: lock.symlink_to(precious)):
        run = tmp_path / "run"
        run.mkdir()
        plant(run / ".lock")
        with pytest.raises(OSError, match=r"plain file|symbolic links"), run_lock(run):
            pass
        shutil.rmtree(run)
    assert precious.read_text() == PRECIOUS


def test_checkpoints_are_not_written_through_a_link(settings: Settings, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "step-00000001").mkdir()
    (elsewhere / ".staged-thesis").write_text(PRECIOUS)
    run.mkdir()
    (run / ".lock").write_text("")
    (run / "tokenizer.json").write_text("{}")
    assert trained(settings.model_copy(update={"steps": 1, "save_every": 5}), tmp_path / "other").finished
    shutil.copytree(tmp_path / "other", run, dirs_exist_ok=True)
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(elsewhere)
    (run / "finished.json").unlink()
    with pytest.raises(ValueError, match="is a link: the checkpoints of a run must be in its own folder"):
        trained(settings.model_copy(update={"steps": 1, "save_every": 5}), run)
    assert sorted(path.name for path in elsewhere.iterdir()) == [".staged-thesis", "step-00000001"]


@pytest.mark.parametrize(
    "names",
    [["README.md"], ["model.safetensors", "config.json"], ["src/"], [".git/"], [".lock", "notes.txt"], ["config.json"]],
)
def test_a_folder_that_is_not_ours_is_left_alone(settings: Settings, tmp_path: Path, names: list[str]) -> None:
    out = tmp_path / "project"
    out.mkdir()
    for name in names:
        (out / name).mkdir() if name.endswith("/") else (out / name).write_text('{"model_type": "gpt2"}')
    before = {path: path.read_bytes() if path.is_file() else b"" for path in out.iterdir()}
    with pytest.raises(ValueError, match=r"is not empty, and not the folder of a run|has no settings of a run"):
        trained(settings, out)
    assert {path: path.read_bytes() if path.is_file() else b"" for path in out.iterdir()} == before


def test_staged_names_cannot_be_guessed_and_never_overwrite(tmp_path: Path) -> None:
    names = {durable.staged_name(tmp_path / "a").name for _ in range(100)}
    assert len(names) == 100
    (tmp_path / "there").write_text(PRECIOUS)
    with pytest.raises(FileExistsError):
        durable.write_file(tmp_path / "there", b"new")
    assert (tmp_path / "there").read_text() == PRECIOUS


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path: Path) -> None:
    path, failed = tmp_path / "result.json", []

    def write(number: int) -> None:
        try:
            for _ in range(20):
                durable.replace_file(path, json.dumps([number] * 2000).encode())
                assert len(set(json.loads(path.read_bytes()))) == 1
        except Exception as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failed == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


# --- the token cache --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_damaged_tokens_are_never_read(text: Path, tmp_path: Path, seed: int) -> None:
    draw, corpus = random.Random(seed), open_corpus(str(text))
    whole = tokenize(corpus, "train", byte_tokenizer(), cache=tmp_path)
    path, before = whole.path, whole.path.read_bytes()
    data = bytearray(before)
    if seed == 0:
        del data[-2:]
    elif seed == 1:
        data += b"\0\0"
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.unlink()
    path.write_bytes(data)
    again = tokenize(corpus, "train", byte_tokenizer(), cache=tmp_path)
    assert again.path.read_bytes() == before


def test_the_cache_is_its_owners(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARFIELD_CACHE", str(tmp_path / "cache"))
    tokens = tokenize(open_corpus(str(text)), "train", byte_tokenizer())
    assert stat.S_IMODE((cache_folder() / "tokens").stat().st_mode) & 0o077 == 0
    assert [entry.name for entry in tokens.path.parent.parent.iterdir()] == [tokens.path.parent.name]
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert stat.S_IMODE(durable.private_folder(shared).stat().st_mode) & 0o022 == 0
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(ValueError, match="belongs to another user"):
        durable.private_folder(shared)


def test_tokens_of_a_killed_process_do_not_stay(text: Path, tmp_path: Path) -> None:
    """One process is killed while it makes tokens; another one that is at work is left alone."""
    code = f"""
import os, signal, sys
from pathlib import Path
from farfield.data import tokens
from farfield.data.corpus import open_corpus
from farfield.data.tokenizer import byte_tokenizer
def write(*arguments):
    print("at work", flush=True)
    input() if sys.argv[1] == "wait" else os.kill(os.getpid(), signal.SIGKILL)
tokens._write_tokens = write
tokens.tokenize(open_corpus({str(text)!r}), sys.argv[2], byte_tokenizer(), cache=Path({str(tmp_path)!r}))
"""
    killed = subprocess.run([sys.executable, "-c", code, "die", "valid"], capture_output=True)
    assert killed.returncode == -9
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    working = subprocess.Popen([sys.executable, "-c", code, "wait", "test"], text=True, **pipes)
    assert working.stdout.readline() == "at work\n"
    assert len(list((tmp_path / "tokens").glob(".*"))) == 1  # the killed one's is gone, as the next one began
    tokenize(open_corpus(str(text)), "train", byte_tokenizer(), cache=tmp_path)
    assert len(list((tmp_path / "tokens").glob(".*"))) == 1
    working.kill()
    working.communicate()
    tokenize(open_corpus(str(text)), "valid", byte_tokenizer(), cache=tmp_path)
    assert list((tmp_path / "tokens").glob(".*")) == []


# --- corpora ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.01, 0.3, 0.48, 0.9, 0.999])
@pytest.mark.parametrize("frames", [1, 3])
def test_a_zst_file_that_is_cut_off_is_refused(tmp_path: Path, share: float, frames: int) -> None:
    zstandard = pytest.importorskip("zstandard")
    draw = random.Random(1)
    parts = ["".join(f"{draw.random()}\n" for _ in range(20_000)) for _ in range(frames)]
    data = b"".join(zstandard.ZstdCompressor().compress(part.encode()) for part in parts)
    path = tmp_path / "text.txt.zst"
    path.write_bytes(data)
    corpus = open_corpus(str(tmp_path))
    length = sum(len(p.text) for split in ("train", "valid", "test") for p in corpus.passages(split))
    assert length == sum(map(len, parts))
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(CorpusError, match=r"text.txt.zst.*cut off"):
        list(open_corpus(str(tmp_path)).passages("train"))


def test_a_zst_bomb_is_refused_in_little_memory(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "bomb.txt.zst"
    path.write_bytes(zstandard.ZstdCompressor(level=19).compress(bytes(200 << 20)))
    assert path.stat().st_size < 30_000
    with pytest.raises(CorpusError, match="expands to more than"):
        list(open_corpus(str(tmp_path)).passages("train"))


@pytest.mark.parametrize(
    "name",
    ["how-to-train-a-dog.txt", "test-driven-development.txt", "train_of_thought.txt", "my dev notes.txt", "latest.txt",
     "valid arguments/essay.txt", "training-day.jsonl", "testament.txt", "val-de-loire.txt"],
)  # fmt: skip
def test_a_word_in_a_name_makes_no_split(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps({"text": "a dog"}) if name.endswith("jsonl") else "a dog\n" * 400)
    for other in range(30):
        (tmp_path / f"book-{other}.txt").write_text("a cat\n" * 400)
    corpus = open_corpus(str(tmp_path))
    assert corpus.division == ""
    read = sum(len(p.text) for split in ("train", "valid", "test") for p in corpus.passages(split))
    assert read >= 30 * 2400


def test_it_is_said_which_files_went_where(settings: Settings, text: Path, tmp_path: Path) -> None:
    shutil.copytree(text, tmp_path / "text")
    (tmp_path / "text" / "notes.txt").write_text("not read")
    said: list[str] = []
    changed = settings.model_copy(update={"corpus": str(tmp_path / "text"), "steps": 1})
    train(changed, tmp_path / "run", progress=False, log_to="none", say=said.append)
    expected = "by their names: train: train.txt; valid: valid.txt; test: test.txt; not read: notes.txt."
    assert said[0].endswith(expected)
