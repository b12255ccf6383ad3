"""Settings and presets, the schedule, a run from start to end, several processes, and what others make of a run."""

import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from farfield.cli import main
from farfield.commands.train import train_command
from farfield.training import run as training
from farfield.training.loop import inverse_square_root
from farfield.training.processes import chosen_trackers
from farfield.training.reporting import command
from farfield.training.runfolder import flat, read_metrics, read_settings
from farfield.training.settings import Settings, difference, preset_settings, settings_from


@pytest.fixture(scope="session")
def finished(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of `tiny` with a BPE of its own."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    settings = preset_settings(
        "tiny", encoding="type1", corpus=str(corpus), tokenizer="bpe", vocabulary=300, steps=60, evaluate_every=20
    )
    said: list[str] = []
    result = training.train(settings, run, progress=False, log_to="none", say=said.append)
    assert result.finished
    assert "by their names: train: train.txt; valid: valid.txt; test: test.txt." in said[0]
    assert said[1] == "26,752 parameters; weights, optimizer and activations take about 1 MB."
    return run


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_papers_table_of_configurations() -> None:
    paper = {"wikitext": (6, 512, 8, 2048), "base": (12, 768, 12, 3072)}
    for name, shape in paper.items():
        s = preset_settings(f"paper-{name}", encoding="alibi")
        assert (s.layers, s.width, s.heads, s.feed_forward) == shape
        assert (s.vocabulary, s.length, s.batch, s.steps, s.warmup) == (50_265, 512, 128, 50_000, 4_000)
        assert (s.learning_rate, s.betas, s.epsilon, s.weight_decay, s.clip) == (5e-4, (0.9, 0.98), 1e-8, 0.01, 1.0)
        assert s.dropout == 0.1


def test_the_inverse_square_root_schedule() -> None:
    rates = [inverse_square_root(update, 4000) for update in range(1, 50_001)]
    assert rates[3999] == max(rates) == 1
    assert rates[0] == 1 / 4000
    assert rates[15_999] == 0.5
    assert inverse_square_root(1, 0) == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"batch": 0}, "The setting batch is 0"),
        ({"batch": "8"}, 'The setting batch is "8"'),
        ({"depth": 3}, "There is no setting 'depth'"),
        ({"width": 33}, "Width 33 must be a multiple of heads 2"),
        ({"dropout": 1.5}, "The setting dropout is 1.5"),
        ({"learning_rate": math.nan}, "The setting learning_rate is NaN"),
        ({"layers": 10**9}, "The setting layers is 1000000000"),
        ({"micro_batch": 3}, "Batch 4 must be a multiple of micro_batch 3"),
        ({"betas": [0.9, 1.0]}, "must be from 0 to below 1"),
        ({"encoding": ""}, "The setting encoding is"),
    ],
)
def test_a_wrong_setting_is_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=r"\(in a test\)\.$") as error:
        settings_from({**preset_settings("tiny", encoding="alibi").model_dump(mode="json"), **changes}, "a test")
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_are_frozen_and_survive_json() -> None:
    settings = preset_settings("small", encoding="-k*t", parameters={"k": 0.5}, seed=7)
    assert settings_from(json.loads(settings.model_dump_json()), "json") == settings
    with pytest.raises(ValueError, match="frozen"):
        settings.batch = 3  # type: ignore[misc]
    with pytest.raises(ValueError, match="There is no preset 'huge': choose from paper-wikitext"):
        preset_settings("huge", encoding="alibi")
    assert Settings(preset="tiny", encoding="alibi") == preset_settings("tiny", encoding="alibi")
    assert Settings(preset="tiny", width=34).given() == {"width": 34}  # and 34 is checked against tiny's two heads
    assert Settings(parameters={"k": "1/16", "m": "0.5"}).parameters == {"k": "1/16", "m": 0.5}
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None}) == ["b: 2 before, 3 now"]
    assert preset_settings("paper-base", encoding="alibi", batch=6).micro_batch == 3


def test_the_card_gives_the_command_that_made_the_run() -> None:
    assert Settings().steps != 77
    settings = preset_settings("small", encoding="-k*t", corpus="my text", steps=77, parameters={"k": 0.5})
    assert command(settings) == (
        "farfield train --encoding '-k*t' --corpus 'my text' --preset small --set k=0.5 --steps 77 --out RUN"
    )


# --- a run ------------------------------------------------------------------------------------------------------------


def test_a_run_folder_holds_what_it_should(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert {"config.json", "metrics.jsonl", "model.safetensors", "tokenizer.json", "README.md"} <= names
    lines = read_metrics(finished)
    assert [line["step"] for line in lines if "loss" in line] == list(range(1, 61))
    assert [line["step"] for line in lines if "valid_loss" in line] == [20, 40, 60]
    assert lines[-1]["valid_loss"] < lines[0]["loss"] - 0.5  # it has learned
    card = (finished / "README.md").read_text()
    assert "`-log(1 + (k*t)**2)` is its formula (k: ALiBi's slopes, 1/16 ... 1/256)" in card
    assert "\nfarfield check type1\n" in card
    assert "farfield train --encoding type1" in card
    assert "![Loss by step](curves.svg)" in card
    assert read_settings(finished).encoding == "type1"


def test_a_hugging_face_user_can_load_a_run(finished: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(finished)
    tokenizer = AutoTokenizer.from_pretrained(finished)
    inputs = tokenizer("12 sailors went to", return_tensors="pt")
    output = model.generate(**inputs, max_new_tokens=8, do_sample=False)
    assert tokenizer.decode(output[0]).startswith("12 sailors went to")
    assert model.config.eos_token_id == tokenizer.eos_token_id
    assert model.config.training["settings"]["encoding"] == "type1"


def test_the_valid_loss_is_the_papers_perplexity_without_overlap(finished: Path, cache: Path) -> None:
    from farfield.data.corpus import open_corpus
    from farfield.data.tokenizer import load_tokenizer
    from farfield.data.tokens import tokenize

    settings = read_settings(finished)
    tokens = tokenize(
        open_corpus(settings.corpus, limit=settings.limit), "valid", load_tokenizer(str(finished)), cache=cache
    )
    model = AutoModelForCausalLM.from_pretrained(finished)
    n, count = settings.length, settings.evaluate_tokens // settings.length
    ids = torch.tensor(tokens.ids[: n * count + 1].astype("int64"))
    rows = torch.stack([ids[i * n : i * n + n + 1] for i in range(count)])
    with torch.no_grad():
        logits = model(rows[:, :-1]).logits
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten()).item()
    assert read_metrics(finished)[-1]["valid_loss"] == pytest.approx(expected, rel=1e-5)


def test_going_on_with_a_finished_run_says_so_and_changes_nothing(finished: Path) -> None:
    before = (finished / "model.safetensors").stat().st_mtime_ns
    said: list[str] = []
    result = training.resume(finished, progress=False, log_to="none", say=said.append)
    assert result.finished
    assert result.step == 60
    assert said == [f"The run {str(finished)!r} is finished: 60 steps."]
    assert (finished / "model.safetensors").stat().st_mtime_ns == before


def test_training_leaves_the_process_as_it_was(corpus: Path, tmp_path: Path) -> None:
    from farfield.nn.denormals import is_flushing

    torch.manual_seed(3)
    before, flushing, numbers = torch.get_rng_state(), is_flushing(), random.getstate()
    settings = preset_settings("tiny", encoding="none", corpus=str(corpus), steps=2)
    training.train(settings, tmp_path / "run", progress=False, log_to="none", say=lambda line: None)
    assert torch.equal(torch.get_rng_state(), before)
    assert random.getstate() == numbers
    assert is_flushing() == flushing


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "cannot be read as JSON"),
        ("[]", "no table"),
        ("{}", "no settings of a run"),
        ('{"training": {"settings": {"encoding": "alibi"}}}', "is missing"),
        ('{"training": {"settings": {"__class__": 1}}}', "config.json"),
        ("[" * 100_000, "cannot be read as JSON"),
    ],
)
def test_a_runs_configuration_is_untrusted(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=sentence):
        training.resume(tmp_path)


def test_each_mistake_about_a_run_is_one_sentence(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a run folder"):
        training.resume(tmp_path / "nothing")
    tiny = Settings(encoding="alibi", corpus=str(corpus), preset="tiny")
    with pytest.raises(ValueError, match="Which encoding"):
        train_command(out=tmp_path)
    with pytest.raises(ValueError, match="Where to"):
        train_command(settings=tiny)
    with pytest.raises(ValueError, match="takes NAME=VALUE"):
        train_command(settings=tiny, out=tmp_path, parameters=["k"])
    with pytest.raises(ValueError, match="needs a value for its parameter 'w'"):
        train_command(settings=tiny.model_copy(update={"encoding": "window"}), out=tmp_path / "w", quiet=True)
    with pytest.raises(ValueError, match=r"has \d+ tokens; a length of 100000 needs at least 100001"):
        train_command(settings=tiny.model_copy(update={"length": 100_000}), out=tmp_path / "l")
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot go on: File exists"):
        train_command(settings=tiny, out=tmp_path / "file")
    with pytest.raises(ValueError, match="no tracker 'paper'"):
        chosen_trackers("paper")
    assert not (tmp_path / "w" / "config.json").exists()


@pytest.mark.parametrize(
    ("encoding", "distance"),
    [
        ("log(t)", 0),  # minus infinity in doubles, as in a window
        ("-1/t", 0),
        ("-log(abs(t - 5))", 5),
        ("-k*log(20 - t)", 20),  # beyond the samples of 16 tokens
        ("-log(70 - t)", 128),  # beyond the distances that are looked at one by one
        ("-sqrt(5000 - t)", 8192),
    ],
)
def test_a_formula_without_a_value_is_refused_before_the_text_is_read(
    tmp_path: Path, encoding: str, distance: int
) -> None:
    settings = Settings(encoding=encoding, corpus=str(tmp_path / "no such text"), preset="tiny")
    with pytest.raises(ValueError, match=rf"at distance t = {distance}\b"):
        training.train(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_run_asks_for_no_verdict(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farfield.theory.verdict.convergence.check", lambda *a, **k: pytest.fail("a verdict"))
    monkeypatch.setattr("farfield.nn.learned_heads.check", lambda *a, **k: pytest.fail("a verdict"))
    settings = preset_settings("tiny", encoding="kerple-log", corpus=str(corpus), steps=1)
    assert training.train(settings, tmp_path / "run", progress=False, log_to="none", say=lambda line: None).finished


def test_nothing_in_a_configuration_escapes_the_comparison() -> None:
    one = {"a": 1, "transformers_version": "5.0", "training": {"settings": {"b": 2}, "identity": {"formula": "x"}}}
    two = {"a": 1, "transformers_version": "5.1", "training": {"settings": {"b": 3}, "identity": {"formula": "y"}}}
    assert difference(flat(one), flat(two)) == [
        'identity.formula: "x" before, "y" now',
        "settings.b: 2 before, 3 now",
    ]


def test_the_settings_are_the_options_of_the_command(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    shown = capsys.readouterr().out
    for name, field in Settings.model_fields.items():
        option = {"parameters": "--set", "start_from": "--from"}.get(name, f"--{name.replace('_', '-')}")
        assert re.search(rf"│ {option}\b", shown), name
        assert field.description, name
    words = ["--encoding", "-k*t", "--set", "k=1/16", "--corpus", str(corpus), "--preset", "tiny", "--steps", "2"]
    words += ["--tokeniser", "bytes", "--betas", "0.8", "0.9", "--no-shared-bias", "--quiet", "--log-to", "none"]
    with pytest.raises(SystemExit) as end:
        main(["train", *words, "--out", str(tmp_path / "run")])
    assert end.value.code == 0
    stored = read_settings(tmp_path / "run")
    assert stored.given().keys() == stored.model_dump().keys()  # the file says everything
    given = {"encoding": "-k*t", "parameters": {"k": "1/16"}, "steps": 2, "betas": (0.8, 0.9), "shared_bias": False}
    assert stored == Settings(preset="tiny", corpus=str(corpus), tokenizer="bytes", **given)
    assert "farfield train --encoding '-k*t'" in (tmp_path / "run" / "README.md").read_text()
    # options beside --resume must agree with the run
    with pytest.raises(SystemExit) as end:
        main(["train", "--resume", str(tmp_path / "run"), "--steps", "2", "--quiet"])
    assert end.value.code == 0
    with pytest.raises(SystemExit) as end:
        main(["train", "--resume", str(tmp_path / "run"), "--steps", "3"])
    assert end.value.code == 2
    assert "steps: 2 before, 3 now" in capsys.readouterr().err


# --- several processes and other programs -----------------------------------------------------------------------------


def launch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "ignore", *words], capture_output=True, text=True)


def losses_of(run: Path) -> list[float]:
    return [line["loss"] for line in read_metrics(run) if "loss" in line]


@pytest.mark.parametrize(
    "launcher",
    [
        ["-m", "torch.distributed.run", "--nproc-per-node", "2"],
        pytest.param(
            ["-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2", "--num_machines", "1"],
            marks=pytest.mark.long,
        ),
    ],
    ids=["torchrun", "accelerate"],
)
def test_two_processes_give_the_loss_curve_of_one(corpus: Path, tmp_path: Path, launcher: list[str]) -> None:
    words = ["-m", "farfield", "train", "--encoding", "-p*log(1 + a*t)", "--learn", "p=0:2, a=0.1:1"]
    words += ["--no-shared-bias", "--corpus", str(corpus), "--preset", "tiny"]
    words += ["--log-to", "none", "--quiet", "--json"]
    with pytest.raises(SystemExit, match="0"):
        main([*words[2:], "--out", str(tmp_path / "one")])
    two = launch(*launcher, *words, "--out", str(tmp_path / "two"))
    assert two.returncode == 0, two.stderr
    assert json.loads(two.stdout.splitlines()[-1])["finished"]  # gloo may have said something before
    assert len(losses_of(tmp_path / "one")) == 20
    assert losses_of(tmp_path / "two") == pytest.approx(losses_of(tmp_path / "one"), abs=2e-5)


@pytest.mark.filterwarnings("ignore")
def test_the_evaluation_harness_agrees_with_the_perplexity_without_overlap(finished: Path, corpus: Path) -> None:
    """lm-evaluation-harness loads a run folder, and its rolling log-likelihood is our sum over pieces of n tokens."""
    harness = pytest.importorskip("lm_eval.models.huggingface", reason="pip install 'farfield[harness]'")
    from lm_eval.api.instance import Instance

    n = 16
    theirs = harness.HFLM(pretrained=str(finished), device="cpu", dtype="float32", max_length=n, batch_size=4)
    text = (corpus / "test.txt").read_text()[:900]
    ids = theirs.tokenizer(text)["input_ids"]
    while len(ids) % n:  # the harness gives a shorter last piece more context
        text = text[:-1]
        ids = theirs.tokenizer(text)["input_ids"]
    request = Instance(request_type="loglikelihood_rolling", doc={}, arguments=(text,), idx=0)
    ids = [theirs.prefix_token_id, *ids]
    pieces = torch.tensor([ids[start : start + n + 1] for start in range(0, len(ids) - 1, n)])
    ours = AutoModelForCausalLM.from_pretrained(finished).token_losses(pieces).double().sum().item()
    assert theirs.loglikelihood_rolling([request], disable_tqdm=True)[0] == pytest.approx(-ours, rel=1e-5)


def test_a_run_of_an_earlier_version_is_read_and_keeps_its_name() -> None:
    settings = preset_settings("tiny", encoding="alibi")
    before = settings.model_dump(mode="json")
    before["tokeniser"] = before.pop("tokenizer")
    for name in ("schedule", "start_from"):
        del before[name]
    assert settings_from(before, "an old run") == settings
    assert settings.identity() == before
    old = {"training": {"settings": before, "identity": {"tokeniser": "1f"}}}
    new = {"training": {"settings": settings.model_dump(mode="json"), "identity": {"tokenizer": "1f"}}}
    assert difference(flat(old), flat(new)) == []
