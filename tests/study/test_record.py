"""A record is written and read as the same value, from a folder or from one archive, and no other is believed."""

from __future__ import annotations

import json
import zipfile

import pytest
from records import FALLING, LEVEL, RISING, record, study_of

from farfield.data import durable
from farfield.study.conduct import missing
from farfield.study.entries import collect
from farfield.study.plan import Cell, make_plan, read_plan
from farfield.study.record import ARCHIVE, Record, pack, read_record, record_path, write_record

CURVES = {"alibi": FALLING, "inverse": RISING, "type1": LEVEL}


@pytest.fixture
def out(tmp_path):
    study_of(tmp_path, CURVES, verdicts={"inverse": "diverges"}, seeds=2)
    return tmp_path


def test_a_record_is_read_as_it_was_written(tmp_path):
    cell = make_plan("tiny", encodings=["alibi"]).cells[0]
    first = record(cell, FALLING)
    write_record(tmp_path, cell.key, first)
    again = read_record(tmp_path, cell)
    assert again == first
    assert again.key == cell.key
    with pytest.raises(ValueError, match="frozen"):
        again.damage = (0.0, 0.0)


def test_numbers_that_are_none_are_not_written(tmp_path):
    """A record with an infinity would be read by nobody: it is refused where it is made."""
    cell = make_plan("tiny", encodings=["alibi"]).cells[0]
    fields = dict(record(cell, FALLING))
    for name, value in (("damage", (float("inf"), None)), ("stderr", [float("nan")] * 4), ("lengths", [3, 2, 1, 4])):
        with pytest.raises(ValueError, match=name if name != "lengths" else "do not fit together"):
            Record(**{**fields, name: value})


def test_a_key_is_that_of_the_numbers_as_they_were_typed():
    """1 and 1.0 have two texts in JSON: a cell that is read again must keep its key, or its record is lost."""
    for preset in ("small", "long", "geometry", "tiny"):
        for cell in make_plan(preset).cells:
            assert Cell.model_validate(json.loads(cell.model_dump_json())).key == cell.key


def test_an_archive_says_what_the_folder_said(out):
    plan = read_plan(out)
    before = collect(plan, out).records
    contents = {path.name: path.read_bytes() for path in (out / "records").iterdir()}
    assert pack(out) == out / ARCHIVE
    assert not (out / "records").exists()
    with zipfile.ZipFile(out / ARCHIVE) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == contents
    assert collect(plan, out).records == before
    assert missing(plan, out) == []
    first = (out / ARCHIVE).read_bytes()
    assert pack(out).read_bytes() == first  # nothing new, nothing changed


def test_a_study_goes_on_beside_its_archive(out):
    """What is measured later is in the folder, counts more than an old record of its name, and joins the archive."""
    plan = read_plan(out)
    pack(out)
    cell = plan.cells[0]
    newer = record(cell, RISING)
    write_record(out, cell.key, newer)
    more = make_plan("small", ["python"], [*CURVES, "type2"], 2)
    assert len(missing(more, out)) == 2
    assert read_record(out, cell) == newer
    pack(out)
    assert read_record(out, cell) == newer
    assert missing(plan, out) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_packing_loses_no_record(out, monkeypatch, when):
    plan = read_plan(out)
    before = collect(plan, out).records
    real = durable.replace_file

    def killed(path, data):
        if when == "after":
            real(path, data)
        raise KeyboardInterrupt

    monkeypatch.setattr(durable, "replace_file", killed)
    with pytest.raises(KeyboardInterrupt):
        pack(out)
    assert collect(plan, out).records == before
    monkeypatch.undo()
    pack(out)
    assert collect(plan, out).records == before
    assert not (out / "records").exists()


def test_a_record_that_is_left_while_packing_stays(out, monkeypatch):
    cell = read_plan(out).cells[0]
    newer, real = record(cell, RISING), durable.replace_file

    def slow(path, data):
        real(path, data)
        monkeypatch.undo()
        write_record(out, cell.key, newer)  # another process

    monkeypatch.setattr(durable, "replace_file", slow)
    pack(out)
    assert record_path(out, cell.key).exists()
    assert read_record(out, cell) == newer


@pytest.mark.hostile("records and results with holes")
def test_an_archive_that_is_none_holds_nothing(out, attacks, tmp_path):
    plan, cell = read_plan(out), read_plan(out).cells[0]
    whole = pack(out).read_bytes()
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{cell.key}.json", b" " * (65 << 20))
    locked = bytearray(whole)
    for mark in (b"PK\x01\x02", b"PK\x03\x04"):  # the bit that says: a password is needed
        place = -1
        while (place := locked.find(mark, place + 1)) >= 0:
            locked[place + (8 if mark[2] == 1 else 6)] |= 1
    cases = [b"", b"PK", whole[: len(whole) // 2], whole[100:], bytes(locked), bomb.read_bytes()]
    cases.append(whole[:60] + bytes(200) + whole[260:])
    for data in cases:
        (out / ARCHIVE).write_bytes(data)
        assert read_record(out, cell) is None
        assert cell in missing(plan, out)
    attacks(len(cases))
