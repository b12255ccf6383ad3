"""The page that lists every named encoding, written from the zoo: formula, verdict, receptive fields and a picture."""

from __future__ import annotations

from math import exp, inf, isfinite, log10

from farfield.formula.latex import latex
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.receptive import trf
from farfield.theory.verdict.convergence import check
from farfield.zoo import ENCODINGS, Encoding, bound_formula, find

HEADS = 8
_WIDE, _HIGH, _FAR, _DEEP = 420, 110, 4096, 6  # pixels, the last distance, and the powers of ten that are drawn


def gallery() -> str:
    """The page as Markdown."""
    out = [
        "# Every encoding",
        "Written from the zoo when the site is built. Verdicts are proven; so is each receptive field, for the heads "
        f"of a model with {HEADS} heads of width 64. Pictures show the weight by distance, both on logarithmic axes, "
        "of the first head (dark) and of the last (light).",
    ]
    for name, encoding in ENCODINGS.items():
        out += [f"## {name}", *_entry(encoding)]
    return "\n\n".join(out) + "\n"


def _entry(encoding: Encoding) -> list[str]:
    about = "; ".join(part for part in (encoding.source, encoding.note) if part)
    if encoding.formula is None:
        return [f"{about}. It adds no bias, so the theorem says nothing about it."]
    verdict = check(find(encoding))
    left = "b" if encoding.formula.weight else "r"
    out = [f"```math\n{left}(t) = {latex(encoding.formula.node)}\n```", f"{about}."]
    out.append(f"**{verdict.condition or verdict.verdict}**")
    rows = encoding.heads(HEADS)
    ends = [rows[0], rows[-1]] if rows[0] != rows[-1] else rows[:1]
    if any(set(encoding.formula.parameters) - set(row) for row in ends):
        return [*out, "Its parameters are learned or must be given: then it has a receptive field."]
    bound = [bound_formula(encoding, row) for row in ends]
    if verdict.verdict == "converges":
        try:
            fields = [trf(formula, "0.01") for formula in bound]
            out.append(
                f"Receptive field at epsilon = 0.01: {' to '.join(f'{n:,}' for n in dict.fromkeys(fields))} tokens."
            )
        except UndecidedError as error:
            out.append(str(error))
    lines = "".join(_curve(formula, shade) for formula, shade in zip(bound, ("#1b4f9c", "#8fb4e8"), strict=False))
    return [*out, f'<div class="gallery">{_frame(lines)}</div>']


def _curve(formula: object, shade: str) -> str:
    points = []
    for i in range(97):
        t = round(_FAR ** (i / 96)) - 1
        try:
            value = formula.float(t)  # type: ignore[attr-defined]
            weight = value if formula.weight else exp(min(value, 700))  # type: ignore[attr-defined]
        except (ValueError, ArithmeticError):
            weight = inf
        if isfinite(weight) and weight > 10**-_DEEP:
            high = min(1.0, max(0.0, 1 + log10(weight) / _DEEP))
            points.append(f"{40 + (_WIDE - 60) * log10(t + 1) / log10(_FAR):.1f},{8 + (_HIGH - 30) * (1 - high):.1f}")
    return f'<polyline points="{" ".join(points)}" fill="none" stroke="{shade}" stroke-width="2"/>'


def _frame(lines: str) -> str:
    text = 'font-size="10" font-family="sans-serif" fill="#555"'
    under = f'y="{_HIGH - 8}" text-anchor="middle" {text}'
    bottom = _HIGH - 22
    marks = "".join(
        f'<text x="{40 + (_WIDE - 60) * log10(t) / log10(_FAR):.0f}" {under}>{t}</text>' for t in (1, 16, 256, 4096)
    )
    marks += f'<text x="36" y="14" text-anchor="end" {text}>1</text>'
    marks += f'<text x="36" y="{bottom}" text-anchor="end" {text}>1e-{_DEEP}</text>'
    box = f'<rect x="40" y="8" width="{_WIDE - 60}" height="{_HIGH - 30}" fill="none" stroke="#ccc"/>'
    return (
        f'<svg viewBox="0 0 {_WIDE} {_HIGH}" width="{_WIDE}" height="{_HIGH}" role="img" '
        f'aria-label="weight by distance t + 1">{box}{lines}{marks}</svg>'
    )
