"""From a question of the page to its reply, every number computed from the formula, as plain data for JSON.

What people wait for is asked in parts: the verdict first, then numbers as they come. A part that takes too long is
cut off alone, and what was proven before it stays.
"""

from __future__ import annotations

import re
import shlex
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import exp, isfinite, log10

from farfield.explorer.question import Question
from farfield.explorer.sliders import Slider, learned_sentence, sliders
from farfield.formula import Formula, FormulaError, tree
from farfield.formula.spelling import MATHML
from farfield.models import presentation
from farfield.models.inspection import inspect
from farfield.reading import parse_json
from farfield.theory.errors import DivergenceError, OutsideCoqError, UndecidedError
from farfield.theory.fields.answer import HeadAnswer
from farfield.theory.fields.comparison import compare
from farfield.theory.fields.curves import CURVE, paper_claims, weight_curves
from farfield.theory.fields.design import design
from farfield.theory.fields.law import law
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, smallest
from farfield.theory.fields.windows import certified_window, exact_bound
from farfield.theory.sums.series import series
from farfield.theory.verdict.convergence import Verdict, check
from farfield.words import tokens as token_text
from farfield.zoo import BOUNDED, ENCODINGS, Encoding, find

Reply = Mapping[str, object]  # what becomes an object of JSON
_MOST_DIGITS = 310  # of a receptive field on the page; a longer one only by its size
_OVER = f"over 1e{_MOST_DIGITS}"
_MOMENT = 0.25  # seconds after which a part is handed over, and the rest asked for again
_SCOPE = "at every length; for each attention layer by itself, not for a network as a whole"
_NO_WINDOW = {  # why there is none at every length, by what is proven
    "bias": "at every length there is no window, since the sum diverges",
    "disperses": "at every length there is no window, since attention disperses",
    "neither": "at every length there is no window, though attention need not disperse",
    "diverges": "at every length there is no window, since the sum of the upper bound diverges",
    "undecided": "whether a window serves every length was not decided",
}


def answer(question: Question) -> Reply:
    """The answer to a question of the page."""
    return _ANSWERS[question.kind](question)


def reply(question: Question) -> tuple[Reply, str]:
    """The answer or {"error": sentence}, and the traceback of a fault of ours, for whoever runs the explorer."""
    try:
        return answer(question), ""
    except ValueError as error:
        return refusal(error), ""
    except (MemoryError, RecursionError, OverflowError):
        return {"error": "this formula needs more memory or depth than the explorer gives it"}, ""
    except Exception as error:
        sentence = f"Farfield could not answer this ({type(error).__name__}): a fault of Farfield's own"
        return {"error": sentence}, traceback.format_exc()


def refusal(error: ValueError) -> Reply:
    """A mistake in a question, as one sentence; in a formula, with the place."""
    place = {"pointer": error.pointer() if error.text else None} if isinstance(error, FormulaError) else {}
    return {"error": str(error), **place}


def zoo_list() -> list[Reply]:
    """Every named encoding, to pick from."""
    return [
        {"name": e.name, "formula": e.text, "source": e.source, "note": e.note, "bias": e.text is not None}
        for e in (*ENCODINGS.values(), *BOUNDED.values())
    ]


@dataclass(frozen=True)
class Subject:
    """An encoding that is asked about, with a value for every parameter; `formula` is None if it has no bias."""

    encoding: Encoding
    sliders: tuple[Slider, ...]
    formula: Formula | None
    verdict: Verdict

    @property
    def values(self) -> dict[str, str]:
        return {s.name: s.value for s in self.sliders}

    @property
    def head(self) -> HeadAnswer | None:
        """What is to be known of its sum and receptive fields, if it converges."""
        if self.formula is None or self.verdict.verdict != "converges":
            return None
        return HeadAnswer(None, self.values, self.formula, self.verdict)

    def bias(self, consequence: str) -> Formula:
        if self.formula is None:
            raise ValueError(f"{self.encoding.name} has no bias r(t), so {consequence}")
        return self.formula


def subject(q: Question, head: int | None = None, place: int = 0) -> Subject:
    """The encoding of a question, with its verdict; the last few are remembered."""
    return _subject(q.formulas[place], tuple(sorted(q.values[place].items())), q.heads, head or q.head, q.start)


@lru_cache(maxsize=32)
def _subject(text: str, given: tuple[tuple[str, str], ...], heads: int, head: int, start: int) -> Subject:
    encoding = find(text)
    moved = tuple(sliders(encoding, dict(given), heads, head))
    if encoding.formula is None:
        return Subject(encoding, moved, None, check(encoding))
    bound = encoding.formula.bind({s.name: s.value for s in moved})
    return Subject(encoding, moved, bound, check(bound, start=start))


# ------------------------------------------------------------------------------------------------ one encoding
def _verdict(q: Question) -> Reply:
    """The verdict with its proof, the formula, and the sliders of its parameters."""
    about = subject(q)
    encoding, formula = about.encoding, about.encoding.formula
    left = tree.apply("b" if formula is not None and formula.weight else "r")
    return {
        "name": encoding.name,
        "source": encoding.source,
        "note": encoding.note,
        "asked": encoding.asked,
        "parameters": [vars(s) for s in about.sliders],
        "learned": learned_sentence(encoding, about.sliders, q.start),
        "math": None if formula is None else MATHML.write(tree.relation(left, "=", formula.node)),
        "verdict": _proof(about.verdict),
    }


def _condition(q: Question) -> Reply:
    """The verdict with every parameter left open: the exact condition, and its proof."""
    encoding = find(q.formula)
    if encoding.formula is None or not encoding.formula.parameters:
        return {"verdict": None}
    return {"verdict": _proof(check(encoding, start=q.start, assume=q.assume))}


def _proof(verdict: Verdict) -> Reply:
    claim = "the theorem does not apply" if verdict.verdict == "not-applicable" else verdict.verdict
    return {
        "verdict": verdict.verdict,
        "said": claim if verdict.condition is None else str(verdict.condition),
        "steps": [s.mathml() for s in verdict.steps],
        "latex": verdict.latex(),
        "horizon": None if verdict.horizon is None else verdict.horizon.sentence(),
        "answer": verdict.answer,
        "many": verdict.bounds is not None,  # a bounded family
    }


def _coq(q: Question) -> Reply:
    """The proof as a file for Coq, with a name that Coq accepts; where there is none, `why` says it."""
    about = subject(q)
    ending = f"_{about.encoding.name}" if about.encoding.name in ENCODINGS else ""
    try:
        text = about.verdict.coq()
    except OutsideCoqError as error:
        return {"file": None, "text": None, "why": str(error)}
    return {"file": re.sub(r"[^A-Za-z0-9_]", "_", f"farfield{ending}") + ".v", "text": text, "why": None}


def _fields(q: Question) -> Reply:
    """The sum and the receptive fields from the largest epsilon on, as many as fit into a moment.

    `rest` epsilons are still to come: the same question with `skip` gives the next ones. Where the series does not
    converge there are none; `why` says what kept a field from being proven.
    """
    about, head = subject(q), subject(q).head
    shares = {exact_epsilon(e): e for e in (*CURVE, *EPSILONS, q.epsilon)}  # each once, as it was typed
    epsilons = [shares[share] for share in sorted(shares, reverse=True)]
    family = about.formula is not None and about.formula.is_bounded_family
    rows: list[dict[str, object]] = []
    rest, growth, why, until = 0, None, None, time.monotonic() + _MOMENT
    if head is not None:
        wanted = epsilons[q.skip :]
        try:
            for epsilon, field in zip(wanted, head.measure(wanted), strict=False):
                rows.append(_row(epsilon, field))
                if time.monotonic() > until or rows[-1]["exact"] is None:
                    break
            left = wanted[len(rows) :]
            if rows and rows[-1]["exact"] is None:  # a field only grows as epsilon falls
                rows += [_row(epsilon, None) for epsilon in left]
            else:
                rest = len(left)
            if not rest and not family:
                growth = law(head.formula, start=q.start)
        except (DivergenceError, UndecidedError) as error:
            why = str(error)
    total = float(head.total["mid"]) if head is not None and head.total is not None else None
    return {
        "table": [e for e in epsilons if e in EPSILONS or e == q.epsilon],
        "sum": None if head is None else head.enclosure,
        "total": total if total is not None and isfinite(total) else None,  # where a double holds it
        "rows": rows,
        "rest": rest,
        "law": growth,
        "why": why,
        "worst": family,  # the worst case over all members
    }


def _row(epsilon: str, field: int | None) -> dict[str, object]:
    """A receptive field: for reading, to the last digit, and as a logarithm; None is one that is far too large."""
    exact = "" if field is None else digits(field)
    if not 0 < len(exact) <= _MOST_DIGITS:
        return {"epsilon": epsilon, "tokens": _OVER, "exact": None, "log10": None}
    size = log10(float(exact[:17])) + max(0, len(exact) - 17)
    return {"epsilon": epsilon, "tokens": token_text(field), "exact": exact, "log10": size}


def _heads(q: Question) -> Reply:
    """Verdict, sum and receptive fields of each head, as many as fit into a moment; `rest` heads are still to come."""
    rows: list[Reply] = []
    last = q.heads if subject(q, 1).formula is not None else 0
    until = time.monotonic() + _MOMENT
    for number in range(q.skip + 1, last + 1):
        if rows and time.monotonic() > until:
            break
        about = subject(q, number)
        head = HeadAnswer(number, about.values, about.bias("it has no heads"), about.verdict)
        why = {}
        try:
            for _ in head.measure(EPSILONS):
                pass
        except (DivergenceError, UndecidedError) as error:
            why = {"why": str(error)}
        known = {
            "verdict": about.verdict.verdict,
            "sum": head.total_text() or None,
            "horizon": head.horizon_text or None,
        }
        fields = [_row("", n)["tokens"] for n in head.fields]
        rows.append({"head": number, "parameters": head.parameters, **known, "tokens": fields, **why})
    return {"epsilons": list(EPSILONS), "rows": rows, "rest": max(0, last - q.skip - len(rows))}


def _window(q: Question) -> Reply:
    """How many tokens a head must keep, with proof: at every length or, if the sum diverges, in a text of `context`."""
    about = subject(q)
    formula, verdict = about.bias("no window is proven"), about.verdict
    family = formula.is_bounded_family
    asked = f"for scores within ±{q.bound} and at most a share {q.epsilon} of the attention lost"
    asked = f"in the worst case over the family, {asked}" if family else asked
    try:
        if verdict.verdict == "converges":
            far = not family and _too_far(formula, q)
            tokens = _OVER if far else token_text(certified_window(formula, q.epsilon, q.bound, start=q.start))
            return {"tokens": tokens, "said": f"{asked}, {_SCOPE}"}
        if verdict.verdict != "diverges" and not family:
            return {"tokens": None, "said": "no window is proven: the series was not decided"}
        kept = certified_window(formula, q.epsilon, q.bound, q.context, q.start)
    except (DivergenceError, UndecidedError) as error:
        return {"tokens": None, "said": f"no window is proven: {error}"}
    which = "" if family else "(every token) " if kept >= q.context else "(enough) "
    end = _NO_WINDOW[(verdict.answer or verdict.verdict) if family else "bias"]
    return {"tokens": token_text(kept), "said": f"{which}in a text of {q.context} tokens, {asked}; {end}"}


def _too_far(formula: Formula, q: Question) -> bool:
    """Whether the window, which is the receptive field at a smaller share, has more digits than are shown."""
    e, m = float(exact_epsilon(q.epsilon)), min(float(exact_bound(q.bound)), 300.0)
    share, weights = e / (e + (1 - e) * exp(2 * m)), series(formula, start=q.start)
    larger = [
        Fraction(text) for text in ("0.5", "1e-1", "1e-2", "1e-4", "1e-8", "1e-16", "1e-32") if float(text) > share
    ]
    return any(len(digits(smallest(weights, x))) > _MOST_DIGITS for x in larger)


def _drawn(q: Question) -> Reply:
    """Weights, partial sums and the heat map: a description, not a proof; of a bounded family, its upper bound."""
    return weight_curves(subject(q).bias("there is nothing to draw").upper_bound, q.start, q.context)


def _claimed(q: Question) -> Reply:
    """What the paper's `draw()` would have claimed."""
    bias = subject(q).bias("draw() claims nothing")
    bias.require_one_bias("draw()")
    return paper_claims(bias, q.start, q.context, float(exact_epsilon(q.epsilon)))


# ------------------------------------------------------------------------------------------------ several, and a reach
def _pairs(q: Question) -> Reply:
    """Which of the encodings sees further, pair by pair, and why."""
    members = [subject(q, place=place) for place in range(len(q.formulas))]
    named = [(a.encoding.name + "".join(f", {k} = {v}" for k, v in a.values.items()), a.formula) for a in members]
    pairs = []
    for (a, first), (b, second) in combinations([(name, formula) for name, formula in named if formula is not None], 2):
        try:
            pair = compare(first, second, names=(a, b))
        except (DivergenceError, UndecidedError) as error:
            pairs.append({"sentence": f"{a} and {b}: not decided", "steps": [[{"words": str(error)}]], "turns": []})
            continue
        pairs.append({"sentence": pair.sentence(), "steps": [s.mathml() for s in pair.steps], "turns": pair.turns()})
    return {"pairs": pairs}


def _design(q: Question) -> Reply:
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
    call = f'ff.design({q.formula!r}, {q.reach}, "{q.epsilon}"{_given(others)})'
    command = _command("design", q.formula, others, reach=q.reach, epsilon=q.epsilon)
    return {
        **result.json()[-1],
        "tokens": token_text(result.tokens),
        "epsilon": q.epsilon,
        "code": {"command": command, "python": f"import farfield as ff\n\nprint({call}.text)"},
    }


# ------------------------------------------------------------------------------------------------ a configuration
def _inspect(q: Question) -> Reply:
    """One sentence, the layers, the cache, the bars of the figure and the notes; of an unknown model its fields."""
    if not q.configuration.strip():
        raise ValueError("paste the config.json of a model first")
    try:
        config = parse_json(q.configuration)
    except ValueError as error:
        raise ValueError(f"this cannot be read as JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError('a configuration is a table of JSON, such as {"model_type": "llama", ...}')
    inspection = inspect(config, logit_bound=q.bound or None, epsilon=q.epsilon)
    known = inspection.model is not None
    about = {"sentence": inspection.sentence, "known": known, "notes": inspection.notes}
    layers = presentation.layer_table(inspection)
    if inspection.model is None:
        return {**about, "fields": layers.rows}
    whole, bars = presentation.bars(inspection)
    cache = presentation.cache_table(inspection)
    return {
        **about,
        "layers": {"headings": layers.columns, "rows": layers.rows},
        "sentences": presentation.sentences(inspection),
        "cache": {"title": cache.title, "headings": cache.columns, "rows": cache.rows},
        "figure": {"whole": whole, "trained": inspection.model.training_length, "bars": bars},
        "command": "farfield inspect config.json" + (f" --logit-bound {q.bound} --epsilon {q.epsilon}" * bool(q.bound)),
    }


# ------------------------------------------------------------------------------------------------ the lines behind it
def _code(q: Question) -> Reply:
    """The commands and the lines of Python that give the same; `window` where one is certified."""
    about, text = subject(q), q.formula.strip()
    converges = about.verdict.verdict == "converges"
    usual = exact_epsilon(q.epsilon) in [exact_epsilon(e) for e in EPSILONS]
    command = _command("check", text, about.values, from_=q.start or None, epsilon=None if usual else q.epsilon)
    code = {"command": command, "python": _python(about, text, q, converges)}
    if converges and not q.start:
        code["window"] = _command("window", text, about.values, heads=1, logit_bound=q.bound, epsilon=q.epsilon)
    return code


def _command(verb: str, name: str, values: Mapping[str, str], **options: str | int | None) -> str:
    """A line for a shell; a formula and a value are quoted, however they were typed."""
    words = ["farfield", verb, name]
    for parameter, value in values.items():
        words += ["--set", f"{parameter}={value}"]
    for option, setting in options.items():
        if setting is not None:
            words += [f"--{option.rstrip('_').replace('_', '-')}", str(setting)]
    return shlex.join(words)


def _python(about: Subject, text: str, q: Question, converges: bool) -> str:
    options = (f", start={q.start}" if q.start else "") + (_given(about.values) if about.formula is not None else "")
    lines = [
        "import farfield as ff",
        "",
        f'answer = ff.answer({text!r}, epsilons=["{q.epsilon}"]{options})',
        "print(answer)",
    ]
    if converges:
        lines.append("print(*answer.heads[0].fields)")
        lines.append(f'print(ff.windows({text!r}, "{q.epsilon}", "{q.bound}", 1{options}).heads[0].tokens)')
    return "\n".join(lines)


def _given(values: Mapping[str, str]) -> str:
    """The argument that gives parameters their values."""
    return f", parameters={dict(values)!r}" if values else ""


_ANSWERS = {
    "verdict": _verdict,
    "code": _code,
    "coq": _coq,
    "fields": _fields,
    "window": _window,
    "drawn": _drawn,
    "claimed": _claimed,
    "condition": _condition,
    "heads": _heads,
    "compare": _pairs,
    "design": _design,
    "inspect": _inspect,
}
