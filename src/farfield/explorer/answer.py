"""From a question to its answer: plain data that the page shows, every number computed from the formula.

What a person waits for is asked in parts: the verdict first, then numbers as they come. A part that takes too long is
cut off alone, and what was proven before it stays.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import exp, isfinite, log10
from typing import Any

from farfield.explorer import lines
from farfield.explorer.numbers import curves, paper_claims
from farfield.explorer.parameters import Slider, learned_sentence, sliders
from farfield.explorer.pasted import inspected
from farfield.explorer.question import Question
from farfield.formula import Formula, build
from farfield.formula.mathml import mathml
from farfield.theory.errors import DivergenceError, OutsideCoqError, UndecidedError
from farfield.theory.fields.comparison import compare
from farfield.theory.fields.design import design
from farfield.theory.fields.law import law
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, field_of, smallest
from farfield.theory.fields.summary import shown_number, shown_sum
from farfield.theory.fields.windows import exact_bound, smallest_window
from farfield.theory.fields.worst import WorstCase, worst_said
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import Series, series, sum_json
from farfield.theory.verdict.biases import upper_envelope
from farfield.theory.verdict.convergence import Verdict, check
from farfield.zoo import ENCODINGS, Encoding, find
from farfield.zoo.bounded_encodings import CLASSES

_CURVE = tuple(f"{m}e-{n}" for n in range(1, 13) for m in (5, 2, 1))
_MOST_DIGITS = 310  # of a receptive field on the page; a longer one only by its size
_OVER = f"over 1e{_MOST_DIGITS}"
_MOMENT = 0.25  # seconds after which a part is handed over, and the rest asked for again
_SCOPE = "for each attention layer by itself, not for a network as a whole"
_AT_EVERY_LENGTH = {  # of a class of biases that is not windowed
    "disperses": "at every length there is no window, since attention disperses",
    "neither": "at every length there is no window, though attention need not disperse",
    "diverges": "at every length there is no window, since the sum of the upper envelope diverges",
    "undecided": "whether a window serves every length was not decided",
}


def answer(question: Question) -> dict[str, Any]:
    """The answer to a question of the page."""
    return _ANSWERS[question.kind](question)


def zoo_list() -> list[dict[str, Any]]:
    """Every named encoding, to pick from."""
    return [
        {"name": e.name, "formula": e.text, "source": e.source, "note": e.note, "bias": e.text is not None}
        for e in (*ENCODINGS.values(), *CLASSES.values())
    ]


@dataclass(frozen=True)
class Subject:
    """An encoding that is asked about, every parameter with a value; `formula` is None if it has no bias."""

    encoding: Encoding
    sliders: tuple[Slider, ...]
    formula: Formula | None
    verdict: Verdict

    @property
    def values(self) -> dict[str, str]:
        return {s.name: s.value for s in self.sliders}


def subject(q: Question, head: int | None = None) -> Subject:
    """The encoding of a question, with its verdict; the last few are remembered."""
    return _subject(q.formula, tuple(sorted(q.given.items())), q.heads, head or q.head, q.start)


@lru_cache(maxsize=32)
def _subject(text: str, given: tuple[tuple[str, str], ...], heads: int, head: int, start: int) -> Subject:
    encoding = find(text)
    moved = tuple(sliders(encoding, dict(given), heads, head))
    if encoding.formula is None:
        return Subject(encoding, moved, None, check(encoding))
    bound = encoding.formula.bind({s.name: s.value for s in moved})
    return Subject(encoding, moved, bound, check(bound, start=start))


@lru_cache(maxsize=32)
def _series(formula: Formula, start: int) -> Series:
    return series(formula, start=start)


@lru_cache(maxsize=32)
def _worst(encoding: Encoding, formula: Formula, context: int | None, start: int) -> WorstCase:
    return WorstCase(encoding, formula, context, start)


def _bias(one: Subject, what: str) -> Formula:
    if one.formula is None:
        raise ValueError(f"{one.encoding.name} has no bias r(t), so {what}")
    return one.formula


# ------------------------------------------------------------------------------------------------ one encoding
def verdict(q: Question) -> dict[str, Any]:
    """The verdict with its proof, the formula, and the sliders of its parameters."""
    one = subject(q)
    encoding = one.encoding
    return {
        "name": encoding.name,
        "source": encoding.source,
        "note": encoding.note,
        "asked": encoding.asked,
        "parameters": [s.json() for s in one.sliders],
        "learned": learned_sentence(encoding, one.sliders, q.start),
        "math": None if encoding.formula is None else _equation(encoding.formula),
        "verdict": _verdict(one.verdict),
    }


def code(q: Question) -> dict[str, Any]:
    """The commands and the lines of Python that give the same."""
    one = subject(q)
    return lines.code(one.encoding, q.formula.strip(), one.values, q, one.verdict.verdict)


def coq(q: Question) -> dict[str, Any]:
    """The proof as a file for Coq, with a name that Coq accepts; where there is none, `why` says it."""
    one = subject(q)
    ending = f"_{one.encoding.name}" if one.encoding.name in ENCODINGS else ""
    try:
        text = one.verdict.coq()
    except OutsideCoqError as error:
        return {"file": None, "text": None, "why": str(error)}
    return {"file": re.sub(r"[^A-Za-z0-9_]", "_", f"farfield{ending}") + ".v", "text": text, "why": None}


def fields(q: Question) -> dict[str, Any]:
    """The sum and the receptive fields from the largest epsilon on, as many as fit into a moment.

    `rest` epsilons are still to come: the same question with `skip` gives the next ones. Where the series does not
    converge there are none; `why` says what kept a field from being proven.
    """
    one = subject(q)
    table = [e for e in _epsilons(q.epsilon) if e in EPSILONS or e == q.epsilon]
    out: dict[str, Any] = {"table": table, "sum": None, "total": None, "rows": [], "rest": 0, "law": None, "why": None}
    out["worst"] = None  # of a class of biases: whether members attain it, in words
    if one.formula is None or one.verdict.verdict != "converges":
        return out
    wanted = _epsilons(q.epsilon)[q.skip :]
    until = time.monotonic() + _MOMENT
    try:
        field = field_of(one.formula, start=q.start, encoding=one.encoding)
        if one.formula.is_class:
            out["worst"] = worst_said(_worst(one.encoding, one.formula, None, q.start).exact)
        else:
            total = sum_json(_series(one.formula, q.start))
            drawn = float(total["mid"])  # where a double holds it
            out |= {"sum": f"{total['mid']} +/- {total['rad']}", "total": drawn if isfinite(drawn) else None}
        for e in wanted:
            if out["rows"] and (time.monotonic() > until or out["rows"][-1]["tokens"] == _OVER):
                break
            out["rows"].append(_row(e, field(exact_epsilon(e))))
        left = wanted[len(out["rows"]) :]
        if left and out["rows"][-1]["tokens"] == _OVER:  # a field only grows as epsilon falls
            out["rows"] += [{"epsilon": e, "tokens": _OVER, "exact": None, "log10": None} for e in left]
        elif left:
            out["rest"] = len(left)
        if not out["rest"] and not one.formula.is_class:
            out["law"] = law(one.formula, start=q.start)
    except (DivergenceError, UndecidedError) as error:
        out["why"] = str(error)
    return out


def window(q: Question) -> dict[str, Any]:
    """How many tokens a head must keep, with proof: at every length or, if the sum diverges, in a text of `context`."""
    one = subject(q)
    formula = _bias(one, "no window is proven")
    asked = f"for scores within ±{q.bound} and at most a share {q.epsilon} of the attention lost"
    if formula.is_class:
        return _worst_window(one, formula, q, asked)
    if one.verdict.verdict == "diverges":
        kept = smallest_window(Row(formula, q.context, q.start), q.epsilon, q.bound)
        which = "every token" if kept >= q.context else "enough"
        end = "at every length there is no window, since the sum diverges"
        return {"tokens": digits(kept), "said": f"({which}) in a text of {q.context} tokens, {asked}; {end}"}
    if one.verdict.verdict != "converges":
        return {"tokens": None, "said": "no window is proven: the series was not decided"}
    weights = _series(formula, q.start)
    try:
        tokens = _OVER if _too_far(weights, q) else shown_number(digits(smallest_window(weights, q.epsilon, q.bound)))
    except UndecidedError as error:
        return {"tokens": None, "said": str(error)}
    return {"tokens": tokens, "said": f"{asked}, at every length; {_SCOPE}"}


def _worst_window(one: Subject, formula: Formula, q: Question, asked: str) -> dict[str, Any]:
    """The window of a class of biases in the worst case, at every length or in a text of `context` tokens."""
    eps, m = exact_epsilon(q.epsilon), exact_bound(q.bound)
    try:
        if one.verdict.verdict == "converges":
            tokens = _worst(one.encoding, formula, None, q.start).smallest(eps, m, strict=False)
            return {
                "tokens": digits(tokens),
                "said": f"in the worst case over the class, {asked}, at every length; {_SCOPE}",
            }
        tokens = _worst(one.encoding, formula, q.context, q.start).smallest(eps, m, strict=False)
    except (DivergenceError, UndecidedError) as error:
        return {"tokens": None, "said": f"no window is proven: {error}"}
    end = _AT_EVERY_LENGTH[one.verdict.answer or one.verdict.verdict]
    said = f"in the worst case over the class, in a text of {q.context} tokens, {asked}; {end}"
    return {"tokens": digits(tokens), "said": said}


def drawn(q: Question) -> dict[str, Any]:
    """Weights, partial sums and the heat map: what is described, and not proven; of a class, its upper envelope."""
    one = subject(q)
    bias = _bias(one, "there is nothing to draw")
    if not bias.is_class:
        return curves(bias, q.start, q.context)
    try:
        return curves(upper_envelope(one.encoding, bias), q.start, q.context)
    except UndecidedError as error:
        raise ValueError(f"{error}, so there is nothing to draw") from None


def claimed(q: Question) -> dict[str, Any]:
    """What the paper's `draw()` would have claimed."""
    bias = _bias(subject(q), "draw() claims nothing")
    if bias.is_class:
        raise ValueError("draw() is given the weights of one bias, and this is a class of biases")
    return paper_claims(bias, q.start, q.context, q.epsilon)


def condition(q: Question) -> dict[str, Any]:
    """The verdict with every parameter left open: the exact condition, and its proof."""
    encoding = find(q.formula)
    if encoding.formula is None or not encoding.formula.parameters:
        return {"verdict": None}
    return {"verdict": _verdict(check(encoding, start=q.start))}


def heads(q: Question) -> dict[str, Any]:
    """Verdict, sum and receptive fields of each head, as many as fit into a moment; `rest` heads are still to come."""
    rows: list[dict[str, Any]] = []
    last = q.heads if subject(q, 1).formula is not None else 0
    until = time.monotonic() + _MOMENT
    for head in range(q.skip + 1, last + 1):
        if rows and time.monotonic() > until:
            break
        one = subject(q, head)
        assert one.formula is not None
        horizon = one.verdict.horizon
        row = {"head": head, "parameters": one.values, "verdict": one.verdict.verdict, "sum": None, "tokens": []}
        row["horizon"] = None if horizon is None else f"{horizon.tokens}{'' if horizon.certain else ' at least'}"
        if one.verdict.verdict == "converges":
            try:
                field = field_of(one.formula, start=q.start, encoding=one.encoding)
                if not one.formula.is_class:
                    row["sum"] = shown_sum(sum_json(_series(one.formula, q.start))["mid"], 6)
                row["tokens"] = [_row(e, field(exact_epsilon(e)))["tokens"] for e in EPSILONS]
            except (DivergenceError, UndecidedError) as error:
                row["why"] = str(error)
        rows.append(row)
    return {"epsilons": list(EPSILONS), "rows": rows, "rest": max(0, last - q.skip - len(rows))}


# ------------------------------------------------------------------------------------------------ several, and a reach
def pairs(q: Question) -> dict[str, Any]:
    """Which of the encodings sees further, pair by pair, and why."""
    members = []
    for text, given in zip(q.formulas, q.values, strict=True):
        one = _subject(text, tuple(sorted(given.items())), q.heads, q.head, q.start)
        if one.formula is not None:
            label = one.encoding.name + "".join(f", {k} = {v}" for k, v in one.values.items())
            members.append((label, one.formula))
    out = []
    for (a, first), (b, second) in combinations(members, 2):
        try:
            pair = compare(first, second, names=(a, b))
        except (DivergenceError, UndecidedError) as error:
            out.append({"sentence": f"{a} and {b}: not decided", "steps": [[{"words": str(error)}]], "turns": []})
            continue
        out.append({"sentence": pair.sentence(), "steps": [s.mathml() for s in pair.steps], "turns": pair.turns()})
    return {"pairs": out}


def designed(q: Question) -> dict[str, Any]:
    """The value of one parameter for which the receptive field is the wanted one, proven."""
    encoding = find(q.formula)
    if encoding.formula is None:
        raise ValueError(f"{encoding.name} has no bias r(t), so there is nothing to design")
    names = encoding.formula.parameters
    if not names:
        raise ValueError(f"{encoding.name} has no parameter that a reach could decide")
    chosen = q.parameter or names[0]
    if chosen not in names:
        raise ValueError(f"the formula has no parameter {chosen[:20]!r}: its parameters are {', '.join(names)}")
    others = {s.name: s.value for s in sliders(encoding, q.given, q.heads, q.head) if s.name != chosen}
    result = design(encoding, q.reach, q.epsilon, parameters=others)
    return {
        "parameter": chosen,
        "value": result.text,
        "low": result.low,
        "high": result.high,
        "tokens": digits(result.tokens),
        "epsilon": q.epsilon,
        "code": lines.design_code(q.formula, others, q.reach, q.epsilon),
    }


# ------------------------------------------------------------------------------------------------ parts of an answer
def _equation(formula: Formula) -> list[Any]:
    """A formula with what it is on its left: r(t) = ... or b(t) = ..."""
    return mathml(build.relation(build.applied("b" if formula.weight else "r"), "=", formula.node))


def _verdict(verdict: Verdict) -> dict[str, Any]:
    said = {"not-applicable": "the theorem does not apply"}.get(verdict.verdict, verdict.condition or verdict.verdict)
    return {
        "verdict": verdict.verdict,
        "said": said,
        "steps": [s.mathml() for s in verdict.steps],
        "latex": verdict.latex(),
        "horizon": None if verdict.horizon is None else verdict.horizon.sentence(),
        "answer": verdict.answer,
        "many": verdict.envelope is not None,  # a class of biases
    }


def _epsilons(chosen: str) -> list[str]:
    """Those of the table, of the curve, and the chosen one, from the largest on, each once."""
    values: dict[Fraction, str] = {exact_epsilon(e): e for e in (*_CURVE, *EPSILONS, chosen)}
    return [values[e] for e in sorted(values, reverse=True)]


def _row(epsilon: str, tokens: int) -> dict[str, Any]:
    exact = digits(tokens)
    if len(exact) > _MOST_DIGITS:
        return {"epsilon": epsilon, "tokens": _OVER, "exact": None, "log10": None}
    size = log10(float(exact[:17])) + max(0, len(exact) - 17)
    return {"epsilon": epsilon, "tokens": shown_number(exact), "exact": exact, "log10": size}


def _too_far(weights: Any, q: Question) -> bool:
    """Whether the window, which is the receptive field at a smaller share, has more digits than are shown."""
    e, m = float(exact_epsilon(q.epsilon)), min(float(exact_bound(q.bound)), 300.0)
    share = e / (e + (1 - e) * exp(2 * m))
    larger = [exact_epsilon(x) for x in ("0.5", "1e-1", "1e-2", "1e-4", "1e-8", "1e-16", "1e-32") if float(x) > share]
    return any(len(digits(smallest(weights, x))) > _MOST_DIGITS for x in larger)


_ANSWERS = {
    "verdict": verdict,
    "code": code,
    "coq": coq,
    "fields": fields,
    "window": window,
    "drawn": drawn,
    "claimed": claimed,
    "condition": condition,
    "heads": heads,
    "compare": pairs,
    "design": designed,
    "inspect": inspected,
}
