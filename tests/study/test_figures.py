"""The figures of the study: files that any viewer reads, captions that follow the data, nothing drawn from nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import FALLING, LEVEL, RISING, study_of

from farfield.study.collected import Study
from farfield.study.figures import FIGURES, canvas, draw_all
from farfield.study.figures import curves as figures_curves
from farfield.study.figures import doses as figures_doses
from farfield.study.figures import inference as figures_inference
from farfield.study.figures import theory as figures_theory
from farfield.study.figures.canvas import label_of, look_of, named, number, percent, write_beside
from farfield.theory.figures import look, one_line, plain, style

SHOOTING = (100.0, 150.0, 200.0, 400.0)
NAMES = [
    "perplexity",
    "dose-response",
    "prediction",
    "level",
    "inference",
    "reweighting",
    "receptive-fields",
    "attention-by-distance",
    "heat-maps",
    "hypothesis",
    "partial-sums",
    "fields-compared",
    "training",
]


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are laid out but not written, where only what they say counts."""

    def laid_out(figure: Any, folder: Path, name: str, title: str, caption: str) -> canvas.Figure:
        figure.draw_without_rendering()
        return canvas.Figure(name, title, caption, (folder / f"{name}.svg",), folder / f"{name}-narrow.svg")

    for module in ("by_head", "curves", "doses", "inference", "theory", "training"):
        monkeypatch.setattr(f"farfield.study.figures.{module}.written", laid_out)


def timings(sliding: float = 80.0) -> dict[str, Any]:
    rows = []
    for window in (4, 8, 16):
        for way, seconds, perplexity in (
            ("non-overlapping", 0.1, 100.0),
            ("sliding", 0.4, sliding),
            ("windowed", 0.1, 90.0),
        ):
            rows.append(timing(way, window, seconds, perplexity))
    rows.append(timing("full", None, 0.1, 79.0))
    return {"encoding": "alibi", "length": 288, "timings": rows, "relative": {}, "cell": "x"}


def timing(way: str, window: int | None, seconds: float, perplexity: float) -> dict[str, Any]:
    return {"protocol": way, "window": window, "tokens": 100, "seconds": seconds, "perplexity": perplexity}


def whole(out: Path, **options: Any) -> Study:
    """A study with something for every figure."""
    options.setdefault("corpora", ("python",))
    study = study_of(
        out,
        {"sinusoidal": SHOOTING, "alibi": LEVEL, "type1": FALLING, "inverse": RISING},
        verdicts={"sinusoidal": "not-applicable", "inverse": "diverges"},
        leaks={"sinusoidal": None, "alibi": 0.01, "type1": 0.05, "inverse": 0.4},
        **options,
    )
    for entry in study.of_encoding("sinusoidal"):
        for head in entry.heads():
            head.update(parameters=None, trf={"0.1": None, "0.01": None}, trf_of_rows={"0.1": None, "0.01": None})
    return replace(study, speed=timings())


def change(study: Study, encoding: str, edit: Callable[[dict[str, Any]], None]) -> Study:
    for entry in study.of_encoding(encoding):
        for record in entry.records:
            edit(record)
    return study


def words(path: Path) -> list[str]:
    """Every text of an SVG, as a viewer shows it."""
    return ["".join(element.itertext()) for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]


def test_all_figures_are_drawn_in_order_as_png_svg_and_pdf_and_for_a_phone(tmp_path: Path) -> None:
    said: list[str] = []
    drawn = draw_all(whole(tmp_path / "study", seeds=2), tmp_path / "new" / "figures", said.append)
    assert [figure.name for figure in drawn] == NAMES
    assert len(said) == len(FIGURES)
    for figure in drawn:
        pdf, png, svg = sorted(figure.paths)
        assert [p.name for p in (pdf, png, svg)] == [f"{figure.name}.{kind}" for kind in ("pdf", "png", "svg")]
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert pdf.read_bytes()[:5] == b"%PDF-"
        sizes = []
        for path in (svg, figure.narrow):
            root = ElementTree.parse(path).getroot()
            assert root.tag.endswith("}svg")
            sizes.append(float(root.get("width").removesuffix("pt")))
        assert sizes[1] <= 4.4 * 72  # one panel a row
        assert figure.title
        assert figure.caption.endswith(".")
        assert ". " not in figure.caption  # one sentence
        assert "nan" not in figure.caption.split()


def test_hostile_labels_are_text_and_nothing_else(tmp_path: Path) -> None:
    corpus = "<script>alert(1)</script> & ]]> $x^$ \x1b[31m\x00 日本"
    study = whole(tmp_path / "study", corpora=(corpus, "_hidden"))
    formula = "where(t < 3, 0, -2*log(1 + t))"
    more = study_of(tmp_path / "more", {formula: LEVEL}, corpora=study.corpora)
    study = replace(study, encodings=[*study.encodings, formula], entries={**study.entries, **more.entries})
    seen: list[str] = []
    for figure in draw_all(study, tmp_path / "figures"):
        svg = next(path for path in figure.paths if path.suffix == ".svg")
        assert not [e for e in ElementTree.parse(svg).iter() if e.tag.endswith("script")]
        seen += words(svg)
    assert any("<script>" in text and "…" in text for text in seen)
    assert formula in seen
    assert any(text.strip() == "_hidden" for text in seen)
    short = study_of(tmp_path / "short", {"alibi": LEVEL}, corpora=("$a^$ & $b_$",))
    drawn = figures_curves.perplexity_curves(short, tmp_path / "figures")
    assert drawn is not None
    assert "$a^$ & $b_$: ours" in words(tmp_path / "figures" / "perplexity.svg")


def test_labels_are_short_and_differ() -> None:
    assert plain("a\nb\x00c\x1bd") == "a b c d"
    assert plain("$x$") == r"\$x\$"
    assert len(one_line("x" * 500, 30)) == 30
    assert one_line("x" * 30, 30) == "x" * 30
    long = [f"-log(1 + t) - {i}*log(2 + log(1 + t + 1 + 1 + 1 + 1))" for i in range(3)]
    study = Study("tiny", [], ["alibi", *long], {}, None)
    labels = [label_of(study, e) for e in study.encodings]
    assert len(set(labels)) == 4
    assert max(map(len, labels)) < 40
    looks = [look_of(study, e) for e in study.encodings]
    assert looks[1] == look(1)
    assert len({repr(look(i)) for i in range(40)}) == 40
    for part in ("color", "marker"):  # the study's eleven encodings share neither
        assert len({look(i)[part] for i in range(12)}) == 12


def test_numbers_in_sentences() -> None:
    assert [number(x) for x in (0.01234, 4.2, 99.96, 1234.5, 9.99e9)] == ["0.0123", "4.2", "100", "1,234", "9.99e+09"]
    assert [percent(x) for x in (0.0004, 0.123, 0.9999, 4.9)] == ["0.04 %", "12 %", "100 %", "490 %"]
    assert named(["a"]) == "a"
    assert named(["a", "b", "c"]) == "a, b and c"
    assert named(list("abcdef")) == "a, b, c and 3 others"


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
@pytest.mark.usefixtures("unwritten")
def test_captions_follow_the_data(tmp_path: Path, draw: Callable[[Study, Path], Any]) -> None:
    (tmp_path / "f").mkdir()
    before = draw(whole(tmp_path / "a"), tmp_path / "f").caption

    def edit(record: dict[str, Any]) -> None:
        record["perplexity"]["non-overlapping"] = [100.0, 180.0, 300.0, 700.0]
        for one, top in zip(record["extrapolation"]["lengths"], (0.0, 0.8, 2.0, 6.0), strict=True):
            one.update(change=top, rise=top, answer="rose")
        for one in record["interventions"]:
            one.update(leak=1 - one["leak"])
        record["receptive"]["mass"] = [0.05, 0.05, 0.1, 0.8]
        record["truncation"]["delta"] = [1.0, 0.9, 0.8]
        record["training"] = [{"step": 1, "loss": 9.0}, {"step": 2, "loss": 8.0}]
        for head in record["heads"]:
            head.update(parameters={"k": 0.01}, leak=0.9, erf={"0.1": 50, "0.01": 60})

    study = replace(whole(tmp_path / "b"), speed=timings(sliding=60.0))
    for encoding in ("type1", "inverse"):
        change(study, encoding, edit)
    if draw is figures_theory.reweighting:  # it follows the number of heads
        for record in study.records:
            record["heads"] = record["heads"][:1]
    assert draw(study, tmp_path / "f").caption != before


@pytest.mark.usefixtures("unwritten")
def test_what_captions_say(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    said = {figure.name: figure.caption for figure in draw_all(study, tmp_path / "f")}
    assert "20 % below the 100" in said["inference"]
    assert "4 times as long" in said["inference"]
    assert "sinusoidal ends at 4 times its value at 1x, published 62.5" in said["perplexity"]
    assert "inverse ends at 1.2 times its value at 1x, published 33.7" in said["perplexity"]
    assert "alibi and type1 stay level" in said["perplexity"]
    assert "9 interventions" in said["dose-response"]
    assert "falls to 0.965 of its value at 1x" in said["level"]
    assert "beyond 14 tokens for alibi" in said["receptive-fields"]  # the smallest j with exp(-j/2) < 0.001
    assert "inverse has no receptive field" in said["receptive-fields"]
    assert "rank correlation of 0.50" in said["prediction"]  # rises 0, 0.1 %, 21 % of leaks 5 %, 1 %, 40 %
    assert "sinusoidal, without a formula, is left out" in said["prediction"]
    assert "which diverges, by" in said["partial-sums"]
    assert said["hypothesis"] == "Keeping only the last 4 tokens changes an attention output by 0.1 for sinusoidal."


@pytest.mark.usefixtures("unwritten")
def test_nothing_is_drawn_from_nothing(tmp_path: Path) -> None:
    bare = whole(tmp_path / "bare")
    only = replace(bare, encodings=["sinusoidal"], speed=None)
    only = replace(only, entries={key: entry for key, entry in bare.entries.items() if key[1] == "sinusoidal"})
    for record in only.records:
        record.update(training=[], receptive={}, truncation={"windows": "no"})
    assert [figure.name for figure in draw_all(only, tmp_path)] == ["perplexity"]
    assert (
        figures_inference.ways_of_inference(replace(bare, speed={"timings": [{"window": "x"}, 3, None]}), tmp_path)
        is None
    )
    assert figures_doses.dose_response(only, tmp_path) is None


def test_ours_and_the_published_curves_have_one_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def look_at(figure: Any, *more: Any) -> None:
        limits.extend(axes.get_ylim() for axes in figure.axes)

    monkeypatch.setattr(figures_curves, "written", look_at)
    figures_curves.perplexity_curves(whole(tmp_path / "a"), tmp_path)
    assert len(limits) == 2
    assert limits[0] == limits[1]
    assert limits[0][1] > 62.5  # the paper's sinusoidal on github is in it
    limits.clear()
    figures_curves.perplexity_curves(whole(tmp_path / "b", corpora=("letters",)), tmp_path)
    assert len(limits) == 1  # nothing is published for it


def test_how_windows_read_is_drawn(tmp_path: Path) -> None:
    figures_inference.ways_of_inference(whole(tmp_path / "s"), tmp_path)
    assert {"sliding window", "non-overlapping windows", "scored", "read again", "not seen"} <= set(
        words(tmp_path / "inference.svg")
    )


def test_every_model_has_a_line_of_doses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []

    def look_at(figure: Any, *more: Any) -> None:
        lines.extend(line.get_xydata() for line in figure.axes[0].lines if len(line.get_xdata()) > 2)

    monkeypatch.setattr(figures_doses, "written", look_at)
    figures_doses.dose_response(whole(tmp_path / "s", seeds=2), tmp_path)
    assert len(lines) == 3 * 2  # encodings with a formula, seeds
    for points in lines:
        assert (points[1:, 0] >= points[:-1, 0]).all()  # by leak
        assert points[0, 0] == 0  # the cut


@pytest.mark.usefixtures("unwritten")
def test_numbers_that_are_missing_leave_gaps(tmp_path: Path) -> None:
    def edit(record: dict[str, Any]) -> None:
        record["perplexity"]["non-overlapping"][-1] = None
        record["truncation"]["delta"] = [1.0, None, 0.0]

    study = change(whole(tmp_path / "study"), "inverse", edit)
    assert [figure.name for figure in draw_all(study, tmp_path)] == NAMES


def test_heads_with_other_parameters_than_the_formula_are_left_out(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    assert len(figures_theory.heads_of(study, "alibi")) == 2
    change(study, "alibi", lambda record: record["heads"][0].update(parameters={"q": 1.0}))
    change(study, "type1", lambda record: record["heads"][0].update(parameters={"k": "no number"}))
    assert len(figures_theory.heads_of(study, "alibi")) == 1
    assert len(figures_theory.heads_of(study, "type1")) == 1


def test_weights_and_sums_are_those_of_the_formula(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    _, alibi = figures_theory.heads_of(study, "alibi")[0]
    assert figures_theory.weights(alibi, 3).tolist() == pytest.approx([1, 0.60653066, 0.36787944])
    assert figures_theory._mean_sums([alibi])[-1] == pytest.approx(1 / (1 - 0.60653066))
    assert figures_theory._trf_curve([alibi])[:3] == [(0.5, 2.0), (0.2, 4.0), (0.1, 5.0)]
    assert figures_theory._trf_curve([figures_theory.heads_of(study, "inverse")[0][1]]) == []


def test_texts_beside_points_do_not_overlap() -> None:
    import numpy as np
    from matplotlib.text import Text

    points = [(0.5 + 0.002 * i, 0.5 + 0.001 * (i % 3), f"encoding {i}") for i in range(8)]
    with style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(5, 4))
        axes.set(xlim=(0, 1), ylim=(0, 1))
        write_beside(axes, points, np.array([p[:2] for p in points]))
        notes = [child for child in axes.texts if child.get_text()]
        renderer = figure.canvas.get_renderer()
        boxes = [Text.get_window_extent(note, renderer) for note in notes]
        pyplot.close(figure)
    assert sorted(note.get_text() for note in notes) == [text for *_, text in points]
    assert not [(i, j) for i, a in enumerate(boxes) for j, b in enumerate(boxes) if i < j and a.overlaps(b)]
