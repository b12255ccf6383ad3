"""`farfield study` as a person calls it: from nothing to a report, again, after a kill, and in a real browser."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from slurm import slurm, why_not

from farfield.study.conduct import missing
from farfield.study.entries import collect
from farfield.study.plan import read_plan

CHROMIUM = Path("/usr/bin/chromium")
HOSTILE = "-2*log(t + 1) - 0*where(t < 1, 1, 2)"  # markup in HTML, Markdown and LaTeX, were it not escaped
OPTIONS = ["--preset", "tiny", "--encodings", f"alibi, sinusoidal, inverse, {HOSTILE}"]


def farfield(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "farfield", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """A finished study; the page is looked at by several tests."""
    out = tmp_path_factory.mktemp("study") / "out"
    done = farfield("study", *OPTIONS, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert str(out / "report.html") in done.stdout.replace("\n", "")
    return out


def test_a_study_leaves_report_tables_figures_and_records(out):
    names = {path.name for path in (out / "tables").iterdir()}
    assert "observations.csv" in names
    for table in (
        "theory-against-experiment",
        "far-field",
        "sufficiency-python",
        "necessity-python",
        "inference-time",
        "configurations",
    ):
        assert f"{table}.csv" in names
    assert {"tables.md", "tables.tex"} <= names
    figures = [path for path in (out / "figures").iterdir() if path.name != "figures.json"]
    assert len(figures) == 8
    assert all(path.suffix == ".svg" and path.stat().st_size > 1000 for path in figures)
    study = json.loads((out / "study.json").read_text())
    assert [run["encoding"] for run in study["runs"]] == ["alibi", "sinusoidal", "inverse", HOSTILE]
    assert all(run["lengths"][-1] == 18 * run["training_length"] for run in study["runs"])
    assert study["missing"] == []
    assert study["relative_inference_time"]["non-overlapping"] == 1


def test_a_model_of_twenty_updates_earns_no_tick(out):
    """It has learned nothing, and yet leak and rise, TRF and ERF are correlated: the report is not taken in."""
    page = (out / "report.html").read_text()
    assert "Too small to tell" in page
    assert "✓" not in page
    for record in collect(read_plan(out), out).records:
        assert record.extrapolation.answer != "level"
        assert record.control.extrapolation.answer == "cannot be told"


def test_every_record_has_interventions_damage_and_a_control(out):
    for path in (out / "records").glob("python-*.json"):
        record = json.loads(path.read_text())
        tails = [one["tail"] for one in record["interventions"]]
        if record["encoding"] == "sinusoidal":  # no bias
            assert tails == []
            continue
        assert tails[:2] == ["as trained", "cut"]
        assert record["encoding"] not in tails  # that would change nothing
        cut = record["interventions"][1]
        assert cut["leak"] == 0
        last = record["perplexity"]["non-overlapping"][-1]
        assert record["damage"][0] == pytest.approx(last / cut["perplexity"] - 1, abs=1e-6)
        for one in record["interventions"]:
            base = record["perplexity"]["non-overlapping"][0]
            assert one["change"][0] == pytest.approx(one["perplexity"] / base - 1, abs=1e-6)
        assert [one["leak"] for one in record["control"]["interventions"]] == pytest.approx(
            [one["leak"] for one in record["interventions"]]
        )
        assert record["test"]["segments"] == len(record["blocks"][0]) // 5  # eight segments in five parts each


def test_a_second_call_trains_nothing_and_a_missing_record_is_measured_again(out):
    records = sorted((out / "records").glob("python-*.json"))
    before = {path: path.stat().st_mtime_ns for path in records}
    lost = records[0]
    kept = json.loads(lost.read_text())
    lost.unlink()
    done = farfield("study", *OPTIONS, "--out", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 of them done already" in done.stderr
    assert [path for path in records if path.stat().st_mtime_ns != before[path]] == [lost]
    again = json.loads(lost.read_text())
    assert again["perplexity"] == kept["perplexity"]
    assert again["heads"] == kept["heads"]


def test_only_tables_draws_no_figure_and_only_figures_writes_no_table(out):
    def times(folder: str) -> dict[str, int]:
        return {path.name: path.stat().st_mtime_ns for path in (out / folder).iterdir()}

    for only, other in (("tables", "figures"), ("figures", "tables")):
        before = times(only), times(other)
        done = farfield("study", "--out", str(out), "--only", only)
        assert done.returncode == 0, done.stdout + done.stderr
        assert times(other) == before[1]
        assert all(after > before[0][name] for name, after in times(only).items() if name in before[0])


def test_the_report_is_whole_in_a_real_browser(out):
    if not CHROMIUM.exists():
        pytest.skip("Debian's chromium is not installed")
    from playwright.sync_api import sync_playwright

    said, asked = [], []
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*flags, "--disable-sync"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((out / "report.html").as_uri())
        images = page.evaluate("[...document.images].map(i => [i.alt, i.complete && i.naturalWidth > 0])")
        formulas = page.evaluate("[...document.querySelectorAll('h3')].map(h => h.textContent)")
        inner = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        last_row = page.locator("#table-sufficiency-python + .wide tr", has_text="18x").first.bounding_box()
        phone = browser.new_page(viewport={"width": 390, "height": 800})
        phone.goto((out / "report.html").as_uri())
        narrow = phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        on_phone = phone.evaluate("[...document.images].map(i => [i.width, i.parentElement.scrollWidth])")
        proof = page.locator("details").first
        proof.locator("summary").click()
        steps = proof.locator("li").count()
        browser.close()
    assert len(images) == 8
    assert [alt for alt, loaded in images if not loaded] == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert said == []
    assert any(HOSTILE in text for text in formulas)
    assert inner, "the page is wider than the window"
    assert narrow, "the page is wider than a phone"
    assert all(600 < width <= inside for width, inside in on_phone)  # large enough to read, and they scroll
    assert last_row["x"] + 300 < 1000  # the first encodings at 18x are in sight
    assert steps > 0


def test_a_study_on_slurm_ends_as_one_on_this_machine(out, tmp_path):
    reason = why_not()
    if reason:
        pytest.skip(reason)
    (tmp_path / "slurm").mkdir()
    there = tmp_path / "out"
    options = ["study", "--preset", "tiny", "--encodings", "alibi, inverse", "--out", str(there)]
    options += ["--cluster", "slurm", "--slurm", "cpus_per_task=1"]
    with slurm(tmp_path / "slurm") as environment:
        done = farfield(*options, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        jobs = json.loads((there / "slurm" / "jobs.json").read_text())
        assert len(jobs) == 4  # the text, two runs, the times
        again = farfield(*options, env=environment)
        assert again.returncode == 0, again.stderr
        assert "2 of them done already" in again.stderr
        assert json.loads((there / "slurm" / "jobs.json").read_text()) == jobs
        wrong = farfield(*options, "--slurm", "partition=nowhere", "--encodings", "type1", env=environment)
        assert wrong.returncode == 2
        assert "Traceback" not in wrong.stderr
        assert "nvalid partition" in wrong.stderr
    assert (there / "report.html").exists()
    result = {path.name: json.loads(path.read_text()) for path in (there / "records").glob("python-*.json")}
    assert len(result) == 2
    for name, record in result.items():
        beside = json.loads((out / "records" / name).read_text())
        ours = record["perplexity"]["non-overlapping"]
        assert ours == pytest.approx(beside["perplexity"]["non-overlapping"], rel=1e-4)


def test_a_killed_study_loses_nothing_that_was_finished(tmp_path):
    out = tmp_path / "out"
    options = ["study", "--preset", "tiny", "--encodings", "alibi, type2", "--jobs", "1", "--out", str(out)]
    command = [sys.executable, "-m", "farfield", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list((out / "records").glob("*.json")) and process.poll() is None:
        time.sleep(0.1)
    process.kill()
    process.wait()
    first = {path: path.read_bytes() for path in (out / "records").glob("*.json")}
    assert len(missing(read_plan(out), out)) < 2
    deadline = time.monotonic() + 60
    while _children(out) and time.monotonic() < deadline:  # what it had started sees that it is gone, saves and leaves
        time.sleep(0.5)
    assert not _children(out)
    done = farfield(*options)
    assert done.returncode == 0, done.stderr
    assert missing(read_plan(out), out) == []
    assert all(path.read_bytes() == content for path, content in first.items())


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path):
    broken = tmp_path / "broken.txt"
    broken.write_bytes(b"\xff\xfe not text " * 4000)
    out = tmp_path / "out"
    done = farfield(
        "study", "--preset", "tiny", "--corpora", f"python, {broken}", "--encodings", "alibi", "--out", str(out)
    )
    assert done.returncode == 1
    assert "broken: reading the text failed" in done.stderr
    assert "Traceback" not in done.stderr
    report = (out / "report.html").read_text()
    assert "Not finished: broken, alibi, seed 0" in report


def test_a_folder_with_a_hostile_name_is_plain_text_everywhere(tmp_path):
    from records import LEVEL, study_of

    from farfield.study.jobs import cell_job
    from farfield.study.report import write

    folder = tmp_path / "\x1b[31m<img src=x onerror=alert(1)>|$_{a}"
    folder.mkdir()
    study = study_of(tmp_path / "out", {"alibi": LEVEL}, corpora=[str(folder)])
    assert "\x1b" not in cell_job(read_plan(tmp_path / "out").cells[0]).label
    page = write(study, tmp_path / "out").read_text()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "\x1b" not in page
    for path in (tmp_path / "out" / "figures").glob("*.svg"):
        assert "<img" not in path.read_text()


def test_ctrl_c_keeps_what_was_trained(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "farfield", "study", "--preset", "tiny", "--encodings", "alibi", "--out", str(out)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test run in the background ignores it
    )
    while not (out / "progress").exists() and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert f"go on with: farfield study --preset tiny --encodings alibi --out {out}" in said.replace("\n", "")
    assert "Traceback" not in said
    assert not _children(out)


def test_the_papers_grid_says_its_cost_and_does_not_start_here(tmp_path):
    if os.path.exists("/dev/nvidia0"):
        pytest.skip("this machine has a GPU")
    plan = farfield("study", "--preset", "paper", "--dry-run", "--out", str(tmp_path / "out"))
    assert plan.returncode == 0
    assert "36 runs" in plan.stderr
    assert "GPU-hours" in plan.stderr
    assert not (tmp_path / "out").exists()
    refused = farfield("study", "--preset", "paper", "--out", str(tmp_path / "out"))
    assert refused.returncode == 2
    assert "shows no GPU" in refused.stderr


def test_only_without_a_study_is_one_sentence(tmp_path):
    done = farfield("study", "--only", "tables", "--out", str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert "run it without --only first" in done.stderr


def _children(out: Path) -> list[str]:
    """The processes that are at work on a study."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if "farfield.study.cell" in line and str(out) in line]
