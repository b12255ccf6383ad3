"""`farfield train`: a model with any encoding, from a corpus, in a run folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from farfield.commands.options import Tokenizer


def train_command(
    *,
    encoding: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    corpus: str | None = None,
    preset: str = "small",
    out: Path | None = None,
    resume: Path | None = None,
    parameter: Annotated[list[str] | None, Parameter(name=["--set"], negative="")] = None,
    steps: int | None = None,
    length: int | None = None,
    batch: int | None = None,
    micro_batch: int | None = None,
    seed: int | None = None,
    save_every: int | None = None,
    keep: int | None = None,
    log_every: int | None = None,
    evaluate_every: int | None = None,
    evaluate_tokens: int | None = None,
    tokenizer: Tokenizer = None,
    vocabulary: int | None = None,
    errors: Literal["strict", "replace"] | None = None,
    split_seed: int | None = None,
    limit: int | None = None,
    layers: int | None = None,
    width: int | None = None,
    heads: int | None = None,
    feed_forward: int | None = None,
    dropout: float | None = None,
    shared_bias: bool | None = None,
    learning_rate: float | None = None,
    warmup: int | None = None,
    weight_decay: float | None = None,
    betas: tuple[float, float] | None = None,
    epsilon: float | None = None,
    clip: float | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    log_to: str = "auto",
    quiet: bool = False,
    as_json: Annotated[bool, Parameter(name=["--json"], negative="")] = False,
) -> None:
    """Train a language model with an encoding on a corpus; killed or not, the result is the same to the bit.

    Parameters
    ----------
    encoding
        A name from the zoo (`farfield zoo`) or a formula such as "-k*t".
    corpus
        `python` (the standard library's source), the path of a file or folder of text, a data set of the hub
        (wikitext-103, books, github, wikibook, hub:OWNER/NAME[:CONFIG]).
    preset
        Size and schedule: tiny, small, paper-wikitext, paper-base. The options below change single settings of it.
    out
        The run folder. If it holds this very run already, the run goes on.
    resume
        Go on with the run in this folder.
    parameter
        A parameter of the formula, as NAME=VALUE; may be repeated.
    steps
        Number of updates.
    length
        Tokens in a training sample.
    batch
        Samples in one update, over all processes.
    micro_batch
        Samples that a process holds in memory at once.
    seed
        Decides the first weights, the batches and the dropout.
    save_every
        Steps between checkpoints.
    keep
        Checkpoints that are kept.
    log_every
        Steps between two lines of metrics.jsonl.
    evaluate_every
        Steps between evaluations on valid.
    evaluate_tokens
        Tokens of valid in an evaluation.
    tokenizer
        `bpe` (trained on the corpus), `bytes`, the path of a tokenizer.json, or a tokenizer on the hub.
    vocabulary
        Words of the BPE.
    errors
        What to do about invalid UTF-8: `strict` refuses it, `replace` goes on.
    split_seed
        Decides the splits of text that names none.
    limit
        Bytes of training text to read at most.
    layers
        Layers of the decoder.
    width
        Width of the hidden states.
    heads
        Attention heads.
    feed_forward
        Width of the feed-forward layers.
    dropout
        Share of values that dropout removes.
    shared_bias
        One set of learned parameters of the encoding for all layers, or one for each.
    learning_rate
        Peak learning rate.
    warmup
        Updates until the peak.
    weight_decay
        Decoupled weight decay.
    betas
        Adam's two rates of forgetting.
    epsilon
        Adam's epsilon.
    clip
        The largest norm of a gradient.
    precision
        Arithmetic of the model: float32 or bfloat16.
    log_to
        auto, none, or tensorboard, trackio, wandb (several with commas).
    quiet
        No progress bar.
    as_json
        Print one JSON object at the end.
    """
    from farfield.training.run import read_settings, train
    from farfield.training.settings import preset_settings, settings_from

    changes: dict[str, Any] = {
        "encoding": encoding,
        "corpus": corpus,
        "parameters": _parameters(parameter or []) or None,
        "steps": steps,
        "length": length,
        "batch": batch,
        "micro_batch": micro_batch,
        "seed": seed,
        "save_every": save_every,
        "keep": keep,
        "log_every": log_every,
        "evaluate_every": evaluate_every,
        "evaluate_tokens": evaluate_tokens,
        "tokenizer": tokenizer,
        "vocabulary": vocabulary,
        "errors": errors,
        "split_seed": split_seed,
        "limit": limit,
        "layers": layers,
        "width": width,
        "heads": heads,
        "feed_forward": feed_forward,
        "dropout": dropout,
        "shared_bias": shared_bias,
        "learning_rate": learning_rate,
        "warmup": warmup,
        "weight_decay": weight_decay,
        "betas": betas,
        "epsilon": epsilon,
        "clip": clip,
        "precision": precision,
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if resume is not None:
        run = Path(resume)
        if out is not None and Path(out) != run:
            raise ValueError("Give --out to start a run or --resume to go on with one, not both.")
        # options given beside --resume must agree with the run; train() says which do not
        settings = settings_from({**read_settings(run).model_dump(mode="json"), **given}, "the options")
    else:
        if encoding is None:
            raise ValueError("Which encoding? Give --encoding with a name from the zoo or a formula, or --resume RUN.")
        if out is None:
            raise ValueError("Where to? Give --out with the folder of the run.")
        run = Path(out)
        settings = preset_settings(preset, **given)
    result = train(settings, run, progress=not quiet, log_to=log_to)
    if as_json and os.environ.get("RANK", "0") == "0":
        last = {name: value for line in result.metrics for name, value in line.items()}
        print(json.dumps({"run": str(result.run), "step": result.step, "finished": result.finished, **last}))
    if result.signal:
        sys.exit(128 + result.signal)


def _parameters(given: list[str]) -> dict[str, float]:
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        try:
            if not equals:
                raise ValueError
            values[name.strip()] = float(value)
        except ValueError:
            raise ValueError(f"--set {text!r} is not NAME=VALUE with a number, such as --set k=0.1.") from None
    return values
