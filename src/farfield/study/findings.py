"""What the study says, in sentences that are computed from its numbers: other data, other words.

The theorem promises that a convergent encoding extrapolates. It promises nothing for the others: that a divergent one
may still be stable, for a while or for ever, is no contradiction, and is said so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farfield import zoo
from farfield.measure import rank_correlation, rises
from farfield.measure.rise import ROSE, STAYED, UNKNOWN, answer
from farfield.study.collected import CONVERGES, DIVERGES, MIXED, NONE, Entry, Study
from farfield.study.escaping import plain, short
from farfield.study.predictions import FARTHEST
from farfield.study.published import published


@dataclass(frozen=True)
class Finding:
    """One statement; `holds` is None where it is no question of yes or no."""

    text: str
    holds: bool | None = None


@dataclass(frozen=True)
class Agreement:
    """Whether theory and models agree on an encoding: in a word, in a sentence, and True, False or None."""

    short: str
    text: str
    agrees: bool | None


def agreement(entries: Sequence[Entry]) -> Agreement:
    """Theory against experiment for one encoding, over all corpora and seeds."""
    verdict = combined_verdict(entries)
    flat = [entry for entry in entries if entry.answer == STAYED]
    risen = [entry for entry in entries if entry.answer == ROSE]
    worst = max(entry.rise for entry in entries)
    name = plain(entries[0].encoding)
    longest = entries[0].lengths[-1]
    what = f"perplexity at {longest:,} tokens is at most {worst:.1%} above its lowest"
    if verdict == NONE:
        did = "stays level" if len(flat) == len(entries) else f"rises by up to {worst:.0%}"
        return Agreement("no claim", f"The theorem says nothing of {name}: it is no bias by distance. It {did}.", None)
    if not risen and len(flat) < len(entries) and verdict in (CONVERGES, DIVERGES):
        return Agreement(UNKNOWN, f"The series {verdict}; whether perplexity rises cannot be told: {what}.", None)
    if verdict == CONVERGES:
        if len(flat) == len(entries):
            return Agreement("yes", f"The series converges, and {what}: as the theorem says.", True)
        where = ", ".join(plain(e.corpus) for e in risen)
        return Agreement("NO", f"The series converges, yet perplexity rises by {worst:.1%} ({where}).", False)
    if verdict == DIVERGES:
        if len(risen) == len(entries):
            return Agreement("yes", f"The series diverges, and perplexity rises by up to {worst:.1%}.", True)
        if risen:
            rising = ", ".join(plain(e.corpus) for e in risen)
            return Agreement("partly", f"The series diverges; perplexity rises on {rising} only, by {worst:.1%}.", None)
        return Agreement(
            "level, though divergent",
            f"The series diverges, and yet {what}: the condition is sufficient, not necessary.{_why_level(entries)}",
            None,
        )
    if verdict == MIXED:
        heads = [head for entry in entries for head in entry.heads()]
        some = sum(head["verdict"] == CONVERGES for head in heads)
        did = f"{what}" if len(flat) == len(entries) else f"perplexity rises by up to {worst:.1%}"
        return Agreement(
            "some heads converge",
            f"With the parameters that it learned {some} of {len(heads)} heads converge, so the theorem promises "
            f"nothing for the model; {did}.",
            None,
        )
    return Agreement("undecided", f"The verdict is open; {what}.", None)


def _why_level(entries: Sequence[Entry]) -> str:
    horizons = [h for h in (entry.horizon for entry in entries) if h is not None]
    if not horizons:
        return ""
    tokens, certain = min(horizons)
    return f" Its sums behave as if they converged up to about {tokens:,} tokens{'' if certain else ' at least'}."


def combined_verdict(entries: Sequence[Entry]) -> str:
    """The verdict over all trained heads of an encoding."""
    verdicts = {entry.verdict for entry in entries}
    if len(verdicts) == 1:
        return verdicts.pop()
    return MIXED if verdicts <= {CONVERGES, DIVERGES, MIXED} else "undecided"


def verdict_words(entries: Sequence[Entry]) -> str:
    verdict = combined_verdict(entries)
    if verdict == NONE:
        return "none"
    if verdict == MIXED:
        heads = [head["verdict"] for entry in entries for head in entry.heads()]
        return f"{heads.count(CONVERGES)} of {len(heads)} heads converge"
    return verdict


def field_words(entries: Sequence[Entry]) -> str:
    """The range of TRF(0.01) over all heads, if each has one."""
    fields = [head["trf"].get("0.01") for entry in entries for head in entry.heads()]
    if not fields or None in fields:
        return ""
    words = [f"{n:,}" if n < FARTHEST else "1e15 or more" for n in (min(fields), max(fields))]
    return words[0] if words[0] == words[1] else f"{words[0]} to {words[1]}"


def horizon_words(entry: Entry) -> str:
    horizon = entry.horizon
    return "" if horizon is None else f"{horizon[0]:,}" + ("" if horizon[1] else " at least")


def findings(study: Study) -> list[Finding]:
    """Everything that the study has to say, most important first."""
    said = [_convergent(study), _divergent(study), *_special(study), _leak(study), _fields(study), _inference(study)]
    return [finding for finding in [*said, _like_the_paper(study)] if finding is not None]


def leak_against_rise(study: Study) -> list[tuple[float, float, Entry]]:
    """Leak and rise of every run that has a formula, and the run: what figure and correlation are made of."""
    runs = [Entry(e.corpus, e.encoding, (record,)) for e in study.entries.values() for record in e.records]
    return [(run.leak, run.rise, run) for run in runs if run.leak is not None]


def leak_correlation(points: Sequence[tuple[float, float, Entry]]) -> float | None:
    """How well the leak orders runs as their rise does."""
    return rank_correlation([leak for leak, _, _ in points], [rise for _, rise, _ in points])


def fields_of_heads(study: Study, epsilon: str = "0.01", which: str = "trf_of_rows") -> tuple[list[float], list[float]]:
    """TRF and ERF of every head that has both; a divergent series has an infinite TRF."""
    theory, measured = [], []
    for entry in study.entries.values():
        for head in entry.heads():
            tokens = head[which].get(epsilon)
            if head["verdict"] == NONE or (tokens is None and which == "trf_of_rows"):
                continue
            theory.append(float("inf") if tokens is None else float(tokens))
            measured.append(float(head["erf"][epsilon]))
    return theory, measured


def _names(encodings: Sequence[str]) -> str:
    words = [short(e) for e in encodings]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _by_verdict(study: Study, verdict: str) -> dict[str, list[Entry]]:
    by_encoding = {e: study.of_encoding(e) for e in study.encodings}
    return {e: entries for e, entries in by_encoding.items() if entries and combined_verdict(entries) == verdict}


def _convergent(study: Study) -> Finding | None:
    some = _by_verdict(study, CONVERGES)
    if not some:
        return None
    entries = [entry for own in some.values() for entry in own]
    runs = sum(len(entry.records) for entry in entries)
    longest = max(entry.lengths[-1] / entry.training_length for entry in entries)
    worst = max(entries, key=lambda e: max(e.rises))
    ratio = max(float(row[-1] / row[0]) for entry in entries for row in entry.perplexity)
    bad = [e for e, own in some.items() if any(entry.answer == ROSE for entry in own)]
    if not bad and any(entry.answer == UNKNOWN for entry in entries):
        return Finding(
            f"{_names(list(some))} converge; whether perplexity stays level cannot be told from these {runs} runs "
            f"(at most {max(worst.rises):.1%} above its lowest)."
        )
    if not bad:
        return Finding(
            f"Sufficient: {_names(list(some))} converge, and in all {runs} runs perplexity stays level up to "
            f"{longest:g}x the training length: at most {max(worst.rises):.1%} above its lowest, and {ratio:.3f} times "
            "its value at 1x at most.",
            True,
        )
    return Finding(
        f"Of the encodings that converge, {_names(bad)} do not stay level: perplexity rises by up to "
        f"{max(worst.rises):.1%} above its lowest ({short(worst.encoding)} on {short(worst.corpus)}). "
        "The theory does not account for it.",
        False,
    )


def _divergent(study: Study) -> Finding | None:
    some = _by_verdict(study, DIVERGES)
    if not some:
        return None
    rising = {e: max(entry.rise for entry in own) for e, own in some.items() if any(x.answer == ROSE for x in own)}
    calm = [e for e, own in some.items() if all(entry.answer == STAYED for entry in own)]
    open_ = [e for e in some if e not in rising and e not in calm]
    words = []
    if rising:
        listed = ", ".join(f"{short(e)} by up to {rise:.1%}" for e, rise in rising.items())
        words.append(f"Of the encodings that diverge perplexity rises above its lowest: {listed}.")
    if calm:
        words.append(
            f"Level as far as was measured, though divergent: {_names(calm)}. "
            "The condition is sufficient, not necessary."
        )
    if open_:
        words.append(f"Whether it rises cannot be told: {_names(open_)}.")
    return Finding(" ".join(words), True if rising and not calm and not open_ else None)


def _special(study: Study) -> list[Finding]:
    said = []
    for encoding in study.encodings:
        entries = study.of_encoding(encoding)
        if entries and combined_verdict(entries) in (NONE, MIXED):
            said.append(Finding(f"{short(encoding)}: {agreement(entries).text}"))
    return said


def _leak(study: Study) -> Finding | None:
    points = leak_against_rise(study)
    rank = leak_correlation(points)
    if rank is None:
        return None
    strength = "orders" if rank >= 0.7 else "orders roughly" if rank >= 0.4 else "does not order"
    return Finding(
        f"The leak, known before training, {strength} the runs as their rise does: rank correlation {rank:.2f} over "
        f"{len(points)} runs.",
        rank >= 0.4,
    )


def _fields(study: Study) -> Finding | None:
    theory, measured = fields_of_heads(study)
    rank = rank_correlation(theory, measured)
    if rank is None:
        return None
    beside = rank_correlation(*fields_of_heads(study, which="trf"))
    more = "" if beside is None else f" ({beside:.2f} with the field of an endless row, infinite where it diverges)"
    return Finding(
        f"Theoretical and empirical receptive fields of {len(theory)} heads: rank correlation {rank:.2f}{more}.",
        rank >= 0.4,
    )


def _inference(study: Study) -> Finding | None:
    if study.speed is None:
        return None
    ratio = study.speed["relative"]
    by = {(t["protocol"], t["window"]): t["perplexity"] for t in study.speed["timings"]}
    windows = sorted(w for p, w in by if p == "sliding")
    if not windows or "sliding" not in ratio:
        return None
    theirs = published()["relative_inference_time"]["sliding_window"]
    lower = sum(by["sliding", w] < by["non-overlapping", w] for w in windows)
    cheap = f"; windowed attention costs {ratio['windowed']:.2f} times as much" if "windowed" in ratio else ""
    return Finding(
        f"Sliding window inference has the lower perplexity at {lower} of {len(windows)} windows, and takes "
        f"{ratio['sliding']:.1f} times as long as non-overlapping windows (published: {theirs}){cheap}.",
        lower == len(windows),
    )


def _like_the_paper(study: Study) -> Finding | None:
    """Do our models and the published ones rise and stay level in the same places?"""
    same, all_ = 0, 0
    other = []
    for entry in study.entries.values():
        theirs = Study.published(entry.corpus, entry.encoding)
        if theirs is None:
            continue
        all_ += 1
        if answer(float(rises(theirs)[-1]), 0.0) == entry.answer:
            same += 1
        else:
            other.append(f"{short(entry.encoding)} on {short(entry.corpus)}")
    if not all_:
        return None
    tail = "" if not other else f"; not {', '.join(other[:6])}{' and others' if len(other) > 6 else ''}"
    return Finding(
        f"In {same} of {all_} cases our small models stay level or rise as the paper's do{tail}.", same == all_
    )


def formula_of(encoding: str) -> str:
    """The formula as text, or why there is none."""
    known = zoo.find(encoding)
    return known.text if known.text is not None else known.note
