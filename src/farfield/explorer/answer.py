"""From a question to its answer: plain data that the page shows, every number computed from the formula."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import exp, log10
from typing import Any

from farfield.explorer import lines
from farfield.explorer.numbers import described
from farfield.explorer.parameters import sliders
from farfield.explorer.question import Question
from farfield.formula import Formula, build
from farfield.formula.mathml import mathml
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.comparison import compare
from farfield.theory.fields.design import design
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, smallest
from farfield.theory.fields.summary import Fields, fields, shown_number
from farfield.theory.fields.windows import exact_bound, smallest_window
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import series
from farfield.theory.verdict.convergence import Verdict, check
from farfield.zoo import ENCODINGS, Encoding, find

_CURVE = [f"{m}e-{n}" for n in range(1, 13) for m in (5, 2, 1)]
_MOST_DIGITS = 310  # of a receptive field on the page; a longer one only by its size
_SCOPE = "for each attention layer by itself, not for a network as a whole"


def answer(question: Question) -> dict[str, Any]:
    """The answer to a question of the page."""
    return _ANSWERS[question.kind](question)


def zoo_list() -> list[dict[str, Any]]:
    """Every named encoding, to pick from."""
    return [
        {"name": e.name, "formula": e.text, "source": e.source, "note": e.note, "bias": e.text is not None}
        for e in ENCODINGS.values()
    ]


def encoding(q: Question) -> dict[str, Any]:
    """All about one encoding with every parameter given its value."""
    found = find(q.formula)
    moved = sliders(found, q.given, q.heads, q.head)
    out: dict[str, Any] = {
        "name": found.name, "source": found.source, "note": found.note, "start": q.start,
        "named": found.name in ENCODINGS, "parameters": [s.json() for s in moved],
    }  # fmt: skip
    used = {s.name: s.text for s in moved}
    if found.formula is None:
        verdict = check(found)
        return out | {"verdict": _verdict(verdict), "code": _code(q, found, used, None)}
    bound = found.formula.bind(used)
    verdict = check(bound, start=q.start)
    chosen = exact_epsilon(q.epsilon)
    epsilons = sorted(
        [*(e for e in EPSILONS if exact_epsilon(e) != chosen), q.epsilon], key=exact_epsilon, reverse=True
    )
    curve = _curve(bound, verdict, q.start)
    beyond = exact_epsilon(curve["beyond"] or "1e-9999")
    short = [e for e in epsilons if exact_epsilon(e) > beyond]  # a field only grows as epsilon falls
    seen = _fields(bound, verdict, short, q.start)
    exact = seen.heads[0].tokens
    shown: list[str | None] = [shown_number(n) for n in exact] or [None for _ in short]
    shown += [f"over 1e{_MOST_DIGITS}" for _ in epsilons[len(short) :]]
    drawn = described(bound, q.start, q.context, epsilons)
    claimed = drawn["draw"]["claims"] if drawn["draw"] else [None for _ in epsilons]
    chosen_row = epsilons.index(q.epsilon)
    return out | {
        "math": _equation(found.formula),
        "bound_math": _equation(bound) if used else None,
        "verdict": _verdict(verdict),
        "sum": seen.heads[0].exact_total,
        "total": None if seen.heads[0].total is None else float(seen.heads[0].total["mid"]),
        "notes": seen.notes,
        "table": [
            {"epsilon": e, "tokens": shown[i], "exact": exact[i] if i < len(exact) else None, "draw": claimed[i]}
            for i, e in enumerate(epsilons)
        ],
        "said": _said_of_draw(q, verdict, shown[chosen_row], drawn["draw"], chosen_row),
        "curve": curve,
        "window": _window(bound, verdict, q, beyond),
        **drawn,
        "code": _code(q, found, used, verdict),
    }


def condition(q: Question) -> dict[str, Any]:
    """The verdict with every parameter left open: the exact condition, and its proof."""
    found = find(q.formula)
    if found.formula is None or not found.formula.parameters:
        return {"verdict": None}
    return {"verdict": _verdict(check(found, start=q.start))}


def heads(q: Question) -> dict[str, Any]:
    """The receptive fields of every head, one row each."""
    found = find(q.formula)
    rows = []
    for h in range(1, q.heads + 1 if found.formula is not None else 1):
        used = {s.name: s.text for s in sliders(found, q.given, q.heads, h)}
        assert found.formula is not None
        bound = found.formula.bind(used)
        verdict = check(bound, start=q.start)
        row = _fields(bound, verdict, list(EPSILONS), q.start).heads[0]
        rows.append(
            {
                "head": h,
                "parameters": used,
                "verdict": verdict.verdict,
                "sum": row.total_text(),
                "tokens": [shown_number(n) for n in row.tokens],
                "horizon": row.horizon_text(),
            }
        )
    return {"epsilons": list(EPSILONS), "rows": rows}


def window(q: Question) -> dict[str, Any]:
    """The window within a context, which divergent encodings have too."""
    found = find(q.formula)
    if found.formula is None:
        raise ValueError(f"{found.name} has no bias r(t), so no window is proven")
    bound = found.formula.bind({s.name: s.text for s in sliders(found, q.given, q.heads, q.head)})
    kept = smallest_window(Row(bound, q.context, q.start), q.epsilon, q.bound)
    which = "every token" if kept >= q.context else "enough"
    return {
        "tokens": digits(kept),
        "said": f"({which}) in a text of {q.context} tokens, {_asked(q)}; at every length there is no window, since "
        "the sum diverges",
    }


def pairs(q: Question) -> dict[str, Any]:
    """Which of the encodings sees further, pair by pair, and why."""
    members = []
    for text, given in zip(q.formulas, q.values, strict=True):
        found = find(text)
        if found.formula is None:
            continue
        used = {s.name: s.text for s in sliders(found, given, q.heads, q.head)}
        label = found.name + "".join(f", {k} = {v}" for k, v in used.items())
        members.append((label, found.formula.bind(used)))
    out = []
    for (a, one), (b, other) in combinations(members, 2):
        try:
            pair = compare(one, other, names=(a, b))
        except (DivergenceError, UndecidedError) as error:
            out.append({"sentence": f"{a} and {b}: not decided", "steps": [str(error)], "turns": []})
            continue
        out.append({"sentence": pair.sentence(), "steps": pair.proof, "turns": pair.turns()})
    return {"pairs": out}


def designed(q: Question) -> dict[str, Any]:
    """The value of one parameter for which the receptive field is the wanted one, proven."""
    found = find(q.formula)
    if found.formula is None:
        raise ValueError(f"{found.name} has no bias r(t), so there is nothing to design")
    names = found.formula.parameters
    if not names:
        raise ValueError(f"{found.name} has no parameter that a reach could decide")
    chosen = q.parameter or names[0]
    if chosen not in names:
        raise ValueError(f"the formula has no parameter {chosen[:20]!r}: its parameters are {', '.join(names)}")
    others = {s.name: s.text for s in sliders(found, q.given, q.heads, q.head) if s.name != chosen}
    result = design(found.formula.bind(others), q.reach, q.epsilon)
    assert not isinstance(result, list)
    return {
        "parameter": chosen,
        "value": result.text,
        "low": result.low,
        "high": result.high,
        "tokens": digits(result.tokens),
        "epsilon": q.epsilon,
        "code": {
            "command": lines.command("design", [q.formula], others, reach=q.reach, epsilon=q.epsilon),
            "python": f"import farfield as ff\n\nfamily = ff.find({q.formula!r}).formula.bind({others!r})\n"
            f'print(ff.design(family, {q.reach}, "{q.epsilon}").text)',
        },
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
    }


def _fields(bound: Formula, verdict: Verdict, epsilons: list[str], start: int) -> Fields:
    return fields(
        Encoding(bound.text(), bound.text()), verdict, {}, heads=None, width=64, layers=None, epsilons=epsilons,
        context=None, lengths=None, start=start,
    )  # fmt: skip


def _said_of_draw(q: Question, verdict: Verdict, truth: str | None, draw: dict[str, Any] | None, i: int) -> str:
    """What `draw()` would have claimed at the chosen epsilon, the i-th, beside what is proven."""
    if draw is None:
        return f"draw() would have given no number: the first {q.context} weights have no finite, positive sum"
    first = f"Given {q.context} weights, draw() would have claimed {draw['claims'][i]} tokens at epsilon {q.epsilon}"
    grows = f"given twice as many, {draw['twice'][i]}"
    if verdict.verdict == "diverges":
        return f"{first}; {grows}. There is no receptive field: the sum diverges."
    if truth is None:
        return f"{first}; {grows}. What is true was not decided."
    if truth == str(draw["claims"][i]):
        return f"{first}. That is the receptive field."
    return f"{first}; {grows}. The receptive field is {truth}."


def _curve(bound: Formula, verdict: Verdict, start: int) -> dict[str, Any]:
    """The receptive field for many epsilons, each exact, up to the first that is too long to be shown."""
    found: list[tuple[str, str]] = []
    beyond = None
    if verdict.verdict == "converges":
        try:
            weights = series(bound, start)
            for e in _CURVE:
                tokens = digits(smallest(weights, exact_epsilon(e)))
                if len(tokens) > _MOST_DIGITS:
                    beyond = e
                    break
                found.append((e, tokens))
        except (DivergenceError, UndecidedError):
            pass
    return {
        "epsilons": [e for e, _ in found],
        "tokens": [shown_number(n) for _, n in found],
        "log10": [_log10(n) for _, n in found],
        "beyond": beyond,
    }


def _log10(number: str) -> float:
    return log10(float(number[:17])) + max(0, len(number) - 17)


def _window(bound: Formula, verdict: Verdict, q: Question, beyond: Fraction) -> dict[str, Any]:
    """How many tokens a head must keep at every length, with proof; none where the series diverges."""
    if verdict.verdict == "diverges":
        return {"tokens": None, "said": "at every length there is no window: the sum diverges", "ask": True}
    if verdict.verdict != "converges":
        return {"tokens": None, "said": "no window is proven: the series was not decided", "ask": False}
    e, m = float(exact_epsilon(q.epsilon)), min(float(exact_bound(q.bound)), 300.0)
    share = e / (e + (1 - e) * exp(2 * m))
    try:  # the window is the receptive field at this share
        if share < 0.5 * beyond:
            tokens = f"over 1e{_MOST_DIGITS}"
        else:
            tokens = shown_number(digits(smallest_window(series(bound, q.start), q.epsilon, q.bound)))
    except UndecidedError as error:
        return {"tokens": None, "said": str(error), "ask": False}
    return {"tokens": tokens, "said": f"{_asked(q)}, at every length; {_SCOPE}", "ask": False}


def _asked(q: Question) -> str:
    return f"for scores within ±{q.bound} and at most a share {q.epsilon} of the attention lost"


def _code(q: Question, found: Encoding, used: dict[str, str], verdict: Verdict | None) -> dict[str, str]:
    converges = verdict is not None and verdict.verdict == "converges"
    usual = exact_epsilon(q.epsilon) in [exact_epsilon(e) for e in EPSILONS]
    text = q.formula.strip()
    out = {
        "command": lines.command("check", [text], used, from_=q.start or None, epsilon=None if usual else q.epsilon),
        "python": lines.python(found, text, used, q.start, q.epsilon, q.bound if converges else None),
    }
    if converges and not q.start:
        out["window"] = lines.command("window", [text], used, heads=1, logit_bound=q.bound, epsilon=q.epsilon)
    return out


_ANSWERS = {
    "encoding": encoding,
    "condition": condition,
    "heads": heads,
    "window": window,
    "compare": pairs,
    "design": designed,
}
