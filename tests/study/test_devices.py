"""Where the runs of a study compute: `--device`, tried with GPUs that this machine need not have."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from farfield.commands.options import StudySizes
from farfield.commands.study import study_command
from farfield.study import jobs
from farfield.study.conduct import Silent


@pytest.mark.parametrize(
    ("device", "there", "chosen"),
    [(None, 3, [0, 1, 2]), (None, 0, []), ("cpu", 3, []), ("cuda", 3, [0, 1, 2]), ("cuda:1", 3, [1])],
)
def test_which_gpus_a_device_means(monkeypatch, device, there, chosen):
    monkeypatch.setattr(jobs, "gpus", lambda: there)
    assert jobs.chosen_gpus(device) == chosen


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "cuda:7", "gpu", "cpu:0", "cuda:-1", "", "cuda:99999999"])
def test_a_device_that_is_not_there_is_refused_before_any_work(monkeypatch, tmp_path, device):
    monkeypatch.setattr(jobs, "gpus", lambda: 0)
    with pytest.raises(ValueError, match=r"a study runs on cpu|there is no device"):
        study_command(device=device, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_a_device_is_not_chosen_on_a_cluster(tmp_path):
    with pytest.raises(ValueError, match="on SLURM give --slurm"):
        study_command(
            device="cpu",
            cluster="slurm",
            sizes=StudySizes(preset="tiny"),
            encodings=["alibi"],
            out=tmp_path,
            quiet=True,
        )


@pytest.mark.parametrize(("device", "visible"), [("cpu", {""}), ("cuda:1", {"1"}), ("cuda", {"0", "1"})])
def test_each_run_sees_its_device_only(monkeypatch, tmp_path, device, visible):
    seen, real = [], subprocess.Popen
    monkeypatch.setattr(jobs, "gpus", lambda: 2)

    def popen(command, **options):
        seen.append(options["env"].get("CUDA_VISIBLE_DEVICES"))
        return real(["true"])

    monkeypatch.setattr(jobs.subprocess, "Popen", popen)
    (tmp_path / jobs.PROGRESS).mkdir()
    some = [jobs.Job(f"job-{i}", ("x",), f"job {i}") for i in range(4)]
    assert jobs.run_here(Path(tmp_path), some, Silent(), 2, device) == []
    assert set(seen) == visible
    assert len(seen) == 4
