"""Every number in the errata is computed: by the blocks of the page, which test_docs runs, or here."""

import json
import math
import re
from pathlib import Path

import pytest

import farfield as ff

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
TABLES = json.loads((ROOT / "tests" / "oracles" / "paper_tables.json").read_text(encoding="utf-8"))
ENTRIES = {e.split(" ", 1)[0]: e for e in re.split(r"(?m)^##+ ", PAGE)[1:]}
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?")
NAMES = {"103", "8", "10", "29"}  # WikiText-103; 8 heads; 7*10**29 is computed below


def deviation(ppl):
    return max(abs(p - ppl[0]) / ppl[0] for p in ppl)


def rise(ppl):
    return max(p / min(ppl[: i + 1]) - 1 for i, p in enumerate(ppl))


def column(corpus, name):
    return next(TABLES[group][corpus][name] for group in ("sufficiency", "necessity") if name in TABLES[group][corpus])


def best_at(ppl):
    return TABLES["lengths"][ppl.index(min(ppl))]


def computed_elsewhere():
    """What the prose says beside its blocks, computed: entry -> texts of the numbers."""
    sandwich, inverse_log = column("wikitext-103", "sandwich"), column("wikitext-103", "1/(n ln n)")
    kerple, type1 = column("wikibook", "kerple-log"), column("wikibook", "type1")
    rises = ["alibi", "type2", "type1", "sandwich", "1/(n ln n)", "1/n"]
    crossings = [f"{x:.3f}" for _, low, high in ff.compare("type1-paper", "type2-paper").intervals for x in (low, high)]
    edges = [str(TABLES["lengths"][0]), str(TABLES["lengths"][-1])]
    return {
        "E1": ["20000", "200"],  # the ranges of the code end there
        "E2": [f"{2 * math.log(10_000) / 128:.4f}", "64", "128", "10000"],
        "E3": [str(best_at(sandwich)), f"{(sandwich[-1] / min(sandwich) - 1) * 100:.1f}", *edges],
        "E9": [f"{math.exp(-(math.log(2) ** 2)):.3f}", *crossings, "0.24"],
        "E12": [*edges, "11", f"{deviation(inverse_log[:-1]) * 100:.1f}"],
        "E13": [f"{min(inverse_log)}", str(best_at(inverse_log)), str(min(best_at(kerple), best_at(type1)))],
        "E24": ["256", *edges],
        "What": [f"{rise(column('wikitext-103', name)) * 100:.{n}f}" for name in rises for n in (0, 1)]
        + ["1.01", *edges],
    }


@pytest.mark.parametrize("name", ENTRIES)
def test_every_number_of_an_entry_is_computed(name):
    entry = ENTRIES[name]
    blocks = "\n".join(re.findall(r"(?s)```.*?```", entry))
    prose = re.sub(r"\bE\d+\b", "", re.sub(r"(?s)```.*?```", "", entry).split("\n", 1)[-1])
    known = {n.replace("_", "") for n in NUMBER.findall(blocks)} | set(computed_elsewhere().get(name, ()))
    missing = {n for n in NUMBER.findall(prose) if len(n) > 1} - known - NAMES
    assert not missing, f"{name}: not computed anywhere: {sorted(missing)}"


def test_the_two_columns_of_e12_are_the_extremes_of_the_paper():
    """A threshold of 11 % separates the groups over the whole range, and none does up to 8192 tokens."""
    groups = {
        group: {(c, n): ppl for c, rows in TABLES[group].items() for n, ppl in rows.items() if n != "sinusoidal"}
        for group in ("sufficiency", "necessity")
    }
    most = max(groups["sufficiency"], key=lambda k: deviation(groups["sufficiency"][k]))
    least = min(groups["necessity"], key=lambda k: deviation(groups["necessity"][k]))
    assert (most, least) == (("github", "sandwich"), ("wikitext-103", "1/(n ln n)"))
    high, low = groups["sufficiency"][most], groups["necessity"][least]
    assert deviation(high) < 0.11 < deviation(low)
    assert deviation(high[:-1]) > deviation(low[:-1])
    assert str(high) in PAGE
    assert str(low) in PAGE


def test_half_of_a_slow_kerple_lies_very_far_out():
    assert 7e29 < ff.trf("-1.01*log(t+1)", "0.5") < 8e29


def test_the_last_bucket_of_t5_begins_at_113():
    from farfield.zoo import T5_BUCKET

    bucket = ff.parse(T5_BUCKET)
    assert [bucket.float(t) for t in (0, 15, 16, 112, 113, 128, 10_000)] == [0, 15, 16, 30, 31, 31, 31]
