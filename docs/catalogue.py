"""The page that lists every encoding: its formula, verdict, receptive field and picture, all from the zoo."""

from __future__ import annotations

from pathlib import Path

import farfield as ff
from farfield.theory.figures import weights_figure

HEADS, EPSILON, TERMS = 8, "0.01", 4096
BEFORE = """# Every encoding

Written when the site is built, from `farfield.ENCODINGS`: what is registered is listed. Receptive fields are those of
8 heads at epsilon 0.01, in tokens; where a parameter is learned, a fair value stands for it and is named.
"""
FAIR = {"p": "1.5", "a": "1", "w": "512", "near": "1", "far": "0"}  # for parameters that only training or a user gives


def page(pictures: Path) -> str:
    """The page as Markdown; the pictures are written to a folder."""
    return "\n\n".join([BEFORE.strip(), *(entry(encoding, pictures) for encoding in ff.ENCODINGS.values())]) + "\n"


def entry(encoding: ff.Encoding, pictures: Path) -> str:
    """One encoding."""
    verdict = ff.check(encoding)
    lines = [f"## {encoding.name}"]
    if encoding.formula is not None:
        lines.append(f"`{encoding.text}`")
    lines.append(". ".join(part for part in (encoding.source, encoding.note.replace("`", "")) if part) or "No source.")
    if encoding.formula is None:
        return "\n\n".join([*lines, "The theorem does not apply."])
    rows = [f"- `{p.name}`: {p.given.text}" for p in encoding.parameters]
    lines += ["\n".join(rows)] * bool(rows)
    lines.append(f"**Verdict:** {verdict.condition or verdict.verdict}.")
    each = values(encoding)
    formulas = [encoding.formula.bind(one) for one in each]
    lines += _fields(formulas)
    fair = {name: value for name, value in FAIR.items() if name in encoding.formula.parameters and name in each[-1]}
    title = f"{encoding.name}, head {len(each)}" if len(each) > 1 else encoding.name
    title += "".join(f", {name} = {value}" for name, value in fair.items())
    weights_figure(formulas[-1], title, pictures / f"{encoding.name}.png", start=0, terms=TERMS)
    return "\n\n".join([*lines, f"![weights and partial sums of {title}](encodings/{encoding.name}.png)"])


def values(encoding: ff.Encoding) -> list[dict[str, object]]:
    """The parameters of every head, with a fair value for what is learned or given; alike heads once."""
    open_ = {n: FAIR.get(n, "1") for n in encoding.formula.parameters}
    heads = [{**open_, **row} for row in encoding.heads(HEADS)]
    return heads if any(row != heads[0] for row in heads) else heads[:1]


def _fields(formulas: list[ff.Formula]) -> list[str]:
    try:
        tokens = [ff.trf(formula, EPSILON) for formula in formulas]
    except ValueError:
        return ["**Receptive field:** none, the sum of the weights diverges."]
    said = f"{tokens[0]}" if len(tokens) == 1 else "head by head " + ", ".join(map(str, tokens))
    return [f"**Receptive field at epsilon {EPSILON}:** {said} tokens."]
