"""How many verdicts Coq accepts: each oracle of tests/oracles/verdicts.json as a file, its size, and the time to check.

    python benchmarks/proofs.py               the table
    python benchmarks/proofs.py --save        also write docs/benchmarks/proofs.{json,md}

A file is one process of coqc with the compiled library; time is processor time, so that a busy machine does not count.
About half a second of each is the loading of the libraries. There is no rival: nothing else writes such files.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.progress import track

import farfield
from farfield.theory.coq.library import compile_library, coqc, write_library
from farfield.theory.errors import OutsideCoqError

ROOT = Path(__file__).parent.parent


def spent() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(case: dict[str, Any], library: Path, folder: Path) -> dict[str, Any]:
    """One oracle: whether it can be emitted, whether Coq accepts it, and what that costs."""
    begin = time.process_time()
    row: dict[str, Any] = {"formula": case["formula"], "spelling": case["spelling"], "from": case["from"]}
    try:
        text = farfield.check(case["formula"], start=case["from"], weight=case["spelling"] == "weight").coq()
    except OutsideCoqError as error:
        return {**row, "accepted": False, "missing": str(error).rpartition(": ")[2]}
    row |= {"emit_ms": 1000 * (time.process_time() - begin), "bytes": len(text)}
    source = folder / "proof.v"
    source.write_text(text, encoding="utf-8")
    before = spent()
    done = coqc(library, source)
    row |= {"accepted": done.returncode == 0, "check_s": spent() - before}
    return row if done.returncode == 0 else {**row, "missing": f"coqc refuses it: {done.stderr[-200:]}"}


def page(rows: list[dict[str, Any]], library_seconds: float) -> str:
    """The result as a page of the documentation."""
    good = [row for row in rows if row["accepted"]]
    seconds, sizes = [row["check_s"] for row in good], [row["bytes"] for row in good]
    lines = [
        "# Proofs: how many verdicts Coq accepts",
        "",
        f"{len(good)} of {len(rows)} oracle verdicts are accepted; check {statistics.median(seconds):.1f} s "
        f"(median), {max(seconds):.1f} s at most; emit {statistics.median(r['emit_ms'] for r in good):.0f} ms; "
        f"{statistics.median(sizes):.0f} bytes; the library {library_seconds:.0f} s, once",
        "",
        "`python benchmarks/proofs.py --save` makes this page; processor time of one core, with Coq 8.16.1.",
        "",
        "| series | from | Coq | check, s | emit, ms | bytes |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        what = f"{row['spelling']} `{row['formula']}`"
        if row["accepted"]:
            numbers = f"{row['check_s']:.1f} | {row['emit_ms']:.0f} | {row['bytes']}"
            lines.append(f"| {what} | {row['from']} | accepts | {numbers} |")
        else:
            lines.append(f"| {what} | {row['from']} | missing: {row['missing']} | | | |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="write docs/benchmarks/proofs.{json,md}")
    save = parser.parse_args().save
    farfield.check("-t")  # what is imported only once
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        begin = spent()
        library = write_library(folder / "library")
        compile_library(library)
        library_seconds = spent() - begin
        cases = json.loads((ROOT / "tests/oracles/verdicts.json").read_text(encoding="utf-8"))
        rows = [measured(case, library, folder) for case in track(cases, "coqc", transient=True)]
    text = page(rows, library_seconds)
    print(text)
    if save:
        place = ROOT / "docs" / "benchmarks"
        data = {"library_seconds": library_seconds, "rows": rows}
        (place / "proofs.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        (place / "proofs.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
