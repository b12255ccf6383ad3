"""Encodings by name: ours, those of others, and what a user types: a name, a formula, or the name of a model.

Others add theirs with `farfield.register`, or by an entry point in the group "farfield.encodings".
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from farfield.formula import Formula, FormulaError, parse
from farfield.formula.formula import Parameters
from farfield.formula.grammar import as_meant
from farfield.models.names import family_of, near_family
from farfield.zoo.encoding import WIDTH, Encoding, parsed
from farfield.zoo.named import BOUNDED, NAMED

ENTRY_POINTS = "farfield.encodings"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_WRITTEN_NAME = re.compile(r"[~.]{0,2}/?[A-Za-z][\w.]*([-/ ][\w.]+)*/?|[.~]{1,2}/?")  # words, hyphens, slashes
_WORD = re.compile(r"[A-Za-z]{2}|^[./~]")
_DISTANCES = ("i", "n", "d", "m", "j", "s", "x", "dist", "distance", "delta", "tau", "lag", "pos", "position", "offset")


def _printed(e: Encoding) -> Encoding:
    """The form that the paper prints, under the name NAME-paper."""
    free = parse(e.paper or "").parameters
    parameters = e.parameters if e.paper_parameters is None else e.paper_parameters
    used = tuple(p for p in parameters if p.name in free)
    return replace(e, name=f"{e.name}-paper", text=e.paper, parameters=used, paper=None)


class _Zoo(Mapping[str, Encoding]):
    """Every named encoding by its name; those of other packages are looked up when a name is not one of ours."""

    def __init__(self, encodings: Sequence[Encoding]):
        printed = [_printed(e) for e in encodings if e.paper is not None and e.paper != e.text]
        self._encodings = {e.name: e for e in (*encodings, *printed)}
        self._complete = False

    def add(self, encoding: Encoding) -> None:
        self._encodings[encoding.name] = encoding

    def __getitem__(self, name: str) -> Encoding:
        if name not in self._encodings and NAME.fullmatch(name):
            self._load()
        return self._encodings[name]

    def __contains__(self, name: object) -> bool:
        if name not in self._encodings and isinstance(name, str) and NAME.fullmatch(name):
            self._load()
        return name in self._encodings

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._encodings)

    def __len__(self) -> int:
        self._load()
        return len(self._encodings)

    def __repr__(self) -> str:
        return f"ENCODINGS({', '.join(self)})"

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


ENCODINGS = _Zoo(NAMED)


def register(encoding: Encoding) -> Encoding:
    """Add an encoding to the zoo: its name then works wherever one is expected.

    Args:
        encoding: a name that is not taken, and its formula.

    Returns:
        The encoding itself.
    """
    if not isinstance(encoding, Encoding):
        raise ValueError(f"only an Encoding can be registered, not {type(encoding).__name__}")
    if not isinstance(encoding.name, str) or not NAME.fullmatch(encoding.name) or len(encoding.name) > 40:
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


# ---------------------------------------------------------------------------------------------------- finding
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
    if not weight and key in BOUNDED:
        return BOUNDED[key]
    if not weight and key and (named := _named(name_or_formula)) is not None:
        return named
    try:
        formula = parse(name_or_formula, weight=weight)
    except FormulaError as error:
        _suggest(key, error.text)
        meant, changes = as_meant(error.text)
        if not meant:
            raise
        return replace(find(meant, weight=weight), asked=changes)
    if "t" not in formula.node.free() and formula.parameters and not formula.is_bounded_family:
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
        position = f"{family.name} has {family.position} ({family.source})"
        if family.encoding is not None:
            return replace(ENCODINGS[family.encoding], asked=position)
        raise FormulaError(f"{key[:60]!r} is a name, not a formula: {position}; see 'farfield inspect'", text)
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
    usual = [name for name in _DISTANCES if name in names]
    wrote = usual[0] if usual else names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"
    columns = [n.column for n in formula.node.walk() if n.op == "name" and n.value == (usual or names)[0]]
    raise FormulaError(f"the distance is called t; you wrote {wrote[:60]}", text, min(columns))


def _of_formula(formula: Formula) -> Encoding:
    return parsed(Encoding(formula.text(), formula.text()), formula)


def bound_formula(
    encoding: str | Formula | Encoding, parameters: Parameters | None = None, *, width: int = WIDTH
) -> Formula:
    """The formula of an encoding with every parameter given its value; one sentence if something is missing.

    Args:
        encoding: a name from the zoo, a formula, or an `Encoding`.
        parameters: a value for each parameter that the encoding leaves open.
        width: of one head.
    """
    if isinstance(encoding, Formula) and not encoding.parameters and not parameters:
        return encoding
    named = find(encoding)
    if named.formula is None:
        raise ValueError(f"{named.name} has no bias r(t), so it has no receptive field of this kind")
    formula = named.formula.bind(named.one_head(parameters, width=width))
    if formula.parameters:
        many, names = len(formula.parameters) > 1, ", ".join(formula.parameters)
        what, them = ("parameters", "them values") if many else ("parameter", "it a value")
        example = f"such as {formula.parameters[0]} = 1/16"
        raise ValueError(f"{named.name} leaves the {what} {names} open: give {them}, {example}")
    return formula


def _suggest(key: str, text: str) -> None:
    near = difflib.get_close_matches(key[:40], ENCODINGS, 1, cutoff=0.7)
    if near:
        raise FormulaError(f"there is no encoding {key[:40]!r}; did you mean '{near[0]}'?", text)
    inside = [word for word in re.findall(r"\w+", key) if word in ENCODINGS] if re.search(r"[-+*(]", key) else []
    if inside:
        formula = ENCODINGS[inside[0]].text
        write = f"write its formula, {formula}" if formula else "and it has no formula"
        raise FormulaError(f"'{inside[0]}' is the name of an encoding, which is no part of a formula: {write}", text)
