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
from farfield.study.figures import heads as figures_heads
from farfield.study.figures import lengths as figures_lengths
from farfield.study.figures import theory as figures_theory
from farfield.study.figures.canvas import label_of, look_of, named, number, percent, write_beside
from farfield.theory.figures import look, one_line, plain, style

SHOOTING = (100.0, 150.0, 200.0, 400.0)
NAMES = [
    "inference",
    "reweighting",
    "perplexity-sufficiency",
    "perplexity-necessity",
    "receptive-fields",
    "attention-by-distance",
    "heat-maps",
    "hypothesis",
    "partial-sums",
    "prediction",
    "fields-compared",
    "training",
]


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are laid out but not written, where only what they say counts."""
    monkeypatch.setattr(canvas, "save", lambda figure, path: [path])


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


def test_all_figures_are_drawn_in_order_as_png_and_svg(tmp_path: Path) -> None:
    said: list[str] = []
    drawn = draw_all(whole(tmp_path / "study", seeds=2), tmp_path / "new" / "figures", said.append)
    assert [figure.name for figure in drawn] == NAMES
    assert len(said) == len(FIGURES)
    for figure in drawn:
        png, svg = sorted(figure.paths)
        assert (png.name, svg.name) == (f"{figure.name}.png", f"{figure.name}.svg")
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert ElementTree.parse(svg).getroot().tag.endswith("}svg")
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
    drawn = figures_lengths.sufficiency(short, tmp_path / "figures")
    assert drawn is not None
    assert "$a^$ & $b_$" in words(tmp_path / "figures" / "perplexity-sufficiency.svg")


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
        record["extrapolation"]["answer"] = "rose"
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
    assert "sinusoidal does not stay low and ends at 4 times" in said["perplexity-sufficiency"]
    assert "(published: 62.5)" in said["perplexity-sufficiency"]
    assert "inverse does not stay low and ends at 1.2 times" in said["perplexity-necessity"]
    assert "type1 stays within 2 %" in said["perplexity-necessity"]
    assert "beyond 14 tokens for alibi" in said["receptive-fields"]  # the smallest j with exp(-j/2) < 0.001
    assert "inverse has no receptive field" in said["receptive-fields"]
    assert "rank correlation of 0.50" in said["prediction"]  # rises 0, 0.1 %, 24 % of leaks 5 %, 1 %, 40 %
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
    assert [figure.name for figure in draw_all(only, tmp_path)] == ["perplexity-sufficiency"]
    assert figures_lengths.inference(replace(bare, speed={"timings": [{"window": "x"}, 3, None]}), tmp_path) is None
    good = study_of(tmp_path / "good", {"alibi": LEVEL})
    assert figures_lengths.necessity(good, tmp_path) is None


def test_curves_that_shoot_up_leave_the_panel_with_a_note(tmp_path: Path) -> None:
    figures_lengths.sufficiency(whole(tmp_path / "s"), tmp_path)
    seen = words(tmp_path / "perplexity-sufficiency.svg")
    assert "sinusoidal: up to 400" in seen
    assert "sinusoidal: up to 62.5" in seen  # the paper's, on github
    figures_lengths.necessity(whole(tmp_path / "s"), tmp_path)
    assert not [text for text in words(tmp_path / "perplexity-necessity.svg") if "up to" in text]


def test_the_paper_stands_beside_what_it_has(tmp_path: Path) -> None:
    figures_lengths.sufficiency(whole(tmp_path / "a"), tmp_path)
    assert "over that at 1x, paper" in words(tmp_path / "perplexity-sufficiency.svg")
    figures_lengths.sufficiency(whole(tmp_path / "b", corpora=("letters",)), tmp_path)
    assert "over that at 1x, paper" not in words(tmp_path / "perplexity-sufficiency.svg")


def test_several_seeds_are_bands(tmp_path: Path) -> None:
    figures_lengths.sufficiency(whole(tmp_path / "one"), tmp_path)
    assert not [text for text in words(tmp_path / "perplexity-sufficiency.svg") if "seeds" in text]
    figures_lengths.sufficiency(whole(tmp_path / "three", seeds=3), tmp_path)
    assert "range of 3 seeds" in words(tmp_path / "perplexity-sufficiency.svg")


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


def test_points_of_heads_and_models(tmp_path: Path) -> None:
    study = whole(tmp_path / "study", seeds=2)
    rows = figures_heads._pairs(study, "trf_of_rows", "0.1")
    assert len(rows) == 3 * 2 * 2  # encodings with a formula, seeds, heads
    assert len(figures_heads._pairs(study, "trf", "0.1")) == 2 * 2 * 2  # and those that converge
    assert set(rows) == {(encoding, 4.0, 4.0) for encoding in ("alibi", "type1", "inverse")}


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
