"""What pages say about results/ follows from its records: every number is computed, and no other number stands there.

A sentence of a page is written here with its numbers computed; the page must have it, but for its line breaks.
What is left of the page, or of its section, must have no number in it, but for those of `ELSEWHERE` (dates, names, and
what the records do not hold).
"""

from __future__ import annotations

import csv
import html
import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from farfield.measure.needle import Needle, NeedleCell
from farfield.measure.rise import LEAST_GAIN, LEVEL, gains, rises
from farfield.study import findings
from farfield.study.entries import Entry, Study, collect
from farfield.study.evidence import Correlation, Evidence, by_leak, by_verdict, correlated, of_change, paper_leak
from farfield.study.figures import field_plots, inference, leak, perplexity_plot, training
from farfield.study.plan import read_plan
from farfield.study.published import published
from farfield.study.tables import save_tables

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("results", "results/long", "results/geometry")
TEXTS = {"wikitext": "WikiText-2", "books": "novels", "wikibook": "articles and novels", "python": "python"}
INVERSE_KIND = ("inverse", "inverse-log", "-1.01*log(1 + k*t)")
PAPERS = {"wikitext-103": "WikiText-103", "books": "Books", "github": "Github", "wikibook": "WikiBook"}


@cache
def study_of(folder: str) -> Study:
    plan = read_plan(ROOT / folder)
    assert plan is not None
    study = collect(plan, ROOT / folder)
    assert not study.missing
    return study


@cache
def evidence_of(folder: str) -> Evidence:
    return Evidence(study_of(folder))


def named(encoding: str) -> str:
    return encoding if encoding.replace("-", "").isalnum() else f"`{encoding}`"


def rounded(value: float, error: float | None = None) -> str:
    """A share in percent as the tables of results/README.md have it."""
    digits = 0 if abs(value) >= 1 else 1
    return f"{100 * value:.{digits}f}" + ("" if error is None else f" ± {100 * error:.{digits}f}")


def leak_of(entry: Entry, digits: int = 3) -> str:
    return "" if entry.leak is None else f"{entry.leak:.{digits}f}"


def span(values: Iterable[float], digits: int = 0) -> str:
    shares = [100 * value for value in values]
    return f"{min(shares):.{digits}f} to {max(shares):.{digits}f}"


def less_than(values: Iterable[float]) -> str:
    """The whole percentage that all shares stay below."""
    return f"less than {math.floor(100 * max(values)) + 1} %"


def words(correlation: Correlation | None) -> str:
    assert correlation is not None
    return correlation.text


def tokens_of(study: Study) -> str:
    settings = study.records[0].settings
    return f"{settings.steps * settings.batch * settings.length / 1e6:.1f} million"


def by_small_and_large_leak(folder: str) -> tuple[str, str, list[float], list[float]]:
    """The largest leak of what stays level, the smallest of what rose, and the rises of the models of both."""
    entries = [entry for entry in study_of(folder).entries.values() if entry.leak is not None]
    small = [entry for entry in entries if entry.answer != "rose"]
    large = [entry for entry in entries if entry.answer == "rose"]
    low, high = max(e.leak or 0.0 for e in small), min(e.leak or 0.0 for e in large)
    assert low < high  # or there would be nothing to say
    models = ([record.rise for entry in group for record in entry.records] for group in (small, large))
    return f"{math.ceil(100 * low) / 100:.2f}", f"{math.floor(100 * high) / 100:.2f}", *models


# --- what each page says ----------------------------------------------------------------------------------------------


def default_study() -> Iterator[str]:
    """results/README.md, the first section with numbers."""
    study, evidence = study_of("results"), evidence_of("results")
    record = study.records[0]
    test, settings = record.test, record.settings
    yield f"{settings.layers} layers of {settings.width} that read bytes, {settings.length} training tokens, "
    yield f"{tokens_of(study)} tokens a model; each model measured on {test.tokens:,} test tokens "
    yield f"in {test.segments} segments over the whole split"
    alone = [s for r in study.records if (s := r.seconds).processor_training > 1]  # trained where it was measured
    each = np.mean([s.processor_training + s.processor_measuring for s in alone])
    yield f"{len(study.encodings) * each / 60:.0f} minutes of processor time"
    for entry in study.entries.values():
        seeds = ", ".join(f"{100 * one.rise:.1f}" for one in entry.records)
        yield (
            f"| {named(entry.encoding)} | {leak_of(entry)} | {rounded(entry.rise, entry.rise_error)} % | {seeds} | "
            f"{rounded(entry.damage[0])} % | {entry.answer} |"
        )
    points, control, within = evidence.interventions, evidence.control.interventions, evidence.within_models
    yield (
        f"Over {len(points)} interventions on trained models the rank correlation of far-field damage with the leak of "
        f"what was done is {words(evidence.dose)}, with the verdict on the changed series "
        f"{words(correlated(points, by_verdict))} ({min(within):.2f} to {max(within):.2f} with the leak within single "
        f"models). With the change against 1x in the place of damage it is "
        f"{words(correlated(points, by_leak, of_change))}. The untrained control, {record.control.segments} of "
        f"the segments, each network with its own leak: {words(correlated(control, by_leak))}, at a damage of "
        f"{less_than(abs(p.seen) for p in control)}."
    )
    cut = [one.cut.change[0] for e in INVERSE_KIND for one in study.entries["python", e].records]
    yield (
        f"A small leak is no promise. Cut at the training length the leak is 0, and the {len(cut)} models of the 1/n "
        f"kind (inverse, inverse-log and the twin that converges) still end {span(cut)} % above 1x."
    )
    yield f"Over {len(evidence.heads())} heads {evidence.fields_text}."


def long_study() -> Iterator[str]:
    """results/README.md, the section on four texts."""
    study, evidence = study_of("results/long"), evidence_of("results/long")
    settings = study.records[0].settings
    yield f"`--preset long`: {settings.layers} layers, {tokens_of(study)} tokens, everything else as above"
    for encoding in study.encodings:
        entries = {text: study.entries[text, encoding] for text in TEXTS}
        cells = []
        for entry in entries.values():
            large = entry.rise >= 0.5
            seeds = f" ({', '.join(f'{100 * one.rise:.0f}' for one in entry.records)})" if large else ""
            digits = 0 if large else 1
            cells.append(f"{100 * entry.rise:.{digits}f} ± {100 * (entry.rise_error or 0):.{digits}f}{seeds}")
        leaks = [entry.leak for entry in entries.values() if entry.leak is not None]
        leak = f"{np.mean(leaks):.3f}" if leaks else ""
        yield f"| {named(encoding)} | {leak} | {' | '.join(cells)} |"
    inverse = {text: study.entries[text, "inverse"] for text in TEXTS}
    each = [record.rise for entry in inverse.values() for record in entry.records]
    means = ", ".join(f"{100 * entry.rise:.0f} ({TEXTS[text]})" for text, entry in inverse.items())
    yield f"1/n rises by {span(each)} %, in the mean over its seeds by {means} %;"
    level = max((e for e in study.entries.values() if e.leak is not None and e.answer != "rose"), key=_largest)
    worst = max(level.records, key=lambda record: record.rise)
    error = worst.extrapolation.lengths[-1].rise_error
    yield f"What stays level rises by at most {rounded(worst.rise, error)} %."
    ratios = ", ".join(f"{entry.relative[-1]:.2f} ({TEXTS[text]})" for text, entry in inverse.items())
    yield f"Perplexity of 1/n at 18x over that at 1x: {ratios};"
    tables = published()["necessity"]
    theirs = ", ".join(
        f"{tables[name]['inverse'][-1] / tables[name]['inverse'][0]:.3g} ({PAPERS[name]})" for name in PAPERS
    )
    yield f"the published ones: {theirs}."
    flat = [r for e in study.entries.values() if e.leak is not None for r in e.records if r.rise < 0.02]
    weak = [gain for r in flat if not gains(*(gain := r.extrapolation.context_gain))]
    least, most = (choose(value for value, _ in weak) for choose in (min, max))
    yield f"of the {len(flat)} models that stay level gain so little from the context within the training length "
    yield f"({least:.2f} to {most:.2f} nats)"
    assert LEAST_GAIN == 0.03
    few = {(r.corpus, r.encoding, r.seed) for r in flat if not gains(*r.extrapolation.context_gain)}
    novels = {("books", "alibi", 1), ("books", "type1", 1), ("books", "kerple-power", 1), ("books", "type2", 2)}
    assert few == {*novels, ("wikibook", "kerple-power", 1)}
    yield "on novels alibi, type1 and kerple-power (seed 1) and type2 (seed 2),"
    yield "on articles and novels kerple-power (seed 1)."
    unknown = {e for e in study.encodings if findings.joint_answer(study.of_encoding(e)) == "cannot be told"}
    assert unknown == {"kerple-power", "type2"}
    points, control, within = evidence.interventions, evidence.control.interventions, evidence.within_models
    yield (
        f"Over {len(points)} interventions damage and leak have a rank correlation of {words(evidence.dose)} "
        f"(bootstrap over encodings and texts), {min(within):.2f} to {max(within):.2f} within single models, damage "
        f"and verdict {words(correlated(points, by_verdict))}; untrained {words(correlated(control, by_leak))}."
    )
    cut = [r.cut.change[0] for e in INVERSE_KIND for text in TEXTS for r in study.entries[text, e].records]
    yield f"Cut at the training length, with a leak of 0, the {len(cut)} models of the 1/n kind end {span(cut)} % above"
    yield f"Over {len(evidence.heads())} heads {evidence.fields_text}."


def _largest(entry: Entry) -> float:
    return max(record.rise for record in entry.records)


def geometry_study() -> Iterator[str]:
    """results/README.md, the section on the paper's lengths."""
    study = study_of("results/geometry")
    record = study.records[0]
    settings = record.settings
    yield f"{settings.length} training tokens, measured to {record.lengths[-1]:,}; {settings.layers} layers"
    yield f"{settings.heads} heads as in the paper, but {settings.width} wide; bytes, {tokens_of(study)} tokens"
    yield f"seed {record.seed}, {record.test.segments} segments"
    for encoding in ("inverse", "sinusoidal", "type1"):
        entry = study.entries["wikitext", encoding]
        yield (
            f"| WikiText-2 | {encoding} | {entry.mean[0]:.2f} | {entry.mean[-1]:.2f} | "
            f"{rounded(entry.rise, entry.rise_error)} % | {100 * entry.damage[0]:.1f} % | {entry.answer} |"
        )
    leaks = ", ".join(f"{e} {leak_of(study.entries['wikitext', e])}" for e in ("inverse", "type1"))
    yield f"Here the leaks are smaller ({leaks}), and so is the damage."


def sizes() -> Iterator[str]:
    """results/README.md, the section on what is missing to the paper."""
    papers = [float(rises(table["inverse"])[-1]) for table in published()["necessity"].values()]
    yield f"The paper's 1/n rises by {100 * min(papers):,.0f} to {100 * max(papers):,.0f} % at 18x."
    with (ROOT / "results" / "size" / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if (row["encoding"], row["seed"]) == ("inverse", "0")]

    def rise(**wanted: object) -> str:
        trials = [row for row in rows if all(row[name] == str(value) for name, value in wanted.items())]
        assert len({row["rise_percent"] for row in trials}) == 1, (wanted, trials)
        return f"{float(trials[0]['rise_percent']):.0f}"

    small = {"corpus": "wikitext", "layers": 6, "width": 96, "feed_forward": 96}
    tokens = (716800, 1433600, 2867200)
    usual = {"length": 64, "slopes": 1}
    a, b, c = (rise(**small, **usual, tokens=n) for n in tokens)
    yield (
        f"On WikiText-2 at the default study's size: {a}, {b} and {c} % after "
        f"{tokens[0] / 1e6:.1f}, {tokens[1] / 1e6:.1f} and {tokens[2] / 1e6:.1f} million tokens;"
    )
    deep = {"layers": 8, "width": 96, "feed_forward": 96, **usual}
    first, last = (rise(**deep, corpus="wikitext", tokens=n) for n in (2867200, 4096000))
    novels = [rise(**deep, corpus="books", tokens=n) for n in (2867200, 4096000)]
    yield f"with 8 layers, seed 0, {first} and {last} % after 2.9 and 4.1 million"
    yield f"(novels: {novels[0]} and {novels[1]} %);"
    one, two, four = (rise(**small, length=n, slopes=1, tokens=tokens[1]) for n in (64, 128, 256))
    steep = rise(**small, length=64, slopes=8, tokens=tokens[1])
    yield (
        f"for 1.4 million tokens {one}, {two} and {four} % with 64, 128 and 256 training tokens, and {steep} % with "
        "slopes eight times as steep, the paper's geometry."
    )
    seeds = [record.rise for record in study_of("results").entries["python", "inverse-log"].records]
    by_seed = [f"{100 * value:.1f}" for value in seeds]
    yield f"inverse-log differs between seeds by as much as {by_seed[0]}, {by_seed[1]} and {by_seed[2]} %."
    paper = 50_000 * 128 * 512
    low, high = (round(paper / n, -2) for n in (4.096e6, 1.4336e6))
    yield f"the paper's models saw {low:,.0f} to {high:,.0f} times as many tokens"
    assert paper / 1e9 == pytest.approx(3.3, abs=0.03)  # "the paper: 3.3 billion"


def leading_figure() -> Iterator[str]:
    large = study_of("results/long")
    low, high, flat, risen = by_small_and_large_leak("results/long")
    cut = [r.cut.change[0] for e in INVERSE_KIND for text in TEXTS for r in large.entries[text, e].records]
    yield (
        f"Models with a leak of {low} and less rise by {less_than(flat)}, those with {high} and more by "
        f"{span(risen)} %, whatever the verdict at infinity."
    )
    yield f"cut at the training length (leak 0), models of the 1/n kind still end {span(cut)} % above 1x"


def readme() -> Iterator[str]:
    small, large = study_of("results"), study_of("results/long")
    evidence = evidence_of("results")
    yield (
        f"With other tails put on the same models ({len(evidence.interventions)} interventions) far-field damage "
        f"correlates with the leak by {words(evidence.dose)}, with the verdict by {words(evidence.dose_by_verdict)}."
    )
    wikitext, novels = (large.entries[text, "inverse"] for text in ("wikitext", "books"))
    yield f"1/n rises by {100 * wikitext.rise:.0f} % on WikiText-2, {100 * novels.rise:.0f} % on novels"
    assert small.seeds == large.seeds == 3  # "Three seeds"


def judge() -> Iterator[str]:
    low, high, flat, risen = by_small_and_large_leak("results/long")
    default = by_small_and_large_leak("results")
    assert (low, high) == default[:2]
    assert max(default[2]) <= max(flat)
    assert min(default[3]) >= min(risen)
    cut = [r.cut.change[0] for r in study_of("results/long").records if r.encoding in INVERSE_KIND]
    yield (
        f"In our study (`results/`) models with a leak of {low} and less rise by {less_than(flat)} at 18x, "
        f"those with {high} and more by {span(risen)} %."
    )
    yield f"leaks nothing and still ends {span(cut)} % above its perplexity at 1x"
    paper = {e: leak for e in ("alibi", "type1", "type2", "sandwich") if (leak := paper_leak(e)) is not None}
    theirs = [float(rises(table[e])[-1]) for table in published()["sufficiency"].values() for e in paper]
    largest = math.ceil(100 * max(paper.values())) / 100
    yield f"In the paper's tables those with {largest:.2f} and less rise by {less_than(theirs)}."


def deviations(last: int | None) -> tuple[list[float], list[float]]:
    """How far the paper's perplexities go from 1x, up to some length: of the group that extrapolates, of the other."""
    lists = [[v[:last] for v in published_lists(group)] for group in ("sufficiency", "necessity")]
    first, second = ([float(abs(np.array(v) / v[0] - 1).max()) for v in group] for group in lists)
    return first, second


def published_lists(group: str) -> list[list[float]]:
    return [v for table in published()[group].values() for e, v in table.items() if e != "sinusoidal"]


def definition() -> Iterator[str]:
    """docs/measurement.md on the paper's Definition: which delta separates its groups (errata, E12)."""
    small, large = deviations(None)
    assert max(small) < 0.11 < min(large)
    assert max(deviations(-1)[0]) > min(deviations(-1)[1])
    yield "over 512 to 9,216 tokens a delta of 11 % separates the paper's own groups"
    yield f"Sandwich on Github changes by {100 * max(small):.1f} %"
    yield f'1/(n ln n), which "does not extrapolate", by {100 * min(large):.1f} %), and up to 8,192 tokens none does'
    level, risen = ([float(rises(v).max()) for v in published_lists(group)] for group in ("sufficiency", "necessity"))
    yield f"In the paper's tables it is at most {100 * max(level):.1f} %"
    yield f"at least {100 * min(risen):.0f} % for the others"
    yield f"exceeds {100 * LEVEL:g} % (`--level`)"
    yield f"less than {LEAST_GAIN} nats from the context beyond 8 tokens"
    yield "ppl_n over the lowest perplexity at any length up to n, minus 1"


def definition_in_the_source() -> Iterator[str]:
    small, large = deviations(None)
    yield "over the paper's 512 to 9,216 tokens a delta of 11 % separates its two groups"
    yield f"({100 * max(small):.1f} % against {100 * min(large):.1f} %), and up to 8,192 tokens none does"


def needle_page() -> Iterator[str]:
    """docs/measurement.md on the needle, from results/needle.json."""
    models = json.loads((ROOT / "results" / "needle.json").read_text(encoding="utf-8"))
    for one in models:  # what the command made of its counts, made again
        cells = tuple(NeedleCell(**{field.name: c[field.name] for field in fields(NeedleCell)}) for c in one["cells"])
        again = Needle(**{field.name: one[field.name] for field in fields(Needle)} | {"cells": cells}).json()
        assert json.loads(json.dumps(again)) == one
    grids = {one["encoding"]: {(c["length"], c["distance"]): c for c in one["cells"]} for one in models}
    lengths, distances = (sorted({key[i] for grid in grids.values() for key in grid}) for i in (0, 1))
    yield f"| encoding | tokens of the text | {distances[0]} tokens back | {' | '.join(map(str, distances[1:]))} |"
    for encoding, grid in grids.items():
        for length in lengths:
            row = [f"{100 * grid[length, t]['accuracy']:.0f}" if (length, t) in grid else "" for t in distances]
            yield f"| `{encoding}` | {length} | {' | '.join(row)} |"
    trials, trained = ({one for model in models for one in values(model)} for values in (_trials, _training_length))
    assert len(trials) == len(trained) == 1
    yield f"of {min(trials)} texts for each distance and length, trained on {min(trained)} tokens"
    none = grids["none"]
    assert {key for key, cell in none.items() if cell["finds"]} == {
        key for key, cell in none.items() if not cell["depth"]
    }
    first, later = none[64, 61], none[128, 61]
    yield (
        f"61 tokens back it finds {100 * first['accuracy']:.0f} % ({span(first['interval'])}) in texts of 64 tokens, "
        f"where that is the first pair, and {100 * later['accuracy']:.0f} % ({span(later['interval'])}) in texts of 128"
    )
    window, tail = grids["where(t<16,-t/8,-inf)"], grids["-2*log(1+t)"]
    kept, lost = ({t for (_, t), cell in window.items() if cell["finds"] is finds} for finds in (True, False))
    assert kept | lost == set(distances)
    yield f"the window of 16 tokens ends between {max(kept)} and {min(lost)}"
    (trf,) = (one["trf"] for one in models if one["encoding"] == "-2*log(1+t)")
    assert all(cell["finds"] for (_, t), cell in tail.items() if t >= trf)
    yield f"What has little, here less than 1 % from {trf} tokens on (`-2*log(1+t)`), can be found all the same"


def _trials(model: dict[str, Any]) -> set[int]:
    return {cell["trials"] for cell in model["cells"]}


def _training_length(model: dict[str, Any]) -> set[int]:
    return {model["training_length"]}


PAGES: dict[str, list[tuple[str, str, tuple[Callable[[], Iterator[str]], ...]]]] = {
    "results/README.md": [("# Our runs", "", (default_study, long_study, geometry_study, sizes))],
    "README.md": [
        ("## What came out", "## A short tour", (readme,)),
        ("Perplexity from 1x", "## In one", (leading_figure,)),
    ],
    "src/farfield/measure/rise.py": [("The Definition asks", '"""', (definition_in_the_source,))],
    "docs/howto/judge-my-encoding.md": [("How small is small?", "None of this says", (judge,))],
    "docs/measurement.md": [
        ("### Does it extrapolate?", "### Windows", (definition,)),
        ("## A needle", "## The", (needle_page,)),
    ],
}


# What the records do not hold: dates, names, the machine, and headings.
ELSEWHERE = (
    r"<!-- results-table -->.*<!-- /results-table -->",  # tests/repository/test_readme.py
    r"2026-11-1\d", r"torch 2\.13\.0\+cpu", r"Python 3\.11\.7", r"AVX-512", r"13 minutes with installation",
    r"AAAI 2024", r"\(9 % slower\)", r"the paper: 3\.3 billion", r"\b(18|1)x\b", r"\b1/n\b", r"\btype[12]\b",
    r"WikiText-(2|103)",
    r"`--first-seed 2`", r"Seeds 0 and 2", r"Seed 1 was", r"\(seed [12]\)", r"seeds 1 and 2", r"seed 0\b", r"--seeds 3",
    r"wikitext-103=", r"E12", r"TRF\(0\.01\)", r"95 % interval", r"\[[^]]*\]\([^)]*\)", r"```bash.*?```",
)  # fmt: skip


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_what_was_measured_and_nothing_else(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for start, end, sources in PAGES[page]:
        begin = text.index(start)
        section = plain(text[begin : text.index(end, begin + 1) if end else len(text)])
        for sentence in (plain(sentence) for source in sources for sentence in source()):
            assert sentence in section, f"{page} must say: {sentence}"
            section = section.replace(sentence, "")
        for known in ELSEWHERE:
            section = re.sub(known, "", section)
        left = re.findall(r"\S*[^\s\w]?\d\S*(?: %)?", section)
        assert not left, f"{page}: nothing computes {left}"


@pytest.mark.parametrize("folder", FOLDERS)
def test_tables_captions_and_findings_follow_from_the_records(folder: str, tmp_path: Path) -> None:
    study, evidence = study_of(folder), evidence_of(folder)
    save_tables(study, tmp_path)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert made == {p.name: p.read_text(encoding="utf-8") for p in (ROOT / folder / "tables").iterdir()}
    noted = json.loads((ROOT / folder / "figures" / "figures.json").read_text(encoding="utf-8"))
    captions = {figure["name"]: figure["caption"] for figure in noted}
    assert captions["dose-response"] == leak.dose_caption(evidence)
    assert captions["prediction"] == leak.prediction_caption(study, evidence)
    assert captions["fields-compared"] == field_plots.compared_caption(evidence)
    assert captions["perplexity"] == perplexity_plot.caption(study)
    assert captions["training"] == training.caption(study)
    if study.speed is not None:
        assert captions["inference"] == inference.caption(study, study.speed.by_way)
    report = html.unescape((ROOT / folder / "report.html").read_text(encoding="utf-8"))
    for sentence in (findings.take_home(study, evidence), *(f.text for f in findings.findings(study, evidence))):
        assert sentence in report
    assert all(caption in report for caption in captions.values())


def test_the_table_of_results_is_that_of_the_study() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- results-table -->\n(.*?)\n<!-- /results-table -->", text, re.DOTALL)
    tables = (ROOT / "results" / "tables" / "tables.md").read_text(encoding="utf-8")
    assert shown is not None
    assert tables.startswith(f"## Theory against experiment\n\n{shown[1]}\n\n")


def test_the_page_of_the_benchmark_follows_from_the_records() -> None:
    specification = importlib.util.spec_from_file_location("study_benchmark", ROOT / "benchmarks" / "study.py")
    assert specification is not None
    assert specification.loader is not None
    benchmark = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(benchmark)
    page = benchmark.page(benchmark.measured(study_of("results")), ROOT / "results")
    written = (ROOT / "docs" / "benchmarks" / "study.md").read_text(encoding="utf-8")
    dated = re.compile(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC")
    assert dated.sub("", page) == dated.sub("", written)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_control_has_the_parameters_that_its_seed_gives(folder: str) -> None:
    """Of encodings that learn them; those of the others are the trained ones."""
    import torch

    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    for record in study_of(folder).records:
        control, heads = record.control.heads, record.heads
        if record.encoding not in ("kerple-log", "kerple-power"):
            assert [replace(head, erf={}) for head in control] == [replace(head, erf={}) for head in heads]
            continue
        settings = record.settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            network = FarfieldForCausalLM(
                FarfieldConfig(vocab_size=257, **settings.sizes(), encoding=settings.encoding)
            )
        first = [network.position.bias.values_of(head) for head in range(settings.heads)]
        assert [head.parameters for head in control] == first * settings.layers
        assert record.control.leak == pytest.approx(record.control.interventions[0].leak, rel=1e-12)
        assert control != heads


def test_results_are_small_and_each_thing_is_there_once() -> None:
    files = [path for path in (ROOT / "results").rglob("*") if path.is_file()]
    assert len(files) <= 120
    assert sum(path.stat().st_size for path in files) <= 8e6
    assert {path.suffix for path in files if "figures" in path.parts} == {".svg", ".json"}
