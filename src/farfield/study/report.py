"""The report of a study: one HTML page that needs nothing else, and every table and figure as files beside it.

Figures are inside of the page as images, so that it can be sent as it is; nothing is fetched from anywhere, and the
page itself forbids it. All words about the results come from `findings`.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from pydantic import TypeAdapter

import farfield
from farfield import zoo
from farfield.data import durable
from farfield.formula import FormulaError
from farfield.formula.spelling import TEXT, Sentence
from farfield.measure import LEVEL
from farfield.reading import parse_json, read_bytes
from farfield.study import findings, tables
from farfield.study.entries import Entry, Study, save
from farfield.study.evidence import Evidence, learned_names
from farfield.study.figures import Figure, draw_all
from farfield.study.published import published
from farfield.table import Number, Table
from farfield.theory.verdict.convergence import check
from farfield.words import percent, plain, short, tokens
from farfield.zoo.encoding import slopes_sentence

PAGE, TABLES, FIGURES, NOTED = "report.html", "tables", "figures", "figures.json"
MAIN = ("perplexity", "dose-response", "prediction")  # the figures that stand on top


@dataclass(frozen=True)
class EncodingSection:
    """One encoding in the section "Encoding by encoding".

    Attributes:
        statement: Theory and experiment in a sentence.
        about: What is proven of it and what its models did, by name.
        proof: Steps, each in parts: text, and whether it is mathematics.
        learned: What the heads of the first model learned: names, then a row for each head with its verdict.
    """

    name: str
    answer: str
    statement: str
    about: dict[str, str]
    proof: list[list[tuple[str, bool]]]
    learned: list[list[str]]


def write(
    study: Study,
    out: Path,
    *,
    only: str | None = None,
    pdf: bool = False,
    command: str = "farfield study",
    say: Callable[[str], None] | None = None,
) -> Path:
    """Write tables, figures, the page and the outcome of every run; `only` leaves the other kind as it is.

    Args:
        study: What was measured.
        out: The folder.
        only: "tables" or "figures".
        pdf: Whether to write each figure as PDF too.
        command: What was typed.
        say: Takes a sentence on what is being done.
    """
    save(study, out)
    made = tables.all_tables(study) if only == "figures" else tables.save_tables(study, out / TABLES)
    if say is not None:
        say("Drawing the figures and writing the report." if only != "tables" else "Writing the report.")
    drawn = _drawn_before(out / FIGURES) if only == "tables" else draw_all(study, out / FIGURES, pdf=pdf)
    if only != "tables":
        durable.replace_file(out / FIGURES / NOTED, _FIGURES.dump_json(drawn, indent=1))
    durable.replace_file(out / PAGE, render(study, made, _load(drawn, out / FIGURES), command).encode())
    return out / PAGE


_FIGURES = TypeAdapter(list[Figure])


def _drawn_before(folder: Path) -> list[Figure]:
    """The figures of an earlier call."""
    try:
        return _FIGURES.validate_python(parse_json(read_bytes(folder / NOTED)))
    except ValueError:
        return []


def _load(drawn: list[Figure], folder: Path) -> list[tuple[Figure, str, bool]]:
    """The figures whose files are there, each with an address that carries it, and whether it is there as PDF."""
    sources = []
    for figure in drawn:
        path = folder / f"{figure.name}.svg"
        if path.parent == folder and path.is_file():
            image = quote(" ".join(read_bytes(path).decode().split()), safe=" /:;=,.()-")  # a third shorter than base64
            sources.append((figure, f"data:image/svg+xml,{image}", path.with_suffix(".pdf").exists()))
    return sources


def render(study: Study, made: list[Table], drawn: list[tuple[Figure, str, bool]], command: str) -> str:
    """The page; each figure with the address that carries it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((files("farfield.study") / "report.html").read_text(encoding="utf-8"))
    evidence = Evidence(study)
    return template.render(
        study=study,
        take_home=findings.take_home(study, evidence),
        too_small=findings.too_small(study),
        findings=findings.findings(study, evidence),
        main=[one for name in MAIN for one in drawn if one[0].name == name],
        rest=[one for one in drawn if one[0].name not in MAIN],
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
    definition, settings = zoo.find(encoding), entries[0].first.settings
    formula = plain(findings.formula_of(encoding))
    steps: tuple[Sentence, ...] = ()
    if definition.formula is None:
        about = {"no bias": formula}
    else:
        try:
            verdict = check(encoding)
            words, steps = verdict.condition or verdict.verdict, verdict.steps
        except FormulaError as error:  # a formula that only has values for some parameters
            words = str(error)
        about = {"bias r(t)": formula, "verdict": f"{words}; as trained: {findings.verdict_words(entries)}"}
    leaks = [entry.leak for entry in entries if entry.leak is not None]
    if slopes := slopes_sentence(definition, settings.heads, settings.parameters):
        about["slopes"] = slopes
    if fields := findings.field_words(entries):
        about["TRF(0.01)"] = f"{fields} tokens, over the heads"
    if horizon := findings.horizon_words(entries[0]):
        about["horizon"] = f"looks convergent up to {horizon} tokens"
    if leaks:
        about["leak"] = f"{findings.leak_words(leaks)} of the longest row lies beyond the training length"
    about["the models"] = "; ".join(
        f"{e.corpus}: rise {percent(e.rise, e.rise_error)}, far-field damage {percent(*e.damage)}, {e.answer}"
        for e in entries
    )
    proof = [[(p, False) if isinstance(p, str) else (TEXT.write(p), True) for p in step.parts] for step in steps]
    answer = findings.joint_answer(entries)
    return EncodingSection(plain(encoding), answer, findings.statement(entries), about, proof, _learned(entries[0]))


def _learned(entry: Entry) -> list[list[str]]:
    """What each head of an encoding's first model learned, under the names of the columns; empty if nothing."""
    names = learned_names(entry)
    heads = [(head, head.parameters) for head in entry.first.heads if head.parameters]
    if not names or not heads or any(name not in values for _, values in heads for name in names):
        return []
    layers: dict[tuple[tuple[str, ...], ...], list[int]] = {}  # by what their heads learned: most share one bias
    for layer, group in groupby(heads, key=lambda pair: pair[0].layer):
        cells = ((str(h.head), *(f"{values[name]:.6g}" for name in names), h.verdict) for h, values in group)
        layers.setdefault(tuple(cells), []).append(layer)
    rows = [[", ".join(map(str, numbers)), *row] for values, numbers in layers.items() for row in values]
    return [["layer", "head", *names, "verdict"], *rows]


def about(study: Study, command: str) -> list[tuple[str, str]]:
    """How it was made."""
    records = study.records
    machines = sorted({record.machine.text for record in records})
    training = sum(record.seconds.training for record in records) / 60
    measuring = sum(record.seconds.measuring for record in records) / 60
    test = records[0].test
    sizes = sorted({f"{record.parameters:,}" for record in records})
    return [
        ("command", plain(command)),
        ("date", datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")),
        (
            "runs",
            f"{len(records)}: {len(study.encodings)} encodings, {len(study.corpora)} corpora, {study.seeds} seeds",
        ),
        ("test text", f"{tokens(test.tokens)} tokens in {test.segments} segments spread over the split"),
        ("parameters of a model", ", ".join(sizes[:6]) + (", ..." if len(sizes) > 6 else "")),
        ("machine", "; ".join(machines)),
        ("time", f"{training:,.0f} minutes of training, {measuring:,.0f} of measuring, one process for each run"),
        ("version", f"farfield {farfield.__version__}"),
    ]


def unfinished(study: Study, most: int = 6) -> str:
    """Which runs of the plan are missing; empty if none is."""
    others = f" and {len(study.missing) - most} others" if len(study.missing) > most else ""
    return "; ".join(study.missing[:most]) + others


def differences(study: Study) -> list[str]:
    """What differs from the paper beside the settings, which a table compares."""
    lines = [
        f"{plain(corpus)} stands for {data_set} by declaration: ratios compare, perplexities do not."
        for corpus, data_set in {entry.corpus: entry.first.stands_for for entry in study.entries.values()}.items()
        if data_set is not None and data_set != corpus
    ]
    if study.records[0].settings.tokenizer == "bytes":
        lines.append("Our models read bytes, the paper's BPE.")
    return [
        *lines,
        "Slopes, formulas and windows are those of the paper's code where its text differs (docs/errata.md).",
    ]


def summary(study: Study) -> list[Table]:
    """A table for the terminal for each corpus."""
    made = []
    for corpus in study.corpora:
        if entries := study.of_corpus(corpus):
            rows = [
                (
                    short(entry.encoding),
                    findings.verdict_words([entry]),
                    Number(entry.leak),
                    Number(float(entry.mean[0])),
                    Number(float(entry.mean[-1])),
                    percent(entry.rise, entry.rise_error),
                    entry.answer,
                )
                for entry in entries
            ]
            columns = ("encoding", "series", "leak", "1x", f"{entries[0].farthest:g}x", "rise", "answer")
            title = f"{short(corpus)}: trained on {entries[0].training_length} tokens"
            made.append(Table(columns, rows, title, left=("encoding", "series", "answer")))
    return made
