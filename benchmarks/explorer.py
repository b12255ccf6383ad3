"""How long the explorer takes to answer, for every named encoding with its parameters set.

    python benchmarks/explorer.py             the table
    python benchmarks/explorer.py --json      one object instead of the table
    python benchmarks/explorer.py --save      also write docs/benchmarks/explorer.{json,md}

The real server is asked over HTTP as the page asks it, each time with values that it has not seen: the verdict, then
curves, receptive fields and window, one after the other. That is what a person waits for when a slider is moved. Beside
it stands the processor time of the same answers, which a busy machine does not change. Every answer is read to its end
and checked for its verdict.
"""

from __future__ import annotations

import argparse
import datetime
import http.client
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table

import farfield
from farfield.explorer.question import read
from farfield.explorer.replies import answer
from farfield.explorer.sliders import sliders
from farfield.zoo import ENCODINGS

ROOT = Path(__file__).parent.parent
REPEATS = 8  # answers for each encoding, each for other values
START = 10  # seconds until every worker has surely started
LIMIT = 200  # milliseconds that an answer may take


def questions(name: str) -> list[list[tuple[str, str]]]:
    """Fields of questions about an encoding: every parameter set, each time to another value."""
    found = []
    for i in range(REPEATS):
        fields = [("f", name)]
        for p in sliders(ENCODINGS[name], {}, 8, i + 1):
            value = p.text if p.step else f"({p.text})*{1 + i / 100}"
            fields.append(("set", f"0.{p.name}={value}"))
        found.append(fields)
    return found


def over_http(port: int, fields: list[tuple[str, str]]) -> tuple[float, float]:
    """Milliseconds until the verdict has come, and until everything has."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(kind: str, *more: tuple[str, str]) -> dict[str, Any]:
        connection.request("GET", f"/api/{kind}?{urlencode([*fields, *more])}")
        return json.loads(connection.getresponse().read())

    start = time.perf_counter()
    whole = _ask(get)
    next(whole)
    verdict = time.perf_counter()
    for _ in whole:
        pass
    took = time.perf_counter()
    connection.close()
    return 1000 * (verdict - start), 1000 * (took - start)


def in_process(fields: list[tuple[str, str]]) -> float:
    """Milliseconds of processor time for the answers themselves."""

    def get(kind: str, *more: tuple[str, str]) -> dict[str, Any]:
        return json.loads(json.dumps(answer(read(kind, [*fields, *more])), allow_nan=False))

    start = time.process_time()
    for _ in _ask(get):
        pass
    return 1000 * (time.process_time() - start)


def _ask(get: Callable[..., dict[str, Any]]) -> Iterator[None]:
    """Ask as the page does: the verdict, and what follows from it."""
    verdict = get("verdict")["verdict"]["verdict"]
    assert verdict in ("converges", "diverges", "not-applicable"), verdict
    yield
    if verdict == "not-applicable":
        return
    get("drawn")
    get("window")
    known, rest = 0, 1
    while rest:
        found = get("fields", ("skip", str(known)))
        known, rest = known + len(found["rows"]), found["rest"]
    yield


def measure() -> list[dict[str, Any]]:
    program = Path(sys.executable).with_name("farfield")
    command = [program, "explore", "--port", "0", "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = int(server.stdout.readline().split("http://127.0.0.1:")[1].split("/")[0])
    try:
        time.sleep(START)
        for _ in range(12):  # every worker has answered before anything is timed
            over_http(port, [("f", "type2"), ("set", "0.k=1/3")])
        in_process([("f", "alibi")])
        rows = []
        for name in ENCODINGS:
            asked = questions(name)
            waited, worked = [over_http(port, q) for q in asked], [in_process(q) for q in asked]
            first, whole = ([w[i] for w in waited] for i in (0, 1))
            rows.append({"encoding": name, "verdict_ms": first, "waited_ms": whole, "processor_ms": worked})
        return rows
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


def machine() -> str:
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    day = datetime.datetime.now(datetime.UTC).date()
    python = f"Python {platform.python_version()}, farfield {farfield.__version__}"
    return f"{platform.machine()}, {os.cpu_count()} cores, {load}; {python}; {day}"


def summary(rows: list[dict[str, Any]], field: str) -> tuple[float, float]:
    """The median and the worst over all answers."""
    everything = [ms for row in rows for ms in row[field]]
    return statistics.median(everything), max(everything)


def cells(row: dict[str, Any]) -> list[str]:
    numbers = [row["verdict_ms"], row["waited_ms"], row["processor_ms"]]
    return [row["encoding"], *(f"{f(n):.0f}" for n in numbers for f in (statistics.median, max))]


def last_line(result: dict[str, Any]) -> str:
    first, waited, worked = (summary(result["rows"], f) for f in ("verdict_ms", "waited_ms", "processor_ms"))
    everything = [ms for row in result["rows"] for ms in row["waited_ms"]]
    late = sum(ms > LIMIT for ms in everything)
    return (
        f"the verdict takes {first[0]:.0f} ms (median), {first[1]:.0f} ms (worst); everything {waited[0]:.0f} ms "
        f"(median), {waited[1]:.0f} ms (worst), of processor time {worked[0]:.0f} "
        f"and {worked[1]:.0f} ms; {late} of {len(everything)} took longer than {LIMIT} ms; {result['machine']}"
    )


COLUMNS = ("encoding", "verdict: median ms", "worst", "everything: median ms", "worst", "processor: median ms", "worst")


def as_markdown(result: dict[str, Any]) -> str:
    lines = ["# How long the explorer takes to answer", "", last_line(result), ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "| --- " + "| ---: " * (len(COLUMNS) - 1) + "|"]
    lines += [f"| {' | '.join(cells(row))} |" for row in result["rows"]]
    lines += [
        "",
        f"`python benchmarks/explorer.py --save` makes this page: {REPEATS} questions for each encoding over HTTP, one "
        "at a time, each with parameters that were not asked for before; a load above the number of cores means that "
        "other programs were running.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true")
    chosen = parser.parse_args()
    result = {"machine": machine(), "rows": measure()}
    if chosen.save:
        folder = ROOT / "docs" / "benchmarks"
        (folder / "explorer.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (folder / "explorer.md").write_text(as_markdown(result), encoding="utf-8")
    if chosen.json:
        print(json.dumps(result))
        return
    table = Table()
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "encoding" else "right")
    for row in result["rows"]:
        table.add_row(*cells(row))
    Console().print(table)
    print(last_line(result))


if __name__ == "__main__":
    main()
