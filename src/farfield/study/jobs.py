"""The jobs of a study on this machine: one process for each, as many at once as there are cores.

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
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from farfield.reading import UnreadableError, read_bytes, read_json
from farfield.study.cell import LOGS, PREPARE, PROGRESS
from farfield.study.plan import Cell
from farfield.study.record import SPEED
from farfield.words import plain

LEAST = 0.02  # of the work must be done before the time that is left is told
PATIENCE = 20.0  # seconds before that


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
    return Job(cell.key, (cell.key,), cell.label)


def prepare_job(cell: Cell) -> Job:
    return Job(f"{PREPARE}-{cell.key}", (cell.key, PREPARE), plain(f"{cell.corpus}: reading the text"))


def speed_job(cell: Cell) -> Job:
    """With one thread: two that wait for each other in a small model tell more about what else the machine does."""
    label = plain(f"{cell.corpus}, {cell.encoding}: what each way of inference costs")
    return Job(SPEED, (cell.key, SPEED), label, 1)


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
            [sys.executable, "-P", "-m", "farfield.study.cell", str(out), *job.arguments],  # -P: not what lies around
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


class TimeLeft:
    """The time that a batch of equal jobs still takes: what is done, over the time that it took."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.start(0)

    def start(self, jobs: int) -> None:
        """A new batch of so many jobs."""
        self.began, self.jobs = self.clock(), jobs
        self.first: dict[Hashable, float] = {}  # where each job stood when it was first seen: maybe it goes on
        self.now: dict[Hashable, float] = {}

    def moved(self, job: Hashable, whole: float) -> None:
        """A job has done this share of all its work."""
        self.first.setdefault(job, whole)
        self.now[job] = max(whole, self.now.get(job, 0.0))

    @property
    def seconds(self) -> float | None:
        """None as long as it is too early to say, or nothing is left."""
        elapsed = self.clock() - self.began
        done = sum(self.now[job] - self.first[job] for job in self.now)
        left = self.jobs - sum(self.now.values())
        if elapsed < PATIENCE or done < LEAST * self.jobs or left <= 0:
            return None
        return elapsed * left / done

    @property
    def sentence(self) -> str:
        """For a person: "about 7 minutes left"; empty if it is too early to say."""
        seconds = self.seconds
        if seconds is None:
            return ""
        minutes = round(seconds / 60)
        if minutes < 1:
            return "less than a minute left"
        if minutes < 120:
            return f"about {minutes} minute{'s' if minutes > 1 else ''} left"
        return f"about {round(seconds / 3600)} hours left"
