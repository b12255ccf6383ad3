"""Runs that were trained elsewhere, as cells of a study: a finished run folder with a cell's settings is measured.

What decides a run's result must be equal; how often it was saved, logged or evaluated may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from farfield.study.cell import RUNS
from farfield.study.plan import Cell, Plan
from farfield.training.runfolder import CONFIG, finished_steps, read_settings
from farfield.training.settings import Settings

BOOKKEEPING = {"save_every", "keep", "log_every", "evaluate_every", "evaluate_tokens", "micro_batch"}


def deciding(settings: Settings) -> dict[str, Any]:
    """The settings that decide a run's result; a corpus that is a path by where it leads."""
    fields = {name: value for name, value in settings.model_dump(mode="json").items() if name not in BOOKKEEPING}
    path = Path(settings.corpus).expanduser()
    return {**fields, "corpus": str(path.resolve()) if path.exists() else settings.corpus}


def same_run(run: Path, cell: Cell) -> bool:
    """Whether a run folder holds the model that a cell asks for."""
    try:
        return deciding(read_settings(run)) == deciding(cell.settings)
    except ValueError:
        return False


def finished_runs(folders: Sequence[Path]) -> Iterator[tuple[Path, Settings]]:
    """The finished runs in folders of runs; one sentence if a folder is none."""
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"There is no folder {str(folder)!r} of runs.")
        for config in sorted(folder.glob(f"*/{CONFIG}")):
            try:
                if finished_steps(config.parent) is not None:
                    yield config.parent, read_settings(config.parent)
            except ValueError:
                continue  # some other model


def adopt(plan: Plan, out: Path, folders: Sequence[Path]) -> int:
    """Link the finished runs in these folders that are cells of the plan into the study; how many."""
    known = [(run, deciding(settings)) for run, settings in finished_runs(folders)]
    count = 0
    for cell in plan.cells:
        place = out / RUNS / cell.run_key
        wanted = deciding(cell.settings)
        source = next((run for run, settings in known if settings == wanted), None)
        if source is not None and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source.resolve())
            count += 1
    return count


def is_trained(out: Path, cell: Cell) -> bool:
    """Whether the model of a cell is there, so that only measuring is left."""
    run = out / RUNS / cell.run_key
    return finished_steps(run) is not None and same_run(run, cell)
