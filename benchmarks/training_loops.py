"""What the training loop costs beside the arithmetic: ours, the one before it, a bare loop, GPT-2 and BLOOM.

The loops train the same model on the same samples. A bare loop is forward, backward, clip, step, and nothing else: no
checkpoints, metrics, signals or agreement among processes. The loop before (commit e4b7305, on transformers' Trainer)
is taken from the repository's history. Each loop runs in a process of its own, and they take turns: one step of each,
again and again, so that all see the same machine. A step is timed from the end of one optimizer step to the end of the
next, by the processor time of its process; a ratio is the median over the turns. The weights at the end are compared to
the bit. "new = bare": the old loop ends in other last bits, through attention and not through the loop: short texts
take one call with a kept mask (64 tokens), and the proof of which keys may be skipped counts values of very different
sizes, so that a few keys more are read (2,048 tokens; with `skip=False` old and new attention agree to the bit).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

OLD = "e4b7305"
TOKENS = 2048  # in an update
LENGTHS, THREADS = (64, 512, 2048), (1, 2)
SHAPE = {"layers": 3, "width": 128, "heads": 4, "feed_forward": 512, "vocabulary": 257}
NAMES = {"old": "old loop", "new": "new loop", "bare": "bare loop", "gpt2": "GPT-2", "bloom": "BLOOM"}
MARK = "turn: "  # before what a loop tells its parent


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


class Turns:
    """Tells the parent the processor time of every step of any optimizer, and waits until it is this process's turn."""

    def __init__(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self.began: float | None = None
        register_optimizer_step_post_hook(self._wait)

    def _wait(self, optimizer: Any, *_: Any) -> None:
        taken = None if self.began is None else time.process_time() - self.began
        tell({"optimizer": id(optimizer), "seconds": taken})
        sys.stdin.readline()
        self.began = time.process_time()


def tell(what: dict[str, Any]) -> None:
    print(MARK + json.dumps(what), flush=True)


def child(kind: str, threads: int, length: int, steps: int, home: str) -> None:
    """One of the loops, in a process of its own, which stops after every step until the parent lets it go on."""
    import torch

    torch.set_num_threads(threads)
    if kind == "old":
        from farfield.presets import preset_settings  # type: ignore[import-not-found]

        from farfield.training import train  # type: ignore[attr-defined]
    else:
        from farfield.nn.denormals import flush_denormals
        from farfield.training.run import train
        from farfield.training.settings import preset_settings
    name = "tokeniser" if kind == "old" else "tokenizer"
    settings = preset_settings("tiny", corpus="python", **changes(length, steps, name))
    Turns()
    weights = None
    if kind in ("old", "new"):
        run = Path(home) / kind
        train(settings, run, progress=False, log_to="none", say=lambda line: None)
        weights = file_digest(run)
    else:
        with flush_denormals():
            weights = bare_loop(settings) if kind == "bare" else rival_loop(kind, settings)
    tell({"weights": weights})


def bare_loop(settings: Any) -> str:
    """Forward, backward, clip, step; a digest of the weights."""
    import torch

    from farfield.data.samples import Samples
    from farfield.nn.decoder.model import FarfieldForCausalLM
    from farfield.training.loop import learning_rate
    from farfield.training.network import model_config, optimizer_of
    from farfield.training.run import read_text

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
    """A bare loop with another model of the same sizes, on tokens of no meaning."""
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


def start(kind: str, threads: int, length: int, steps: int, home: str) -> subprocess.Popen[str] | None:
    """The process of one loop."""
    source = old_source(Path(home)) if kind == "old" else None
    if kind == "old" and source is None:
        return None
    code = f"import training_loops as t; t.child({kind!r}, {threads}, {length}, {steps}, {home!r})"
    paths = [str(Path(__file__).parent), *([str(source)] if source else []), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "FARFIELD_CACHE": f"{home}/{kind}"}
    environment |= {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive", "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def next_word(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a loop tells next: the time of a step, or at its end its weights."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(MARK):
            return json.loads(line.removeprefix(MARK))
    raise RuntimeError(f"a loop ended with status {process.wait()}: {process.args}")


def time_loops(threads: int, length: int, steps: int) -> dict[str, Any]:
    """One row: tokens a second of each, and the ratios that matter, by the median over the turns."""
    with tempfile.TemporaryDirectory() as home:
        running = {kind: start(kind, threads, length, steps, home) for kind in NAMES}
        live = {kind: process for kind, process in running.items() if process is not None}
        said: dict[str, list[dict[str, Any]]] = {kind: [] for kind in live}
        weights: dict[str, str] = {}
        try:
            for kind, process in live.items():  # one after the other, to the end of their first step
                said[kind].append(next_word(process))
            while live:
                for kind, process in list(live.items()):
                    assert process.stdin is not None
                    process.stdin.write("\n")
                    process.stdin.flush()
                    told = next_word(process)
                    if "weights" in told:
                        weights |= {kind: told["weights"]} if told["weights"] else {}
                        del live[kind]
                    else:
                        said[kind].append(told)
        finally:
            for process in live.values():
                process.kill()
    # the measurement before a run has an optimizer of its own; the last is the run's; the first two steps touch memory
    steps_of = {
        kind: [told["seconds"] for told in words if told["optimizer"] == words[-1]["optimizer"]][2:]
        for kind, words in said.items()
    }
    seconds = {kind: statistics.median(times) for kind, times in steps_of.items()}
    ratio = {
        kind: statistics.median(theirs / ours for theirs, ours in zip(times, steps_of["new"], strict=False))
        for kind, times in steps_of.items()
        if kind != "new"
    }
    return {
        "threads": threads,
        "length": length,
        "steps": steps,
        "source": source_tree(),
        "load": round(os.getloadavg()[0], 2),
        "tokens_per_second": {kind: round(TOKENS / value, 1) for kind, value in seconds.items()},
        "ratio": {kind: round(value, 3) for kind, value in ratio.items()},
        "weights": weights,
    }


def source_tree() -> str:
    """Which source was measured: git's name of `src` as it is committed."""
    asked = ["git", "rev-parse", "HEAD:src"]
    return subprocess.run(asked, cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()[:12]


def table(rows: list[dict[str, Any]]) -> list[str]:
    """The rows as Markdown."""
    lines = ["| threads | length | " + " | ".join(NAMES.values()) + " | new / bare | new / old | same weights |"]
    lines.append("| ---: | ---: |" + " ---: |" * (len(NAMES) + 2) + " --- |")
    for row in rows:
        speed, ratio = row["tokens_per_second"], row["ratio"]
        cells = [f"{speed[kind]:,.0f}" if kind in speed else "-" for kind in NAMES]
        different = len(set(row["weights"].values()))
        same = "yes" if different == 1 else "new = bare" if row["weights"]["new"] == row["weights"]["bare"] else "NO"
        compared = [f"{ratio[kind]:.3f}" if kind in ratio else "-" for kind in ("bare", "old")]
        lines.append(f"| {row['threads']} | {row['length']} | " + " | ".join([*cells, *compared, same]) + " |")
    return lines
