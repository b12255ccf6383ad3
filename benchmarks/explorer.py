"""How long the explorer takes to answer, for every named encoding with its parameters set.

    python benchmarks/explorer.py             the table
    python benchmarks/explorer.py --json      one object instead of the table
    python benchmarks/explorer.py --save      also write docs/benchmarks/explorer.{json,md}

The real server is asked over HTTP, one question at a time, each with values that it has not seen: what a person waits
for when a slider is moved. Beside it stands the processor time of the same answers, which a busy machine does not
change. Every answer is read to its end and checked for its verdict.
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
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table

import farfield
from farfield.explorer.answer import answer
from farfield.explorer.parameters import sliders
from farfield.explorer.question import read
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


def over_http(port: int, fields: list[tuple[str, str]]) -> float:
    """Milliseconds until the whole answer has come."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    start = time.perf_counter()
    connection.request("GET", f"/api/encoding?{urlencode(fields)}")
    data = json.loads(connection.getresponse().read())
    took = 1000 * (time.perf_counter() - start)
    connection.close()
    assert data["verdict"]["verdict"] in ("converges", "diverges", "not-applicable"), data
    return took


def in_process(fields: list[tuple[str, str]]) -> float:
    """Milliseconds of processor time for the answer itself."""
    question = read("encoding", fields)
    start = time.process_time()
    json.dumps(answer(question), allow_nan=False)
    return 1000 * (time.process_time() - start)


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
        answer(read("encoding", [("f", "alibi")]))
        rows = []
        for name in ENCODINGS:
            asked = questions(name)
            waited, worked = [over_http(port, q) for q in asked], [in_process(q) for q in asked]
            rows.append({"encoding": name, "waited_ms": waited, "processor_ms": worked})
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
    numbers = [row["waited_ms"], row["processor_ms"]]
    return [row["encoding"], *(f"{f(n):.0f}" for n in numbers for f in (statistics.median, max))]


def last_line(result: dict[str, Any]) -> str:
    waited, worked = (summary(result["rows"], f) for f in ("waited_ms", "processor_ms"))
    everything = [ms for row in result["rows"] for ms in row["waited_ms"]]
    late = sum(ms > LIMIT for ms in everything)
    return (
        f"an answer takes {waited[0]:.0f} ms (median), {waited[1]:.0f} ms (worst); of processor time {worked[0]:.0f} "
        f"and {worked[1]:.0f} ms; {late} of {len(everything)} took longer than {LIMIT} ms; {result['machine']}"
    )


COLUMNS = ("encoding", "waited: median ms", "worst ms", "processor: median ms", "worst ms")


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
