"""The text of a measurement: spread over the whole split, nothing twice, every segment scored alike."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from farfield.measure import Text, evaluate
from farfield.measure.perplexity import context_gain
from farfield.measure.text import spread

from .conftest import WORDS, our_model


@example(3, 2, 1)  # room for two segments, but not for the token before each
@given(st.integers(2, 5000), st.integers(1, 6000), st.integers(1, 300))
def test_segments_are_spread_and_do_not_overlap(size, tokens, segment):
    ids = np.arange(size)
    rows = spread(ids, tokens, segment)
    scored = rows[:, 1:].ravel()
    assert len(set(scored.tolist())) == len(scored) <= max(tokens, 1)
    if len(rows) > 1:
        assert rows.shape[1] == segment + 1
        assert (np.diff(rows, axis=1) == 1).all()  # each is a stretch of the text
        assert rows[0, 0] == 0
        assert rows[-1, -1] == size - 1  # from the first token to the last
        gaps = np.diff(rows[:, 0])
        assert gaps.max() - gaps.min() <= 1
    else:
        assert scored.tolist() == list(range(1, min(tokens, size - 1) + 1))


def test_forty_segments_see_the_whole_split():
    rows = spread(np.arange(1_000_000), 55_296, 1152)
    assert len(rows) == 48
    assert np.ptp(rows[:, 0]) > 0.99 * (1_000_000 - 1153)


def test_segments_are_measured_as_texts_of_their_own():
    ids = np.random.default_rng(0).integers(0, WORDS, (5, 65))
    model = our_model()
    together = evaluate(model, Text(ids, {}), "1x,1.5x,4x", window=8)
    alone = [evaluate(model, Text(row, {}), "1x,1.5x,4x", window=8) for row in ids]
    for i, row in enumerate(together.rows):
        assert row.tokens == 5 * 64
        assert row.loss == pytest.approx(np.mean([one.rows[i].loss for one in alone]), abs=1e-6)


def test_chunks_are_spread_over_the_segments():
    text = Text(np.arange(60).reshape(6, 10), {})
    assert [c[0] for c in text.chunks(9, 3)] == [0, 20, 50]
    assert [c.tolist() for c in text.chunks(4, 100)][:3] == [[0, 1, 2, 3, 4], [4, 5, 6, 7, 8], [10, 11, 12, 13, 14]]
    assert text.chunks(10, 3) == []


def test_the_gain_from_context_is_the_fall_of_the_loss_of_the_same_tokens():
    """A loss that is 3 up to 8 tokens and 2 beyond gains 1 nat, however hard the text; one that stays gains none."""
    draw = np.random.default_rng(0)
    hard = draw.normal(0, 3, (50, 64))  # the difficulty of each token, which cancels
    seen = np.arange(64) % 32 + 1
    near = 3.0 + hard + draw.normal(0, 0.5, (50, 64))
    gain, error = context_gain(near, np.where(seen > 8, 2.0, 3.0) + hard, 32)
    assert gain == pytest.approx(1, abs=0.05)
    assert error == pytest.approx(0.5 / np.sqrt(50 * 2 * 8), rel=0.2)  # 8 of 32 tokens are places 5 to 8 and far
    assert context_gain(near, 3.0 + hard, 32)[0] == pytest.approx(0, abs=0.05)
    late = np.where(np.arange(64) % 8 + 1 >= 5, near, 1e9)  # what sees fewer than 5 tokens does not count
    assert context_gain(late, 3.0 + hard, 32)[0] == pytest.approx(0, abs=0.05)
