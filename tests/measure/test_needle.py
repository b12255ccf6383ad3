"""The needle: texts are what they say, readers of known ability are told apart, a trained model finds it, a cut one
loses it, a random one says nothing."""

import itertools
import json
import math

import numpy as np
import pytest
import torch

import farfield
from farfield.measure.models import Model
from farfield.measure.needle import KEYS, VALUES, Needle, NeedleCell, needle, texts, trained_for_it
from farfield.measure.statistics import share_interval

WORDS = KEYS + VALUES + 1


@pytest.fixture(scope="module")
def trained():
    return {encoding: trained_for_it(encoding, length=32) for encoding in ("alibi", "none")}


@pytest.fixture(scope="module")
def finder(trained):
    return trained["alibi"]


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "length"), [(1, 12), (3, 12), (9, 12), (7, 20), (41, 43), (5, 21), (1, 8)])
@pytest.mark.parametrize("words", [WORDS, 500])
def test_the_wanted_pair_stands_once_at_its_distance(distance, length, words):
    ids, answers, choices = texts(np.random.default_rng(0), words, 20, distance, length)
    assert ids.shape == (20, length)
    for row, answer, values in zip(ids.tolist(), answers.tolist(), choices.tolist(), strict=True):
        key = row[-1]
        assert row[length - 1 - distance] == answer
        assert row[length - 2 - distance] == key
        assert row.count(key) == 2
        assert answer in values
        assert 0 < min(row) <= max(row) < words
        pairs = {}
        first = (length - 2 - distance) % 2
        for at in range(first, length - 1, 2):  # every key always has the same value
            assert pairs.setdefault(row[at], row[at + 1]) == row[at + 1]
        others = [value for other, value in pairs.items() if other != key]
        assert len(set(others)) == len(others)  # no value tells which key it belongs to


@pytest.mark.parametrize("length", [8, 13, 32, 67, 132])
def test_counting_the_values_finds_no_more_than_the_chance(length):
    """All values stand equally often, so whoever answers the most frequent one, or the rarest, knows nothing."""
    pairs, trials = (length - 1) // 2, 4000
    ids, answers, choices = texts(np.random.default_rng(1), WORDS, trials, 2 * (pairs // 2) + 1, length)
    counts = (ids[:, :-1, None] == choices[:, None]).sum(1)  # (trials, values)
    assert int((counts.max(1).values - counts.min(1).values).max()) <= 1
    chance = math.ceil(pairs / VALUES) / pairs
    for guess in (counts.argmax(1), counts.argmin(1)):
        share = float((choices.gather(1, guess[:, None])[:, 0] == answers).double().mean())
        assert share < chance + 4 * (chance / trials) ** 0.5
    assert len(set(ids[:, -1].tolist())) == KEYS  # and no key is wanted more often than the others
    assert len(set(answers.tolist())) == VALUES


# --- readers whose ability is known -----------------------------------------------------------------------------------


def looked_up(row, reach):
    """The value of the last key, if its pair stands within so many tokens; else the first of all values."""
    near = row[max(0, len(row) - 1 - reach) : -1]
    return near[near.index(row[-1]) + 1] if row[-1] in near[:-1] else KEYS + 1


def most_frequent(row):
    return max(range(KEYS + 1, WORDS), key=row.count)


def first_value(row):
    return row[(len(row) - 1) % 2 + 1]


RULES = {
    "looks up": lambda row: looked_up(row, 10**6),
    "looks up within 20": lambda row: looked_up(row, 20),
    "counts": most_frequent,
    "takes the first": first_value,
    "looks up in short texts": lambda row: looked_up(row, 10**6) if len(row) <= 32 else most_frequent(row),
}


class Reader(Model):
    """Answers by a rule."""

    def states(self, ids, window=None):
        answers = torch.tensor([RULES[self.name](row) for row in ids.tolist()])
        return torch.nn.functional.one_hot(answers, self.words).float()[:, None]

    def logits(self, states):
        return states


def asked(finder, rule, **options):
    return needle(Reader(finder.network, rule, 32, 0, 0, WORDS, 1, 1), **options)


@pytest.mark.parametrize("seed", range(5))
def test_the_grid_tells_readers_apart(finder, seed):
    results = {rule: asked(finder, rule, seed=seed) for rule in RULES}
    cells = {rule: {(c.length, c.distance): c for c in result.cells} for rule, result in results.items()}
    everything = cells["looks up"]
    assert {length for length, _ in everything} == {32, 64, 128}
    assert {t for length, t in everything if length == 32} == {5, 9, 17, 29}
    assert {t for length, t in everything if length == 128} == {5, 9, 17, 29, 33, 61, 65, 125}

    assert {length: cell.chance for (length, _), cell in everything.items()} == {32: 4 / 15, 64: 8 / 31, 128: 16 / 63}
    assert all(cell.right == cell.trials and cell.finds for cell in everything.values())
    assert results["looks up"].farthest == 125
    assert results["looks up"].apart is None
    assert {t for (_, t), cell in cells["looks up within 20"].items() if cell.finds} == {5, 9, 17}
    assert results["looks up within 20"].farthest == 17
    assert results["looks up within 20"].apart is None  # the distance decides, and nothing else
    assert not any(cell.finds for cell in cells["counts"].values())
    assert not results["counts"].able
    assert "cannot do the task" in results["counts"].sentence

    first = results["takes the first"]  # what a needle at the start of every text would call perfect
    assert {(c.length, c.distance) for c in first.cells if c.finds} == {(32, 29), (64, 61), (128, 125)}
    assert {c.depth for c in first.cells if c.finds} == {0.0}
    assert not first.able
    most, least = first.apart
    assert (most.depth, most.share, most.distance) == (0.0, 1.0, least.distance)
    assert least.length > most.length
    assert f"Not the distance alone: {most.distance} tokens back it finds 100 (94 to 100) %" in first.sentence

    short = results["looks up in short texts"]  # the length decides
    assert short.able
    assert short.farthest is None
    assert "finds the value at no distance in texts of every length up to 128 tokens" in short.sentence
    assert {cell.finds for cell in short.cells if cell.length > 32} == {False}
    assert short.apart[0].length == 32


@pytest.mark.parametrize("trials", [1, 8, 64])
def test_the_interval_covers_the_true_share_in_95_of_100_samples(trials):
    for share in np.linspace(0.01, 0.99, 99):
        covered = 0.0
        for right in range(trials + 1):
            low, high = share_interval(right, trials)
            if low <= share <= high:
                covered += math.comb(trials, right) * share**right * (1 - share) ** (trials - right)
        assert covered >= 0.95
    assert share_interval(trials, trials) == (pytest.approx(0.025 ** (1 / trials)), 1.0)
    assert share_interval(0, trials) == (0.0, pytest.approx(1 - 0.025 ** (1 / trials)))


# --- models -----------------------------------------------------------------------------------------------------------


def test_a_model_that_was_trained_for_it_finds_it(finder):
    result = needle(finder, trials=32)
    assert result.able
    assert result.verdict == "converges"
    assert result.trf == 1179  # of the slope 1/256 at 0.01
    assert "which was not tried" in result.sentence
    heads = farfield.find("alibi").heads(4)
    for length, distance in ((32, 9), (128, 33)):
        cell = next(c for c in result.cells if (c.length, c.distance) == (length, distance))
        wanted = np.mean([float(farfield.leak("alibi", distance, length, parameters=row)) for row in heads])
        assert cell.leak == pytest.approx(wanted)


def test_a_model_without_positions_finds_the_first_pair_and_no_other(trained):
    """At 61 tokens it finds nearly all in texts of 64, where that is the first pair, and chance in texts of 128."""
    result = needle(trained["none"], trials=64)
    cells = {(c.length, c.distance): c for c in result.cells}
    assert not result.able
    assert result.apart is not None
    assert cells[64, 61].share > 0.8
    assert cells[128, 61].interval[0] < cells[128, 61].chance < cells[128, 61].interval[1]
    assert not any(cell.finds for cell in result.cells if cell.depth)


def test_what_is_cut_off_gets_lost(finder):
    """With every head cut at 4 tokens, two layers reach 7: what stands farther back cannot be known."""
    result = needle(finder, trials=64, distances=[15, 21], lengths=[32], window=4)
    assert all(cell.interval[0] <= cell.chance for cell in result.cells)
    assert result.window == 7  # two layers of 4 tokens
    assert "was not asked for a value within the 7 tokens" in result.sentence


def test_a_model_that_cannot_do_it_says_nothing(finder):
    random = trained_for_it("alibi", length=24, steps=1)
    result = needle(random, trials=32, distances=[1, 11])
    assert not result.able
    assert "says nothing" in result.sentence
    json.dumps(result.json())


def made(right, field, training_length=16):
    """Cells of 64 trials in one text, found as often as given at 1, 9, 33 and 65 tokens."""
    cells = [
        NeedleCell(16 if t < 16 else 80, t, 0.5, n, 64, 0.25, None)
        for t, n in zip((1, 9, 33, 65), right, strict=True)
    ]  # fmt: skip
    return Needle("m", "e", training_length, tuple(cells), field, None, 0.1, "converges")


def test_the_sentence_follows_the_numbers():
    assert "it gets lost" in made((64, 64, 60, 16), 40).sentence
    assert "found all the same" in made((64, 64, 60, 60), 40).sentence
    for near in (38, 42):  # of 64; the border is at 40
        assert "whether it gets lost cannot be told" in made((64, 64, 60, near), 40).sentence
    assert "cuts nothing off" in made((64, 64, 60, 60), None).sentence
    assert made((64, 64, 60, 16), 40).farthest == 33
    assert made((64, 64, 42, 64), 40).farthest == 9  # what cannot be told is not found
    assert not made((64, 32, 60, 16), 40).able


@pytest.mark.parametrize(
    "wrong",
    [{"distances": [2]}, {"distances": [-1]}, {"trials": 0}, {"lengths": [4]}, {"distances": [201]}, {"distances": []}],
)
def test_mistakes_end_in_one_sentence(finder, wrong):
    with pytest.raises(ValueError, match=r".") as caught:
        needle(finder, **wrong)
    assert "\n" not in str(caught.value)


def test_the_command(capsys, tmp_path):
    from farfield.cli import main

    drawn = ("--figure", str(tmp_path / "needle.png"))
    options = ["needle", "--train", "none", "--steps", "2", "--length", "8", "--distances", "1,3", "--lengths", "2x"]
    with pytest.raises(SystemExit) as end:
        main([*options, "--json", *drawn])
    assert end.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / "needle.png").stat().st_size > 5000
    cells = [(cell["length"], cell["distance"]) for cell in told[0]["cells"]]
    assert cells == list(itertools.product((8, 16), (1, 3)))
    with pytest.raises(SystemExit):
        main(options)
    table = capsys.readouterr().out
    assert "in 8 (1x)" in table
    share, (low, high) = told[0]["cells"][0]["accuracy"], told[0]["cells"][0]["interval"]
    assert f"{100 * share:.0f} ({100 * low:.0f} to {100 * high:.0f})" in table
    assert "by chance" in table
    with pytest.raises(SystemExit) as end:
        main(["needle"])
    assert end.value.code == 2
    assert "Which model?" in capsys.readouterr().err
