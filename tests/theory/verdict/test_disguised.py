"""Thousands of series whose verdict is known by construction, in disguise: nothing is judged wrong."""

import disguised
import pytest

from farfield import check

BATCH = 100


def answers(seeds):
    """(series, verdict) of every seed."""
    for seed in seeds:
        series = disguised.series(seed)
        yield seed, series, check(series.text, start=series.start).verdict


def wrong(seeds):
    return [(n, s.text, said) for n, s, said in answers(seeds) if said not in (s.verdict, "undecided")]


@pytest.mark.parametrize("batch", range(30))
def test_a_disguised_series_is_never_judged_wrong(batch):
    assert wrong(range(batch * BATCH, (batch + 1) * BATCH)) == []


@pytest.mark.long
@pytest.mark.parametrize("batch", range(1000))
def test_a_hundred_thousand_disguised_series_are_never_judged_wrong(batch):
    assert wrong(range(10**6 + batch * BATCH, 10**6 + (batch + 1) * BATCH)) == []
