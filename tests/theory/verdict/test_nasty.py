"""Series made by hand to deceive: none is judged wrong."""

import json
from pathlib import Path

import pytest

from farfield import check
from farfield.formula import FormulaError

NASTY = json.loads((Path(__file__).parents[2] / "oracles" / "nasty.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", NASTY, ids=lambda case: f"{case['spelling']}:{case['formula']}")
def test_a_nasty_series_is_never_judged_wrong(case):
    try:
        verdict = check(case["formula"], start=case["from"], weight=case["spelling"] == "weight")
    except FormulaError:  # refused: no verdict
        return
    assert verdict.verdict in (case["verdict"], "undecided"), verdict.proof
