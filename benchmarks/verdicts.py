"""Verdicts of Farfield, with and without its checker, and of sympy's Sum(...).is_convergent() on the same series.

    python benchmarks/verdicts.py             the oracles of tests/oracles/verdicts.json
    python benchmarks/verdicts.py --more      also the further series of tests/oracles/more_verdicts.json
    python benchmarks/verdicts.py --json      one object instead of the table
    python benchmarks/verdicts.py --save      also write docs/benchmarks/verdicts.{json,md}
    python benchmarks/verdicts.py --limit 5   seconds that each case may take, 20 unless told

Each case runs in a process of its own on one core. Time is processor time, so that a busy machine counts against
neither; the limit is a number of seconds of it (and a minute of waiting); imports and parsing are not timed. A library
that says that it cannot tell (NotImplementedError, or an answer that is neither yes nor no) is undecided; any other
exception and the limit count as failed, the limit with all of its seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sympy
from rich.console import Console
from rich.progress import track
from rich.table import Table

import farfield
from farfield.formula import parse

ROOT = Path(__file__).parent.parent
LIMIT = 20  # seconds of processor time
PATIENCE = 60.0  # seconds of waiting
ROWS = (("farfield", "ours"), ("farfield without its checker", "unchecked"), ("sympy Sum.is_convergent", "sympy"))
OUTCOMES = ("right", "wrong", "undecided", "failed")
Case = dict[str, Any]
Answer = tuple[str, float, str]  # the verdict or "failed", seconds, what went wrong


def ours(case: Case) -> Callable[[], str]:
    """Farfield's verdict."""
    weight = case["spelling"] == "weight"
    farfield.check("-t")  # what is imported only once
    return lambda: farfield.check(case["formula"], start=case["from"], weight=weight).verdict


def unchecked(case: Case) -> Callable[[], str]:
    """Farfield's verdict as it would be if no second program had to accept its certificate: what the gate costs."""
    from farfield.theory.verdict import convergence

    convergence.accepted = lambda *_: ()
    return ours(case)


def theirs(case: Case) -> Callable[[], str]:
    """sympy's verdict on the same sum."""
    formula = parse(case["formula"], weight=case["spelling"] == "weight")
    expression = formula.sympy() if formula.weight else sympy.exp(formula.sympy())
    t = sympy.Symbol("t", integer=True, nonnegative=True)
    expression = expression.subs(sympy.Symbol("t", nonnegative=True), t)
    series = sympy.Sum(expression, (t, case["from"], sympy.oo))

    def answer() -> str:
        try:
            found = series.is_convergent()
        except NotImplementedError:
            return "undecided"
        return "converges" if found == True else "diverges" if found == False else "undecided"  # noqa: E712

    return answer


def _child(prepare: Callable[[Case], Callable[[], str]], case: Case, pipe: Any) -> None:
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - the process ends with it
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + LIMIT, resource.RLIM_INFINITY))
    start = time.process_time()
    try:
        answer = prepare(case)
        start = time.process_time()
        pipe.send((answer(), time.process_time() - start, ""))
    except BaseException as error:
        pipe.send(("failed", time.process_time() - start, f"{type(error).__name__}: {error}"[:80]))


def run(prepare: Callable[[Case], Callable[[], str]], case: Case) -> Answer:
    """One case in a process of its own, ended at the limit."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(prepare, case, sender))
    child.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(PATIENCE) else ("failed", LIMIT, f"over {PATIENCE:g} s of waiting")
    except EOFError:
        return "failed", LIMIT, f"over {LIMIT} s"
    finally:
        child.kill()
        child.join()


def outcome(answer: Answer, case: Case) -> str:
    """How the answer compares with the truth."""
    if answer[0] in ("failed", "undecided"):
        return answer[0]
    return "right" if answer[0] == case["verdict"] else "wrong"


def summary(answers: list[Answer], cases: list[Case]) -> dict[str, Any]:
    """Counts of each outcome, median and worst time."""
    outcomes = [outcome(a, c) for a, c in zip(answers, cases, strict=True)]
    times = [a[1] for a in answers]
    counts = {name: outcomes.count(name) for name in OUTCOMES}
    return {**counts, "median_seconds": statistics.median(times), "worst_seconds": max(times)}


def machine() -> str:
    """What this ran on."""
    name = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    versions = f"Python {platform.python_version()}, sympy {sympy.__version__}, farfield {farfield.__version__}"
    return f"{name}, one core; {versions}"


def table(result: dict[str, Any]) -> Table:
    """The two summaries side by side."""
    shown = Table(title=f"Verdicts on {len(result['cases'])} series")
    shown.add_column("")
    for name in OUTCOMES:
        shown.add_column(name, justify="right")
    shown.add_column("median", justify="right")
    shown.add_column("worst", justify="right")
    for label, key in ROWS:
        s = result[key]
        row = [str(s[name]) for name in OUTCOMES]
        shown.add_row(label, *row, f"{s['median_seconds'] * 1e3:.1f} ms", f"{s['worst_seconds'] * 1e3:.0f} ms")
    return shown


def last_line(result: dict[str, Any]) -> str:
    """Ours, the rival, the ratio, the machine."""
    a, b, n = result["ours"], result["sympy"], len(result["cases"])
    ratio = b["median_seconds"] / a["median_seconds"]
    return (
        f"farfield {a['right']}/{n} right, {a['wrong']} wrong, median {a['median_seconds'] * 1e3:.1f} ms "
        f"({result['unchecked']['median_seconds'] * 1e3:.1f} ms without its checker); "
        f"sympy {b['right']}/{n} right, {b['wrong']} wrong, median {b['median_seconds'] * 1e3:.1f} ms; "
        f"ratio of medians {ratio:.1f}; {result['machine']}"
    )


def as_markdown(result: dict[str, Any]) -> str:
    """The result as a page of the documentation."""
    lines = ["# Verdicts: Farfield and sympy on the same series", "", last_line(result) + ".", ""]
    lines += [
        "| | right | wrong | undecided | failed | median | worst |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for label, key in ROWS:
        s = result[key]
        counts = " | ".join(str(s[name]) for name in OUTCOMES)
        lines.append(f"| {label} | {counts} | {s['median_seconds'] * 1e3:.1f} ms | {s['worst_seconds'] * 1e3:.0f} ms |")
    lines += [
        "",
        "`python benchmarks/verdicts.py --save` makes this page; processor time, each case with a limit of "
        f"{result['limit_seconds']} s.",
        "",
    ]
    lines += ["| series | from | truth | farfield | ms | sympy | ms |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for case in result["cases"]:
        cells = [f"{case['spelling']} `{case['formula']}`", str(case["from"]), case["verdict"]]
        for key in ("ours", "sympy"):
            verdict, seconds, fault = case[key]
            mark = {"wrong": " **wrong**"}.get(outcome(case[key], case), "")
            said = fault.replace("|", "\\|") if fault else verdict
            cells += [said + mark, f"{seconds * 1e3:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    options = argparse.ArgumentParser(description="Verdicts of Farfield and of sympy on the same series.")
    options.add_argument("--json", action="store_true", help="print one object")
    options.add_argument("--more", action="store_true", help="also the further series of the tests")
    options.add_argument("--save", action="store_true", help="write docs/benchmarks/verdicts.{json,md}")
    options.add_argument("--limit", type=int, default=LIMIT, help="seconds of processor time for each case")
    given = options.parse_args()
    globals()["LIMIT"] = given.limit  # the children are forked with it
    files = ["verdicts.json", "more_verdicts.json"][: 1 + given.more]
    oracles = ROOT / "tests" / "oracles"
    cases: list[Case] = [c for f in files for c in json.loads((oracles / f).read_text(encoding="utf-8"))]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    errors = Console(stderr=True)
    found: dict[str, list[Answer]] = {"ours": [], "unchecked": [], "sympy": []}
    for case in track(cases, "series", console=errors, transient=True):
        found["ours"].append(run(ours, case))
        found["unchecked"].append(run(unchecked, case))
        found["sympy"].append(run(theirs, case))
    result: dict[str, Any] = {
        "machine": machine(),
        "limit_seconds": LIMIT,
        **{who: summary(answers, cases) for who, answers in found.items()},
        "cases": [{**case, **{who: answers[i] for who, answers in found.items()}} for i, case in enumerate(cases)],
    }
    if given.save:
        folder = ROOT / "docs" / "benchmarks"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "verdicts.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (folder / "verdicts.md").write_text(as_markdown(result), encoding="utf-8")
    if given.json:
        print(json.dumps(result))
    else:
        Console().print(table(result))
        print(last_line(result))


if __name__ == "__main__":
    main()
