"""The tables of the study: ours with errors, the published numbers beside them, and every observation in one CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farfield import zoo
from farfield.data.tokenizer import SMALLEST_VOCABULARY
from farfield.measure.rise import rises
from farfield.measure.statistics import relative_change, two_levels
from farfield.study import findings
from farfield.study.entries import Entry, Study
from farfield.study.evidence import known_before_training, paper_leak
from farfield.study.plan import slug
from farfield.study.published import published
from farfield.study.record import AS_TRAINED, PLAIN, SLIDING, Record
from farfield.table import WIDEST, Number, Table, TableCell, latex, markdown
from farfield.training.settings import PRESETS, Settings, preset_settings
from farfield.words import short, tokens

NONE = ""
NOT_STATED = "not stated"
OBSERVATIONS = "observations.csv"
REFERENCE = "alibi"  # what other encodings are compared with, token by token
Row = tuple[str | TableCell, ...]


@dataclass(frozen=True)
class EncodingName:
    """The name of an encoding, or the formula that somebody typed: mathematics in LaTeX."""

    name: str

    def __str__(self) -> str:
        return short(self.name)

    def latex(self) -> str:
        formula = None if self.name in zoo.ENCODINGS else zoo.find(self.name).formula
        return latex(str(self)) if formula is None else f"${formula.latex()}$"


def all_tables(study: Study) -> list[Table]:
    """Every table that the study has data for, in the order of the report."""
    made: list[Table | None] = [theory_table(study), outcome_table(study)]
    for corpus in study.corpora:
        for group in ("sufficiency", "necessity"):
            entries = [e for e in study.of_corpus(corpus) if study.group(e.encoding) == group]
            for number, start in enumerate(range(0, len(entries), WIDEST - 1), 1):
                some = entries[start : start + WIDEST - 1]
                name = f"{group}-{slug(corpus)}" + (f"-{number}" if number > 1 else "")
                made += [perplexity_table(study, name, some), published_table(name, some)]
        made.append(paired_table(study, corpus))
    made += [speed_table(study), configuration_table(study)]
    return [table for table in made if table is not None]


# ---------------------------------------------------------------------------------------------- theory and outcome
def theory_table(study: Study) -> Table:
    """For each encoding what was proven, the leak in both geometries, the rise on each corpus, and the answer."""
    rows: list[Row] = []
    for encoding in study.encodings:
        if entries := study.of_encoding(encoding):
            leaks = [entry.leak for entry in entries if entry.leak is not None]
            per_corpus = (study.entry(corpus, encoding) for corpus in study.corpora)
            rows.append(
                (
                    EncodingName(encoding),
                    findings.verdict_words(entries),
                    Number(float(np.mean(leaks)) if leaks else None, digits=3),
                    *(NONE if e is None else Number(e.rise, e.rise_error, 1, share=True) for e in per_corpus),
                    findings.joint_answer(entries),
                )
            )
    return Table(
        ("encoding", "series", "leak", *(f"rise, {c}" for c in study.corpora), "answer"),
        rows,
        "Theory against experiment",
        names=2,
        name="theory-against-experiment",
        caption=f"The verdict on the trained heads, the share of a row of {study.farthest:g}x that lies beyond the "
        f"training length (leak), the rise of perplexity at {study.farthest:g}x above its lowest with its standard "
        "error, and whether it rose, stayed level, or cannot be told.",
    )


def outcome_table(study: Study) -> Table:
    """Receptive fields, leaks in both geometries, far-field damage, and what is gained from context."""
    rows: list[Row] = []
    for encoding in study.encodings:
        if entries := study.of_encoding(encoding):
            worst = max(entries, key=lambda e: e.damage[0])
            gain = min((e.gain for e in entries if e.gain), default=(None, None))
            when = "before" if known_before_training(entries[0]) else "after" if worst.leak is not None else NONE
            rows.append(
                (
                    EncodingName(encoding),
                    findings.field_words(entries),
                    findings.horizon_words(entries[0]),
                    Number(None if entries[0].first.settings.parameters else paper_leak(encoding), digits=3),
                    when,
                    Number(*worst.damage, 1, share=True),
                    Number(*worst.cut, 1, share=True),
                    Number(*gain),
                )
            )
    return Table(
        ("encoding", "TRF(0.01)", "horizon", "leak, paper", "known", "damage D", "cut, against 1x", "gain, nats"),
        rows,
        "Receptive fields and the far field",
        name="far-field",
        caption="TRF(0.01) over the heads; the length up to which a divergent series looks convergent; the leak in the "
        "paper's geometry (512 to 9,216 tokens, 8 heads); whether the leak is known before training or after; "
        f"far-field damage D, perplexity at {study.farthest:g}x with all keys over that with heads cut at the training "
        "length, and what such a cut leaves against 1x, both on the text with the largest D; and how many nats the "
        "context beyond 8 tokens gains within the training length (the least over texts).",
    )


# ---------------------------------------------------------------------------------------------- perplexity
def perplexity_table(study: Study, name: str, entries: Sequence[Entry]) -> Table:
    """Perplexity with its error by length, a row for each, as the paper has it."""
    first = entries[0]
    lengths = max((entry.lengths for entry in entries), key=len)
    rows: list[Row] = [
        (f"{tokens(n)} ({n / first.training_length:g}x)", *(_at(entry, i) for entry in entries))
        for i, n in enumerate(lengths)
    ]
    rows.append(("ratio to 1x", *(Number(float(e.relative[-1]), digits=3) for e in entries)))
    rows.append(("rise", *(Number(e.rise, e.rise_error, 1, share=True) for e in entries)))
    rows.append(("gain from context", *(Number(*(e.gain or (None, None))) for e in entries)))
    test = first.first.test
    seeds = f", mean of {study.seeds} seeds" if study.seeds > 1 else ""
    return Table(
        ("length", *(EncodingName(entry.encoding) for entry in entries)),
        rows,
        f"Perplexity by length on {first.corpus}",
        name=name,
        caption=f"Perplexity on {tokens(test.tokens)} test tokens of {first.corpus} in {test.segments} segments, "
        f"trained on {first.training_length} tokens{seeds}; ± standard error, from text{' and seeds' if seeds else ''}."
        " Below: the ratio of the last length to 1x, the rise above the lowest, and the nats gained from context "
        "beyond 8.",
    )


def _at(entry: Entry, i: int) -> str | TableCell:
    return Number(float(entry.mean[i]), entry.errors[i]) if i < len(entry.lengths) else NONE


def published_table(name: str, entries: Sequence[Entry]) -> Table | None:
    """The paper's perplexities for the same encodings, in the same form."""
    columns = {entry.encoding: theirs for entry in entries if (theirs := entry.published)}
    if not columns:
        return None
    lengths = published()["lengths"]
    rows: list[Row] = [
        (f"{tokens(n)} ({n / lengths[0]:g}x)", *(Number(theirs[i]) for theirs in columns.values()))
        for i, n in enumerate(lengths)
    ]
    rows.append(("ratio to 1x", *(Number(theirs[-1] / theirs[0], digits=3) for theirs in columns.values())))
    rows.append(("rise", *(Number(float(rises(theirs)[-1]), None, 1, share=True) for theirs in columns.values())))
    data_set = entries[0].first.stands_for
    return Table(
        ("length", *(EncodingName(encoding) for encoding in columns)),
        rows,
        f"The same as published, on {data_set}",
        name=f"{name}-published",
        caption=f"Perplexity on {data_set} by length, trained on {lengths[0]} tokens ({published()['source']}), for "
        f"{entries[0].corpus}, which stands for it.",
    )


def paired_table(study: Study, corpus: str) -> Table | None:
    """Each encoding against ALiBi on the same tokens, at 1x and at the longest length."""
    base = study.entry(corpus, REFERENCE)
    others = [entry for entry in study.of_corpus(corpus) if entry.encoding != REFERENCE]
    if base is None or not others:
        return None
    rows: list[Row] = []
    for entry in others:
        if entry.lengths == base.lengths:
            changes = [_paired(entry, base, at) for at in (0, -1)]
            rows.append((EncodingName(entry.encoding), *(Number(*change, 1, share=True) for change in changes)))
    return Table(
        ("encoding", "at 1x", f"at {base.farthest:g}x"),
        rows,
        f"Against {REFERENCE} on the same tokens of {corpus}",
        name=f"paired-{slug(corpus)}",
        caption=f"Perplexity over that of {REFERENCE}, minus 1, with the standard error of the paired difference.",
    )


def _paired(entry: Entry, base: Entry, at: int) -> tuple[float, float | None]:
    """The relative difference of perplexity at one length, blocks of text paired, seeds as the second level."""
    others = {record.seed: record for record in base.records}
    pairs = [
        relative_change(record.blocks[at], others[record.seed].blocks[at], record.test.tokens)
        for record in entry.records
        if record.seed in others
    ]
    return two_levels([value for value, _ in pairs], [error for _, error in pairs]) if pairs else (float("nan"), None)


# ---------------------------------------------------------------------------------------------- cost and settings
def speed_table(study: Study) -> Table | None:
    """What each way of inference costs: the paper's Table 1, and windowed attention."""
    if study.speed is None:
        return None
    paper = published()["relative_inference_time"]
    theirs = {
        "sliding": paper["sliding_window"],
        "non-overlapping": paper["nonoverlapping_window"],
        "full": paper["alibi"],
    }
    words = {
        "non-overlapping": "non-overlapping windows",
        "sliding": "sliding window, one token at a time",
        "windowed": "windowed attention (not in the paper)",
        "full": "no window, full length",
    }
    rows: list[Row] = []
    for way, ratio in study.speed.relative.items():
        times = [timing.per_token for timing in study.speed.by_way.get(way, [])]
        each = Number(1e3 * float(np.mean(times)) if times else None, digits=3)
        rows.append((words.get(way, way), Number(ratio), str(theirs.get(way, NONE)), each))
    windows = sorted({timing.window for timing in study.speed.timings if timing.window})
    return Table(
        ("inference", "ours", "published", "ms a token"),
        rows,
        "Relative inference time",
        name="inference-time",
        caption=f"Average time of a token over windows of {', '.join(map(str, windows))} tokens with "
        f"{study.speed.encoding} on {study.speed.corpus}, relative to non-overlapping windows, one thread; the paper's "
        "windows are 16 to 512.",
    )


# The settings in the order of the paper's table, and what it calls them; those that it does not state last.
_STATED = {
    "layers": "decoder layers",
    "width": "hidden dimensions",
    "heads": "heads",
    "feed_forward": "feed-forward dimensions",
    "tokenizer": "tokenizer",
    "vocabulary": "vocabulary",
    "length": "sequence length",
    "batch": "samples in an update",
    "steps": "updates",
    "warmup": "warm-up updates",
    "learning_rate": "peak learning rate",
    "schedule": "learning rate schedule",
    "optimizer": "optimizer",
    "epsilon": "Adam epsilon",
    "betas": "Adam betas",
    "weight_decay": "weight decay",
}
_NOT_IN_THE_PAPER = {"dropout": "dropout", "clip": "largest gradient norm", "precision": "precision", "seed": "seeds"}
_FIXED = {"optimizer": "AdamW", "schedule": "inverse square root"}  # that every run of ours has
_PAPERS = {"tokenizer": "BPE", "optimizer": "Adam", "schedule": "inverse square root"}


def configuration_table(study: Study) -> Table:
    """Our settings beside the paper's two, with nothing credited to the paper that it does not state."""
    ours: dict[str, Mapping[str, object]] = {}
    for record in study.records:
        usual = {**_FIXED, **dict(record.settings), "vocabulary": vocabulary_of(record.settings), "seed": study.seeds}
        ours.setdefault(record.corpus, usual)
    names = {**_STATED, **_NOT_IN_THE_PAPER}
    same = len({tuple(str(settings[name]) for name in names) for settings in ours.values()}) == 1
    titles = ["ours"] if same else [f"ours, {corpus}" for corpus in ours]
    paper = [{**dict(preset_settings(name, encoding="alibi")), **_PAPERS} for name in PRESETS if name[:6] == "paper-"]
    rows: list[Row] = []
    for name, words in names.items():
        values = [settings[name] for settings in list(ours.values())[: len(titles)]]
        values += [settings[name] if name in _STATED else NOT_STATED for settings in paper]
        rows.append((words, *(_setting(value) for value in values)))
    return Table(
        ("setting", *titles, "paper, WikiText-103", "paper, other data sets"),
        rows,
        "Configurations",
        name="configurations",
        caption="Our settings beside those of the paper's table of configurations, which stand ready as presets.",
    )


def vocabulary_of(settings: Settings) -> int:
    """Words of a model's vocabulary; the setting of that name is for BPE."""
    return SMALLEST_VOCABULARY if settings.tokenizer == "bytes" else settings.vocabulary


def _setting(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---------------------------------------------------------------------------------------------- observations
OBSERVED = (
    *("corpus", "stands_for", "encoding", "seed", "model", "protocol", "tail", "length", "multiple"),
    *("perplexity", "stderr", "change_against_1x", "change_error", "leak", "verdict"),
)


def observations(study: Study) -> Table:
    """Everything that was measured as tidy data: one observation a row."""
    rows = [row for record in study.records for row in _observations(record)]
    return Table(OBSERVED, [["" if value is None else str(value) for value in row] for row in rows])


def _observations(record: Record) -> list[tuple[object, ...]]:
    about = (record.corpus, record.stands_for, record.encoding, record.seed)
    trained = next((dose for dose in record.interventions if dose.tail == AS_TRAINED), None)
    series = (trained.leak, trained.verdict) if trained else (None, None)
    rows: list[tuple[object, ...]] = []

    def add(model: str, protocol: str, tail: str, length: int, *values: object) -> None:
        rows.append((*about, model, protocol, tail, length, f"{length / record.training_length:g}", *values))

    for i, change in enumerate(record.extrapolation.lengths):
        errors = (record.stderr[i], change.change, change.change_error)
        for protocol, other in ((PLAIN, errors), (SLIDING, (None, None, None))):
            if (value := record.perplexity[protocol][i]) is not None:
                add("trained", protocol, "", change.length, value, *other, *series)
    for model, network in (("trained", record), ("untrained", record.control)):
        far = network.extrapolation.lengths[-1].length
        for dose in network.interventions:
            add(model, "intervention", dose.tail, far, dose.perplexity, None, *dose.change, dose.leak, dose.verdict)
    return rows


def save_tables(study: Study, folder: Path) -> list[Table]:
    """Write every table as CSV, all of them as one file of Markdown and of LaTeX, and every observation."""
    folder.mkdir(parents=True, exist_ok=True)
    tables = all_tables(study)
    files = {f"{table.name}.csv": table.csv() for table in tables}
    files["tables.md"] = "\n".join(f"## {markdown(table.title)}\n\n{table.markdown()}" for table in tables)
    files["tables.tex"] = "% needs \\usepackage{booktabs}\n" + "\n".join(table.latex() for table in tables)
    files[OBSERVATIONS] = observations(study).csv()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return tables
