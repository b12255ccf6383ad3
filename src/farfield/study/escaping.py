"""User text in other languages: what would be markup in HTML, LaTeX, Markdown, CSV or a terminal becomes plain text.

HTML is escaped by the template engine, SVG by matplotlib; the rest is here. Control characters go first: in a terminal
they move the cursor and change colours, in LaTeX and XML they are errors.
"""

from __future__ import annotations

import unicodedata

LONGEST = 60  # characters of a name in a table
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"\ensuremath{\pm}",
    "≥": r"\ensuremath{\geq}",
    "×": r"\ensuremath{\times}",
    "−": "-",
}
_MARKDOWN = set("\\`*_{}[]<>()#+!|~&$")


def plain(text: object) -> str:
    """Text without control characters, line breaks and marks that turn the direction of writing."""
    return "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") else c for c in str(text))


def short(text: object, longest: int = LONGEST) -> str:
    """Plain text that fits into a table or a legend."""
    shown = plain(text)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def latex(text: object) -> str:
    return "".join(_LATEX.get(c, c) for c in plain(text))


def markdown(text: object) -> str:
    """Text that Markdown shows as it stands, also inside of a table."""
    return "".join(f"\\{c}" if c in _MARKDOWN else c for c in plain(text))


def csv(text: object) -> str:
    """A cell that a spreadsheet does not take for a formula; numbers stay numbers."""
    cell = plain(text)
    if cell[:1] in ("=", "+", "-", "@") and not _is_number(cell):
        return "'" + cell
    return cell


def _is_number(text: str) -> bool:
    try:
        float(text.rstrip("%"))
    except ValueError:
        return False
    return True
