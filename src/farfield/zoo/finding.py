"""From what a person types to an encoding: a name, a formula, or the name of a model."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from farfield.formula import Formula, FormulaError, parse
from farfield.formula.spelling import as_meant
from farfield.zoo.encoding import WIDTH, Encoding, parsed
from farfield.zoo.families import family_of, near_family
from farfield.zoo.registry import ENCODINGS, NAME

_WRITTEN_NAME = re.compile(r"[~.]{0,2}/?[A-Za-z][\w.]*([-/ ][\w.]+)*/?|[.~]{1,2}/?")  # words, hyphens, slashes
_WORD = re.compile(r"[A-Za-z]{2}|^[./~]")
_DISTANCES = ("n", "d", "m", "j", "s", "x", "dist", "distance", "delta", "tau", "lag", "pos", "position", "offset")


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
    if not weight and NAME.fullmatch(key):
        from farfield.zoo.bounded_encodings import CLASSES

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
    return parsed(Encoding(formula.text(), formula.text()), formula)


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
    formula = known.formula.bind(known.one_head(parameters, width=width))
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
