"""Measuring a trained model of a study, and the same network untrained: the numbers of one record.

The untrained control has the model's first weights and none of its updates. Whatever it shows too (a rank correlation
of leak and rise, an ERF that follows the TRF) is what the bias does by itself, and no evidence of anything learned.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.study.plan import Cell, Measurement

if TYPE_CHECKING:
    from farfield.measure import ByAttention, Model, Score, Text

Report = Callable[[str, float, float], None]  # takes a phase, what is done of it, and of how much
EPSILONS = ("0.1", "0.01")
CONTROL_MULTIPLES = (1, 4, 18)


def measured(cell: Cell, run: Path, report: Report) -> dict[str, Any]:
    """Perplexity by length, damage, interventions, receptive fields, delta(i, j), theory, and the control."""
    import numpy as np

    from farfield.measure import load_model, load_text, truncation
    from farfield.measure.predictions import heads_of
    from farfield.measure.results import finite
    from farfield.nn import flush_denormals
    from farfield.theory.fields.drawn import paper_curve

    how, length = cell.measurement, cell.settings.length
    with flush_denormals():
        model = load_model(str(run))
        longest = max(how.lengths(length))
        text = load_text(model, tokens=how.segments * longest, segment=longest)
        lengths = [n for n in how.lengths(length) if n <= text.span]
        scores = _scores(model, text, lengths, how, run / "evaluation", report)
        report("receptive field", 0, 1)
        fields = _fields(model, text, how)
        rows = min(how.hypothesis * length, text.span)
        change = truncation(model, text, rows, chunks=max(1, how.chunks // 4), spread=False)
        heads = heads_of(model, max(lengths), fields)
        report("untrained control", 0, 1)
        control = _control(model, text, how)
    first = paper_curve(fields.mass[0].mean(0))
    by_window = {
        name: np.median(change.median[name], axis=(0, 1)).tolist() for name in ("delta", "lost", "sharper", "paper")
    }
    sliding = {score.length: score.perplexity for score in scores.sliding}
    return {
        "lengths": lengths,
        "perplexity": {
            "non-overlapping": [finite(score.perplexity) for score in scores.plain],
            "sliding": [finite(sliding.get(n)) for n in lengths],
        },
        "stderr": [finite(score.stderr) for score in scores.plain],
        "test": {"tokens": text.tokens, "segments": len(text.ids), "segment": text.span},
        "blocks": [[round(x, 3) for x in score.blocks] for score in scores.plain],
        **scores.answers(),
        "tokens_seen": scores.plain[0].positions,
        "heads": heads,
        "control": control,
        "receptive": {
            "length": fields.length,
            "burn_in": fields.burn_in,
            "queries": fields.queries,
            "mass": [round(float(x), 9) for x in fields.mass.mean((0, 1))],
            "paper": {"field": first[0], "epsilon": first[1]},
        },
        "truncation": {
            "length": rows,
            "windows": [int(w) for w in change.windows],
            **{name: [finite(x) for x in values] for name, values in by_window.items()},
        },
        "parameters": sum(p.numel() for p in model.network.parameters()),
    }


@dataclass
class Scores:
    """What was scored of one model: by length, with heads cut at the training length, and with other tails."""

    training_length: int
    plain: list[Score]
    sliding: list[Score]
    cut: Score
    tails: list[Score]
    own: dict[str, Any]  # leak and verdict of the bias as trained

    def answers(self) -> dict[str, Any]:
        """Whether it extrapolates, the far-field damage, and the response to every intervention."""
        from farfield.measure import Evaluation
        from farfield.measure.rise import LEVEL

        whole = Evaluation(self.training_length, self.plain, LEVEL, [], None).extrapolation()
        assert whole is not None
        base, last = self.plain[0], self.plain[-1]
        trained = [("as trained", last, self.own)] if self.own["leak"] is not None else []
        doses = trained + [(score.extra["tail"], score, score.extra) for score in self.tails]
        return {
            "extrapolation": {**whole.json(), "sentence": whole.sentence},
            "damage": last.against(self.cut),
            "cut": {"perplexity": self.cut.perplexity, "change": self.cut.against(base)},
            "interventions": [
                {
                    "tail": name,
                    "leak": said["leak"],
                    "verdict": said["verdict"],
                    "perplexity": score.perplexity,
                    "change": score.against(base),
                }
                for name, score, said in doses
            ],
        }


def _scores(
    model: Model, text: Text, lengths: Sequence[int], how: Measurement, out: Path | None, report: Report | None
) -> Scores:
    from farfield.measure.perplexity import score_all
    from farfield.measure.predictions import series_of
    from farfield.measure.results import Trial

    base = model.training_length
    assert base is not None
    far = lengths[-1]
    biased = model.formula_of(0, 0) is not None
    tails = [tail for tail in how.tails if biased and tail not in ("cut", model.encoding)]
    conditions = [Trial(n, "non-overlapping") for n in lengths]
    conditions += [Trial(n, "sliding", stride=max(1, n // 2)) for n in how.lengths(base, how.sliding) if n < far]
    conditions.append(Trial(far, "windowed", window=base))
    conditions += [Trial(far, "tail", tail=tail) for tail in tails]

    def watch(label: str, done: int, total: int) -> None:
        if report is not None:
            report("perplexity", done, total)

    rows, _ = score_all(model, text, conditions, out=out, watch=watch, certify=False)
    own = series_of(model, far)
    cut = next(row for row in rows if row.protocol == "windowed")
    changed = [row for row in rows if row.protocol == "tail"]
    if biased and "cut" in how.tails:
        cut.extra.update(tail="cut", leak=0.0, verdict="converges")
        changed.insert(0, cut)
    kinds = {p: [row for row in rows if row.protocol == p] for p in ("non-overlapping", "sliding")}
    return Scores(base, kinds["non-overlapping"], kinds["sliding"], cut, changed, own)


def _fields(model: Model, text: Text, how: Measurement) -> ByAttention:
    from farfield.measure import by_attention

    assert model.training_length is not None
    rows = min(how.receptive * model.training_length, text.span)
    return by_attention(model, text, rows, epsilons=EPSILONS, chunks=how.chunks)


def _control(model: Model, text: Text, how: Measurement) -> dict[str, Any]:
    """The same measurements of the network as it was before its first update, on fewer segments."""
    import torch

    from farfield.measure import Text, as_model
    from farfield.nn.decoder.model import FarfieldForCausalLM
    from farfield.training.settings import settings_from

    settings = settings_from(model.network.config.training["settings"], model.name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        network = FarfieldForCausalLM(model.network.config).to(model.device)
    untrained = as_model(network, f"{model.name}, untrained")
    few = Text(text.ids[:: max(1, len(text.ids) // how.control)], text.about)
    lengths = [n for n in how.lengths(settings.length, CONTROL_MULTIPLES) if n <= few.span]
    scores = _scores(untrained, few, lengths, how, None, None)
    fields = _fields(untrained, few, how)
    median = fields.median()
    erf = [
        {e: int(median[i, layer, head]) for i, e in enumerate(EPSILONS)}
        for layer in range(untrained.layers)
        for head in range(untrained.heads)
    ]
    return {"segments": len(few.ids), "lengths": lengths, **scores.answers(), "erf": erf}


def measured_speed(cell: Cell, run: Path, report: Report) -> dict[str, Any]:
    """What each way of inference costs with the model of a cell, by windows from 1/32 of the training length to all."""
    from farfield.measure import load_model, load_text, measure_speed
    from farfield.nn import flush_denormals

    length = cell.settings.length
    windows = sorted({max(1, length // 2**k) for k in range(6)})
    steps = [0]

    def watch(label: str) -> None:
        report(label, steps[0], 3 * len(windows) + 1)
        steps[0] += 1

    with flush_denormals():
        model = load_model(str(run))
        text = load_text(model, tokens=36 * length)
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
