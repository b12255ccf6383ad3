"""Doing the jobs of a study on a SLURM cluster: the same folder, the same records.

The folder of the study must be on a disk that all machines see. Each job is a batch script that calls
`farfield.study.cell`, and leaves its status as a small JSON file. A job that SLURM stops (pre-empted, its node wanted,
its time nearly over) saves and puts itself back into the queue, and later goes on from there. What was handed over is
noted, so a second call waits for the jobs that are still there instead of handing them over again.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from farfield.data import durable
from farfield.reading import read_json
from farfield.study import cell
from farfield.study.jobs import Failure, Job, Watcher, log_of, progress_of
from farfield.study.plan import find_cell
from farfield.training.scaling import training_memory

FOLDER, JOBS = "slurm", "jobs.json"
INTERVAL = 2.0  # seconds between two looks at the queue
MINUTES = 24 * 60  # of a job, unless something else is given
SAVING = 120  # seconds before the end of its time at which a job is asked to save
PATIENCE = 10.0  # seconds to wait for the status of a job that has left the queue: a shared disk may be late
SILENCE = 600.0  # seconds that SLURM may not answer
GIGABYTE = 1 << 30
OURS = {"output", "error", "open_mode", "requeue", "no_requeue", "signal", "parsable", "wrap", "array", "wait"}

SCRIPT = """\
#!/bin/bash
export {status_variable}={status}
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))
srun --kill-on-bad-exit=1 {tasks} {command}
code=$?
if {{ [ $code = 130 ] || [ $code = 143 ]; }} && [ "${{SLURM_RESTART_COUNT:-0}}" -lt 1000 ]; then
  echo "The job was asked to stop; it goes back into the queue." >&2
  scontrol requeue "$SLURM_JOB_ID" && sleep 60
fi
exit $code
"""


def slurm_options(given: Sequence[str], gpus: int = 0) -> dict[str, str]:
    """The options of `--slurm NAME=VALUE`: sbatch's long options, such as partition=gpu, nodes=2, time=600.

    A run gets one node, a day, and so many GPUs on each node, unless something else is given; and one process for each
    GPU.
    """
    options: dict[str, str] = {}
    for one in given:
        name, equals, value = one.partition("=")
        name = name.replace("-", "_")
        if not equals or not re.fullmatch("[a-z][a-z_]*", name) or not value:
            raise ValueError(f"--slurm takes NAME=VALUE, such as partition=gpu, not {one[:60]!r}.")
        if name in OURS:
            raise ValueError(f"--slurm cannot take {name}: the study sets it itself.")
        options[name] = value
    usual = {"nodes": "1", "time": str(MINUTES)}
    if gpus and not any(name.startswith(("gpus", "gres")) for name in options):
        usual["gpus_per_node"] = str(gpus)
    each = options.get("gpus_per_node", usual.get("gpus_per_node", "1")).rpartition(":")[2]
    if not any(name.startswith("ntasks") for name in options) and each.isdecimal():
        usual["ntasks_per_node"] = each
    return {**usual, **options}


def require_slurm() -> None:
    """One sentence where there is no SLURM."""
    if shutil.which("sbatch") is None:
        raise ValueError(
            "There is no SLURM on this machine (no sbatch): run this on a login node, or use --cluster local."
        )


def run_slurm(out: Path, jobs: Sequence[Job], watcher: Watcher, options: Mapping[str, str]) -> list[Failure]:
    """Hand all jobs to SLURM and wait for them; what failed, in the order of the jobs."""
    require_slurm()
    out = out.resolve()
    for folder in (cell.LOGS, FOLDER):
        (out / folder).mkdir(parents=True, exist_ok=True)
    queue = states()
    if queue is None:
        raise ValueError("SLURM does not answer (squeue failed): try again when it does.")
    noted, alive = _noted(out), {}
    for job in jobs:
        if noted.get(job.name) not in queue:
            noted[job.name] = _submit(out, job, options)
            durable.replace_file(out / FOLDER / JOBS, json.dumps(noted, indent=1).encode())
        alive[job] = noted[job.name]
        watcher.started(job)
    failures: dict[Job, Failure] = {}
    left: dict[Job, float] = {}  # since when a job is no longer in the queue
    answered = time.monotonic()
    while alive:
        time.sleep(INTERVAL)
        queue = states()
        if queue is None:  # it restarts, or has too much to do
            if time.monotonic() - answered > SILENCE:
                raise ValueError(f"SLURM has not answered for {SILENCE:.0f} seconds; the jobs stay in its queue.")
            continue
        answered = time.monotonic()
        for job, number in list(alive.items()):
            state, progress = queue.get(number), progress_of(out, job)
            watcher.moved(job, progress if state == "RUNNING" else replace(progress, phase=(state or "ending").lower()))
            if state is not None:
                left.pop(job, None)
                continue
            status = read_status(out, job, number)
            if status is None and time.monotonic() - left.setdefault(job, time.monotonic()) < PATIENCE:
                continue
            del alive[job]
            failure = _failure(out, job, number, status)
            if failure is not None:
                failures[job] = failure
            watcher.ended(job, failure)
    return [failures[job] for job in jobs if job in failures]


def _submit(out: Path, job: Job, options: Mapping[str, str]) -> str:
    """Write the script of a job, hand it over, and give its number."""
    script, log = out / FOLDER / f"{job.name}.sh", log_of(out, job)
    alone = len(job.arguments) > 1  # reading the text and timing need one process only
    words = [sys.executable, "-P", "-m", "farfield.study.cell", str(out), *job.arguments]
    content = SCRIPT.format(
        status_variable=cell.STATUS,
        status=shlex.quote(str(status_path(out, job))),
        tasks="--nodes=1 --ntasks=1" if alone else "",
        command=shlex.join(words),
    )
    durable.replace_file(script, content.encode())
    for old in (log, status_path(out, job)):
        old.unlink(missing_ok=True)
    asked = dict(options)
    if not any(name.startswith("mem") for name in asked):
        asked["mem"] = f"{_memory(out, job)}G"
    call = ["sbatch", "--parsable", "--requeue", f"--signal=TERM@{SAVING}", "--open-mode=append"]
    call += ["--job-name=farfield", f"--output={str(log).replace('%', '%%')}"]
    call += [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    done = subprocess.run([*call, str(script)], capture_output=True, text=True, check=False, cwd=out)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise ValueError(f"SLURM did not take the job: {lines[0] if lines else 'no word why'}")
    return done.stdout.strip().partition(";")[0]


def _memory(out: Path, job: Job) -> int:
    """Gigabytes for a node: what the cost model gives for the run, twice, and what Python and its libraries take."""
    settings = find_cell(out, job.arguments[0]).settings
    return 4 + -(-2 * training_memory(settings) // GIGABYTE)


def states() -> dict[str, str] | None:
    """The jobs of this user that SLURM still has, and how each stands: PENDING, RUNNING, ...; None if it is silent."""
    call = ["squeue", "--me", "--noheader", "--format=%i %T"]
    asked = subprocess.run(call, capture_output=True, text=True, check=False)
    if asked.returncode:
        return None
    return {words[0]: words[1] for words in (line.split() for line in asked.stdout.splitlines()) if len(words) == 2}


def status_path(out: Path, job: Job) -> Path:
    return out / FOLDER / f"{job.name}.status.json"


def read_status(out: Path, job: Job, number: str) -> int | None:
    """The status that this very job left; None if there is none."""
    try:
        path = status_path(out, job)
        left = {} if path.is_symlink() else read_json(path, 4096)
        return left["status"] if type(left["status"]) is int and left["job"] == number else None
    except (ValueError, KeyError):
        return None


def _failure(out: Path, job: Job, number: str, status: int | None) -> Failure | None:
    if status == 0:
        return None
    if status is None:
        durable.append_line(
            log_of(out, job),
            f"\nSLURM job {number} left no status: it was cancelled, or killed for time or memory.",
        )
    return Failure(job, status, log_of(out, job))


def _noted(out: Path) -> dict[str, str]:
    """The jobs that were handed over before, as far as they are noted."""
    try:
        noted = read_json(out / FOLDER / JOBS)
        return {str(name): str(number) for name, number in noted.items()}
    except ValueError:
        return {}
