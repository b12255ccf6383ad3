"""Receptive fields by Farfield and by three rivals, in one run: how fast, and how often right.

    python benchmarks/receptive.py            the table
    python benchmarks/receptive.py --save     also write docs/benchmarks/receptive.{json,md}

Rivals: the paper's `draw()` (its appendix, in numpy), a plain cumulative sum in double precision, and mpmath.nsum with
bisection on j. The reference values are those of tests/oracles/trf.json, which were found by two methods each, and for
the further formulas a sum of 20,000 terms in 128 bits. `draw` and the plain sum get four times as many terms as the
answer needs, up to four million; an answer that needs more counts as not reached. mpmath gets half a second a value.
Times are seconds of processor time for one value, from the text of the formula on, with nothing kept from before.

The last row is `design("type1", 4096)` against this repository's own commit e4b7305, which is unpacked from its history
and timed in turn with the present one: the best of five runs of each, five reaches a run.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from flint import arb, ctx, fmpq
from rich.console import Console
from rich.progress import track
from rich.table import Table

from farfield.formula import Node, parse
from farfield.formula.algebras import Algebra, evaluate
from farfield.theory.fields.receptive import trf
from farfield.theory.sums import evaluation, series

ROOT = Path(__file__).parent.parent
ORACLE = json.loads((ROOT / "tests" / "oracles" / "trf.json").read_text(encoding="utf-8"))["series"]
EPSILONS = ("0.1", "1e-2", "1e-3", "1e-6", "1e-9", "1e-12")
OTHER = ("exp(-ln", "ln(t+2)", "1/(1+t^2+exp")  # series of the oracle that are no zoo encodings
FURTHER = (  # further formulas, each with 20,000 terms as its whole truth
    "-t/12 + sin(t)",
    "-floor(t/3)/4",
    "where(t < 40, -log(t+1), -t/5)",
    "max(-t/7, 3 - t/2)",
    "-log(1 + t**2 + exp(t/10))",
    "-0.3*t*log(t+2)/log(t+3)",
    "-t/16 + 2*log(t+1)",
    "-log(t+1)**3",
    "-sqrt(t) - sqrt(t+5)",
)
MOST_TERMS = 4_000_000
LIMIT = 0.5  # seconds for one value by mpmath
GOALS = {"median, zoo encodings": 0.005, "worst, zoo encodings": 1.0, "worst, other formulas": 3.0}


class _Library(Algebra):
    """A formula in the functions of numpy or mpmath."""

    def __init__(self, lib: Any, number: Callable[[Fraction], Any]):
        self.lib, self._number = lib, number
        two = {"+": "__add__", "-": "__sub__", "*": "__mul__", "/": "__truediv__"}
        self.operations = {
            op: (lambda name: lambda x, y: getattr(x + self._number(Fraction(0)), name)(y))(n) for op, n in two.items()
        }
        self.operations |= {"neg": lambda x: -x, "**": lambda x, y: x**y, "abs": abs}
        self.operations |= {f: getattr(lib, f) for f in ("exp", "log", "sqrt", "sin", "cos", "floor")}
        self.operations |= {"min": getattr(lib, "minimum", min), "max": getattr(lib, "maximum", max)}

    def number(self, value: Fraction) -> Any:
        return self._number(value)

    def constant(self, name: str) -> Any:
        return self.lib.pi if name == "pi" else -self.lib.inf

    def where(self, node: Node, names: Any) -> Any:
        if self.lib is not np:
            return super().where(node, names)
        left, right, a, b = (evaluate(n, names, self) for n in node.args)
        holds = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[str(node.value)](
            left, right
        )
        return np.where(holds, a, b)


NUMPY = _Library(np, lambda q: np.float64(q.numerator) / np.float64(q.denominator))
MPMATH = _Library(mpmath, lambda q: mpmath.mpf(q.numerator) / q.denominator)


def weights(text: str, terms: int) -> Any:
    """The first weights in double precision."""
    formula = parse(text)
    with np.errstate(all="ignore"):
        value = evaluate(formula.node, {"t": np.arange(terms, dtype=np.float64)}, NUMPY)
        return (value if formula.weight else np.exp(value)) * np.ones(terms)


# ---------------------------------------------------------------------------------------------------- the four
def ours(text: str, epsilon: str, wanted: int) -> int:
    """Farfield, with nothing kept from an earlier value."""
    return trf(text, epsilon)


def draw(text: str, epsilon: str, wanted: int) -> int | None:
    """The paper's pseudocode: the first j whose partial sum reaches (1 - epsilon) of the sum of m terms."""
    terms = 4 * wanted + 1000
    if terms > MOST_TERMS:
        return None
    sums = np.concatenate(([0.0], np.cumsum(weights(text, terms))))
    return int(np.searchsorted(sums, sums[-1] * (1 - float(epsilon)), side="left"))


def plain(text: str, epsilon: str, wanted: int) -> int | None:
    """The definition on a finite sum in double precision, added from the small end."""
    terms = 4 * wanted + 1000
    if terms > MOST_TERMS:
        return None
    tails = np.cumsum(weights(text, terms)[::-1])[::-1]
    return int(np.argmax(tails < float(epsilon) * tails[0]))


def nsum(text: str, epsilon: str, wanted: int) -> int | None:
    """mpmath.nsum for B and for each tail, with bisection on j; None when the time is up."""
    formula, end = parse(text), time.process_time() + LIMIT
    mpmath.mp.dps = 30

    def weight(t: Any) -> Any:
        if time.process_time() > end:
            raise TimeoutError
        value = evaluate(formula.node, {"t": mpmath.mpf(t)}, MPMATH)
        return value if formula.weight else mpmath.exp(value)

    def below(j: int) -> bool:
        return bool(mpmath.nsum(weight, [j, mpmath.inf]).real < bound)

    try:
        bound = mpmath.mpf(epsilon) * mpmath.nsum(weight, [0, mpmath.inf]).real
        low, high = 0, 1
        while not below(high):
            low, high = high, 2 * high
            if high.bit_length() > 4200:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if below(middle) else (middle, high)
        return high
    except (TimeoutError, ValueError, ZeroDivisionError, OverflowError, TypeError, mpmath.mp.NoConvergence):
        return None


METHODS: dict[str, Callable[[str, str, int], int | None]] = {
    "Farfield": ours,
    "draw() of the paper": draw,
    "plain sum, float64": plain,
    "mpmath.nsum, bisection": nsum,
}


# ---------------------------------------------------------------------------------------------------- the run
def by_hand(text: str, epsilon: str) -> int:
    """The definition on 20,000 terms in 128 bits, whose rest is beyond counting."""
    share = Fraction(epsilon)
    with ctx.workprec(128):
        weight, tails = evaluation.Weight(parse(text)), [arb(0)]
        for t in range(19_999, -1, -1):
            tails.append(tails[-1] + weight(t))
        tails.reverse()
        bound = arb(fmpq(share.numerator, share.denominator)) * tails[0]
        low, high = 0, len(tails) - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if tails[middle] < bound else (middle, high)
        return high


def cases() -> list[dict[str, Any]]:
    found = []
    for c in ORACLE:
        kind = "other" if c["name"].startswith(OTHER) else "zoo"
        found += [
            {"name": c["name"], "text": c["bias"], "epsilon": e, "wanted": int(c["trf"][e]), "kind": kind}
            for e in EPSILONS
        ]
    for text in FURTHER:
        found += [
            {"name": text, "text": text, "epsilon": e, "wanted": by_hand(text, e), "kind": "other"} for e in EPSILONS
        ]
    return found


def forget() -> None:
    """Drop everything that an earlier value has left behind."""
    series._series.cache_clear()
    evaluation.compiled.cache_clear()


def measure(case: dict[str, Any]) -> dict[str, Any]:
    row = {key: case[key] for key in ("name", "epsilon", "kind")} | {"tokens": str(case["wanted"])}
    for name, method in METHODS.items():
        forget()
        before, wall = time.process_time(), time.perf_counter()
        answer = method(case["text"], case["epsilon"], case["wanted"])
        row[name] = {
            "seconds": time.process_time() - before,
            "wall": time.perf_counter() - wall,
            "outcome": "not reached" if answer is None else "right" if answer == case["wanted"] else "wrong",
        }
    return row


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {"methods": {}, "goals": {}}
    for name in METHODS:
        times = [r[name]["seconds"] for r in rows]
        outcomes = [r[name]["outcome"] for r in rows]
        out["methods"][name] = {
            **{o: outcomes.count(o) for o in ("right", "wrong", "not reached")},
            "median": statistics.median(times),
            "worst": max(times),
        }
    zoo = [r["Farfield"]["seconds"] for r in rows if r["kind"] == "zoo"]
    other = [r["Farfield"]["seconds"] for r in rows if r["kind"] == "other"]
    measured = dict(zip(GOALS, (statistics.median(zoo), max(zoo), max(other)), strict=True))
    for goal, limit in GOALS.items():
        out["goals"][goal] = {"limit": limit, "measured": measured[goal], "pass": measured[goal] < limit}
    wrong = len(rows) - out["methods"]["Farfield"]["right"]
    out["goals"]["values not right"] = {"limit": 0, "measured": wrong, "pass": wrong == 0}
    return out


BEFORE = "e4b7305"
DESIGN = """
import time
import farfield as ff
ff.design("type1", 1000)
times = []
for reach in range(4096, 4101):
    before = time.process_time()
    ff.design("type1", reach)
    times.append(time.process_time() - before)
print(min(times))
"""


def design_row() -> dict[str, Any]:
    """The time of one design now and at an earlier commit, in turn; nothing if there is no history to unpack."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            return {}
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
            packed.extractall(folder, filter="data")
        times: dict[str, list[float]] = {"now": [], "before": []}
        for _ in range(5):
            for name, place in (("before", Path(folder) / "src"), ("now", ROOT / "src")):
                environment = {**os.environ, "PYTHONPATH": str(place)}
                run = subprocess.run(
                    [sys.executable, "-c", DESIGN], env=environment, capture_output=True, text=True, check=True
                )
                times[name].append(float(run.stdout))
    return {name: min(values) for name, values in times.items()} | {"commit": BEFORE}


def machine() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def markdown(result: dict[str, Any]) -> str:
    m = result["machine"]
    lines = [
        "# Receptive fields: Farfield and three rivals",
        "",
        f"{m['date']}, {m['cores']} cores ({m['processor']}), load {m['load']}, Python {m['python']}; "
        f"{len(result['rows'])} values, epsilon {EPSILONS[0]} to {EPSILONS[-1]}. Seconds of processor time for each.",
        "",
        "| method | right | wrong | not reached | median s | worst s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, r in result["methods"].items():
        lines.append(
            f"| {name} | {r['right']} | {r['wrong']} | {r['not reached']} | {r['median']:.5f} | {r['worst']:.3f} |"
        )
    lines += ["", "| goal | limit | measured | |", "| --- | ---: | ---: | --- |"]
    for name, g in result["goals"].items():
        lines.append(f"| {name} | {g['limit']:g} | {g['measured']:.5g} | {'PASS' if g['pass'] else 'MISS'} |")
    if result["design"]:
        d = result["design"]
        lines += ["", '| `design("type1", 4096)` | s |', "| --- | ---: |", f"| Farfield | {d['now']:.5f} |"]
        lines += [f"| Farfield at {d['commit']} | {d['before']:.5f} |", f"| ratio | {d['before'] / d['now']:.1f} |"]
    return "\n".join(lines) + "\n\n" + "\n\n".join((__doc__ or "").split("\n\n")[-2:])


def main() -> None:
    parser = argparse.ArgumentParser(description="Receptive fields by Farfield and by three rivals.")
    parser.add_argument("--save", action="store_true", help="also write docs/benchmarks/receptive.{json,md}")
    save = parser.parse_args().save
    trf("-log(t+1)**1.5", "0.1")  # imports are not timed
    rows = [measure(case) for case in track(cases(), description="values")]
    result = {"machine": machine(), **summary(rows), "design": design_row(), "rows": rows}
    console = Console()
    table = Table("method", "right", "wrong", "not reached", "median s", "worst s", title="receptive fields")
    for name, r in result["methods"].items():
        counts = (str(r[o]) for o in ("right", "wrong", "not reached"))
        table.add_row(name, *counts, f"{r['median']:.5f}", f"{r['worst']:.3f}")
    console.print(table)
    for name, g in result["goals"].items():
        console.print(f"{'PASS' if g['pass'] else 'MISS'}  {name}: {g['measured']:.5g} (limit {g['limit']:g})")
    best = result["methods"]["Farfield"]
    for name, r in result["methods"].items():
        if name != "Farfield":
            ratio = r["median"] / best["median"] if best["median"] else math.inf
            console.print(f"ours {best['median']:.5f} s, {name} {r['median']:.5f} s, ratio {ratio:.2f}, {machine()}")
    if result["design"]:
        d = result["design"]
        ratio = d["before"] / d["now"]
        console.print(f"design: ours {d['now']:.5f} s, commit {d['commit']} {d['before']:.5f} s, ratio {ratio:.2f}")
    if save:
        folder = ROOT / "docs" / "benchmarks"
        (folder / "receptive.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (folder / "receptive.md").write_text(markdown(result), encoding="utf-8")


if __name__ == "__main__":
    main()
