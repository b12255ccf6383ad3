"""What is told of an encoding beside the verdict: sums, receptive fields, reach, leak, for each head and the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from farfield.formula import Formula
from farfield.theory.budget import TimeUpError, time_limit
from farfield.theory.errors import DivergenceError, UndecidedError, ZeroWeightsError
from farfield.theory.fields.law import law
from farfield.theory.fields.layers import Mixture, model_reach
from farfield.theory.fields.receptive import digits, exact_epsilon, leak, reach, tokens
from farfield.theory.fields.worst import WorstCase, worst_said
from farfield.theory.sums.series import series, sum_json
from farfield.theory.verdict.convergence import Verdict, check
from farfield.theory.verdict.horizon import Horizon
from farfield.zoo import Encoding

T = TypeVar("T")
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
        return "" if self.horizon is None else f"{self.horizon.tokens}{'' if self.horizon.certain else ' at least'}"

    def total_text(self) -> str:
        return "" if self.total is None else shown_sum(str(self.total["mid"]), 6)

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
    summary = Summary(epsilons, context=context, lengths=lengths)
    if named.formula is not None:
        _Summarizer(named, named.formula, verdict, given, heads, width, layers, start, summary).answer(seconds)
    return summary


@dataclass
class _Summarizer:
    """What a person asked about an encoding; the answers are added to `summary`."""

    named: Encoding
    formula: Formula
    verdict: Verdict
    given: dict[str, str]
    heads: int | None
    width: int
    layers: int | None
    start: int
    summary: Summary

    def answer(self, seconds: float | None) -> None:
        summary = self.summary
        open_names = [n for n in self.formula.parameters if n not in self.given]
        if self.formula.is_class:
            self._class()
            return
        if self.heads is None and open_names:
            if all(n in row for row in self.named.heads(1, self.given, width=self.width) for n in open_names):
                summary.notes.append("give --heads 8 for the receptive field of each head")
            elif any(x is not None for x in (summary.context, summary.lengths, self.layers)):
                raise ValueError(f"give {', '.join(open_names)} a value first: --set {open_names[0]}=...")
            return
        rows: list[dict[str, Any]] = [{}]
        if self.heads is not None:
            rows = self.named.heads(self.heads, self.given, width=self.width)
        left_out = f"is left out: not ready after {seconds:g} s; --time 30 gives more" if seconds else ""
        with time_limit(seconds):
            try:
                for number, row in enumerate(rows, 1):
                    self._head(row, None if self.heads is None else number)
            except TimeUpError:
                done = max(0, len(summary.heads) - 1)
                what = "the sum or a receptive field" if self.heads is None else f"what follows head {done}"
                summary.notes.append(f"{what} {left_out}")
                return
            try:
                self._law()
                self._layer()
                self._model()
                self._leak()
            except TimeUpError:
                summary.notes.append(f"the law or the reach of the model {left_out}")

    def _class(self) -> None:
        """Notes on a class of biases, or on each head of one: the worst case of what was asked."""
        if self.layers is not None:
            told = "the reach of a model of several layers is told for one bias, not for a class of them"
            self.summary.notes.append(told)
        rows: list[Any] = list(self.named.heads(self.heads, self.given)) if self.heads else [self.given]
        for number, row in enumerate(rows, 1):
            setting = {n: str(v) for n, v in row.items()}
            if set(self.formula.parameters) - set(setting):
                continue
            who = f"head {number}: " if self.heads else ""
            for sentence in _worst_sentences(self.named, setting, self.verdict, self.summary):
                self.summary.notes.append(who + sentence)

    def _head(self, own: dict[str, Any], number: int | None) -> None:
        """Add what is told of one head; what comes before a time limit stays."""
        summary, start = self.summary, self.start
        setting = {**self.given, **{n: str(v) for n, v in own.items() if n not in self.given}}
        mine = self.verdict if number is None else check(self.named, start=start, parameters=setting)
        row = HeadSummary(number, setting, mine.condition or mine.verdict, mine.verdict, horizon=mine.horizon)
        summary.heads.append(row)
        bound = self.formula.bind(setting)  # a parameter may bear any name, `start` too
        if mine.condition is not None or mine.verdict in ("undecided", "not-applicable"):
            return
        if mine.verdict == "converges":

            def sum_and_tokens() -> None:
                s = series(bound, start=start)
                total = sum_json(s)
                row.total, row.exact_total = _double(total), f"{total['mid']} +/- {total['rad']}"
                for epsilon in summary.epsilons:
                    row.tokens += tokens(s, [epsilon])

            self._try(sum_and_tokens)
        if summary.context is not None:
            row.reach = [str(reach(bound, e, summary.context, start=start)) for e in summary.epsilons]
        if summary.lengths is not None:
            row.leak = float(leak(bound, *summary.lengths, start=start))

    def _law(self) -> None:
        """The law of one formula."""
        if self.heads is not None or self.verdict.verdict != "converges":
            return
        said = self.summary.law = self._try(lambda: law(self.formula.bind(self.given), start=self.start))
        if said:
            known = "as epsilon goes to 0, the receptive field is"
            self.summary.notes.append(f"{'the receptive field:' if said.startswith('no ') else known} {said}")

    def _layer(self) -> None:
        """The largest receptive field of the heads, and that of their mixture."""
        summary = self.summary
        if self.heads is None or not self._all_converge():
            return
        widest = [
            max((h.tokens[i] for h in summary.heads), key=lambda n: (len(n), n)) for i in range(len(summary.epsilons))
        ]

        def mixed() -> list[str]:
            every = [series(self.formula.bind(h.parameters), start=self.start) for h in summary.heads]
            return tokens(Mixture(every), summary.epsilons)

        mixture = self._try(mixed) or []
        summary.layer = {"widest": _pairs(summary.epsilons, widest), "mixture": _pairs(summary.epsilons, mixture)}

    def _model(self) -> None:
        """The reach of a model of several layers."""
        summary, layers = self.summary, self.layers
        if layers is None:
            return
        if not self._all_converge():
            summary.notes.append("a model's reach needs heads whose series converge")
            return
        epsilon = next((e for e in summary.epsilons if exact_epsilon(e) <= exact_epsilon("0.01")), summary.epsilons[-1])
        far = self._try(
            lambda: model_reach(
                self.named, epsilon, layers, self.heads, start=self.start, parameters=self.given, width=self.width
            )
        )
        if far is not None:
            tokens, union = str(far.tokens), str(far.union_bound)
            summary.model = {"layers": layers, "epsilon": epsilon, "tokens": tokens, "union_bound": union}
            summary.notes.append(
                f"model of {layers} layers at epsilon {epsilon}: reaches {tokens} tokens (union bound {union})"
            )

    def _all_converge(self) -> bool:
        return bool(self.summary.heads) and all(h.tokens for h in self.summary.heads)

    def _leak(self) -> None:
        leaks = [h.leak for h in self.summary.heads if h.leak is not None]
        if self.summary.lengths is not None and leaks:
            train, test = self.summary.lengths
            over = ", mean over heads" if len(leaks) > 1 else ""
            self.summary.notes.append(f"leak from {train} to {test} tokens{over}: {sum(leaks) / len(leaks):.4f}")

    def _try(self, ask: Callable[[], T]) -> T | None:
        """An answer, or a note that says why there is none."""
        try:
            return ask()
        except (DivergenceError, UndecidedError, ZeroWeightsError) as error:
            self.summary.notes += [str(error)] if str(error) not in self.summary.notes else []
            return None


def _worst_sentences(named: Encoding, setting: dict[str, str], verdict: Verdict, summary: Summary) -> Iterator[str]:
    """The worst case over a class of biases of what was asked, a sentence each."""
    assert named.formula is not None
    if verdict.answer == "windowed":
        try:
            worst = WorstCase(named, named.formula.bind(setting))
            told = [f"{shown_number(digits(worst.smallest(exact_epsilon(e))))} at {e}" for e in summary.epsilons]
            shown = f"{', '.join(told)} ({worst_said(worst.exact)})"
            yield f"receptive field in the worst case over the class, in tokens: {shown}"
        except (DivergenceError, UndecidedError) as error:
            yield str(error)
    if summary.context is not None:
        try:
            told = [f"{reach(named, e, summary.context, parameters=setting)} at {e}" for e in summary.epsilons]
            yield f"reach within {summary.context} tokens in the worst case: {', '.join(told)}"
        except (DivergenceError, UndecidedError) as error:
            yield f"no reach within {summary.context} tokens: {error}"
    if summary.lengths is not None:
        train, test = summary.lengths
        try:
            share = leak(named, train, test, parameters=setting)
            yield f"leak from {train} to {test} tokens in the worst case: {share:.4f}"
        except (DivergenceError, UndecidedError) as error:
            yield f"no leak from {train} to {test} tokens: {error}"


def _double(total: dict[str, str]) -> dict[str, Any]:
    """Middle and radius as doubles; the radius covers the rounding of the middle."""
    middle = float(total["mid"])
    if middle in (float("inf"), 0.0):
        return dict(total)
    off = abs(Fraction(total["mid"]) - Fraction(middle)) + Fraction(total["rad"])
    return {"mid": middle, "rad": float(off) * 1.0000001 if off else 0.0}


def _pairs(epsilons: list[str], tokens: list[str]) -> list[dict[str, str]]:
    return [{"epsilon": e, "tokens": n} for e, n in zip(epsilons, tokens, strict=False)]


def shown_sum(middle: str, places: int) -> str:
    """A sum in so many digits, also where a double cannot hold it."""
    mantissa, e, exponent = middle.partition("e")
    if math.isinf(float(middle)):
        return f"{float(mantissa):.{places}g}{e}{exponent}"
    return f"{float(middle):.{places}g}"


def shown_number(tokens: str) -> str:
    """A number for a table: a very long one by its size."""
    return tokens if len(tokens) <= _WIDEST else f"{tokens[0]}.{tokens[1:5]}e{len(tokens) - 1}"
