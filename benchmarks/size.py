"""How the rise of 1/n grows with tokens, depth, training length and the geometry of slopes, beside the paper's own.

    python benchmarks/size.py

Draws results/size/scaling from results/size/trials.csv, the trainings that were tried for the size of the study.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farfield.measure import rises
from farfield.study.published import published
from farfield.theory.figures import look, save, style

SIZE = Path(__file__).parent.parent / "results" / "size"
PAPER = {"tokens": 50_000 * 128 * 512, "layers": None, "length": 512, "slopes": 1.0}
LAYERS = {"wikitext-103": 6}  # of the paper's models; 12 on the others
BASE = {"corpus": "python", "tokenizer": "bytes", "encoding": "inverse", "heads": "4"}
AS_STUDIED = "WikiText-2, the default study's size"
Row = dict[str, str]


def chosen(rows: list[Row], **wanted: object) -> list[Row]:
    """The trainings with these settings, and those of `BASE` where nothing else is said."""
    every = {**BASE, **{name: str(value) for name, value in wanted.items()}}
    return [row for row in rows if all(row[name] == value for name, value in every.items())]


def between(rows: list[Row], low: float, high: float) -> list[Row]:
    return [row for row in rows if low <= float(row["tokens"]) <= high]


def draw(axes: Any, rows: list[Row], x: Callable[[Row], float], label: str, number: int, line: str = "") -> None:
    points = sorted((x(row), float(row["rise_percent"])) for row in rows)
    axes.plot(*zip(*points, strict=True), label=label, **{**look(number), "linestyle": line or "none"})


def published_rises(encoding: str) -> dict[str, float]:
    """The paper's rise at 18x, in percent, by data set."""
    tables = published()["necessity"]
    return {name: 100 * float(rises(table[encoding])[-1]) for name, table in tables.items() if encoding in table}


def main() -> None:
    with (SIZE / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    paper = published_rises("inverse")
    studied = chosen(rows, corpus="wikitext", layers=6, width=96, feed_forward=96, seed=0)
    alike = between(studied, 1.4e6, 1.5e6)  # as many tokens as in the default study
    with style() as pyplot:
        figure, axes = pyplot.subplots(2, 2, figsize=(9, 6.6), layout="constrained", sharey=True)
        tokens, depth, length, slopes = axes.flat

        def of_tokens(row: Row) -> float:
            return float(row["tokens"])

        wide = chosen(rows, layers=6, width=96, length=64, slopes=1, seed=0, dropout="0.0", batch=16)
        draw(tokens, [r for r in wide if r["origin"] == "first runs"], of_tokens, "inverse, 6 x 96", 0, "-")
        steep = [r for r in rows if (r["corpus"], r["slopes"]) == ("python", "8") and r["layers"] in "36"]
        draw(tokens, steep, of_tokens, "inverse, slopes in the paper's geometry", 1, "-")
        longer = [r for r in studied if (r["length"], r["slopes"]) == ("64", "1")]
        draw(tokens, longer, of_tokens, f"inverse, {AS_STUDIED}", 2, "-")
        deep = [r for r in rows if r["layers"] == "8" and (r["encoding"], r["seed"]) == ("inverse", "0")]
        on_wikitext = [r for r in deep if r["corpus"] == "wikitext"]
        draw(tokens, on_wikitext, of_tokens, "inverse, WikiText-2, 8 x 96", 4, "-")
        along = chosen(rows, origin="search, on the way", encoding="inverse-log")
        draw(tokens, along, of_tokens, "inverse-log, 6 x 96, feed-forward 96, seed 2", 3, "-")
        tokens.plot([PAPER["tokens"]] * len(paper), list(paper.values()), "k*", label="inverse, published")
        tokens.set(xscale="log", xlabel="training tokens")

        near = between(
            chosen(rows, length=64, slopes=1, seed=0, dropout="0.0", batch=16, learning_rate=0.003), 8e5, 1e6
        )
        same = [r for r in near if r["schedule"] != "cosine" and r["feed_forward"] == str(4 * int(r["width"]))]
        draw(depth, same, lambda r: float(r["layers"]), "0.9 M tokens, about equal time", 0, "-")
        more = between(chosen(rows, schedule="cosine", slopes=1, learning_rate=0.003), 1.3e6, 1.5e6)
        draw(depth, between(deep, 2.8e6, 2.9e6), lambda r: float(r["layers"]), "four texts, 2.9 M tokens", 2)
        draw(depth, between(deep, 4e6, 4.2e6), lambda r: float(r["layers"]), "WikiText-2 and novels, 4.1 M tokens", 4)
        draw(depth, more, lambda r: float(r["layers"]), "1.4 M tokens, cosine", 1, "-")
        layers = [LAYERS.get(name, 12) for name in paper]
        depth.plot(layers, list(paper.values()), "k*", label="published")
        depth.set(xlabel="layers", xticks=[3, 4, 6, 8, 12])

        def of_length(row: Row) -> float:
            return float(row["length"])

        start = chosen(
            rows, layers=6, width=96, feed_forward=384, tokens=900000, schedule="inverse square root", seed=0
        )
        start = [
            r
            for r in start
            if (r["batch"], r["learning_rate"], r["beta2"], r["weight_decay"]) == ("16", "0.003", "0.98", "0.01")
        ]
        draw(length, start, of_length, "6 x 96, 0.9 M tokens", 0, "-")
        long = list(chosen(rows, layers=3, width=128, slopes=1))
        draw(length, long, of_length, "3 x 128, as many updates", 1, "-")
        flat = [r for r in alike if r["slopes"] == "1"]
        draw(length, flat, of_length, f"{AS_STUDIED}, 1.4 M tokens", 2, "-")
        paper_length = [r for r in rows if r["origin"] == "study, geometry" and r["encoding"] == "inverse"]
        draw(length, paper_length, of_length, "WikiText-2, 6 x 128, 8 heads, 4.1 M tokens", 3)
        length.plot([PAPER["length"]] * len(paper), list(paper.values()), "k*", label="published")
        length.set(xscale="log", xlabel="training length (tokens)", xticks=[48, 64, 128, 256, 512])
        length.set_xticklabels(["48", "64", "128", "256", "512"])
        length.minorticks_off()

        def geometry(row: Row) -> float:
            return float(row["slopes"]) * float(row["length"]) / 512

        small = between(list(chosen(rows, layers=3, width=128, length=64)), 8e5, 1e6)
        draw(slopes, small, geometry, "3 x 128, 0.9 M tokens", 0, "-")
        large = between(chosen(rows, layers=6, width=96, schedule="cosine"), 3e6, 3.2e6)
        draw(slopes, large, geometry, "6 x 96, 3.1 M tokens", 1, "-")
        short = [r for r in alike if r["length"] == "64"]
        draw(slopes, short, geometry, f"{AS_STUDIED}, 1.4 M tokens", 2, "-")
        slopes.plot([1.0] * len(paper), list(paper.values()), "k*", label="published")
        slopes.set(xscale="log", xlabel="slope times training length, the paper's = 1", xticks=[0.125, 1])
        slopes.set_xticklabels(["1/8", "1"])
        slopes.minorticks_off()
        for one in axes.flat:
            one.set(yscale="log", ylim=(4, 6000))
            one.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f} %")
            one.legend(fontsize=7, loc="upper left")
        for one in axes[:, 0]:
            one.set_ylabel("rise of perplexity at 18x")
        save(figure, SIZE / "scaling.svg")
        pyplot.close(figure)


if __name__ == "__main__":
    main()
