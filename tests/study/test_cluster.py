"""The study on a cluster: against a real SLURM of one node, where Debian's packages are installed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from slurm import slurm, why_not

from farfield.study.cluster import executor, slurm_options
from farfield.study.plan import read_plan
from farfield.study.running import missing


def test_a_study_on_slurm_ends_as_one_on_this_machine(tmp_path):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    (tmp_path / "slurm").mkdir()
    out, here = tmp_path / "out", tmp_path / "here"
    options = ["--preset", "tiny", "--encodings", "alibi, type2"]
    command = [sys.executable, "-m", "farfield", "study", *options]
    with slurm(tmp_path / "slurm") as environment:
        cluster = [*command, "--cluster", "slurm", "--slurm", "cpus_per_task=1", "--out", str(out)]
        done = subprocess.run(cluster, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        jobs = json.loads((out / "slurm" / "jobs.json").read_text())
        assert len(jobs) == 4  # the text, two runs, the times
        again = subprocess.run(cluster, env=environment, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        assert "2 of them done already" in again.stderr
        assert json.loads((out / "slurm" / "jobs.json").read_text()) == jobs
        wrong = subprocess.run(
            [*cluster, "--slurm", "partition=nowhere", "--encodings", "type1"],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert wrong.returncode == 2
        assert "Traceback" not in wrong.stderr
        assert "nvalid partition" in wrong.stderr
    assert missing(read_plan(out), out) or (out / "report.html").exists()
    local = subprocess.run([*command, "--out", str(here)], capture_output=True, text=True, check=False)
    assert local.returncode == 0, local.stderr
    found = {path.name: json.loads(path.read_text()) for path in (out / "records").glob("python-*.json")}
    beside = {path.name: json.loads(path.read_text()) for path in (here / "records").glob("python-*.json")}
    assert set(found) == set(beside)
    for name, record in found.items():
        ours = record["perplexity"]["non-overlapping"]
        assert ours == pytest.approx(beside[name]["perplexity"]["non-overlapping"], rel=1e-4)


def test_options_of_slurm_are_names_and_values():
    assert slurm_options(["partition=gpu", "time=600"]) == {"partition": "gpu", "time": 600}
    with pytest.raises(ValueError, match="NAME=VALUE"):
        slurm_options(["gpu"])


def test_without_slurm_it_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="no SLURM on this machine"):
        executor(tmp_path, {})


def test_an_option_that_submitit_does_not_know_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    (tmp_path / "srun").write_text("#!/bin/sh\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match="does not take these options of --slurm"):
        executor(tmp_path, {"colour": "blue"})
