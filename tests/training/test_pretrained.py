"""`farfield train --from`: a run that starts from the weights of another."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from farfield import Encoding
from farfield.cli import main
from farfield.data.samples import Samples
from farfield.data.tokenizer import byte_tokenizer, for_transformers
from farfield.nn import replace
from farfield.training.pretrained import fill_in, identity_of, load_network
from farfield.training.run import read_text, resume, train
from farfield.training.runfolder import read_config, read_metrics, read_settings
from farfield.training.settings import Settings, preset_settings

QUIET: dict[str, Any] = {"progress": False, "log_to": "none", "say": lambda line: None}


def text_folder(folder: Path, line: str) -> str:
    folder.mkdir()
    for split in ("train", "valid", "test"):
        (folder / f"{split}.txt").write_text("".join(line.format(i, i * 7 % 13) for i in range(500)))
    return str(folder)


@pytest.fixture(scope="module")
def first(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, with learned parameters and a BPE of its own text."""
    run = tmp_path_factory.mktemp("start") / "run"
    text = str(corpus)
    settings = preset_settings("tiny", encoding="kerple-log", corpus=text, tokenizer="bpe", vocabulary=280, steps=10)
    assert train(settings, run, **QUIET).finished
    return run


@pytest.fixture
def other_text(tmp_path: Path) -> str:
    return text_folder(tmp_path / "other", "{} bells and {} drums!\n")


def test_it_starts_with_the_weights_the_tokenizer_and_the_settings_of_the_other(
    first: Path, other_text: str, tmp_path: Path
) -> None:
    gone_on = tmp_path / "run"
    settings = Settings(start_from=str(first), corpus=other_text, steps=1, learning_rate=1e-30, weight_decay=0.0)
    assert train(settings, gone_on, **QUIET).finished
    before, after = load_file(first / "model.safetensors"), load_file(gone_on / "model.safetensors")
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert (gone_on / "tokenizer.json").read_bytes() == (first / "tokenizer.json").read_bytes()
    own, stored = read_settings(first), read_settings(gone_on)
    changed = {name for name in Settings.model_fields if getattr(own, name) != getattr(stored, name)}
    assert changed == {"start_from", "corpus", "steps", "learning_rate", "weight_decay"}
    noted = read_config(gone_on)["training"]["identity"]["start"]
    assert noted == identity_of(first)
    card = (gone_on / "README.md").read_text()
    assert noted["weights"][:16] in card
    assert f"--from {first}" in card


def test_a_preset_fills_in_all_but_the_model(first: Path, tmp_path: Path) -> None:
    filled = fill_in(Settings(start_from=str(first), preset="paper-wikitext"), tmp_path / "run")
    assert (filled.batch, filled.steps, filled.length) == (128, 50_000, 512)
    assert (filled.encoding, filled.width, filled.vocabulary, filled.tokenizer) == ("kerple-log", 32, 280, "bpe")


def test_once_begun_it_needs_the_other_no_more_and_ends_the_same(first: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(first, origin)
    settings = Settings(start_from=str(origin), steps=12, save_every=4)
    assert train(settings, tmp_path / "whole", **QUIET).finished
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    for name in ("finished.json", "model.safetensors"):
        (tmp_path / "cut" / name).unlink()
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-00000012")
    shutil.rmtree(origin)
    assert resume(tmp_path / "cut", **QUIET).finished
    assert train(settings, tmp_path / "cut", **QUIET).finished  # the same command again: it is done
    whole, cut = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert all(torch.equal(cut[name], weight) for name, weight in whole.items())
    # killed before its first checkpoint, it needs the other once more
    shutil.rmtree(tmp_path / "cut" / "checkpoints")
    (tmp_path / "cut" / "finished.json").unlink()
    with pytest.raises(ValueError, match="There is no folder"):
        resume(tmp_path / "cut", **QUIET)
    # and it must be the same one
    shutil.copytree(first, origin)
    weights = load_file(origin / "model.safetensors")
    save_file({name: weight + 1 for name, weight in weights.items()}, origin / "model.safetensors", {"format": "pt"})
    (origin / "finished.json").unlink()
    with pytest.raises(ValueError, match="is another than when this run was begun"):
        resume(tmp_path / "cut", **QUIET)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--encoding", "alibi"], "has encoding 'kerple-log', not 'alibi'"),
        (["--layers", "3"], "has layers 2, not 3"),
        (["--tokenizer", "bytes"], "has tokenizer 'bpe', not 'bytes'"),
        (["--encoding", "alibi", "--set", "k=2"], "has encoding"),
        (["--slopes", "learned"], "give --encoding too"),
        (["--from", "nothing"], "There is no folder 'nothing' to start from."),
        (["--batch", "0"], "batch"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    first: Path, tmp_path: Path, words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    origin = [] if "--from" in words else ["--from", str(first)]
    with pytest.raises(SystemExit) as ended:
        main(["train", *origin, *words, "--out", str(tmp_path / "run"), "--quiet"])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert sentence in " ".join(said.split())
    assert not (tmp_path / "run").exists()


def test_a_damaged_or_unfinished_model_is_no_start(first: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    shutil.copytree(first, origin)
    data = bytearray((origin / "model.safetensors").read_bytes())
    data[-50] ^= 1
    (origin / "model.safetensors").write_bytes(data)
    with pytest.raises(ValueError, match="damaged or exchanged"):
        train(Settings(start_from=str(origin)), tmp_path / "run", **QUIET)
    (origin / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="is not finished"):
        train(Settings(start_from=str(origin)), tmp_path / "run", **QUIET)
    shutil.copy(first / "model.safetensors", origin)
    tokenizer = json.loads((origin / "tokenizer.json").read_text())
    tokenizer["normalizer"] = {"type": "NFC"}
    (origin / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ValueError, match="is not the one that its model was trained with"):
        train(Settings(start_from=str(origin)), tmp_path / "run", **QUIET)


@pytest.mark.long
def test_a_divided_run_starts_with_the_same_weights(first: Path, tmp_path: Path) -> None:
    settings = Settings(start_from=str(first), steps=6)
    assert train(settings, tmp_path / "one", **QUIET).finished
    launch = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2", "-m", "farfield"]
    words = ["train", "--from", str(first), "--steps", "6", "--shard", "--out", str(tmp_path / "two"), "--quiet"]
    done = subprocess.run([*launch, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    one, two = ([line["loss"] for line in read_metrics(tmp_path / run) if "loss" in line] for run in ("one", "two"))
    assert two == pytest.approx(one, rel=1e-6)


# --- models of others, with another encoding --------------------------------------------------------------------------


def others(kind: str, folder: Path, words: int = 257) -> Path:
    """A tiny model of transformers with weights of its own, its encoding replaced, and a byte tokenizer."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    if kind == "gpt2":  # ties its embeddings, and has dropout
        config = transformers.GPT2Config(
            n_embd=16, n_layer=2, n_head=2, vocab_size=words, n_positions=64, bos_token_id=0, eos_token_id=0
        )
        model = transformers.GPT2LMHeadModel(config)
    else:
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
        config = transformers.LlamaConfig(**sizes, intermediate_size=24, vocab_size=words)
        model = transformers.LlamaForCausalLM(config)
    replace(model, Encoding("-a*log(1+t)", learn={"a": (1, 2)})).save_pretrained(folder)
    for_transformers(byte_tokenizer()).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_model_that_replace_made_goes_on_and_survives_a_kill(kind: str, first: Path, tmp_path: Path) -> None:
    origin = others(kind, tmp_path / "origin")
    corpus = read_settings(first).corpus
    settings = Settings(start_from=str(origin), preset="tiny", corpus=corpus, steps=8, save_every=3)
    assert train(settings, tmp_path / "whole", **QUIET).finished
    whole = load_file(tmp_path / "whole" / "model.safetensors")
    # the first loss is that of the model as it was
    network = load_network(str(origin))[0]
    _, tokens = read_text(read_settings(tmp_path / "whole"), stored=origin / "tokenizer.json", progress=False)
    rows = [Samples(tokens["train"], 16, 0, "train")[number] for number in range(4)]
    batch = {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in rows[0]}
    torch.manual_seed(int(batch["sample_seeds"][0]))
    logits = network.train()(input_ids=batch["input_ids"]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["shift_labels"].flatten())
    assert read_metrics(tmp_path / "whole")[0]["loss"] == pytest.approx(loss.item(), rel=1e-6)
    # cut off after a checkpoint, and without the model that it started from, it ends with the same bits
    shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    (tmp_path / "cut" / "finished.json").unlink()
    (tmp_path / "cut" / "model.safetensors").unlink()
    shutil.rmtree(tmp_path / "cut" / "checkpoints" / "step-00000008")  # the one of step 6 is left
    shutil.rmtree(origin)
    assert resume(tmp_path / "cut", **QUIET).finished
    cut = load_file(tmp_path / "cut" / "model.safetensors")
    assert cut.keys() == whole.keys()
    assert all(torch.equal(cut[name], weight) for name, weight in whole.items())
    # and it is loaded as any other, learned parameters too
    loaded = load_network(str(tmp_path / "cut"))[0]
    assert torch.equal(loaded.farfield_bias.learned["a"], whole["farfield_bias.learned.a"])
    assert "## What it learned" in (tmp_path / "cut" / "README.md").read_text()


def test_a_model_without_an_encoding_of_ours_is_refused(tmp_path: Path) -> None:
    origin = others("llama", tmp_path / "origin", words=100)
    with pytest.raises(ValueError, match="has 257 words, but its model 100"):
        train(Settings(start_from=str(origin), preset="tiny"), tmp_path / "run", **QUIET)
    config = json.loads((origin / "config.json").read_text())
    del config["farfield"]
    (origin / "config.json").write_text(json.dumps({**config, "model_type": "llama"}))
    with pytest.raises(ValueError, match="neither of a finished run nor made by `farfield replace`"):
        train(Settings(start_from=str(origin), preset="tiny"), tmp_path / "other", **QUIET)
