"""The workflows of GitHub are sound: they parse, name what exists, and test what pyproject.toml promises."""

from __future__ import annotations

import re
import subprocess
import tomllib
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_sound(path: Path) -> None:
    workflow = load(path)
    assert {"name", "permissions", "jobs"} <= set(workflow)
    assert workflow["permissions"] == {"contents": "read"}, "a job that needs more says so itself"
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
            continue
        checked = subprocess.run(["bash", "-n"], input=step["run"], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stderr
        for script in re.findall(r"^\.ci/\w+", step["run"]):
            assert (ROOT / script).stat().st_mode & 0o111, script
        for extra in re.findall(r"\.\[([\w,]+)\]", step["run"]):
            assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])


def test_every_python_of_the_classifiers_is_tested_and_the_oldest_versions_too() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert jobs["tests"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert any("--resolution lowest-direct" in step.get("run", "") for step in jobs["oldest"]["steps"])
    assert f"python:{named[0]}-" in jobs["oldest"]["container"]
    assert [job for job in jobs if any("-W error" in step.get("run", "") for step in jobs[job]["steps"])] == ["newest"]
    assert any(".ci/smoke" in step.get("run", "") for step in jobs["wheel"]["steps"])
    assert any("-m long" in step.get("run", "") for step in jobs["long"]["steps"])
    assert {"ruff check", "ruff format --check", "mypy", "lint-imports"} <= {
        s.get("run") for s in jobs["lint"]["steps"]
    }


@pytest.mark.parametrize(
    ("module", "ours"),
    [("farfield", True), ("farfield.nn.bias", True), ("tests.nn.test_bias", True), ("transformers.utils", False)],
)
def test_warnings_are_errors_if_they_are_ours(module: str, ours: bool, pytestconfig: pytest.Config) -> None:
    error = ours or bool(pytestconfig.getoption("pythonwarnings"))  # the job `newest` says -W error
    with warnings.catch_warnings(record=True) as shown, pytest.raises(FutureWarning) if error else nullcontext():
        warnings.warn_explicit("is deprecated", FutureWarning, "file.py", 1, module)
    assert len(shown) == (not error)


def test_pre_commit_has_the_versions_of_pyproject() -> None:
    hooks = load(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    pins = {pin for hook in hooks for pin in hook.get("additional_dependencies", [])}
    declared = {one for extra in PROJECT["optional-dependencies"].values() for one in extra}
    assert pins
    for pin in pins:
        name = pin.partition("==")[0]
        assert pin in declared, f"pyproject.toml and .pre-commit-config.yaml name different versions of {name}"
    assert {hook["id"] for hook in hooks} == {"ruff-check", "ruff-format", "mypy", "lint-imports"}
