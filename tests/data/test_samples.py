"""Samples and micro-batches: who reads what, however many processes there are."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farfield.data.corpus import CorpusError
from farfield.data.samples import Samples, micro_batches
from farfield.data.tokens import Tokens


def fake_tokens(count: int) -> Tokens:
    return Tokens(np.arange(count, dtype=np.uint16), "", Path())


@given(st.integers(9, 400), st.integers(1, 8), st.integers(0, 2**62), st.integers(0, 10**7))
def test_a_sample_is_a_pure_function_of_seed_and_number(count: int, length: int, seed: int, number: int) -> None:
    tokens = fake_tokens(count)
    one, two = Samples(tokens, length, seed), Samples(tokens, length, seed)
    two[number + 1], two[number // 2]
    for name in ("input_ids", "shift_labels", "sample_seeds"):
        assert np.array_equal(one[number][name], two[number][name])
    sample = one[number]
    assert sample["input_ids"].shape == sample["shift_labels"].shape == (length,)
    assert np.array_equal(sample["shift_labels"], sample["input_ids"] + 1)


@given(st.integers(9, 400), st.integers(1, 8), st.integers(0, 2**62))
def test_an_epoch_shows_no_token_twice_and_nearly_all(count: int, length: int, seed: int) -> None:
    samples = Samples(fake_tokens(count), length, seed)
    seen = np.concatenate([samples[number]["input_ids"] for number in range(samples.pieces)])
    assert len(set(seen)) == len(seen)
    assert len(seen) > count - 2 * length - 1


def test_text_that_is_too_short_says_how_many_tokens_are_needed() -> None:
    with pytest.raises(CorpusError, match=r"has 16 tokens; a length of 16 needs at least 17"):
        Samples(fake_tokens(16), 16, 0)
    assert Samples(fake_tokens(17), 16, 0)[123]["input_ids"].tolist() == list(range(16))


@given(st.integers(1, 200), st.integers(1, 16), st.one_of(st.none(), st.integers(1, 40)))
def test_the_samples_of_an_update_do_not_depend_on_the_processes(batch: int, count: int, most: int | None) -> None:
    if batch < count:
        with pytest.raises(ValueError, match=f"A batch of {batch} samples cannot be shared by {count} processes"):
            micro_batches(batch, most, count, 0)
        return
    parts = [micro_batches(batch, most, count, rank) for rank in range(count)]
    assert [number for rank in parts for part in rank for number in part] == list(range(batch))
    assert len({len(rank) for rank in parts}) == 1  # they meet after each micro-batch
    assert max(len(part) for rank in parts for part in rank) <= min(most or batch, -(-batch // count))
    taken = [sum(map(len, rank)) for rank in parts]
    assert max(taken) - min(taken) <= 1


def test_one_process_reads_whole_micro_batches() -> None:
    assert micro_batches(8, 2, 1, 0) == [range(2), range(2, 4), range(4, 6), range(6, 8)]
    assert micro_batches(8, None, 1, 0) == [range(8)]
    assert micro_batches(8, 8, 2, 1) == [range(4, 8)]
    assert micro_batches(4, 1, 3, 0) == [range(0), range(1)]  # the second process has two samples
