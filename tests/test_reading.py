"""Numbers of JSON: what does not fit in 64 bits is read where that is meant, and refused elsewhere."""

from pathlib import Path

import pytest

from farfield.reading import UnreadableError, parse_json, read_json


def test_exact_whole_numbers_are_read_where_they_are_meant(tmp_path: Path) -> None:
    large = 10**60 + 7
    path = tmp_path / "record.json"
    path.write_text(f'{{"trf": [{large}, -{large}]}}')
    assert read_json(path, exact=True) == {"trf": [large, -large]}
    with pytest.raises(UnreadableError, match="does not fit in 64 bits"):
        read_json(path)
    with pytest.raises(ValueError, match="more than 4000 digits"):
        parse_json("1" * 100_000, exact=True)
    assert parse_json(str(2**63 - 1)) == 2**63 - 1
    for digits in (str(2**63), "9" * 100_000):
        with pytest.raises(ValueError, match="does not fit in 64 bits"):
            parse_json(digits)
