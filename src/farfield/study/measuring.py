"""Measuring a trained model of a study: perplexity, receptive fields, delta(i, j), theory, the cost of inference."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

from farfield.study.plan import Cell

Report = Callable[[str, float, float], None]  # takes a phase, what is done of it, and of how much
EPSILONS = ("0.1", "0.01")


def measured(cell: Cell, run: Path, report: Report) -> dict[str, Any]:
    """Perplexity by length and protocol, receptive fields, delta(i, j), and what the theory says of each head."""
    import numpy as np

    from farfield.measure import by_attention, evaluate, load_model, load_text, truncation
    from farfield.measure.results import finite
    from farfield.nn.denormals import flush_denormals
    from farfield.study.predictions import heads_of
    from farfield.theory.fields.drawn import paper_curve

    how, length = cell.measurement, cell.settings.length
    with flush_denormals():
        model = load_model(str(run))
        text = load_text(model, tokens=how.tokens)
        lengths = [n for n in how.lengths(length) if n <= len(text) - 1]
        folder = run / "evaluation"

        def watch(label: str, done: int, total: int) -> None:
            report("perplexity", done, total)

        plain = evaluate(model, text, lengths, protocols=("non-overlapping",), out=folder, watch=watch)
        chosen = [n for n in how.lengths(length, how.sliding) if n in lengths]
        slid = evaluate(model, text, chosen, protocols=("sliding",), out=folder, watch=watch)
        report("receptive field", 0, 1)
        rows = min(how.receptive * length, len(text) - 1)
        fields = by_attention(model, text, rows, epsilons=EPSILONS, chunks=how.chunks)
        report("delta(i, j)", 0, 1)
        longest = min(how.hypothesis * length, len(text) - 1)
        change = truncation(model, text, longest, chunks=max(1, how.chunks // 4), spread=False)
        report("theory", 0, 1)
        heads = heads_of(model, length, max(lengths), fields)
    over_lengths = plain.extrapolation()
    assert over_lengths is not None
    first = paper_curve(fields.mass[0].mean(0))
    by_window = {
        name: np.median(change.median[name], axis=(0, 1)).tolist() for name in ("delta", "lost", "sharper", "paper")
    }
    sliding = {row.length: row.perplexity for row in slid.of("sliding")}
    return {
        "lengths": lengths,
        "perplexity": {
            "non-overlapping": [finite(row.perplexity) for row in plain.of("non-overlapping")],
            "sliding": [finite(sliding.get(n)) for n in lengths],
        },
        "stderr": [finite(row.stderr) for row in plain.of("non-overlapping")],
        "test_tokens": len(text) - 1,
        "extrapolation": {**over_lengths.json(), "sentence": over_lengths.sentence},
        "tokens_seen": plain.by_tokens_seen(),
        "heads": heads,
        "receptive": {
            "length": fields.length,
            "burn_in": fields.burn_in,
            "queries": fields.queries,
            "mass": [round(float(x), 9) for x in fields.mass.mean((0, 1))],
            "paper": {"field": first[0], "epsilon": first[1]},
        },
        "truncation": {
            "length": longest,
            "windows": [int(w) for w in change.windows],
            **{name: [finite(x) for x in values] for name, values in by_window.items()},
        },
        "parameters": sum(p.numel() for p in model.network.parameters()),
    }


def measured_speed(cell: Cell, run: Path, report: Report) -> dict[str, Any]:
    """What each way of inference costs with the model of a cell, by windows from 1/32 of the training length to all."""
    from farfield.measure import load_model, load_text, measure_speed
    from farfield.nn.denormals import flush_denormals

    length = cell.settings.length
    windows = sorted({max(1, length // 2**k) for k in range(6)})
    steps = [0]

    def watch(label: str) -> None:
        report(label, steps[0], 3 * len(windows) + 1)
        steps[0] += 1

    with flush_denormals():
        model = load_model(str(run))
        tokens = min(cell.measurement.tokens or 1 << 62, 36 * length)
        text = load_text(model, tokens=tokens)
        speed = measure_speed(model, text, windows=windows, watch=watch)
    return {**speed.json(), "model": run.name, "machine": machine()}


def machine() -> dict[str, Any]:
    """Where something was measured."""
    import torch

    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line[:10] == "model name"]
        name = names[0] if names else name
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return {
        "processor": name,
        "device": device,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
