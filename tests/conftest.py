"""What all tests share: one thread, the order of the files, the count of hostile cases that is printed at the end."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # tiny_models.py is for all
settings.register_profile("farfield", deadline=None)  # no test asserts a time
settings.load_profile("farfield")
os.environ["OMP_NUM_THREADS"] = "1"  # pytest-xdist fills the cores; a test that wants threads asks torch for them
os.environ.setdefault("FARFIELD_TIME", "600")  # what `farfield check` prints does not depend on the machine


SLOW = ("tests/proofs", "tests/study")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slowest files: a file is run by one process, and no core should wait for the last one."""
    items.sort(key=lambda item: not item.nodeid.startswith(SLOW))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Count a test with the mark `hostile` as one attack of its kind, or as many as the mark says."""
    if mark := item.get_closest_marker("hostile"):
        item.user_properties.append(("hostile", [mark.args[0], *mark.args[1:], 1][:2]))


@pytest.fixture
def attacks(request: pytest.FixtureRequest) -> Callable[[int], None]:
    """Call it to say how many attacks a test was."""

    def are(count: int) -> None:
        (pair,) = (value for name, value in request.node.user_properties if name == "hostile")
        pair[1] = count

    return are


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print for each kind of attack how many were tried, and how many held."""
    tried: Counter[str] = Counter()
    held: Counter[str] = Counter()
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for kind, cases in (pair for name, pair in report.user_properties if name == "hostile"):
                if report.when == "call":
                    tried[kind] += cases
                    held[kind] += cases * (outcome == "passed")
    if tried:
        terminalreporter.section("what strangers handed over: tried / held")
        for kind in sorted(tried):
            terminalreporter.write_line(f"{kind}: {tried[kind]} / {held[kind]}")
        terminalreporter.write_line(f"all: {tried.total()} / {held.total()}")
