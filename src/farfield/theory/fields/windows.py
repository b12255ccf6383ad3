"""What a window of w tokens can cost: the bounds on the attention that lies beyond it, and the smallest window.

A query attends with weights proportional to exp(s(t) + r(t)), where s = q.k/sqrt(d) is the score of the key at distance
t and r the bias of the encoding. If |s| <= M for every key, the share of attention on the keys t >= w is at most

    1 / (1 + exp(-2M) * head(w)/tail(w))                                    (Theorem A of docs/cache.md)

and some scores attain it. Leaving these keys out changes the output by at most that share times (largest norm of a kept
value + largest norm of a dropped one). It is a statement about one attention layer, not about a whole network.

Every sum is an Arb ball and every comparison is decided; floats are rounded the safe way.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from flint import ctx

from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.exact.signs import ball
from farfield.theory.fields.layers import head_formulas
from farfield.theory.fields.receptive import Weights, digits, exact_epsilon, smallest, whole
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import Encoding, series
from farfield.zoo import WIDTH, bound_formula

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


def weights_of(
    encoding: Encoding, context: int | None = None, *, parameters: Mapping[str, Any] | None = None
) -> Weights:
    """The weights that a query meets: the whole series, or those of texts of at most `context` tokens.

    The series exists only where it converges; the row of a context always does.
    """
    if context is None:
        return series(encoding, parameters=parameters)
    return Row(bound_formula(encoding, parameters), whole(context, "context"))


# ------------------------------------------------------------------------------------------------ before inference
def largest_share(weights: Weights, window: int, logit_bound: str | float | Fraction) -> Any:
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
    parameters: dict[str, Any]
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
    parameters: Mapping[str, Any] | None = None,
) -> Windows:
    """The smallest window of each head, beyond which at most a share epsilon of the attention can lie.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the attention that may be lost.
        logit_bound: the largest |q.k|/sqrt(d).
        heads: how many there are.
        context: windows that hold for texts up to this length only; without it, for texts of every length.
        width: of one head, for encodings that depend on it.
        parameters: values before those of the encoding's own rules: one for all heads, or a list with one for each.
    """
    exact_epsilon(epsilon), exact_bound(logit_bound)
    table = []
    for number, (row, formula) in enumerate(head_formulas(encoding, heads, parameters, width), 1):
        try:
            tokens: int | None
            if formula.is_class:
                from farfield.theory.fields.worst import WorstCase

                eps, m = exact_epsilon(epsilon), exact_bound(logit_bound)
                tokens = WorstCase(encoding, formula, context).smallest(eps, m, strict=False)
            else:
                tokens = smallest_window(weights_of(formula, context), epsilon, logit_bound)
            why = ""
        except DivergenceError:
            tokens, why = None, "the series diverges: far keys outweigh near ones in a text that is long enough"
        except UndecidedError as error:
            tokens, why = None, str(error)
        table.append(HeadWindow(number, row, tokens, why))
    return Windows(table, context or DEFAULT_CONTEXT, context is not None)


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


# ------------------------------------------------------------------------------------------------ another rule
def threshold_window(
    weights: Weights, epsilon: str | float | Fraction, logit_bound: str | float | Fraction, context: int
) -> int:
    """The window of the rule "drop a key where its bias is below -(2M + ln n) + ln epsilon", counted from r(0).

    The pruning rule of the Forgetting Transformer (Lin et al. 2025): each of at most n dropped keys may have a share of
    epsilon/n. It gives the same guarantee as ours for texts of n tokens. For weights that never grow with distance; the
    window may exceed n, where the rule then drops nothing.
    """
    eps, m = exact_epsilon(epsilon), exact_bound(logit_bound)
    n = whole(context, "context")
    with ctx.workprec(128):
        least = weights.term(0) * ball(eps) * (-2 * ball(m)).exp() / n
        low, high = 0, 1  # kept at `low`, dropped from `high` on
        while not weights.term(high) < least:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            if weights.term(middle) < least:
                high = middle
            else:
                low = middle
    return high


# ------------------------------------------------------------------------------------------------ rounding
def _fraction(end: Any, bits: int, up: bool) -> Fraction:
    """An end of a ball as a fraction of about `bits` bits, moved outwards."""
    mantissa, exponent = (int(v) for v in end.man_exp())
    drop = max(0, mantissa.bit_length() - bits)
    mantissa, exponent = (-(-mantissa >> drop) if up else mantissa >> drop), exponent + drop
    return Fraction(mantissa) * Fraction(2) ** exponent


def _below(x: Any) -> float:
    """A double that is not above the ball."""
    return math.nextafter(float(x.lower()), -math.inf)


def _above(x: Any) -> float:
    """A double that is not below the ball."""
    return math.nextafter(float(x.upper()), math.inf)


def _above_log(x: Any) -> float:
    """The logarithm of the upper end of a ball that may contain 0."""
    top = x.upper()
    return _above(top.log()) if top > 0 else -math.inf
