"""What a window of w tokens can cost: the bounds on the attention that lies beyond it, and the smallest window.

A query attends with weights proportional to exp(s(t) + r(t)), where s = q.k/sqrt(d) is the score of the key at distance
t and r the bias of the encoding. If |s| <= M for every key, the share of attention on the keys t >= w is at most

    1 / (1 + exp(-2M) * head(w)/tail(w))                                    (Theorem A of docs/cache.md)

and some scores attain it. Leaving these keys out changes the output by at most that share times (largest norm of a kept
value + largest norm of a dropped one). It is a statement about one attention layer, not about a whole network.

Over a bounded family with upper bound E, lower bound e and a sink of logit s (`WorstCase`), it is at most, beyond j,

    exp(2M)*T / (exp(2M)*T + H + exp(M)*exp(s)),    T = sum of exp(E(t)) for t >= j,    H = sum of exp(e(t)) for t < j

and it is attained in the limit of long rows: near keys choose e and far ones E. It falls as j grows, so the smallest j
is found by doubling and halving. Every sum is an Arb ball and every comparison is decided; floats are rounded the safe
way.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from flint import arb, ctx, fmpq

from farfield.formula import Formula
from farfield.formula.algebras import ball_value
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.exact.constants import ball
from farfield.theory.fields.layers import head_formulas
from farfield.theory.fields.receptive import Weights, digits, exact_epsilon, smallest, whole
from farfield.theory.sums.closed import Series
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import Encoding, series
from farfield.words import tokens
from farfield.zoo import WIDTH, Parameters, Value, bound_formula

_WIDEST = 1 << 60  # tokens of a bounded family's window
_MOST_BITS = 4096
_LONGEST_NUMBER = 14_000  # bits of a number that Python writes in decimal digits
SCOPE = "The bound is for each attention layer by itself, not for a network as a whole."
LARGEST_BOUND = 10_000  # of |q.k|/sqrt(d): beyond it nothing can be said that anyone could use

# nothing longer is ever turned into a number: 1e999999999 would take all memory
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?|\d{1,40}/[1-9]\d{0,39}")


def exact_bound(logit_bound: str | float | Fraction) -> Fraction:
    """The bound M on |q.k|/sqrt(d) as the exact decimal that was typed."""
    text = str(logit_bound).strip()
    if isinstance(logit_bound, Fraction):
        value = logit_bound
    elif isinstance(logit_bound, bool) or not _NUMBER.fullmatch(text):
        raise ValueError(f"the logit bound must be a number >= 0, such as 5, not {text[:40]!r}")
    else:
        value = Fraction(text)
    if not 0 <= value <= LARGEST_BOUND:
        raise ValueError(f"the logit bound must lie from 0 to {LARGEST_BOUND}, not {str(logit_bound)[:40]}")
    return value


def weights_of(encoding: Encoding, context: int | None = None, *, parameters: Parameters | None = None) -> Weights:
    """The weights that a query meets: the whole series, or those of texts of at most `context` tokens.

    The series exists only where it converges; the row of a context always does.
    """
    if context is None:
        return series(encoding, parameters=parameters)
    return Row(bound_formula(encoding, parameters), whole(context, "context"))


# ------------------------------------------------------------------------------------------------ before inference
def largest_share(weights: Weights, window: int, logit_bound: str | float | Fraction) -> arb:
    """The largest share of attention beyond a window that scores within +-logit_bound allow, as a ball: Theorem A."""
    m = ball(exact_bound(logit_bound))
    whole(window, "window")
    with ctx.workprec(max(ctx.prec, 96)):
        tail = weights.tail(window)
        head = weights.B() - tail
        far = (2 * m).exp() * tail
        return far / (far + head)


def smallest_window(weights: Weights, epsilon: str | float | Fraction, logit_bound: str | float | Fraction) -> int:
    """The smallest window beyond which at most a share epsilon lies, whatever the scores within +-logit_bound.

    The bound is at most epsilon where tail(w) <= e*B with e = epsilon/(epsilon + (1 - epsilon)*exp(2M)). As e is
    irrational for M > 0, the exact search for the receptive field runs on two rationals around it, which are brought
    closer until both give the same number.
    """
    eps, m = exact_epsilon(epsilon), exact_bound(logit_bound)
    if m == 0:
        result = smallest(weights, eps)  # the smallest w with tail(w) < epsilon*B; a tie is enough here
        return result - 1 if result - 1 > weights.start and weights.tie(result - 1, eps) else result
    bits = 96 + 6 * math.ceil(m)  # a power law's window has about 2M/ln 2 bits
    while bits <= 1 << 17:
        with ctx.workprec(bits + 8 + 4 * math.ceil(m)):
            e = ball(eps)
            share = e / (e + (1 - e) * (2 * ball(m)).exp())
            low, high = _fraction(share.lower(), bits, up=False), _fraction(share.upper(), bits, up=True)
        least, most = smallest(weights, high), smallest(weights, low)
        if least == most:
            return most
        bits *= 4
    raise UndecidedError(f"whether {digits(least)[:40]} tokens are enough could not be decided")


@dataclass(frozen=True)
class HeadWindow:
    """The window of one head: `tokens` is None where no window is enough at every length, and `why` says so."""

    number: int
    parameters: dict[str, Value]
    tokens: int | None
    why: str = ""


@dataclass(frozen=True)
class Windows:
    """The smallest windows of a layer's heads, and what a cache of this size holds against the full one.

    `context` is the length of the text for which the two sizes are told; `limited` says whether the windows themselves
    are proven for texts up to that length only.
    """

    heads: list[HeadWindow]
    context: int
    limited: bool
    epsilon: str
    logit_bound: str

    @property
    def sentence(self) -> str:
        """How many tokens are enough."""
        widths = [h.tokens for h in self.heads if h.tokens is not None]
        if not widths:
            return "no window is enough."
        if len(widths) < len(self.heads):
            return f"{len(widths)} of {len(self.heads)} heads have a window, of at most {tokens(max(widths))} tokens."
        each = f"each of the {len(self.heads)} heads" if len(self.heads) > 1 else "the head"
        length = f" in texts of up to {tokens(self.context)} tokens" if self.limited else ""
        return f"the last {tokens(max(widths))} tokens are enough for {each}{length}."

    def reasons(self) -> list[str]:
        """Why some heads have no window, or none that helps."""
        sentences = []
        for why in dict.fromkeys(h.why for h in self.heads if h.tokens is None):
            numbers = ", ".join(str(h.number) for h in self.heads if h.why == why)
            sentences.append(f"No window exists for head {numbers}: {why}.")
        if wide := [str(h.number) for h in self.useless if h.tokens is not None]:
            sentences.append(
                f"No useful window for head {', '.join(wide)}: its weights fall so slowly that it must keep every key "
                f"of a text of {tokens(self.context)} tokens."
            )
        return sentences

    def json(self) -> dict[str, object]:
        """The windows as plain data; one too long for a number of Python's as its digits."""
        widths = [h.tokens for h in self.heads]
        return {
            "windows": [digits(n) if n is not None and n.bit_length() > _LONGEST_NUMBER else n for n in widths],
            "cache_tokens": self.cache_tokens,
            "full_tokens": self.full_tokens,
            "context": self.context,
            "every_length": not self.limited,
            "epsilon": self.epsilon,
            "logit_bound": self.logit_bound,
            "why": [h.why for h in self.heads],
            "scope": SCOPE,
        }

    @property
    def saving(self) -> float:
        """How many times smaller the cache is than without windows."""
        return self.full_tokens / self.cache_tokens

    @property
    def cache_tokens(self) -> int:
        """Tokens that the heads of one layer keep, added up."""
        return sum(self.context if h.tokens is None else min(h.tokens, self.context) for h in self.heads)

    @property
    def full_tokens(self) -> int:
        """Tokens that they would keep without windows."""
        return self.context * len(self.heads)

    @property
    def useless(self) -> list[HeadWindow]:
        """The heads that must keep every token of the context."""
        return [h for h in self.heads if h.tokens is None or h.tokens >= self.context]


DEFAULT_CONTEXT = 32_768  # tokens of the text whose full cache is compared with


def windows(
    encoding: Encoding,
    epsilon: str | float | Fraction,
    logit_bound: str | float | Fraction,
    heads: int | None = None,
    *,
    context: int | None = None,
    width: int = WIDTH,
    start: int = 0,
    parameters: Parameters | None = None,
) -> Windows:
    """The smallest window of each head, beyond which at most a share epsilon of the attention can lie.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the attention that may be lost.
        logit_bound: the largest |q.k|/sqrt(d).
        heads: how many there are.
        context: windows that hold for texts up to this length only; without it, for texts of every length.
        width: of one head, for encodings that depend on it.
        start: the first distance of the series.
        parameters: values before those of the encoding's own rules: one for all heads, or a list with one for each.
    """
    exact_epsilon(epsilon), exact_bound(logit_bound)
    table = []
    for number, (row, formula) in enumerate(head_formulas(encoding, heads, parameters, width), 1):
        try:
            table.append(HeadWindow(number, row, certified_window(formula, epsilon, logit_bound, context, start)))
        except DivergenceError:
            why = "the series diverges: far keys outweigh near ones in a text that is long enough"
            table.append(HeadWindow(number, row, None, why))
        except UndecidedError as error:
            table.append(HeadWindow(number, row, None, str(error)))
    return Windows(table, context or DEFAULT_CONTEXT, context is not None, str(epsilon), str(logit_bound))


def certified_window(
    formula: Formula,
    epsilon: str | float | Fraction,
    logit_bound: str | float | Fraction,
    context: int | None = None,
    start: int = 0,
) -> int:
    """The smallest window of one bias, or of a bounded family in the worst case; both without open parameters."""
    if formula.is_bounded_family:
        worst = WorstCase(formula, context, start)
        return worst.smallest(exact_epsilon(epsilon), exact_bound(logit_bound), strict=False)
    weights = series(formula, start=start) if context is None else Row(formula, whole(context, "context"), start)
    return smallest_window(weights, epsilon, logit_bound)


# ------------------------------------------------------------------------------------------------ bounded families
class WorstCase:
    """A bounded family without open parameters, as something whose windows can be asked for.

    Args:
        formula: the family.
        context: rows of so many tokens only; without it, rows of every length.
        start: the first distance; a family is judged from 0 on.
    """

    def __init__(self, formula: Formula, context: int | None = None, start: int = 0):
        if start:
            raise ValueError(f"the worst case over a bounded family starts at distance 0, not at {start}")
        self.formula, self.lower, self.sink, self.context = formula, formula.lower_bound, formula.sink, context
        upper = formula.upper_bound
        self.upper = series(upper) if context is None else Row(upper, context)  # refuses what diverges

    @cached_property
    def _whole_lower(self) -> Series | None:
        """The sums of the lower bound, if they are finite."""
        if self.context is not None:
            return Row(self.lower, self.context)
        try:
            return series(self.lower)
        except (DivergenceError, UndecidedError):
            return None

    def _head(self, j: int) -> arb:
        whole = self._whole_lower
        return whole.B() - whole.tail(j) if whole is not None else Row(self.lower, j).B()

    def near(self) -> arb:
        """The smallest that the keys of a long row and its sink can add up to."""
        whole = self._whole_lower
        if whole is None:
            raise UndecidedError("what the nearest keys add up to at least could not be enclosed")
        return whole.B() + self._sink(arb(0))

    def _sink(self, m: arb) -> arb:
        return arb(0) if self.sink is None else (m + ball_value(self.sink, {})).exp()

    def share(self, j: int, logit_bound: Fraction = Fraction(0)) -> arb:
        """The largest share of a row beyond j, as a ball."""
        m = ball(logit_bound)
        far = (2 * m).exp() * self.upper.tail(j)
        return far / (far + self._head(j) + self._sink(m))

    def smallest(self, epsilon: Fraction, logit_bound: Fraction = Fraction(0), *, strict: bool = True) -> int:
        """The smallest j beyond which less than a share epsilon lies (at most epsilon, if not strict)."""
        limit = fmpq(epsilon.numerator, epsilon.denominator)

        def enough(j: int) -> bool:
            bits = 128
            while bits <= _MOST_BITS:
                with ctx.workprec(bits):
                    share = self.share(j, logit_bound)
                    if share < limit or (share.is_zero() and not strict):
                        return True
                    if share > limit or (share.is_exact() and strict and share == limit):
                        return False
                bits *= 4
            raise UndecidedError(f"whether {j} tokens are enough could not be decided")

        high = 1
        while not enough(high):
            high *= 2
            if high > _WIDEST:
                raise UndecidedError(f"the window is wider than {_WIDEST:,} tokens")
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high


# ------------------------------------------------------------------------------------------------ during inference
class LogSums(NamedTuple):
    """ln head(w), never too large, and ln tail(w), never too small, as doubles."""

    head: float
    tail: float


# A model adds the bias as a float32, which differs from r(t) by at most 2^-24*|r(t)|. Where |r| <= 1000 this moves a
# weight by a factor of at most exp(1000 * 2^-24); all other weights of 2^60 tokens together are below
# 2^60 * exp(-1000 + 1000 * 2^-24) < exp(-958). So the sums of the rounded weights obey:
_ROUNDED_BIAS = 1000 * 2.0**-24
_NEGLIGIBLE = -958.0
_LARGEST_SUM = 900.0  # ln B: then r(t) <= 900 everywhere


def log_sums(weights: Weights, window: int) -> LogSums:
    """The two sums that the run-time certificate needs, for the exact bias and for its rounding to float32 alike."""
    with ctx.workprec(128):
        tail = weights.tail(window)
        head = weights.B() - tail
        if not head > 0:
            raise ValueError(f"every weight within a window of {window} tokens is 0, so nothing can be certified")
        low, high = _below(head.log()), _above(tail.log()) if tail > 0 else _above_log(tail)
    if not max(low, high) < _LARGEST_SUM:
        raise ValueError("the bias is too large: the weights exp(r(t)) must add up to less than exp(900)")
    # the head may hold negligible weights whose rounding says nothing: they are left out
    low = low - _ROUNDED_BIAS + math.log1p(-math.exp(min(_NEGLIGIBLE - low, -1.0))) if low > -900 else -math.inf
    top = max(high, _NEGLIGIBLE)
    high = top + math.log(math.exp(high - top) + math.exp(_NEGLIGIBLE - top)) + _ROUNDED_BIAS
    return LogSums(low - 1e-12, high + 1e-12)


# ------------------------------------------------------------------------------------------------ rounding
def _fraction(end: arb, bits: int, up: bool) -> Fraction:
    """An end of a ball as a fraction of about `bits` bits, moved outwards."""
    mantissa, exponent = (int(v) for v in end.man_exp())
    drop = max(0, mantissa.bit_length() - bits)
    mantissa, exponent = (-(-mantissa >> drop) if up else mantissa >> drop), exponent + drop
    return Fraction(mantissa) * Fraction(2) ** exponent


def _below(x: arb) -> float:
    """A double that is not above the ball."""
    return math.nextafter(float(x.lower()), -math.inf)


def _above(x: arb) -> float:
    """A double that is not below the ball."""
    return math.nextafter(float(x.upper()), math.inf)


def _above_log(x: arb) -> float:
    """The logarithm of the upper end of a ball that may contain 0."""
    top = x.upper()
    return _above(top.log()) if top > 0 else -math.inf
