"""What is told of an encoding beside the verdict: sums, receptive fields, reach, leak, for each head and the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from farfield.theory.budget import TimeUpError, time_limit
from farfield.theory.errors import DivergenceError, UndecidedError, ZeroWeightsError
from farfield.theory.fields.law import law
from farfield.theory.fields.layers import Mixture, model_reach
from farfield.theory.fields.receptive import digits, exact_epsilon, leak, reach, tokens
from farfield.theory.sums.series import series, sum_json
from farfield.theory.verdict.convergence import Verdict, check
from farfield.theory.verdict.horizon import Horizon
from farfield.zoo import Encoding

_WIDEST = 16  # characters of a number in a table


@dataclass
class HeadSummary:
    """One head, or the formula itself if `head` is None."""

    head: int | None
    parameters: dict[str, str]
    said: str
    verdict: str
    total: dict[str, Any] | None = None
    exact_total: str | None = None  # with its error, for a person
    tokens: list[str] = field(default_factory=list)  # one for each epsilon
    reach: list[str] = field(default_factory=list)
    leak: float | None = None
    horizon: Horizon | None = None

    def horizon_text(self) -> str:
        if self.horizon is None:
            return ""
        return f"{self.horizon.tokens}" if self.horizon.certain else f"{self.horizon.tokens} at least"

    def total_text(self) -> str:
        return "" if self.total is None else f"{float(self.total['mid']):.6g}"

    def json(self, epsilons: list[str]) -> dict[str, Any]:
        out: dict[str, Any] = {"sum": self.total}
        if self.head is not None:
            out = {"head": self.head, "parameters": self.parameters, "verdict": self.verdict, **out}
            out["horizon"] = None if self.horizon is None else self.horizon.json()
        out["trf"] = _pairs(epsilons, self.tokens)
        if self.reach:
            out["reach"] = _pairs(epsilons, self.reach)
        if self.leak is not None:
            out["leak"] = self.leak
        return out


@dataclass
class Summary:
    """Everything that was asked about the receptive fields of an encoding."""

    epsilons: list[str]
    heads: list[HeadSummary] = field(default_factory=list)
    context: int | None = None
    lengths: tuple[int, int] | None = None
    layer: dict[str, list[dict[str, str]]] | None = None
    model: dict[str, Any] | None = None
    law: str | None = None
    notes: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        if len(self.heads) == 1 and self.heads[0].head is None:
            out = self.heads[0].json(self.epsilons)
            one = out.pop("leak", None)
        else:
            out = {"sum": None, "trf": []}
            if self.heads:
                out["heads"] = [h.json(self.epsilons) for h in self.heads]
            leaks = [h.leak for h in self.heads if h.leak is not None]
            one = sum(leaks) / len(leaks) if leaks else None
        out["law"] = self.law
        if self.lengths is not None:
            per_head = [h.leak for h in self.heads]
            out["leak"] = {"train": self.lengths[0], "test": self.lengths[1], "mean": one, "heads": per_head}
        if self.context is not None:
            out["context"] = self.context
        if self.layer is not None:
            out["layer"] = self.layer
        if self.model is not None:
            out["model"] = self.model
        return out


def _of_class(
    named: Encoding, verdict: Verdict, given: dict[str, str], heads: int | None, layers: int | None, seen: Summary
) -> None:
    """Notes on a class of biases, or on each head of one: the worst case of what was asked."""
    assert named.formula is not None
    if layers is not None:
        seen.notes.append("the reach of a model of several layers is told for one bias, not for a class of them")
    rows: list[Any] = list(named.heads(heads, given)) if heads else [given]
    for number, row in enumerate(rows, 1):
        setting = {n: str(v) for n, v in row.items()}
        if set(named.formula.parameters) - set(setting):
            continue
        who = f"head {number}: " if heads else ""
        fields = _worst_fields(named, setting, seen.epsilons) if verdict.answer == "windowed" else ""
        for sentence in (fields, _worst_reach(named, setting, seen), _worst_leak(named, setting, seen)):
            seen.notes += [who + sentence] if sentence else []


def _worst_reach(named: Encoding, setting: dict[str, str], seen: Summary) -> str:
    if seen.context is None:
        return ""
    try:
        result = [f"{reach(named, e, seen.context, parameters=setting)} at {e}" for e in seen.epsilons]
    except (DivergenceError, UndecidedError) as error:
        return f"no reach within {seen.context} tokens: {error}"
    return f"reach within {seen.context} tokens in the worst case: {', '.join(result)}"


def _worst_leak(named: Encoding, setting: dict[str, str], seen: Summary) -> str:
    if seen.lengths is None:
        return ""
    train, test = seen.lengths
    try:
        share = leak(named, train, test, parameters=setting)
    except (DivergenceError, UndecidedError) as error:
        return f"no leak from {train} to {test} tokens: {error}"
    return f"leak from {train} to {test} tokens in the worst case: {share:.4f}"


def _worst_fields(named: Encoding, given: dict[str, str], epsilons: list[str]) -> str:
    """The receptive fields of a class of biases in one sentence."""
    from farfield.theory.fields.worst import WorstCase, worst_said

    assert named.formula is not None
    try:
        worst = WorstCase(named, named.formula.bind(given))
        found_tokens = [f"{shown_number(digits(worst.smallest(exact_epsilon(e))))} at {e}" for e in epsilons]
    except (DivergenceError, UndecidedError) as error:
        return str(error)
    said = ", ".join(found_tokens)
    return f"receptive field in the worst case over the class, in tokens: {said} ({worst_said(worst.exact)})"


def fields(
    named: Encoding,
    verdict: Verdict,
    given: dict[str, str],
    *,
    heads: int | None,
    width: int,
    layers: int | None,
    epsilons: list[str],
    context: int | None,
    lengths: tuple[int, int] | None,
    start: int,
    seconds: float | None = None,
) -> Summary:
    """Sums and receptive fields of a formula without open parameters, or of each head.

    What is not ready after so many `seconds` is left out, and a note says so.
    """
    for e in epsilons:
        exact_epsilon(e)
    seen = Summary(epsilons, context=context, lengths=lengths)
    if named.formula is None:
        return seen
    open_names = [n for n in named.formula.parameters if n not in given]
    if named.formula.is_class:
        _of_class(named, verdict, given, heads, layers, seen)
        return seen
    if heads is None and open_names:
        if all(n in row for row in named.heads(1, given, width=width) for n in open_names):
            seen.notes.append("give --heads 8 for the receptive field of each head")
        elif any(x is not None for x in (context, lengths, layers)):
            raise ValueError(f"give {', '.join(open_names)} a value first: --set {open_names[0]}=...")
        return seen
    rows: list[dict[str, Any]] = [{}]
    if heads is not None:
        rows = [{n: v for n, v in row.items() if n not in given} for row in named.heads(heads, given, width=width)]
    left_out = f"is left out: not ready after {seconds:g} s; --time 30 gives more" if seconds else ""
    with time_limit(seconds):
        try:
            for h, own in enumerate(rows, 1):
                _one(named, verdict, given, own, None if heads is None else h, seen, start)
        except TimeUpError:
            done = max(0, len(seen.heads) - 1)
            what = "the sum or a receptive field" if heads is None else f"what follows head {done}"
            seen.notes.append(f"{what} {left_out}")
            return seen
        try:
            _further(named, verdict, given, heads, layers, width, start, seen)
        except TimeUpError:
            seen.notes.append(f"the law or the reach of the model {left_out}")
    return seen


def _further(
    named: Encoding,
    verdict: Verdict,
    given: dict[str, str],
    heads: int | None,
    layers: int | None,
    width: int,
    start: int,
    seen: Summary,
) -> None:
    """The law of one formula, the layer and the model."""
    assert named.formula is not None
    if heads is None and verdict.verdict == "converges":
        bound = named.formula.bind(given)
        seen.law = _try(seen, lambda: law(bound, start=start))
        if seen.law:
            known = not seen.law.startswith("no ")
            said = (
                f"as epsilon goes to 0, the receptive field is {seen.law}"
                if known
                else f"the receptive field: {seen.law}"
            )
            seen.notes.append(said)
    _layer_and_model(named, given, heads, layers, width, start, seen)
    _leak_note(seen)


def _one(
    named: Encoding,
    verdict: Verdict,
    given: dict[str, str],
    own: dict[str, Any],
    h: int | None,
    seen: Summary,
    start: int,
) -> None:
    """Add what is told of one head; what comes before a time limit stays."""
    setting = {**given, **{n: str(v) for n, v in own.items()}}
    mine = verdict if h is None else check(named, start=start, parameters=setting)
    row = HeadSummary(h, setting, mine.condition or mine.verdict, mine.verdict)
    row.horizon = mine.horizon
    seen.heads.append(row)
    assert named.formula is not None
    bound = named.formula.bind(setting)  # a parameter may bear any name, `start` too
    if mine.condition is not None or mine.verdict in ("undecided", "not-applicable"):
        return
    if mine.verdict == "converges":

        def sum_and_tokens() -> None:
            s = series(bound, start=start)
            total = sum_json(s)
            row.total, row.exact_total = _double(total), f"{total['mid']} +/- {total['rad']}"
            for epsilon in seen.epsilons:
                row.tokens += tokens(s, [epsilon])

        _try(seen, sum_and_tokens)
    if seen.context is not None:
        context = seen.context
        row.reach = [str(reach(bound, e, context, start=start)) for e in seen.epsilons]
    if seen.lengths is not None:
        row.leak = float(leak(bound, *seen.lengths, start=start))


def _layer_and_model(
    named: Encoding,
    given: dict[str, str],
    heads: int | None,
    layers: int | None,
    width: int,
    start: int,
    seen: Summary,
) -> None:
    """The layer's largest receptive field and mixture, and the reach of the model."""
    if not seen.heads or not all(h.tokens for h in seen.heads):
        if layers is not None:
            seen.notes.append("a model's reach needs heads whose series converge")
        return
    if heads is not None:
        widest = [max((h.tokens[i] for h in seen.heads), key=lambda n: (len(n), n)) for i in range(len(seen.epsilons))]

        assert named.formula is not None
        bind = named.formula.bind

        def mixed() -> list[str]:
            return tokens(Mixture([series(bind(h.parameters), start=start) for h in seen.heads]), seen.epsilons)

        mix = _try(seen, mixed) or []
        seen.layer = {
            "widest": _pairs(seen.epsilons, widest),
            "mixture": _pairs(seen.epsilons, mix),
        }
    if layers is not None:
        epsilon = next((e for e in seen.epsilons if exact_epsilon(e) <= exact_epsilon("0.01")), seen.epsilons[-1])
        found_reach = _try(
            seen, lambda: model_reach(named, epsilon, layers, heads, start=start, parameters=given, width=width)
        )
        if found_reach is not None:
            seen.model = {
                "layers": layers,
                "epsilon": epsilon,
                "tokens": str(found_reach.tokens),
                "union_bound": str(found_reach.union_bound),
            }
            seen.notes.append(
                f"model of {layers} layers at epsilon {epsilon}: reaches {found_reach.tokens} tokens "
                f"(union bound {found_reach.union_bound})"
            )


def _leak_note(seen: Summary) -> None:
    if seen.lengths is not None:
        leaks = [h.leak for h in seen.heads if h.leak is not None]
        if leaks:
            train, test = seen.lengths
            mean = sum(leaks) / len(leaks)
            over = ", mean over heads" if len(leaks) > 1 else ""
            seen.notes.append(f"leak from {train} to {test} tokens{over}: {mean:.4f}")


def _try(seen: Summary, ask: Any) -> Any:
    """An answer, or a note that says why there is none."""
    try:
        return ask()
    except (DivergenceError, UndecidedError, ZeroWeightsError) as error:
        seen.notes += [str(error)] if str(error) not in seen.notes else []
        return None


def _double(total: dict[str, str]) -> dict[str, Any]:
    """Middle and radius as doubles; the radius covers the rounding of the middle."""
    from fractions import Fraction

    middle = float(total["mid"])
    if middle in (float("inf"), 0.0):
        return dict(total)
    off = abs(Fraction(total["mid"]) - Fraction(middle)) + Fraction(total["rad"])
    return {"mid": middle, "rad": float(off) * 1.0000001 if off else 0.0}


def _pairs(epsilons: list[str], tokens: list[str]) -> list[dict[str, str]]:
    return [{"epsilon": e, "tokens": n} for e, n in zip(epsilons, tokens, strict=False)]


def shown_number(tokens: str) -> str:
    """A number for a table: a very long one by its size."""
    return tokens if len(tokens) <= _WIDEST else f"{tokens[0]}.{tokens[1:5]}e{len(tokens) - 1}"
