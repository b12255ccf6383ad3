"""One cell of a study: train the model, measure it, and leave one record in JSON.

It is a program of its own (`python -m farfield.study.cell OUT KEY`), so that each model has its own process, on this
machine or on another that sees the same folder. Whatever kills it, calling it again goes on from the last checkpoint
and the last length that was measured.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from farfield.data import durable
from farfield.study.plan import Cell, find_cell
from farfield.study.record import SPEED, Losses, read_record, write_record

RUNS, PROGRESS, LOGS = "runs", "progress", "logs"
PREPARE = "prepare"
STATUS = "FARFIELD_STATUS"  # the variable that says where a job of a cluster leaves its status
STOPPED = 130  # the exit status of a job that was asked to stop, and did with everything saved
# Which part of a job each phase is, from and to, for the time that is left.
PHASES = {"training": (0.0, 0.65), "perplexity": (0.65, 0.92), "receptive field": (0.92, 0.94)}
PHASES |= {"untrained control": (0.94, 1.0), "done": (1.0, 1.0)}


class ProgressFile:
    """The progress of one job, left in a file that whoever waits for it can read; at most four times a second."""

    def __init__(self, out: Path, key: str) -> None:
        self.path = out / PROGRESS / f"{key}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.last = 0.0

    def __call__(self, phase: str, done: float, total: float) -> None:
        now = time.monotonic()
        if rank() or (now - self.last < 0.25 and done < total):
            return
        self.last = now
        staged = self.path.with_suffix(f".{os.getpid()}")
        begin, end = PHASES.get(phase, (0.0, 0.0))
        share = min(1.0, done / max(total, 1e-9))
        staged.write_text(json.dumps({"phase": phase, "share": share, "whole": begin + share * (end - begin)}))
        staged.replace(self.path)


def run_cell(out: Path, cell: Cell) -> bool:
    """Train and measure; True if it is finished, False if a signal stopped it."""
    from farfield.study.measurement import measure_cell

    report = ProgressFile(out, cell.key)
    run = out / RUNS / cell.run_key
    run.mkdir(parents=True, exist_ok=True)
    if read_record(out, cell) is not None:
        return True
    report("starting", 0, 1)
    start, used = time.perf_counter(), time.process_time()
    metrics = _train(cell, run, report)
    if metrics is None:
        return False
    if rank():  # one process is enough to measure
        return True
    spent = time.perf_counter() - start, time.process_time() - used
    try:
        record = measure_cell(cell, run, _losses(metrics), spent, report)
    except ValidationError as error:  # such as a perplexity that overflowed at the longest length
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"])) or "the record"
        raise ValueError(f"What was measured cannot be used: {name} is {str(first['input'])[:60]}.") from None
    write_record(out, cell.key, record)
    report("done", 1, 1)
    return True


def _train(cell: Cell, run: Path, report: ProgressFile) -> Sequence[dict[str, Any]] | None:
    """Train the model of a cell unless that is done, maybe elsewhere; its metrics, or None if a signal stopped it."""
    from farfield.study.conduct import same_run
    from farfield.training.run import train
    from farfield.training.runfolder import finished_steps, read_metrics

    if finished_steps(run) is not None and same_run(run, cell):
        return read_metrics(run)
    with _StepWatcher(run, lambda step: report("training", step, cell.settings.steps)):
        result = train(cell.settings, run, progress=False)
    return result.metrics if result.finished else None


def prepare(cell: Cell) -> None:
    """Read the corpus of a cell once, so that the cells that share it do not all do it at the same time."""
    from farfield.training.run import read_text

    read_text(cell.settings, ("train", "valid", "test"), progress=False)


def run_speed(out: Path, cell: Cell) -> None:
    """Time the ways of inference with the model of a finished cell."""
    from farfield.study.measurement import measure_speed_of

    write_record(out, SPEED, measure_speed_of(cell, out / RUNS / cell.run_key, ProgressFile(out, SPEED)))


def _losses(metrics: Sequence[dict[str, Any]]) -> Losses:
    """Training and validation loss by step."""
    losses: Losses = []
    for line in metrics:
        numbers: Any = {name: line[name] for name in ("step", "loss", "eval_loss", "valid_loss") if name in line}
        if len(numbers) > 1 and all(isinstance(x, int | float) for x in numbers.values()):
            losses.append(numbers)
    return losses


class _StepWatcher:
    """Report the step that a run has reached, from its own metrics, while it trains."""

    def __init__(self, run: Path, report: Callable[[int], None]) -> None:
        self.run, self.report, self.end = run, report, threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        from farfield.training.runfolder import METRICS, read_metrics

        before = None
        while not self.end.wait(0.5):
            path = self.run / METRICS
            size = path.stat().st_size if path.exists() else None
            if size != before:
                before = size
                self.report(max((int(line.get("step", 0)) for line in read_metrics(self.run)), default=0))

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *error: object) -> None:
        self.end.set()
        self.thread.join()


def _leave_with(parent: int) -> None:
    """Stop, with a checkpoint, when the process that started this one is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def rank() -> int:
    """Which of the processes that share the training this is."""
    return int(os.environ.get("RANK", "0"))


def _take_part() -> None:
    """Make the tasks of a SLURM job the processes of one run, as torchrun would."""
    if STATUS in os.environ and int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        names = {"RANK": "SLURM_PROCID", "LOCAL_RANK": "SLURM_LOCALID", "WORLD_SIZE": "SLURM_STEP_NUM_TASKS"}
        os.environ.update({name: os.environ[slurm] for name, slurm in names.items()})


def _leave_status(status: int) -> None:
    """Tell whoever waits for a job of a cluster how it ended."""
    if STATUS in os.environ and rank() == 0:
        left = {
            "status": status,
            "job": os.environ.get("SLURM_JOB_ID"),
            "restarts": os.environ.get("SLURM_RESTART_COUNT", "0"),
        }
        durable.replace_file(Path(os.environ[STATUS]), json.dumps(left).encode())


def main(arguments: list[str]) -> int:
    """Do one job of a study: `OUT KEY [WHAT]`, WHAT being nothing, `prepare` or `speed`."""
    out, key, what = Path(arguments[0]), arguments[1], (arguments[2] if len(arguments) > 2 else "")
    if threads := os.environ.get("FARFIELD_THREADS"):
        import torch

        torch.set_num_threads(int(threads))
    if parent := os.environ.get("FARFIELD_PARENT"):
        _leave_with(int(parent))
    try:
        cell = find_cell(out, key)
        if what == PREPARE:
            prepare(cell)
        elif what == SPEED:
            run_speed(out, cell)
        elif not run_cell(out, cell):
            return STOPPED
    except ValueError as error:
        print(f"farfield: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    _take_part()
    ended = main(sys.argv[1:])
    _leave_status(ended)
    sys.exit(ended)
