"""What the default study costs and shows: processor time, rises, and leak against damage with its interval.

    python benchmarks/study.py [FOLDER] [--save]

FOLDER is that of a study (`study` unless given); what is missing of it is trained and measured first, as `farfield
study --out FOLDER` does, and a folder with several seeds is read with all of them. --save writes docs/benchmarks.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from farfield.study.entries import Study, collect
from farfield.study.evidence import Correlation, Evidence, by_leak, by_verdict, correlated, of_change
from farfield.study.findings import too_small
from farfield.study.plan import read_plan

DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"
# What issue and README promise of the default study: the least or the largest rise.
AT_LEAST = {"inverse": 0.25, "inverse-log": 0.20, "sinusoidal": 1.0}
AT_MOST = {"alibi": 0.01, "type1": 0.01, "type2": 0.01, "kerple-power": 0.01}
MINUTES = 26  # of processor time: 15 minutes on two cores, less two of installation


def promise(encoding: str, rises: list[float]) -> str:
    """Whether every seed keeps what is promised of an encoding."""
    if encoding in AT_LEAST:
        return f"{'kept' if min(rises) >= AT_LEAST[encoding] else 'MISSED'}: at least {AT_LEAST[encoding]:.0%}"
    if encoding in AT_MOST:
        return f"{'kept' if max(rises) <= AT_MOST[encoding] else 'MISSED'}: at most {AT_MOST[encoding]:.0%}"
    return ""


def shown(found: Correlation | None) -> str:
    return "unknown" if found is None else f"{found.text} over {found.points}"


def measured(study: Study) -> dict[str, Any]:
    """Every number of the page."""
    evidence = Evidence(study)
    seconds = [s for record in study.records if (s := record.seconds).processor_training > 1]  # or trained before
    parts = {
        "training": sum(s.processor_training for s in seconds) / max(len(seconds), 1) / 60,
        "measuring": sum(s.processor_measuring for s in seconds) / max(len(seconds), 1) / 60,
    }
    rows = [
        {
            "corpus": entry.corpus,
            "encoding": entry.encoding,
            "leak": entry.leak,
            "verdict": entry.verdict,
            "rises": [record.rise for record in entry.records],
            "rise": entry.rise,
            "error": entry.rise_error,
            "damage": entry.damage[0],
            "answer": entry.answer,
        }
        for entry in study.entries.values()
    ]
    interventions, models = evidence.interventions, evidence.models
    correlations = {
        "leak and damage, interventions": correlated(interventions, by_leak),
        "leak and change against 1x, interventions": correlated(interventions, by_leak, of_change),
        "verdict and damage, interventions": correlated(interventions, by_verdict),
        "leak and damage, untrained control": correlated(evidence.control.interventions, by_leak),
        "leak and rise, models": correlated(models, by_leak),
        "verdict and rise, models": correlated(models, by_verdict),
        "leak and rise, untrained control": correlated(evidence.control.models, by_leak),
    }
    return {
        "models": len(study.records),
        "processor_minutes": parts,
        "rows": rows,
        "correlations": {name: shown(found) for name, found in correlations.items()},
        "within_models": evidence.within_models,
        "largest_change_of_control": max((abs(p.seen) for p in evidence.control.interventions), default=None),
        "too_small": too_small(study),
        "machine": study.records[0].machine.model_dump(),
    }


def page(result: dict[str, Any], folder: Path) -> str:
    """The results as Markdown."""
    minutes = result["processor_minutes"]
    one_seed = 11 * sum(minutes.values())
    machine = result["machine"]
    lines = [
        "# The default study",
        "",
        f"`python benchmarks/study.py {folder.name}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {machine['processor']}, "
        f"torch {machine['torch']}, one thread for each model.",
        "",
        f"{result['models']} models. One takes {minutes['training']:.2f} minutes of processor time to train and "
        f"{minutes['measuring']:.2f} to measure; eleven of them, the default study with one seed, {one_seed:.1f}. Two "
        f"cores that do nothing else have {MINUTES} in 13 minutes: {'kept' if one_seed <= MINUTES else 'MISSED'}.",
        *([""] + [f"**{reason}**" for reason in result["too_small"]] if result["too_small"] else []),
        "",
        "| text | encoding | series | leak | rise at 18x | each seed | damage D | answer | promise |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for row in result["rows"]:
        leak = "" if row["leak"] is None else f"{row['leak']:.3f}"
        seeds = ", ".join(f"{100 * rise:.1f}" for rise in row["rises"])
        error = "" if row["error"] is None else f" ± {100 * row['error']:.1f}"
        name = row["encoding"] if row["encoding"].replace("-", "").isalnum() else f"`{row['encoding']}`"
        kept = promise(row["encoding"], row["rises"]) if row["corpus"] == "python" else ""
        lines.append(
            f"| {row['corpus']} | {name} | {row['verdict']} | {leak} | {100 * row['rise']:.1f}{error} % | {seeds} | "
            f"{100 * row['damage']:.1f} % | {row['answer']} | {kept} |"
        )
    lines += [
        "",
        "| rank correlation of | value (95 % interval by bootstrap over encodings and texts) |",
        "| --- | --- |",
    ]
    lines += [f"| {name} | {text} |" for name, text in result["correlations"].items()]
    within = result["within_models"]
    if within:
        lines += ["", f"Within single models leak and damage correlate by {min(within):.2f} to {max(within):.2f}."]
    if result["largest_change_of_control"] is not None:
        lines += [
            "",
            f"The damage to the untrained control is at most {100 * result['largest_change_of_control']:.2g} %.",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("study"))
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    if read_plan(given.folder) is None:
        subprocess.run([sys.executable, "-m", "farfield", "study", "--out", str(given.folder)], check=True)
    plan = read_plan(given.folder)
    assert plan is not None
    result = measured(collect(plan, given.folder))
    text = page(result, given.folder)
    print(text)
    if given.save:
        (DOCS / "study.md").write_text(text, encoding="utf-8")
        (DOCS / "study.json").write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
