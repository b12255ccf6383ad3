"""`farfield evaluate`, `receptive` and `speed`: models by folder, results that go on, bad input in one sentence."""

import json
import subprocess
import sys

import numpy as np
import pytest

from farfield.cli import main
from farfield.measure import perplexity
from farfield.measure.loading import load_model, load_text
from farfield.measure.perplexity import evaluate
from farfield.measure.speed import measure_speed
from farfield.measure.text import MULTIPLES, parse_lengths

from .conftest import bloom, gpt2, llama, our_model, theirs

SIX = {"length", "protocol", "tokens", "loss", "perplexity", "stderr"}


@pytest.fixture(scope="session")
def run(tmp_path_factory, corpus):
    """A run of a few seconds: bytes of Python, a training length of 16."""
    from farfield.training.run import train
    from farfield.training.settings import preset_settings

    folder = tmp_path_factory.mktemp("runs") / "alibi"
    settings = preset_settings("tiny", encoding="alibi", corpus=str(corpus), steps=5)
    train(settings, folder, progress=False, log_to="none", say=lambda line: None)
    return folder


def call(*arguments):
    """Run a command that must succeed."""
    code = None
    try:
        main([str(a) for a in arguments])
    except SystemExit as end:
        code = end.code
    assert not code


def said(capsys, *arguments):
    call(*arguments)
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    assert end.value.code == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("farfield: ")
    assert sentence.count("\n") == 1
    return sentence


# --- lengths ----------------------------------------------------------------------------------------------------------


def test_the_default_lengths_are_the_papers():
    paper = [512, 768, 1024, 1280, 1536, 1792, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216]
    assert parse_lengths(None, 512) == paper
    assert parse_lengths("18x, 1x,768", 512) == [512, 768, 9216]
    assert parse_lengths([16, "2x"], 8) == [16]
    assert len(parse_lengths(None, 7)) == len(MULTIPLES) - 3  # half a token is no length


@pytest.mark.parametrize("text", ["", "abc", "0", "-4", "1.3x", "0x", "1/0", "nan"])
def test_a_length_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match=r"length|token"):
        parse_lengths(text, 16)


# --- the evaluation ---------------------------------------------------------------------------------------------------


def test_evaluate_prints_the_list(run, capsys):
    call("evaluate", run, "--tokens", "400", "--lengths", "1x,2x,18x", "--json")
    out, told = capsys.readouterr()
    assert "Expected memory at 288 tokens" in told
    rows = json.loads(out)
    assert [(r["length"], r["protocol"]) for r in rows] == [
        (n, p) for n in (16, 32, 288) for p in ("non-overlapping", "sliding")
    ]
    assert all(set(r) >= SIX for r in rows)
    assert set(rows[0]) == SIX
    assert rows[0]["perplexity"] == pytest.approx(np.exp(rows[0]["loss"]))
    assert 0 < rows[0]["stderr"] < rows[0]["perplexity"]
    assert list((run / "evaluation").glob("evaluation-*.json"))


def test_evaluate_shows_both_protocols_the_curve_and_the_verdict(run, capsys, tmp_path):
    figure = tmp_path / "perplexity.png"
    arguments = ["--tokens", "400", "--lengths", "1x,4x", "--epsilon", "0.1", "--quiet"]
    call("evaluate", run, *arguments, "--out", tmp_path / "out", "--figure", figure)
    text = " ".join(capsys.readouterr().out.split())
    for part in ("non-overlapping", "sliding", "tokens seen", "each head cut at a window", "extrapolate"):
        assert part in text
    assert figure.exists()
    assert not figure.with_suffix(".svg").exists()


def test_a_second_call_goes_on_where_the_first_stopped(text, tmp_path, monkeypatch):
    model, some = our_model(), text(200)
    model.identity = {"weights": "these"}
    whole = evaluate(model, some, "1x,2x,4x", window=8)
    measured = []
    real = perplexity.measure

    def stops(model, ids, condition, *more):
        if len(measured) == 4:
            raise KeyboardInterrupt
        measured.append(condition)
        return real(model, ids, condition, *more)

    monkeypatch.setattr(perplexity, "measure", stops)
    with pytest.raises(KeyboardInterrupt):
        evaluate(model, some, "1x,2x,4x", window=8, out=tmp_path)
    monkeypatch.setattr(perplexity, "measure", lambda *a: measured.append(a[2]) or real(*a))
    again = evaluate(model, some, "1x,2x,4x", window=8, out=tmp_path)
    assert len(measured) == 9  # nothing twice
    assert again.json() == whole.json()
    third = evaluate(model, some, "1x,2x,4x", window=8, out=tmp_path)
    assert len(measured) == 9
    assert third.json() == whole.json()
    evaluate(model, text(200, seed=1), "1x", out=tmp_path)  # another text is another file
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_a_damaged_result_is_measured_again(text, tmp_path):
    model, some = our_model(), text(100)
    model.identity = {"weights": "these"}
    first = evaluate(model, some, "1x", out=tmp_path)
    assert first.saved is not None
    first.saved.write_text('{"about": 3, "rows": [{"length"')
    assert evaluate(model, some, "1x", out=tmp_path).json() == first.json()


def test_windowed_evaluation_at_the_receptive_field(text):
    result = evaluate(our_model(), text(300), "1x,8x", protocols=["windowed"], epsilon="0.01")
    cut, full = result.of("windowed")[1], result.of("non-overlapping")[1]
    assert cut.extra["window"] == [19, 74, 128, 128]
    assert 0 < cut.extra["lost_mass"] <= cut.extra["certified_lost_mass"] <= 1
    assert cut.loss != full.loss
    assert cut.loss == pytest.approx(full.loss, abs=0.05)
    assert result.of("windowed")[0].extra["lost_mass"] == 0  # 16 tokens are within every window
    wide = evaluate(our_model(), text(300), "8x", protocols=["windowed"], window=128)
    assert wide.rows[1].loss == pytest.approx(wide.rows[0].loss, abs=1e-6)


def test_the_loss_by_tokens_seen_pools_all_lengths(text):
    result = evaluate(our_model(), text(300), "16,32,48", protocols=["non-overlapping"])
    table = result.by_tokens_seen()
    assert [(p["from"], p["to"]) for p in table] == [(1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 48)]
    assert table[0]["tokens"] == 19 + 10 + 7
    first = [row.positions[0] for row in result.rows]
    assert table[0]["loss"] == pytest.approx(sum(p["loss"] * p["tokens"] for p in first) / 36)


def test_whether_an_evaluation_says_that_it_extrapolates(text):
    result = evaluate(our_model(), text(300), "1x,2x,18x", level=0.5)
    answers = result.extrapolation()
    assert answers is not None
    assert [one.length for one in answers.lengths] == [16, 32, 288]
    assert answers.lengths[0].change == 0
    assert answers.lengths[2].change_error > 0
    assert answers.lengths[2].rise_error is not None
    assert result.extrapolation("windowed") is None
    # random weights gain nothing from context: that their perplexity stays level says nothing
    assert all(one.answer == "level" for one in answers.lengths)
    assert answers.answer == "cannot be told"


@pytest.mark.parametrize("make", [gpt2, llama, bloom])
def test_a_saved_folder_of_transformers_is_measured(make, corpus, tmp_path, capsys):
    network = make()
    network.resize_token_embeddings(257)
    network.save_pretrained(tmp_path / "model")
    arguments = ["--corpus", str(corpus), "--tokenizer", "bytes", "--tokens", "100", "--lengths", "1x,2x"]
    arguments += ["--training-length", "32"] if make is bloom else []
    rows = said(capsys, "evaluate", tmp_path / "model", *arguments, "--protocol", "non-overlapping", "--json")
    # GPT-2's positions end at 32: it says so and measures up to there
    assert [r["length"] for r in rows] == ([32] if make is gpt2 else [32, 64])
    assert rows[0]["tokens"] == (96 if make is gpt2 else 100)  # segments of the longest length, or the whole text


def test_positions_that_end_are_said(text):
    result = evaluate(theirs("gpt2"), text(200), "0.5x,1x,2x")
    assert [row.length for row in result.of("non-overlapping")] == [16, 32]
    assert "end at 32" in result.notes[0]
    with pytest.raises(ValueError, match="all lengths given are longer"):
        evaluate(theirs("gpt2"), text(200), "2x")


# --- bad input --------------------------------------------------------------------------------------------------------


def test_a_corpus_that_is_too_short_says_which_lengths_can_be_done(run, capsys):
    sentence = refused(capsys, "evaluate", run, "--tokens", "100")
    assert "16,24,32,40,48,56,64,96" in sentence
    assert "288" in sentence


def test_lengths_that_are_no_multiples_are_measured(text):
    result = evaluate(our_model(), text(100), "16,21")
    assert [row.length for row in result.of("sliding")] == [16, 21]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--lengths", "1.3x"], "not a whole number"),
        (["--stride", "0"], "stride"),
        (["--stride", "20"], "stride"),
        (["--window", "0"], "window"),
        (["--epsilon", "2"], "epsilon"),
        (["--delta", "-1"], "level"),
        (["--level", "0"], "level"),
        (["--tokens", "0"], "tokens"),
        (["--corpus", "/no/such/text"], "no corpus"),
        (["--tokenizer", "/no/such.json"], "tokenizer"),
        (["--protocol", "guessing"], "guessing"),
    ],
)
def test_a_mistake_is_one_sentence(run, capsys, tmp_path, options, part):
    assert part in refused(capsys, "evaluate", run, "--out", tmp_path, *options)


def test_what_is_no_model_is_one_sentence(tmp_path, capsys):
    assert "not a run folder" in refused(capsys, "evaluate", tmp_path)
    file = tmp_path / "file"
    file.write_text("no model")
    assert "is a file" in refused(capsys, "evaluate", file)
    (tmp_path / "config.json").write_text('{"model_type": "farfield", "training": {}}')
    assert "not finished" in refused(capsys, "evaluate", tmp_path)


def test_an_unknown_encoding_is_one_sentence(run, tmp_path, capsys):
    import shutil

    other = tmp_path / "model"
    shutil.copytree(run, other)
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**config, "encoding": "alibbi"}))
    assert "alibbi" in refused(capsys, "evaluate", other)


def test_a_model_without_training_length_or_text_says_so(tmp_path, text):
    from farfield.measure.models import as_model

    with pytest.raises(ValueError, match="training length"):
        evaluate(as_model(bloom(), "bloom"), text(100), "1x")
    gpt2().save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    with pytest.raises(ValueError, match="corpus"):
        load_text(model)
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        load_text(model, "python")
    with pytest.raises(ValueError, match="257 words"):
        load_text(model, "python", tokenizer="bytes")


def test_the_help_needs_no_torch():
    code = (
        "import sys\nfrom farfield.cli import main\nsys.argv=['farfield','evaluate','--help']\n"
        "try:\n main()\nexcept SystemExit: pass\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120)


# --- receptive and speed ----------------------------------------------------------------------------------------------


def test_receptive_prints_erf_beside_trf(run, capsys, tmp_path):
    figure = tmp_path / "erf.svg"
    arguments = ["--chunks", "1", "--outputs", "2", "--quiet"]
    result = said(capsys, "receptive", run, *arguments, "--json", "--figure", figure)
    heads = result["attention"][0]["heads"]
    assert len(heads) == 2 * 2 * 2  # epsilons, layers, heads
    assert heads[0]["trf"] == 37
    assert 1 <= heads[0]["median"] <= 64
    assert result["gradient"][0]["fields"][0]["median"] >= 1
    assert set(result["rank_correlation"]) == {"0.1", "0.01"}
    assert figure.exists()
    call("receptive", run, run, *arguments)
    text = " ".join(capsys.readouterr().out.split())
    assert "by gradient" in text
    assert "rank correlation" in text


def test_receptive_truncate_prints_the_hypothesis(run, capsys, tmp_path):
    arguments = ["--truncate", "--chunks", "1", "--windows", "1,4,16", "--quiet"]
    result = said(capsys, "receptive", run, *arguments, "--json", "--figure", tmp_path / "delta.png")
    one = result["truncation"][0]
    assert {row["window"] for row in one["heads"]} == {1, 4, 16}
    row = one["heads"][0]
    assert row["largest"]["delta"] <= row["largest"]["sharper"] * (1 + 1e-5) <= row["largest"]["paper"] * (1 + 1e-4)
    assert [n["window"] for n in one["network"]] == [1, 4, 16]
    call("receptive", run, *arguments)
    assert "fixed window" in " ".join(capsys.readouterr().out.split())


def test_speed_is_the_papers_table_with_windowed_attention(run, capsys, tmp_path):
    arguments = ["--windows", "4,8", "--tokens", "64", "--repeats", "1", "--quiet"]
    result = said(capsys, "speed", run, *arguments, "--json", "--figure", tmp_path / "speed.png")
    assert set(result["relative"]) == {"non-overlapping", "sliding", "windowed", "full"}
    assert result["relative"]["non-overlapping"] == 1
    assert result["paper"]["sliding"] == 44.35
    assert len(result["timings"]) == 7


def test_speed_scores_what_evaluate_scores(text):
    model, some = our_model(), text(96)
    speed = measure_speed(model, some, windows=[8, 16], length=96, repeats=1)
    rows = {r.protocol: r for r in evaluate(model, some, [16], stride=1, window=16).rows}
    for protocol in ("non-overlapping", "sliding"):
        assert speed.of(protocol)[1].perplexity == pytest.approx(rows[protocol].perplexity, rel=1e-5)
    windowed = evaluate(model, some, [96], protocols=["windowed"], window=16).of("windowed")[0]
    assert speed.of("windowed")[1].perplexity == pytest.approx(windowed.perplexity, rel=1e-5)
    with pytest.raises(ValueError, match="window"):
        measure_speed(model, some, windows=[97])
    with pytest.raises(ValueError, match="end at 32"):
        measure_speed(theirs("gpt2"), some, windows=[8])
