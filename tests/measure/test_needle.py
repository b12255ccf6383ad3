"""The needle: texts are what they say, a trained model finds it, a cut one loses it, a random one says nothing."""

import json

import numpy as np
import pytest
import torch

import farfield
from farfield.measure.needle import KEYS, VALUES, Needle, needle, texts, trained_for_it


@pytest.fixture(scope="module")
def finder():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield trained_for_it("alibi", length=32, steps=300)
    torch.set_num_threads(before)


@pytest.mark.parametrize(("distance", "length"), [(1, 12), (3, 12), (9, 12), (7, 20), (41, 43), (5, 21)])
@pytest.mark.parametrize("words", [KEYS + VALUES + 1, 500])
def test_the_wanted_pair_stands_once_at_its_distance(distance, length, words):
    ids, answers, choices = texts(np.random.default_rng(0), words, 20, distance, length)
    assert ids.shape == (20, length)
    for row, answer, values in zip(ids.tolist(), answers.tolist(), choices.tolist(), strict=True):
        key = row[-1]
        assert row[length - 1 - distance] == answer
        assert row[length - 2 - distance] == key
        assert row.count(key) == 2
        assert answer in values
        assert max(row) < words
        pairs = {}
        first = (length - 2 - distance) % 2
        for at in range(first, length - 1, 2):  # every key always has the same value
            assert pairs.setdefault(row[at], row[at + 1]) == row[at + 1]


def test_a_model_that_was_trained_for_it_finds_it(finder):
    result = needle(finder, trials=32, distances=[1, 5, 11, 21])
    assert result.able
    assert result.verdict == "converges"
    assert result.field == 1179  # of the slope 1/256 at 0.01
    assert result.leak is not None
    assert list(result.leaks) == sorted(result.leaks, reverse=True)
    heads = farfield.find("alibi").heads(4)
    wanted = np.mean([float(farfield.leak("alibi", 11, 32, parameters=row)) for row in heads])
    assert result.leaks[2] == pytest.approx(wanted)
    assert "which was not tried" in result.sentence


def test_what_is_cut_off_gets_lost(finder):
    """With every head cut at 4 tokens, two layers reach 7: what stands farther back cannot be known."""
    result = needle(finder, trials=64, distances=[15, 21], window=4)
    assert max(result.accuracy) < 0.6
    assert result.window == 7  # two layers of 4 tokens
    assert "its windows cut off everything from 7 tokens on" in result.sentence or not result.able


def test_a_model_that_cannot_do_it_says_nothing(finder):
    random = trained_for_it("alibi", length=24, steps=1)
    result = needle(random, trials=32, distances=[1, 11])
    assert not result.able
    assert "says nothing" in result.sentence
    json.dumps(result.json())


def made(accuracy, field, training_length=16):
    distances = (1, 9, 33, 65)
    return Needle("m", "e", training_length, 9, distances, accuracy, 0.25, field, None, 0.1, "converges")


def test_the_sentence_follows_the_numbers():
    assert "it gets lost" in made((1.0, 1.0, 0.9, 0.3), 40).sentence
    assert "found all the same" in made((1.0, 1.0, 0.9, 0.9), 40).sentence
    assert "cuts nothing off" in made((1.0, 1.0, 0.9, 0.9), None).sentence
    assert made((1.0, 1.0, 0.9, 0.3), 40).farthest == 33
    assert not made((1.0, 0.5, 0.9, 0.3), 40).able


@pytest.mark.parametrize("wrong", [{"distances": [2]}, {"distances": [-1]}, {"trials": 0}])
def test_mistakes_end_in_one_sentence(finder, wrong):
    with pytest.raises(ValueError, match=r".") as caught:
        needle(finder, **wrong)
    assert "\n" not in str(caught.value)


def test_the_command(capsys, tmp_path):
    from farfield.cli import main

    drawn = ("--figure", str(tmp_path / "needle.png"))
    with pytest.raises(SystemExit) as end:
        main(["needle", "--train", "none", "--steps", "2", "--length", "8", "--distances", "1,3", "--json", *drawn])
    assert end.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / "needle.png").stat().st_size > 5000
    assert [row["distance"] for row in told[0]["rows"]] == [1, 3]
    with pytest.raises(SystemExit) as end:
        main(["needle"])
    assert end.value.code == 2
    assert "Which model?" in capsys.readouterr().err
