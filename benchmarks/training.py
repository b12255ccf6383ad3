"""Training steps of our decoder against a GPT-2 and a BLOOM, what the loop costs, and the memory of a long evaluation.

All models of a size take turns in one process with one thread: a step of ours, one of GPT-2, one of BLOOM, and again.
A step is forward, backward and the update by the same fused AdamW, with dropout 0.1 on the residual branches. What is
compared is the median of the processor time of the process (with one thread, nearly the time on an idle machine; it
does not count the time that other programs take). GPT-2 has no relative bias; BLOOM has ALiBi, as ours here.

The loops (training_loops.py): ours, the one before it, a bare loop, GPT-2 and BLOOM, with one and two threads, at three
lengths. Parts that are not asked for keep their last figures when it is saved. Each row of the loops is saved when it
is there, and a second call goes on where the first was ended.

    python benchmarks/training.py [--parts models,loops,memory] [--steps 40] [--json] [--save docs/benchmarks]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import training_loops as loops

ROWS = {"3x128": 32, "paper-wikitext": 2}  # samples in a step
SHAPES = {  # 3 layers, 128 wide; and the paper's on WikiText-103
    "3x128": {"vocabulary": 2048, "layers": 3, "width": 128, "heads": 4, "feed_forward": 512, "length": 64},
    "paper-wikitext": {
        "vocabulary": 50_265,
        "layers": 6,
        "width": 512,
        "heads": 8,
        "feed_forward": 2048,
        "length": 512,
    },
}
LONG = 9216  # 18 times 512
RIVALS = {"gpt2": ("GPT-2", 1.0), "bloom": ("BLOOM", 1.5)}  # and how many times as fast we want to be


def peak_memory() -> int:
    """The most main memory that this program has had, in bytes, as Linux knows it."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0])


def model_of(kind: str, shape: dict[str, Any]) -> Any:
    """A model of this kind of this shape, with fresh weights."""
    import torch
    from transformers import BloomConfig, BloomForCausalLM, GPT2Config, GPT2LMHeadModel

    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    torch.manual_seed(0)
    words, width, layers, heads = shape["vocabulary"], shape["width"], shape["layers"], shape["heads"]
    common = {"vocab_size": words, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        sizes = {"n_positions": shape["length"], "n_embd": width, "n_layer": layers, "n_head": heads}
        return GPT2LMHeadModel(GPT2Config(**sizes, **common, n_inner=shape["feed_forward"], attn_pdrop=0.0))
    if kind == "bloom":
        assert shape["feed_forward"] == 4 * width  # BLOOM's own ratio
        sizes = {"hidden_size": width, "n_layer": layers, "n_head": heads}
        return BloomForCausalLM(BloomConfig(**sizes, **common, hidden_dropout=0.1, attention_dropout=0.0))
    return FarfieldForCausalLM(
        FarfieldConfig(
            vocab_size=words,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=shape["feed_forward"],
            encoding="alibi",
        )
    )


def time_size(size: str, repeats: int) -> dict[str, Any]:
    """The seconds of a step of each model, taking turns."""
    import torch

    from farfield.nn.denormals import flush_denormals

    torch.set_num_threads(1)
    shape = SHAPES[size]
    ids = torch.randint(shape["vocabulary"], (ROWS[size], shape["length"]), generator=torch.Generator().manual_seed(1))
    models = {kind: model_of(kind, shape).train() for kind in ("ours", *RIVALS)}
    optimizers = {kind: torch.optim.AdamW(m.parameters(), lr=1e-4, fused=True) for kind, m in models.items()}
    seeds = {"ours": {"sample_seeds": torch.arange(len(ids))}}  # our dropout is drawn for each sample: count that too
    taken: dict[str, list[float]] = {kind: [] for kind in models}
    with flush_denormals():
        for _ in range(repeats + 1):
            for kind, model in models.items():
                start = time.process_time()
                model(input_ids=ids, labels=ids, use_cache=False, **seeds.get(kind, {})).loss.backward()
                optimizers[kind].step()
                optimizers[kind].zero_grad()
                taken[kind].append(time.process_time() - start)
    seconds = {kind: statistics.median(times[1:]) for kind, times in taken.items()}  # the first touches memory
    return {
        "size": size,
        "shape": shape,
        "tokens": ids.numel(),
        "parameters": {kind: sum(p.numel() for p in model.parameters()) for kind, model in models.items()},
        "tokens_per_second": {kind: round(ids.numel() / t, 1) for kind, t in seconds.items()},
        "ratio": {kind: round(seconds[kind] / seconds["ours"], 3) for kind in RIVALS},
    }


def long_evaluation() -> dict[str, Any]:
    """The peak memory of a process that evaluates `paper-wikitext` at 18 times its length, in a process of its own."""
    code = f"import runpy; runpy.run_path({__file__!r})['evaluate_long']()"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def evaluate_long() -> None:
    """What that process does: random weights, one sample of 9,216 tokens, its loss; prints the peak memory."""
    import torch

    torch.set_num_threads(1)
    shape = SHAPES["paper-wikitext"]
    model = model_of("ours", shape).eval()
    loaded = peak_memory()
    ids = torch.randint(shape["vocabulary"], (1, LONG))
    with torch.no_grad():
        loss = model(input_ids=ids, labels=ids).loss.item()
    print(json.dumps({"tokens": LONG, "peak_bytes": peak_memory(), "before_bytes": loaded, "loss": loss}))


def machine() -> dict[str, Any]:
    import torch
    import transformers

    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = {line.split(":")[1].strip() for line in lines if line.startswith("model name")}
    return {
        "processor": ", ".join(names) or platform.processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def lines_of(results: dict[str, Any]) -> list[str]:
    """One line for each comparison: ours, the rival, the ratio, what was wanted."""
    lines = []
    for found in results["training"]:
        speed = found["tokens_per_second"]
        for kind, (name, wanted) in RIVALS.items():
            ratio = found["ratio"][kind]
            verdict = "reached" if ratio >= wanted else "NOT reached"
            lines.append(
                f"{found['size']}: ours {speed['ours']:,.0f} tokens/s, {name} {speed[kind]:,.0f} tokens/s, "
                f"ratio {ratio:.2f} (wanted {wanted:.1f}: {verdict})"
            )
    if memory := results.get("long_evaluation"):
        peak = memory["peak_bytes"] / 1e9
        lines.append(
            f"paper-wikitext evaluated at n = {LONG}: peak memory of the process {peak:.2f} GB "
            f"(wanted below 2: {'reached' if peak < 2 else 'NOT reached'})"
        )
    return lines


PARTS = {"models": "training", "loops": "loops", "memory": "long_evaluation"}


def measured(part: str, options: argparse.Namespace, before: Any) -> Iterator[Any]:
    """The figures of one part, as they grow."""
    if part == "memory":
        yield long_evaluation()
    elif part == "models":
        yield [time_size(size, options.repeats) for size in options.sizes.split(",")]
    else:
        yield from loop_rows(options, before or [])


def loop_rows(options: argparse.Namespace, before: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The rows of the loops, after each that is new; those that were measured of this very source stay."""
    places = [(threads, length) for threads in loops.THREADS for length in loops.LENGTHS]
    rows = {(row["threads"], row["length"]): row for row in before}
    for place in places:
        known = rows.get(place, {})
        if known.get("source") != loops.source_tree() or known.get("steps", 0) < options.steps:
            rows[place] = loops.time_loops(*place, options.steps)
            print(loops.table([rows[place]])[-1], file=sys.stderr, flush=True)
            yield [rows[place] for place in places if place in rows]


def page(results: dict[str, Any]) -> str:
    """The page of the documentation."""
    text = ["# Training steps, the loop, and the memory of a long evaluation", (__doc__ or "").split("\n\n")[1]]
    text.append("\n".join(f"- {line}" for line in lines_of(results)))
    if results.get("loops"):
        text += ["## The loop", (loops.__doc__ or "").split("\n\n", 1)[1].strip()]
        text.append("\n".join(loops.table(results["loops"])))
        worst = min(row["ratio"]["bare"] for row in results["loops"])
        text.append(f"Tokens a second of processor time. The least of new / bare is {worst:.3f} (wanted 0.97).")
    for part, key in PARTS.items():
        if about := results["measured"].get(key):
            text.append(f"{part}: " + ", ".join(f"{name} {value}" for name, value in about.items()) + ".")
    return "\n\n".join([*text, "Made by `python benchmarks/training.py --save docs/benchmarks`."]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--sizes", default=",".join(ROWS))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"threads": 1, "training": [], "measured": {}}
    if options.save and (options.save / "training.json").exists():
        results |= json.loads((options.save / "training.json").read_text())
    for part in options.parts.split(","):
        for figures in measured(part, options, results.get(PARTS[part])):
            results[PARTS[part]] = figures
            results["measured"][PARTS[part]] = machine()
            if options.save:
                (options.save / "training.md").write_text(page(results))
                (options.save / "training.json").write_text(json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1) if options.json else page(results))


if __name__ == "__main__":
    main()
