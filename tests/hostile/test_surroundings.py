"""Closed streams, odd terminals, foreign encodings, small limits, strange masks: an answer, or one sentence."""

import os
import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.hostile("odd surroundings: streams, terminals, limits")
QUICK = {
    "zoo": ["zoo"],
    "check": ["check", "-2*log(t + 1)"],
    "heads": ["check", "alibi", "--heads", "8"],
    "compare": ["compare", "alibi", "type1"],
    "help": ["check", "--help"],
    "a mistake": ["check", "-2*lg(t)"],
}


def farfield(arguments, **options):
    """A command in a process of its own, from a bare shell's point of view."""
    started = [sys.executable, "-m", "farfield", *map(str, arguments)]
    return subprocess.run(started, stderr=subprocess.PIPE, check=False, timeout=300, **options)


def held(done, *statuses):
    said = done.stderr.decode(errors="replace")
    assert "Traceback" not in said, said
    assert "Exception ignored" not in said, said
    assert done.returncode in (statuses or (0, 2)), (done.returncode, said)
    return said


@pytest.mark.parametrize("verb", ["zoo", "check", "a mistake"])
def test_a_reader_that_leaves_is_no_error(verb):
    """As in `farfield zoo | head -1`, with a reader that takes nothing at all."""
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        held(farfield(QUICK[verb], stdout=theirs), 0, 1, 2)
    finally:
        os.close(theirs)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("verb", ["check", "a mistake"])
def test_closed_streams(verb, closed):
    code = f"import os, sys; [os.close(n) for n in {closed}]; os.execv(sys.executable, [sys.executable] + sys.argv[1:])"
    started = [sys.executable, "-c", code, "-m", "farfield", *QUICK[verb]]
    done = subprocess.run(started, capture_output=True, check=False, timeout=300)
    held(done, 2 if verb == "a mistake" else 0)
    if 1 not in closed and verb == "check":
        assert b"converges" in done.stdout


def test_a_file_does_not_get_the_number_of_a_closed_stream(tmp_path):
    """What is printed would otherwise stand in the first file that is written."""
    code = "import os, sys; os.close(1); os.execv(sys.executable, [sys.executable] + sys.argv[1:])"
    call = ["check", "alibi", "--set", "k=1", "--coq", tmp_path / "A.v"]
    started = [sys.executable, "-c", code, "-m", "farfield", *call]
    done = subprocess.run(started, capture_output=True, check=False, timeout=300, cwd=tmp_path)
    held(done, 0)
    assert "converges, with all but" not in (tmp_path / "A.v").read_text()


PLACES = {
    "no colours": {"TERM": "dumb"},
    "no terminal": {"TERM": ""},
    "an unknown terminal": {"TERM": "\x1b[31m"},
    "no columns": {"COLUMNS": "0", "LINES": "0"},
    "one column": {"COLUMNS": "1"},
    "a million columns": {"COLUMNS": "1000000"},
    "columns below 0": {"COLUMNS": "-5"},
    "columns that are none": {"COLUMNS": "wide"},
    "no home": {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "XDG_CONFIG_HOME": "/dev/null"},
    "forced colours": {"FORCE_COLOR": "1", "NO_COLOR": "1", "CLICOLOR_FORCE": "1"},
    "no path": {"PATH": ""},
    "no time zone": {"TZ": "../../etc/passwd"},
}


@pytest.mark.parametrize("place", PLACES)
def test_an_odd_place_is_answered_in(forks, place, attacks):
    for verb, call in QUICK.items():
        ended = forks(*call, environment=PLACES[place], seconds=60)
        assert ended["status"] == (2 if verb == "a mistake" else 0), ended
        assert "Traceback" not in ended["err"]
    attacks(len(QUICK))


ALPHABETS = {
    "ASCII": {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    "the locale C, without help": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "a locale that is none": {"LC_ALL": "xx_YY.KOI-99", "LANG": "/dev/zero", "PYTHONUTF8": "0"},
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_terminal_that_has_not_all_letters(alphabet, attacks):
    for verb in ("check", "a mistake"):
        done = farfield(QUICK[verb], stdout=subprocess.PIPE, env={**os.environ, **ALPHABETS[alphabet]})
        held(done, 2 if verb == "a mistake" else 0)
    attacks(2)


BYTES = [b"\xff\xfe", "\u202eabc".encode(), b"a\nb", b"\xed\xa0\x80", "é".encode("latin-1"), b" ", b"-", "😀".encode()]


@pytest.mark.parametrize("name", BYTES, ids=range(len(BYTES)))
def test_a_path_of_any_bytes(forks, name, tmp_path, attacks):
    """To write to, to read from, and as a formula."""
    folder = os.fsencode(tmp_path) + b"/" + name
    os.mkdir(folder)
    calls = (
        [b"compare", b"alibi", b"type1", b"--figure", folder + b"/a.png"],
        [b"check", b"alibi", b"--set", b"k=1", b"--coq", folder + b"/A.v"],
        [b"inspect", folder],
        [b"check", name],
    )
    for call in calls:
        ended = forks(*map(os.fsdecode, call), cwd=str(tmp_path))
        assert ended["status"] in (0, 2), ended
        assert "Traceback" not in ended["err"]
    attacks(len(calls))


def limited(kind, amount):
    return lambda: resource.setrlimit(kind, (amount, amount))


LIMITS = {
    **{f"{count} files": limited(resource.RLIMIT_NOFILE, count) for count in (8, 12)},
    **{f"{size} MB of addresses": limited(resource.RLIMIT_AS, size << 20) for size in (100, 200)},
    "no file may grow": limited(resource.RLIMIT_FSIZE, 0),
    **{f"mask {mask:o}": (lambda mask=mask: os.umask(mask)) for mask in (0o000, 0o777, 0o277)},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_small_limits(limit, tmp_path):
    """Such that Python itself can start."""
    call = ["compare", "alibi", "type1", "--csv"]
    done = farfield(call, stdout=subprocess.PIPE, preexec_fn=LIMITS[limit], cwd=tmp_path)
    held(done)
