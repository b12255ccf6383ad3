"""Run folders that change under a process: links, pipes, odd names, several at once, a folder that goes away."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from folders import hollow, link, pipe, written

from farfield.data import durable
from farfield.data.corpus import open_corpus
from farfield.data.tokenizer import byte_tokenizer
from farfield.data.tokens import tokenize
from farfield.study import jobs
from farfield.study.plan import make_plan
from farfield.training import loop
from farfield.training.checkpoint import DamagedCheckpointError, newest_checkpoint, save_checkpoint, verify_checkpoint
from farfield.training.run import train
from farfield.training.runfolder import read_metrics
from farfield.training.settings import preset_settings

pytestmark = pytest.mark.hostile("run folders, checkpoints, caches, corpora")
METRICS = {
    "a pipe": (pipe("metrics.jsonl"), "not a file"),
    "/dev/zero": (link("metrics.jsonl", "/dev/zero"), "not a file"),
    "a terabyte of nothing": (hollow("metrics.jsonl", 1 << 40), "longer than"),
    "a link to itself": (link("metrics.jsonl", "metrics.jsonl"), None),
    "no tables": (written("metrics.jsonl", b'1\n"x"\n[]\nnull\n{"step": 7}\n'), None),
    "deep": (written("metrics.jsonl", b"[" * 100_000 + b'\n{"step": 7}\n'), None),
    "huge numbers": (written("metrics.jsonl", b'{"step": 1' + b"0" * 400 + b'}\n{"step": 7}\n'), None),
    "not UTF-8": (written("metrics.jsonl", b'{"step": "\xff"}\n{"step": 7}\n'), None),
    "cut off": (written("metrics.jsonl", b'{"step": 7}\n{"step": 8, "lo'), None),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_come_in_by_the_one_door(tmp_path: Path, name: str) -> None:
    change, refused = METRICS[name]
    change(tmp_path)
    if refused:
        with pytest.raises(ValueError, match=refused):
            read_metrics(tmp_path)
    else:
        assert read_metrics(tmp_path) in ([], [{"step": 7}])


def save(run: Path, step: int) -> Path:
    run.mkdir(exist_ok=True)
    return save_checkpoint(run, step, {"state.json": lambda path: path.write_text("{}")}, {"seed": 1}, keep=2)


@pytest.mark.parametrize("change", [pipe("manifest.json"), link("manifest.json", "/dev/zero"),
                                    hollow("manifest.json", 1 << 40), link("manifest.json", "manifest.json")],
                         ids=["a pipe", "/dev/zero", "a terabyte", "a loop"])  # fmt: skip
def test_a_manifest_that_is_no_file_is_a_damaged_checkpoint(tmp_path: Path, change: Any) -> None:
    save(tmp_path, 4)
    change(save(tmp_path, 8))
    said: list[str] = []
    found = newest_checkpoint(tmp_path, said.append)
    assert found is not None
    assert found.step == 4
    assert "step-00000008 is damaged" in said[0]


def test_a_manifest_whose_files_are_no_tables(tmp_path: Path) -> None:
    from farfield.training.checkpoint import _seal

    folder = save(tmp_path, 4)
    for files in ({"state.json": 5}, {"state.json": None}, [], {"state.json": ["size", 2]}):
        (folder / "manifest.json").write_bytes(_seal({"step": 4, "files": files, "about": {}}))
        with pytest.raises(DamagedCheckpointError, match="manifest"):
            verify_checkpoint(folder)


NAMES = [
    "step-²",
    "step-٣٣٣٣٣٣٣٣",
    "step-",
    "step--0000001",
    "step-1e10",
    "step-" + "9" * 200,
    "step-00000009 ",
    "Step-00000009",
]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_what_has_not_the_name_of_a_checkpoint_is_none(tmp_path: Path, name: str) -> None:
    save(tmp_path, 4)
    shutil.copytree(tmp_path / "checkpoints" / "step-00000004", tmp_path / "checkpoints" / name)
    found = newest_checkpoint(tmp_path, pytest.fail)
    assert found is not None
    assert found.step == 4
    assert (tmp_path / "checkpoints" / name).exists()


def test_tokens_that_are_changed_behind_a_clock_are_seen(corpus: Path, tmp_path: Path) -> None:
    """In place, of the same size, in the same process, with the time set back."""
    whole = tokenize(open_corpus(str(corpus)), "train", byte_tokenizer(), cache=tmp_path)
    before, state = whole.path.read_bytes(), whole.path.stat()
    with whole.path.open("r+b") as file:
        file.write(b"\x07\x00" * 10)
    os.utime(whole.path, ns=(state.st_atime_ns, state.st_mtime_ns))
    again = tokenize(open_corpus(str(corpus)), "train", byte_tokenizer(), cache=tmp_path)
    assert again.path.read_bytes() == before


@pytest.mark.parametrize("year", [0, 4_000_000_000])
def test_files_of_another_century(corpus: Path, tmp_path: Path, year: int) -> None:
    shutil.copytree(corpus, tmp_path / "text")
    for file in (tmp_path / "text").iterdir():
        os.utime(file, (year, year))
    assert len(tokenize(open_corpus(str(tmp_path / "text")), "train", byte_tokenizer(), cache=tmp_path / "cache"))


def test_a_corpus_of_loops_and_holes(corpus: Path, tmp_path: Path, attacks: Any) -> None:
    text = tmp_path / "text"
    shutil.copytree(corpus, text)
    plain = tokenize(open_corpus(str(text)), "train", byte_tokenizer(), cache=tmp_path / "cache").ids.tolist()
    (text / "around").symlink_to(text)
    (text / "train-1.txt").symlink_to("train-1.txt")
    (text / "train-2.txt").symlink_to("nowhere")
    os.mkfifo(text / "train-3.txt")
    (text / "train-4.txt").symlink_to("/dev/zero")
    found = tokenize(open_corpus(str(text)), "train", byte_tokenizer(), cache=tmp_path / "other").ids.tolist()
    assert found == plain
    hollow("train-5.txt", 1 << 42)(text)
    with pytest.raises(ValueError, match=r"train-5.txt.* hardly any are there"):
        tokenize(open_corpus(str(text)), "train", byte_tokenizer(), cache=tmp_path / "other")
    attacks(6)


def test_a_file_with_a_hole_is_read_where_most_of_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable, "HOLLOW", 1 << 20)
    (tmp_path / "x").write_bytes(bytes(1 << 21))
    os.truncate(tmp_path / "x", 1 << 23)
    assert len(durable.sha256_of(tmp_path / "x")) == 64
    hollow("y", 1 << 23)(tmp_path)
    with pytest.raises(ValueError, match="hardly any are there"):
        durable.sha256_of(tmp_path / "y")


def test_a_hard_link_in_a_run_folder_never_leads_to_another_file(
    run_folder: Path, tmp_path: Path, attacks: Any
) -> None:
    settings = preset_settings("tiny", encoding="alibi", steps=3, corpus=_corpus_of(run_folder))
    names = ["metrics.jsonl", "README.md", "curves.svg", "generation_config.json", "failure.json", "model.safetensors"]
    run = tmp_path / "run"
    shutil.copytree(run_folder, run)
    (run / "finished.json").unlink()
    for name in names:
        (tmp_path / name).write_text("a thesis")
        (run / name).unlink(missing_ok=True)
        os.link(tmp_path / name, run / name)
    train(settings, run, progress=False, log_to="none", say=lambda line: None)
    assert [(tmp_path / name).read_text() for name in names] == ["a thesis"] * len(names)
    attacks(len(names))


def _corpus_of(run: Path) -> str:
    from farfield.training.runfolder import read_settings

    return read_settings(run).corpus


def test_a_run_whose_folder_goes_away_ends_in_a_sentence(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = loop.save_state

    def gone(running: loop.Loop, *arguments: Any) -> None:
        shutil.rmtree(running.run)
        inner(running, *arguments)

    monkeypatch.setattr(loop, "save_state", gone)
    settings = preset_settings("tiny", encoding="alibi", steps=3, corpus=str(corpus))
    with pytest.raises(ValueError, match="cannot go on: No such file") as error:
        train(settings, tmp_path / "run", progress=False, log_to="none", say=lambda line: None)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


def test_of_five_processes_in_one_run_folder_one_works(
    torch_forks: Any, corpus: Path, tmp_path: Path, attacks: Any
) -> None:
    call = ["train", "--encoding", "alibi", "--preset", "tiny", "--steps", "3", "--corpus", corpus, "--quiet"]
    cache = {"FARFIELD_CACHE": str(tmp_path / "cache")}
    ended = torch_forks(*call, "--out", tmp_path / "run", copies=5, environment=cache, megabytes=8000, seconds=120)
    assert 0 in [one["status"] for one in ended], ended
    for one in ended:
        assert one["status"] == 0 or "is at work in the run folder" in one["err"], one
    alone = torch_forks(*call, "--out", tmp_path / "alone", environment=cache, megabytes=8000, seconds=120)
    assert alone["status"] == 0, alone
    assert durable.sha256_of(tmp_path / "run" / "model.safetensors") == durable.sha256_of(
        tmp_path / "alone" / "model.safetensors"
    )
    attacks(5)


def test_a_log_of_a_study_is_not_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.cell_job(make_plan("tiny", encodings=["alibi"]).cells[0])
    log, precious = jobs.log_of(tmp_path, job), tmp_path / "thesis.txt"
    precious.write_text("the only copy")
    log.parent.mkdir(parents=True)
    log.symlink_to(precious)
    monkeypatch.setattr(subprocess, "Popen", lambda command, stdout, **options: os.write(stdout.fileno(), b"said"))
    jobs._start(tmp_path, job, 1, None)
    assert precious.read_text() == "the only copy"
    assert log.read_text() == "said"
    log.unlink()
    os.mkfifo(log)  # to read it would be to wait for ever
    assert jobs.Failure(job, 3, log).sentence.startswith(job.label)


def test_a_run_goes_on_when_nobody_reads_what_it_says() -> None:
    """As in `farfield train ... 2>&1 | head -1`."""
    code = (
        "from farfield.training.reporting import say_on_stderr as say; [say('x' * 99) for _ in range(3)]; print('done')"
    )
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=theirs, check=False, text=True)
    os.close(theirs)
    assert (done.returncode, done.stdout) == (0, "done\n")
