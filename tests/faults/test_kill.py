"""Killed with SIGKILL at any moment, a run that goes on ends with the same bits."""

import os
import random
import shutil
import time
from pathlib import Path
from typing import Any

import pytest


def kill_at_random(nursery: Any, undisturbed: Any, home: Path, kills: int, seed: int) -> None:
    """Kill runs at random moments, and each again while it goes on, until so many kills were real ones."""
    draw = random.Random(seed)
    done, runs, seconds = 0, 0, undisturbed.seconds
    while done < kills:
        run = home / f"run-{runs}"
        runs += 1
        for attempt in range(draw.randint(1, 4)):
            ended = nursery.start(run, {"seconds": draw.uniform(0.0, 1.1 * seconds)})
            if ended["status"] != -9:  # it was faster than the kill
                seconds = min(seconds, ended["seconds"]) if attempt == 0 else seconds
                break
            done += 1
        assert nursery.finish(run) == undisturbed.outcome


def kill_at_operations(nursery: Any, undisturbed: Any, home: Path, moments: list[tuple[int, str]]) -> None:
    """Kill one run at each of these operations, let it go on, and compare."""
    for operation, when in moments:
        run = home / f"at-{operation}-{when}"
        assert nursery.start(run, {"operation": operation, "when": when})["status"] == -9
        assert nursery.finish(run) == undisturbed.outcome, (operation, when)


@pytest.mark.hostile("training killed at any moment", 20)
def test_20_kills_at_random_moments_change_nothing(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    kill_at_random(nursery, undisturbed, tmp_path, 20, seed=1)


# The saves of a run are alike: in the short form the second is taken apart (the one that removes nothing yet comes
# first), in the long form every operation from the first write of the run to the last.
def moments_of_a_save(operations: list[str], save: int) -> list[tuple[int, str]]:
    renames = [n for n, name in enumerate(operations, start=1) if name == "rename"]
    # the run starts with three small files, then each save ends with a rename and the sync of the folder
    first, last = renames[2 + save] + 2, renames[3 + save] + 1
    moments = [(n, "before") for n in range(first, last + 1)]
    moments += [(n, "during") for n in range(first, last + 1) if operations[n - 1] == "write"]
    return [*moments, (last, "after")]


@pytest.mark.parametrize("part", [0, 1])
def test_a_kill_at_every_step_of_a_save_changes_nothing(
    nursery: Any, undisturbed: Any, tmp_path: Path, part: int
) -> None:
    moments = moments_of_a_save(undisturbed.operations, save=1)
    assert len(moments) > 15
    kill_at_operations(nursery, undisturbed, tmp_path, moments[part::2])


def test_a_kill_while_the_end_is_written_changes_nothing(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    count = len(undisturbed.operations)
    moments = [(n, "before") for n in range(count - 12, count + 1, 3)] + [(count, "after")]
    kill_at_operations(nursery, undisturbed, tmp_path, moments)


@pytest.mark.long
def test_a_kill_at_every_operation_of_a_whole_run_changes_nothing(
    nursery: Any, undisturbed: Any, tmp_path: Path
) -> None:
    every = [(n, when) for n in range(1, len(undisturbed.operations) + 1) for when in ("before", "during", "after")]
    kill_at_operations(nursery, undisturbed, tmp_path, every)


@pytest.mark.long
def test_300_kills_at_random_moments_change_nothing(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    kill_at_random(nursery, undisturbed, tmp_path, 300, seed=2)


@pytest.mark.long
def test_an_hour_of_kills_at_random_moments_changes_nothing(nursery: Any, undisturbed: Any, tmp_path: Path) -> None:
    """For FARFIELD_MINUTES, 60 unless set."""
    end, done = time.monotonic() + 60 * float(os.environ.get("FARFIELD_MINUTES", "60")), 0
    while time.monotonic() < end:
        (tmp_path / str(done)).mkdir()
        kill_at_random(nursery, undisturbed, tmp_path / str(done), 10, seed=1000 + done)
        shutil.rmtree(tmp_path / str(done))
        done += 10
        print(f"{done} kills, all runs ended with the same bits", flush=True)
