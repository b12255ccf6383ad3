"""Every named encoding: one formula each, where it comes from, and how each head gets its parameters.

To add one, write its formula here; it then appears in every command, in the models and in the documentation.
`formula` is the form that was trained, `paper` the form as printed in "Exploring Transformer Extrapolation"
(AAAI 2024), which carries no scale per head; `NAME-paper` names the printed one.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from farfield.formula import Formula, FormulaError, parse

Value = Fraction | str  # an exact constant, or its text where it is irrational: "2**(-1/2)"


def slopes(heads: int) -> list[Value]:
    """ALiBi's slopes for any number of heads, largest first within each series (Press et al. 2022)."""
    if heads < 1:
        raise ValueError(f"the number of heads must be at least 1, not {heads}")
    power = 1 << (heads.bit_length() - 1)  # the largest power of two up to `heads`
    exponents = [Fraction(8 * h, power) for h in range(1, power + 1)]
    exponents += [Fraction(8 * h, 2 * power) for h in range(1, 2 * power + 1, 2)][: heads - power]
    return [Fraction(1, 2 ** int(e)) if e.denominator == 1 else f"2**(-{e})" for e in exponents]


def _eighths(heads: int) -> list[Value]:
    """Sandwich's divisor of each head, 8h/H."""
    return [Fraction(8 * h, heads) for h in range(1, heads + 1)]


@dataclass(frozen=True)
class PerHead:
    """A fixed value for each head, from the number of heads and the width of a head."""

    rule: Callable[[int, int], Sequence[Value]]
    text: str


@dataclass(frozen=True)
class Fixed:
    """One value for all heads, from the width of a head; None if a person must give it."""

    rule: Callable[[int], Value] | None
    text: str


@dataclass(frozen=True)
class Learned:
    """A value learned for each head, one set for all layers; it starts uniformly and is kept in a range."""

    start: tuple[float, float]
    least: float
    most: float | None = None

    @property
    def text(self) -> str:
        if self.start == (0, 0):
            return "learned, starts at 0"
        bound = f"at least {self.least:g}" if self.most is None else f"{self.least:g} to {self.most:g}"
        return f"learned, starts in U({self.start[0]:g}, {self.start[1]:g}), kept {bound}"


@dataclass(frozen=True)
class Parameter:
    """A named parameter: its domain in words of the formula language, and how a head gets its value."""

    name: str
    domain: str
    given: PerHead | Fixed | Learned


@dataclass(frozen=True)
class Encoding:
    """A positional encoding; `formula` is None where it is no bias and the theorem has nothing to say."""

    name: str
    text: str | None
    parameters: tuple[Parameter, ...] = ()
    paper: str | None = None
    source: str = ""
    note: str = ""
    paper_parameters: tuple[Parameter, ...] | None = None

    @cached_property
    def formula(self) -> Formula | None:
        return None if self.text is None else parse(self.text)

    def open_names(self) -> set[str]:
        """The parameters of its formula."""
        return set() if self.formula is None else set(self.formula.parameters)

    def ruled(self) -> tuple[Parameter, ...]:
        """The parameters that get their value by a rule; in a formula that a person typed, `k` is the ALiBi slope."""
        typed = not self.parameters and "k" in self.open_names()
        return (SLOPE,) if typed else self.parameters

    def values(self, heads: int, width: int = 64) -> list[dict[str, Value]]:
        """For each head, the parameters that are known before training (learned ones are left open)."""
        given: list[dict[str, Value]] = [{} for _ in range(heads)]
        for p in self.ruled():
            if isinstance(p.given, PerHead):
                for head, value in zip(given, p.given.rule(heads, width), strict=True):
                    head[p.name] = value
            elif isinstance(p.given, Fixed) and p.given.rule is not None:
                for head in given:
                    head[p.name] = p.given.rule(width)
        return given


SLOPE = Parameter("k", "k > 0", PerHead(lambda heads, _: slopes(heads), "ALiBi slope"))
_BASE = Parameter("r", "r > 0", Fixed(lambda _: Fraction(10_000), "10000"))
_TERMS = Parameter("d", "d >= 2", Fixed(lambda width: Fraction(2 * width), "2 x head width"))
_PAPER = "Qin, Zhong, Deng 2024"

_ALL = [
    Encoding("alibi", "-k*t", (SLOPE,), "-k*t", "Press, Smith, Lewis 2022"),
    Encoding("type1", "-log(1 + (k*t)**2)", (SLOPE,), "-2*log(t + 1)", _PAPER),
    Encoding("type2", "-log(3 + k*t)**2", (SLOPE,), "-log(t + 1)**2", _PAPER),
    Encoding("inverse", "-log(1 + k*t)", (SLOPE,), "-log(t + 1)", _PAPER, "the paper's 1/n"),
    Encoding(
        "inverse-log",
        "-log(3 + k*t) - log(log(3 + k*t))",
        (SLOPE,),
        "-log(t + 2) - log(log(t + 2))",
        _PAPER,
        "the paper's 1/(n ln n); printed with n, which must be at least 2: n = t + 2",
    ),
    Encoding(
        "kerple-log",
        "-p*log(1 + a*t)",
        (Parameter("p", "p > 0", Learned((0, 2), 0.01)), Parameter("a", "a > 0", Learned((0, 1), 0.01))),
        "-p*log(1 + a*t)",
        "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "kerple-power",
        "-a*t**p",
        (Parameter("a", "a > 0", Learned((0, 1), 0.01)), Parameter("p", "p > 0", Learned((0, 2), 0.01, 2.0))),
        "-a*t**p",
        "Chi et al. 2022 (KERPLE)",
    ),
    Encoding(
        "sandwich",
        "(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)/s",
        (_BASE, _TERMS, Parameter("s", "s > 0", PerHead(lambda heads, _: _eighths(heads), "8h/H"))),
        "k*(sum(cos(t/r**(2*j/d)), j, 1, d/2) - d/2)",
        "Chi et al. 2023 (Sandwich)",
        "the paper claims that it converges; it diverges (docs/errata.md, E3)",
        (SLOPE, _BASE, _TERMS),
    ),
    Encoding(
        "window",
        "where(t < w, 0, -inf)",
        (Parameter("w", "w >= 1", Fixed(None, "given")),),
        "where(t <= w, 0, -inf)",
        "Beltagy et al. 2020",
        "w tokens, the token itself among them; the paper's mask keeps w + 1 (docs/errata.md, E11)",
    ),
    Encoding("none", "0", (), None, "Haviv et al. 2022 (NoPE)", "no encoding at all"),
    Encoding(
        "t5",
        "where(t < 128, near, far)",
        (
            Parameter("near", "", Learned((0, 0), float("-inf"))),
            Parameter("far", "", Learned((0, 0), float("-inf"))),
        ),
        None,
        "Raffel et al. 2020",
        "`near` stands for the 31 learned values of the nearer buckets, `far` for the last one: a constant tail",
    ),
    Encoding(
        "sinusoidal",
        None,
        source="Vaswani et al. 2017",
        note="added to the token embedding: there is no bias r(t), so the theorem does not apply",
    ),
    Encoding(
        "rope",
        None,
        source="Su et al. 2021",
        note="rotates queries and keys: the logit depends on content and distance together, there is no bias r(t), "
        "so the theorem does not apply",
    ),
]

# T5's bucket of a distance: exact below 16, then logarithmic, the last one from 128 on (32 buckets).
T5_BUCKET = "where(t < 16, t, min(31, 16 + floor(16*log(max(t, 16)/16)/log(8))))"
T5_BUCKETS = 32


def _printed(e: Encoding) -> Encoding:
    """The form that the paper prints, under the name NAME-paper."""
    free = parse(e.paper or "").parameters
    known = e.parameters if e.paper_parameters is None else e.paper_parameters
    used = tuple(p for p in known if p.name in free)
    return replace(e, name=f"{e.name}-paper", text=e.paper, parameters=used, paper=None)


ENCODINGS: dict[str, Encoding] = {e.name: e for e in _ALL}
ENCODINGS |= {f"{e.name}-paper": _printed(e) for e in _ALL if e.paper is not None and e.paper != e.text}


def find(name_or_formula: str, *, weight: bool = False) -> Encoding:
    """The encoding of that name, or one made from the text of a formula."""
    key = name_or_formula.strip().lower() if isinstance(name_or_formula, str) else ""
    if key in ENCODINGS and not weight:
        return ENCODINGS[key]
    try:
        formula = parse(name_or_formula, weight=weight)
    except FormulaError as error:
        _suggest(key, error.text)
        raise
    if "t" not in formula.node.free() and formula.parameters:
        _suggest(key, name_or_formula)
    return Encoding(formula.text(), formula.text())


def _suggest(key: str, text: str) -> None:
    near = difflib.get_close_matches(key[:40], ENCODINGS, 1, cutoff=0.7)
    if near:
        raise FormulaError(f"there is no encoding {key[:40]!r}; did you mean '{near[0]}'?", text)
