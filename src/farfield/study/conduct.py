"""A whole study from one call: plan, train, measure, collect, and write the report.

What is there is not done again. A model may have been trained elsewhere: a finished run folder with a cell's settings
is measured. What decides a run's result must be equal; how often it was saved, logged or evaluated may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from farfield import zoo
from farfield.study import jobs as work
from farfield.study.cell import RUNS
from farfield.study.plan import Cell, Plan, find_cell, make_plan
from farfield.study.record import read_record, read_speed
from farfield.training.runfolder import CONFIG, finished_steps, read_settings
from farfield.training.settings import Settings

if TYPE_CHECKING:
    from farfield.study.entries import Study
    from farfield.study.jobs import Failure, Job, Watcher

BOOKKEEPING = {"save_every", "keep", "log_every", "evaluate_every", "evaluate_tokens", "micro_batch"}


def study(
    out: str | Path = "study",
    *,
    preset: str = "small",
    corpora: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
    seeds: int = 1,
    first_seed: int = 0,
    stands_for: Mapping[str, str] | None = None,
    runs: Sequence[str | Path] = (),
    precision: str | None = None,
    learn: str | Mapping[str, Any] | None = None,
    slopes: str | None = None,
    jobs: int | None = None,
    device: str | None = None,
) -> Study:
    """Does theory predict what models do? Train encodings, measure them, and write a report.

    What is there already is not done again: a second call trains what is missing, and a run that was killed goes on.

    Args:
        out: The folder of the study; its report is `report.html` in there.
        preset: "small" (minutes on two cores), "tiny" (a test), "paper" (the paper's whole grid, for GPUs), or another
            preset of training.
        corpora: Texts to train on: "python", paths, data sets of the hub; "python" unless given.
        encodings: Names of the zoo and formulas; the paper's nine and two more unless given.
        seeds: How many times to train each, from different first weights and batches.
        first_seed: The first of them.
        stands_for: Which of the corpora stands for which of the paper's data sets: {"books": "my/novels"}.
        runs: Folders of finished runs; those that have the settings of this study are measured, not trained again.
        precision: Of the arithmetic in training: "float32" or "bfloat16"; the preset's unless given.
        learn: Parameters that each head learns, in every encoding that has them: "a=0:2, p=0.5:1.5 in 0.01:3".
        slopes: What k is: "alibi", "learned", or one for each head, "1/2, 1/4, ...".
        jobs: Runs at once; one for each core or GPU unless given.
        device: Where they run: "cpu", "cuda" (one run for each GPU), or one GPU such as "cuda:1".

    Returns:
        Everything that was measured; `missing` names the runs that failed.

    Raises:
        ValueError: If an option makes no sense, or no run could be finished.
    """
    from farfield.study.entries import collect
    from farfield.study.report import write

    folder = Path(out)
    plan = make_plan(
        preset,
        corpora,
        encodings,
        seeds,
        precision,
        first_seed=first_seed,
        stands_for=stands_for,
        learn=learn,
        slopes=slopes,
    )
    run_plan(plan, folder, Silent(), jobs=jobs, device=device, runs=[Path(one) for one in runs])
    result = collect(plan, folder)
    write(result, folder, command="farfield.study(...)")
    return result


def run_plan(
    plan: Plan,
    out: Path,
    watcher: Watcher,
    *,
    cluster: Literal["local", "slurm"] = "local",
    slurm: Sequence[str] = (),
    jobs: int | None = None,
    device: str | None = None,
    runs: Sequence[Path] = (),
    train: bool = True,
) -> list[Failure]:
    """Train and measure what is missing of a plan, here or on a cluster; what failed.

    Args:
        plan: What the study consists of.
        out: Its folder.
        watcher: Shows what is going on.
        cluster: "local" or "slurm".
        slurm: Options for SLURM, as NAME=VALUE.
        jobs: Runs at once on this machine.
        device: Where they run: "cpu", "cuda" (one run for each GPU) or one GPU, such as "cuda:1".
        runs: Folders of finished runs to take models from.
        train: Whether to train; if not, only models that are there are measured.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"{jobs} runs at once were asked for; it must be at least 1.")
    if device is not None:
        if cluster == "slurm":
            raise ValueError("a device is chosen on this machine only; on SLURM give --slurm gpus_per_node=1")
        work.chosen_gpus(device)
    out.mkdir(parents=True, exist_ok=True)
    adopt(plan, out, runs)
    plan.save(out)
    todo = [cell for cell in missing(plan, out) if train or _is_trained(out, cell)]

    def run(some: Sequence[Job], limit: int | None = None) -> list[Failure]:
        watcher.expect(len(some))
        if cluster == "slurm":
            from farfield.study.cluster import run_slurm, slurm_options

            return run_slurm(out, some, watcher, slurm_options(slurm, gpus=int(plan.preset.startswith("paper"))))
        return work.run_here(out, some, watcher, limit or jobs, device)

    failures = run([work.prepare_job(cell) for cell in _one_of_each_text(todo)]) if todo else []
    unread = [find_cell(out, failure.job.arguments[0]).settings.corpus for failure in failures]
    failures += run([work.cell_job(cell) for cell in todo if cell.settings.corpus not in unread])
    subject, speed = _speed_subject(plan, out), read_speed(out)
    if subject is not None and (speed is None or speed.cell != subject.key):
        failures += run([work.speed_job(subject)], 1)  # alone, so that nothing else disturbs the clock
    return failures


def missing(plan: Plan, out: Path) -> list[Cell]:
    """The cells that have no record yet."""
    return [cell for cell in plan.cells if read_record(out, cell) is None]


def _one_of_each_text(cells: Sequence[Cell]) -> list[Cell]:
    """A cell for each text and tokenizer among these."""
    first: dict[tuple[object, ...], Cell] = {}
    for cell in cells:
        s = cell.settings
        first.setdefault((s.corpus, s.tokenizer, s.vocabulary, s.limit, s.split_seed, s.errors), cell)
    return list(first.values())


def _speed_subject(plan: Plan, out: Path) -> Cell | None:
    """The finished cell whose inference is timed: ALiBi, as in the paper, or the first with a formula."""
    done = [cell for cell in plan.cells if read_record(out, cell) is not None]
    alibi = [cell for cell in done if cell.encoding == "alibi"]
    biased = [cell for cell in done if zoo.find(cell.encoding).formula is not None]
    return next(iter(alibi or biased or done), None)


def _deciding_settings(settings: Settings) -> dict[str, Any]:
    """The settings that decide a run's result; a corpus that is a path by where it leads."""
    fields = {name: value for name, value in settings.model_dump(mode="json").items() if name not in BOOKKEEPING}
    path = Path(settings.corpus).expanduser()
    return {**fields, "corpus": str(path.resolve()) if path.exists() else settings.corpus}


def same_run(run: Path, cell: Cell) -> bool:
    """Whether a run folder holds the model that a cell asks for."""
    try:
        return _deciding_settings(read_settings(run)) == _deciding_settings(cell.settings)
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
    runs = [(run, _deciding_settings(settings)) for run, settings in finished_runs(folders)]
    count = 0
    for cell in plan.cells:
        place = out / RUNS / cell.run_key
        wanted = _deciding_settings(cell.settings)
        source = next((run for run, settings in runs if settings == wanted), None)
        if source is not None and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(source.resolve())
            count += 1
    return count


def _is_trained(out: Path, cell: Cell) -> bool:
    """Whether the model of a cell is there, so that only measuring is left."""
    run = out / RUNS / cell.run_key
    return finished_steps(run) is not None and same_run(run, cell)


class Silent:
    """A watcher that shows nothing."""

    def expect(self, count: int) -> None: ...
    def started(self, job: Any) -> None: ...
    def moved(self, job: Any, progress: Any) -> None: ...
    def ended(self, job: Any, failure: Any) -> None: ...
