"""The report of a study: one HTML page that needs nothing else, and every table and figure as files beside it.

Figures are inside of the page as images, so that it can be sent as it is; nothing is fetched from anywhere, and the
page itself forbids it. All words about the results come from `findings`.
"""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import farfield
from farfield import zoo
from farfield.data import durable
from farfield.formula import FormulaError
from farfield.formula.plain_text import text
from farfield.formula.sentence import Sentence
from farfield.measure import LEVEL
from farfield.reading import parse_json, read_bytes
from farfield.study import findings, tables
from farfield.study.collected import NONE, Entry, Study
from farfield.study.escaping import plain, short
from farfield.study.evidence import Evidence, learned_names
from farfield.study.published import published
from farfield.study.table import Table
from farfield.theory.verdict.convergence import check
from farfield.zoo.head_parameters import said_slopes

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from farfield.study.figures import Figure

PAGE, TABLES, FIGURES, NOTED = "report.html", "tables", "figures", "figures.json"
MAIN = ("perplexity", "dose-response", "prediction")  # the figures that stand on top


@dataclass(frozen=True)
class Picture:
    """A figure, and the addresses in the page that carry it: for a wide window, and for a phone."""

    figure: Figure
    source: str
    narrow: str | None


@dataclass(frozen=True)
class EncodingSection:
    """One encoding in the section "Encoding by encoding".

    Attributes:
        proof: Steps, each in parts: text, and whether it is mathematics.
        outcomes: For each corpus the rise, the far-field damage and the answer.
        slopes: What k is, where the formula has one and nobody gave it.
        learned: What the heads of the first model learned: names, then a row for each head with its verdict.
    """

    name: str
    formula: str
    has_formula: bool
    verdict: str
    condition: str
    proof: list[list[tuple[str, bool]]]
    trained: str
    fields: str
    horizon: str
    leak: str
    statement: str
    answer: str
    outcomes: list[tuple[str, str, str, str]]
    note: str
    slopes: str
    learned: list[list[str]]


def write(
    study: Study,
    out: Path,
    *,
    only: str | None = None,
    command: str = "farfield study",
    say: Callable[[str], None] | None = None,
) -> Path:
    """Write tables, figures and the page; `only` leaves the other kind as it is."""
    for folder in (TABLES, FIGURES):
        (out / folder).mkdir(parents=True, exist_ok=True)
    made = tables.all_tables(study)
    if only != "figures":
        for table in made:
            table.save(out / TABLES)
        tables.save_observations(study, out / TABLES)
    if say is not None:
        say("Drawing the figures and writing the report." if only != "tables" else "Writing the report.")
    drawn = _drawn_before(out / FIGURES) if only == "tables" else _draw(study, out / FIGURES)
    page = render(study, made, drawn, command)
    durable.replace_file(out / PAGE, page.encode())
    return out / PAGE


def _draw(study: Study, folder: Path) -> list[Figure]:
    """Draw all figures, and note what they are."""
    from farfield.study.figures import draw_all

    drawn = draw_all(study, folder)
    noted = [
        {
            "name": f.name,
            "title": f.title,
            "caption": f.caption,
            "files": [p.name for p in f.paths],
            "narrow": f.narrow and f.narrow.name,
        }
        for f in drawn
    ]
    durable.replace_file(folder / NOTED, json.dumps(noted, indent=1).encode())
    return drawn


def _drawn_before(folder: Path) -> list[Figure]:
    """The figures of an earlier call that are still there."""
    from farfield.study.figures import Figure

    try:
        noted = parse_json(read_bytes(folder / NOTED))
        drawn = [
            Figure(n["name"], n["title"], n["caption"], tuple(folder / f for f in n["files"]), folder / n["narrow"])
            for n in noted
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [f for f in drawn if f.narrow and all(p.parent == folder and p.exists() for p in (*f.paths, f.narrow))]


def render(study: Study, made: list[Table], drawn: list[Figure], command: str) -> str:
    """The page."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("farfield.study") / "report.html").read_text(encoding="utf-8"))
    pictures = [Picture(f, _inside(f.paths), _inside((f.narrow,)) if f.narrow else None) for f in drawn]
    evidence = Evidence(study)
    return template.render(
        study=study,
        take_home=findings.take_home(study, evidence),
        too_small=findings.too_small(study),
        findings=findings.findings(study, evidence),
        main=[p for name in MAIN for p in pictures if p.figure.name == name],
        rest=[p for p in pictures if p.figure.name not in MAIN],
        first_table=made[0],
        tables=made[1:],
        sections=[section(study, encoding) for encoding in study.encodings if study.of_encoding(encoding)],
        made=about(study, command),
        unfinished=unfinished(study),
        command=plain(command),
        differences=differences(study),
        source=published()["source"],
        level=LEVEL,
        short=short,
    )


def section(study: Study, encoding: str) -> EncodingSection:
    """What is proven of an encoding, with the proof, and what its models did."""
    entries = study.of_encoding(encoding)
    known = zoo.find(encoding)
    steps: tuple[Sentence, ...] = ()
    try:
        verdict = check(encoding)
    except FormulaError as error:  # a formula that only has values for some parameters
        words, condition = "undecided", str(error)
    else:
        words, condition, steps = verdict.verdict, verdict.condition or "", verdict.steps
    leaks = [entry.leak for entry in entries if entry.leak is not None]
    return EncodingSection(
        plain(encoding),
        plain(findings.formula_of(encoding)),
        known.formula is not None,
        words,
        condition,
        [_parts(step) for step in steps],
        findings.verdict_words(entries),
        findings.field_words(entries),
        findings.horizon_words(entries[0]),
        findings.leak_words(leaks) if leaks else "",
        findings.statement(entries),
        findings.joint_answer(entries),
        [(e.corpus, findings.percent(e.rise, e.rise_error), findings.percent(*e.damage), e.answer) for e in entries],
        plain(known.note) if words != NONE else "",
        said_slopes(known, int(entries[0].records[0]["settings"].get("heads", 1)), entries[0].parameters),
        _learned(entries[0]),
    )


def _learned(entry: Entry) -> list[list[str]]:
    """What each head of an encoding's first model learned, under the names of the columns; empty if nothing."""
    names = learned_names(entry)
    heads = [head for head in entry.records[0]["heads"] if head.get("parameters")]
    if not names or not heads or any(name not in head["parameters"] for head in heads for name in names):
        return []
    layers: dict[tuple[tuple[str, ...], ...], list[int]] = {}  # by what their heads learned: most share one bias
    for layer, group in groupby(heads, key=lambda head: head["layer"]):
        values = ((str(h["head"]), *(f"{h['parameters'][name]:.6g}" for name in names), h["verdict"]) for h in group)
        layers.setdefault(tuple(values), []).append(layer)
    rows = [[", ".join(map(str, numbers)), *row] for values, numbers in layers.items() for row in values]
    return [["layer", "head", *names, "verdict"], *rows]


def _parts(step: Sentence) -> list[tuple[str, bool]]:
    """A step of a proof in parts: words, and mathematics as text."""
    return [(part, False) if isinstance(part, str) else (text(part), True) for part in step.parts]


def _inside(paths: tuple[Path, ...]) -> str:
    """A figure as an address that carries it."""
    kinds = {".svg": "image/svg+xml", ".png": "image/png"}
    best = min((path for path in paths if path.suffix in kinds), key=lambda path: path.stat().st_size)
    return f"data:{kinds[best.suffix]};base64,{base64.b64encode(best.read_bytes()).decode()}"


def about(study: Study, command: str) -> list[tuple[str, str]]:
    """How it was made."""
    records = study.records
    machines = sorted({_machine(record["machine"]) for record in records})
    training = sum(record["seconds"]["training"] for record in records)
    measuring = sum(record["seconds"]["measuring"] for record in records)
    test = records[0]["test"]
    sizes = sorted({f"{record['parameters']:,}" for record in records})
    return [
        ("command", plain(command)),
        ("date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
        (
            "runs",
            f"{len(records)}: {len(study.encodings)} encodings, {len(study.corpora)} corpora, {study.seeds} seeds",
        ),
        ("test text", f"{test['tokens']:,} tokens in {test['segments']} segments spread over the split"),
        ("parameters of a model", ", ".join(sizes[:6]) + (", ..." if len(sizes) > 6 else "")),
        ("machine", "; ".join(machines)),
        (
            "time",
            f"{training / 60:,.0f} minutes of training, {measuring / 60:,.0f} of measuring, one process for each run",
        ),
        ("version", f"farfield {farfield.__version__}"),
    ]


def unfinished(study: Study, most: int = 6) -> str:
    """Which runs of the plan are missing; empty if none is."""
    names = [plain(name) for name in study.missing]
    others = f" and {len(names) - most} others" if len(names) > most else ""
    return "; ".join(names[:most]) + others


def _machine(fields: dict[str, Any]) -> str:
    return (
        f"{fields.get('processor')}, {fields.get('cores')} cores, {fields.get('device')}, torch {fields.get('torch')}, "
        f"Python {fields.get('python')}"
    )


def differences(study: Study) -> list[str]:
    """What differs from the paper, computed from the settings."""
    from farfield.training.settings import preset_settings

    paper = preset_settings("paper-wikitext", encoding="alibi")
    settings = study.records[0]["settings"]
    said = []
    for name, words in (
        ("length", "tokens in a training sample"),
        ("steps", "updates"),
        ("batch", "samples in an update"),
    ):
        if settings[name] != getattr(paper, name):
            said.append(f"{settings[name]:,} {words}; the paper has {getattr(paper, name):,}.")
    shape = [(settings[n], getattr(paper, n)) for n in ("layers", "width", "heads")]
    if any(a != b for a, b in shape):
        said.append(
            f"{shape[0][0]} layers of width {shape[1][0]} with {shape[2][0]} heads; the paper has "
            f"{shape[0][1]} of {shape[1][1]} with {shape[2][1]} on WikiText-103, larger ones on the others."
        )
    count = tables.words_of(study.records[0])
    if count != paper.vocabulary:
        kind = "Bytes, with a vocabulary" if settings["tokenizer"] == "bytes" else "A vocabulary"
        said.append(f"{kind} of {count:,} words; the paper's BPE has {paper.vocabulary:,}.")
    for corpus, data_set in {entry.corpus: entry.stands_for for entry in study.entries.values()}.items():
        if data_set is not None and data_set != corpus:
            said.append(f"{plain(corpus)} stands for {data_set} by declaration: ratios compare, perplexities do not.")
    said.append("Slopes, formulas and windows are those of the paper's code where its text differs (docs/errata.md).")
    return said


def summary(study: Study) -> list[RichTable]:
    """A table for the terminal for each corpus."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    made = []
    for corpus in study.corpora:
        entries = study.of_corpus(corpus)
        if not entries:
            continue
        base = entries[0].training_length
        table = RichTable(
            title=Text(f"{short(corpus)}: trained on {base} tokens"), title_justify="left", box=box.SIMPLE
        )
        for column in ("encoding", "series", "leak", "1x", f"{entries[0].farthest:g}x", "rise", "answer"):
            left = column in ("encoding", "series", "answer")
            names = max(len(short(entry.encoding)) for entry in entries) if column == "encoding" else 0
            table.add_column(column, justify="left" if left else "right", min_width=min(names, 18) or None)
        for entry in entries:
            table.add_row(*(Text(cell) for cell in _summary_row(entry)))
        made.append(table)
    return made


def _summary_row(entry: Entry) -> Sequence[str]:
    return (
        short(entry.encoding),
        findings.verdict_words([entry]),
        "" if entry.leak is None else f"{entry.leak:.2f}",
        f"{entry.mean[0]:.2f}",
        f"{entry.mean[-1]:.2f}",
        findings.percent(entry.rise, entry.rise_error),
        entry.answer,
    )
