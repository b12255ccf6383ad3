"""The study on a cluster: against a real SLURM of one node, where Debian's packages are installed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from slurm import slurm, why_not

from farfield.study import cluster
from farfield.study.cluster import _noted, read_status, run_slurm, slurm_options, states
from farfield.study.conduct import Silent
from farfield.study.jobs import cell_job, log_of
from farfield.study.plan import MEASUREMENTS, Cell, Plan, make_plan
from farfield.training.run import train
from farfield.training.runfolder import read_metrics
from farfield.training.settings import preset_settings


def waited_for(what, seconds=600.0):
    """Wait until something is true; what it is then."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := what():
            return answer
        time.sleep(0.05)
    raise AssertionError("it did not happen")


class Phases(Silent):
    """Remembers what a watcher was told."""

    def __init__(self):
        self.seen = []

    def moved(self, job, progress):
        self.seen.append(progress.phase)


@pytest.mark.long  # a SLURM that is slow to start its first job would hold up the others
def test_a_job_that_is_asked_to_stop_or_loses_its_node_goes_on_by_itself(tmp_path, monkeypatch):
    """Two tasks that share a run: a signal from SLURM, then another one while the node is drained."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    (tmp_path / "slurm").mkdir()
    text = tmp_path / "text"
    text.mkdir()
    for split in ("train", "valid", "test"):
        (text / f"{split}.txt").write_text("".join(f"{i} sheep, {i * 7 % 13} goats.\n" for i in range(2000)))
    monkeypatch.setenv("FARFIELD_CACHE", str(tmp_path / "cache"))
    settings = preset_settings("tiny", encoding="kerple-log", corpus=str(text), steps=900, save_every=100, log_every=10)
    cell = Cell(corpus="text", encoding="kerple-log", seed=0, settings=settings, measurement=MEASUREMENTS["tiny"])
    out, job, watcher = tmp_path / "out", cell_job(cell), Phases()
    out.mkdir()
    Plan(preset="tiny", cells=(cell,)).save(out)
    # a second call with another plan in the same folder takes nothing from the first
    other = {"encoding": "alibi", "settings": settings.model_copy(update={"encoding": "alibi"})}
    Plan(preset="tiny", cells=(cell.model_copy(update=other),)).save(out)
    run = out / "runs" / cell.run_key

    def steps():
        return max((line["step"] for line in read_metrics(run)), default=0)

    with slurm(tmp_path / "slurm") as environment:
        for name in ("PATH", "SLURM_CONF"):
            monkeypatch.setenv(name, environment[name])

        def ask(*words):
            return subprocess.run(words, capture_output=True, text=True, check=True).stdout

        tasks = str(min(2, len(os.sched_getaffinity(0))))
        options = slurm_options([f"ntasks_per_node={tasks}", "mem=2G"])
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(run_slurm, out, [job], watcher, options)
            number = waited_for(lambda: _noted(out).get(job.name))
            for drained in (False, True):
                before = steps()
                waited_for(lambda before=before: steps() > before + 20)
                if drained:
                    node = ask("sinfo", "-h", "-o", "%n").strip()
                    ask("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
                ask("scancel", "--signal=TERM", number)
                waited_for(lambda: states() == {number: "PENDING"})
                assert not waiting.done()
                if drained:
                    watcher.seen.clear()
                    waited_for(lambda: "pending" in watcher.seen)
                # SLURM itself waits two minutes here: the node tells two starts of one job by whole seconds, and by
                # whether the last step of the first has gone
                waited_for(lambda: ask("sinfo", "-h", "-o", "%T").strip() in ("idle", "drained"))
                time.sleep(3)
                if drained:
                    ask("scontrol", "update", f"nodename={node}", "state=resume")
                ask("scontrol", "update", f"jobid={number}", "starttime=now")
            log = log_of(out, job)
            assert waiting.result(300) == [], log.read_text()
        said = log.read_text()
        assert said.count("goes back into the queue") == 2, said
        assert said.count("Going on from step") == 2
        left = json.loads((out / "slurm" / f"{job.name}.status.json").read_text())
        assert left == {"status": 0, "job": number, "restarts": "2"}
    alone = train(settings, tmp_path / "alone", progress=False, log_to="none", say=lambda line: None)
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in (read_metrics(run), alone.metrics)]
    assert len(losses[0]) == 90
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_what_a_run_asks_for():
    assert slurm_options(["partition=gpu", "time=600"]) == {
        "nodes": "1", "ntasks_per_node": "1", "partition": "gpu", "time": "600",
    }  # fmt: skip
    eight = slurm_options(["gpus-per-node=h100:8", "nodes=2"], gpus=1)
    assert eight == {"nodes": "2", "time": "1440", "gpus_per_node": "h100:8", "ntasks_per_node": "8"}
    assert slurm_options([], gpus=1)["gpus_per_node"] == "1"
    for wrong in ("gpu", "=3", "a b=c", "partition="):
        with pytest.raises(ValueError, match="NAME=VALUE"):
            slurm_options([wrong])
    with pytest.raises(ValueError, match="cannot take output"):
        slurm_options(["output=/etc/passwd"])


def test_without_slurm_it_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="no SLURM on this machine"):
        run_slurm(tmp_path, [], Silent(), {})


def test_an_option_that_sbatch_does_not_know_is_one_sentence(tmp_path, monkeypatch):
    for name, body in (("sbatch", "echo \"unrecognized option '--colour'\" >&2; exit 1"), ("squeue", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    plan = make_plan("tiny", encodings=["alibi"])
    plan.save(tmp_path)
    with pytest.raises(ValueError, match="SLURM did not take the job: unrecognized option '--colour'"):
        run_slurm(tmp_path, [cell_job(plan.cells[0])], Silent(), {"colour": "blue"})


@pytest.mark.parametrize(
    "left",
    ["", "{", "[]", "{}", '{"status": "0", "job": "7"}', '{"status": true, "job": "7"}', '{"status": 0, "job": "8"}',
     '{"status": 1e400, "job": "7"}', "[" * 3000, "x" * 5000],
)  # fmt: skip
def test_a_status_is_read_as_json_and_with_suspicion(tmp_path, left):
    job = cell_job(make_plan("tiny", encodings=["alibi"]).cells[0])
    path = tmp_path / "slurm" / f"{job.name}.status.json"
    path.parent.mkdir()
    path.write_text(left)
    assert read_status(tmp_path, job, "7") is None
    path.write_text('{"status": 0, "job": "7", "restarts": "0"}')
    assert read_status(tmp_path, job, "7") == 0
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    assert read_status(tmp_path, job, "7") is None


def test_a_queue_that_is_silent_for_a_while_ends_nothing(tmp_path, monkeypatch):
    """squeue fails twice in the middle; the job's status is there in the end."""
    counted = tmp_path / "count"
    script = f"""#!/bin/sh
echo x >> {counted}
case $(wc -l < {counted}) in 1) ;; 2|4) exit 1;; 3) echo 7 RUNNING;; *) ;; esac
"""
    for name, body in (("sbatch", "#!/bin/sh\necho 7\n"), ("squeue", script)):
        (tmp_path / name).write_text(body)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(cluster, "INTERVAL", 0.01)
    monkeypatch.setattr(cluster, "PATIENCE", 0.05)
    plan = make_plan("tiny", encodings=["alibi"])
    plan.save(tmp_path)
    job = cell_job(plan.cells[0])
    failed = run_slurm(tmp_path, [job], Silent(), {})
    assert "left no status" in failed[0].sentence
    assert counted.read_text().count("x") > 4
