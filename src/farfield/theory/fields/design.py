"""The inverse problem: the parameter that gives an encoding a wanted reach, exact to the token.

For weights exp(-theta*phi(t)) with rising phi the tail share tail(j)/B falls as theta rises (monotone likelihood
ratio); the same holds for the scales and exponents of the named families. So TRF(epsilon) = n on an interval of
theta, between the roots of tail(n)/B = epsilon and tail(n-1)/B = epsilon. The roots are found numerically, the
shortest decimal between them is taken, and its receptive field is computed back: what is returned is proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import ctx

from farfield.formula import Formula, FormulaError
from farfield.formula.spelling import decimal_text
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.receptive import digits, exact_epsilon, smallest, whole
from farfield.theory.sums.series import Encoding, series
from farfield.zoo import MOST_HEADS, WIDTH, Parameters, find

_FARTHEST = 10**12  # tokens
_WIDEST = math.log(1e30)  # parameters are looked for within 1e-30 ... 1e30


@dataclass(frozen=True)
class DesignedHead:
    """The value of the parameter for one head, and the receptive field that it was proven to have."""

    value: Fraction
    low: float  # the receptive field is the wanted one for values between about low and high
    high: float
    tokens: int

    @property
    def text(self) -> str:
        """The value as a decimal."""
        return decimal_text(self.value)


@dataclass(frozen=True)
class Design:
    """The values of a family's open parameter that give the wanted reaches: one, or one for each head.

    `value`, `text`, `low`, `high` and `tokens` are those of the head that reaches furthest, the only one if no number
    of heads was asked for.
    """

    family: str
    parameter: str
    epsilon: Fraction
    fixed: Parameters
    heads: tuple[DesignedHead, ...]

    def __iter__(self) -> Iterator[DesignedHead]:
        return iter(self.heads)

    def __len__(self) -> int:
        return len(self.heads)

    def json(self) -> list[dict[str, object]]:
        """The heads as plain data."""
        return [
            {"head": number, "parameter": self.parameter, "value": head.text, "low": head.low, "high": head.high,
             "tokens": digits(head.tokens)}
            for number, head in enumerate(self.heads, 1)
        ]  # fmt: skip

    @property
    def value(self) -> Fraction:
        return self.heads[-1].value

    @property
    def text(self) -> str:
        return self.heads[-1].text

    @property
    def low(self) -> float:
        return self.heads[-1].low

    @property
    def high(self) -> float:
        return self.heads[-1].high

    @property
    def tokens(self) -> int:
        return self.heads[-1].tokens


def design(
    family: Encoding,
    reach: int,
    epsilon: str | float | Fraction = "0.01",
    heads: int | None = None,
    *,
    shortest: int | None = None,
    parameters: Parameters | None = None,
    width: int = WIDTH,
) -> Design:
    """The value of the family's open parameter for which TRF(epsilon) is `reach` tokens.

    Args:
        family: a name from the zoo, a formula of the bias r(t), or an `Encoding`, with one parameter left open.
        reach: the wanted receptive field in tokens.
        epsilon: the share of the weights that may lie outside.
        heads: a value for each of so many heads: their reaches rise geometrically from `shortest` to `reach`.
        shortest: the reach of the first head; reach/128 unless given, the span of ALiBi's slopes.
        parameters: values of the other parameters.
        width: of one head, for encodings that depend on it.
    """
    e, n = exact_epsilon(epsilon), whole(reach, "reach")
    if n > _FARTHEST:
        raise ValueError(f"the reach must be at most {_FARTHEST} tokens, not {n}")
    formula, name, fixed = _one_open_parameter(family, parameters, width)
    reaches = [n]
    if heads is not None:
        least = max(1, n // 128) if shortest is None else whole(shortest, "shortest reach")
        if least > n:
            raise ValueError(f"the shortest reach {least} must not exceed the reach {n}")
        reaches = spread(least, n, whole(heads, "number of heads", most=MOST_HEADS))
    elif shortest is not None:
        raise ValueError("a shortest reach needs a number of heads")
    parameter = formula.parameters[0]
    designed = tuple(_for_reach(formula, name, parameter, m, e) for m in reaches)
    return Design(name, parameter, e, fixed, designed)


def spread(least: int, most: int, count: int) -> list[int]:
    """Whole numbers in geometric progression from `least` to `most`."""
    if count == 1:
        return [most]
    ratio = most / least
    return [least, *(round(least * ratio ** (i / (count - 1))) for i in range(1, count - 1)), most]


def _one_open_parameter(family: Encoding, parameters: Parameters | None, width: int) -> tuple[Formula, str, Parameters]:
    known = find(family)
    if known.formula is None:
        raise ValueError(f"{known.name} has no bias r(t), so there is nothing to design")
    formula = known.formula.bind(known.one_head(parameters, width=width))
    formula.require_one_bias("design")
    if len(formula.parameters) != 1:
        if not formula.parameters:
            raise ValueError(f"{known.name} has no open parameter that a reach could decide")
        raise ValueError(
            f"{known.name} has the open parameters {', '.join(formula.parameters)}: give all but one a value, "
            f"such as {formula.parameters[-1]} = 0.5, and the other is designed"
        )
    return formula.primitive, known.name, dict(parameters or {})


def _for_reach(formula: Formula, name: str, parameter: str, n: int, epsilon: Fraction) -> DesignedHead:
    search = _Search(formula, name, parameter, n, epsilon)
    value, low, high = search.whole_number() if _window(formula, parameter) else search.decimal()
    tokens = search.tokens(value)
    if tokens != n:
        raise ValueError(search.cannot(low, high))
    return DesignedHead(value, low, high, tokens)


def _window(formula: Formula, parameter: str) -> bool:
    """Whether the parameter is compared with t in a `where`, so that only whole values differ."""
    return any(n.op == "where" and parameter in (n.args[0].free() | n.args[1].free()) for n in formula.node.walk())


class _Search:
    """The values of one parameter for which TRF(epsilon) = n."""

    def __init__(self, formula: Formula, name: str, parameter: str, n: int, epsilon: Fraction):
        self.formula, self.name, self.parameter, self.n, self.epsilon = formula, name, parameter, n, epsilon
        self.excess: Callable[[float, int], float] = lru_cache(maxsize=512)(self._excess)

    def tokens(self, value: Fraction) -> int:
        """TRF(epsilon) for a value of the parameter, certified."""
        return smallest(series(self.formula.bind({self.parameter: value})), self.epsilon)

    def _excess(self, theta: float, j: int) -> float:
        """log of tail(j)/(epsilon*B): positive as long as the reach exceeds j; inf if there is no reach."""
        try:
            result = series(self.formula.bind({self.parameter: Fraction(repr(theta))}))
            with ctx.workprec(96):
                share = (result.tail(j) / result.B()).mid()
                return float(share.log().mid()) - math.log(self.epsilon) if share > 0 else -1e6
        except (DivergenceError, UndecidedError):
            return math.inf
        except (FormulaError, ValueError, OverflowError):
            return math.nan

    def decimal(self) -> tuple[Fraction, float, float]:
        """The shortest decimal between the two roots."""
        rising = self._rises()
        outer = self._root(self.n, rising)
        inner = self._root(self.n - 1, rising, near=outer) if self.n > 1 else None
        if outer is None:
            raise ValueError(self.cannot(*([inner] * 2 if inner else [1.0, 1.0])))
        if inner is None:
            inner = outer / 4 if rising else outer * 4
        low, high = min(outer, inner), max(outer, inner)
        if not low < high:
            raise ValueError(self.cannot(low, high))
        margin = (high - low) / 1000
        return shortest_between(low + margin, high - margin), low, high

    def whole_number(self) -> tuple[Fraction, float, float]:
        """The smallest whole value with this reach, by bisection; a window reaches further as it widens."""
        low, high = 0, 1
        while self.tokens(Fraction(high)) < self.n:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.tokens(Fraction(middle)) >= self.n else (middle, high)
        last = high
        step = 1
        while self.tokens(Fraction(last + step)) == self.n:
            last, step = last + step, 2 * step
        while step > 1:
            step //= 2
            if self.tokens(Fraction(last + step)) == self.n:
                last += step
        return Fraction(high), float(high), float(last)

    def _rises(self) -> bool:
        """Whether the reach rises with the parameter."""
        for far in (1, 3, 8):
            seen = [self.excess(math.exp(x), self.n) for x in (-far, 0, far)]
            finite = [y for y in seen if not math.isnan(y)]
            if finite and finite[0] != finite[-1]:
                return finite[-1] > finite[0]
        if not finite:
            raise ValueError(
                f"{self.name} has no value at some distance, for any {self.parameter} that was tried; where that is "
                "distance 0, write t + 1 in the place of t"
            )
        raise ValueError(
            f"{self.name} has no known receptive field for any {self.parameter} that was tried: its sum diverges, or "
            "is not decided"
            if all(y == math.inf for y in finite)
            else f"the reach of {self.name} was the same for every {self.parameter} that was tried"
        )

    def _root(self, j: int, rising: bool, near: float | None = None) -> float | None:
        """The value at which tail(j)/B crosses epsilon, or None if it does not within the range."""
        sign = -1.0 if rising else 1.0

        def f(x: float) -> float:
            return sign * self.excess(math.exp(x), j)

        first, step = (0.0, 1.0) if near is None else (math.log(near), 2.0 / j)
        low = self._walk(lambda x: f(x) >= 0, first, -step)  # the share falls from low to high
        high = self._walk(lambda x: f(x) < 0, first, step)
        return None if low is None or high is None else math.exp(_bracketed_root(f, low, high))

    @staticmethod
    def _walk(good: Callable[[float], bool], x: float, step: float) -> float | None:
        """The first good place on a walk with growing steps to the edge of the range, the edge among them."""
        while not good(x):
            if abs(x) >= _WIDEST:
                return None
            x, step = max(-_WIDEST, min(_WIDEST, x + step)), 2 * step
        return x

    def cannot(self, low: float, high: float) -> str:
        """The sentence for a reach that was not met: what was tried, and what that gave; it claims no more."""
        near = set()
        for theta in (low / 1.5, low * 0.999999, high * 1.000001, high * 1.5, 0.1, 10.0, 100.0, 1000.0):
            try:
                near.add(self.tokens(Fraction(f"{theta:.12g}")))
            except ValueError:
                continue
        below, above = [m for m in near if m < self.n], [m for m in near if m > self.n]
        nearest = [*([max(below)] if below else []), *([min(above)] if above else [])]
        what = f"the nearest reach met was {' or '.join(map(str, nearest))}" if nearest else "none tried has a reach"
        return (
            f"no {self.parameter} between 1e-30 and 1e30 was found for which {self.name} reaches exactly {self.n} "
            f"tokens at epsilon {float(self.epsilon):g}: {what}"
        )


def _bracketed_root(f: Callable[[float], float], low: float, high: float) -> float:
    """A root of f between low and high, where it has two signs, by Chandrupatla's method.

    Inverse quadratic interpolation where three points promise it, bisection elsewhere and next to infinite values.
    """
    a, b, f_a, f_b = low, high, f(low), f(high)
    c, f_c, share = a, f_a, 0.5
    for _ in range(200):
        x = a + share * (b - a)
        y = f(x)
        if (y > 0) == (f_a > 0):
            c, f_c = a, f_a
        else:
            c, b, f_c, f_b = b, a, f_b, f_a
        a, f_a = x, y
        best = a if abs(f_a) < abs(f_b) else b
        tolerance = 2e-15 * max(1.0, abs(best)) / max(abs(b - a), 1e-300)
        if tolerance > 0.5 or min(abs(f_a), abs(f_b)) < 1e-14:
            return best
        share = 0.5
        if math.isfinite(f_a + f_b + f_c) and f_b not in (f_a, f_c):
            xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:
                share = f_a / (f_b - f_a) * f_c / (f_b - f_c) + (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (
                    f_c - f_b
                )
        share = min(1 - tolerance, max(tolerance, share))
    return best


def shortest_between(low: float, high: float) -> Fraction:
    """The decimal with the fewest digits in (low, high), for 0 < low < high."""
    a, b = Fraction(low), Fraction(high)
    for places in range(-330, 340):
        scale = Fraction(10) ** places
        n = math.floor(b * scale)
        if n > 0 and n / scale > a:
            return n / scale
    raise ValueError(f"there is no decimal between {low} and {high}")
