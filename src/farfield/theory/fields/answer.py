"""What is known of an encoding, as one value: the verdict, and of each head its sum, receptive fields, reach and leak.

The command line, the explorer, a notebook and a program (JSON) get the same value, each in its own writing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from html import escape
from typing import TypeVar

from farfield.formula import Formula
from farfield.table import Mathematics, Table, latex_number
from farfield.theory.budget import TimeUpError, time_limit
from farfield.theory.coq.fields import field_theorems
from farfield.theory.coq.files import file_text
from farfield.theory.errors import DivergenceError, OutsideCoqError, UndecidedError, ZeroWeightsError
from farfield.theory.fields.law import law
from farfield.theory.fields.layers import Mixture, ModelReach, model_reach
from farfield.theory.fields.receptive import EPSILONS, digits, exact_epsilon, field_of, leak, reach, smallest, whole
from farfield.theory.sums.series import series, sum_json
from farfield.theory.verdict.convergence import Verdict, check
from farfield.words import number, tokens, with_error
from farfield.zoo import WIDTH, Encoding, Value, find
from farfield.zoo.encoding import slopes_sentence

T = TypeVar("T")


@dataclass
class HeadAnswer:
    """One head, or the formula itself if `number` is None; what was not asked, or is not proven, is missing.

    Attributes:
        fields: The receptive field for each epsilon, as far as they are proven; of a bounded family, the worst case.
        reach: The same within a context.
        total: B, as the middle and the radius of an enclosure; None of a bounded family.
    """

    number: int | None
    parameters: dict[str, str]
    formula: Formula
    verdict: Verdict
    total: dict[str, str] | None = None
    fields: list[int] = field(default_factory=list)
    reach: list[int] = field(default_factory=list)
    leak: float | None = None

    def measure(self, epsilons: Iterable[str]) -> Iterator[int]:
        """Add the sum and the receptive fields, one after the other, where the series converges."""
        if self.formula.parameters or self.verdict.verdict != "converges":
            return
        field = field_of(self.formula, start=self.verdict.start)
        if not self.formula.is_bounded_family:
            self.total = sum_json(series(self.formula, start=self.verdict.start))
        for epsilon in epsilons:
            self.fields.append(field(exact_epsilon(epsilon)))
            yield self.fields[-1]

    @property
    def horizon_text(self) -> str:
        far = self.verdict.horizon
        return "" if far is None else f"{far.tokens}{'' if far.certain else ' at least'}"

    def total_text(self, places: int = 6) -> str:
        """The sum in so many digits, also where a double cannot hold it."""
        if self.total is None:
            return ""
        mantissa, e, exponent = self.total["mid"].partition("e")
        if math.isinf(float(self.total["mid"])):
            return f"{float(mantissa):.{places}g}{e}{exponent}"
        return f"{float(self.total['mid']):.{places}g}"

    @property
    def enclosure(self) -> str | None:
        """The sum with its error."""
        return None if self.total is None else f"{self.total['mid']} +/- {self.total['rad']}"

    def json(self, epsilons: Sequence[str]) -> dict[str, object]:
        """The head as plain data."""
        out: dict[str, object] = {"sum": None if self.total is None else _double(self.total)}
        if self.number is not None:
            far = self.verdict.horizon
            about = {"head": self.number, "parameters": self.parameters, "verdict": self.verdict.verdict}
            out = {**about, **out, "horizon": None if far is None else far.json()}
        out["trf"] = _pairs(epsilons, self.fields)
        if self.reach:
            out["reach"] = _pairs(epsilons, self.reach)
        if self.leak is not None:
            out["leak"] = self.leak
        return out


@dataclass
class Answer:
    """Everything that was asked about an encoding.

    Attributes:
        heads: One entry for each head, or one for the formula itself if it has no open parameter.
        widest: Of several heads, the largest receptive field for each epsilon.
        mixture: The receptive fields of their average.
        model: How far a model of several layers reaches, and for which epsilon.
        law: How the receptive field grows as epsilon goes to 0.
        notes: What else there is to say, and what is left out, a sentence each.
    """

    encoding: Encoding
    verdict: Verdict
    epsilons: tuple[str, ...] = EPSILONS
    context: int | None = None
    lengths: tuple[int, int] | None = None
    heads: list[HeadAnswer] = field(default_factory=list)
    widest: list[int] = field(default_factory=list)
    mixture: list[int] = field(default_factory=list)
    model: tuple[str, ModelReach] | None = None
    law: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def single(self) -> HeadAnswer | None:
        """What is known of the formula itself, where no heads were asked for and nothing is open."""
        return self.heads[0] if len(self.heads) == 1 and self.heads[0].number is None else None

    @property
    def converges(self) -> bool:
        return self.verdict.verdict == "converges"

    @property
    def label(self) -> str:
        """The encoding and the parameters of its (first) head."""
        parameters = self.heads[0].parameters if self.heads else {}
        return self.encoding.name + "".join(f", {name} = {value}" for name, value in parameters.items())

    @property
    def mean_leak(self) -> float | None:
        """The leak, averaged over the heads; None unless that of every head is known."""
        leaks = [head.leak for head in self.heads if head.leak is not None]
        return sum(leaks) / len(leaks) if leaks and len(leaks) == len(self.heads) else None

    # -------------------------------------------------------------------------------------------- in words
    @property
    def subject(self) -> str:
        """The encoding and its formula."""
        encoding = self.encoding
        if encoding.text is None or encoding.formula is None:
            return encoding.name
        equation = f"r(t) = {encoding.text}"
        if encoding.formula.is_bounded_family:
            family, sink = encoding.formula, encoding.formula.sink
            more = "" if sink is None else f" with a sink of logit {Formula(sink).text()}"
            equation = f"{family.lower_bound.text()} <= r(t) <= {family.upper_bound.text()}{more}"
        elif encoding.formula.weight:
            equation = f"b(t) = {encoding.text.removeprefix('weight:').strip()}"
        return equation if encoding.text == encoding.name else f"{encoding.name}: {equation}"

    @property
    def claim(self) -> str:
        """What is proven of it."""
        verdict = self.verdict
        if verdict.verdict == "not-applicable":
            return ": the theorem does not apply"
        if verdict.verdict == "undecided":
            return f": {verdict.condition or 'undecided'}"
        if verdict.bounds is not None and verdict.answer is not None:
            return f": {verdict.answer}: {verdict.condition or f'the upper bound {verdict.verdict}'}"
        return f" {verdict.condition or verdict.verdict}"

    @property
    def how_far(self) -> str:
        """The tokens that hold nearly all of the weight, where they are proven for every head."""
        if self.verdict.verdict == "diverges" and self.verdict.bounds is None:
            return ", so no window is enough for every text"
        i = self.usual_epsilon
        if not self.heads or any(len(head.fields) <= i for head in self.heads):
            return ""
        widest, share = max(head.fields[i] for head in self.heads), exact_epsilon(self.epsilons[i])
        part = f"{number(float(100 * share), 6)} %" if share >= Fraction(1, 100_000) else self.epsilons[i]
        where = f"; of {len(self.heads)} heads the widest has" if self.single is None else ", with"
        return f"{where} all but {part} of the weight within {tokens(widest)} token{'s' * (widest != 1)}"

    @property
    def usual_epsilon(self) -> int:
        """The place of the epsilon that a sentence is about: the first that is at most 1 %."""
        small = (i for i, epsilon in enumerate(self.epsilons) if exact_epsilon(epsilon) <= Fraction(1, 100))
        return next(small, len(self.epsilons) - 1)

    @property
    def sentence(self) -> str:
        """The whole answer in one sentence: the verdict, and how far it sees."""
        return f"{self.subject}{self.claim}{self.how_far}."

    @property
    def heading(self) -> str:
        """What stands above the steps: what the checker has proven."""
        if self.verdict.verdict not in ("converges", "diverges"):
            return "why"
        if self.verdict.condition is not None:
            return "proof (checked: each case is proven for all its parameters and all large t)"
        checked = " (checked: its bounds are proven for every t, nothing is sampled)"
        return f"proof{checked if self.verdict.proven else ''}"

    def table(self) -> Table | None:
        """One row for each head (or one for the formula), columns for what was asked; None if there is nothing."""
        heads, single = self.heads, self.single is not None
        columns: list[tuple[str | Mathematics, list[str]]] = []
        if not single:
            columns.append(("B", [head.total_text() for head in heads]))
        for i, epsilon in enumerate(self.epsilons):
            columns.append((epsilon_cell(epsilon), [_nth(head.fields, i) for head in heads]))
            columns.append((f"{epsilon} in {self.context}", [_nth(head.reach, i) for head in heads]))
        columns.append(("looks convergent up to", [head.horizon_text for head in heads]))
        columns.append(("leak", [with_error(head.leak, digits=3) for head in heads]))
        columns = [(heading, cells) for heading, cells in columns if any(cells)]
        if not columns:
            return None
        if not single:
            names = [(name, [head.parameters.get(name, "") for head in heads]) for name in heads[0].parameters]
            claims = [str(head.verdict.condition or head.verdict.verdict) for head in heads]
            verdicts = [("verdict", claims)] if len(set(claims)) > 1 else []
            columns = [("head", [str(head.number) for head in heads]), *names, *columns, *verdicts]
        below = []
        for label, fields in (("widest", self.widest), ("mixture", self.mixture)) if self.widest else ():
            cells = dict(zip(self.epsilons, map(tokens, fields), strict=False))
            below.append([label if name == "head" else cells.get(str(name), "") for name, _ in columns])
        worst = ", in the worst case over the family" if heads[0].formula.is_bounded_family else ""
        fields_title = f"receptive field in tokens{worst}, for each epsilon"
        title = fields_title if any(head.fields for head in heads) else "each head"
        rows = list(zip(*(cells for _, cells in columns), strict=True))
        return Table([name for name, _ in columns], rows, title=title, names=0 if single else 1, below=below)

    def __str__(self) -> str:
        steps = (f"{number:4}. {step}" for number, step in enumerate(self.verdict.steps, 1))
        table = self.table()
        return "\n".join([self.sentence, self.heading, *steps, *([table.markdown()] if table else []), *self.notes])

    def latex(self) -> str:
        """The proof, and the table, as LaTeX."""
        table = self.table()
        return self.verdict.latex() + ("" if table is None else "\n" + table.latex())

    def _repr_html_(self) -> str:
        """The answer for a notebook."""
        table = self.table()
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return self.verdict._repr_html_() + ("" if table is None else table.html()) + notes

    # -------------------------------------------------------------------------------------------- for programs
    def json(self) -> dict[str, object]:
        """Everything as plain data."""
        if self.single is not None:
            out = self.single.json(self.epsilons)
        else:
            out = {"sum": None, "trf": []}
            if self.heads:
                out["heads"] = [head.json(self.epsilons) for head in self.heads]
        out["law"] = self.law
        out.pop("leak", None)
        if self.lengths is not None:
            train, test = self.lengths
            leaks = [head.leak for head in self.heads]
            out["leak"] = {"train": train, "test": test, "mean": self.mean_leak, "heads": leaks}
        if self.context is not None:
            out["context"] = self.context
        if self.widest:
            pairs = {"widest": self.widest, "mixture": self.mixture}
            out["layer"] = {name: _pairs(self.epsilons, fields) for name, fields in pairs.items()}
        if self.model is not None:
            epsilon, far = self.model
            reached = {"tokens": str(far.tokens), "union_bound": str(far.union_bound)}
            out["model"] = {"layers": far.layers, "epsilon": epsilon, **reached}
        return {**self.verdict.json(), **out}

    def coq(self, *, fields: bool = False) -> str:
        """A file for the proof assistant Coq: the verdict on each head, with their receptive fields if asked.

        Heads with the same theorem share one block.
        """
        if fields and not self.heads:
            raise OutsideCoqError(
                "receptive fields are proven of heads, or where every parameter has a value: give --heads"
            )
        blocks: dict[str, list[int]] = {}
        for place, head in enumerate(self.heads or [None], 1):
            verdict = self.verdict if head is None else head.verdict
            block = verdict.coq_block()
            if fields and head is not None and verdict.verdict == "converges":
                if len(head.fields) < len(self.epsilons):
                    raise UndecidedError(next(iter(self.notes), "not every receptive field is proven"))
                pairs = zip(map(exact_epsilon, self.epsilons), head.fields, strict=True)
                block += field_theorems(head.formula, pairs, verdict.start)
            blocks.setdefault(block, []).append(place)
        names = ["Head_" + "_".join(map(str, numbers)) for numbers in blocks.values()]
        return file_text(list(blocks), names if len(blocks) > 1 else None)


def answer(
    encoding: str | Formula | Encoding,
    *,
    heads: int | None = None,
    width: int = WIDTH,
    layers: int | None = None,
    parameters: Mapping[str, Value | Sequence[Value]] | None = None,
    assume: str | None = None,
    epsilons: Sequence[str] = EPSILONS,
    context: int | None = None,
    lengths: tuple[int, int] | None = None,
    start: int = 0,
    seconds: float | None = None,
) -> Answer:
    """Everything that is known of an encoding: the verdict with its proof, and how far each head sees.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        heads: judge every head of a model with this many heads.
        width: of one head, for encodings that depend on it.
        layers: also tell how far a model with this many layers reaches.
        parameters: values of parameters, such as {"k": "1/16"}, or a list with one for each head; those that are not
            given stay open.
        assume: what may be assumed of open parameters, such as "a > 0, b > 0".
        epsilons: the shares of the weights that may lie outside of a receptive field.
        context: also the reach within so many tokens, which divergent encodings have too.
        lengths: a training and a test length: also the leak from the one to the other.
        start: the first distance of the series.
        seconds: how long sums and fields may take; what is not ready then is left out, and a note says so.
    """
    for epsilon in epsilons:
        exact_epsilon(epsilon)
    whole(width, "width of a head")
    if context is not None:
        whole(context, "context")
    named, chosen = find(encoding).assuming(assume), dict(parameters or {})
    lists = [value for value in chosen.values() if isinstance(value, list | tuple)]
    heads = len(lists[0]) if heads is None and lists else heads
    given = {name: str(value) for name, value in chosen.items() if not isinstance(value, list | tuple)}
    verdict = check(named, start=start, parameters=given)
    result = Answer(named, verdict, tuple(epsilons), context, lengths)
    formula = named.formula
    if formula is None:
        return result
    rows: Sequence[Mapping[str, Value]] = [{}]
    open_names = [name for name in formula.parameters if name not in given]
    if heads is not None:
        rows = named.heads(heads, chosen, width=width)
    elif open_names:
        if all(name in row for row in named.heads(1, given, width=width) for name in open_names):
            result.notes.append("give --heads 8 for the receptive field of each head")
        elif any(wanted is not None for wanted in (context, lengths, layers)):
            raise ValueError(f"give {', '.join(open_names)} a value first: --set {open_names[0]}=...")
        return result
    if formula.is_bounded_family and start:
        result.notes.append("the worst case over a bounded family is computed from distance 0 on")
        return result
    part = "the sum or a receptive field"
    try:
        with time_limit(seconds):
            for number, row in enumerate(rows, 1):
                part = part if heads is None else f"what follows head {number - 1}"
                values = {**given, **{name: str(value) for name, value in row.items() if name not in given}}
                _add_head(result, None if heads is None else number, values)
            part = "the law or the reach of the model"
            _add_law(result)
            _add_layer(result)
            if layers is not None:
                model = partial(model_reach, named, layers=layers, heads=heads, start=start, width=width)
                _add_model(result, partial(model, parameters=chosen))
            _add_leak(result)
    except TimeUpError:
        if seconds is None:
            raise
        result.notes.append(f"{part} is left out: not ready after {seconds:g} s; --time 30 gives more")
    if heads is not None and (note := slopes_sentence(named, heads, chosen)):
        result.notes.append(note)
    return result


def _add_head(result: Answer, number: int | None, values: dict[str, str]) -> None:
    """Add what is known of one head; what comes before a time limit stays."""
    assert result.encoding.formula is not None
    start = result.verdict.start
    verdict = result.verdict if number is None else check(result.encoding, start=start, parameters=values)
    head = HeadAnswer(number, values, result.encoding.formula.bind(values), verdict)
    result.heads.append(head)
    _try(result, lambda: list(head.measure(result.epsilons)))
    if head.formula.parameters or (verdict.verdict == "undecided" and not head.formula.is_bounded_family):
        return
    if result.context is not None:
        head.reach = [reach(head.formula, epsilon, result.context, start=start) for epsilon in result.epsilons]
    if result.lengths is not None:
        head.leak = float(leak(head.formula, *result.lengths, start=start))


def _add_law(result: Answer) -> None:
    """The law of one formula."""
    head = result.single
    if head is None or head.verdict.verdict != "converges" or head.formula.is_bounded_family:
        return
    result.law = _try(result, lambda: law(head.formula, start=head.verdict.start))
    if result.law:
        unknown = result.law.startswith("no ")
        words = "the receptive field:" if unknown else "as epsilon goes to 0, the receptive field is"
        result.notes.append(f"{words} {result.law}")


def _add_layer(result: Answer) -> None:
    """The largest receptive field of the heads, and that of their mixture."""
    heads = result.heads
    if result.single or not _all_converge(result) or heads[0].formula.is_bounded_family:
        return
    result.widest = [max(fields) for fields in zip(*(head.fields for head in heads), strict=True)]

    def mixed() -> list[int]:
        mixture = Mixture([series(head.formula, start=head.verdict.start) for head in heads])
        return [smallest(mixture, exact_epsilon(epsilon)) for epsilon in result.epsilons]

    result.mixture = _try(result, mixed) or []


def _add_model(result: Answer, ask: Callable[[str], ModelReach]) -> None:
    """The reach of a model of several layers."""
    family = "the reach of a model with several layers is computed for one bias, not for a bounded family"
    if result.verdict.bounds is not None or not _all_converge(result):
        one_bias = result.verdict.bounds is None
        result.notes.append("a model's reach needs heads whose series converge" if one_bias else family)
        return
    epsilon = result.epsilons[result.usual_epsilon]
    if (far := _try(result, lambda: ask(epsilon))) is not None:
        result.model = epsilon, far
        result.notes.append(
            f"model of {far.layers} layers at epsilon {epsilon}: reaches {tokens(far.tokens)} tokens "
            f"(union bound {tokens(far.union_bound)})"
        )


def _add_leak(result: Answer) -> None:
    if result.lengths is None or result.mean_leak is None:
        return
    worst = ", in the worst case" if result.verdict.bounds is not None else ""
    mean = ", mean over heads" if len(result.heads) > 1 else ""
    train, test = result.lengths
    result.notes.append(f"leak from {train} to {test} tokens{worst}{mean}: {with_error(result.mean_leak, digits=4)}")


def _all_converge(result: Answer) -> bool:
    return bool(result.heads) and all(len(head.fields) == len(result.epsilons) for head in result.heads)


def _try(result: Answer, ask: Callable[[], T]) -> T | None:
    """What was asked, or a note that says why there is none."""
    try:
        return ask()
    except (DivergenceError, UndecidedError, ZeroWeightsError) as error:
        result.notes += [str(error)] if str(error) not in result.notes else []
        return None


def _nth(counts: list[int], i: int) -> str:
    return tokens(counts[i]) if i < len(counts) else ""


def epsilon_cell(epsilon: str) -> Mathematics:
    """An epsilon as the heading of a column."""
    return Mathematics(epsilon, rf"\epsilon = {latex_number(epsilon)}")


def _double(total: Mapping[str, str]) -> dict[str, str | float]:
    """Middle and radius as doubles; the radius covers the rounding of the middle."""
    middle = float(total["mid"])
    if middle in (float("inf"), 0.0):
        return dict(total)
    off = abs(Fraction(total["mid"]) - Fraction(middle)) + Fraction(total["rad"])
    return {"mid": middle, "rad": float(off) * 1.0000001 if off else 0.0}


def _pairs(epsilons: Sequence[str], fields: Sequence[int]) -> list[dict[str, str]]:
    return [{"epsilon": epsilon, "tokens": digits(n)} for epsilon, n in zip(epsilons, fields, strict=False)]
