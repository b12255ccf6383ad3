"""What an inspection shows to a reader: the rows of its tables, its sentences, and the bars of its figure.

The command line, the notebook and the explorer print the same from here.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from farfield.models.attention_layers import LENGTHS, Layer
from farfield.models.inspection import Inspection
from farfield.models.names import POSITIONS
from farfield.table import Table
from farfield.theory.figures import finished, style
from farfield.words import memory, tokens

_HEADINGS = ("layers", "position", "sees", "heads (keys) x width", "soft cap", "sink", "answer")
_LOOKS = {"windowed": ("#0072b2", ""), "disperses": ("#d9d9d9", "///"), "neither": ("#e69f00", "..."),
          "undecided": ("#ffffff", "xx")}  # fmt: skip


def layer_table(inspection: Inspection) -> Table:
    """A row for each group of layers that are alike; columns in which nothing stands are left out.

    Of an unknown architecture: its fields.
    """
    if inspection.model is None:
        headings = ("field", "value")
        return Table(headings, [(name, str(v)) for name, v in (inspection.unknown or {}).items()], left=headings)
    rows: list[tuple[str, ...]] = []
    for number, (layers, result) in enumerate(inspection.groups(), 1):
        x = layers[0]
        sees = "all before" if x.window is None else f"{tokens(x.window)} tokens" + (" (chunk)" * x.chunks)
        cap = "" if x.soft_cap is None else f"{x.soft_cap:g}"
        heads, position = f"{x.heads} ({x.key_heads}) x {x.width}", POSITIONS.get(x.position, x.position)
        sink, answer = "learned" if x.sink else "", f"({number}) {result.kind}"
        rows.append((_numbers(layers), position, sees, heads, cap, sink, answer))
    columns = [i for i, _ in enumerate(_HEADINGS) if any(row[i] for row in rows)]
    return Table([_HEADINGS[i] for i in columns], [[row[i] for i in columns] for row in rows], left=_HEADINGS)


def sentences(inspection: Inspection) -> list[str]:
    """What is proven about each group, and how far the local layers reach together."""
    lines = [f"({number}) {result.kind}: {result.why}." for number, (_, result) in enumerate(inspection.groups(), 1)]
    if inspection.reach is not None:
        within = f"; all but {inspection.epsilon} of an even spread lies within {tokens(inspection.spread)}"
        even = within if inspection.spread else ""
        lines.append(f"The local layers together reach {tokens(inspection.reach)} tokens, exactly{even}.")
    return lines


def html(inspection: Inspection) -> str:
    """The sentence, the table and what is proven, as markup."""
    below = "".join(f"<p>{escape(line)}</p>" for line in (*sentences(inspection), *inspection.notes))
    return f"<p>{escape(inspection.sentence)}</p>{layer_table(inspection).html()}{below}"


def cache_table(inspection: Inspection) -> Table:
    """The bytes of the cache for texts of several lengths."""
    rows = [(tokens(n), *(memory(inspection.cache_bytes(n, windows)) for windows in (True, False))) for n in LENGTHS]
    return Table(("tokens", "with the windows", "without"), rows, title="keys and values of one text")


class LayerBar(NamedTuple):
    """One layer in the figure: how many tokens it sees, and what they are."""

    layer: int
    tokens: int
    kind: str
    label: str


def bars(inspection: Inspection) -> tuple[int, list[LayerBar]]:
    """The tokens of the whole text, and a bar for each layer: its window, the widest certified one, or the whole."""
    m = inspection.model
    assert m is not None
    longest = max([m.claimed_length or 0, m.training_length or 0, 4096, *(x.window or 0 for x in m.layers)])
    out = []
    for layer, result in zip(m.layers, inspection.answers, strict=True):
        window = layer.window or max(result.windows, default=None)
        sees = "window" if window else "sees the whole text"
        sees = "how wide depends on the logits" if not window and result.kind == "windowed" else sees
        bar = LayerBar(layer.number, min(window or longest, longest), result.kind, f"{result.kind}: {sees}")
        out.append(bar)
    return longest, out


def layers_figure(inspection: Inspection, path: str | Path | None) -> Any:
    """A bar for each layer; with a path, written as its ending says."""
    m = inspection.model
    assert m is not None
    longest, layers = bars(inspection)
    with style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(7, min(9, 1.6 + 0.16 * len(layers))))
        labels: set[str] = set()
        for bar in layers:
            colour, hatch = _LOOKS[bar.kind]
            axes.barh(bar.layer, bar.tokens, color=colour, hatch=hatch, edgecolor="#444444", linewidth=0.4, height=0.8,
                      label=None if bar.label in labels else bar.label)  # fmt: skip
            labels.add(bar.label)
        if m.training_length:
            axes.axvline(m.training_length, color="#d55e00", linestyle="--", label="training length")
        axes.set(xscale="log", xlim=(1, longest * 1.3), ylim=(len(layers) + 0.6, 0.4), ylabel="layer",
                 xlabel="tokens that the layer sees", title=f"{inspection.name}: what each layer sees")  # fmt: skip
        axes.set_axisbelow(True)
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.28 if len(layers) < 12 else -0.12), ncols=2)
        return finished(figure, path)


def _numbers(layers: list[Layer]) -> str:
    """Layers as "1-3, 5-7", shortened."""
    runs: list[list[int]] = []
    for n in (layer.number for layer in layers):
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    short = texts if len(texts) <= 4 else [*texts[:2], "...", texts[-1]]
    return f"{', '.join(short)} ({len(layers)})"
