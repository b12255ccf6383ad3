"""A run that learns the parameters of its formula: the command, the folder, resuming, the card, what is refused."""

import json

import pytest
import torch
from safetensors.torch import load_file

from farfield import Encoding, Settings, zoo
from farfield.cli import main
from farfield.training import run as training
from farfield.training.reporting import command
from farfield.training.runfolder import read_settings
from farfield.training.settings import settings_from

LEARN = ["--encoding", "-a*log(1 + p*t)", "--learn", "a=0:2, p=0.5:1.5 in 0.01:3"]


def words(corpus, out, *more):
    tiny = ["--corpus", str(corpus), "--preset", "tiny", "--out", str(out), "--quiet", "--log-to", "none"]
    return ["train", *more, *tiny]


def call(arguments):
    try:
        main(arguments)
    except SystemExit as end:
        return end.code
    return 0


def test_the_command_trains_says_and_keeps_it(corpus, tmp_path, capsys):
    assert call(words(corpus, tmp_path / "run", *LEARN, "--no-shared-bias", "--steps", "6")) == 0
    said = capsys.readouterr().err
    assert "a: learned, starts spread over 0 to 2, kept at least 0, each layer its own." in said
    table = json.loads((tmp_path / "run" / "config.json").read_text())["encoding_parameters"]
    assert table["p"] == {"start": [0.5, 1.5], "least": 0.01, "most": 3, "spread": True}
    weights = load_file(tmp_path / "run" / "model.safetensors")
    assert weights["position.bias.learned.a"].shape == (2, 2)
    card = (tmp_path / "run" / "README.md").read_text()
    table = card[card.index("| layer | head |") :].split("\n\n")[0].splitlines()[2:]
    assert len(table) == 4
    for row in table:
        layer, head, a, p = (cell.strip() for cell in row.strip("|").split("|"))
        place = int(layer) - 1, int(head) - 1
        assert float(a) == pytest.approx(weights["position.bias.learned.a"][place].item(), 1e-4)
        assert float(p) == pytest.approx(weights["position.bias.learned.p"][place].item(), 1e-4)
    settings = read_settings(tmp_path / "run")
    assert settings_from(settings.model_dump(mode="json"), "a file") == settings
    again = command(settings, str(tmp_path / "again"))
    assert "--learn 'a=0:2 in 0:inf, p=0.5:1.5 in 0.01:3'" in again


def test_a_run_that_was_stopped_ends_in_the_same_weights(corpus, tmp_path):
    encoding = Encoding("-a*log(1 + p*t)", learn={"a": (0, 2), "p": (0.5, 1.5)})
    settings = Settings(encoding=encoding, corpus=str(corpus), preset="tiny", steps=8, save_every=3)
    quiet = {"progress": False, "log_to": "none"}
    training.train(settings, tmp_path / "whole", say=lambda line: None, **quiet)
    stopped = []

    def stop(line):
        if not stopped and "learned" in line:  # said right before the first step
            stopped.append(line)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(settings, tmp_path / "parts", say=stop, **quiet)
    training.resume(tmp_path / "parts", say=lambda line: None, **quiet)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_slopes_are_said_given_and_learned(corpus, tmp_path, capsys):
    assert call(words(corpus, tmp_path / "a", "--encoding", "-k*sqrt(t)", "--steps", "1")) == 0
    assert "k: ALiBi's slopes, 1/16 ... 1/256 (--slopes gives others, or learns them)." in capsys.readouterr().err
    assert "(k: ALiBi's slopes, 1/16 ... 1/256)" in (tmp_path / "a" / "README.md").read_text()
    options = ["--encoding", "-k*sqrt(t)", "--slopes", "1/2,1/8", "--steps", "1"]
    assert call(words(corpus, tmp_path / "b", *options)) == 0
    assert "ALiBi's slopes" not in capsys.readouterr().err
    assert read_settings(tmp_path / "b").parameters == {"k": ["1/2", "1/8"]}
    assert "--slopes 1/2,1/8" in (tmp_path / "b" / "README.md").read_text()
    assert call(words(corpus, tmp_path / "c", "--encoding", "alibi", "--slopes", "learned", "--steps", "2")) == 0
    assert "learned, starts at 0.0625, 0.00390625" in capsys.readouterr().err
    weights = load_file(tmp_path / "c" / "model.safetensors")["position.bias.learned.k"]
    first = torch.tensor([[zoo.number(value) for value in zoo.slopes(2)]])
    assert weights.shape == (1, 2)
    assert 0 < (weights - first).abs().max() < 0.01
    card = (tmp_path / "c" / "README.md").read_text()
    assert "--slopes learned" in card
    assert "| all | 2 | 0.0" in card


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--encoding", "-a*t", "--learn", "a=2:0"], "upside down"),
        (["--encoding", "-a*t", "--learn", "b=0:2"], "no parameter 'b'"),
        (["--encoding", "-a*t", "--learn", "t=0:2"], "t is the distance"),
        (["--encoding", "-a*t", "--learn", "a=nan:2"], "needs numbers"),
        (["--encoding", "-a*t", "--learn", "a=0:1 in 5:6"], "not within its bounds"),
        (["--encoding", "-a*t", "--set", "a=1", "--learn", "a=0:1"], "given twice"),
        (["--encoding", "-a*log(a*t - 3)", "--learn", "a=0:1"], "has no value"),
        (["--encoding", "-k*t", "--slopes", "1/2,1/4,1/8"], "3 values for 2 heads"),
        (["--encoding", "-k*t", "--slopes", "fast"], "slopes are alibi, learned"),
        (["--encoding", "rope", "--slopes", "learned"], "rope has no formula"),
        (["--encoding", "t5", "--learn", "near=0:1"], "takes no parameters"),
        (["--encoding", "-a*t"], "needs a value for its parameter 'a'"),
        (["--learn", "a=0:1"], "give --encoding too"),
    ],
)
def test_a_mistake_is_one_sentence_before_the_text_is_read(tmp_path, capsys, options, sentence):
    assert call(words(tmp_path / "no-such-text", tmp_path / "run", *options)) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


def test_a_run_whose_range_changed_is_refused(corpus, tmp_path, capsys):
    assert call(words(corpus, tmp_path / "run", *LEARN, "--steps", "1")) == 0
    other = ["--encoding", "-a*log(1 + p*t)", "--learn", "a=0:1, p=0.5:1.5 in 0.01:3", "--steps", "1"]
    assert call(words(corpus, tmp_path / "run", *other)) == 2
    assert "was started with something else (parameters" in capsys.readouterr().err
