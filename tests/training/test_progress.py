"""The time that is left: right within a quarter once a run has gone on for a minute."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield.training.reporting import Pace, ProgressBar, duration
from farfield.training.settings import Settings


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def spend(pace: Pace, clock: Clock, kind: str, seconds: float) -> None:
    with pace.timed(kind):
        clock.now += seconds


@given(
    step=st.floats(0.01, 20.0),
    first=st.floats(1.0, 200.0),
    rest=st.fixed_dictionaries({"evaluate_every": st.integers(5, 300), "save_every": st.integers(5, 300)}),
    evaluation=st.floats(0.1, 8.0),  # in steps, of what a step's own reading of as many tokens would take
    save=st.floats(0.0, 0.5),
    seed=st.integers(0, 1000),
)
def test_the_time_left_is_right_within_a_quarter_after_a_minute(
    step: float, first: float, rest: dict[str, int], evaluation: float, save: float, seed: int
) -> None:
    draw, clock = random.Random(seed), Clock()
    tokens = max(1, round(evaluation * 3 * 16 * 64))
    settings = Settings(steps=400, evaluate_tokens=tokens, batch=16, length=64, **rest)
    pace, said = Pace(settings, clock), []
    for number in range(1, settings.steps + 1):
        spend(pace, clock, "step", (first if number == 1 else 1.0) * step * draw.uniform(0.8, 1.2))
        for kind, every, cost in (("evaluation", "evaluate_every", evaluation), ("save", "save_every", save)):
            if number % rest[every] == 0 or number == settings.steps:
                spend(pace, clock, kind, cost * step * draw.uniform(0.85, 1.15))
        said.append((number, clock.now, pace.left(number)))
    for number, moment, left in said:
        if moment > 60.0 and number >= 3:
            true = clock.now - moment
            assert abs(left - true) <= 0.25 * true + 2 * step, (number, left, true)


def test_a_slow_start_and_a_machine_that_changes_are_forgotten() -> None:
    clock = Clock()
    pace = Pace(Settings(steps=10_000, evaluate_every=100_000, save_every=100_000), clock)
    spend(pace, clock, "step", 300.0)  # compiling
    for _ in range(100):
        spend(pace, clock, "step", 0.5)
    assert pace.seconds_per_step == pytest.approx(0.5)
    for _ in range(100):
        spend(pace, clock, "step", 2.0)
    assert pace.seconds_per_step == pytest.approx(2.0)


def test_a_log_file_gets_a_line_and_no_bar(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(ProgressBar, "SECONDS", -1.0)
    bar = ProgressBar(Settings(steps=100), step=3)
    with bar.pace.timed("step"):
        pass
    bar.loss = 2.5
    bar.moved(4)
    bar.close()
    assert "step 4 of 100  loss 2.500" in capsys.readouterr().err
    assert [duration(seconds) for seconds in (5, 130, 7300, 200_000)] == [
        "5 seconds", "2.2 minutes", "2.0 hours", "2.3 days",
    ]  # fmt: skip
