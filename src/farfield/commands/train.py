"""`farfield train`: a model with any encoding, from a corpus, in a run folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farfield.commands.options import Flag, Json, Learn, SetParameters, Slopes, head_values
from farfield.training.processes import leave_group
from farfield.training.run import read_settings, train
from farfield.training.settings import Settings, settings_from
from farfield.zoo import find
from farfield.zoo.encoding import choose_parameters


def train_command(
    *,
    settings: Settings | None = None,
    parameters: SetParameters = None,
    learn: Learn = None,
    slopes: Slopes = None,
    out: Path | None = None,
    resume: Path | None = None,
    device: str | None = None,
    shard: Flag = False,
    recompute: Annotated[bool, Parameter(name=["--recompute", "--gradient-checkpointing"], negative="")] = False,
    compile: Flag = False,  # noqa: A002 - it is what everyone calls it
    log_to: str = "auto",
    quiet: Flag = False,
    as_json: Json = False,
) -> None:
    """Train a language model with an encoding on a corpus; killed or not, the result is the same to the bit.

    Args:
        settings: What decides the result: each of its fields is an option.
        parameters: A parameter of the formula, as NAME=VALUE, or one value for each head: a=1,2,4,8; may be repeated.
        learn: Parameters that each head learns, with the range in which the heads start and, after "in", bounds:
            "a=0:2, p=0.5:1.5 in 0.01:3". Without bounds a range on one side of 0 stays there; "in -inf:inf" frees it.
            One set for all layers, or with --no-shared-bias one for each.
        slopes: What k is: alibi (the default), learned (starting at ALiBi's), or one for each head: 1/2,1/4,1/8,1/16.
        out: The run folder. If it holds this very run already, the run goes on.
        resume: Go on with the run in this folder.
        device: Where to compute: cpu, cuda, cuda:1, ...; a GPU if there is one unless given.
        shard: Divide weights, gradients and moments among the processes that torchrun started (FSDP2).
        recompute: Keep only the input of each layer, and compute the rest again for the gradient.
        compile: Compile each layer with torch.compile.
        log_to: auto, none, or tensorboard, trackio, wandb (several with commas).
        quiet: No progress bar.
        as_json: Print one JSON object at the end.
    """
    settings = settings or Settings()
    if parameters or learn is not None or slopes is not None:
        known = read_settings(resume) if resume is not None and not settings.encoding else settings
        if not known.encoding:
            raise ValueError("--set, --learn and --slopes belong to a formula: give --encoding too.")
        chosen = choose_parameters(find(known.encoding), known.heads, head_values(parameters), learn, slopes)
        settings = settings.model_copy(update={"parameters": Settings(parameters=chosen).parameters})
    if resume is not None:
        if out not in (None, resume):
            raise ValueError("Give --out to start a run or --resume to go on with one, not both.")
        out = resume
        # options given beside --resume must agree with the run; train() says which do not
        stored = read_settings(resume).model_dump(mode="json")
        settings = settings_from({**stored, **settings.given()}, "the options")
    if not settings.encoding and settings.start_from is None:
        raise ValueError("Which encoding? Give --encoding with a name or a formula, --from RUN or --resume RUN.")
    if out is None:
        raise ValueError("Where to? Give --out with the folder of the run.")
    result = train(
        settings, out, device=device, shard=shard, recompute=recompute, compile=compile,
        progress=not quiet, log_to=log_to,
    )  # fmt: skip
    left = "RANK" in os.environ and leave_group()
    if as_json and os.environ.get("RANK", "0") == "0":
        last = {name: value for line in result.metrics for name, value in line.items()}
        print(json.dumps({"run": str(result.run), "step": result.step, "finished": result.finished, **last}))
    status = 128 + result.signal if result.signal else 0
    if left:
        # All is saved. The threads of a group that is gone abort the interpreter's own way out now and then.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    if status:
        sys.exit(status)
