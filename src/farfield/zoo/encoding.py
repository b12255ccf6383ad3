"""What an encoding is: one formula, where it comes from, and how each head gets its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from farfield.formula import Formula, Node, parse, parse_relations
from farfield.formula.formula import Parameters, Value, parameter_table
from farfield.zoo.learned import Learned, learned_parameters

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

    @property
    def assumption(self) -> str:
        """What is known of its value: the domain, or the bounds of a learned parameter."""
        if self.domain or not isinstance(self.given, Learned):
            return self.domain
        bounds = ((">=", self.given.least), ("<=", self.given.most))
        return ", ".join(f"{self.name} {sign} {Fraction(repr(edge))}" for sign, edge in bounds if edge is not None)


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
        assume: relations between the parameters that every verdict may use: "a > 0, b > 0".
        theorem: where there is no formula, what is proven ("windowed", "disperses" or "neither") and why.
        learn: parameters that each head learns, with the range in which they start: {"a": (0, 2), "p": "0.5:1.5 in
            0.01:3"}, or the same as text, "a=0:2, p=0.5:1.5 in 0.01:3".
        upper: of a bounded family, the bias that no member exceeds; instead of `text`.
        lower: of a bounded family, the bias that no member is below.
        sink: the logit of one more key in every row.
    """

    name: str
    text: str | None = _AS_NAMED
    parameters: tuple[Parameter, ...] = ()
    paper: str | None = None
    source: str = ""
    note: str = ""
    paper_parameters: tuple[Parameter, ...] | None = None
    assume: str = ""
    theorem: tuple[str, str] | None = None
    asked: str = ""  # what was asked for, if that was the name of a model: "BLOOM has ALiBi (source)"
    learn: InitVar[str | Mapping[str, object] | None] = None
    upper: InitVar[str | None] = None
    lower: InitVar[str | None] = None
    sink: InitVar[str | None] = None

    def __post_init__(
        self, learn: str | Mapping[str, object] | None, upper: str | None, lower: str | None, sink: str | None
    ) -> None:
        bounds = {"upper": upper, "lower": lower, "sink": sink}
        if any(part is not None for part in bounds.values()):
            first = f"{self.text}; " if self.text not in (None, _AS_NAMED) else ""
            text = first + "; ".join(f"{name}: {part}" for name, part in bounds.items() if part is not None)
            object.__setattr__(self, "text", text)
        if self.text == _AS_NAMED:
            from farfield.zoo.finding import ENCODINGS

            named = ENCODINGS.get(self.name)
            object.__setattr__(self, "text", self.name if named is None else named.text)
            if named is not None and not self.parameters:
                object.__setattr__(self, "parameters", named.parameters)
        if learn is not None:
            rules = learned_parameters(learn)
            require_parameters(self, rules)
            others = tuple(p for p in self.parameters if p.name not in rules)
            learned = tuple(Parameter(name, "", rule) for name, rule in rules.items())
            object.__setattr__(self, "parameters", others + learned)

    @cached_property
    def formula(self) -> Formula | None:
        return None if self.text is None else parse(self.text)

    def assuming(self, text: str | None) -> Encoding:
        """The same encoding, with more that every verdict may use of its parameters."""
        return self if not text else replace(self, assume=", ".join(filter(None, (self.assume, text))))

    @cached_property
    def assumptions(self) -> tuple[Node, ...]:
        """What may be assumed of the parameters: their domains, the ranges in which they are learned, and `assume`."""
        texts = (*(p.assumption for p in self.parameters), self.assume)
        return tuple(dict.fromkeys(relation for text in texts if text for relation in parse_relations(text)))

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

    def written(self) -> tuple[str, dict[str, object]]:
        """The name or formula as text, and how its parameters are learned: what a configuration can hold."""
        from farfield.zoo.finding import ENCODINGS

        if ENCODINGS.get(self.name) == self:
            return self.name, {}
        others = [p.name for p in self.parameters if not isinstance(p.given, Learned) and p != SLOPE]
        if self.text is None or others:
            raise ValueError(f"the encoding {self.name!r} is not known by its name: register it first")
        return self.text, {p.name: p.given.json() for p in self.parameters if isinstance(p.given, Learned)}

    def heads(
        self, count: int | None = None, parameters: Parameters | None = None, *, width: int = WIDTH
    ) -> list[dict[str, Value]]:
        """The parameters of each head that are known before training; learned ones are left open.

        Args:
            count: how many heads; None is one set of values without those that differ between heads.
            parameters: values that come before the encoding's own rules: one for all heads, or a list with one for
                each.
            width: of one head; Sandwich takes its number of terms from it.
        """
        table = parameter_table(parameters)
        names = () if self.formula is None else self.formula.parameters
        if self.formula is not None:
            require_parameters(self, table)
        lists = {name: v for name, v in table.items() if isinstance(v, list | tuple)}
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
            if name in table:
                values = lists.get(name) or [table[name]] * total
            elif isinstance(rule, PerHead) and count is not None:
                values = rule.rule(total, width)
            elif isinstance(rule, Fixed) and rule.rule is not None:
                values = [rule.rule(width)] * total
            else:
                continue
            for row, value in zip(rows, values, strict=True):
                row[name] = value
        return rows

    def one_head(self, parameters: Parameters | None = None, *, width: int = WIDTH) -> dict[str, Value]:
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


# ---------------------------------------------------------------------------------------------------- a user's choice
def slope_values(text: str, heads: int) -> Value | list[Value] | dict[str, object] | None:
    """What "alibi", "learned" or "0.5, 0.25, ..." gives k: None is ALiBi's slopes; learned ones start there."""
    word = text.strip().lower()
    if word == "alibi":
        return None
    if word == "learned":
        first = tuple(number(value) for value in slopes(heads))
        return Learned((min(first), max(first)), 0.0, values=first).json()
    values: list[Value] = [part.strip() for part in text.split(",")]
    for value in values:
        try:
            good = number(value) == number(value)
        except ValueError:
            good = False
        if not good:
            raise ValueError(
                f"the slopes are alibi, learned, or numbers with commas such as 1/2,1/4, not {str(value)[:40]!r}"
            )
    if len(values) not in (1, heads):
        raise ValueError(f"k has {len(values)} values for {heads} heads: give one, or one for each head")
    return values if len(values) > 1 else values[0]


def choose_parameters(
    encoding: Encoding,
    heads: int,
    values: Mapping[str, Any],
    learn: str | Mapping[str, object] | None = None,
    slopes: str | None = None,
) -> dict[str, Any]:
    """Parameters from values, ranges to learn and slopes, as a configuration holds them; each may be given once."""
    chosen = dict(values)
    others: dict[str, object] = {name: rule.json() for name, rule in learned_parameters(learn).items()}
    if slopes is not None:
        require_parameters(encoding, ["k"])
        if "k" in others:
            raise ValueError("k is given twice, by its slopes and by a range to learn it in")
        k = slope_values(slopes, heads)
        others |= {} if k is None else {"k": k}
    for name, value in others.items():
        if name in chosen:
            raise ValueError(f"{name} is given twice, by a value and by what is learned or its slopes")
        chosen[name] = value
    require_parameters(encoding, chosen)
    return chosen


def slopes_sentence(encoding: Encoding, heads: int, values: Mapping[str, object] | None = None) -> str:
    """What k is where nobody says it: "k: ALiBi's slopes, 1/2 ... 1/256"; nothing if the formula has no such k."""
    if encoding.formula is None or "k" not in encoding.formula.parameters or "k" in (values or {}):
        return ""
    if encoding.rule("k") != SLOPE.given:
        return ""
    ordered = sorted(slopes(heads), key=number, reverse=True)
    return f"k: ALiBi's slopes, {ordered[0]}" + (f" ... {ordered[-1]}" if heads > 1 else "")
