"""The tables of the study: ours with errors, the published numbers beside them, and every observation in one CSV."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from farfield.data.tokenizer import SMALLEST_VOCABULARY
from farfield.measure.rise import rises
from farfield.measure.statistics import relative_change
from farfield.study import findings
from farfield.study.collected import Entry, Study
from farfield.study.evidence import known_before_training, paper_leak
from farfield.study.plan import slug
from farfield.study.published import published
from farfield.study.table import WIDEST, EncodingName, Number, Table, TableCell, csv_text
from farfield.training.settings import PRESETS, preset_settings

NONE = ""
NOT_STATED = "not stated"
OBSERVATIONS = "observations.csv"
REFERENCE = "alibi"  # what other encodings are compared with, token by token


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
    rows: list[tuple[TableCell, ...]] = []
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
        "theory-against-experiment",
        "Theory against experiment",
        f"The verdict on the trained heads, the share of a row of {study.farthest:g}x that lies beyond the training "
        f"length (leak), the rise of perplexity at {study.farthest:g}x above its lowest with its standard error, and "
        "whether it rose, stayed level, or cannot be told.",
        ("encoding", "series", "leak", *(f"rise, {c}" for c in study.corpora), "answer"),
        tuple(rows),
        names=2,
    )


def outcome_table(study: Study) -> Table:
    """Receptive fields, leaks in both geometries, far-field damage, and what is gained from context."""
    rows: list[tuple[TableCell, ...]] = []
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
                    Number(None if entries[0].parameters else paper_leak(encoding), digits=3),
                    when,
                    Number(*worst.damage, 1, share=True),
                    Number(*worst.cut, 1, share=True),
                    Number(*gain),
                )
            )
    return Table(
        "far-field",
        "Receptive fields and the far field",
        "TRF(0.01) over the heads; the length up to which a divergent series looks convergent; the leak in the paper's "
        "geometry (512 to 9,216 tokens, 8 heads); whether the leak is known before training or after; far-field damage "
        f"D, perplexity at {study.farthest:g}x with all keys over that with heads cut at the training length, and what "
        "such a cut leaves against 1x, both on the text with the largest D; and how many nats the context beyond 8 "
        "tokens gains within the training length (the least over texts).",
        ("encoding", "TRF(0.01)", "horizon", "leak, paper", "known", "damage D", "cut, against 1x", "gain, nats"),
        tuple(rows),
    )


# ---------------------------------------------------------------------------------------------- perplexity
def perplexity_table(study: Study, name: str, entries: Sequence[Entry]) -> Table:
    """Perplexity with its error by length, a row for each, as the paper has it."""
    first = entries[0]
    lengths = max((entry.lengths for entry in entries), key=len)
    rows: list[tuple[TableCell, ...]] = [
        (f"{n:,} ({n / first.training_length:g}x)", *(_at(entry, i) for entry in entries))
        for i, n in enumerate(lengths)
    ]
    rows.append(("ratio to 1x", *(Number(float(e.relative[-1]), digits=3) for e in entries)))
    rows.append(("rise", *(Number(e.rise, e.rise_error, 1, share=True) for e in entries)))
    rows.append(("gain from context", *(Number(*(e.gain or (None, None))) for e in entries)))
    test = first.records[0]["test"]
    seeds = f", mean of {study.seeds} seeds" if study.seeds > 1 else ""
    return Table(
        name,
        f"Perplexity by length on {first.corpus}",
        f"Perplexity on {test['tokens']:,} test tokens of {first.corpus} in {test['segments']} segments, trained on "
        f"{first.training_length} tokens{seeds}; ± standard error, from text{' and seeds' if seeds else ''}. Below: "
        "the ratio of the last length to 1x, the rise above the lowest, and the nats gained from context beyond 8.",
        ("length", *(EncodingName(entry.encoding) for entry in entries)),
        tuple(rows),
    )


def _at(entry: Entry, i: int) -> TableCell:
    return Number(float(entry.mean[i]), entry.errors[i]) if i < len(entry.lengths) else NONE


def published_table(name: str, entries: Sequence[Entry]) -> Table | None:
    """The paper's perplexities for the same encodings, in the same form."""
    known = {entry.encoding: theirs for entry in entries if (theirs := entry.published)}
    if not known:
        return None
    lengths = published()["lengths"]
    rows: list[tuple[TableCell, ...]] = [
        (f"{n:,} ({n / lengths[0]:g}x)", *(Number(theirs[i]) for theirs in known.values()))
        for i, n in enumerate(lengths)
    ]
    rows.append(("ratio to 1x", *(Number(theirs[-1] / theirs[0], digits=3) for theirs in known.values())))
    rows.append(("rise", *(Number(float(rises(theirs)[-1]), None, 1, share=True) for theirs in known.values())))
    data_set = entries[0].stands_for
    return Table(
        f"{name}-published",
        f"The same as published, on {data_set}",
        f"Perplexity on {data_set} by length, trained on {lengths[0]} tokens ({published()['source']}), for "
        f"{entries[0].corpus}, which stands for it.",
        ("length", *(EncodingName(encoding) for encoding in known)),
        tuple(rows),
    )


def paired_table(study: Study, corpus: str) -> Table | None:
    """Each encoding against ALiBi on the same tokens, at 1x and at the longest length."""
    base = study.entry(corpus, REFERENCE)
    others = [entry for entry in study.of_corpus(corpus) if entry.encoding != REFERENCE]
    if base is None or not others:
        return None
    rows: list[tuple[TableCell, ...]] = []
    for entry in others:
        if entry.lengths == base.lengths:
            changes = [_paired(entry, base, at) for at in (0, -1)]
            rows.append((EncodingName(entry.encoding), *(Number(*change, 1, share=True) for change in changes)))
    return Table(
        f"paired-{slug(corpus)}",
        f"Against {REFERENCE} on the same tokens of {corpus}",
        f"Perplexity over that of {REFERENCE}, minus 1, with the standard error of the paired difference.",
        ("encoding", "at 1x", f"at {base.farthest:g}x"),
        tuple(rows),
    )


def _paired(entry: Entry, base: Entry, at: int) -> tuple[float, float | None]:
    """The relative difference of perplexity at one length, blocks of text paired, seeds as the second level."""
    from farfield.measure.statistics import two_levels

    others = {record["seed"]: record for record in base.records}
    pairs = [
        relative_change(record["blocks"][at], others[record["seed"]]["blocks"][at], record["test"]["tokens"])
        for record in entry.records
        if record["seed"] in others
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
    rows: list[tuple[TableCell, ...]] = []
    for protocol, ratio in study.speed["relative"].items():
        timings = [t for t in study.speed["timings"] if t["protocol"] == protocol]
        per_token = 1e3 * float(np.mean([t["seconds"] / t["tokens"] for t in timings]))
        rows.append(
            (words.get(protocol, protocol), Number(ratio), str(theirs.get(protocol, NONE)), Number(per_token, digits=3))
        )
    windows = sorted({t["window"] for t in study.speed["timings"] if t["window"]})
    return Table(
        "inference-time",
        "Relative inference time",
        f"Average time of a token over windows of {', '.join(map(str, windows))} tokens with {study.speed['encoding']} "
        f"on {study.speed['corpus']}, relative to non-overlapping windows, one thread; "
        "the paper's windows are 16 to 512.",
        ("inference", "ours", "published", "ms a token"),
        tuple(rows),
    )


# The settings in the order of the paper's table, and what it calls them; those that it does not state last.
_SHOWN = {
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
    ours: dict[str, dict[str, Any]] = {}
    for record in study.records:
        ours.setdefault(str(record["corpus"]), {**_FIXED, **record["settings"], "vocabulary": words_of(record)})
    shown = {**_SHOWN, **_NOT_IN_THE_PAPER}
    same = len({tuple(str(s[name]) for name in shown) for s in ours.values()}) == 1
    mine = list(ours.items())[:1] if same else list(ours.items())
    titles = ["ours"] if same else [f"ours, {corpus}" for corpus, _ in mine]
    paper = [preset_settings(name, encoding="alibi").model_dump() for name in PRESETS if name.startswith("paper-")]
    rows: list[tuple[TableCell, ...]] = []
    for name, words in shown.items():
        values = [study.seeds if name == "seed" else settings[name] for _, settings in mine]
        theirs = [_PAPERS.get(name, settings.get(name)) if name in _SHOWN else NOT_STATED for settings in paper]
        rows.append((words, *(_setting(value) for value in (*values, *theirs))))
    return Table(
        "configurations",
        "Configurations",
        "Our settings beside those of the paper's table of configurations, which stand ready as presets.",
        ("setting", *titles, "paper, WikiText-103", "paper, other data sets"),
        tuple(rows),
    )


def words_of(record: dict[str, Any]) -> int:
    """Words of a model's vocabulary; the setting of that name is for BPE."""
    bytewise = record["settings"]["tokenizer"] == "bytes"
    return SMALLEST_VOCABULARY if bytewise else int(record["settings"]["vocabulary"])


def _setting(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


# ---------------------------------------------------------------------------------------------- observations
def save_observations(study: Study, folder: Path) -> Path:
    """Everything that was measured as tidy data: one observation a row."""
    columns = [
        "corpus",
        "stands_for",
        "encoding",
        "seed",
        "model",
        "protocol",
        "tail",
        "length",
        "multiple",
        "perplexity",
        "stderr",
        "change_against_1x",
        "change_error",
        "leak",
        "verdict",
    ]
    rows: list[list[str]] = []
    for record in study.records:
        base = record["training_length"]
        of_record = [record["corpus"], record.get("stands_for"), record["encoding"], record["seed"]]

        def add(model: str, protocol: str, tail: str, n: int, *values: Any, named: list[Any] = of_record) -> None:
            cells = [*named, model, protocol, tail, n, f"{n / base:g}", *values]  # noqa: B023 - called at once
            rows.append(["" if value is None else str(value) for value in cells])

        leak, verdict = (
            (record["interventions"][0][k] for k in ("leak", "verdict"))
            if record["interventions"]
            else (
                None,
                None,
            )
        )
        for i, n in enumerate(record["lengths"]):
            change = record["extrapolation"]["lengths"][i]
            own = (change["change"], change["change_error"], leak, verdict)
            add(
                "trained",
                "non-overlapping",
                "",
                n,
                record["perplexity"]["non-overlapping"][i],
                record["stderr"][i],
                *own,
            )
            if record["perplexity"]["sliding"][i] is not None:
                add("trained", "sliding", "", n, record["perplexity"]["sliding"][i], *[None] * 3, leak, verdict)
        for model, part in (("trained", record), ("untrained", record["control"])):
            for one in part["interventions"]:
                shown = (one["perplexity"], None, *one["change"], one["leak"], one["verdict"])
                add(model, "intervention", one["tail"], part["extrapolation"]["lengths"][-1]["length"], *shown)
    path = folder / OBSERVATIONS
    path.write_text(csv_text(columns, rows), encoding="utf-8")
    return path
