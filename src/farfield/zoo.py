"""Every named encoding: one formula each, where it comes from, and how each head gets its parameters.

To add one, write its formula here; it then appears in every command, in the models and in the documentation. Others
add theirs with `farfield.register`, or by an entry point in the group "farfield.encodings".
`formula` is the form that was trained, `paper` the form as printed in "Exploring Transformer Extrapolation"
(AAAI 2024), which carries no scale per head; `NAME-paper` names the printed one.
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

from farfield.families import family_of, near_family
from farfield.formula import Formula, FormulaError, parse
from farfield.formula.spelling import as_meant
from farfield.learned import Learned, learned_parameters

Value = Fraction | str | float | int  # a number, or a constant as text where it is irrational: "2**(-1/2)"
WIDTH = 64  # of a head, where nobody says otherwise
MOST_HEADS = 4096
ENTRY_POINTS = "farfield.encodings"
_AS_NAMED = "= name"  # no formula: the name is the formula
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_WRITTEN_NAME = re.compile(r"[~.]{0,2}/?[A-Za-z][\w.]*([-/ ][\w.]+)*/?|[.~]{1,2}/?")  # words, hyphens, slashes
_WORD = re.compile(r"[A-Za-z]{2}|^[./~]")
_DISTANCES = ("n", "d", "m", "j", "s", "x", "dist", "distance", "delta", "tau", "lag", "pos", "position", "offset")


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
    """One value for all heads, from the width of a head; None if a person must give it, such as the example."""

    rule: Callable[[int], Value] | None
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

    def written(self) -> tuple[str, dict[str, Any]]:
        """The name or formula as text, and how its parameters are learned: what a configuration can hold."""
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
        given = dict(parameters or {})
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
        (Parameter("w", "w >= 1", Fixed(None, "given", "512")),),
        "where(t <= w, 0, -inf)",
        "Beltagy et al. 2020",
        "w tokens, the token itself among them; the paper's mask keeps w + 1 (docs/errata.md, E11)",
    ),
    Encoding("none", "0", (), None, "Haviv et al. 2022 (NoPE)", "no encoding at all"),
    Encoding(
        "t5",
        "where(t < 113, near, far)",
        (
            Parameter("near", "", Learned((0, 0))),
            Parameter("far", "", Learned((0, 0))),
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

# T5's bucket of a distance: exact below 16, then logarithmic up to the maximum 128; the last of the 32 begins at 113.
T5_BUCKET = "where(t < 16, t, min(31, 16 + floor(16*log(max(t, 16)/16)/log(8))))"
T5_BUCKETS = 32


def _printed(e: Encoding) -> Encoding:
    """The form that the paper prints, under the name NAME-paper."""
    free = parse(e.paper or "").parameters
    known = e.parameters if e.paper_parameters is None else e.paper_parameters
    used = tuple(p for p in known if p.name in free)
    return replace(e, name=f"{e.name}-paper", text=e.paper, parameters=used, paper=None)


class _Zoo(Mapping[str, Encoding]):
    """Every named encoding by its name; those of other packages are looked up when a name is not one of ours."""

    def __init__(self, own: Sequence[Encoding]):
        self._known = {e.name: e for e in own}
        self._known |= {f"{e.name}-paper": _printed(e) for e in own if e.paper is not None and e.paper != e.text}
        self._complete = False

    def add(self, encoding: Encoding) -> None:
        self._known[encoding.name] = encoding

    def __getitem__(self, name: str) -> Encoding:
        if name not in self._known and _NAME.fullmatch(name):
            self._load()
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._known and isinstance(name, str) and _NAME.fullmatch(name):
            self._load()
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._known)

    def __len__(self) -> int:
        self._load()
        return len(self._known)

    def _load(self) -> None:
        """Register what installed packages offer, once; a broken one is named in a warning and left out."""
        if self._complete:
            return
        self._complete = True
        from importlib.metadata import entry_points

        for point in entry_points(group=ENTRY_POINTS):
            try:
                offered = point.load()
                for encoding in offered if isinstance(offered, list | tuple) else [offered]:
                    register(encoding)
            except Exception as error:
                who = point.dist.name if point.dist is not None else "a package"
                warnings.warn(f"the encoding {point.name!r} of {who} was left out: {error}", stacklevel=4)


ENCODINGS = _Zoo(_ALL)


def register(encoding: Encoding) -> Encoding:
    """Add an encoding to the zoo: its name then works wherever one is expected.

    Args:
        encoding: a name that is not taken, and its formula.

    Returns:
        The encoding itself.
    """
    if not isinstance(encoding, Encoding):
        raise ValueError(f"only an Encoding can be registered, not {type(encoding).__name__}")
    if not isinstance(encoding.name, str) or not _NAME.fullmatch(encoding.name) or len(encoding.name) > 40:
        shown = str(encoding.name)[:40]
        raise ValueError(f"the name of an encoding is made of a-z, 0-9 and hyphens, and begins with a-z, not {shown!r}")
    if encoding.name in ENCODINGS:
        raise ValueError(f"there is an encoding {encoding.name!r} already")
    names = set() if encoding.formula is None else set(encoding.formula.parameters)  # also refuses a broken formula
    for parameter in encoding.parameters:
        if parameter.name not in names:
            raise ValueError(f"the formula of {encoding.name!r} has no parameter {parameter.name!r}")
    ENCODINGS.add(encoding)
    return encoding


def find(name_or_formula: str | Formula | Encoding, *, weight: bool = False) -> Encoding:
    """The encoding of that name, or one made from a formula.

    Args:
        name_or_formula: a name from the zoo, the text of a formula, a `Formula` or an `Encoding`.
        weight: the text gives the weight b(t) = exp(r(t)) instead of the bias.
    """
    if isinstance(name_or_formula, Encoding):
        return name_or_formula
    if isinstance(name_or_formula, Formula):
        return _of_formula(name_or_formula)
    key = name_or_formula.strip().lower() if isinstance(name_or_formula, str) else ""
    if not weight and key in ENCODINGS:
        return ENCODINGS[key]
    if not weight and _NAME.fullmatch(key):
        from farfield.bounded_encodings import CLASSES

        if key in CLASSES:
            return CLASSES[key]
    if not weight and key and (named := _named(name_or_formula)) is not None:
        return named
    try:
        formula = parse(name_or_formula, weight=weight)
    except FormulaError as error:
        _suggest(key, error.text)
        meant, said = as_meant(error.text)
        if not said:
            raise
        return replace(find(meant, weight=weight), asked=said)
    free = formula.node.free()
    ranged = any(n.op == "between" for n in formula.node.walk())
    if "t" not in free and (formula.parameters or "i" in free) and not ranged:
        _suggest(key, name_or_formula)
        _refuse_other_distance(formula, name_or_formula)
    return _of_formula(formula)


def _named(text: str) -> Encoding | None:
    """What a text stands for that is the name of a model, or a path: no formula, whatever a parser makes of it.

    A model whose layers all have one encoding of the zoo gives that; for others the sentence says what they have.
    """
    key = text.strip()
    if not _WRITTEN_NAME.fullmatch(key) or not _WORD.search(key):
        return None
    path = key.startswith(("/", "~", ".")) or key.count("/") > 1 or key.endswith(("/", ".json"))
    path = path or ("/" in key and os.path.exists(key))
    family = None if path else family_of(key)
    if family is not None:
        said = f"{family.name} has {family.position} ({family.source})"
        if family.encoding is not None:
            return replace(ENCODINGS[family.encoding], asked=said)
        raise FormulaError(f"{key[:60]!r} is a name, not a formula: {said}; see 'farfield inspect'", text)
    if path or "/" in key:
        raise FormulaError(f"{key[:60]!r} is a path or a model's name, not a formula; try 'farfield inspect'", text)
    if "-" in key:
        _suggest(key.lower(), text)
        near = near_family(key)
        hint = f"did you mean {near!r}?" if near else "in a formula, write spaces around a minus sign"
        raise FormulaError(f"{key[:60]!r} reads as a name, but is none that is known; {hint}", text)
    return None


def _refuse_other_distance(formula: Formula, text: str) -> NoReturn:
    """A formula with names but without t: every verdict on it would be one on a constant."""
    if formula.node.op == "name" and (near := near_family(text)) is not None:
        raise FormulaError(f"there is no encoding {text.strip()[:40]!r}; did you mean the model {near!r}?", text)
    names = formula.parameters
    usual = ["i"] if "i" in formula.node.free() else [name for name in _DISTANCES if name in names]
    wrote = usual[0] if usual else names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
    columns = [n.column for n in formula.node.walk() if n.op == "name" and n.value == (usual or names)[0]]
    raise FormulaError(f"the distance is called t; you wrote {wrote[:60]}", text, min(columns))


def _of_formula(formula: Formula) -> Encoding:
    encoding = Encoding(formula.text(), formula.text())
    encoding.__dict__["formula"] = formula  # as it is: nothing is parsed again
    return encoding


def number(value: Value) -> float:
    """A value of a parameter as a double."""
    return parse(value).float(0.0) if isinstance(value, str) else float(value)


def bound_formula(
    encoding: str | Formula | Encoding, parameters: Mapping[str, Any] | None = None, *, width: int = WIDTH
) -> Formula:
    """The formula of an encoding with every parameter given its value; one sentence if something is missing.

    Args:
        encoding: a name from the zoo, a formula, or an `Encoding`.
        parameters: a value for each parameter that the encoding leaves open.
        width: of one head.
    """
    if isinstance(encoding, Formula) and not encoding.parameters and not parameters:
        return encoding
    known = find(encoding)
    if known.formula is None:
        raise ValueError(f"{known.name} has no bias r(t), so it has no receptive field of this kind")
    formula = known.formula.bind(known.heads(None, parameters, width=width)[0])
    if formula.parameters:
        many, names = len(formula.parameters) > 1, ", ".join(formula.parameters)
        what, them = ("parameters", "them values") if many else ("parameter", "it a value")
        example = f"such as {formula.parameters[0]} = 1/16"
        raise ValueError(f"{known.name} leaves the {what} {names} open: give {them}, {example}")
    return formula


def _suggest(key: str, text: str) -> None:
    near = difflib.get_close_matches(key[:40], ENCODINGS, 1, cutoff=0.7)
    if near:
        raise FormulaError(f"there is no encoding {key[:40]!r}; did you mean '{near[0]}'?", text)
    inside = [word for word in re.findall(r"\w+", key) if word in ENCODINGS] if re.search(r"[-+*(]", key) else []
    if inside:
        own = ENCODINGS[inside[0]].text
        write = f"write its formula, {own}" if own else "and it has no formula"
        raise FormulaError(f"'{inside[0]}' is the name of an encoding, which is no part of a formula: {write}", text)
