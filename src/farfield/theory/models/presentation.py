"""What an inspection shows to a person: the rows of its tables, its sentences and the bars of its figure, as text.

The command line and the explorer print the same from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from farfield.formula.mathml import markup
from farfield.theory.models.described import LENGTHS, Layer
from farfield.theory.models.inspection import NAMES, Inspection

_HEADINGS = ("layers", "position", "sees", "heads (keys) x width", "soft cap", "sink", "answer")
CACHE_HEADINGS = ("tokens", "with the windows", "without")
CACHE_TITLE = "keys and values of one text"


def layer_table(inspection: Inspection) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Headings, and a row for each group of layers that are alike; columns in which nothing stands are left out."""
    rows: list[tuple[str, ...]] = []
    for number, (layers, said) in enumerate(inspection.groups(), 1):
        one = layers[0]
        sees = "all before" if one.window is None else f"{one.window:,} tokens" + (" (chunk)" * one.chunks)
        cap = "" if one.soft_cap is None else f"{one.soft_cap:g}"
        heads = f"{one.heads} ({one.key_heads}) x {one.width}"
        position = NAMES.get(one.position, one.position)
        rows.append(
            (_numbers(layers), position, sees, heads, cap, "learned" if one.sink else "", f"({number}) {said.kind}")
        )
    kept = [i for i, _ in enumerate(_HEADINGS) if any(row[i] for row in rows)]
    return tuple(_HEADINGS[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def sentences(inspection: Inspection) -> list[str]:
    """What is proven about each group, and how far the local layers reach together."""
    said = [f"({number}) {answer.kind}: {answer.why}." for number, (_, answer) in enumerate(inspection.groups(), 1)]
    if inspection.reach is not None:
        share = inspection.epsilon
        even = f"; all but {share} of an even spread lies within {inspection.spread:,}" if inspection.spread else ""
        said.append(f"The local layers together reach {inspection.reach:,} tokens, exactly{even}.")
    return said


def html(inspection: Inspection) -> str:
    """The sentence, the table and what is proven, as markup; of an unknown architecture, its fields."""
    headings, rows = layer_table(inspection)
    if inspection.model is None:
        headings, rows = ("field", "value"), [(name, str(v)) for name, v in (inspection.unknown or {}).items()]
    cells = [f"<th>{markup(heading)}</th>" for heading in headings]
    body = ["".join(f"<td>{markup(cell)}</td>" for cell in row) for row in rows]
    table = "".join(f"<tr>{row}</tr>" for row in ("".join(cells), *body))
    told = "".join(f"<p>{markup(line)}</p>" for line in (*sentences(inspection), *inspection.notes))
    return f"<p>{markup(inspection.sentence)}</p><table>{table}</table>{told}"


def cache_rows(inspection: Inspection) -> list[tuple[str, ...]]:
    """The bytes of the cache for texts of several lengths."""
    return [
        (f"{n:,}", _size(inspection.cache_bytes(n)), _size(inspection.cache_bytes(n, windows=False))) for n in LENGTHS
    ]  # fmt: skip


@dataclass(frozen=True)
class LayerBar:
    """One layer in the figure: how many tokens it sees, and whether they are a window."""

    layer: int
    tokens: int
    kind: str
    exact: bool

    @property
    def label(self) -> str:
        if self.kind == "windowed" and not self.exact:
            return "windowed: how wide depends on the logits"
        return f"{self.kind}: {'window' if self.exact else 'sees the whole text'}"


def bars(inspection: Inspection) -> tuple[int, list[LayerBar]]:
    """The tokens of the whole text, and a bar for each layer: its window, the widest certified one, or the whole."""
    m = inspection.model
    assert m is not None
    whole = max([m.claimed_length or 0, m.training_length or 0, 4096, *(x.window or 0 for x in m.layers)])
    out = []
    for layer, said in zip(m.layers, inspection.answers, strict=True):
        tokens = layer.window or (max(said.windows) if said.windows else whole)
        exact = layer.window is not None or bool(said.windows)
        out.append(LayerBar(layer.number, min(tokens, whole), said.kind, exact))
    return whole, out


def _numbers(layers: list[Layer]) -> str:
    """Layers as "1-3, 5-7", shortened."""
    runs: list[list[int]] = []
    for n in (layer.number for layer in layers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    said = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    short = said if len(said) <= 4 else [*said[:3], "...", said[-1]]
    return f"{', '.join(short)} ({len(layers)})"


def _size(count: int) -> str:
    return f"{count / 2**30:,.2f} GiB" if count >= 2**30 else f"{count / 2**20:,.1f} MiB"
