"""What an encoding is: one formula, where it comes from, and how each head gets its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from farfield.formula import Formula, parse
from farfield.formula.formula import parameter_table
from farfield.zoo.learned import Learned, learned_parameters

Value = Fraction | str | float | int  # a number, or a constant as text where it is irrational: "2**(-1/2)"
WIDTH = 64  # of a head, where nobody says otherwise
MOST_HEADS = 4096
_AS_NAMED = "= name"  # no formula: the name is the formula


def slopes(heads: int) -> list[Value]:
    """ALiBi's slopes for any number of heads, largest first within each series (Press et al. 2022)."""
    if heads < 1:
        raise ValueError(f"the number of heads must be at least 1, not {heads}")
    power = 1 << (heads.bit_length() - 1)  # the largest power of two up to `heads`
    exponents = [Fraction(8 * h, power) for h in range(1, power + 1)]
    exponents += [Fraction(8 * h, 2 * power) for h in range(1, 2 * power + 1, 2)][: heads - power]
    return [Fraction(1, 2 ** int(e)) if e.denominator == 1 else f"2**(-{e})" for e in exponents]


@dataclass(frozen=True)
class PerHead:
    """A fixed value for each head, from the number of heads and the width of a head."""

    rule: Callable[[int, int], Sequence[Value]] = field(repr=False)
    text: str


@dataclass(frozen=True)
class Fixed:
    """One value for all heads, from the width of a head; None if a person must give it, such as the example."""

    rule: Callable[[int], Value] | None = field(repr=False)
    text: str
    example: str = ""


@dataclass(frozen=True)
class Parameter:
    """A named parameter: its domain in words of the formula language, and how a head gets its value."""

    name: str
    domain: str
    given: PerHead | Fixed | Learned


@dataclass(frozen=True)
class Encoding:
    """A positional encoding; `formula` is None where it is no bias and the theorem has nothing to say.

    Args:
        name: small letters, digits and hyphens.
        text: the formula of the bias r(t), or of the weight after "weight:"; the name is the formula unless given.
        parameters: how each head gets the parameters of the formula; those that are not named here must be given.
        paper: the printed form, where it differs from the trained one.
        source: who described it.
        note: what a reader should know.
        learn: parameters that each head learns, with the range in which they start: {"a": (0, 2), "p": "0.5:1.5 in
            0.01:3"}, or the same as text, "a=0:2, p=0.5:1.5 in 0.01:3".
    """

    name: str
    text: str | None = _AS_NAMED
    parameters: tuple[Parameter, ...] = ()
    paper: str | None = None
    source: str = ""
    note: str = ""
    paper_parameters: tuple[Parameter, ...] | None = None
    asked: str = ""  # what was asked for, if that was the name of a model: "BLOOM has ALiBi (source)"
    learn: InitVar[str | Mapping[str, Any] | None] = None

    def __post_init__(self, learn: str | Mapping[str, Any] | None) -> None:
        if self.text == _AS_NAMED:
            from farfield.zoo.registry import ENCODINGS

            known = ENCODINGS.get(self.name)
            object.__setattr__(self, "text", self.name if known is None else known.text)
            if known is not None and not self.parameters:
                object.__setattr__(self, "parameters", known.parameters)
        if learn is not None:
            rules = learned_parameters(learn)
            require_parameters(self, rules)
            others = tuple(p for p in self.parameters if p.name not in rules)
            more = tuple(Parameter(name, "", rule) for name, rule in rules.items())
            object.__setattr__(self, "parameters", others + more)

    @cached_property
    def formula(self) -> Formula | None:
        return None if self.text is None else parse(self.text)

    def rule(self, name: str) -> PerHead | Fixed | Learned | None:
        """How a head gets a parameter; in a formula that a person typed, `k` is the ALiBi slope."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter.given
        return SLOPE.given if name == "k" and (not self.parameters or self.name == self.text) else None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A named encoding travels to other processes by its name: its rules may be functions without one."""
        from farfield.zoo import ENCODINGS, find

        if ENCODINGS.get(self.name) == self:
            return find, (self.name,)
        return super().__reduce_ex__(protocol)

    def with_rule(self, parameter: Parameter) -> Encoding:
        """The same formula, whose heads get one parameter in another way."""
        others = (p for p in self.parameters if p.name != parameter.name)
        return parsed(replace(self, parameters=(*others, parameter)), self.formula)

    def written(self) -> tuple[str, dict[str, Any]]:
        """The name or formula as text, and how its parameters are learned: what a configuration can hold."""
        from farfield.zoo.registry import ENCODINGS

        if self.name in ENCODINGS and ENCODINGS[self.name] == self:
            return self.name, {}
        others = [p.name for p in self.parameters if not isinstance(p.given, Learned) and p != SLOPE]
        if self.text is None or others:
            raise ValueError(f"the encoding {self.name!r} is not known by its name: register it first")
        return self.text, {p.name: p.given.json() for p in self.parameters if isinstance(p.given, Learned)}

    def heads(
        self, count: int | None = None, parameters: Mapping[str, Any] | None = None, *, width: int = WIDTH
    ) -> list[dict[str, Value]]:
        """The parameters of each head that are known before training; learned ones are left open.

        Args:
            count: how many heads; None is one set of values without those that differ between heads.
            parameters: what was given: one value for all heads, or a list with one for each. It comes before the
                encoding's own rules.
            width: of one head; Sandwich takes its number of terms from it.
        """
        given = parameter_table(parameters)
        names = () if self.formula is None else self.formula.parameters
        if self.formula is not None:
            require_parameters(self, given)
        lists = {name: v for name, v in given.items() if isinstance(v, list | tuple)}
        lengths = {len(v) for v in lists.values()}
        total = count if count is not None else lengths.pop() if len(lengths) == 1 else 1
        if isinstance(total, bool) or not isinstance(total, int) or not 1 <= total <= MOST_HEADS:
            raise ValueError(
                f"the number of heads must be a whole number from 1 to {MOST_HEADS}, not {str(total)[:20]}"
            )
        for name, several in lists.items():
            if len(several) != total:
                raise ValueError(f"{name} has {len(several)} values for {total} heads: give one, or one for each head")
        rows: list[dict[str, Value]] = [{} for _ in range(total)]
        for name in names:
            rule = self.rule(name)
            values: Sequence[Value]
            if name in given:
                values = lists.get(name) or [given[name]] * total
            elif isinstance(rule, PerHead) and count is not None:
                values = rule.rule(total, width)
            elif isinstance(rule, Fixed) and rule.rule is not None:
                values = [rule.rule(width)] * total
            else:
                continue
            for row, value in zip(rows, values, strict=True):
                row[name] = value
        return rows

    def one_head(self, parameters: Mapping[str, Any] | None = None, *, width: int = WIDTH) -> dict[str, Value]:
        """The parameters of one head: those that differ between heads stay open, and lists of them are refused."""
        rows = self.heads(None, parameters, width=width)
        if len(rows) > 1:
            raise ValueError(f"one value for each parameter is asked for here, not a list for {len(rows)} heads")
        return rows[0]


def require_parameters(encoding: Encoding, names: Iterable[str]) -> None:
    """One sentence if the formula has no parameter of one of these names."""
    for name in names:
        if name == "t":
            raise ValueError("t is the distance, which is no parameter: it cannot be set or learned")
        if encoding.formula is None:
            raise ValueError(f"{encoding.name} has no formula, so it has no parameter {name!r}")
        if name not in encoding.formula.parameters:
            encoding.formula.require(name)


SLOPE = Parameter("k", "k > 0", PerHead(lambda heads, _: slopes(heads), "ALiBi slope"))


def parsed(encoding: Encoding, formula: Formula | None) -> Encoding:
    """The encoding with its formula as it is: nothing is parsed again."""
    encoding.__dict__["formula"] = formula
    return encoding


def number(value: Value) -> float:
    """A value of a parameter as a double."""
    return parse(value).float(0.0) if isinstance(value, str) else float(value)
