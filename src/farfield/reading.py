"""The one door by which small files of others come in: regular files of a bounded size, JSON of a bounded depth."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
DEEPEST = 64
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
_LONGEST_NUMBER = 4000  # digits, which Python turns into a number at once; a million take minutes


class UnreadableError(ValueError):
    """A file that is missing, no file, too large, or not what it should be; the sentence names it."""


def read_bytes(path: Path, most: int = MOST_BYTES) -> bytes:
    """The contents of a regular file of at most so many bytes.

    Raises:
        UnreadableError: If there is no such file, it is a folder, a pipe or a device, or it is longer.
    """
    try:
        # without O_NONBLOCK the opening of a pipe that nobody writes to would wait for ever
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise UnreadableError(f"{str(path)!r} cannot be read: it is not a file.")
            data = file.read(most + 1)
    except OSError as error:
        raise UnreadableError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    if len(data) > most:
        raise UnreadableError(f"{str(path)!r} is longer than {most:,} bytes.")
    return data


def read_json(path: Path, most: int = MOST_BYTES, *, depth: int = DEEPEST, exact: bool = False) -> dict[str, Any]:
    """The table in a JSON file.

    Raises:
        UnreadableError: If the file cannot be read, is no JSON or no table, is nested deeper, or holds a number that
            is none of this machine's.
    """
    try:
        value = parse_json(read_bytes(path, most), depth=depth, exact=exact)
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(f"{str(path)!r} cannot be read as JSON: {error}.") from None
    if not isinstance(value, dict):
        raise UnreadableError(f"{str(path)!r} holds no table of JSON.")
    return value


def parse_json(data: bytes | str, *, depth: int = DEEPEST, exact: bool = False) -> Any:
    """The value of a JSON text whose brackets are at most so deep and whose numbers fit.

    Whole numbers fit in 64 bits, unless they are `exact` ones, as the reach of an encoding is: then of 4,000 digits.

    Raises:
        ValueError: With the reason, if it is none.
    """
    try:
        text = data.decode() if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    if _depth(text) > depth:
        raise ValueError(f"it is nested deeper than {depth}")
    try:
        return json.loads(
            text,
            parse_int=_exact if exact else _whole,
            parse_float=_finite,
            parse_constant=float,
            object_pairs_hook=_table,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} in line {error.lineno}") from None


def _depth(text: str) -> int:
    """The deepest nesting of brackets outside of strings."""
    deepest = now = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        now += {"[": 1, "{": 1, "]": -1, "}": -1}.get(match[0], 0)
        deepest = max(deepest, now)
    return deepest


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table in which no name stands twice: of two values, one reader would take the first, another the last."""
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"it names {twice[:40]!r} twice")
    return table


def _exact(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"it holds a whole number of more than {_LONGEST_NUMBER} digits")
    return int(digits)


def _whole(digits: str) -> int:
    if len(digits) > 20 or abs(value := int(digits)) >= 2**63:
        raise ValueError("it holds a whole number that does not fit in 64 bits")
    return value


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("it holds a number that is too large")
    return value
