"""How fast and how lean is attention with a bias? Ours against every rival, each in its own process.

    python benchmarks/attention.py                         the whole table (about 25 minutes on two cores)
    python benchmarks/attention.py --quick                 512 and 1024 tokens, one thread
    python benchmarks/attention.py --lengths 4096 --threads 1 --rivals "dense mask" BLOOM
    python benchmarks/attention.py --json out.json --figure out
    python benchmarks/attention.py --device cuda           on a GPU: checks first, then its rivals (attention_short.py)

Repeats are interleaved: in each round the bias-free limit, our variants and one peer run once, in turn, and the median
counts: of the processor's seconds with one thread, which other programs do not disturb, of the clock's with more.
Memory is the peak of the process above the inputs and what is handed back (output, gradients).
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import platform
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

RIVALS_FILE = pathlib.Path(__file__).with_name("attention_rivals.py")
FLEX = ("FlexAttention", "FlexAttention, ALiBi only")
PEERS = ("dense mask", "x-transformers", "x-transformers flash", "BLOOM", "MPT", *FLEX)
FORWARD = ("ours", "ours, skipping", "ours, skipping, type2", "ours, skipping, type1", "ours, window 512")
TRAIN = ("ours", "ours, learned bias", "ours, skipping", "ours, skipping, learned bias")
LENGTHS, FAR = (512, 1024, 2048, 4096, 9216), 65536
NEEDS = {"dense mask": 1.6, "x-transformers flash": 2.6, "BLOOM": 4.5, "MPT": 4.5, "x-transformers": 5.0}  # x 4 H n n


@dataclass
class Measured:
    """One rival at one length: the median of its seconds, and its peak of extra memory."""

    rival: str
    n: int
    threads: int
    train: bool
    seconds: float
    repeats: int
    extra_mb: float


class Worker:
    """A rival in a process of its own, which runs once for each line that it is sent."""

    def __init__(self, rival: str, n: int, threads: int, train: bool):
        order = json.dumps({"rival": rival, "n": n, "threads": threads, "train": train})
        self.process = subprocess.Popen(
            [sys.executable, str(RIVALS_FILE), order],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.rival = rival
        self.extra_mb = self._answer()["extra_mb"]

    def _answer(self) -> dict[str, float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.rival} ended without an answer (code {self.process.wait()})")
        return json.loads(line)

    def seconds(self, clock: str) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return self._answer()[clock]

    def close(self) -> None:
        self.process.communicate()


def available_gb() -> float:
    for row in pathlib.Path("/proc/meminfo").read_text().splitlines():
        if row.startswith("MemAvailable"):
            return int(row.split()[1]) / 2**20
    return 0.0


def measure(n: int, threads: int, train: bool, peers: list[str], rounds: int | None, say: Console) -> list[Measured]:
    """Every rival at one length."""
    rounds = rounds or (5 if n <= 2048 else 3 if n <= 4096 else 2 if n <= 9216 else 1)  # with each peer
    own = ["limit", *(TRAIN if train else FORWARD)]
    if n > 2 * max(LENGTHS):
        own, peers = ["limit", "ours, skipping", "ours, window 512"], []
    if train:
        peers = [p for p in peers if p not in FLEX]
    seconds: dict[str, list[float]] = defaultdict(list)
    extra: dict[str, float] = {}
    workers = [Worker(name, n, threads, train) for name in own]
    for peer in peers or [None]:
        need = NEEDS.get(peer or "", 0) * 32 * n * n / 2**30
        if need > 0.8 * available_gb():
            say.print(f"  {peer} at {n} tokens left out: it needs about {need:.0f} GB")
            continue
        both = [*workers, *([Worker(peer, n, threads, train)] if peer else [])]
        for _ in range(rounds):
            for worker in both:
                seconds[worker.rival].append(worker.seconds("processor" if threads == 1 else "clock"))
        for worker in both:
            extra[worker.rival] = worker.extra_mb
        if peer:
            both[-1].close()
            say.print(f"  {n} tokens, {threads} thread(s), {'train' if train else 'forward'}: {peer}", highlight=False)
    for worker in workers:
        worker.close()
    return [Measured(r, n, threads, train, statistics.median(s), len(s), extra[r]) for r, s in seconds.items()]


def figures(results: list[Measured]) -> list[dict[str, Any]]:
    """What must hold: each promised figure with what was measured."""
    at = {(m.n, m.threads, m.train, m.rival): m for m in results}
    rows = []

    def promise(
        what: str, n: int, threads: int, ours: float, rival: float, unit: str, ratio: float, bound: str
    ) -> None:
        holds = within(ratio, bound)
        rows.append({"what": what, "n": n, "threads": threads, "ours": ours, "rival": rival, "unit": unit,
                     "ratio": ratio, "bound": bound, "holds": holds})  # fmt: skip

    for threads in sorted({m.threads for m in results}):

        def seconds(n: int, rival: str, train: bool = False, threads: int = threads) -> float | None:
            found = at.get((n, threads, train, rival))
            return None if found is None else found.seconds

        for n in (4096, 9216):
            for what, rival, train, bound in (
                ("forward / bias-free limit", "ours", False, "<= 1.05"),
                ("forward + backward, fixed bias / limit", "ours", True, "<= 1.25"),
                ("forward + backward, learned bias / limit", "ours, learned bias", True, "<= 1.15"),
            ):
                a, b = seconds(n, rival, train), seconds(n, "limit", train)
                if a and b:
                    promise(what, n, threads, a, b, "s", a / b, bound)
            peers = {p: s for p in PEERS if (s := seconds(n, p))}
            if peers and (a := seconds(n, "ours")):
                best = min(peers, key=peers.__getitem__)
                promise(
                    f"forward: fastest peer ({best}) / ours", n, threads, a, peers[best], "s", peers[best] / a, ">= 2.5"
                )
            for train, own in ((False, "ours"), (True, "ours"), (True, "ours, learned bias")):
                lean = {p: at[n, threads, train, p].extra_mb for p in PEERS if (n, threads, train, p) in at}
                if lean and (n, threads, train, own) in at:
                    best = min(lean, key=lean.__getitem__)
                    mine = at[n, threads, train, own].extra_mb
                    kind = f"{'forward + backward' if train else 'forward'}{', learned' if 'learned' in own else ''}"
                    promise(f"{kind}: extra memory / leanest peer's ({best})", n, threads, mine, lean[best], "MB",
                            mine / lean[best], "<= 0.05")  # fmt: skip
        for n, rival, bound in (
            (9216, "ours, skipping", "<= 0.35"),
            (FAR, "ours, skipping", "<= 0.15"),
            (9216, "ours, skipping, type2", "< 0.85"),
            (9216, "ours, window 512", "<= 0.25"),
        ):
            a, b = seconds(n, rival), seconds(n, "limit")
            if a and b:
                promise(f"{rival} / bias-free limit", n, threads, a, b, "s", a / b, bound)
        a, b = seconds(FAR, "ours, window 512"), seconds(4096, "ours, window 512")
        if a and b:
            ours, rival = 1e6 * a / FAR, 1e6 * b / 4096
            promise(
                "window 512: time per token, 65536 / 4096", FAR, threads, ours, rival, "us", ours / rival, "<= 1.15"
            )
    return rows


def together(old: list[Measured], new: list[Measured]) -> list[Measured]:
    """The new results, and the old ones of what was not measured again."""
    again = {(m.rival, m.n, m.threads, m.train) for m in new}
    both = [m for m in old if (m.rival, m.n, m.threads, m.train) not in again] + new
    order = ["limit", *dict.fromkeys((*FORWARD, *TRAIN)), *PEERS]
    return sorted(both, key=lambda m: (m.train, m.threads, m.n, order.index(m.rival)))


def within(ratio: float, bound: str) -> bool:
    sign, number = bound.split()
    return {"<=": ratio <= float(number), "<": ratio < float(number), ">=": ratio >= float(number)}[sign]


def machine() -> str:
    model = next(
        (
            row.split(":")[1].strip()
            for row in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in row
        ),
        platform.processor(),
    )
    import torch

    return f"{model}, {torch.get_num_threads()} cores, torch {torch.__version__}"


def tables(results: list[Measured], rows: list[dict[str, Any]], place: str) -> list[Table]:
    out = []
    for train in (False, True):
        for threads in sorted({m.threads for m in results if m.train == train}):
            chosen = [m for m in results if m.train == train and m.threads == threads]
            lengths = sorted({m.n for m in chosen})
            table = Table(title=f"{'forward + backward' if train else 'forward'}, {threads} thread(s): ms (extra MB)")
            table.add_column("rival")
            for n in lengths:
                table.add_column(f"{n:,}", justify="right")
            for rival in dict.fromkeys(m.rival for m in chosen):
                cells = {m.n: f"{1e3 * m.seconds:,.1f} ({m.extra_mb:,.0f})" for m in chosen if m.rival == rival}
                table.add_row(rival, *(cells.get(n, "-") for n in lengths))
            out.append(table)
    table = Table(title=f"what must hold, on {place}")
    for name in ("what", "tokens", "threads", "ours", "rival", "ratio", "bound", ""):
        table.add_column(name)
    for r in rows:
        table.add_row(r["what"], f"{r['n']:,}", str(r["threads"]), f"{r['ours']:.4g} {r['unit']}",
                      f"{r['rival']:.4g} {r['unit']}", f"{r['ratio']:.3f}", r["bound"],
                      "PASS" if r["holds"] else "MISS")  # fmt: skip
    out.append(table)
    return out


def draw(results: list[Measured], place: str, stem: pathlib.Path) -> None:
    """Time and memory against the number of tokens, as PNG and SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    threads = min(m.threads for m in results)
    figure, axes = plt.subplots(2, 2, figsize=(13, 9), sharex="col", layout="constrained")
    names = list(dict.fromkeys(m.rival for m in results))
    colours = {name: plt.get_cmap("tab20")(i % 20) for i, name in enumerate(names)}
    for column, train in enumerate((False, True)):
        for row, field in enumerate(("seconds", "extra_mb")):
            axis = axes[row][column]
            for name in names:
                points = sorted(
                    (m.n, getattr(m, field))
                    for m in results
                    if (m.rival, m.train, m.threads) == (name, train, threads) and m.n <= max(LENGTHS)
                )
                if points:
                    style = {"color": colours[name], "linewidth": 2.2 if name.startswith("ours") else 1.2}
                    style["linestyle"] = "-" if name.startswith("ours") else "--"
                    axis.loglog(*zip(*[(n, max(y, 0.1 if row else y)) for n, y in points], strict=True),
                                marker="o", markersize=3, label=name, **style)  # fmt: skip
            axis.set_title(f"{'forward + backward' if train else 'forward'}, {threads} thread(s)" if row == 0 else "")
            axis.set_ylabel("seconds" if row == 0 else "extra memory, MB")
            axis.set_xlabel("tokens" if row else "")
            axis.grid(alpha=0.3, which="both")
        if axes[0][column].lines:
            axes[0][column].legend(fontsize=8)
    figure.suptitle(f"Attention with ALiBi, 8 heads of 64, {place}", fontsize=10)
    for kind in ("png", "svg"):
        figure.savefig(stem.with_suffix(f".{kind}"), dpi=130)


def markdown(results: list[Measured], rows: list[dict[str, Any]], place: str, date: str) -> str:
    lines = [f"# Attention: {date}", "", f"Machine: {place}. Command: `python {' '.join(sys.argv)}`.", ""]
    lines += ["| what | tokens | threads | ours | rival | ratio | bound | |", "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        lines.append(
            f"| {r['what']} | {r['n']:,} | {r['threads']} | {r['ours']:.4g} {r['unit']} | {r['rival']:.4g} {r['unit']} "
            f"| {r['ratio']:.3f} | {r['bound']} | {'PASS' if r['holds'] else 'MISS'} |"
        )
    lines += ["", "Milliseconds, and in brackets the extra memory in MB.", ""]
    for train in (False, True):
        for threads in sorted({m.threads for m in results if m.train == train}):
            chosen = [m for m in results if m.train == train and m.threads == threads]
            lengths = sorted({m.n for m in chosen})
            lines += [f"## {'Forward + backward' if train else 'Forward'}, {threads} thread(s)", ""]
            lines += ["| rival | " + " | ".join(f"{n:,}" for n in lengths) + " |", "|---" * (len(lengths) + 1) + "|"]
            for rival in dict.fromkeys(m.rival for m in chosen):
                cells = {m.n: f"{1e3 * m.seconds:,.1f} ({m.extra_mb:,.0f})" for m in chosen if m.rival == rival}
                lines.append(f"| {rival} | " + " | ".join(cells.get(n, "-") for n in lengths) + " |")
            lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="*", default=[*LENGTHS, FAR], help="none: only report")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rivals", nargs="*", choices=PEERS, default=list(PEERS), help="which peers")
    parser.add_argument("--modes", nargs="+", choices=("forward", "train"), default=["forward", "train"])
    parser.add_argument("--rounds", type=int, help="repeats beside each peer; our variants run beside every one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=pathlib.Path, help="write every number, after each step")
    parser.add_argument("--add", action="store_true", help="keep results of the JSON file that are not measured again")
    parser.add_argument("--figure", type=pathlib.Path, help="write STEM.png and STEM.svg")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    if given.device == "cuda":
        script = pathlib.Path(__file__).with_name("attention_short.py")
        lengths = [str(n) for n in given.lengths if n <= max(LENGTHS)]
        options = ["--device", "cuda", "--dtype", "bfloat16", "--batches", "1", "--lengths", *lengths]
        return subprocess.run([sys.executable, str(script), *options], check=False).returncode
    if given.quick:
        given.lengths, given.threads = [512, 1024], [1]
    say, place, results = Console(), machine(), []
    date = datetime.date.today().isoformat()
    if given.add and given.json and given.json.exists():
        results = [Measured(**m) for m in json.loads(given.json.read_text())["results"]]
    for n in given.lengths:
        for threads in given.threads:
            for mode in given.modes:
                if mode == "forward" or n <= max(LENGTHS):
                    found = measure(n, threads, mode == "train", given.rivals, given.rounds, say)
                    results = together(results, found)
                    if given.json:  # after each step, so that a long run that is cut short is not lost
                        record = {"date": date, "machine": place, "figures": figures(results)}
                        record["results"] = [asdict(m) for m in results]
                        given.json.write_text(json.dumps(record, indent=1) + "\n")
    results = together(results, [])  # in order, also where nothing was measured anew
    rows = figures(results)
    if given.json and results:
        record = {"date": date, "machine": place, "figures": rows, "results": [asdict(m) for m in results]}
        given.json.write_text(json.dumps(record, indent=1) + "\n")
    for table in tables(results, rows, place):
        say.print(table)
    for r in rows:
        say.print(
            f"{r['what']}, {r['n']} tokens: ours {r['ours']:.4g} {r['unit']}, rival {r['rival']:.4g} {r['unit']}, "
            f"ratio {r['ratio']:.3f} ({r['bound']}: {'PASS' if r['holds'] else 'MISS'}), "
            f"{place}, {r['threads']} thread(s)", highlight=False, soft_wrap=True,
        )  # fmt: skip
    passed = sum(r["holds"] for r in rows)
    say.print(f"{passed} of {len(rows)} figures hold" if rows else "no promised figure lies at these lengths")
    if given.figure:
        draw(results, place, given.figure)
    if given.markdown:
        given.markdown.write_text(markdown(results, rows, place, date))
    return 0


if __name__ == "__main__":
    sys.exit(main())
