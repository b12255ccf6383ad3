"""The 14-length sweep of the paper against BLOOM of the same size in transformers; windowed attention against sliding.

    python benchmarks/evaluation.py [--tokens 20000] [--sample 2048] [--model RUN]

Both models have the size of `paper-wikitext` (6 layers, 512 wide, 8 heads, 50,265 words), ALiBi and random weights, and
score the same random tokens in chunks that do not overlap. Each has a process of its own, one thread, and they take
turns. The clock starts after a warm-up; memory is the highest that the measured part reaches above what the process
held before it (the weights are in both). Wall time and processor time are both kept: the first is what a person waits
for, the second depends little on who else uses the machine.

--sample: of each length, time only whole chunks of at least so many tokens together, and scale up to --tokens.

--model: a trained run, for the perplexities of the second part; without it, only times are compared there.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LENGTHS = [512, 768, 1024, 1280, 1536, 1792, 2048, 3072, 4096, 5120, 6144, 7168, 8192, 9216]
DOCS = Path(__file__).parent.parent / "docs" / "benchmarks"
SIZE = {"vocab_size": 50_265, "hidden_size": 512}


def memory(field: str) -> int:
    """A field of /proc/self/status in bytes: VmRSS now, VmHWM the highest since the last reset."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def reset_highest() -> None:
    Path("/proc/self/clear_refs").write_text("5")


class Clock:
    """Wall time, processor time and the highest memory of a block, above what the process held at its first block."""

    before = 0

    def __enter__(self) -> Clock:
        reset_highest()
        Clock.before = Clock.before or memory("VmRSS")
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.cpu_seconds = time.perf_counter() - self.wall, time.process_time() - self.cpu
        self.memory = memory("VmHWM") - self.before

    def json(self) -> dict[str, float]:
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "memory": self.memory}


def our_model() -> Any:
    import torch

    from farfield.measure.models import as_model
    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    torch.manual_seed(0)
    config = FarfieldConfig(**SIZE, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048)
    return as_model(FarfieldForCausalLM(config), "ours")


def bloom() -> Any:
    import torch
    from transformers import BloomConfig, BloomForCausalLM

    torch.manual_seed(0)
    return BloomForCausalLM(BloomConfig(**SIZE, n_layer=6, n_head=8)).eval()


def random_tokens(count: int) -> Any:
    import numpy as np

    return np.random.default_rng(0).integers(0, SIZE["vocab_size"], count + 1)


def sweep_ours() -> Any:
    from farfield.measure.protocols import non_overlapping, token_losses

    model = our_model()

    def measured(length: int, tokens: int) -> dict[str, float]:
        ids = random_tokens(tokens)
        with Clock() as clock:
            losses = token_losses(model, ids, non_overlapping(tokens, length))
        return {**clock.json(), "loss": float(losses.mean())}

    measured(256, 256)
    return measured


def whole_sweep(_: int, tokens: int) -> dict[str, float]:
    """All 14 lengths as `farfield evaluate` measures them: chunks that start at the same token share their work."""
    from farfield.measure import Text
    from farfield.measure.perplexity import evaluate
    from farfield.measure.protocols import non_overlapping, token_losses

    model, ids = our_model(), random_tokens(tokens)
    with Clock():
        token_losses(model, ids[:257], non_overlapping(256, 256))
    with Clock() as clock:
        evaluate(model, Text(ids, {}), LENGTHS, protocols=["non-overlapping"])
    return clock.json()


def sweep_bloom() -> Any:
    """The loop that everyone writes: chunk after chunk through the model, with labels."""
    import torch

    model = bloom()

    @torch.inference_mode()
    def measured(length: int, tokens: int) -> dict[str, float]:
        ids, total = torch.from_numpy(random_tokens(tokens)), 0.0
        with Clock() as clock:
            for start in range(0, tokens, length):
                stop = min(start + length, tokens)
                chunk, after = ids[None, start:stop], ids[None, start + 1 : stop + 1]
                loss = model(chunk, labels=chunk, shift_labels=after, use_cache=False).loss
                total += float(loss) * (stop - start)
        return {**clock.json(), "loss": total / tokens}

    measured(256, 256)
    return measured


def windowed(length: int, tokens: int) -> dict[str, float]:
    """Windowed attention with w = 512, one pass over the text (in chunks of 9216 tokens)."""
    from farfield.measure.protocols import non_overlapping, token_losses

    model, ids = our_model(), random_tokens(tokens)
    token_losses(model, ids[:257], non_overlapping(256, 256))
    with Clock() as clock:
        token_losses(model, ids, non_overlapping(tokens, 9216), length)
    return {**clock.json(), "tokens": tokens}


def slid(length: int, tokens: int) -> dict[str, float]:
    """Sliding window inference, stride 1, every window of 512 read anew: the time of `tokens` windows."""
    from farfield.measure.protocols import sliding, token_losses

    model, ids = our_model(), random_tokens(tokens + length)
    token_losses(model, ids[:257], sliding(256, 256, 1))
    with Clock() as first:
        token_losses(model, ids[: length + 1], sliding(length, length, 1))
    with Clock() as clock:
        token_losses(model, ids, sliding(tokens + length, length, 1))
    found = {name: value - first.json()[name] for name, value in clock.json().items()}
    return {**found, "memory": clock.memory, "tokens": tokens}


def perplexities(run: str, window: int, tokens: int) -> dict[str, Any]:
    """What a trained model gives by each protocol, on the same tokens."""
    from farfield.measure.loading import load_model, load_text
    from farfield.measure.perplexity import measure
    from farfield.measure.results import Trial

    model = load_model(run)
    text = load_text(model, tokens=tokens)
    full = text.span
    tasks = {
        "sliding": Trial(window, "sliding", stride=1),
        "windowed": Trial(full, "windowed", window=window),
        "non_overlapping": Trial(window, "non-overlapping"),
        "full": Trial(full, "non-overlapping"),
    }
    rows = {name: measure(model, text.ids, task) for name, task in tasks.items()}
    table = {name: {"perplexity": row.perplexity, "seconds": row.seconds} for name, row in rows.items()}
    return {"window": window, "tokens": full, "training_length": model.training_length, **table}


CHILDREN = {"whole": whole_sweep, "windowed": windowed, "sliding": slid}


def child(given: dict[str, Any]) -> None:
    """Measure once, or, for the sweep, whenever a line with a length and a number of tokens comes in."""
    import torch

    torch.set_num_threads(1)
    if given["who"] == "perplexities":
        print(json.dumps(perplexities(given["run"], given["length"], given["tokens"])), flush=True)
    elif given["who"] in CHILDREN:
        print(json.dumps(CHILDREN[given["who"]](given["length"], given["tokens"])), flush=True)
    else:
        measured = sweep_ours() if given["who"] == "ours" else sweep_bloom()
        for line in sys.stdin:
            print(json.dumps(measured(*json.loads(line))), flush=True)


class Waiting:
    """A process with a model that measures a length whenever it is asked to."""

    def __init__(self, who: str) -> None:
        command = [sys.executable, __file__, "--child", json.dumps({"who": who})]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread()
        )

    def measure(self, length: int, tokens: int) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([length, tokens]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def one_thread() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def run(who: str, length: int, tokens: int, **more: Any) -> dict[str, Any]:
    order = json.dumps({"who": who, "length": length, "tokens": tokens, **more})
    done = subprocess.run(
        [sys.executable, __file__, "--child", order], capture_output=True, text=True, check=False, env=one_thread()
    )
    if done.returncode:
        raise SystemExit(f"{who} at {length} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> str:
    import torch
    import transformers

    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return (
        f"{model[1] if model else platform.processor()}, 1 thread; torch {torch.__version__}, "
        f"transformers {transformers.__version__}, Python {platform.python_version()}"
    )


def save(result: dict[str, Any]) -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / "evaluation.json").write_text(json.dumps(result, indent=1) + "\n")
    (DOCS / "evaluation.md").write_text(report(result))


def report(result: dict[str, Any]) -> str:
    lines = [
        "# Evaluation: the 14-length sweep, and windowed attention",
        "",
        f"`{result['command']}`, {result['date']}, {result['machine']}.",
        "",
        f"The size of `paper-wikitext`, ALiBi, random weights, {result['tokens']:,} random tokens, one thread, "
        "ours and BLOOM (transformers) in turn, each in its own process. Memory is what the measurement",
        "adds to the process. The machine was shared with other work, so processor time is the fairer number.",
        *([result["remark"]] if "remark" in result else []),
        *(
            [
                f"Of each length, whole chunks of at least {result['sample']:,} tokens together were timed and scaled "
                f"up to {result['tokens']:,} tokens; the last, shorter chunk of a length is thus counted as if it cost "
                "as much for each token as a whole one, which adds about 3 % to BLOOM's sum. The whole sweep below was "
                "run in full."
            ]
            if result.get("sample")
            else []
        ),
        "",
        "| length | ours, CPU s | BLOOM, CPU s | ratio | ours, clock s | BLOOM, clock s | ratio |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in result["sweep"]:
        a, b = row["ours"], row["bloom"]
        lines.append(
            f"| {row['length']} | {a['cpu_seconds']:.1f} | {b['cpu_seconds']:.1f} "
            f"| {b['cpu_seconds'] / a['cpu_seconds']:.2f} "
            f"| {a['seconds']:.0f} | {b['seconds']:.0f} | {b['seconds'] / a['seconds']:.2f} |"
        )
    if "summary" in result:
        s = result["summary"]
        lines += [
            "",
            f"Whole sweep, as `farfield evaluate` does it: {s['cpu_ratio']:.2f} times faster than BLOOM by processor "
            f"time ({result['whole']['cpu_seconds']:.0f} s); at 9,216 "
            f"tokens {s['memory_ratio']:.1f} times less memory ({result['sweep'][-1]['ours']['memory'] / 1e6:.0f} MB "
            f"against {result['sweep'][-1]['bloom']['memory'] / 1e6:.0f} MB).",
            "",
            "Chunks of different lengths that start at the same token share their work there (the model is causal); "
            f"the table shows each length by itself, which adds up to {s['unshared_cpu_ratio']:.2f} times.",
        ]
    if "window" in result:
        w = result["window"]
        lines += [
            "",
            "## Windowed attention (w = 512) against sliding window inference (stride 1)",
            "",
            f"Time of one scored token: sliding {1e3 * w['sliding']:.1f} ms, windowed {1e3 * w['windowed']:.2f} ms: "
            f"**{w['ratio']:.0f} times** (processor time {w['cpu_ratio']:.0f}). The paper reports 44.35 for sliding "
            "against non-overlapping, averaged over windows of 16 to 512.",
        ]
    if "perplexities" in result:
        p = result["perplexities"]
        lines += [
            "",
            f"Perplexities of a trained model (`{result['run']}`, training length {p['training_length']}) on "
            f"{p['tokens']:,} tokens of its test text, w = {p['window']}: sliding {p['sliding']['perplexity']:.3f} "
            f"({p['sliding']['seconds']:.1f} s), windowed attention {p['windowed']['perplexity']:.3f} "
            f"({p['windowed']['seconds']:.1f} s), non-overlapping {p['non_overlapping']['perplexity']:.3f} "
            f"({p['non_overlapping']['seconds']:.1f} s), full length {p['full']['perplexity']:.3f} "
            f"({p['full']['seconds']:.1f} s).",
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--sample", type=int, help="tokens to time of each length; all unless given")
    parser.add_argument("--windows", type=int, default=48, help="windows of the sliding measurement")
    parser.add_argument("--model", help="a trained run, for perplexities")
    parser.add_argument("--only", choices=["sweep", "window", "perplexities"], nargs="+")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(json.loads(given.child))
        return
    parts = given.only or ["sweep", "window", *(["perplexities"] if given.model else [])]
    kept = DOCS / "evaluation.json"
    result: dict[str, Any] = json.loads(kept.read_text()) if given.only and kept.exists() else {}
    result |= {
        "command": "python benchmarks/evaluation.py",
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "tokens": given.tokens,
        "sample": given.sample,
    }
    if "window" in parts:
        slow, fast = run("sliding", 512, given.windows), run("windowed", 512, 9216 if given.sample else given.tokens)
        each = {name: (slow[name] / slow["tokens"], fast[name] / fast["tokens"]) for name in ("seconds", "cpu_seconds")}
        result["window"] = {
            "sliding": each["seconds"][0],
            "windowed": each["seconds"][1],
            "ratio": each["seconds"][0] / each["seconds"][1],
            "cpu_ratio": each["cpu_seconds"][0] / each["cpu_seconds"][1],
        }
        print(f"sliding / windowed at w = 512: {result['window']['ratio']:.0f} times", flush=True)
    if "perplexities" in parts:
        result["run"] = Path(given.model).name
        result["perplexities"] = run("perplexities", 512, 4608, run=given.model)
        print(json.dumps(result["perplexities"]), flush=True)
    if "sweep" in parts:
        kept_rows = {row["length"]: row for row in result.get("sweep", [])} if given.only else {}
        rivals = {"ours": Waiting("ours"), "bloom": Waiting("bloom")}
        for length in sorted(given.lengths, reverse=True):  # the longest first, in fresh processes
            timed = given.tokens if given.sample is None else length * -(-given.sample // length)
            row: dict[str, Any] = {"length": length, "timed_tokens": timed}
            for who, rival in rivals.items():
                found = rival.measure(length, timed)
                row[who] = {**found, **{x: found[x] * given.tokens / timed for x in ("seconds", "cpu_seconds")}}
            kept_rows[length] = row
            result["sweep"] = [kept_rows[n] for n in sorted(kept_rows)]
            a, b = row["ours"], row["bloom"]
            print(
                f"{length}: ours {a['cpu_seconds']:.1f} s, BLOOM {b['cpu_seconds']:.1f} s, "
                f"ratio {b['cpu_seconds'] / a['cpu_seconds']:.2f} (clock {b['seconds'] / a['seconds']:.2f}); memory "
                f"{a['memory'] / 1e6:.0f} and {b['memory'] / 1e6:.0f} MB",
                flush=True,
            )
            save(result)
        result["whole"] = run("whole", 0, given.tokens)
        rows = result["sweep"]
        times = ("seconds", "cpu_seconds")
        total = {who: {x: sum(r[who][x] for r in rows) for x in times} for who in ("ours", "bloom")}
        result["summary"] = {
            "seconds_ratio": total["bloom"]["seconds"] / result["whole"]["seconds"],
            "cpu_ratio": total["bloom"]["cpu_seconds"] / result["whole"]["cpu_seconds"],
            "unshared_cpu_ratio": total["bloom"]["cpu_seconds"] / total["ours"]["cpu_seconds"],
            "memory_ratio": rows[-1]["bloom"]["memory"] / rows[-1]["ours"]["memory"],
        }
        print(
            f"sweep: {result['summary']['cpu_ratio']:.2f} times faster "
            f"(clock {result['summary']['seconds_ratio']:.2f}), "
            f"{result['summary']['memory_ratio']:.1f} times less memory at {rows[-1]['length']}; {machine()}"
        )
    save(result)


if __name__ == "__main__":
    main()
