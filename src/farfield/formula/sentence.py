"""Sentences that carry mathematics: words and expressions in turn, spelt as text, LaTeX or MathML at the edge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from farfield.formula import latex as _latex
from farfield.formula import mathml as _mathml
from farfield.formula.plain_text import text
from farfield.formula.tree import Node


@dataclass(frozen=True, repr=False)
class Sentence:
    """Words and expressions, in the order in which they are read."""

    parts: tuple[str | Node, ...]

    def __str__(self) -> str:
        return "".join(p if isinstance(p, str) else text(p) for p in self.parts)

    def __repr__(self) -> str:
        return f"Sentence({str(self)!r})"

    def latex(self) -> str:
        """The sentence in LaTeX: words escaped, mathematics between dollar signs."""
        return "".join(_latex.escape(p) if isinstance(p, str) else f"${_latex.latex(p)}$" for p in self.parts)

    def mathml(self) -> list[dict[str, Any]]:
        """The sentence in pieces for a page: {"words": text} and {"math": element}; a line may end after each."""
        out: list[dict[str, Any]] = []
        for part in self.parts:
            if isinstance(part, str):
                out.append({"words": _mathml.plain(part)})
            else:
                out += [{"math": element} for element in _mathml.pieces(part)]
        return out

    def html(self) -> str:
        """The sentence as markup."""
        return "".join(
            _mathml.markup(p["words"]) if "words" in p else f"<math>{_mathml.markup(p['math'])}</math>"
            for p in self.mathml()
        )


def say(*parts: str | Node | Sentence) -> Sentence:
    """A sentence from words, expressions and other sentences."""
    flat: list[str | Node] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Sentence) else (part,):
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            elif piece != "":
                flat.append(piece)
    return Sentence(tuple(flat))


def joined(sentences: Iterable[str | Node | Sentence], between: str) -> Sentence:
    """Sentences with the same words between them."""
    parts: list[str | Node | Sentence] = []
    for sentence in sentences:
        parts += [between, sentence] if parts else [sentence]
    return say(*parts)
