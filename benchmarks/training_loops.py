"""What the training loop costs beside the arithmetic: ours, the one before it, a bare loop, GPT-2 and BLOOM.

The loops train the same model on the same samples. A bare loop is forward, backward, clip, step, and nothing else: no
checkpoints, metrics, signals or agreement among processes. The loop before (commit e4b7305, on transformers' Trainer)
is taken from the repository's history and runs in a process of its own, because both packages have one name; all others
take turns in one process. A step is timed from the end of one optimizer step to the end of the next, by the processor
time of the process; the figure is the fastest round's median. The weights at the end are compared to the bit.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OLD = "e4b7305"
TOKENS = 2048  # in an update
LENGTHS, THREADS = (64, 512, 2048), (1, 2)
SHAPE = {"layers": 3, "width": 128, "heads": 4, "feed_forward": 512, "vocabulary": 257}
NAMES = {"old": "old loop", "new": "new loop", "bare": "bare loop", "gpt2": "GPT-2", "bloom": "BLOOM"}


def changes(length: int, steps: int, tokenizer: str) -> dict[str, Any]:
    """What is different from the preset `tiny`, whose sizes are the same in both packages."""
    rare = {
        "save_every": 10_000,
        "evaluate_every": 10_000,
        "log_every": 10,
        "evaluate_tokens": length,
        "limit": 300_000,
    }
    return {
        "encoding": "alibi", tokenizer: "bytes", "length": length, "batch": TOKENS // length,
        "steps": steps, **SHAPE, **rare,
    }  # fmt: skip


class Stopwatch:
    """Notes the processor time after every step of any optimizer."""

    def __init__(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.moments: list[float] = []
        register_optimizer_step_post_hook(lambda *_: self.moments.append(time.process_time()))

    def seconds(self, work: Callable[[], Any]) -> float:
        """The median time of a step of some work; the first two touch memory."""
        self.moments.clear()
        work()
        return statistics.median(after - before for before, after in itertools.pairwise(self.moments[2:]))


def old_child(threads: int, length: int, steps: int, rounds: int, home: str) -> dict[str, Any]:
    """In a process whose `farfield` is the old one."""
    import torch
    from farfield.presets import preset_settings  # type: ignore[import-not-found]

    from farfield.training import train  # type: ignore[attr-defined]

    torch.set_num_threads(threads)
    watch, settings = Stopwatch(), preset_settings("tiny", corpus="python", **changes(length, steps, "tokeniser"))

    def run(number: int) -> None:
        train(settings, Path(home) / f"old-{number}", progress=False, log_to="none", say=lambda line: None)

    seconds = min(watch.seconds(lambda number=number: run(number)) for number in range(rounds))
    return {"seconds": {"old": seconds}, "weights": {"old": file_digest(Path(home) / "old-0")}}


def new_child(threads: int, length: int, steps: int, rounds: int, home: str) -> dict[str, Any]:
    """All but the old loop, taking turns."""
    import torch

    from farfield.nn.denormals import flush_denormals
    from farfield.training.run import train
    from farfield.training.settings import preset_settings

    torch.set_num_threads(threads)
    watch, settings = Stopwatch(), preset_settings("tiny", corpus="python", **changes(length, steps, "tokenizer"))
    taken: dict[str, list[float]] = {kind: [] for kind in NAMES if kind != "old"}
    weights: dict[str, str] = {}
    for number in range(rounds):
        run = Path(home) / f"new-{number}"
        taken["new"].append(
            watch.seconds(lambda: train(settings, run, progress=False, log_to="none", say=lambda line: None))  # noqa: B023
        )
        with flush_denormals():
            taken["bare"].append(watch.seconds(lambda: weights.update(bare=bare_loop(settings))))
            for kind in ("gpt2", "bloom"):
                taken[kind].append(watch.seconds(lambda: rival_loop(kind, settings)))  # noqa: B023
    weights["new"] = file_digest(Path(home) / "new-0")
    return {"seconds": {kind: min(times) for kind, times in taken.items()}, "weights": weights}


def bare_loop(settings: Any) -> str:
    """Forward, backward, clip, step; a digest of the weights."""
    import torch

    from farfield.data.samples import Samples
    from farfield.nn.decoder.model import FarfieldForCausalLM
    from farfield.training.assembly import model_config, optimizer_of
    from farfield.training.schedule import learning_rate
    from farfield.training.text import read_text

    tokenizer, tokens = read_text(settings, progress=False)
    samples = Samples(tokens["train"], settings.length, settings.seed, "train")
    config = model_config(settings, tokenizer, tokens)
    torch.manual_seed(settings.seed)
    model = FarfieldForCausalLM(config).train()
    optimizer = optimizer_of(model, settings)
    for step in range(settings.steps):
        rows = [samples[number] for number in range(step * settings.batch, (step + 1) * settings.batch)]
        batch = {name: torch.stack([torch.as_tensor(row[name]) for row in rows]) for name in rows[0]}
        model(**batch, use_cache=False).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings, step + 1)
        optimizer.step()
        optimizer.zero_grad()
    return digest({name: value.numpy().tobytes() for name, value in model.state_dict().items()})


def rival_loop(kind: str, settings: Any) -> None:
    """The bare loop with another model of the same sizes, on tokens of no meaning."""
    import torch
    from training import model_of

    model = model_of(kind, settings.model_dump()).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    draw = torch.Generator().manual_seed(1)
    for _ in range(settings.steps):
        ids = torch.randint(settings.vocabulary, (settings.batch, settings.length), generator=draw)
        model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        optimizer.zero_grad()


def digest(tensors: dict[str, bytes]) -> str:
    """Of all weights, by name."""
    whole = hashlib.sha256()
    for name in sorted(tensors):
        whole.update(name.encode() + tensors[name])
    return whole.hexdigest()[:16]


def file_digest(run: Path) -> str:
    from safetensors.numpy import load_file

    return digest({name: value.tobytes() for name, value in load_file(run / "model.safetensors").items()})


def old_source(folder: Path) -> Path | None:
    """The old package, from the history; None where the history does not reach back so far."""
    archive = subprocess.run(["git", "archive", OLD, "src"], cwd=Path(__file__).parent.parent, capture_output=True)
    if archive.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as packed:
        packed.extractall(folder, filter="data")
    return folder / "src"


def time_loops(threads: int, length: int, steps: int, rounds: int) -> dict[str, Any]:
    """One row: tokens a second of each, and the ratios that matter."""
    with tempfile.TemporaryDirectory() as home:
        answers = []
        for kind in ("new_child", "old_child"):
            source = old_source(Path(home)) if kind == "old_child" else None
            if kind == "old_child" and source is None:
                continue
            call = f"t.{kind}({threads}, {length}, {steps}, {rounds}, {home!r})"
            code = f"import json, training_loops as t; print(json.dumps({call}))"
            paths = [str(Path(__file__).parent), *([str(source)] if source else []), os.environ.get("PYTHONPATH", "")]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "FARFIELD_CACHE": home}
            environment |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True
            )
            if done.returncode:
                raise RuntimeError(done.stderr)
            answers.append(json.loads(done.stdout.splitlines()[-1]))
    seconds = {kind: value for answer in answers for kind, value in answer["seconds"].items()}
    weights = {kind: value for answer in answers for kind, value in answer["weights"].items()}
    return {
        "threads": threads,
        "length": length,
        "tokens_per_second": {kind: round(TOKENS / value, 1) for kind, value in seconds.items()},
        "ratio": {kind: round(value / seconds["new"], 3) for kind, value in seconds.items() if kind != "new"},
        "weights": weights,
    }


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as Markdown."""
    lines = ["| threads | length | " + " | ".join(NAMES.values()) + " | new / bare | new / old | same weights |"]
    lines.append("| ---: | ---: |" + " ---: |" * (len(NAMES) + 2) + " --- |")
    for row in rows:
        speed, ratio = row["tokens_per_second"], row["ratio"]
        cells = [f"{speed[kind]:,.0f}" if kind in speed else "-" for kind in NAMES]
        same = "yes" if len(set(row["weights"].values())) == 1 else "NO"
        compared = [f"{ratio[kind]:.3f}" if kind in ratio else "-" for kind in ("bare", "old")]
        lines.append(f"| {row['threads']} | {row['length']} | " + " | ".join([*cells, *compared, same]) + " |")
    return lines
