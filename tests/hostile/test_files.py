"""Every file that comes in goes through one door: what is no file, too large, too deep or no JSON is one sentence."""

import json
import os
import random

import pytest

from farfield.reading import UnreadableError, parse_json, read_bytes, read_json

pytestmark = pytest.mark.hostile("files at the one door")
BROKEN = [
    b"", b"{", b"[]", b"1", b"null",
    b'"x"', b"{'a': 1}", b'{"a": 1} trailing', b"\xff\xfe{}", b'{"a": 1e400}', b'{"a": -1e999}',
    b'{"a": ' + b"9" * 310 + b"}", b'{"a": 9223372036854775808}', b'{"a": ' + b"1" * 100_000 + b"}", b"[" * 100_000,
    b'{"a":' * 50_000, b"[" * 65 + b"]" * 65, b'{"a": "\x00"}', b"\x00" * 100,
    b'{"a": 1, "b": 2, "a": 3}', b'{"b": [{"a": 1, "a": 1}]}', b'\xef\xbb\xbf{"a": 1}',
]  # fmt: skip


@pytest.mark.parametrize("data", BROKEN, ids=range(len(BROKEN)))
def test_a_file_that_is_no_table_is_a_sentence_with_its_name(tmp_path, data):
    path = tmp_path / "given.json"
    path.write_bytes(data)
    with pytest.raises(UnreadableError, match=r"given\.json") as error:
        read_json(path)
    assert len(str(error.value)) < 200


def test_what_is_no_file_is_refused_at_once(tmp_path, attacks):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    odd = [tmp_path, tmp_path / "pipe", tmp_path / "loop", tmp_path / "none", "/dev/zero", "/dev/null", "/dev/tty0"]
    for path in odd:
        with pytest.raises(UnreadableError, match="cannot be read"):
            read_bytes(path)
    attacks(len(odd))


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnreadableError, match="longer than 1,024 bytes"):
        read_bytes(tmp_path / "large", 1024)


def test_good_json_is_read_as_it_is(tmp_path, attacks):
    rng = random.Random(5)

    def value(depth):
        kinds = [
            lambda: rng.randint(-(2**62), 2**62),
            lambda: rng.gauss(0, 1e300),
            lambda: rng.choice([None, True, ""]),
        ]
        kinds += [lambda: "".join(rng.choices('[{"\\]}é', k=rng.randint(0, 9)))]
        if depth:
            kinds += [lambda: [value(depth - 1) for _ in range(rng.randint(0, 3))]]
            kinds += [lambda: {str(i): value(depth - 1) for i in range(rng.randint(0, 3))}]
        return rng.choice(kinds)()

    for _ in range(100):
        table = {"a": value(6)}
        (tmp_path / "x").write_text(json.dumps(table))
        assert read_json(tmp_path / "x") == table
    attacks(100)


def test_the_depth_is_counted_outside_of_strings_only():
    assert parse_json(json.dumps({"a": "[" * 1000 + '\\"{'})) == {"a": "[" * 1000 + '\\"{'}
