"""Measuring a trained model of a study, and the same network untrained: the numbers of one record.

The untrained control has the model's first weights and none of its updates. Whatever it shows too (a rank correlation
of leak and rise, an ERF that follows the TRF) is what the bias does by itself, and no evidence of anything learned.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from farfield.measure.predictions import Head, HeadSeries
from farfield.measure.values import Verdict
from farfield.study import record
from farfield.study.plan import Cell, Measurement
from farfield.study.record import (
    AS_TRAINED,
    CUT,
    PLAIN,
    SLIDING,
    Control,
    Losses,
    Machine,
    Network,
    Record,
    SpeedRecord,
)

if TYPE_CHECKING:
    from farfield.measure import ByAttention, Model, Score, Text

Report = Callable[[str, float, float], None]  # takes a phase, what is done of it, and of how much
EPSILONS = ("0.1", "0.01")
CONTROL_MULTIPLES = (1, 4, 18)


def measure_cell(cell: Cell, run: Path, training: Losses, spent: tuple[float, float], report: Report) -> Record:
    """Measure a trained model and the same network untrained.

    Args:
        cell: Which model, and how it is measured.
        run: Its folder.
        training: Its loss by step.
        spent: Seconds that its training took, by the clock and by the processor.
        report: Told how far it is.
    """
    import numpy as np

    from farfield.measure import load_model, load_text, truncation
    from farfield.measure.predictions import heads_of
    from farfield.measure.results import finite
    from farfield.nn import flush_denormals
    from farfield.theory.fields.curves import paper_curve

    start, used = time.perf_counter(), time.process_time()
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
        change = truncation(model, text, rows, chunks=max(1, how.chunks // 4))
        network = scores.network(heads_of(model, max(lengths), fields))
        report("untrained control", 0, 1)
        control = _control(model, text, how)
    field, epsilon = paper_curve(fields.mass[0].mean(0))
    by_window = {name: np.median(change.median[name], axis=(0, 1)) for name in ("delta", "lost", "sharper", "paper")}
    sliding = {score.length: score.perplexity for score in scores.sliding}
    return Record(
        **dict(cell),
        **dict(network),
        training_length=length,
        lengths=lengths,
        perplexity={
            PLAIN: [finite(score.perplexity) for score in scores.plain],
            SLIDING: [finite(sliding.get(n)) for n in lengths],
        },
        stderr=[finite(score.stderr) for score in scores.plain],
        test=record.TestText(tokens=text.tokens, segments=len(text.ids), segment=text.span),
        blocks=[[round(x, 3) for x in score.blocks] for score in scores.plain],
        tokens_seen=scores.plain[0].positions or [],
        control=control,
        receptive=record.Receptive(
            length=fields.length,
            burn_in=fields.burn_in,
            queries=fields.queries,
            mass=[round(float(x), 9) for x in fields.mass.mean((0, 1))],
            paper=record.PaperCurve(field=field, epsilon=epsilon),
        ),
        truncation=record.TruncationRecord(
            length=rows,
            windows=[int(w) for w in change.windows],
            **{name: values.tolist() for name, values in by_window.items()},
        ),
        parameters=sum(p.numel() for p in model.network.parameters()),
        training=training,
        seconds=record.Seconds(
            training=round(spent[0], 1),
            measuring=round(time.perf_counter() - start, 1),
            processor_training=round(spent[1], 1),
            processor_measuring=round(time.process_time() - used, 1),
        ),
        machine=this_machine(),
    )


@dataclass
class Scores:
    """What was scored of one model: by length, with heads cut at the training length, and with other tails.

    Attributes:
        tails: Each with its name, its leak and its verdict.
        trained: The series of the bias as trained.
    """

    training_length: int
    plain: list[Score]
    sliding: list[Score]
    cut: Score
    tails: list[tuple[str, float | None, Verdict, Score]]
    trained: HeadSeries

    def network(self, heads: Sequence[Head]) -> Network:
        """Whether it extrapolates, the far-field damage, the response to every intervention, and its heads."""
        from farfield.measure import Evaluation
        from farfield.measure.rise import LEVEL

        extrapolation = Evaluation(self.training_length, self.plain, LEVEL, [], None).extrapolation()
        assert extrapolation is not None
        base, last = self.plain[0], self.plain[-1]
        doses = list(self.tails)
        if self.trained.leak is not None:
            doses.insert(0, (AS_TRAINED, self.trained.leak, self.trained.verdict, last))
        return Network(
            extrapolation=extrapolation,
            damage=last.against(self.cut),
            cut=record.Cut(perplexity=self.cut.perplexity, change=self.cut.against(base)),
            interventions=[
                record.Intervention(
                    tail=tail, leak=leak, verdict=verdict, perplexity=score.perplexity, change=score.against(base)
                )
                for tail, leak, verdict, score in doses
            ],
            heads=list(heads),
        )


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
    tails = [tail for tail in how.tails if biased and tail not in (CUT, model.encoding)]
    conditions = [Trial(n, PLAIN) for n in lengths]
    conditions += [Trial(n, SLIDING, stride=max(1, n // 2)) for n in how.lengths(base, how.sliding) if n < far]
    conditions.append(Trial(far, "windowed", window=base))
    conditions += [Trial(far, "tail", tail=tail) for tail in tails]

    def watch(label: str, done: int, total: int) -> None:
        if report is not None:
            report("perplexity", done, total)

    rows, _ = score_all(model, text, conditions, out=out, watch=watch, certify=False)
    cut = next(row for row in rows if row.protocol == "windowed")
    changed = [
        (row.extra["tail"], row.extra["leak"], row.extra["verdict"], row) for row in rows if row.protocol == "tail"
    ]
    if biased and CUT in how.tails:
        changed.insert(0, (CUT, 0.0, "converges", cut))
    plain, sliding = ([row for row in rows if row.protocol == protocol] for protocol in (PLAIN, SLIDING))
    return Scores(base, plain, sliding, cut, changed, series_of(model, far))


def _fields(model: Model, text: Text, how: Measurement) -> ByAttention:
    from farfield.measure import by_attention

    assert model.training_length is not None
    rows = min(how.receptive * model.training_length, text.span)
    return by_attention(model, text, rows, epsilons=EPSILONS, chunks=how.chunks)


def _control(model: Model, text: Text, how: Measurement) -> Control:
    """The same measurements of the network as it was before its first update, on fewer segments."""
    import torch

    from farfield.measure import Text, as_model
    from farfield.measure.predictions import heads_of
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
    network = scores.network(heads_of(untrained, max(lengths), _fields(untrained, few, how)))
    return Control(segments=len(few.ids), lengths=lengths, **dict(network))


def measure_speed_of(cell: Cell, run: Path, report: Report) -> SpeedRecord:
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
    return SpeedRecord(
        **dict(cell),
        cell=cell.key,
        model=run.name,
        length=speed.length,
        relative=speed.relative(),
        timings=speed.timings,
        machine=this_machine(),
    )


def this_machine() -> Machine:
    """Where something was measured."""
    import torch

    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line[:10] == "model name"]
        name = names[0] if names else name
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return Machine(
        processor=name,
        device=device,
        cores=os.cpu_count(),
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
        python=platform.python_version(),
    )
