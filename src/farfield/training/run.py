"""One run: settings in, a trained model in a run folder out, and nothing lost when it is killed.

A run folder holds `config.json` (the model's configuration and the run's settings), `metrics.jsonl`, the tokenizer,
`checkpoints/`, and once it is finished `model.safetensors` and a model card, `README.md`; any Hugging Face user can
load it. `train` starts a run or goes on with it; `resume` goes on with what the folder says.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield import zoo
from farfield.data.durable import as_disk_full
from farfield.data.samples import Samples
from farfield.formula import FormulaError
from farfield.theory.verdict.convergence import check
from farfield.training.checkpoint import run_lock
from farfield.training.processes import Processes
from farfield.training.progress import say_on_stderr
from farfield.training.run_text import read_text
from farfield.training.runfolder import (
    CONFIG,
    ChangedRunError,
    as_bytes,
    finish,
    finished_steps,
    prepare,
    read_metrics,
    read_settings,
    refuse_difference,
    refuse_foreign_folder,
    write_tensors,
)
from farfield.training.settings import Settings
from farfield.training.start import filled_in, first_weights, origin, other_model, stored_tokenizer
from farfield.training.trackers import chosen_trackers, start_trackers, stop_trackers
from farfield.zoo.head_parameters import said_slopes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from farfield.data.tokens import Tokens
    from farfield.training.assembly import Means
    from farfield.training.loop import Loop

__all__ = ["ChangedRunError", "Result", "read_metrics", "read_settings", "resume", "train"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """How a run ended: at which step, whether it is finished, and the signal that stopped it if one did."""

    run: Path
    step: int
    finished: bool
    signal: int = 0
    metrics: tuple[dict[str, Any], ...] = ()


def resume(run: str | Path, **means: Any) -> Result:
    """Go on with a run by what its folder says; the keywords are those of `train`."""
    return train(read_settings(Path(run)), run, **means)


def train(
    settings: Settings,
    run: str | Path,
    *,
    device: str | None = None,
    shard: bool = False,
    recompute: bool = False,
    compile: bool = False,  # noqa: A002 - it is what everyone calls it
    progress: bool = True,
    log_to: str = "auto",
    say: Say = say_on_stderr,
) -> Result:
    """Train in a run folder: start, or go on from the newest checkpoint that verifies.

    Several processes share a run if torchrun, accelerate or SLURM starts them. None of the keywords decides the result,
    up to rounding, and each may change when a run goes on.

    Args:
        settings: Everything that decides the result.
        run: The folder. If it belongs to a run with other settings, another formula, tokenizer or corpus, this is
            refused.
        device: Where to compute: "cpu", "cuda", "cuda:1", ...; a GPU if there is one unless given.
        shard: Divide weights, gradients and moments among the processes (FSDP2).
        recompute: Keep only the input of each layer, and compute the rest again for the gradient.
        compile: Compile each layer with `torch.compile`.
        progress: Show a progress bar.
        log_to: `auto`, `none`, or tensorboard, trackio, wandb (several with commas).
        say: Is given each sentence about the run; prints it on stderr unless given.

    Returns:
        How it ended.

    Raises:
        ValueError: If something is wrong that the user can mend; the message is one sentence.
    """
    from farfield.training.assembly import Means

    run = Path(run)
    settings = filled_in(settings, run)
    _require_bias(settings)
    processes = Processes(settings, run, device, chosen_trackers(log_to))
    if not processes.is_main:
        progress, say = False, _say_nothing
    means = Means(shard, recompute, compile, progress, say)
    try:
        with ExitStack() as held:
            processes.on_main(lambda: _hold(run, held))
            return _train_locked(settings, run, processes, means)
    except OSError as error:  # a full disk may show at any write, a line of the metrics too
        raise _as_sentence(error, run) from error


def _require_bias(settings: Settings) -> None:
    """A mistake in the formula or its parameters shows before the corpus is read."""
    zoo.find(settings.encoding)
    import torch

    from farfield.nn.bias import bias_of

    with torch.random.fork_rng(devices=[]):
        bias_of(settings.encoding, settings.heads, settings.width // settings.heads, settings.parameters)
    try:
        check(settings.encoding)
    except FormulaError:  # it has no value at some distance
        raise
    except ValueError:
        pass  # no verdict is needed to train


def _hold(run: Path, held: ExitStack) -> None:
    refuse_foreign_folder(run)
    held.enter_context(run_lock(run))


def _train_locked(settings: Settings, run: Path, processes: Processes, means: Means) -> Result:
    if (run / CONFIG).exists():
        refuse_difference(run, read_settings(run).model_dump(mode="json"), settings.model_dump(mode="json"))
        done = processes.on_main(lambda: finished_steps(run))
        if done is not None:
            means.say(f"The run {str(run)!r} is finished: {done} steps.")
            return Result(run, done, True, metrics=tuple(read_metrics(run)))
    with processes.accelerator.main_process_first():
        stored = stored_tokenizer(settings, run)
        tokenizer, tokens = read_text(settings, stored=stored, progress=means.progress, say=means.say)
    return _train(settings, run, tokenizer, tokens, processes, means)


def _as_sentence(error: OSError, run: Path) -> Exception:
    sentence = as_disk_full(error, run)
    if sentence is not error:
        return sentence
    return ValueError(f"The run {str(run)!r} cannot go on: {error.strerror or error} ({error.filename or 'no file'}).")


def _say_nothing(line: str) -> None:
    return


def _train(
    settings: Settings, run: Path, tokenizer: Tokenizer, tokens: dict[str, Tokens], processes: Processes, means: Means
) -> Result:
    from farfield.nn.denormals import flush_denormals
    from farfield.training.assembly import assemble, model_config, model_json
    from farfield.training.generators import generators_kept
    from farfield.training.modelcard import write_card

    samples = {split: Samples(read, settings.length, settings.seed, split) for split, read in tokens.items()}
    with flush_denormals(), generators_kept():
        began = origin(settings, run)
        config = model_config(settings, tokenizer, tokens, began, other_model(settings, run))
        written = model_json(config)
        checkpoint = processes.on_main(lambda: prepare(run, written, tokenizer, means.say))
        first = None if began is None else partial(first_weights, settings, began, tokenizer)
        loop = assemble(settings, run, config, as_bytes(written), samples, processes, means, checkpoint, first)
        for sentence in _said_parameters(settings, loop.model):
            means.say(sentence)
        with _stop_on_signals(loop, means.say), _tracked(processes, run, settings), closing(loop.bar):
            loop.train()
        step, history = loop.state.step, tuple(loop.state.history)
        if step < settings.steps:
            means.say(f"Stopped at step {step} of {settings.steps}; go on with: farfield train --resume {run}")
            return Result(run, step, False, loop.stopped, history)
        weights = loop.weights()  # every process takes part

        def write_rest(folder: Path) -> None:
            loop.model.generation_config.save_pretrained(folder)
            write_card(folder, settings, loop.model, list(history), weights)

        processes.on_main(lambda: finish(run, step, lambda path: write_tensors(path, weights), write_rest))
    means.say(f"Finished: {step} steps, the model is in {str(run)!r}.")
    return Result(run, step, True, metrics=history)


def _said_parameters(settings: Settings, model: Any) -> list[str]:
    """How the formula's parameters get their values, where nobody gave them."""
    slopes = said_slopes(zoo.find(settings.encoding), settings.heads, settings.parameters)
    sentences = [f"{slopes} (--slopes gives others, or learns them)."] if slopes else []
    from farfield.training.network import bias_of_network

    for name, rule in getattr(bias_of_network(model)[1], "rules", {}).items():
        each = "one set for all layers" if settings.shared_bias else "each layer its own"
        sentences.append(f"{name}: {rule.text}, {each}.")
    return sentences


@contextmanager
def _tracked(processes: Processes, run: Path, settings: Settings) -> Iterator[None]:
    start_trackers(processes, run, settings)
    try:
        yield
    finally:
        stop_trackers(processes)


@contextmanager
def _stop_on_signals(loop: Loop, say: Say) -> Iterator[None]:
    """SIGTERM, Ctrl-C and a closed terminal ask to save and leave after the current step; a second leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    known = {getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)}
    before = {number: signal.getsignal(number) for number in known}
    watched = [number for number, handler in before.items() if handler != signal.SIG_IGN]  # nohup has its way

    def ask(number: int, frame: object) -> None:
        loop.stop = number
        for each in watched:
            signal.signal(each, signal.SIG_DFL)
        say("Saving after this step; a second signal leaves at once.")

    for number in watched:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
