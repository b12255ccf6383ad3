"""The tables of the study, each one as CSV, Markdown, LaTeX and HTML: ours, and the published numbers beside them."""

from __future__ import annotations

import csv as csv_writer
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from farfield.study import escaping, findings
from farfield.study.collected import Entry, Study
from farfield.study.published import data_set, published
from farfield.training.settings import PRESETS

NONE = ""


@dataclass(frozen=True)
class Table:
    """A table of texts; the first `names` columns are names, the rest are numbers or short answers."""

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1

    def csv(self) -> str:
        found = io.StringIO()
        writer = csv_writer.writer(found, lineterminator="\n")
        writer.writerow([escaping.csv(c) for c in self.columns])
        writer.writerows([[escaping.csv(cell) for cell in row] for row in self.rows])
        return found.getvalue()

    def markdown(self) -> str:
        bars = ["---"] * self.names + ["---:"] * (len(self.columns) - self.names)
        lines = [[escaping.markdown(c) for c in self.columns], bars]
        lines += [[escaping.markdown(cell) for cell in row] for row in self.rows]
        body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        return f"{body}\n\n{escaping.markdown(self.caption)}\n"

    def latex(self) -> str:
        """A `table` that needs no package."""
        body = [" & ".join(escaping.latex(cell) for cell in row) + r" \\" for row in (self.columns, *self.rows)]
        lines = [
            r"\begin{table}",
            r"\centering\footnotesize",
            rf"\caption{{{escaping.latex(self.caption)}}}",
            rf"\begin{{tabular}}{{{'l' * self.names}{'r' * (len(self.columns) - self.names)}}}",
            r"\hline",
            body[0],
            r"\hline",
            *body[1:],
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def save(self, folder: Path) -> list[Path]:
        """Write it in three forms; which ones."""
        written = []
        for suffix, text in ((".csv", self.csv()), (".md", self.markdown()), (".tex", self.latex())):
            path = folder / f"{self.name}{suffix}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


def all_tables(study: Study) -> list[Table]:
    """Every table that the study has data for, in the order of the report."""
    found: list[Table | None] = [theory_table(study)]
    for group in ("sufficiency", "necessity"):
        found += [perplexity_table(study, corpus, group) for corpus in study.corpora]
    found += [speed_table(study), configuration_table(study)]
    return [table for table in found if table is not None]


def perplexity_table(study: Study, corpus: str, group: str) -> Table | None:
    """Perplexity by length, its ratio to the training length, and the paper's ratio."""
    entries = [e for e in study.of_corpus(corpus) if study.group(e.encoding) == group]
    if not entries:
        return None
    lengths = max((entry.lengths for entry in entries), key=len)
    base = entries[0].training_length
    rows = []
    for entry in entries:
        rows += _perplexity_rows(entry, len(lengths), corpus)
    known = data_set(corpus)
    beside = f"; published: on {known}, trained on 512 tokens" if known else ""
    seeds = f", mean of {study.seeds} seeds ± standard deviation" if study.seeds > 1 else ""
    test = entries[0].records[0]["test_tokens"]
    return Table(
        f"{group}-{_file(corpus)}",
        f"Perplexity by length on {corpus} ({group})",
        f"Perplexity on {test:,} test tokens of {corpus} by length (trained on {base} tokens{seeds}), "
        f"and its ratio to the value at 1x{beside}.",
        ("encoding", "", *(f"{n:,} ({n / base:g}x)" for n in lengths)),
        tuple(rows),
        names=2,
    )


def _perplexity_rows(entry: Entry, count: int, corpus: str) -> list[tuple[str, ...]]:
    spread = entry.perplexity.std(0, ddof=1) if len(entry.records) > 1 else None
    values = [
        f"{x:.2f}" + (f" ± {spread[i]:.2f}" if spread is not None else "") for i, x in enumerate(entry.mean.tolist())
    ]
    name = escaping.short(entry.encoding)
    rows = [(name, "ours", *_filled(values, count)), ("", "ratio", *_filled(_three(entry.relative.tolist()), count))]
    theirs = Study.published(corpus, entry.encoding)
    if theirs is not None and len(theirs) == count:
        rows.append(("", "published ratio", *_three([x / theirs[0] for x in theirs])))
    return rows


def _three(values: Sequence[float]) -> list[str]:
    return [f"{x:.3f}" for x in values]


def _filled(values: Sequence[str], count: int) -> list[str]:
    return [*values, *([NONE] * (count - len(values)))]


def theory_table(study: Study) -> Table:
    """For each encoding what was proven, what was predicted, and what the models did."""
    corpora = study.corpora
    rows = []
    for encoding in study.encodings:
        entries = study.of_encoding(encoding)
        if not entries:
            continue
        first = entries[0]
        leaks = [entry.leak for entry in entries if entry.leak is not None]
        rises = [
            NONE if (entry := study.entry(corpus, encoding)) is None else f"{entry.rise:.1%}" for corpus in corpora
        ]
        rows.append(
            (
                escaping.short(encoding),
                findings.verdict_words(entries),
                findings.field_words(entries),
                findings.horizon_words(first),
                f"{float(np.mean(leaks)):.3f}" if leaks else NONE,
                *rises,
                findings.agreement(entries).short,
            )
        )
    return Table(
        "theory-against-experiment",
        "Theory against experiment",
        "What is proven of the trained heads, the share of a row of 18x that lies beyond the training length (leak), "
        "and the rise of perplexity at the longest length above its lowest.",
        ("encoding", "series", "TRF(0.01)", "horizon", "leak", *(f"rise, {c}" for c in corpora), "agree?"),
        tuple(rows),
        names=2,
    )


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
    rows = []
    for protocol, ratio in study.speed["relative"].items():
        timings = [t for t in study.speed["timings"] if t["protocol"] == protocol]
        per_token = 1e3 * float(np.mean([t["seconds"] / t["tokens"] for t in timings]))
        rows.append(
            (words.get(protocol, protocol), f"{ratio:.2f}", f"{theirs.get(protocol, NONE)}", f"{per_token:.3f}")
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


_SHOWN = {
    "layers": "layers",
    "width": "width",
    "heads": "heads",
    "feed_forward": "feed-forward width",
    "vocabulary": "vocabulary",
    "length": "training length",
    "batch": "samples in an update",
    "steps": "updates",
    "learning_rate": "learning rate",
    "warmup": "warm-up updates",
    "weight_decay": "weight decay",
    "betas": "Adam betas",
    "dropout": "dropout",
    "precision": "precision",
}


def configuration_table(study: Study) -> Table:
    """Our sizes beside the paper's two."""
    from farfield.training.settings import preset_settings

    paper = [preset_settings(name, encoding="alibi").model_dump() for name in PRESETS if name.startswith("paper-")]
    ours: dict[str, dict[str, object]] = {}
    for record in study.records:
        ours.setdefault(str(record["corpus"]), record["settings"])
    same = len({tuple(str(s[name]) for name in _SHOWN) for s in ours.values()}) == 1
    mine = list(ours.items())[:1] if same else list(ours.items())
    titles = ["ours"] if same else [f"ours, {corpus}" for corpus, _ in mine]
    rows = []
    for name, words in _SHOWN.items():
        values = [settings[name] for _, settings in mine] + [settings[name] for settings in paper]
        rows.append((words, *(_setting(value) for value in values)))
    return Table(
        "configurations",
        "Configurations",
        "Our configuration beside the paper's, which stand ready as presets.",
        ("setting", *titles, "paper, WikiText-103", "paper, other data sets"),
        tuple(rows),
    )


def _setting(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _file(corpus: str) -> str:
    from farfield.study.plan import slug

    return slug(corpus)
