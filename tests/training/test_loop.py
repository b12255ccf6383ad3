"""The loop: the arithmetic of a bare one to the bit, whatever it is asked to do on the way."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save

from farfield.data.samples import Samples
from farfield.nn.decoder.model import FarfieldForCausalLM
from farfield.nn.denormals import flush_denormals
from farfield.training.checkpoint import save_checkpoint, verify_checkpoint
from farfield.training.loop import cosine, learning_rate
from farfield.training.network import model_config
from farfield.training.run import read_text, resume, train
from farfield.training.runfolder import read_metrics
from farfield.training.settings import Settings


def run(settings: Settings, folder: Path, **means: Any) -> dict[str, torch.Tensor]:
    means = {"log_to": "none", **means}
    assert train(settings, folder, progress=False, say=lambda line: None, **means).finished
    return load_file(folder / "model.safetensors")


def same_bits(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_run_is_a_bare_loop_to_the_bit(settings: Settings, plain: Path) -> None:
    """Forward, backward, clip, step, written down once more, with nothing of the loop in it."""
    tokenizer, tokens = read_text(settings, progress=False)
    samples = Samples(tokens["train"], settings.length, settings.seed, "train")
    config = model_config(settings, tokenizer, tokens)
    torch.manual_seed(settings.seed)
    model = FarfieldForCausalLM(config).train()
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=settings.betas, eps=settings.epsilon, weight_decay=settings.weight_decay, fused=True
    )
    losses = []
    with flush_denormals():
        for step in range(settings.steps):
            rows = [samples[number] for number in range(step * settings.batch, (step + 1) * settings.batch)]
            batch = {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in rows[0]}
            loss = model(**batch, use_cache=False).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.param_groups[0]["lr"] = learning_rate(settings, step + 1)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    assert [line["loss"] for line in read_metrics(plain) if "loss" in line] == losses
    assert same_bits(load_file(plain / "model.safetensors"), dict(model.state_dict()))


def test_a_checkpoint_of_an_earlier_version_has_a_file_more(plain: Path, tmp_path: Path) -> None:
    """They held the random generators of the process too, of which no run ever drew."""
    cut = tmp_path / "cut"
    shutil.copytree(plain, cut)
    for name in ("finished.json", "model.safetensors"):
        (cut / name).unlink()
    shutil.rmtree(cut / "checkpoints" / "step-00000008")
    folder, step, about = verify_checkpoint(cut / "checkpoints" / "step-00000006")
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
    files["random.safetensors"] = save({"torch": torch.get_rng_state()})
    writers = {name: lambda path, data=data: path.write_bytes(data) for name, data in files.items()}
    save_checkpoint(cut, step, writers, about, keep=2)
    said: list[str] = []
    assert resume(cut, progress=False, log_to="none", say=said.append).finished
    assert said[1] == "Going on from step 6 of 8."
    assert same_bits(load_file(cut / "model.safetensors"), load_file(plain / "model.safetensors"))


def test_recomputation_changes_no_bit(settings: Settings, plain: Path, tmp_path: Path) -> None:
    assert same_bits(run(settings, tmp_path / "run", recompute=True), load_file(plain / "model.safetensors"))


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
def test_layers_can_be_compiled(
    settings: Settings, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traced as the compiler does it, and run without its back end, which takes a minute."""
    compiled, calls = torch.nn.Module.compile, []

    def traced(module: torch.nn.Module) -> None:
        calls.append(module)
        compiled(module, backend="eager")

    monkeypatch.setattr(torch.nn.Module, "compile", traced)
    weights = run(settings, tmp_path / "run", compile=True)
    assert len(calls) == settings.layers
    for name, expected in load_file(plain / "model.safetensors").items():
        got = weights[name]
        if name.endswith("inward.bias"):  # that of the keys has the gradient 0, and Adam makes updates of its rounding
            got, expected = (torch.cat(x.chunk(3)[::2]) for x in (got, expected))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_run_has_the_same_losses(settings: Settings, plain: Path, tmp_path: Path) -> None:
    run(settings, tmp_path / "run", compile=True)
    losses = [[line["loss"] for line in read_metrics(one) if "loss" in line] for one in (plain, tmp_path / "run")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_accumulation_is_exact_in_the_mean_over_tokens(settings: Settings, plain: Path, tmp_path: Path) -> None:
    expected = [line for line in read_metrics(plain) if "loss" in line]
    for micro_batch in (1, 2):
        run(settings.model_copy(update={"micro_batch": micro_batch}), tmp_path / str(micro_batch))
        lines = [line for line in read_metrics(tmp_path / str(micro_batch)) if "loss" in line]
        for name in ("loss", "gradient_norm"):
            assert [line[name] for line in lines[:2]] == pytest.approx([line[name] for line in expected[:2]], rel=2e-6)
        assert [line["loss"] for line in lines] == pytest.approx([line["loss"] for line in expected], abs=2e-5)


def test_the_cosine_schedule(settings: Settings, tmp_path: Path) -> None:
    assert [cosine(update, 4, 11) for update in (1, 4, 8)] == pytest.approx([0.25, 1.0, 0.5])
    assert 0 < cosine(11, 4, 11) < 0.1
    chosen = settings.model_copy(update={"schedule": "cosine"})
    run(chosen, tmp_path / "run")
    rates = [line["learning_rate"] for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert rates == [chosen.learning_rate * cosine(update, chosen.warmup, chosen.steps) for update in range(1, 9)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorboard's own
def test_tensorboard_gets_what_the_metrics_have(settings: Settings, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run(settings, tmp_path / "run", log_to="tensorboard")
    found = {}
    for file in (tmp_path / "run" / "logs").rglob("events*"):
        accumulated = events.EventAccumulator(str(file.parent))
        accumulated.Reload()
        for tag in accumulated.Tags()["scalars"]:
            found[tag] = [(event.step, event.value) for event in accumulated.Scalars(tag)]
    expected = [(line["step"], line["loss"]) for line in read_metrics(tmp_path / "run") if "loss" in line]
    assert [step for step, _ in found["loss"]] == [step for step, _ in expected]
    assert [value for _, value in found["loss"]] == pytest.approx([value for _, value in expected], rel=1e-6)
    assert len(found["valid_loss"]) == 3


# --- launchers --------------------------------------------------------------------------------------------------------

FSDP = """\
distributed_type: FSDP
fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: true, fsdp_activation_checkpointing: true}
use_cpu: true
num_processes: 2
num_machines: 1
machine_rank: 0
mixed_precision: 'no'
"""


def words(settings: Settings, out: Path) -> list[str]:
    given = ["--encoding", settings.encoding, "--corpus", settings.corpus, "--preset", "tiny", "--evaluate-every", "3"]
    given += ["--save-every", str(settings.save_every), "--steps", str(settings.steps)]
    return ["-m", "farfield", "train", *given, "--out", str(out), "--log-to", "none", "--quiet"]


@pytest.mark.long
def test_accelerate_launch_with_a_configuration_divides_the_model(
    settings: Settings, plain: Path, tmp_path: Path
) -> None:
    (tmp_path / "fsdp.yaml").write_text(FSDP)
    launch = [sys.executable, "-W", "ignore", "-m", "accelerate.commands.launch", "--config_file", "fsdp.yaml"]
    done = subprocess.run([*launch, *words(settings, tmp_path / "run")], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "run" / "checkpoints" / "step-00000008").glob("shard-*"))) == 2
    losses = [[line["loss"] for line in read_metrics(one) if "loss" in line] for one in (plain, tmp_path / "run")]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("shard", [False, True])
def test_torchrun_starts_again_when_a_process_is_killed(settings: Settings, tmp_path: Path, shard: bool) -> None:
    longer = settings.model_copy(update={"steps": 300, "save_every": 20})
    run(longer, tmp_path / "alone")
    launch = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "torch.distributed.run",
        "--nproc-per-node",
        "2",
        "--max-restarts",
        "3",
    ]
    options = ["--shard"] if shard else []
    with (tmp_path / "said").open("w") as said:
        process = subprocess.Popen([*launch, *words(longer, tmp_path / "run"), *options], stdout=said, stderr=said)
        while process.poll() is None and len(read_metrics(tmp_path / "run")) < 60:
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[-1]), signal.SIGKILL)
        status = process.wait()
    told = (tmp_path / "said").read_text()
    assert status == 0, told
    assert "Going on from step" in told
    losses = [[line["loss"] for line in read_metrics(tmp_path / one) if "loss" in line] for one in ("alone", "run")]
    assert len(losses[1]) == 300
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
    assert json.loads((tmp_path / "run" / "finished.json").read_text())["step"] == 300
