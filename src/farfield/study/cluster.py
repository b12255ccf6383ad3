"""Doing the jobs of a study on a SLURM cluster, through submitit: the same folder, the same records.

The folder of the study must be on a disk that all machines see. Each job is one call of `farfield.study.cell`. What was
handed over is noted, so a second call waits for the jobs that are still there instead of handing them over again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from farfield import durable
from farfield.study import cell
from farfield.study.running import Failure, Job, Watcher, log_of, progress_of

FOLDER, JOBS = "slurm", "jobs.json"
INTERVAL = 2.0  # seconds between two looks at the queue
MINUTES = 24 * 60  # of a job, unless something else is given
ENDED = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "UNKNOWN",
)


def slurm_options(given: Sequence[str]) -> dict[str, Any]:
    """The options of `--slurm NAME=VALUE`, as submitit takes them: partition=gpu, gpus_per_node=1, time=600."""
    options: dict[str, Any] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise ValueError(f"--slurm takes NAME=VALUE, such as partition=gpu, not {one[:60]!r}.")
        options[name] = int(value) if value.isdecimal() else value
    return options


def executor(out: Path, options: Mapping[str, Any]) -> Any:
    """submitit's door to SLURM; one sentence where there is none."""
    try:
        import submitit
    except ImportError:
        raise ValueError("A cluster needs submitit: pip install 'farfield[study]'.") from None
    if shutil.which("sbatch") is None:
        raise ValueError(
            "There is no SLURM on this machine (no sbatch): run this on a login node, or use --cluster local."
        )
    door = submitit.SlurmExecutor(folder=out.resolve() / FOLDER)
    try:
        door.update_parameters(job_name="farfield", **{"time": MINUTES, **options})
    except (TypeError, ValueError, NameError, AssertionError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"submitit does not take these options of --slurm ({', '.join(options)}): {reason}") from None
    return door


def run_slurm(out: Path, jobs: Sequence[Job], watcher: Watcher, options: Mapping[str, Any]) -> list[Failure]:
    """Hand all jobs to SLURM and wait for them; what failed, in the order of the jobs."""
    door = executor(out, options)
    out = out.resolve()
    (out / cell.LOGS).mkdir(parents=True, exist_ok=True)
    handed = _attach(out)
    alive = {}
    for job in jobs:
        known = handed.get(job.name)
        if known is None or _state(known) in ENDED:
            known = door.submit(cell.main, [str(out), *job.arguments])
            handed[job.name] = known
            _note(out, handed)
        alive[job] = known
        watcher.started(job)
    failures = {}
    while alive:
        time.sleep(INTERVAL)
        for job, one in list(alive.items()):
            phase, share = progress_of(out, job)
            state = _state(one)
            watcher.moved(job, phase if state == "RUNNING" else state.lower(), share)
            if not one.done() and state not in ENDED:
                continue
            del alive[job]
            failure = _failure(out, job, one)
            if failure is not None:
                failures[job] = failure
            watcher.ended(job, failure)
    return [failures[job] for job in jobs if job in failures]


def _failure(out: Path, job: Job, one: Any) -> Failure | None:
    """What went wrong with a job that has ended; its log is kept beside those of local jobs."""
    try:
        status = int(one.result())
        said = (one.stdout() or "") + (one.stderr() or "")
    except Exception as error:  # whatever submitit raises for a job that SLURM killed
        status, said = (
            -1,
            f"{(one.stderr() or '').strip()}\nSLURM job {one.job_id}, {_state(one)}: {_first_line(error)}",
        )
    log_of(out, job).write_text(said)
    return None if status == 0 else Failure(job, status, log_of(out, job))


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _state(job: Any) -> str:
    return str(job.state).split(" ")[0].rstrip("+").upper() or "UNKNOWN"


def _attach(out: Path) -> dict[str, Any]:
    """The jobs that were handed over before, as far as they are noted."""
    import submitit

    try:
        noted = json.loads((out / FOLDER / JOBS).read_bytes())
        return {str(name): submitit.SlurmJob(out / FOLDER, str(number), [0]) for name, number in noted.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _note(out: Path, handed: Mapping[str, Any]) -> None:
    data = json.dumps({name: job.job_id for name, job in handed.items()}, indent=1).encode()
    durable.replace_file(out / FOLDER / JOBS, data)
