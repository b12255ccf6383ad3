"""Puts a run together: the model of its settings, its optimizer, and the loop, at the step where it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from farfield import zoo
from farfield.data.samples import Samples
from farfield.data.tokenizer import end_token, tokenizer_digest, vocabulary_size
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM, Position
from farfield.training import estimate, sharding
from farfield.training.checkpoint import Checkpoint
from farfield.training.loop import Loop, RunState
from farfield.training.network import is_ours, make_network, read_other_config
from farfield.training.processes import Processes
from farfield.training.progress import ProgressBar
from farfield.training.runfolder import checkpoint_state
from farfield.training.settings import Settings, difference
from farfield.training.start import fit
from farfield.training.state import load_state

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from farfield.data.tokens import Tokens


@dataclass(frozen=True)
class Means:
    """How a run is carried out: none of it decides the result, up to rounding, and each may change on the way."""

    shard: bool
    recompute: bool
    compile: bool
    progress: bool
    say: Callable[[str], None]


def assemble(
    settings: Settings,
    run: Path,
    config: Any,
    written: bytes,
    samples: dict[str, Samples],
    processes: Processes,
    means: Means,
    checkpoint: Checkpoint | None,
    start: Callable[[], dict[str, torch.Tensor]] | None = None,
) -> Loop:
    """The loop of a run, with the weights of a checkpoint, or with first ones: those of `start`, or fresh."""
    divided = processes.count > 1 and (means.shard or sharding.asked_for())
    if divided and not is_ours(config):
        raise ValueError("--shard divides this project's own decoder only: train this model without it.")
    torch.manual_seed(settings.seed)

    def first() -> Any:
        model = build(config, means)
        if start is not None:
            fit(model, start(), settings.start_from)
        return model

    if divided:
        weights = (lambda: first().state_dict()) if checkpoint is None else None
        model = sharding.sharded(lambda: build(config, means), processes, weights)
    else:
        model = (first() if checkpoint is None else build(config, means)).to(processes.device)
    wrapped = processes.count > 1 and not divided
    loop = Loop(
        run=run,
        settings=settings,
        model=model,
        forward=processes.accelerator.prepare(model) if wrapped else model,
        optimizer=optimizer_of(model, settings),
        samples=samples,
        processes=processes,
        bar=ProgressBar(settings, 0 if checkpoint is None else checkpoint.step, shown=means.progress),
        config=written,
        about=_circumstances(processes, divided),
        divided=divided,
    )
    if checkpoint is not None:
        _go_on(loop, checkpoint, means.say)
    if loop.state.step < settings.steps:
        left = settings.steps - loop.state.step
        means.say(processes.on_main(lambda: estimate.expectation(config, settings, processes, left, divided)))
    return loop


def build(config: Any, means: Means) -> Any:
    """A model of this configuration, with what was asked for of it."""
    model = make_network(config)
    if means.recompute or sharding.recompute_asked_for():
        model.gradient_checkpointing_enable()
    if means.compile:
        for layer in model.layers if is_ours(config) else [model]:
            layer.compile()
    return model


def optimizer_of(model: Any, settings: Settings) -> torch.optim.Optimizer:
    """Adam with decoupled weight decay on every parameter, which is what the authors' code (fairseq) does."""
    return torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        betas=settings.betas,
        eps=settings.epsilon,
        weight_decay=settings.weight_decay,
        fused=True,
    )


def model_config(
    settings: Settings,
    tokenizer: Tokenizer,
    tokens: dict[str, Tokens],
    start: dict[str, str] | None = None,
    other: Path | None = None,
) -> Any:
    """The model's configuration for these settings, with the settings inside, and what their names stand for today.

    `other` is the folder of a model that is not the project's decoder, whose configuration is taken as it is.
    """
    end = end_token(tokenizer)
    identity: dict[str, Any] = {
        "formula": zoo.find(settings.encoding).text,
        "tokenizer": tokenizer_digest(tokenizer),
        "corpus": {split: read.sha256 for split, read in tokens.items()},
    }
    if start is not None:
        identity["start"] = start
    training = {"settings": settings.model_dump(mode="json"), "identity": identity}
    if other is not None:
        config = read_other_config(other)
        if vocabulary_size(tokenizer) > config.vocab_size:
            size = vocabulary_size(tokenizer)
            raise ValueError(f"The tokenizer in {str(other)!r} has {size} words, but its model {config.vocab_size}.")
        config.training, config.name_or_path = training, ""
        return config
    config = FarfieldConfig(
        vocab_size=vocabulary_size(tokenizer),
        **settings.sizes(),
        dropout=settings.dropout,
        encoding=settings.encoding,
        encoding_parameters=dict(settings.parameters) or None,
        shared_bias=settings.shared_bias,
        bos_token_id=end and end[1],
        eos_token_id=end and end[1],
        training=training,
    )
    identity["values"] = Position(config).values()
    return config


def model_json(config: Any) -> dict[str, Any]:
    """The `config.json` of a model, as `save_pretrained` would write it."""
    classes = [FarfieldForCausalLM.__name__] if is_ours(config) else config.architectures
    fields = {**config.to_dict(), "architectures": classes, "dtype": "float32"}
    return json.loads(json.dumps({**fields, "use_cache": True}, sort_keys=True))


def _go_on(loop: Loop, checkpoint: Checkpoint, say: Callable[[str], None]) -> None:
    """Put the run where a checkpoint left it."""
    about = checkpoint.about
    state = RunState(checkpoint.step, *checkpoint_state(checkpoint, loop.settings.steps))
    load_state(
        checkpoint.folder, checkpoint.step, loop.model, loop.optimizer, processes=loop.processes, divided=loop.divided
    )
    loop.state = state
    say(f"Going on from step {checkpoint.step} of {loop.settings.steps}.")
    changes = difference(about, {**about, **{name: now for name, now in loop.about.items() if name in about}})
    if changes:
        say(f"Other circumstances than before ({'; '.join(changes)}): the last bits of the result may differ.")


def _circumstances(processes: Processes, divided: bool) -> dict[str, Any]:
    """What the last bits of a result depend on, beside the settings."""
    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": processes.device.type,
        "processes": processes.count,
        "divided": divided,
    }
