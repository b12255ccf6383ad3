"""Records and results with holes: left out with a sentence or measured anew, never a traceback, never believed."""

import copy
import json
import math
import random

import pytest
from records import FALLING, LEVEL, record, study_of

from farfield.study.entries import collect
from farfield.study.evidence import Evidence
from farfield.study.findings import findings, take_home, too_small
from farfield.study.plan import make_plan
from farfield.study.record import read_speed, record_path
from farfield.study.report import render, summary
from farfield.study.tables import all_tables

pytestmark = pytest.mark.hostile("records and results with holes")
VALUES = [None, "x", [], {}, -1, math.nan, 1e300, True]


def places(value, path=()):
    """Every place in a record: each field, and the first and last of a list."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list) and value:
        inner = {0: value[0], len(value) - 1: value[-1]}.items()
    for name, one in inner:
        yield from places(one, (*path, name))


def damaged(whole, path, value):
    """A copy with another value at a place; with none there where it is given no value."""
    out = copy.deepcopy(whole)
    place = out
    for name in path[:-1]:
        place = place[name]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return out


def cases(whole):
    """A place removed, or another value there: some of all that there are."""
    draw = random.Random(7)
    read = [
        path for path in places(whole) if path[0] not in ("settings", "measurement")
    ]  # these are compared as a whole
    every = [(path, value) for path in read for value in (KeyError, *VALUES)]
    yield from draw.sample(every, 320)


def reported(study):
    """Everything that is said of a study, but for the pictures."""
    made = all_tables(study)
    evidence = Evidence(study)
    said = [take_home(study, evidence), *too_small(study), *(finding.text for finding in findings(study, evidence))]
    return render(study, made, [], "farfield study") + "".join(said) + str(summary(study))


PLAN = make_plan("small", ["python"], ["alibi", "inverse"], 1)
WHOLE = json.loads(record(PLAN.cells[0], LEVEL).model_dump_json())
CASES = list(cases(WHOLE))


@pytest.mark.parametrize("part", range(8))
def test_a_record_with_a_hole_is_left_out_or_harmless(tmp_path, attacks, part):
    out = tmp_path / "study"
    study_of(out, {"alibi": LEVEL, "inverse": FALLING})
    mine = CASES[part::8]
    for path, value in mine:
        record_path(out, PLAN.cells[0].key).write_text(json.dumps(damaged(WHOLE, path, value)))
        study = collect(PLAN, out)
        assert ("python", "inverse") in study.entries
        if study.missing:  # it was left out, and is named
            assert study.missing == ["python, alibi, seed 0"]
            continue
        try:
            reported(study)
        except Exception as error:
            raise AssertionError((path, value)) from error
    attacks(len(mine))


@pytest.mark.hostile("records and results with holes", 0)
def test_a_whole_record_is_not_left_out(tmp_path):
    study = study_of(tmp_path, {"alibi": LEVEL, "inverse": FALLING})
    assert not study.missing
    assert reported(study)
    assert len(CASES) > 275


BYTES = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"version": 1' + b"0" * 400 + b"}",
    b"{}",
    b" " * 1000,
]


@pytest.mark.parametrize("data", BYTES, ids=range(len(BYTES)))
def test_a_record_that_is_none_is_left_out(tmp_path, data):
    study_of(tmp_path, {"alibi": LEVEL, "inverse": FALLING})
    record_path(tmp_path, PLAN.cells[0].key).write_bytes(data)
    (tmp_path / "records" / "speed.json").write_bytes(data)
    study = collect(PLAN, tmp_path)
    assert study.missing == ["python, alibi, seed 0"]
    assert read_speed(tmp_path) is None
