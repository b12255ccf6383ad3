"""The model card of a finished run: how it was made, the verdict on its encoding, and the curves."""

from __future__ import annotations

import importlib.util
import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from farfield import zoo
from farfield.data import durable
from farfield.training.settings import PRESETS, Settings
from farfield.zoo.head_parameters import said_slopes
from farfield.zoo.learned import learned

CARD, CURVES = "README.md", "curves.svg"


def write_card(
    run: Path, settings: Settings, model: Any, history: list[dict[str, Any]], weights: Mapping[str, Any] | None = None
) -> None:
    """Write the card and, where matplotlib is installed, the picture of the curves."""
    drawn = _draw_curves(run / CURVES, history)
    durable.replace_file(run / CARD, card(settings, model, history, drawn, weights).encode())


def card(
    settings: Settings,
    model: Any,
    history: list[dict[str, Any]],
    drawn: bool,
    weights: Mapping[str, Any] | None = None,
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
        "## The verdict on its encoding\n\n" + _verdict(settings) + _slopes(settings),
        *_learned(model, weights),
        "## Curves\n\n" + (f"![Loss by step]({CURVES})\n\n" if drawn else "") + _table(history),
    ]
    return "\n\n".join(parts) + "\n"


def command(settings: Settings, out: str = "RUN") -> str:
    """The command that makes this run, over the preset that needs the fewest options."""
    fields = settings.model_dump(mode="json")
    defaults = {preset: Settings(preset=preset).model_dump(mode="json") for preset in PRESETS}

    def changes(preset: str) -> dict[str, Any]:
        named = ("encoding", "corpus")
        return {k: v for k, v in fields.items() if v != defaults[preset][k] and k not in named}

    preset = min(PRESETS, key=lambda name: len(changes(name)))
    words = ["farfield", "train", "--encoding", settings.encoding, "--corpus", settings.corpus, "--preset", preset]
    for name, value in changes(preset).items():
        if name == "parameters":
            words += _parameter_options(value)
        elif isinstance(value, bool):
            words += [f"--{'' if value else 'no-'}{name.replace('_', '-')}"]
        elif value is not None:
            words += [_option(name), *map(str, value if isinstance(value, list) else [value])]
    return shlex.join([*words, "--out", out])


def _parameter_options(parameters: Mapping[str, Any]) -> list[str]:
    """--set for values, --learn for ranges, --slopes for what only that can say of k."""
    words, ranges = [], []
    for name, given in parameters.items():
        if isinstance(given, Mapping) and "values" in given:
            words += ["--slopes", "learned"]
        elif isinstance(given, Mapping):
            ranges.append(learned(name, given).spelled(name))
        elif isinstance(given, list) and name == "k":
            words += ["--slopes", ",".join(map(str, given))]
        else:
            words += ["--set", f"{name}={given}"]
    return [*words, *(["--learn", ", ".join(ranges)] if ranges else [])]


def _option(name: str) -> str:
    return "--from" if name == "start_from" else f"--{name.replace('_', '-')}"


def _start(model: Any) -> str:
    """Which model a run started from, where it started from one."""
    training = getattr(model.config, "training", None) or {}
    if (digests := training.get("identity", {}).get("start")) is None:
        return ""
    where = training["settings"]["start_from"]
    return f" It started from the model in {_code(where)} (weights {digests.get('weights', 'unknown')[:16]})."


def _verdict(settings: Settings) -> str:
    from farfield.theory.verdict.convergence import check

    try:
        known = {k: v for k, v in settings.parameters.items() if not isinstance(v, list | dict)}
        verdict = check(settings.encoding, parameters=known)
    except Exception as error:  # a trained model is not lost for want of a proof
        return f"There is none: {error}."
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(verdict.proof, start=1))
    return f"The sum of exp({_code(verdict.formula)}): **{verdict.condition or verdict.verdict}**.\n\n{steps}"


def _slopes(settings: Settings) -> str:
    said = said_slopes(zoo.find(settings.encoding), settings.heads, settings.parameters)
    return f"\n\n{said}." if said else ""


def _learned(model: Any, weights: Mapping[str, Any] | None) -> list[str]:
    """The section on what each head learned; none if the encoding learns nothing."""
    from farfield.nn.learned_heads import learned_heads
    from farfield.training.network import bias_of_network

    name, bias = bias_of_network(model)
    start = f"{name}.learned."
    own = None if weights is None else {n.removeprefix(start): p for n, p in weights.items() if n.startswith(start)}
    heads = learned_heads(bias, own)
    if not heads:
        return []
    how = "\n".join(f"- {name}: {rule.text}" for name, rule in bias.rules.items())
    names = ["layer", "head", *heads[0].values, "verdict"]
    lines = [names, ["---:"] * (len(names) - 1) + ["---"], *(head.cells() for head in heads)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return [f"## What it learned\n\n{how}\n\nEach head, with the verdict on its series as it stands:\n\n{table}"]


def _table(history: list[dict[str, Any]]) -> str:
    """Loss and valid loss at about ten steps."""
    by_step: dict[int, dict[str, float]] = {}
    for line in history:
        by_step.setdefault(line["step"], {}).update(line)
    steps = sorted(by_step)
    evaluated = [step for step in steps if "valid_loss" in by_step[step]] or steps
    every = math.ceil(len(evaluated) / 10)
    chosen = [step for place, step in enumerate(reversed(evaluated)) if place % every == 0][::-1] if evaluated else []
    rows = [
        f"| {step} | {_number(by_step[step].get('loss'))} | {_number(by_step[step].get('valid_loss'))} "
        f"| {_number(by_step[step].get('valid_perplexity'))} |"
        for step in chosen
    ]
    return "\n".join(["| step | loss | valid loss | valid perplexity |", "| ---: | ---: | ---: | ---: |", *rows])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _draw_curves(path: Path, history: list[dict[str, Any]]) -> bool:
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
