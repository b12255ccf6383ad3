"""How a number, a list of names and a user's text are written, once for tables, sentences, figures and messages."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

LONGEST = 60  # characters of a name in a table
_MOST_DIGITS = 15  # of a number of tokens that is written out


def tokens(count: int | None) -> str:
    """A number of tokens: 1,152; 6.08e23 if it has more than 15 digits; "none" if there is none."""
    if count is None:
        return "none"
    if count < 10**_MOST_DIGITS:
        return f"{count:,}"
    exponent = int(count.bit_length() * math.log10(2))  # or one more; Python writes no number of 5,000 digits
    exponent -= count < 10**exponent
    return f"{count // 10 ** (exponent - 2) / 100:g}e{exponent}"


def token_range(counts: Iterable[int]) -> str:
    """One number of tokens, or the range of several: 19, or 19 to 1,179."""
    smallest, *_, largest = sorted({*counts}) * 2
    return tokens(smallest) if smallest == largest else f"{tokens(smallest)} to {tokens(largest)}"


def memory(count: int) -> str:
    """A number of bytes: 12.5 MiB, 1.25 GiB."""
    return f"{count / 2**30:,.2f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"


def percent(share: float, error: float | None = None, *, digits: int | None = None, sign: str = "") -> str:
    """A share in percent, with its standard error if there is one: 26.2 %, 26.2 ± 1.4 %, 732 %, 0.04 %.

    Args:
        share: The share; 1 is 100 %.
        error: Its standard error.
        digits: After the point. Unless given: one, none from 100 % on, and as many as a share below 0.1 % needs where
            there is no error beside it.
        sign: "+" writes the sign of a positive share too.
    """
    if digits is None and error is None and 0 < abs(share) < 0.001:
        return f"{100 * share:{sign}.1g} %"
    places = (0 if abs(share) >= 1 else 1) if digits is None else digits
    return with_error(100 * share, None if error is None else 100 * error, places, sign=sign) + " %"


def with_error(value: float | None, error: float | None = None, digits: int = 2, *, sign: str = "") -> str:
    """A number with so many digits after the point, and its standard error if there is one: 96.50 ± 1.00."""
    if value is None:
        return ""
    return f"{value:{sign}.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def number(value: float, digits: int = 3) -> str:
    """A number in a sentence: so many significant digits, or all before the point."""
    if not math.isfinite(value):
        return "infinite" if value > 0 else "unknown"
    rounded = float(f"{value:.{digits}g}")
    return f"{value:,.0f}" if 10**digits <= abs(rounded) < 1e7 else f"{rounded:.{digits}g}"


def listing(names: Iterable[str], most: int | None = None) -> str:
    """Names in a sentence, each on one line: `a`, `a and b`, `a, b and c`; with `most`, `a, b and 3 others`."""
    words = [short(name) for name in names]
    if most is not None and len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} others"]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def plain(text: object) -> str:
    """Text without control characters, line breaks and marks that turn the direction of writing."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else c for c in str(text))


def short(text: object, longest: int = LONGEST) -> str:
    """Plain text that fits into a table or a legend."""
    line = plain(text)
    return line if len(line) <= longest else line[: longest - 1] + "…"
