"""What a user sees of a run: sentences, and a bar with loss, speed and time left; at its end the model card."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from farfield import zoo
from farfield.data import durable
from farfield.table import Table
from farfield.training.runfolder import Line
from farfield.training.settings import PRESETS, Settings, Value
from farfield.zoo.encoding import slopes_sentence
from farfield.zoo.learned import learned_rule

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    Weights = Mapping[str, Tensor]

CARD, CURVES = "README.md", "curves.svg"


class Pace:
    """How long updates, evaluations and saves take, and so how long the rest of a run will.

    Each kind is timed by itself: an evaluation that comes every thousand steps must not make the steps look slow. Of
    the steps the last minute counts (at least 20 of them), because the first ones are slower and machines change.
    """

    WINDOW, FEWEST = 60.0, 20

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings, self.clock = settings, clock
        self.steps: deque[float] = deque()
        self.rare: dict[str, list[float]] = {"evaluation": [], "save": []}
        self.first: float | None = None

    @contextmanager
    def timed(self, kind: str) -> Iterator[None]:
        """Time a step, an evaluation or a save."""
        start = self.clock()
        yield
        seconds = self.clock() - start
        if kind != "step":
            self.rare[kind].append(seconds)
        elif self.first is None:
            self.first = seconds  # it touches memory and compiles
        else:
            self.steps.append(seconds)
            while len(self.steps) > self.FEWEST and sum(self.steps) - self.steps[0] > self.WINDOW:
                self.steps.popleft()

    @property
    def seconds_per_step(self) -> float:
        """The mean over the last minute; the first step alone while there is no other."""
        return sum(self.steps) / len(self.steps) if self.steps else self.first or 0.0

    def left(self, step: int) -> float:
        """Seconds from the end of a step to the end of the run."""
        settings, seconds = self.settings, (self.settings.steps - step) * self.seconds_per_step
        for kind, every in (("evaluation", settings.evaluate_every), ("save", settings.save_every)):
            times = self.rare[kind]
            to_come = settings.steps // every - step // every + (settings.steps % every > 0 and step < settings.steps)
            # before the first: an evaluation reads its tokens once, and a step goes over its own about three times
            share = settings.evaluate_tokens / (3 * settings.batch * settings.length) if kind == "evaluation" else 0.0
            seconds += to_come * (sum(times[-5:]) / len(times[-5:]) if times else share * self.seconds_per_step)
        return seconds


class ProgressBar:
    """A bar on a terminal; elsewhere, as in a log file, a line every half a minute."""

    SECONDS = 30.0

    def __init__(self, settings: Settings, step: int, visible: bool = True) -> None:
        self.settings, self.visible, self.pace = settings, visible, Pace(settings)
        self.loss, self.last_line = float("nan"), time.monotonic()
        console = Console(stderr=True)
        columns = (TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
        live = visible and console.is_terminal
        self.bar = Progress(*columns, console=console, transient=True) if live else None
        if self.bar is not None:
            self.task = self.bar.add_task("", total=settings.steps, completed=step, status="")
            self.bar.start()

    def moved(self, step: int) -> None:
        """Show where the run is."""
        tokens = self.settings.batch * self.settings.length / max(self.pace.seconds_per_step, 1e-9)
        status = f"loss {self.loss:.3f}  {tokens:,.0f} tokens/s  {duration(self.pace.left(step))} left"
        if self.bar is not None:
            self.bar.update(self.task, completed=step, status=status)
        elif self.visible and time.monotonic() - self.last_line > self.SECONDS:
            self.last_line = time.monotonic()
            say_on_stderr(f"step {step} of {self.settings.steps}  {status}")

    def close(self) -> None:
        """Take the bar off the terminal, however the run ended."""
        if self.bar is not None:
            self.bar.stop()


def say_on_stderr(line: str) -> None:
    """A line on stderr; where nobody can read it any more, a run goes on all the same."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:  # the reader of a pipe has left, or the disk of a log is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"


# --- the model card ---------------------------------------------------------------------------------------------------


def write_card(
    run: Path, settings: Settings, model: PreTrainedModel, history: list[Line], weights: Weights | None = None
) -> None:
    """Write the card and, where matplotlib is installed, the picture of the curves."""
    drawn = _draw_curves(run / CURVES, history)
    durable.replace_file(run / CARD, card(settings, model, history, drawn, weights).encode())


def card(
    settings: Settings,
    model: PreTrainedModel,
    history: list[Line],
    drawn: bool,
    weights: Weights | None = None,
) -> str:
    """The text of the card; `weights` are all of the model's, of which it may hold a share."""
    parameters = sum(p.numel() for p in model.parameters())
    made = command(settings)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", made)), default=0))  # no name of a corpus closes it
    parts = [
        "---\nlibrary_name: transformers\npipeline_tag: text-generation\ntags:\n- farfield\n---",
        f"# A decoder with the encoding {_code(settings.encoding)}",
        f"{parameters:,} parameters: {settings.layers} layers of width {settings.width} with {settings.heads} heads, "
        f"trained on {settings.steps:,} batches of {settings.batch} x {settings.length} tokens "
        f"of the corpus {_code(settings.corpus)} with Farfield." + _start(model),
        "```python\nimport farfield  # makes the model known to transformers\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        "model = AutoModelForCausalLM.from_pretrained(path)\ntokenizer = AutoTokenizer.from_pretrained(path)\n```",
        f"## How it was made\n\n{fence}\n{made}\n{fence}",
        "## Its encoding\n\n" + _encoding(settings),
        *_learned(model, weights),
        "## Curves\n\n" + (f"![Loss by step]({CURVES})\n\n" if drawn else "") + _table(history),
    ]
    return "\n\n".join(parts) + "\n"


def command(settings: Settings, out: str = "RUN") -> str:
    """The command that makes this run, over the preset that needs the fewest options."""
    fields = settings.model_dump(mode="json", exclude={"encoding", "corpus"})
    over = {preset: Settings(preset=preset).model_dump(mode="json") for preset in PRESETS}
    changes = {preset: {k: v for k, v in fields.items() if v != over[preset][k]} for preset in PRESETS}
    preset = min(PRESETS, key=lambda name: len(changes[name]))
    words = ["farfield", "train", "--encoding", settings.encoding, "--corpus", settings.corpus, "--preset", preset]
    for name, value in changes[preset].items():
        option = "from" if name == "start_from" else name.replace("_", "-")
        if name == "parameters":
            words += _parameter_options(value)
        elif isinstance(value, bool):
            words += [f"--{'' if value else 'no-'}{option}"]
        elif value is not None:
            words += [f"--{option}", *map(str, value if isinstance(value, list) else [value])]
    return shlex.join([*words, "--out", out])


def _parameter_options(parameters: Mapping[str, Value]) -> list[str]:
    """--set for values, --learn for ranges, --slopes for what only that can say of k."""
    words, ranges = [], []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and "values" in value:
            words += ["--slopes", "learned"]
        elif isinstance(value, Mapping):
            ranges.append(learned_rule(name, value).spell(name))
        elif isinstance(value, list) and name == "k":
            words += ["--slopes", ",".join(map(str, value))]
        else:
            words += ["--set", f"{name}={value}"]
    return [*words, *(["--learn", ", ".join(ranges)] if ranges else [])]


def _start(model: PreTrainedModel) -> str:
    """Which model a run started from, where it started from one."""
    training = getattr(model.config, "training", None) or {}
    if (digests := training.get("identity", {}).get("start")) is None:
        return ""
    where = training["settings"]["start_from"]
    return f" It started from the model in {_code(where)} (weights {digests.get('weights', 'unknown')[:16]})."


def _encoding(settings: Settings) -> str:
    """The formula, what k is, and the command that judges it with a proof: a run itself asks for no verdict."""
    encoding = zoo.find(settings.encoding)
    if encoding.formula is None:
        return "It adds no bias by distance to the attention logits."
    slopes = slopes_sentence(encoding, settings.heads, settings.parameters)
    values = {name: v for name, v in settings.parameters.items() if not isinstance(v, list | Mapping)}
    words = ["farfield", "check", " ".join(settings.encoding.split()), *_parameter_options(values)]
    about = _code(encoding.formula.text()) + " is its formula" + (f" ({slopes})" if slopes else "")
    return f"{about}; the verdict on it, with a proof:\n\n```\n{shlex.join(words)}\n```"


def _learned(model: PreTrainedModel, weights: Weights | None) -> list[str]:
    """The section on what each head learned; none if the encoding learns nothing."""
    from farfield.nn.bias import Bias
    from farfield.nn.learned_heads import learned_heads
    from farfield.training.network import bias_of_network

    name, bias = bias_of_network(model)
    start = f"{name}.learned."
    part = None if weights is None else {n.removeprefix(start): p for n, p in weights.items() if n.startswith(start)}
    heads = learned_heads(bias, part)
    if not heads or not isinstance(bias, Bias):
        return []
    how = "\n".join(f"- {name}: {rule.text}" for name, rule in bias.rules.items())
    table = Table(["layer", "head", *heads[0].values], [head.cells() for head in heads], names=0).markdown()
    return [f"## What it learned\n\n{how}\n\nEach head (`farfield receptive` adds the verdicts):\n\n{table}".rstrip()]


def _table(history: list[Line]) -> str:
    """Loss and valid loss at about ten of the steps at which the run was evaluated, the last among them."""
    losses = {line["step"]: line["loss"] for line in history if "loss" in line}
    evaluated = [line for line in history if "valid_loss" in line]
    rows = []
    for line in evaluated[:: -math.ceil(len(evaluated) / 10) or -1][::-1]:
        values = losses.get(line["step"]), line["valid_loss"], line["valid_perplexity"]
        rows.append([str(line["step"]), *("" if value is None else f"{value:.4g}" for value in values)])
    return Table(("step", "loss", "valid loss", "valid perplexity"), rows, names=0).markdown().rstrip()


def _draw_curves(path: Path, history: list[Line]) -> bool:
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.add_subplot()
    for name, label, style in (("loss", "train", "-"), ("valid_loss", "valid", "o--")):
        points = [(line["step"], line[name]) for line in history if name in line]
        axes.plot([step for step, _ in points], [loss for _, loss in points], style, label=label, markersize=3)
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats per token)")
    axes.legend()
    figure.savefig(path, format="svg")
    return True


def _code(text: str) -> str:
    """Text that someone else chose, as code: nothing in it is Markdown or HTML."""
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
