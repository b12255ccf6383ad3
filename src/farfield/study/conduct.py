"""A whole study from one call: plan, train, measure, collect, and write the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from farfield.study.collected import Study
    from farfield.study.plan import Plan
    from farfield.study.running import Failure, Job, Watcher


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
    from farfield.study.collected import collect, save
    from farfield.study.plan import make_plan
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
    save(result, folder)
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
    from farfield.study import adoption, running

    if jobs is not None and jobs < 1:
        raise ValueError(f"{jobs} runs at once were asked for; it must be at least 1.")
    if device is not None:
        if cluster == "slurm":
            raise ValueError("a device is chosen on this machine only; on SLURM give --slurm gpus_per_node=1")
        running.chosen_gpus(device)
    out.mkdir(parents=True, exist_ok=True)
    adoption.adopt(plan, out, runs)
    plan.save(out)
    todo = [cell for cell in running.missing(plan, out) if train or adoption.is_trained(out, cell)]

    def run(some: Sequence[Job], limit: int | None) -> list[Failure]:
        watcher.expect(len(some))
        if cluster == "slurm":
            from farfield.study.cluster import run_slurm, slurm_options

            return run_slurm(out, some, watcher, slurm_options(slurm, gpus=int(plan.preset.startswith("paper"))))
        return running.run_here(out, some, watcher, limit or jobs, device)

    return running.run_study(todo, plan, out, run)


class Silent:
    """A watcher that shows nothing."""

    def expect(self, count: int) -> None: ...
    def started(self, job: Any) -> None: ...
    def moved(self, job: Any, progress: Any) -> None: ...
    def ended(self, job: Any, failure: Any) -> None: ...
