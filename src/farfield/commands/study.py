"""`farfield study`: the paper from one command; trains, measures, draws and reports."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from farfield.commands.options import Flag, Learn, Slopes, StudySizes, WholeOrNone, split_list

if TYPE_CHECKING:
    from farfield.study.jobs import Failure, Job, Progress

Listed = Annotated[list[str] | None, Parameter(allow_leading_hyphen=True, negative="")]


def study_command(
    *,
    corpora: Listed = None,
    encodings: Listed = None,
    learn: Learn = None,
    slopes: Slopes = None,
    seeds: WholeOrNone = None,
    first_seed: WholeOrNone = None,
    stands_for: Annotated[list[str] | None, Parameter(negative="")] = None,
    runs: Annotated[list[Path] | None, Parameter(negative="")] = None,
    measure_only: Annotated[bool, Parameter(negative="")] = False,
    sizes: StudySizes = StudySizes(),  # noqa: B008
    check: Path | None = None,
    out: Path = Path("study"),
    only: Literal["tables", "figures", "records"] | None = None,
    pdf: Flag = False,
    precision: Literal["float32", "bfloat16"] | None = None,
    cluster: Literal["local", "slurm"] = "local",
    slurm: Annotated[list[str] | None, Parameter(negative="")] = None,
    jobs: WholeOrNone = None,
    device: str | None = None,
    dry_run: Flag = False,
    without_gpu: Flag = False,
    quiet: Flag = False,
) -> None:
    """Does theory predict what models do? Train the encodings, measure them, and write a report.

    What is there already is not done again: a second call trains what is missing, and a run that was killed goes on.

    Args:
        corpora: Texts to train on, with commas: `python` (the standard library's source, the default), paths, data sets
            of the hub (wikitext-103, books, github, wikibook). May be repeated.
        encodings: Names of the zoo and formulas, with commas: "alibi, type1, -2*log(t + 1)". The paper's nine and
            two more, which set verdict and leak apart, unless given. May be repeated.
        learn: Parameters that each head learns, in every encoding that has them, with the range in which the heads
            start and, after "in", bounds: "a=0:2, p=0.5:1.5 in 0.01:3".
        slopes: What k is: alibi (the default), learned (starting at ALiBi's), or one for each head: 1/2,1/4,1/8,1/16.
        seeds: How many times to train each, from different first weights and batches; 1 unless given.
        first_seed: The first of these seeds; 0 unless given.
        stands_for: DATASET=CORPUS: this corpus stands for that data set of the paper (wikitext-103, books, github,
            wikibook), whose published numbers are then set beside it. May be repeated. `python` stands for github.
        runs: A folder of finished runs of `farfield train`: those that have the settings of this study are measured,
            not trained again. May be repeated.
        measure_only: Train nothing: measure the models that are there, and report on these.
        check: A file of `farfield predict`: train what it names, and say which of its predictions held.
        out: The folder of the study.
        only: Train nothing: write the tables, or the figures, anew from what was measured; or put all records into one
            file, records.zip, from which they are read as well. The options of the last call hold.
        pdf: Write each figure as PDF too.
        precision: Of the arithmetic in training; float32 unless given. bfloat16 is what GPUs are fast in.
        cluster: local: processes on this machine. slurm: one job for each run.
        slurm: An option of sbatch for each run as NAME=VALUE: partition=gpu, nodes=2, gpus_per_node=8, mem=64G,
            time=600 (minutes). May be repeated. A job that is pre-empted goes back into the queue.
        jobs: Runs at once on this machine; one for each core or GPU unless given.
        device: Where the runs compute: cpu, cuda (one run on each GPU), or one GPU such as cuda:1; every GPU unless
            given, or the cores.
        dry_run: Say what would be done and what it would cost, and stop.
        without_gpu: Start the paper's sizes even though this machine shows no GPU.
        quiet: Show no progress.
    """
    from farfield.study.conduct import missing, run_plan
    from farfield.study.entries import collect
    from farfield.study.jobs import chosen_gpus, gpus
    from farfield.study.plan import make_plan, read_plan, sentences
    from farfield.study.predictions import FILE, outcome_table, outcomes, predict, read_predictions, score_table
    from farfield.study.record import pack

    console = Console(stderr=True)
    selected = (
        any(
            option is not None
            for option in (corpora, encodings, seeds, first_seed, stands_for, precision, learn, slopes, check)
        )
        or sizes != StudySizes()
    )
    if check is not None and (
        corpora or encodings or learn or slopes or stands_for or precision or sizes != StudySizes()
    ):
        raise ValueError("--check trains what its file names: give only --seeds, --first-seed and --out beside it.")
    if device is not None:
        chosen_gpus(device)
    plan = read_plan(out) if only is not None and not selected else None
    predictions = None if check is None else read_predictions(check)
    if plan is None and predictions is not None:
        plan = predictions.plan(1 if seeds is None else seeds, first_seed or 0)
    if plan is None:
        chosen = split(corpora, paths=True), split(encodings), 1 if seeds is None else seeds
        declared = dict(_pair(one) for one in stands_for or [])
        plan = make_plan(
            sizes.preset or "small", *chosen, precision, first_seed=first_seed or 0, stands_for=declared, learn=learn,
            slopes=slopes, sizes=sizes.changes(),
        )  # fmt: skip
    todo = missing(plan, out)
    if only is None:
        for sentence in sentences(plan, todo):
            console.print(Text(sentence))
    if dry_run:
        return
    command = shlex.join(["farfield", *sys.argv[1:]])
    if only is None and not (out / FILE).exists():  # what was predicted before the first training stays
        out.mkdir(parents=True, exist_ok=True)
        (predictions or predict(plan)).save(out / FILE)
    failures: list[Failure] = []
    if only is None:
        here = cluster == "local" and not measure_only
        if plan.preset.startswith("paper") and todo and here and not gpus() and not without_gpu:
            raise ValueError(
                "This machine shows no GPU, and the paper's sizes would take years here: "
                "use --cluster slurm, --preset small, or --without-gpu if you mean it."
            )
        display = ProgressDisplay(console, quiet)
        try:
            with display:
                failures = run_plan(
                    plan,
                    out,
                    display,
                    cluster=cluster,
                    slurm=slurm or [],
                    jobs=jobs,
                    device=device,
                    runs=runs or [],
                    train=not measure_only,
                )
        except KeyboardInterrupt:
            where = "The jobs stay in SLURM's queue" if cluster == "slurm" else "What was trained is kept"
            console.print(Text(f"Stopped. {where}; go on with: {command}"), soft_wrap=True)
            raise
    try:
        study = collect(plan, out)
    except ValueError:
        if failures:
            raise ValueError(f"No run was finished. {failures[0].sentence}") from None
        raise
    if only == "records":
        console.print(Text(f"The records: {pack(out)}"))
        return
    from farfield.study.report import summary, write

    page = write(
        study, out, only=only, pdf=pdf, command=command, say=None if quiet else lambda s: console.print(Text(s))
    )
    from farfield.study.evidence import Evidence
    from farfield.study.findings import findings, take_home, too_small

    evidence = Evidence(study)
    if (out / FILE).exists() and (checked := outcomes(read_predictions(out / FILE), study)):
        for table in (outcome_table(checked), score_table(checked)):
            Console().print(table.rich(Console()))
    Console().print(Text(take_home(study, evidence), style="bold"))
    for table in summary(study):
        Console().print(table.rich(Console()))
    for sentence in [*too_small(study), *(finding.text for finding in findings(study, evidence))]:
        Console().print(Text(sentence))
    for failure in failures:
        console.print(Text(failure.sentence, style="red"))
    Console().print(Text(f"The report: {page}"), soft_wrap=True)
    if failures:
        console.print(Text(f"What failed is tried again by: {command}"), soft_wrap=True)
        raise SystemExit(1)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        raise ValueError(f"--stands-for takes DATASET=CORPUS, such as books=my/novels, not {text[:60]!r}.")
    return name, value


def split(given: Sequence[str] | None, paths: bool = False) -> list[str] | None:
    """The parts of texts with commas; a comma in the name of a path that exists belongs to the path."""
    if given is None:
        return None
    whole = [[text] if paths and Path(text).expanduser().exists() else split_list(text) for text in given]
    named = [part for parts in whole for part in parts if part]
    if not named:
        raise ValueError("An empty list was given; leave the option out for what is usual.")
    return named


class ProgressDisplay:
    """Progress over runs and inside each of them, and the time that is left: bars on a terminal, lines in a log."""

    SECONDS = 30.0

    def __init__(self, console: Console, quiet: bool) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        from farfield.study.jobs import TimeLeft

        self.console, self.quiet = console, quiet
        self.live = console.is_terminal and not quiet
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[status]}", markup=False),
        )
        self.bars = Progress(*columns, TimeElapsedColumn(), console=console, disable=not self.live)
        self.whole = self.bars.add_task("all runs", total=0, status="")
        self.tasks: dict[Job, object] = {}
        self.last_line = time.monotonic()
        self.left = TimeLeft()

    def __enter__(self) -> None:
        self.bars.start()

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def expect(self, count: int) -> None:
        self.left.start(count)
        self.bars.update(self.whole, total=(self.bars.tasks[0].total or 0) + count)
        self._count()

    def started(self, job: Job) -> None:
        self.tasks[job] = self.bars.add_task(_short(job.label), total=1.0, status="starting")

    def moved(self, job: Job, progress: Progress) -> None:
        self.left.moved(job, progress.whole)
        self.bars.update(self.tasks[job], completed=progress.share, status=progress.phase)  # type: ignore[arg-type]
        self._count()
        if not self.live and not self.quiet and time.monotonic() - self.last_line > self.SECONDS:
            self.last_line = time.monotonic()
            line = f"{job.label}: {progress.phase}, {progress.share:.0%}; {self.bars.tasks[0].fields['status']}"
            self.console.print(Text(line))

    def ended(self, job: Job, failure: Failure | None) -> None:
        self.left.moved(job, 1.0)
        self.bars.remove_task(self.tasks.pop(job))  # type: ignore[arg-type]
        self.bars.advance(self.whole)
        self._count()
        if not self.quiet:
            self.console.print(Text(f"{job.label}: done" if failure is None else failure.sentence))

    def _count(self) -> None:
        task, left = self.bars.tasks[0], self.left.sentence
        self.bars.update(self.whole, status=f"{task.completed:g} of {task.total or 0:g}{', ' if left else ''}{left}")


def _short(label: str, width: int = 40) -> str:
    return label if len(label) <= width else label[: width - 3] + "..."
