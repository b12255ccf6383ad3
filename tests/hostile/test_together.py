"""Several at once, in one folder, with one name: nobody loses his work, and what fails says why."""

import json
from pathlib import Path

import pytest

from farfield.study import cluster
from farfield.study.cluster import read_status, run_slurm, status_path
from farfield.study.conduct import Silent
from farfield.study.jobs import Failure, cell_job, log_of
from farfield.study.plan import find_cell, make_plan, read_plan

pytestmark = pytest.mark.hostile("several at once, clusters and studies")


@pytest.mark.parametrize("process", [None, 7], ids=["five processes", "five of the same number, as in containers"])
def test_five_evaluations_at_once_all_end_well(torch_forks, run_folder, tmp_path, process, attacks):
    call = ["evaluate", run_folder, "--lengths", "1x,2x", "--tokens", "300", "--out", tmp_path / "out", "--json"]
    cache = {"FARFIELD_CACHE": str(tmp_path / "cache")}
    ended = torch_forks(*call, copies=5, process=process, environment=cache, megabytes=8000)
    assert [one["status"] for one in ended] == [0] * 5, ended
    answers = [[(row["length"], row["perplexity"]) for row in json.loads(one["out"])] for one in ended]
    assert all(answer == answers[0] for answer in answers)
    left = [path for path in (*(tmp_path / "out").rglob("*"), *(tmp_path / "cache").rglob("*")) if path.name[0] == "."]
    assert left == []
    attacks(5)


def test_a_second_study_in_the_same_folder_takes_nothing_from_the_first(tmp_path):
    first, second = make_plan("tiny", encodings=["alibi"]), make_plan("tiny", encodings=["type1", "inverse"])
    first.save(tmp_path)
    second.save(tmp_path)
    for cell in (*first.cells, *second.cells):  # each job still finds its settings
        assert find_cell(tmp_path, cell.key).settings == cell.settings
    assert read_plan(tmp_path).encodings == second.encodings


KEYS = ["", ".", "..", "../x", "/etc/passwd", "a/b", "x\x00y", "x" * 5000, "-", "*"]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_a_job_of_no_cell_is_a_sentence(tmp_path, key):
    make_plan("tiny", encodings=["alibi"]).save(tmp_path)
    with pytest.raises(ValueError, match="no cell") as error:
        find_cell(tmp_path, key)
    assert "\n" not in str(error.value)


SQUEUE = """#!/bin/sh
n=$(cat {home}/calls); echo $((n + 1)) > {home}/calls
case $n in
  0) ;;                                     # nothing is there yet
  1|2|3) echo "slurm_load_jobs error" >&2; exit 1 ;;
  4) echo "17 PENDING" ;;                   # put back into the queue
  5) echo "17 RUNNING" ;;
  6) exit 1 ;;
  *) cp {home}/left {status} ;;             # it has left, with this status
esac
"""


@pytest.mark.parametrize("status", [0, 3, None])
def test_a_squeue_that_fails_does_not_end_the_wait(tmp_path, monkeypatch, status):
    """It fails three times, the job is put back into the queue and runs, it fails again; then the job has left."""
    plan = make_plan("tiny", encodings=["alibi"])
    out, home = tmp_path / "out", tmp_path / "home"
    home.mkdir()
    out.mkdir()
    plan.save(out)
    job = cell_job(plan.cells[0])
    (home / "calls").write_text("0")
    (home / "left").write_text(json.dumps({"status": status, "job": "17"} if status is not None else {}))
    scripts = {"squeue": SQUEUE.format(home=home, status=status_path(out, job)), "sbatch": "#!/bin/sh\necho 17\n"}
    for name, body in scripts.items():
        (home / name).write_text(body)
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/bin:/usr/bin")
    monkeypatch.setattr(cluster, "INTERVAL", 0.01)
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    failures = run_slurm(out, [job], Silent(), {})
    assert [failure.status for failure in failures] == ([] if status == 0 else [status])
    assert int((home / "calls").read_text()) >= 8


STATUSES = [b"", b"{", b"[]", b'{"status": 0}', b'{"status": "0", "job": "17"}', b'{"status": true, "job": "17"}',
            b'{"status": 0, "job": "18"}', b'{"status": 0.0, "job": "17"}', b"[" * 5000, b" " * 10_000,
            b"\x80\x04\x95cposix\nsystem\n(S'touch canary'\ntR."]  # fmt: skip


@pytest.mark.parametrize("data", STATUSES, ids=range(len(STATUSES)))
def test_a_status_that_is_none_is_not_believed(tmp_path, data):
    """The last is a pickle that would run a command."""
    job = cell_job(make_plan("tiny", encodings=["alibi"]).cells[0])
    status_path(tmp_path, job).parent.mkdir()
    status_path(tmp_path, job).write_bytes(data)
    assert read_status(tmp_path, job, "17") is None
    assert not Path("canary").exists()


def test_no_pickle_is_ever_read():
    """No part of the project can unpickle what lies in a folder."""
    sources = (Path(__file__).parents[2] / "src").rglob("*.py")
    found = [
        (path.name, word)
        for path in sources
        for word in (
            "pickle.load",
            "import pickle",
            "submitit",
            "torch.load(",
            "trust_remote_code=True",
            "joblib",
            "shelve",
        )
        if word in path.read_text()
    ]
    assert found == []


def test_when_everything_fails_the_cause_is_shown(tmp_path, monkeypatch, sentence):
    def fails(plan, out, watcher, **options):
        out.mkdir(exist_ok=True)
        job = cell_job(plan.cells[0])
        log = log_of(out, job)
        log.parent.mkdir()
        log.write_text("one line\nfarfield: the tape has been eaten\n")
        return [Failure(job, 2, log)]

    monkeypatch.setattr("farfield.study.conduct.run_plan", fails)
    said = sentence("study", "--preset", "tiny", "--encodings", "alibi", "--out", tmp_path / "out", "--quiet")
    assert "the tape has been eaten" in said
    assert "--only" not in said
