"""The theoretical receptive field TRF(epsilon), exact to the token, and its practical companions.

TRF(epsilon) is the smallest j with tail(j) < epsilon * B (the paper's n_the): the number of tokens, the query's own
among them, outside of which less than a share epsilon of the weights lies. The paper's appendix divides by a finite
sum, and so answers for divergent series too; here an integer is proven or not given.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, overload

from flint import arb, ctx, fmpz

from farfield.formula import Formula
from farfield.formula.spelling import markup
from farfield.theory.coq.fields import fields_block
from farfield.theory.coq.files import file_text
from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import ball
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import Encoding, series
from farfield.zoo import WIDTH, Parameters, bound_formula, find

if TYPE_CHECKING:
    from farfield.theory.fields.windows import WorstCase

EPSILONS = ("0.5", "0.1", "1e-2", "1e-3", "1e-6", "1e-9", "1e-12")
_MOST_BITS = 1 << 16  # the most precision that one comparison may take
_MOST_DIGITS = 12_000  # of an answer
_FARTHEST = 10**_MOST_DIGITS
_DECIMAL = re.compile(
    r"\s*[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?\s*|\s*[+-]?\d{1,400}/\d{1,400}\s*"
)


Epsilons = list[str] | list[float] | list[Fraction] | tuple[str | float | Fraction, ...]


class Weights(Protocol):
    """What a search needs: a series, a row of n tokens, or the mixture of several."""

    start: int

    @property
    def rough(self) -> bool: ...
    def term(self, j: int) -> arb: ...
    def tail(self, j: int) -> arb: ...
    def B(self) -> arb: ...  # noqa: N802
    def tie(self, j: int, epsilon: Fraction) -> bool | None: ...


def exact_epsilon(epsilon: str | float | Fraction) -> Fraction:
    """Epsilon as the exact decimal that was typed: 0.1 is one tenth."""
    text = str(epsilon)
    if isinstance(epsilon, bool) or not _DECIMAL.fullmatch(text) or text.strip().endswith("/0"):
        raise ValueError(f"epsilon must be a number between 0 and 1, such as 0.01, not {text[:40]!r}")
    value = Fraction(text.strip())
    if not 0 < value < 1:
        raise ValueError(f"epsilon must lie strictly between 0 and 1, not {text[:40]}")
    return value


def whole(value: object, name: str, least: int = 1, most: int | None = None) -> int:
    """A whole number from `least` on, up to `most` if that is given, or one sentence."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        allowed = f">= {least}" if most is None else f"from {least} to {most}"
        raise ValueError(f"the {name} must be a whole number {allowed}, not {str(value)[:40]}")
    return value


@overload
def trf(
    encoding: Encoding,
    epsilon: str | float | Fraction,
    *,
    start: int = 0,
    parameters: Parameters | None = None,
    width: int = WIDTH,
) -> int: ...
@overload
def trf(
    encoding: Encoding,
    epsilon: Epsilons = EPSILONS,
    *,
    start: int = 0,
    parameters: Parameters | None = None,
    width: int = WIDTH,
) -> FieldTable: ...
def trf(
    encoding: Encoding,
    epsilon: str | float | Fraction | Epsilons = EPSILONS,
    *,
    start: int = 0,
    parameters: Parameters | None = None,
    width: int = WIDTH,
) -> int | FieldTable:
    """The exact theoretical receptive field: the smallest j with tail(j) < epsilon * B.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the weights that may lie outside; several of them give a table.
        start: the first distance of the series.
        parameters: a value for each parameter that the encoding leaves open, such as {"k": "1/16"}.
        width: of one head, for encodings that depend on it.
    """
    bound = bound_formula(encoding, parameters, width=width)
    field = field_of(bound, start=start)
    if not isinstance(epsilon, list | tuple):
        return field(exact_epsilon(epsilon))
    return FieldTable(bound, tuple(FieldRow(str(e), field(exact_epsilon(e))) for e in epsilon), start)


def field_of(formula: Formula, context: int | None = None, *, start: int = 0) -> Callable[[Fraction], int]:
    """How the receptive field for an epsilon is found; of a bounded family, the worst case.

    Args:
        formula: without open parameters.
        context: rows of so many tokens; without it, the whole series, which must converge.
        start: the first distance.
    """
    if formula.is_bounded_family:
        return _worst(formula, context, start).smallest
    return partial(smallest, series(formula, start=start) if context is None else Row(formula, context, start))


class FieldRow(NamedTuple):
    """A receptive field in tokens, and the epsilon that it is for."""

    epsilon: str
    tokens: int


@dataclass(frozen=True)
class FieldTable:
    """The receptive fields of one encoding for several epsilons."""

    formula: Formula
    rows: tuple[FieldRow, ...]
    start: int = 0

    def __iter__(self) -> Iterator[FieldRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        rows = (f"{row['epsilon']:>8}  {row['tokens']}" for row in self.json())
        return "\n".join([f"receptive field of {self.formula}, in tokens for each epsilon", *rows])

    def coq(self) -> str:
        """A file for the proof assistant Coq whose theorems are these fields; ValueError says why there is none."""
        return file_text([fields_block(self.formula, self.coq_fields(), self.start)])

    def coq_fields(self) -> list[tuple[Fraction, int]]:
        """The exact epsilons and their fields."""
        return [(exact_epsilon(row.epsilon), row.tokens) for row in self.rows]

    def json(self) -> list[dict[str, str]]:
        """The table as plain data; all digits, however many."""
        return [{"epsilon": row.epsilon, "tokens": digits(row.tokens)} for row in self.rows]

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        body = "".join(f"<tr><td>{row['epsilon']}</td><td>{row['tokens']}</td></tr>" for row in self.json())
        formula = f"<math>{markup(self.formula.mathml())}</math>"
        return f"<table><caption>{formula}</caption><tr><th>epsilon</th><th>tokens</th></tr>{body}</table>"

    def figure(self, path: str | Path | None = None, *, context: int = 512) -> Any:
        """The receptive field against epsilon as a figure; with a path, written as its ending says."""
        from farfield.theory.fields.curves import curve, fields_figure

        return fields_figure([curve(self.formula.text(), self.formula, context)], path, context=context)


def reach(
    encoding: Encoding,
    epsilon: str | float | Fraction,
    context: int,
    *,
    start: int = 0,
    parameters: Parameters | None = None,
    width: int = WIDTH,
) -> int:
    """The practical reach within a context: the same definition over the first `context` distances only.

    It exists for divergent encodings too, and grows with the context there; it is no receptive field. Of a bounded
    family it is the worst case.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the weights that may lie outside.
        context: how many tokens there are.
        start: the first distance of the series.
        parameters: a value for each parameter that the encoding leaves open, such as {"k": "1/16"}.
        width: of one head, for encodings that depend on it.
    """
    e, length = exact_epsilon(epsilon), whole(context, "context")
    return field_of(bound_formula(encoding, parameters, width=width), length, start=start)(e)


def _worst(formula: Formula, context: int | None, start: int) -> WorstCase:
    """The worst case over a bounded family, which takes the place of one bias's weights."""
    from farfield.theory.fields.windows import WorstCase

    return WorstCase(formula, context, start)


class Leak(float):
    """A share of the weights as a number, with the enclosure that contains it for certain: `low` and `high`.

    Over several heads it is their mean, and `heads` has that of each.
    """

    low: float
    high: float
    heads: tuple[Leak, ...]

    def __new__(cls, value: float, low: float = 0.0, high: float = 1.0, heads: tuple[Leak, ...] = ()) -> Leak:
        leak = super().__new__(cls, value)
        leak.low, leak.high, leak.heads = low, high, heads
        return leak

    def __getnewargs__(self) -> tuple[Any, ...]:
        return float(self), self.low, self.high, self.heads

    @property
    def enclosure(self) -> tuple[float, float]:
        """Two numbers between which the share lies for certain."""
        return self.low, self.high


def enclosed_leak(share: arb, heads: tuple[Leak, ...] = ()) -> Leak:
    low = max(0.0, math.nextafter(float(share.lower()), -math.inf))
    high = min(1.0, math.nextafter(float(share.upper()), math.inf))
    return Leak(min(max(float(share.mid()), low), high), low, high, heads)


def leak(
    encoding: Encoding,
    train_length: int,
    test_length: int,
    *,
    heads: int | None = None,
    width: int = WIDTH,
    start: int = 0,
    parameters: Parameters | None = None,
) -> Leak:
    """The share of a row of `test_length` tokens that lies beyond the training length m: 1 - head(m)/head(n).

    It is defined for every encoding, divergent ones too, and orders the paper's six fixed encodings as their damage
    at 18 times the training length does. Of a bounded family it is the worst case.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        train_length: m, in tokens.
        test_length: n, at least m.
        heads: the mean over so many heads, with the parameters that the encoding gives each of them.
        width: of one head, for encodings that depend on it.
        start: the first distance of the series.
        parameters: a value for each parameter that the encoding leaves open; with heads, one for all or a list.
    """
    m, n = whole(train_length, "training length"), whole(test_length, "test length")
    if n < m:
        raise ValueError(f"the test length {n} must not be below the training length {m}")
    with ctx.workprec(max(ctx.prec, 96)):
        shares = []
        for row in find(encoding).heads(heads, parameters, width=width):
            bound = bound_formula(encoding, row, width=width)
            if bound.is_bounded_family:
                shares.append(_worst(bound, n, start).share(m))
                continue
            weights = Row(bound, n, start)
            total = weights.B()
            if not total > 0:
                raise ValueError(f"all weights up to distance {n} are 0, so there is no leak")
            shares.append(weights.tail(m) / total)
        if heads is None and len(shares) == 1:
            return enclosed_leak(shares[0])
        return enclosed_leak(sum(shares, arb(0)) / len(shares), tuple(enclosed_leak(s) for s in shares))


def tokens(weights: Weights, epsilons: Iterable[str | float | Fraction]) -> list[str]:
    """The receptive field for each epsilon, all its digits."""
    return [digits(smallest(weights, exact_epsilon(e))) for e in epsilons]


def digits(n: int) -> str:
    """All digits of an integer, however long (Python itself stops at 4300)."""
    return str(fmpz(n))


# ---------------------------------------------------------------------------------------------------- the search
def smallest(weights: Weights, epsilon: Fraction) -> int:
    """The smallest j with tail(j) < epsilon * B, every comparison certified.

    A guess comes from Newton's method on log(tail/(epsilon*B)), whose precision doubles as it converges; two certified
    comparisons then confirm it, or a bracket is widened around it and halved.
    """
    guess = max(_guess(weights, epsilon), weights.start + 1)
    if guess >= _FARTHEST:
        _refuse_if_long(weights, epsilon)
    low, high, step = weights.start, None, 1  # tail(low) >= epsilon*B, tail(high) < epsilon*B
    j = guess
    while high is None or (low < guess and low == weights.start and step > 0):
        if below(weights, j, epsilon):
            high = j
            if j - 1 <= low:
                return high
            j, step = max(low + 1, j - step), 2 * step
        else:
            low = j
            if high is not None:
                break
            j, step = j + step, 2 * step
            if j > _FARTHEST:
                _refuse_if_long(weights, epsilon)
                high = _FARTHEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if below(weights, middle, epsilon) else (middle, high)
    return high


def below(weights: Weights, j: int, epsilon: Fraction, bits: int | None = None) -> bool:
    """Whether tail(j) < epsilon * B, decided: the precision is raised until it is, and ties are settled exactly."""
    bits = bits or _bits(j, epsilon)
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            gap = ball(epsilon) * weights.B() - weights.tail(j)
            if gap > 0 or gap <= 0:
                return bool(gap > 0)
        if not gap.is_finite():
            raise UndecidedError(f"the sum of the weights beyond distance {_shown(j)} could not be enclosed")
        if weights.tie(j, epsilon):
            return False
        if weights.rough:
            raise UndecidedError(
                f"whether {_shown(j)} tokens are enough could not be decided: the weights fall so slowly, or vary so "
                "fast, that their sum is enclosed only roughly"
            )
        bits *= 2
    raise UndecidedError(
        f"whether {_shown(j)} tokens are enough could not be decided: both sides agree to {_MOST_BITS} bits"
    )


def _shown(j: int) -> str:
    """A number of tokens in a sentence: all digits, or their number."""
    text = digits(j)
    return text if len(text) <= 30 else f"{text[0]}.{text[1:5]}e{len(text) - 1}"


def _bits(j: int, epsilon: Fraction) -> int:
    """The precision that usually decides a comparison at j, in steps that let sums be kept."""
    need = j.bit_length() + epsilon.denominator.bit_length() - epsilon.numerator.bit_length() + 56
    step = 32 if need < 512 else 256
    return max(96, -(-need // step) * step)


def _refuse_if_long(weights: Weights, epsilon: Fraction) -> None:
    """Say so if the answer is proven to have more digits than are ever written out."""
    if not below(weights, _FARTHEST, epsilon, bits=128):
        raise UndecidedError(
            f"the receptive field has more than {_MOST_DIGITS} digits: no context will ever come near it"
        )


def _nearest(x: arb) -> int:
    """The middle of a ball, rounded up to a whole number."""
    mantissa, exponent = (int(v) for v in x.mid().man_exp())
    return mantissa << exponent if exponent >= 0 else -(-mantissa >> -exponent)


def _guess(weights: Weights, epsilon: Fraction) -> int:
    """A whole number close to the answer, by Newton's method: nothing about it is certified."""
    j, bits = weights.start + 1, _bits(1, epsilon)
    low, seen = 1, set[tuple[int, int]]()
    for _ in range(200):
        with ctx.workprec(bits):
            target = ball(epsilon) * weights.B()
            tail, term = weights.tail(j).mid(), weights.term(j).mid()
            if not (tail > 0 and term > 0 and target > 0):
                return j
            excess, rate = (tail / target.mid()).log(), term / tail
            if rate * arb(fmpz(j)) > 8:  # falls like an exponential: a step in j
                new = arb(fmpz(j)) + (excess / rate).mid()
            else:  # falls like a power: a step in log j
                new = arb(fmpz(j)) * (excess / (rate * arb(fmpz(j)))).mid().min(arb(j.bit_length() + 8)).exp()
        if not new.is_finite():
            return j
        low = max(low, j) if excess > 0 else low
        back = min(j // 16, math.isqrt(low * j))  # a step back from far beyond halves the number of digits
        near = min(max(_nearest(new), weights.start + 1, back), _FARTHEST)
        if near == _FARTHEST:
            return near
        enough = _bits(near, epsilon)
        if abs(near - j) << (bits // 3) <= j or near == j:
            if bits >= enough:
                return near
            bits = min(2 * bits, enough)
        elif bits < enough and bits - _bits(1, epsilon) < near.bit_length() < 256:
            bits = enough
        j = near
        if (j, bits) in seen:
            return j
        seen.add((j, bits))
    return j
