"""What the study says, in sentences that are computed from its numbers: other data, other words.

Claims follow the mathematics. That a series converges promises, for one layer with bounded logits, that some fixed
window loses as little as is wanted; it does not promise that perplexity stays level. The equivalence is about infinity,
the leak about the length at hand. What a study is too small to tell gets no tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from farfield import zoo
from farfield.measure.predictions import FARTHEST, joint_verdict
from farfield.measure.rise import LEAST_GAIN, LEVEL, ROSE, STAYED, UNKNOWN, answer, gains, rises
from farfield.measure.statistics import two_levels
from farfield.measure.values import Verdict
from farfield.study.entries import CONVERGES, DIVERGES, MIXED, NONE, Entry, Study
from farfield.study.evidence import (
    Evidence,
    by_leak,
    by_paper_leak,
    by_verdict,
    correlated,
    known_before_training,
    of_change,
)
from farfield.study.published import published
from farfield.study.record import PLAIN, SLIDING
from farfield.words import listing, percent, short, token_range, tokens, with_error

ENOUGH_SEGMENTS = 40  # of text, for errors that can be believed


@dataclass(frozen=True)
class Finding:
    """One statement; `holds` is None where it is no question of yes or no, or where it cannot be told."""

    text: str
    holds: bool | None = None


def too_small(study: Study) -> list[str]:
    """Why this study cannot tell what it is made to tell, one sentence each; empty if it can."""
    reasons = []
    if study.preset == "tiny":
        reasons.append(
            "The preset tiny trains for seconds: it tests the machinery, and its models have learned nothing."
        )
    level = [e for e in study.entries.values() if e.answer != ROSE]  # what rose had something to lose
    weak = [e for e in level if e.gain is not None and not gains(*e.gain)]
    if weak and 2 * len(weak) >= len(level):
        least, most = (choose(e.gain[0] for e in weak if e.gain) for choose in (min, max))
        reasons.append(
            f"{len(weak)} of {len(level)} models that do not rise gain less than {LEAST_GAIN} nats from context within "
            f"the training length ({least:.2f} to {most:.2f}): they cannot lose what they do not use."
        )
    few = min(record.test.segments for record in study.records)
    if few < ENOUGH_SEGMENTS:
        reasons.append(f"The test text has {few} segments; errors can be believed from about {ENOUGH_SEGMENTS} on.")
    return reasons


# ---------------------------------------------------------------------------------------------- one encoding
def statement(entries: Sequence[Entry]) -> str:
    """Theory and experiment for one encoding, over all corpora and seeds, in a sentence."""
    verdict, outcome = combined_verdict(entries), joint_answer(entries)
    worst = max(entries, key=lambda entry: entry.rise)
    did = {
        STAYED: f"perplexity stays level (at {worst.farthest:g}x at most "
        f"{percent(worst.rise, worst.rise_error)} above its lowest)",
        ROSE: f"perplexity rises by up to {percent(worst.rise, worst.rise_error)} at {worst.farthest:g}x",
        UNKNOWN: f"whether perplexity rises cannot be told ({percent(worst.rise, worst.rise_error)} at most)",
    }[outcome]
    leaks = [entry.leak for entry in entries if entry.leak is not None]
    leak = f" Its leak is {leak_words(leaks)}." if leaks else ""
    if verdict == NONE:
        return f"It is no bias by distance, and the theory says nothing of it; {did}."
    if verdict == CONVERGES and outcome == ROSE:
        return (
            f"The series converges, and yet {did}: convergence promises a window for one layer with bounded logits, "
            f"not that perplexity stays level at this length.{leak}"
        )
    if verdict == DIVERGES and outcome == STAYED:
        until = _until(entries)
        return (
            f"The series diverges, and yet {did}: it diverges at infinity, and this length is not there.{leak}{until}"
        )
    if verdict == MIXED:
        return f"With what it learned {verdict_words(entries)}; {did}.{leak}"
    word = {CONVERGES: "The series converges", DIVERGES: "The series diverges"}.get(verdict, "The verdict is open")
    return f"{word}; {did}.{leak}"


def leak_words(leaks: Sequence[float]) -> str:
    """One leak, or the range of several."""
    low, high = with_error(min(leaks), digits=3), with_error(max(leaks), digits=3)
    return low if low == high else f"{low} to {high}"


def _until(entries: Sequence[Entry]) -> str:
    horizons = [h for h in (entry.horizon for entry in entries) if h is not None]
    if not horizons:
        return ""
    least = min(horizons, key=lambda horizon: horizon.tokens)
    end = "" if least.certain else " at least"
    return f" Its sums behave as if they converged up to about {tokens(least.tokens)} tokens{end}."


def joint_answer(entries: Sequence[Entry]) -> str:
    """ "rose" if it did on some corpus, "level" if it is on all, else "cannot be told"."""
    answers = {entry.answer for entry in entries}
    return ROSE if ROSE in answers else STAYED if answers == {STAYED} else UNKNOWN


def combined_verdict(entries: Sequence[Entry]) -> Verdict:
    """The verdict over all trained heads of an encoding."""
    return joint_verdict(entry.verdict for entry in entries)


def verdict_words(entries: Sequence[Entry]) -> str:
    verdict = combined_verdict(entries)
    if verdict == NONE:
        return "none"
    if verdict == MIXED:
        heads = [head.verdict for entry in entries for head in entry.heads]
        return f"{heads.count(CONVERGES)} of {len(heads)} heads converge"
    return verdict


def field_words(entries: Sequence[Entry]) -> str:
    """The range of TRF(0.01) over all heads, if each has one."""
    heads = [head for entry in entries for head in entry.heads]
    fields = [field for head in heads if (field := head.trf.get("0.01")) is not None]
    if not fields or len(fields) < len(heads):
        return ""
    return token_range(fields) + (" or more" if max(fields) >= FARTHEST else "")


def horizon_words(entry: Entry) -> str:
    horizon = entry.horizon
    return "" if horizon is None else tokens(horizon.tokens) + ("" if horizon.certain else " at least")


def formula_of(encoding: str) -> str:
    """The formula as text, or why there is none."""
    entry = zoo.find(encoding)
    return entry.text if entry.text is not None else entry.note


# ---------------------------------------------------------------------------------------------- the whole study
def take_home(study: Study, evidence: Evidence) -> str:
    """The one sentence that a reader should remember; it says so where the study cannot tell."""
    if too_small(study):
        return "This study is too small to tell anything."
    dose, verdict = evidence.dose, evidence.dose_by_verdict
    if dose is None:
        return _levels(study).text
    beside = "" if verdict is None else f", with the verdict {verdict.text}"
    sizes = _extremes(study)
    follows = "follows the leak" + (
        "" if verdict is None or dose.value > abs(verdict.value) else " no better than the verdict"
    )
    return (
        f"What happens at {study.farthest:g} times the training length {follows}: over {dose.points} interventions on "
        f"trained models the far-field damage has a rank correlation of {dose.text} with it{beside}{sizes}."
    )


def _extremes(study: Study) -> str:
    """The largest rise among biases, and the largest among those that are level."""
    entries = [e for e in study.entries.values() if e.leak is not None]
    risen = [e for e in entries if e.answer == ROSE]
    if not risen:
        return ""
    most = max(risen, key=lambda e: e.rise)
    least = min(entries, key=lambda e: e.leak or 0.0)
    return (
        f"; {short(most.encoding)} (leak {most.leak:.2f}) rises by {percent(most.rise, most.rise_error)} on "
        f"{short(most.corpus)}, {short(least.encoding)} (leak {least.leak:.2f}) by "
        f"{percent(least.rise, least.rise_error)}"
    )


def findings(study: Study, evidence: Evidence) -> list[Finding]:
    """Everything that the study has to say, most important first; without ticks if it is too small to tell."""
    statements = [
        _levels(study),
        _dose(study, evidence),
        _cure(study),
        *_against_the_verdict(study),
        _leak(study, evidence),
        _fields(evidence),
        _inference(study),
        _like_the_paper(study),
    ]
    small = bool(too_small(study))
    return [replace(finding, holds=None) if small else finding for finding in statements if finding is not None]


def _levels(study: Study) -> Finding:
    """Which encodings stay level, which rise and by how much, and of which it cannot be told."""
    words = []
    by_answer: dict[str, list[str]] = {}
    for encoding in study.encodings:
        if entries := study.of_encoding(encoding):
            by_answer.setdefault(joint_answer(entries), []).append(encoding)
    far = f"{study.farthest:g}x the training length"
    if level := by_answer.get(STAYED):
        worst = max((e for name in level for e in study.of_encoding(name)), key=lambda e: e.rise)
        words.append(
            f"Up to {far} perplexity stays level for {listing(level)}: at most "
            f"{percent(worst.rise, worst.rise_error)} above its lowest."
        )
    if risen := by_answer.get(ROSE):
        tops = {name: max(study.of_encoding(name), key=lambda e: e.rise) for name in risen}
        listed = ", ".join(f"{short(n)} by {percent(e.rise, e.rise_error)}" for n, e in tops.items())
        where = "" if len(study.corpora) == 1 else " (each on the text where most)"
        words.append(f"It rises for {listed}{where}.")
    if unknown := by_answer.get(UNKNOWN):
        words.append(f"It cannot be told for {listing(unknown)}.")
    return Finding(" ".join(words))


def _dose(study: Study, evidence: Evidence) -> Finding | None:
    dose, verdict = evidence.dose, evidence.dose_by_verdict
    if dose is None:
        return None
    control = correlated(evidence.control.interventions, by_leak)
    within = evidence.within_models
    inside = f" (within single models {min(within):.2f} to {max(within):.2f})" if within else ""
    beside = "" if verdict is None else f"; with the verdict on the changed series it is {verdict.text}"
    sizes = ([point.seen for point in one.interventions] for one in (evidence, evidence.control))
    spread, still = (f"from {percent(min(x))} to {percent(max(x))}" for x in sizes)
    untrained = (
        ""
        if control is None
        else f" Untrained, the damage to the same networks is {still} (rank correlation {control.value:.2f} with "
        f"their own leak; {_control_sample(study)})."
    )
    change = correlated(evidence.interventions, by_leak, of_change)
    against = "" if change is None else f"; with the change against 1x in its place {change.text}"
    return Finding(
        f"Changing nothing but the bias beyond the training length changes the far-field damage D (perplexity at "
        f"{study.farthest:g}x over that with heads cut at the training length, minus 1) {spread}: its rank correlation "
        f"with the leak of what was done is {dose.text}{inside} over {dose.points} interventions{against}{beside}."
        f"{untrained}",
        None if dose.positive is None else dose.positive and (verdict is None or dose.value > abs(verdict.value)),
    )


def _control_sample(study: Study) -> str:
    """What the untrained networks were measured on: less than the trained ones."""
    few = min(record.control.segments for record in study.records)
    segments = min(record.test.segments for record in study.records)
    first = study.records[0]
    lengths = f"{len(first.control.lengths)} of the {len(first.lengths)} lengths"
    return f"on {few} of the {segments} segments of text, at {lengths}"


def _cure(study: Study) -> Finding | None:
    """What is left of the rise when heads are cut at the training length."""
    risen = [e for e in study.entries.values() if e.answer == ROSE and e.leak is not None]
    if not risen:
        return None
    damages = ", ".join(
        f"{short(e.encoding)}{'' if len(study.corpora) == 1 else f' on {short(e.corpus)}'} {percent(*e.damage)}"
        for e in sorted(risen, key=lambda e: -e.damage[0])[:6]
    )
    before = two_levels([float(e.relative[-1] - 1) for e in risen], [0.0] * len(risen))[0]
    after = two_levels([e.cut[0] for e in risen], [0.0] * len(risen))[0]
    part = "part of " if after > LEVEL else ""
    return Finding(
        f"The far field does {part}the damage: with the same weights and tokens, perplexity with all keys is above "
        f"that with every head cut at the training length by {damages}. Such a window turns a change of "
        f"{percent(before)} against 1x into {percent(after)}, on average over the biases that rise.",
        all(e.damage[0] > 2 * (e.damage[1] or 0.0) for e in risen),
    )


def _against_the_verdict(study: Study) -> list[Finding]:
    """Encodings whose verdict and outcome point different ways: what the verdict does not promise."""
    statements = []
    for encoding in study.encodings:
        entries = study.of_encoding(encoding)
        verdict = combined_verdict(entries) if entries else NONE
        odd = (verdict, joint_answer(entries)) in ((CONVERGES, ROSE), (DIVERGES, STAYED)) if entries else False
        if odd or verdict in (MIXED,):
            statements.append(Finding(f"{short(encoding)}: {statement(entries)}"))
    return statements


def _leak(study: Study, evidence: Evidence) -> Finding | None:
    rank = evidence.leak
    if rank is None:
        return None
    points = evidence.models
    beside = [
        ("the verdict alone gives", correlated(points, by_verdict)),
        ("the leak in the paper's geometry (512 to 9,216 tokens)", correlated(points, by_paper_leak)),
    ]
    listed = ", ".join(f"{words} {correlation.text}" for words, correlation in beside if correlation is not None)
    untrained = evidence.control.models
    control = correlated(untrained, by_leak)
    ranked = "" if control is None else f"rank correlation {control.text} with their own leak; "
    models = [(e, entries[0]) for e in study.encodings if (entries := study.of_encoding(e))]
    learned = [e for e, entry in models if zoo.find(e).formula is not None and not known_before_training(entry)]
    late = f" That of {listing(learned)} is known only after training." if learned else ""
    largest = max((abs(point.seen) for point in untrained), default=0.0)
    return Finding(
        f"Over {rank.points} models the leak has a rank correlation of {rank.text} with the rise"
        f"{'; ' if listed else ''}{listed}. Untrained, the same networks rise by at most {percent(largest)} "
        f"({ranked}{_control_sample(study)}). "
        f"The leak is known before training where nothing of the encoding is learned.{late}",
        rank.positive,
    )


def _fields(evidence: Evidence) -> Finding | None:
    if not evidence.fields_text:
        return None
    return Finding(
        f"Theoretical and empirical receptive fields of {len(evidence.heads())} heads: with content logits of 0 their "
        f"rank correlation is 1 by construction; {evidence.fields_text}. Nothing is claimed from it."
    )


def _inference(study: Study) -> Finding | None:
    if study.speed is None:
        return None
    ratio = study.speed.relative
    by = {(timing.protocol, timing.window): timing.perplexity for timing in study.speed.timings}
    windows = [window for way, window in by if way == SLIDING and (PLAIN, window) in by]
    if not windows or SLIDING not in ratio:
        return None
    theirs = published()["relative_inference_time"]["sliding_window"]
    scored = min(timing.tokens for timing in study.speed.timings)
    lower = sum(by[SLIDING, window] < by[PLAIN, window] for window in windows)
    cheap = f"; windowed attention costs {with_error(ratio['windowed'])} times as much" if "windowed" in ratio else ""
    return Finding(
        f"On the first {tokens(scored)} test tokens sliding window inference has the lower perplexity at {lower} of "
        f"{len(windows)} windows, and takes {with_error(ratio[SLIDING], digits=1)} times as long as non-overlapping "
        f"windows (published: {theirs}){cheap}.",
        lower == len(windows),
    )


def _like_the_paper(study: Study) -> Finding | None:
    """Do our models and the published ones rise and stay level in the same places?"""
    same, compared = 0, 0
    other = []
    for entry in study.entries.values():
        theirs = entry.published
        if theirs is None:
            continue
        compared += 1
        if answer(float(rises(theirs)[-1]), 0.0) == entry.answer:
            same += 1
        else:
            other.append(f"{short(entry.encoding)} on {short(entry.corpus)} ({entry.answer})")
    if not compared:
        return None
    tail = "" if not other else f"; not {', '.join(other[:6])}{' and others' if len(other) > 6 else ''}"
    return Finding(
        f"In {same} of {compared} cases our small models stay level or rise as the paper's do{tail}.", same == compared
    )
