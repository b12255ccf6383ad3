"""A study folder is untrusted: what is well formed is shown, and anything else gets one sentence."""

import copy
import json

import pytest

from farfield.explorer.question import load_study as load

RUN = {
    "corpus": "python",
    "encoding": "type1",
    "seed": 0,
    "training_length": 64,
    "lengths": [64, 128],
    "perplexity": {"non-overlapping": [91.4, 88.0], "sliding": [91.4, None]},
}


def test_the_runs_of_a_study(explorer, study):
    runs = explorer.ask("start")["study"]
    assert runs == load(study)
    assert len(runs) == 12
    assert runs[0]["perplexity"]["sliding"] == [93.4, 92.4, None, 90.6]


def written(folder, run):
    (folder / "study.json").write_text(json.dumps({"runs": [run]}), encoding="utf-8")
    return folder


def test_what_is_well_formed_is_read_and_nothing_more(tmp_path):
    assert load(written(tmp_path, {**RUN, "more": "<script>"})) == [RUN]


@pytest.mark.hostile("records and results with holes")
@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("corpus", 3, "corpus"),
        ("encoding", "x" * 1000, "encoding"),
        ("seed", -1, "seed"),
        ("seed", 1.5, "seed"),
        ("training_length", True, "training_length"),
        ("lengths", [], "lengths"),
        ("lengths", [64, 0], "lengths"),
        ("lengths", list(range(1, 1000)), "lengths"),
        ("perplexity", None, "perplexity"),
        ("perplexity", {"sliding": [1.0]}, "one perplexity for each"),
        ("perplexity", {"sliding": [1.0, "a"]}, "no positive number"),
        ("perplexity", {"sliding": [1.0, float("nan")]}, "no positive number"),
        ("perplexity", {"sliding": [1.0, -3]}, "no positive number"),
    ],
)
def test_a_malformed_run_gets_a_sentence(tmp_path, field, value, sentence):
    run = copy.deepcopy(RUN)
    run[field] = value
    with pytest.raises(ValueError, match=sentence) as caught:
        load(written(tmp_path, run))
    assert "\n" not in str(caught.value)


@pytest.mark.hostile("records and results with holes")
@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "cannot be read as JSON"),
        (b"\xff\xfe\x00", "cannot be read as JSON"),
        (b"[" * 200_000, "cannot be read as JSON"),
        (b"[]", "holds no table"),
        (b'{"runs": {}}', "has no list 'runs'"),
        (b'{"runs": [3]}', "is no object"),
        (b" " * (9 << 20), "is longer than"),
    ],
    ids=range(7),
)
def test_a_file_that_is_none_gets_a_sentence(tmp_path, content, sentence):
    (tmp_path / "study.json").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        load(tmp_path)
