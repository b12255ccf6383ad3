"""What all tests share: the count of hostile cases that is printed at the end."""

import os
from collections import Counter
from typing import Any

from hypothesis import settings

settings.register_profile("farfield", deadline=None)  # no test asserts a time
settings.load_profile("farfield")
os.environ.setdefault("FARFIELD_TIME", "600")  # what `farfield check` prints does not depend on the machine


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print for each kind of attack in tests/hostile how many were tried, and how many held."""
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
