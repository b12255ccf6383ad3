"""constraints.txt, the versions that the README's two commands install, fits pyproject.toml and leaves nothing open."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line[0] != "#"]
CUDA = re.compile("nvidia-|cuda-")  # torch's CUDA builds name the versions of these themselves


def applies(requirement: Requirement, environment: dict[str, str]) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({**environment, "extra": ""})


def pin_of(name: str, environment: dict[str, str]) -> str | None:
    """The version that the lock names in an environment; None if it names none."""
    pins = [pin for pin in LOCK if pin.name == canonicalize_name(name) and applies(pin, environment)]
    assert len(pins) <= 1, pins
    return str(pins[0].specifier).removeprefix("==") if pins else None


@pytest.mark.parametrize("system", ["linux", "darwin"])
@pytest.mark.parametrize("python", re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
def test_every_dependency_is_pinned_within_its_range(python: str, system: str) -> None:
    environment = {**default_environment(), "sys_platform": system}
    environment |= {"python_version": python, "python_full_version": f"{python}.9"}
    for text in (*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())):
        need = Requirement(text)
        if need.name != "farfield" and applies(need, environment):
            pin = pin_of(need.name, environment)
            assert pin is not None, f"constraints.txt lacks {need.name}: run .ci/lock"
            assert need.specifier.contains(pin), f"constraints.txt has {need.name} {pin}, pyproject.toml {text}"


def test_what_the_pinned_packages_need_is_pinned_too() -> None:
    environment = default_environment()
    same = [d for d in distributions() if pin_of(d.name, environment) == d.version.partition("+")[0]]
    for package in same:
        for need in map(Requirement, package.requires or ()):
            if applies(need, environment) and not CUDA.match(need.name):
                assert pin_of(need.name, environment), f"{package.name} needs {need.name}: run .ci/lock"
    assert same


def test_no_cuda_library_is_pinned_and_both_commands_of_the_readme_use_the_lock() -> None:
    assert not [pin.name for pin in LOCK if CUDA.match(pin.name)]
    commands = re.findall(r"\.venv/bin/pip install (.*?) &&", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert commands == ['-c constraints.txt -e ".[study]"', '-c constraints.txt -e ".[test]"']
