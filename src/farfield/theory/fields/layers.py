"""From heads to a layer to a model: how far several heads see together, and L layers one after the other.

A head attends to the distance t with weight p(t) = b(t)/B. A layer of H heads is reported by its largest head (every
head loses less than epsilon beyond it) and by its mixture (the average over the heads loses less than epsilon). A model
of L layers adds up distances: T = T_1 + ... + T_L with T_l independent, distributed as the mixture of layer l, or as
(1 - residual)*p + residual*[t = 0] if a share of each layer's input passes by. The model's reach is the smallest n with
P(T >= n) < epsilon. L times the TRF of one layer is not a bound of it; the union bound is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpz, fmpz_poly

from farfield.formula import Formula
from farfield.formula.formula import parameter_table
from farfield.theory.errors import UndecidedError
from farfield.theory.exact.constants import ball
from farfield.theory.fields.receptive import exact_epsilon, smallest, whole
from farfield.theory.sums.closed import Series
from farfield.theory.sums.series import Encoding, series
from farfield.zoo import WIDTH, Parameters, Value, bound_formula, find

MOST_LAYERS = 10_000
_LONGEST = 1 << 20  # tokens that a convolution may span


class Mixture:
    """The average p(t) over heads of their weights b(t)/B, as weights of their own: B is 1."""

    def __init__(self, heads: Sequence[Series], residual: Fraction = Fraction(0)):
        self.heads, self.residual = list(heads), residual
        self.start = min(h.start for h in heads)

    @property
    def rough(self) -> bool:
        return any(h.rough for h in self.heads)

    def _mean(self, values: list[arb]) -> arb:
        share = ball(self.residual)
        return (1 - share) * sum(values, arb(0)) / len(self.heads)

    def term(self, j: int) -> arb:
        own = ball(self.residual) if j == 0 else arb(0)
        return own + self._mean([h.term(j) / h.B() for h in self.heads])

    def tail(self, j: int) -> arb:
        return arb(1) if j <= self.start else self._mean([h.tail(j) / h.B() for h in self.heads])

    def B(self) -> arb:  # noqa: N802 - the paper's name
        return arb(1)

    def tie(self, j: int, epsilon: Fraction) -> bool | None:
        if len({id(h) for h in self.heads}) == 1 and self.residual == 0:
            return self.heads[0].tie(j, epsilon)
        return None


@dataclass(frozen=True)
class HeadField:
    """One head: its number from 1, its parameters, its receptive field."""

    number: int
    parameters: dict[str, Value]
    tokens: int


@dataclass(frozen=True)
class LayerField:
    """The receptive fields of a layer: each head's, the largest, and that of the mixture."""

    heads: list[HeadField]
    largest: int
    mixture: int


def head_formulas(
    encoding: Encoding, heads: int | None, parameters: Parameters | None, width: int
) -> list[tuple[dict[str, Value], Formula]]:
    """The parameters of every head, and its formula; a named encoding without a number of heads has one."""
    known = find(encoding)
    lengths = [len(v) for v in parameter_table(parameters).values() if isinstance(v, list | tuple)]
    count = heads if heads is not None else lengths[0] if lengths else 1 if known.parameters else None
    rows = known.heads(count, parameters, width=width)
    return [(row, bound_formula(encoding, row, width=width)) for row in rows]


def layer(
    encoding: Encoding,
    epsilon: str | float | Fraction,
    heads: int | None = None,
    *,
    width: int = WIDTH,
    start: int = 0,
    parameters: Parameters | None = None,
) -> LayerField:
    """The receptive fields of a layer of heads: one by one, the largest, and the mixture's.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the weights that may lie outside.
        heads: how many there are.
        width: of one head, for encodings that depend on it.
        start: the first distance of the series.
        parameters: values before those of the encoding's own rules: one for all heads, or a list with one for each.
    """
    e = exact_epsilon(epsilon)
    rows = head_formulas(encoding, heads, parameters, width)
    weights = [series(formula, start=start) for _, formula in rows]
    table = [HeadField(h, row, smallest(s, e)) for h, ((row, _), s) in enumerate(zip(rows, weights, strict=True), 1)]
    return LayerField(table, max(h.tokens for h in table), smallest(Mixture(weights), e))


# ---------------------------------------------------------------------------------------------------- the model
@dataclass(frozen=True)
class ModelReach:
    """How far a model of L layers reaches: by convolution, and by the union bound, which is never below it."""

    layers: int
    tokens: int
    union_bound: int


def _union(mixture: Mixture, epsilon: Fraction, layers: int) -> int:
    return 1 + layers * (smallest(mixture, epsilon / layers) - 1)


def model_reach(
    encoding: Encoding,
    epsilon: str | float | Fraction,
    layers: int,
    heads: int | None = None,
    *,
    residual: str | float | Fraction = 0,
    width: int = WIDTH,
    start: int = 0,
    parameters: Parameters | None = None,
) -> ModelReach:
    """How many tokens a model of so many layers reaches, when each layer passes on distances by its weights.

    It is the smallest n with P(T_1 + ... + T_L >= n) < epsilon, T_i being drawn by the weights of layer i; certified
    by integer convolutions that are rounded both ways. Only p(t) for t < n enters P(T < n), so that cutting the
    distribution costs nothing. The union bound beside it is 1 + L*(n(epsilon/L) - 1), which is L*(w - 1) + 1 for
    windows of w tokens.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        epsilon: the share of the model's weight that may lie outside.
        layers: how many there are, L.
        heads: how many each layer has.
        residual: the share of each layer's input that passes by.
        width: of one head, for encodings that depend on it.
        start: the first distance of the series.
        parameters: values before those of the encoding's own rules: one for all heads, or a list with one for each.
    """
    e, count = exact_epsilon(epsilon), whole(layers, "number of layers", most=MOST_LAYERS)
    rows = head_formulas(encoding, heads, parameters, width)
    mixture = Mixture([series(formula, start=start) for _, formula in rows], residual_share(residual))
    bound = _union(mixture, e, count)
    single = smallest(mixture, e)
    length = min(bound, max(64, 2 * single)) + 1
    bits = 64 + (e.denominator // e.numerator).bit_length()
    while True:
        if length > _LONGEST:
            raise UndecidedError(
                f"the model's reach is beyond {_LONGEST} tokens, too far for the convolution; it is at most {bound}"
            )
        answer = _by_convolution(mixture, e, count, length, bits)
        if answer is not None:
            return ModelReach(count, answer, bound)
        if length > bound:
            bits *= 2
            if bits > 1024:
                raise UndecidedError("the model's reach could not be decided: P(T >= n) agrees with epsilon")
        length = min(2 * length, max(bound + 1, length + 1)) if length <= bound else length


def residual_share(residual: str | float | Fraction) -> Fraction:
    try:
        value = Fraction(str(residual))
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if not 0 <= value < 1:
        raise ValueError(f"the residual share must be at least 0 and below 1, not {str(residual)[:40]}")
    return value


def _by_convolution(mixture: Mixture, epsilon: Fraction, layers: int, length: int, bits: int) -> int | None:
    """The answer if it lies below `length` and is decided at this scale; None otherwise."""
    low, high = _scaled_distribution(mixture, length, bits)
    below, above = _power(low, layers, length, bits, up=False), _power(high, layers, length, bits, up=True)
    one = fmpz(1) << bits
    limit = Fraction(int(one)) * (1 - epsilon)  # P(T >= n) < epsilon  <=>  P(T < n) > 1 - epsilon
    least, most = fmpz(0), fmpz(0)
    for n in range(1, length + 1):
        least += below[n - 1]
        most += above[n - 1]
        if int(least) > limit:
            return n
        if int(most) > limit:
            return None  # between the two roundings: more bits are needed
    return None


def _scaled_distribution(mixture: Mixture, length: int, bits: int) -> tuple[fmpz_poly, fmpz_poly]:
    low, high = [], []
    with ctx.workprec(bits + 32):
        weights = [(h, 1 / h.B()) for h in mixture.heads]
        share = ball(mixture.residual)
        scale = (1 - share) / len(mixture.heads) * (arb(1) * (fmpz(1) << bits))
        rest = share * (fmpz(1) << bits)
        for t in range(length):
            value = arb(0)
            for head, factor in weights:
                value += head.term(t) * factor
            value = value * scale + (rest if t == 0 else 0)
            low.append(value.lower().floor().fmpz())
            high.append(value.upper().ceil().fmpz())
    return fmpz_poly(low), fmpz_poly(high)


def _power(p: fmpz_poly, exponent: int, length: int, bits: int, up: bool) -> fmpz_poly:
    """p**exponent cut to `length` coefficients and scaled back after each product, rounded down or up."""

    def product(a: fmpz_poly, b: fmpz_poly) -> fmpz_poly:
        extra = (fmpz(1) << bits) - 1 if up else fmpz(0)
        return fmpz_poly([(c + extra) >> bits for c in (a * b).coeffs()[:length]])

    result: fmpz_poly | None = None
    square = p
    while True:
        if exponent & 1:
            result = square if result is None else product(result, square)
        exponent >>= 1
        if not exponent:
            assert result is not None
            return result
        square = product(square, square)
