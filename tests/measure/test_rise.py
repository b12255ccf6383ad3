"""The rise and its error: the paper's tables, curves made by hand, and what an answer needs."""

import numpy as np
import pytest
from pydantic import TypeAdapter

from farfield.measure.rise import ROSE, STAYED, UNKNOWN, Extrapolation, answer, extrapolation, rises
from farfield.measure.statistics import blocks_of, quantiles, rank_correlation, ranks, ratio_error, relative_change

# WikiText-103 of the paper's appendix: 512 to 9216 tokens
LENGTHS = [512, 768, 1024, 1280, 1536, 1792, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216]
WIKITEXT = {
    "sandwich": "24.76 24.04 23.63 23.39 23.21 23.18 23.08 22.91 22.96 22.93 23.06 23.13 23.2 23.26",
    "alibi": "24.22 23.45 23.06 22.83 22.66 22.6 22.52 22.33 22.26 22.2 22.17 22.16 22.14 22.12",
    "type1": "24.25 23.43 23.03 22.77 22.55 22.5 22.38 22.15 22.09 21.99 21.97 21.96 21.95 21.9",
    "1/(n ln n)": "24.64 23.81 23.44 23.25 23.13 23.22 23.26 23.65 24.41 25.01 25.8 26.39 27.0 27.63",
    "1/n": "24.67 23.87 23.53 23.5 23.66 24.2 24.8 28.31 33.18 37.65 43.2 48.07 52.85 58.46",
    "sinusoidal": "24.73 41.08 62.71 83.81 102.28 121.98 138.17 194.43 259.55 289.79 337.46 376.41 406.95 423.92",
}


def of(name):
    return extrapolation(dict(zip(LENGTHS, map(float, WIKITEXT[name].split()), strict=True)), 512)


def curve(losses, blocks=40, noise=0.0, tokens=100, seed=0, context_gain=None):
    """A text of `blocks` blocks whose difficulty varies far more than a length changes it."""
    draw = np.random.default_rng(seed)
    hard = draw.normal(1.5, 0.3, blocks)
    sums = {n: tokens * (hard + loss + draw.normal(0, noise, blocks)) for n, loss in losses.items()}
    mean = {n: float(np.exp(s.sum() / (blocks * tokens))) for n, s in sums.items()}
    return extrapolation(mean, min(losses), blocks=sums, tokens=blocks * tokens, context_gain=context_gain)


def test_the_rise_separates_the_papers_groups_and_its_definition_does_not():
    rise = {name: of(name).highest.rise for name in WIKITEXT}
    assert max(rise["alibi"], rise["type1"]) < 0.008
    assert rise["sandwich"] == pytest.approx(0.0153, abs=1e-4)
    assert rise["1/(n ln n)"] == pytest.approx(0.1946, abs=1e-4)
    assert rise["1/n"] == pytest.approx(1.4877, abs=1e-4)
    # without the texts there is no error, but taken as exact the numbers have an answer
    assert {of(name).answer for name in WIKITEXT} == {UNKNOWN}
    assert [name for name in WIKITEXT if answer(rise[name], 0.0) == STAYED] == ["sandwich", "alibi", "type1"]
    # the Definition: type1, which only improves, changes by as much as 1/(n ln n) up to 8192
    assert of("type1").largest_change == pytest.approx(0.0969, abs=1e-4)
    assert not of("type1").by_definition


def test_the_rise_at_a_length_is_above_the_lowest_so_far():
    assert rises([4.0, 2.0, 3.0, 1.0, 1.5]).tolist() == [0, 0, 0.5, 0, 0.5]
    assert rises([[1.0, 2.0], [2.0, 1.0]]).tolist() == [[0, 1], [0, 0]]


def test_the_three_answers():
    assert curve({16: 0.0, 32: -0.02, 288: -0.02}).answer == STAYED
    assert curve({16: 0.0, 32: -0.02, 288: 0.2}).answer == ROSE
    assert curve({16: 0.0, 32: -0.02, 288: -0.0005}, noise=0.05).answer == UNKNOWN  # 2 % and an error of 1 %
    assert curve({16: 0.0, 288: 0.05}, blocks=1).answer == UNKNOWN
    assert extrapolation({16: 2.0}, 16).answer == UNKNOWN


def test_a_rise_in_the_middle_counts():
    """It fell back at the longest length, and did not extrapolate to those before."""
    result = curve({16: 0.0, 32: 0.3, 64: 0.3, 288: 0.0})
    assert result.answer == ROSE
    assert result.highest.length == 32


def test_the_error_of_the_rise_is_that_of_repeated_texts():
    """What the bootstrap says of one text is how much the rise varies over many."""
    many = [curve({16: 0.0, 288: 0.1}, noise=0.05, seed=seed) for seed in range(300)]
    spread = np.std([result.highest.rise for result in many])
    assert np.mean([result.highest.rise_error for result in many]) == pytest.approx(spread, rel=0.15)


def test_an_error_is_paired():
    """Both lengths find the same blocks hard: the rise is known far better than the perplexities."""
    assert curve({16: 0.0, 288: 0.1}).highest.rise_error == pytest.approx(0, abs=1e-9)


def test_the_sentence_says_both_when_they_differ():
    level = curve({16: 0.0, 32: -0.1, 288: -0.1}).sentence
    assert level.startswith("It extrapolates from 16 to 288")
    assert "Definition fails" in level
    assert "does not extrapolate" in curve({16: 0.0, 288: 0.3}).sentence
    assert "cannot be told" in of("1/n").sentence
    assert "nothing can be said" in extrapolation({512: 3.0}, 512).sentence


def test_a_perplexity_that_is_no_number_does_not_extrapolate():
    for value in (float("nan"), float("inf")):
        assert extrapolation({16: 5.0, 32: value}, 16).extrapolates is False


def test_an_answer_needs_the_training_length_and_a_level():
    with pytest.raises(ValueError, match="training length 16 was not measured"):
        extrapolation({32: 5.0}, 16)
    with pytest.raises(ValueError, match="level"):
        extrapolation({16: 5.0}, 16, level=0)
    value, stored = curve({16: 0.0, 288: 0.3}), TypeAdapter(Extrapolation)
    assert stored.validate_json(stored.dump_json(value)) == value


def test_a_model_that_does_not_use_its_context_says_nothing():
    level = {16: 0.0, 32: -0.02, 288: -0.02}
    assert curve(level, context_gain=(0.5, 0.01)).answer == STAYED
    nothing = curve(level, context_gain=(0.02, 0.001))
    assert nothing.answer == UNKNOWN
    assert "cannot lose what it does not use" in nothing.sentence
    assert curve(level, context_gain=(0.2, 0.1)).answer == UNKNOWN  # perhaps none
    assert curve({16: 0.0, 288: 0.3}, context_gain=(0.02, 0.001)).answer == ROSE  # that it rose remains true


def test_the_bootstrap_is_the_error_of_the_mean():
    """For independent tokens the standard error of the perplexity is exp(loss) * sd / sqrt(n)."""
    losses = np.random.default_rng(0).normal(3.0, 1.0, (400, 64))
    expected = np.exp(losses.mean()) * 1.0 / np.sqrt(losses.size)
    assert ratio_error(losses.sum(1), np.full(400, 64), np.exp) == pytest.approx(expected, rel=0.15)
    assert ratio_error(np.ones(1), np.ones(1), np.exp) is None


def test_blocks_are_segments_or_parts_of_them():
    assert blocks_of(np.ones((50, 7))).tolist() == [7] * 50
    assert blocks_of(np.ones((1, 100))).shape == (40,)
    assert blocks_of(np.arange(12.0).reshape(2, 6)).tolist() == list(range(12))  # no more parts than tokens


def test_a_comparison_is_paired_by_text():
    hard = np.random.default_rng(1).normal(200.0, 40.0, 64)
    change, error = relative_change(hard + 6.4, hard, 64 * 64)
    assert change == pytest.approx(np.expm1(0.1))
    assert error == pytest.approx(0, abs=1e-9)


def test_quantiles_of_counts():
    counts = np.bincount([1, 1, 2, 5, 9], minlength=11)
    assert quantiles(counts, (0.1, 0.5, 1.0)).tolist() == [1, 2, 9]


def test_rank_correlation_is_spearmans():
    spearmanr = pytest.importorskip("scipy.stats").spearmanr

    draw = np.random.default_rng(2)
    x, y = draw.integers(0, 6, 30), draw.integers(0, 6, 30)
    assert rank_correlation(x, y) == pytest.approx(spearmanr(x, y).statistic)
    assert rank_correlation([1, 2, float("inf")], [3, 4, 5]) == pytest.approx(1)
    assert rank_correlation([1, 2], [3, 4]) is None
    assert rank_correlation([1, 1, 1], [3, 4, 5]) is None
    assert ranks([3.0, 1.0, 3.0]).tolist() == [2.5, 1.0, 2.5]


@pytest.mark.parametrize("level", ["nan", "0", "-1", "inf"])
def test_a_level_that_judges_nothing_is_refused_before_a_model_is_read(level, capsys):
    from farfield.cli import main

    with pytest.raises(SystemExit):
        main(["evaluate", "no-such-run", "--level", level])
    assert "it must be a positive number, such as 0.02 for 2 %" in capsys.readouterr().err
