"""Doing the jobs of a study on this machine: one process for each, as many at once as there are cores.

A process that fails takes nothing with it: its log is kept, the others go on, and the study says what is missing. A
GPU is given to one job at a time.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from farfield import zoo
from farfield.reading import UnreadableError, read_bytes, read_json
from farfield.study.cell import LOGS, PREPARE, PROGRESS, SPEED, find_cell, read_record
from farfield.study.escaping import plain
from farfield.study.plan import Cell, Plan


@dataclass(frozen=True)
class Job:
    """One call of `python -m farfield.study.cell`."""

    name: str  # of its progress and its log
    arguments: tuple[str, ...]
    label: str
    threads: int | None = None  # None: its share of the cores


@dataclass(frozen=True)
class Failure:
    """A job that did not end well, and the last thing it said."""

    job: Job
    status: int | None
    log: Path

    @property
    def sentence(self) -> str:
        try:
            lines = read_bytes(self.log).decode(errors="replace").strip().splitlines()
        except UnreadableError:
            lines = []
        last = lines[-1].removeprefix("farfield: ") if lines else f"it left with status {self.status}"
        return plain(f"{self.job.label} failed: {last} (log: {self.log})")


@dataclass(frozen=True)
class Progress:
    """How far a job is: its phase, the share of it that is done, and the share of the whole job."""

    phase: str
    share: float
    whole: float


class Watcher(Protocol):
    """Whoever shows what is going on."""

    def expect(self, count: int) -> None: ...
    def started(self, job: Job) -> None: ...
    def moved(self, job: Job, progress: Progress) -> None: ...
    def ended(self, job: Job, failure: Failure | None) -> None: ...


def cell_job(cell: Cell) -> Job:
    return Job(cell.key, (cell.key,), plain(f"{cell.corpus}, {cell.encoding}, seed {cell.seed}"))


def prepare_job(cell: Cell) -> Job:
    return Job(f"{PREPARE}-{cell.key}", (cell.key, PREPARE), plain(f"{cell.corpus}: reading the text"))


def speed_job(cell: Cell) -> Job:
    """With one thread: two that wait for each other in a small model tell more about what else the machine does."""
    label = plain(f"{cell.corpus}, {cell.encoding}: what each way of inference costs")
    return Job(SPEED, (cell.key, SPEED), label, 1)


def missing(plan: Plan, out: Path) -> list[Cell]:
    """The cells that have no record yet."""
    return [cell for cell in plan.cells if read_record(out, cell) is None]


def one_of_each_text(cells: Sequence[Cell]) -> list[Cell]:
    """A cell for each text and tokenizer among these."""
    seen: dict[Any, Cell] = {}
    for cell in cells:
        s = cell.settings
        seen.setdefault((s.corpus, s.tokenizer, s.vocabulary, s.limit, s.split_seed, s.errors), cell)
    return list(seen.values())


def run_here(
    out: Path, jobs: Sequence[Job], watcher: Watcher, at_once: int | None = None, device: str | None = None
) -> list[Failure]:
    """Do all jobs, so many at once (one for each core or GPU unless given); what failed, in the order of the jobs."""
    devices = chosen_gpus(device)
    slots = list(range(min(max(1, at_once or (len(devices) or cores())), max(1, len(jobs)))))
    threads = max(1, cores() // len(slots))
    waiting, failures = list(jobs), {}
    running: dict[Job, tuple[int, subprocess.Popen[bytes]]] = {}
    (out / LOGS).mkdir(parents=True, exist_ok=True)
    try:
        while waiting or running:
            while waiting and slots:
                slot, job = slots.pop(0), waiting.pop(0)
                visible = str(devices[slot % len(devices)]) if devices else "" if device == "cpu" else None
                running[job] = (slot, _start(out, job, job.threads or threads, visible))
                watcher.started(job)
            time.sleep(0.2)
            for job, (slot, process) in list(running.items()):
                watcher.moved(job, progress_of(out, job))
                status = process.poll()
                if status is None:
                    continue
                del running[job]
                slots.append(slot)
                failure = None if status == 0 else Failure(job, status, log_of(out, job))
                if failure is not None:
                    failures[job] = failure
                watcher.ended(job, failure)
    except BaseException:
        _stop([process for _, process in running.values()])
        raise
    return [failures[job] for job in jobs if job in failures]


def progress_of(out: Path, job: Job) -> Progress:
    """How far a job is, from the file that it leaves."""
    try:
        left = read_json(out / PROGRESS / f"{job.name}.json")
        return Progress(str(left["phase"]), float(left["share"]), float(left["whole"]))
    except (ValueError, KeyError, TypeError):
        return Progress("starting", 0.0, 0.0)


def log_of(out: Path, job: Job) -> Path:
    return out / LOGS / f"{job.name}.log"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> int:
    """How many GPUs there are, without importing torch where there can be none."""
    if not Path("/dev/nvidia0").exists() and not Path("/dev/kfd").exists():
        return 0
    import torch

    return torch.cuda.device_count()


def chosen_gpus(device: str | None) -> list[int]:
    """The GPUs that `--device` means, of which each run has one: all unless it is given, none for "cpu"."""
    there = gpus()
    if device in (None, "cpu"):
        return [] if device == "cpu" else list(range(there))
    named = re.fullmatch(r"cuda(?::([0-9]{1,4}))?", device or "")
    if named is None:
        raise ValueError(f"a study runs on cpu, cuda (every GPU) or a GPU such as cuda:1, not on {str(device)[:30]!r}")
    if int(named[1] or 0) >= there:
        raise ValueError(f"there is no device {device!r} here: this machine shows {there} GPUs; cpu is always there")
    return list(range(there)) if named[1] is None else [int(named[1])]


def _start(out: Path, job: Job, threads: int, visible: str | None) -> subprocess.Popen[bytes]:
    (out / PROGRESS / f"{job.name}.json").unlink(missing_ok=True)
    environment = {
        **os.environ,
        "FARFIELD_THREADS": str(threads),
        "FARFIELD_PARENT": str(os.getpid()),
        "OMP_NUM_THREADS": str(threads),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    log_of(out, job).unlink(missing_ok=True)
    with log_of(out, job).open("xb") as log:  # a new file: a link that someone put there is not followed
        return subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "farfield.study.cell",
                str(out),
                *job.arguments,
            ],  # -P: not what lies around here
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us alone: we ask each of them once to save and leave
        )


def _stop(processes: Sequence[subprocess.Popen[bytes]], patience: float = 60) -> None:
    """Ask processes to save and leave, and wait for them; those that do not are killed."""
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    end = time.monotonic() + patience
    for process in processes:
        try:
            process.wait(max(0.1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


def run_study(
    todo: Sequence[Cell], plan: Plan, out: Path, run: Callable[[Sequence[Job], int | None], list[Failure]]
) -> list[Failure]:
    """Train and measure what is missing of a plan, then time the ways of inference; what failed."""
    failures = run([prepare_job(cell) for cell in one_of_each_text(todo)], None) if todo else []
    lost = {failure.job.arguments[0] for failure in failures}
    unread = [find_cell(out, key).settings.corpus for key in lost]
    failures += run([cell_job(cell) for cell in todo if cell.settings.corpus not in unread], None)
    subject = speed_subject(plan, out)
    if subject is not None and not speed_is_known(out, subject):
        failures += run([speed_job(subject)], 1)  # alone, so that nothing else disturbs the clock
    return failures


def speed_subject(plan: Plan, out: Path) -> Cell | None:
    """The finished cell whose inference is timed: ALiBi, as in the paper, or the first with a formula."""
    done = [cell for cell in plan.cells if read_record(out, cell) is not None]
    alibi = [cell for cell in done if cell.encoding == "alibi"]
    biased = [cell for cell in done if zoo.find(cell.encoding).formula is not None]
    return next(iter(alibi or biased or done), None)


def speed_is_known(out: Path, cell: Cell) -> bool:
    from farfield.study.collected import read_speed

    record = read_speed(out)
    return record is not None and record.get("cell") == cell.key
