"""Folders that cannot be written, no home, a full disk, no memory: one sentence in every verb."""

import os

import pytest

pytestmark = pytest.mark.hostile("no room, no right, no home, no memory")
NOWHERE = "/proc/farfield"  # where nobody may make a folder, not even root
WRITES = {
    "a proof": ["check", "alibi", "--coq", f"{NOWHERE}/A.v"],
    "its library": ["check", "alibi", "--set", "k=1", "--coq", "A.v", "--library", f"{NOWHERE}/library"],
    "a figure": ["compare", "alibi", "type1", "--figure", f"{NOWHERE}/a.pdf"],
    "a page": ["explore", "--static", f"{NOWHERE}/page"],
}
TRAINS = {
    "a run": ["train", "--encoding", "alibi", "--preset", "tiny", "--corpus", "CORPUS", "--out", f"{NOWHERE}/run"],
    "a study": [
        "study",
        "--preset",
        "tiny",
        "--corpora",
        "CORPUS",
        "--encodings",
        "alibi",
        "--out",
        f"{NOWHERE}/study",
    ],
    "results": ["evaluate", "RUN", "--lengths", "1x", "--out", f"{NOWHERE}/results"],
    "a picture": ["evaluate", "RUN", "--lengths", "1x", "--tokens", "100", "--figure", f"{NOWHERE}/a.pdf"],
    "a picture of heads": ["receptive", "RUN", "--figure", f"{NOWHERE}/a.pdf"],
}


@pytest.mark.parametrize("what", WRITES)
def test_what_cannot_be_written_is_a_sentence(forks, what, tmp_path):
    assert "Errno" not in forks.refusal(*WRITES[what], cwd=str(tmp_path))


@pytest.mark.parametrize("below", ["a file", "a name that is too long", "a link to itself"])
@pytest.mark.parametrize("what", ["a proof", "a figure"])
def test_a_folder_that_is_none_is_a_sentence(forks, what, below, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    place = {"a file": tmp_path / "file", "a link to itself": tmp_path / "loop"}.get(below, tmp_path / ("x" * 300))
    call = [word.replace(NOWHERE, str(place)) for word in WRITES[what]]
    assert forks.refusal(*call)


@pytest.mark.parametrize("ending", [".png", ".pdf"])
@pytest.mark.parametrize("size", [1000, 5000])
def test_a_disk_that_is_full_at_a_figure_is_a_sentence(forks, ending, size, tmp_path):
    said = forks.refusal("compare", "alibi", "type1", "--figure", tmp_path / f"a{ending}", file_size=size)
    assert "cannot be" in said or "room" in said


def test_a_full_disk_behind_a_pipe_is_a_sentence(attacks):
    import subprocess
    import sys

    calls = (
        ["zoo"],
        ["check", "alibi"],
        ["check", "alibi", "--json"],
        ["compare", "alibi", "type1", "--csv"],
    )
    for call in calls:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "farfield", *call], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert done.returncode == 2, (call, done)
        assert done.stderr.startswith("farfield: ")
        assert done.stderr.count("\n") == 1
    attacks(len(calls))


@pytest.mark.parametrize("what", TRAINS)
def test_what_a_model_leaves_cannot_be_written(torch_forks, what, run_folder, corpus, tmp_path):
    call = [{"CORPUS": str(corpus), "RUN": str(run_folder)}.get(word, word) for word in TRAINS[what]]
    ended = torch_forks(*call, cwd=str(tmp_path), megabytes=8000)
    assert ended["status"] == 2, ended
    *before, last = ended["err"].splitlines()
    assert last.startswith("farfield: ")
    assert "Traceback" not in before


CACHES = {
    "unwritable": {"FARFIELD_CACHE": NOWHERE},
    "a file": {"FARFIELD_CACHE": "/etc/hostname"},
    "below a file": {"FARFIELD_CACHE": "/etc/hostname/cache"},
    "no home": {"FARFIELD_CACHE": None, "XDG_CACHE_HOME": None, "HOME": NOWHERE},
    "an unwritable one of the system": {"FARFIELD_CACHE": None, "XDG_CACHE_HOME": NOWHERE},
}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("verb", ["evaluate", "receptive"])
def test_a_cache_that_cannot_be_used_is_a_sentence(torch_forks, verb, cache, run_folder, corpus, tmp_path):
    options = ["--lengths", "1x"] if verb == "evaluate" else []
    said = torch_forks.refusal(verb, run_folder, *options, environment=CACHES[cache], cwd=str(tmp_path), megabytes=8000)
    assert "cannot be used" in said or "belongs to" in said or "cannot be" in said


@pytest.mark.parametrize("cache", CACHES)
def test_a_proof_needs_a_cache_for_its_library(forks, cache, tmp_path):
    ended = forks("check", "alibi", "--set", "k=1", "--coq", "A.v", environment=CACHES[cache], cwd=str(tmp_path))
    assert ended["status"] in (0, 2), ended
    assert "Traceback" not in ended["err"]


PROMPTS = ["/dev/zero", "/proc/self/mem", "/", "/nowhere", "/dev/null/x"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_that_is_no_file_is_a_sentence(torch_forks, prompt, run_folder):
    assert "prompt" in torch_forks.refusal("generate", run_folder, "--prompt-file", prompt, megabytes=8000)


def test_a_prompt_that_is_a_pipe_does_not_wait(torch_forks, run_folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "prompt" in torch_forks.refusal("generate", run_folder, "--prompt-file", tmp_path / "pipe", megabytes=8000)


LARGE = {
    "evaluate": ["--lengths", "64", "--corpus", "CORPUS"],
    "generate": ["--prompt", "the cat", "--tokens", "20"],
    "receptive": [],
}


@pytest.mark.parametrize("megabytes", [1, 30])
@pytest.mark.parametrize("verb", LARGE)
def test_too_little_memory_is_a_sentence(torch_forks, verb, megabytes, run_folder, corpus, tmp_path):
    options = [str(corpus) if word == "CORPUS" else word for word in LARGE[verb]]
    ended = torch_forks(verb, run_folder, *options, megabytes=megabytes, cwd=str(tmp_path))
    assert ended["status"] in (0, 2), ended
    assert "Traceback" not in ended["err"]
