"""Absurd sizes are refused at once, and a formula gets so much time of the processor in every verb, no more."""

import pytest

pytestmark = pytest.mark.hostile("absurd sizes and slow formulas")
SECONDS, MEGABYTES = 20, 1000  # what a command may use at most; all but a few use a tenth

BILLION, LARGEST, ENDLESS = "1000000000", "9" * 18, "9" * 400
SIZES = {  # the option, and commands that have it
    "heads": [["check", "alibi"], ["compare", "alibi", "type1"], ["window", "alibi"],
              ["design", "alibi", "--reach", "4096"]],
    "layers": [["check", "alibi", "--heads", "8"]],
    "context": [["check", "inverse"], ["compare", "alibi", "inverse"], ["window", "inverse"]],
    "width": [["check", "sandwich", "--heads", "8"], ["window", "alibi"]],
    "from": [["check", "-2*log(t + 1)"]],
    "test-length": [["check", "inverse", "--heads", "8", "--train-length", "512"]],
    "reach": [["design", "alibi"], ["design", "-k*log(t + 1)"]],
    "shortest": [["design", "alibi", "--reach", "4096", "--heads", "8"]],
    "logit-bound": [["window", "alibi"]],
}  # fmt: skip
CALLS = [
    [*call, f"--{option}", size]
    for option, calls in SIZES.items()
    for call in calls
    for size in (BILLION, LARGEST, ENDLESS)
]
SHARES = ["1e-999999999", "1e-10000", "1/0", "0." + "0" * 5000 + "1", "nan", "-0.1"]
SHARED = [
    ["check", "alibi"],
    ["compare", "alibi", "type1"],
    ["design", "alibi", "--reach", "4096"],
    ["window", "alibi"],
]


def answered(ended):
    """Whether a command gave an answer, or one sentence, within its limits."""
    assert ended["status"] in (0, 2), ended
    assert "Traceback" not in ended["err"]
    assert ended["megabytes"] < MEGABYTES
    if ended["status"] == 2:
        assert ended["err"].startswith("farfield: ")
    return True


@pytest.mark.parametrize("call", CALLS, ids=lambda call: " ".join(call)[:60])
def test_an_absurd_size_is_answered_or_refused_at_once(forks, call):
    assert answered(forks(*call, seconds=SECONDS))


@pytest.mark.parametrize("epsilon", SHARES, ids=lambda text: text[:12])
@pytest.mark.parametrize("call", SHARED, ids=lambda call: call[0])
def test_an_absurd_epsilon_is_refused_at_once(forks, call, epsilon):
    assert "epsilon" in forks.refusal(*call, "--epsilon", epsilon, seconds=SECONDS)


SLOW = ["-t**0.001", "-floor(t**1000)", "-2*log(t + 1) - t**0.01"]
VERBS = {
    "check": lambda text: ["check", text],
    "heads": lambda text: ["check", text, "--heads", "8", "--layers", "4", "--context", "100000"],
    "compare": lambda text: ["compare", text, "alibi", "--context", "4096"],
    "design": lambda text: ["design", f"k*({text})", "--reach", "4096"],
    "window": lambda text: ["window", text],
}


@pytest.mark.parametrize("text", SLOW)
@pytest.mark.parametrize("verb", VERBS)
def test_a_slow_formula_is_given_up_in_every_verb(forks, verb, text):
    """With a third of a second of the processor where the usual is 2 seconds or a minute."""
    ended = forks(*VERBS[verb](text), environment={"FARFIELD_TIME": "0.3"}, seconds=SECONDS)
    assert answered(ended)


def test_what_was_given_up_is_said(forks):
    said = forks.refusal("compare", "-t**0.001", "alibi", environment={"FARFIELD_TIME": "1"}, seconds=SECONDS)
    assert "no answer within 1 seconds of the processor; the environment variable FARFIELD_TIME gives more" in said


def test_time_that_is_no_time(forks, attacks):
    for time in ("nan", "inf", "-1", "0", "1e400", "soon"):
        assert forks.refusal("check", "alibi", "--time", time)
    attacks(6)


ABSURD = "1000000000000"
SIZED = ("heads", "layers", "width", "length", "batch", "vocabulary", "feed-forward", "steps")
TRAINING = [[f"--{name}", ABSURD] for name in SIZED]
TRAINING += [
    ["--heads", "2.7"], ["--heads", "5"], ["--learning-rate", "nan"], ["--learning-rate", "-1"], ["--dropout", "7"],
    ["--limit", "-3"], ["--precision", "float7"], ["--device", "toaster"], ["--log-to", "abacus"],
    ["--encoding", "albi"], ["--encoding", "-log(t)"], ["--set", "zz=1"], ["--set", "k"], ["--layers", "0"],
    ["--steps", "-1"],
]  # fmt: skip


@pytest.mark.parametrize("options", TRAINING, ids=" ".join)
def test_a_mistake_in_training_is_found_before_the_corpus_is_read(torch_forks, options, tmp_path):
    """Whoever reads this corpus first complains that it is no UTF-8."""
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "train.txt").write_bytes(b"\xff" * 1000)
    call = ["train", "--preset", "tiny", "--corpus", tmp_path / "corpus", "--out", tmp_path / "run"]
    given = options if "--encoding" in options else ["--encoding", "alibi", *options]
    assert "UTF-8" not in torch_forks.refusal(*call, *given, megabytes=6000)
    assert not (tmp_path / "run").exists()


def test_a_study_of_absurd_size_is_refused_at_once(torch_forks, tmp_path, attacks):
    calls = [
        ["--seeds", "1000000000"],
        ["--seeds", "-1"],
        ["--preset", "huge"],
        ["--encodings", "albi"],
        ["--jobs", "x"],
    ]
    for options in calls:
        assert torch_forks.refusal("study", "--out", tmp_path / "out", *options, megabytes=6000)
    assert not (tmp_path / "out").exists()
    attacks(len(calls))
