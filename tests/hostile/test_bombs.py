"""Compressed files that expand without end are refused early, and so is whatever is no text."""

import bz2
import gzip
import lzma
import subprocess
import sys

import pytest

pytestmark = pytest.mark.hostile("compressed bombs, and corpora that are no text")


def zstd(data):
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor(level=3).compress(data)


KINDS = {"gz": gzip.compress, "xz": lambda d: lzma.compress(d, preset=0), "zst": zstd}


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """200 MB of zeros, and of short lines, in each format."""
    home = tmp_path_factory.mktemp("bombs")
    zeros, lines = bytes(200 << 20), b"x\n" * (100 << 20)
    for ending, compress in KINDS.items():
        (home / f"zeros.txt.{ending}").write_bytes(compress(zeros))
    (home / "lines.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    (home / "lines.txt.zst").write_bytes(zstd(lines))
    inner = gzip.compress(zeros, 1)
    (home / "twice.txt.gz").write_bytes(gzip.compress(inner * 20, 1))
    for ending in KINDS:  # 20 GB, of which the size of the file allows many times 64 MB
        (home / f"long.txt.{ending}").write_bytes((home / f"zeros.txt.{ending}").read_bytes() * 100)
        (home / f"many-{ending}").mkdir()
        small = KINDS[ending](bytes(16 << 20))
        for number in range(12):  # each harmless by itself
            (home / f"many-{ending}" / f"train-{number}.txt.{ending}").write_bytes(small)
    return home


NAMES = ["zeros.txt.gz", "zeros.txt.xz", "zeros.txt.zst", "lines.jsonl.gz", "lines.txt.zst", "twice.txt.gz"]
NAMES += [f"long.txt.{ending}" for ending in KINDS] + [f"many-{ending}" for ending in KINDS]


READ = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from farfield.data.corpus import CorpusError, open_corpus
read = 0
try:
    for passage in open_corpus(sys.argv[1]).passages("train"):
        read += len(passage.text)
except CorpusError as error:
    most = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(read, int(most.split()[1]) >> 10, error)
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_bomb_is_refused_early(bombs, name):
    """Before half of it is read, and in little memory."""
    done = subprocess.run([sys.executable, "-c", READ, str(bombs / name)], capture_output=True, text=True, check=True)
    read, megabytes, said = done.stdout.strip().split(" ", 2)
    assert int(read) <= 100 << 20
    assert int(megabytes) < 400
    assert name in said


def read(path):
    from farfield.data.corpus import open_corpus

    return "".join(passage.text for split in SPLITS for passage in open_corpus(str(path)).passages(split))


SPLITS = ("train", "valid", "test")
TEXTS = {  # of 3 MB: how often it is repeated decides how far it is compressed
    "one line": "the same line, again and again\n" * 100_000,
    "a log": "".join(f"{i // 40:06} all is well, and nothing was found to look at\n" for i in range(60_000)),
}  # fmt: skip


@pytest.mark.parametrize("ending", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_repetitive_text_is_read(tmp_path, text, ending):
    (tmp_path / f"text.txt.{ending}").write_bytes(KINDS[ending](TEXTS[text].encode()))
    assert len(read(tmp_path)) == len(TEXTS[text])


@pytest.mark.parametrize("ending", KINDS)
def test_beyond_the_free_part_the_ratio_and_the_disk_decide(tmp_path, monkeypatch, ending, attacks):
    """The same file is read, or refused: by what it grows to, and by the room there is."""
    from farfield.data import textfiles

    data, text = KINDS[ending](TEXTS["a log"].encode()), TEXTS["a log"]
    (tmp_path / f"text.txt.{ending}").write_bytes(data)
    ratio = len(text) / len(data)
    monkeypatch.setattr(textfiles, "FREE_EXPANSION", 1 << 20)
    monkeypatch.setattr(textfiles, "USUAL_EXPANSION", ratio / 4)
    monkeypatch.setattr(textfiles, "MOST_EXPANSION", ratio * 4)
    assert len(read(tmp_path)) == len(text)
    monkeypatch.setattr(textfiles, "_room", lambda: 1 << 20)
    with pytest.raises(textfiles.CorpusError, match="more than there is room on the disk"):
        read(tmp_path)
    monkeypatch.setattr(textfiles, "MOST_EXPANSION", ratio / 4)
    with pytest.raises(textfiles.CorpusError, match=r"times what was read of it .* decompress it first"):
        read(tmp_path)
    attacks(2)


@pytest.mark.parametrize("data", [bz2.compress(bytes(1 << 20)), b"PK\x03\x04" + bytes(100), b"\x7fELF" + bytes(100)])
@pytest.mark.parametrize("name", ["text.txt.bz2", "text.zip", "text.txt", "text.txt.gz", "text.jsonl"])
def test_what_is_no_text_is_refused(tmp_path, name, data):
    from farfield.data.corpus import open_corpus

    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / name).write_bytes(data + b"\xff\xfe\xfd")
    with pytest.raises(ValueError, match=r"corpus") as error:
        [list(open_corpus(str(tmp_path / "corpus")).passages(split)) for split in ("train", "valid", "test")]
    assert "\n" not in str(error.value)
