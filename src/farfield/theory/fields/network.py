"""The network leak: what share of a long text's influence on its last token comes from beyond the training length.

One layer with equal logits passes the token at distance t on with the share b(t)/head(i) in a row of i tokens. Several
layers, one after the other, add up distances (a rollout: rows normalised in each layer, the mean over heads).
The network leak is the share that ends at distance m or more from the last of n tokens. With one layer it is the leak.

Only distances below m enter the share that stays within m, so that L layers of H heads cost L*H products of series of
m terms, however long the text; balls carry the rounding.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Literal

from flint import arb, ctx, fmpz, fmpz_poly

from farfield import zoo
from farfield.formula import Formula
from farfield.formula.formula import parameter_table
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.layers import MOST_LAYERS, head_formulas, residual_share
from farfield.theory.fields.receptive import Leak, enclosed_leak, exact_epsilon, whole
from farfield.theory.sums.partial import Row
from farfield.theory.sums.series import Encoding
from farfield.zoo import WIDTH, Parameters, find
from farfield.zoo.encoding import number

_LONGEST = 1 << 16  # tokens of a training length


class NetworkLeak(Leak):
    """The share beyond the training length after all layers, with its enclosure; `layers` has it after each of them."""

    layers: tuple[Leak, ...]

    def __new__(cls, *leak: Any, layers: tuple[Leak, ...] = ()) -> NetworkLeak:
        result = super().__new__(cls, *leak)
        assert isinstance(result, NetworkLeak)
        result.layers = layers
        return result

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (float(self), self.low, self.high), {"layers": self.layers}


class _Head:
    """One head in one layer: b(t) for t < m, and one over the sum of the rows of n, n - 1, ... n - m + 1 tokens.

    Both are whole numbers in units of 2**-bits, rounded down and up, and scaled by the largest weight below m.
    """

    def __init__(self, formula: Formula, within: int, length: int, window: int | None, bits: int):
        seen = length if window is None else min(length, window)
        row = Row(formula, seen)
        terms = [row.term(t) if t < seen else arb(0) for t in range(within)]
        shortest = length - within + 1
        totals = [row.B() if shortest >= seen else Row(formula, shortest).B()]
        for tokens in range(shortest + 1, length + 1):
            totals.append(totals[-1] + row.term(tokens - 1) if tokens <= seen else totals[-1])
        scale = reduce(arb.max, terms).mid()
        if not (scale > 0 and all(total > 0 for total in totals)):
            raise UndecidedError("the network leak needs some weight within the training length in every row")
        self.series = [fmpz_poly(side) for side in _both_ways([term / scale for term in terms], bits)]
        self.inverses = _both_ways([scale / total for total in reversed(totals)], bits)


def _both_ways(values: Sequence[arb], bits: int) -> tuple[list[fmpz], list[fmpz]]:
    """Numbers in units of 2**-bits, rounded down and rounded up."""
    unit = arb(1) * (fmpz(1) << bits)
    scaled = [value * unit for value in values]
    return [_integer(v.lower().floor()) for v in scaled], [_integer(v.upper().ceil()) for v in scaled]


def _integer(value: arb) -> fmpz:
    """The one whole number that a ball holds."""
    number = value.unique_fmpz()
    assert number is not None
    return number


def network_leak(
    encoding: Encoding | list[Encoding] | tuple[Encoding, ...],
    train_length: int,
    test_length: int,
    *,
    layers: int | None = None,
    heads: int | None = None,
    windows: int | Sequence[int | None] | None = None,
    residual: str | float | Fraction = 0,
    width: int = WIDTH,
    parameters: Parameters | None = None,
) -> NetworkLeak:
    """The share of a rollout with equal logits through all layers that ends beyond the training length.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`; a list has one for each layer.
        train_length: m, in tokens.
        test_length: n, at least m: the row of the last of n tokens is followed through the layers.
        layers: how many there are; of a list of encodings or windows, its length.
        heads: how many each layer has, with the parameters that the encoding gives each of them.
        windows: tokens that each layer sees at most, the query's own among them; one for all, or a list.
        residual: the share of each layer's input that passes by its attention.
        width: of one head, for encodings that depend on it.
        parameters: a value for each parameter that the encoding leaves open; with heads, one for all or a list.
    """
    m, n = whole(train_length, "training length", most=_LONGEST), whole(test_length, "test length")
    if n < m:
        raise ValueError(f"the test length {n} must not be below the training length {m}")
    stack = _per_layer(list(encoding) if isinstance(encoding, list | tuple) else [encoding], layers, windows)
    share = residual_share(residual)

    def formulas(one: Encoding) -> list[Formula]:
        result = [formula for _, formula in head_formulas(one, heads, parameters, width)]
        for formula in result:
            formula.require_one_bias("the network leak")
        return result

    rows = {one: formulas(one) for one in dict.fromkeys(one for one, _ in stack)}
    for bits in (96, 192, 384, 768):
        shares = _rollout(stack, rows, m, n, share, bits)
        if all(s.rad() < 2**-60 for s in shares):
            after = tuple(enclosed_leak(s) for s in shares)
            return NetworkLeak(float(after[-1]), after[-1].low, after[-1].high, layers=after)
    raise UndecidedError("the network leak could not be enclosed")


def _per_layer(
    encodings: Sequence[Encoding], layers: int | None, windows: int | Sequence[int | None] | None
) -> list[tuple[Encoding, int | None]]:
    """Encoding and window of each layer."""
    listed = windows if isinstance(windows, list | tuple) else None
    lengths = [len(table) for table in (encodings, listed) if table is not None and len(table) != 1]
    counts = {*lengths, *([] if layers is None else [layers])}
    if len(counts) > 1:
        raise ValueError(f"the encodings, the windows and the number of layers differ: {sorted(counts)}")
    if not counts and layers is None and listed is None and len(encodings) == 1:
        raise ValueError("the network leak needs the number of layers")
    count = whole(counts.pop() if counts else 1, "number of layers", most=MOST_LAYERS)
    each = list(listed) * (count if len(listed) == 1 else 1) if listed is not None else [windows] * count
    for window in each:
        if window is not None:
            whole(window, "window")
    return list(zip(encodings if len(encodings) == count else [encodings[0]] * count, each, strict=True))


def _rollout(
    stack: Sequence[tuple[Encoding, int | None]],
    rows: Mapping[Encoding, Sequence[Formula]],
    m: int,
    n: int,
    residual: Fraction,
    bits: int,
) -> list[arb]:
    """The share beyond m after each layer, from the last one, whose query is followed, to the first."""
    made: dict[tuple[Encoding, int | None], list[_Head]] = {}
    one = fmpz(1) << bits
    arrived = [[one, *[fmpz(0)] * (m - 1)] for _ in range(2)]  # rounded down, rounded up
    shares = []
    for encoding, window in reversed(stack):
        if (encoding, window) not in made:
            with ctx.workprec(bits + 32):
                made[encoding, window] = [_Head(formula, m, n, window, bits) for formula in rows[encoding]]
        layer = made[encoding, window]
        for side in range(2):
            total = fmpz_poly([0])
            for head in layer:
                inverse = head.inverses[side]
                sent = fmpz_poly([_shifted(a * i, bits, side) for a, i in zip(arrived[side], inverse, strict=True)])
                total += sent.mul_low(head.series[side], m)
            passed = [_shifted(total[s], bits, side) for s in range(m)]
            by, through = residual.numerator * len(layer), residual.denominator - residual.numerator
            divisor = residual.denominator * len(layer)
            sums = (by * a + through * p for a, p in zip(arrived[side], passed, strict=True))
            arrived[side] = [-(-x // divisor) if side else x // divisor for x in sums]
        with ctx.workprec(bits + 32):
            low, high = (arb(sum(side, fmpz(0))) / one for side in arrived)
            shares.append((1 - low).union(1 - high))
    return shares


def _shifted(value: fmpz, bits: int, up: int) -> fmpz:
    """value / 2**bits, rounded down or up."""
    return -(-value >> bits) if up else value >> bits


# ------------------------------------------------------------------------------------------------ the inverse problem
@dataclass(frozen=True)
class NetworkDesign:
    """A window for every layer, or a value of the slope, that keeps the network leak within a bound.

    Attributes:
        parameter: "window", or the name of the slope.
        value: Of the window or slope; with heads, the factor on the slope that the encoding gives each of them.
        leak: With that value, proven to be within the bound.
        beyond: The nearest value that was tried and breaks the bound; None if none did.
    """

    parameter: str
    value: Fraction
    leak: NetworkLeak
    beyond: Fraction | None


def design_network(
    encoding: Encoding,
    bound: str | float | Fraction,
    train_length: int,
    test_length: int,
    *,
    layers: int,
    by: Literal["window", "slope"] = "window",
    heads: int | None = None,
    width: int = WIDTH,
    parameters: Parameters | None = None,
) -> NetworkDesign:
    """The widest window for every layer, or the smallest slope, whose network leak is at most a bound.

    Args:
        encoding: a name from the zoo, a formula of the bias r(t), or an `Encoding`.
        bound: the share that may come from beyond the training length.
        train_length: m, in tokens.
        test_length: n, at least m.
        layers: how many there are.
        by: what is looked for. The slope is `k`, or the only parameter that is left open.
        heads: how many each layer has, with the parameters that the encoding gives each of them.
        width: of one head, for encodings that depend on it.
        parameters: a value for each other parameter that the encoding leaves open.
    """
    limit, fixed = exact_epsilon(bound), parameter_table(parameters)
    how: dict[str, Any] = {"layers": layers, "heads": heads, "width": width}

    def by_window(window: int) -> NetworkLeak:
        return network_leak(encoding, train_length, test_length, windows=window, parameters=fixed, **how)

    if by == "window":
        low, high = 0, whole(test_length, "test length") + 1  # the leak is within the bound at low, beyond it at high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if Fraction(by_window(middle).high) <= limit else (low, middle)
        beyond = Fraction(high) if high <= test_length else None
        return NetworkDesign("window", Fraction(low), by_window(low), beyond)
    name, each = _slope(find(encoding), heads, fixed, width)

    def by_slope(factor: Fraction) -> NetworkLeak:
        values = [factor * (Fraction(x) if isinstance(x, int | Fraction) else Fraction(number(x))) for x in each]
        chosen = {**fixed, name: values if heads is not None else values[0]}
        return network_leak(encoding, train_length, test_length, parameters=chosen, **how)

    steps = [_SLOPES**i for i in range(-90, 91)]  # the leak falls as the slope rises
    place = bisect_left(steps, True, key=lambda factor: Fraction(by_slope(_decimal(factor)).high) <= limit)
    if place == len(steps):
        raise ValueError(f"no {name} up to {float(steps[-1]):.3g} keeps the network leak within {float(limit):g}")
    value = _decimal(steps[place])
    return NetworkDesign(name, value, by_slope(value), _decimal(steps[place - 1]) if place else None)


_SLOPES = 1.1


def _decimal(factor: float) -> Fraction:
    """A number with three digits, which is what is reported."""
    return Fraction(f"{factor:.3g}")


def _slope(
    encoding: zoo.Encoding, heads: int | None, fixed: Mapping[str, Any], width: int
) -> tuple[str, list[zoo.Value]]:
    """The parameter that is designed, and what each head has of it unless it is scaled."""
    if encoding.formula is None:
        raise ValueError(f"{encoding.name} has no bias r(t), so there is nothing to design")
    rows = encoding.heads(heads, fixed, width=width)
    open_ = [name for name in encoding.formula.parameters if name not in rows[0]]
    name = "k" if "k" in encoding.formula.parameters and "k" not in fixed else open_[0] if len(open_) == 1 else ""
    if not name or set(open_) - {name}:
        raise ValueError(f"{encoding.name} has no slope k that could be designed: leave one parameter open")
    return name, [row.get(name, 1) for row in rows]
