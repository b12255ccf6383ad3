"""The figures of the study: files that any viewer reads, captions that follow the data, nothing drawn from nothing."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from records import FALLING, LEVEL, RISING, change, study_of

from farfield.measure.values import Timing
from farfield.study.entries import Study
from farfield.study.figures import FIGURES, canvas, draw_all, field_plots, inference, leak, perplexity_plot
from farfield.study.figures.canvas import label_of, look_of, write_beside
from farfield.study.record import Machine, SpeedRecord
from farfield.theory.figures import look, one_line, plain, style

SHOOTING = (100.0, 150.0, 200.0, 400.0)
NAMES = [
    "perplexity",
    "dose-response",
    "prediction",
    "inference",
    "receptive-fields",
    "hypothesis",
    "fields-compared",
    "training",
]


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are laid out but not written, where only what they say counts."""

    monkeypatch.setattr("farfield.study.figures.canvas.save", lambda figure, path: path.write_text(""))


def with_speed(study: Study, sliding: float = 80.0) -> Study:
    rows = []
    for window in (4, 8, 16):
        for way, seconds, measured in (
            ("non-overlapping", 0.1, 100.0),
            ("sliding", 0.4, sliding),
            ("windowed", 0.1, 90.0),
        ):
            rows.append(Timing(way, window, 100, seconds, measured))
    rows.append(Timing("full", None, 100, 0.1, 79.0))
    cell = {name: getattr(study.of_encoding("alibi")[0].first, name) for name in SpeedRecord.__bases__[0].model_fields}
    about = {"cell": "x", "model": "x", "length": 288, "relative": {}, "timings": rows, "machine": Machine()}
    return replace(study, speed=SpeedRecord(**cell, **about))


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

    def edit(record: dict[str, Any], _: int) -> None:
        for head in record["heads"]:
            head.update(parameters=None, trf={"0.1": None, "0.01": None}, trf_of_rows={"0.1": None, "0.01": None})

    return with_speed(change(study, edit, ["sinusoidal"]))


def words(path: Path) -> list[str]:
    """Every text of an SVG, as a viewer shows it."""
    return ["".join(element.itertext()) for element in ElementTree.parse(path).iter() if element.tag.endswith("}text")]


def test_all_figures_are_drawn_in_order_as_svg_and_if_wanted_as_pdf(tmp_path: Path) -> None:
    study = whole(tmp_path / "study", seeds=2)
    for pdf in (False, True):
        folder = tmp_path / f"figures-{pdf}"
        drawn = draw_all(study, folder, pdf=pdf)
        assert [figure.name for figure in drawn] == NAMES
        assert len(drawn) == len(FIGURES)
        kinds = (".pdf", ".svg") if pdf else (".svg",)
        assert sorted(path.name for path in folder.iterdir()) == sorted(name + kind for name in NAMES for kind in kinds)
        for figure in drawn:
            assert ElementTree.parse(folder / f"{figure.name}.svg").getroot().tag.endswith("}svg")
            if pdf:
                assert (folder / f"{figure.name}.pdf").read_bytes()[:5] == b"%PDF-"
            assert figure.title
            assert figure.caption.endswith(".")
            assert ". " not in figure.caption  # one sentence
            assert "nan" not in figure.caption.split()


def test_the_places_of_curves_are_short_and_texts_are_whole(tmp_path: Path) -> None:
    formula = "log(exp(-k*t) + 0.000001)"
    canvas.draw(perplexity_plot.perplexity_curves, study_of(tmp_path / "study", {formula: LEVEL}), tmp_path)
    assert formula in words(tmp_path / "perplexity.svg")
    drawn = (tmp_path / "perplexity.svg").read_text()
    places = re.findall(r' (?:d|x|y)="([^"]*)"', drawn)
    assert len(places) > 20
    assert not [place for place in places if re.search(r"\.\d\d\d", place)]


def test_hostile_labels_are_text_and_nothing_else(tmp_path: Path) -> None:
    corpus = "<script>alert(1)</script> & ]]> $x^$ \x1b[31m\x00 日本"
    study = whole(tmp_path / "study", corpora=(corpus, "_hidden"))
    formula = "where(t < 3, 0, -2*log(1 + t))"
    more = study_of(tmp_path / "more", {formula: LEVEL}, corpora=study.corpora)
    study = replace(study, encodings=[*study.encodings, formula], entries={**study.entries, **more.entries})
    seen: list[str] = []
    for figure in draw_all(study, tmp_path / "figures"):
        svg = tmp_path / "figures" / f"{figure.name}.svg"
        assert not [e for e in ElementTree.parse(svg).iter() if e.tag.endswith("script")]
        seen += words(svg)
    assert any("<script>" in text and "…" in text for text in seen)
    assert formula in seen
    assert any(text.strip() == "_hidden" for text in seen)
    short = study_of(tmp_path / "short", {"alibi": LEVEL}, corpora=("$a^$ & $b_$",))
    drawn = canvas.draw(perplexity_plot.perplexity_curves, short, tmp_path / "figures")
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


@pytest.mark.parametrize("make", FIGURES, ids=lambda make: make.__name__)
@pytest.mark.usefixtures("unwritten")
def test_captions_follow_the_data(tmp_path: Path, make: Callable[[Study], Any]) -> None:
    (tmp_path / "f").mkdir()
    before = canvas.draw(make, whole(tmp_path / "a"), tmp_path / "f").caption

    def edit(record: dict[str, Any], _: int) -> None:
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

    study = change(with_speed(whole(tmp_path / "b"), 60.0), edit, ["type1", "inverse"])
    assert canvas.draw(make, study, tmp_path / "f").caption != before


@pytest.mark.usefixtures("unwritten")
def test_what_captions_say(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    said = {figure.name: figure.caption for figure in draw_all(study, tmp_path / "f")}
    assert "20.0 % below the 100" in said["inference"]
    assert "4 times as long" in said["inference"]
    assert said["inference"].startswith(
        "On the first 100 test tokens, with one model (tables of perplexity: 4,000 in 40 "
    )
    assert "alibi reads 288 of them at once at 79." in said["inference"]
    assert "sinusoidal ends at 4 times its value at 1x, published 62.5" in said["perplexity"]
    assert "inverse ends at 1.2 times its value at 1x, published 33.7" in said["perplexity"]
    assert "alibi and type1 stay level" in said["perplexity"]
    assert "9 interventions" in said["dose-response"]
    assert "beyond 14 tokens for alibi" in said["receptive-fields"]  # the smallest j with exp(-j/2) < 0.001
    assert "inverse has no receptive field" in said["receptive-fields"]
    assert "rank correlation of 0.50" in said["prediction"]  # rises 0, 0.1 %, 21 % of leaks 5 %, 1 %, 40 %
    assert "sinusoidal, without a formula, is left out" in said["prediction"]
    assert said["hypothesis"] == "Keeping only the last 4 tokens changes an attention output by 0.1 for sinusoidal."


@pytest.mark.usefixtures("unwritten")
def test_nothing_is_drawn_from_nothing(tmp_path: Path) -> None:
    bare = whole(tmp_path / "bare")
    only = replace(bare, encodings=["sinusoidal"], speed=None)
    only = replace(only, entries={key: entry for key, entry in bare.entries.items() if key[1] == "sinusoidal"})

    def empty(record: dict[str, Any], _: int) -> None:
        record["training"] = []
        record["truncation"].update({name: [] for name in ("windows", "delta", "lost", "sharper", "paper")})

    only = change(only, empty)
    assert [figure.name for figure in draw_all(only, tmp_path)] == ["perplexity"]
    assert bare.speed is not None
    full = bare.speed.model_copy(update={"timings": bare.speed.timings[-1:]})
    assert inference.ways_of_inference(replace(bare, speed=full)) is None
    assert leak.dose_response(only) is None


def test_ours_and_the_published_curves_have_one_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def look_at(figure: Any, path: Path) -> None:
        path.write_text("")
        limits.extend(axes.get_ylim() for axes in figure.axes)

    monkeypatch.setattr(canvas, "save", look_at)
    canvas.draw(perplexity_plot.perplexity_curves, whole(tmp_path / "a"), tmp_path)
    assert len(limits) == 2
    assert limits[0] == limits[1]
    assert limits[0][1] > 62.5  # the paper's sinusoidal on github is in it
    limits.clear()
    canvas.draw(perplexity_plot.perplexity_curves, whole(tmp_path / "b", corpora=("letters",)), tmp_path)
    assert len(limits) == 1  # nothing is published for it


def test_every_model_has_a_line_of_doses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = []

    def look_at(figure: Any, path: Path) -> None:
        path.write_text("")
        lines.extend(line.get_xydata() for line in figure.axes[0].lines if len(line.get_xdata()) > 2)

    monkeypatch.setattr(canvas, "save", look_at)
    canvas.draw(leak.dose_response, whole(tmp_path / "s", seeds=2), tmp_path)
    assert len(lines) == 3 * 2  # encodings with a formula, seeds
    for points in lines:
        assert (points[1:, 0] >= points[:-1, 0]).all()  # by leak
        assert points[0, 0] == 0  # the cut


@pytest.mark.usefixtures("unwritten")
def test_numbers_that_are_missing_leave_gaps(tmp_path: Path) -> None:
    def edit(record: dict[str, Any], _: int) -> None:
        record["perplexity"]["non-overlapping"][1] = None
        record["truncation"]["delta"] = [1.0, 0.0, 0.0]

    study = change(whole(tmp_path / "study"), edit, ["inverse"])
    assert [figure.name for figure in draw_all(study, tmp_path)] == NAMES


def test_heads_with_other_parameters_than_the_formula_are_left_out(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    assert len(field_plots.heads_of(study, "alibi")) == 2
    study = change(study, lambda record, _: record["heads"][0].update(parameters={"q": 1.0}), ["alibi"])
    assert len(field_plots.heads_of(study, "alibi")) == 1


def test_weights_and_fields_are_those_of_the_formula(tmp_path: Path) -> None:
    study = whole(tmp_path / "study")
    _, alibi = field_plots.heads_of(study, "alibi")[0]
    assert field_plots.weights(alibi, 3).tolist() == pytest.approx([1, 0.60653066, 0.36787944])
    assert field_plots._trf_curve([alibi])[:3] == [(0.5, 2.0), (0.2, 4.0), (0.1, 5.0)]
    assert field_plots._trf_curve([field_plots.heads_of(study, "inverse")[0][1]]) == []


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
