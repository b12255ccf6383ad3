"""Doing the jobs of a study on a SLURM cluster, through submitit: the same folder, the same records.

The folder of the study must be on a disk that all machines see. Each job is one call of `farfield.study.cell`. What was
handed over is noted, so a second call waits for the jobs that are still there instead of handing them over again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from farfield.data import durable
from farfield.study import cell
from farfield.study.running import Failure, Job, Watcher, log_of, progress_of

FOLDER, JOBS = "slurm", "jobs.json"
INTERVAL = 2.0  # seconds between two looks at the queue
MINUTES = 24 * 60  # of a job, unless something else is given
PATIENCE = 10  # seconds to wait for the result of a job that has left the queue


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
    queue = states()
    for job in jobs:
        known = handed.get(job.name)
        if known is None or known.job_id not in queue:
            known = _submit(door, out, job)
            handed[job.name] = known
            _note(out, handed)
        alive[job] = known
        watcher.started(job)
    failures = {}
    while alive:
        time.sleep(INTERVAL)
        queue = states()
        for job, one in list(alive.items()):
            state = queue.get(one.job_id)
            progress = progress_of(out, job)
            watcher.moved(job, progress if state == "RUNNING" else replace(progress, phase=(state or "ending").lower()))
            if state is not None and not one.paths.result_pickle.exists():
                continue
            del alive[job]
            failure = _failure(out, job, one)
            if failure is not None:
                failures[job] = failure
            watcher.ended(job, failure)
    return [failures[job] for job in jobs if job in failures]


def _submit(door: Any, out: Path, job: Job) -> Any:
    import submitit

    try:
        return door.submit(cell.main, [str(out), *job.arguments])
    except (submitit.core.utils.FailedJobError, subprocess.CalledProcessError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise ValueError(f"SLURM did not take the job: {lines[-1] if lines else 'no word why'}") from None


def states() -> dict[str, str]:
    """The jobs of this user that SLURM still has, and how each of them stands: PENDING, RUNNING, ..."""
    call = ["squeue", "--me", "--noheader", "--format=%i %T"]
    asked = subprocess.run(call, capture_output=True, text=True, check=False)
    if asked.returncode:
        raise ValueError(f"SLURM does not answer: {_first_line(asked.stderr)}")
    return {words[0]: words[1] for words in (line.split() for line in asked.stdout.splitlines()) if len(words) == 2}


def _failure(out: Path, job: Job, one: Any) -> Failure | None:
    """What went wrong with a job that has ended; its log is kept beside those of local jobs."""
    status = -1
    for _ in range(PATIENCE):  # a shared disk may show the result a little later
        if one.paths.result_pickle.exists():
            break
        time.sleep(1)
    said = "".join(path.read_text(errors="replace") for path in (one.paths.stdout, one.paths.stderr) if path.exists())
    if one.paths.result_pickle.exists():
        try:
            status = int(one.result())
        except Exception as error:  # submitit wraps whatever the job raised
            said += f"\n{_first_line(str(error))}"
    else:
        said += f"\nSLURM job {one.job_id} ended without a result: it was cancelled, or killed for time or memory."
    log_of(out, job).write_text(said)
    return None if status == 0 else Failure(job, status, log_of(out, job))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no word why")


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
