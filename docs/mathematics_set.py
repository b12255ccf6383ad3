"""The mathematics of the pages as MathML, which browsers show without any script: `$...$` and fences of `math`."""

from __future__ import annotations

import html
import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor

FENCE = re.compile(r"^([ \t]*)```math[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def mathml(latex: str, display: str = "inline") -> str:
    """A formula as MathML."""
    return convert(html.unescape(latex).strip(), display=display)


def set_fences(markdown: str) -> str:
    """Fences of `math` as formulas on lines of their own."""
    return FENCE.sub(lambda m: f"{m[1]}<div>{mathml(m[2], 'block')}</div>", markdown)


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[Element | str, int, int]:  # type: ignore[override]  # noqa: N802
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class Mathematics(Extension):
    """`$...$` in a line of text; code, which comes first, is left alone."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Inline(r"\$([^\s$](?:[^$\n]|\n(?!\n))*?(?<=\S))\$(?!\d)", md), "mathematics", 185)


def makeExtension(**settings: Any) -> Mathematics:  # noqa: N802
    """How Python-Markdown finds the extension."""
    return Mathematics(**settings)
