"""Series in disguise whose verdict is known by construction: none is judged wrong, few are left undecided.

300 of them here; 3,000 and 100,000 with -m long.
"""

import disguised
import pytest

from farfield import check

BATCH = 100


def judged(seeds):
    """(those that are judged wrong, those that are undecided) of these seeds."""
    wrong, undecided = [], []
    for seed in seeds:
        series = disguised.series(seed)
        said = check(series.text, start=series.start).verdict
        if said != series.verdict:
            (undecided if said == "undecided" else wrong).append((seed, series.text, said))
    return wrong, undecided


def assert_never_wrong(batch, first=0):
    """No wrong verdict in a batch, and less than 5 % undecided."""
    wrong, undecided = judged(range(first + batch * BATCH, first + (batch + 1) * BATCH))
    assert wrong == []
    assert len(undecided) < BATCH / 20, undecided


@pytest.mark.parametrize("batch", range(3))
def test_a_disguised_series_is_never_judged_wrong(batch):
    assert_never_wrong(batch)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(3, 30))
def test_three_thousand_disguised_series_are_never_judged_wrong(batch):
    assert_never_wrong(batch)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(1000))
def test_a_hundred_thousand_disguised_series_are_never_judged_wrong(batch):
    assert_never_wrong(batch, first=10**6)
