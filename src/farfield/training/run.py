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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield import zoo
from farfield.data.corpus import Corpus, open_corpus
from farfield.data.durable import as_disk_full, cache_folder
from farfield.data.samples import Samples
from farfield.data.tokenizer import load_tokenizer, make_tokenizer
from farfield.data.tokens import Tokens, tokenize
from farfield.theory.verdict.convergence import require_defined
from farfield.training.checkpoint import run_lock
from farfield.training.pretrained import fill_in, first_weights, start_of
from farfield.training.processes import Processes, chosen_trackers, divide, fsdp_plugin
from farfield.training.reporting import ProgressBar, say_on_stderr, write_card
from farfield.training.runfolder import (
    CONFIG,
    TOKENIZER,
    ChangedRunError,
    Line,
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
from farfield.training.scaling import training_memory
from farfield.training.settings import Settings
from farfield.zoo.encoding import slopes_sentence

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel

    from farfield.training.loop import Loop

__all__ = ["ChangedRunError", "Result", "corpus_of", "read_metrics", "read_settings", "read_text", "resume", "train"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """How a run is carried out: none of it decides the result, up to rounding, and each may change on the way."""

    divided: bool
    recompute: bool
    compile: bool
    progress: bool
    say: Say


@dataclass(frozen=True)
class Result:
    """How a run ended: at which step, whether it is finished, and the signal that stopped it if one did."""

    run: Path
    step: int
    finished: bool
    signal: int = 0
    metrics: tuple[Line, ...] = ()


def resume(run: str | Path, **options: Any) -> Result:
    """Go on with a run by what its folder says; the keywords are those of `train`."""
    return train(read_settings(Path(run)), run, **options)


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
    run = Path(run)
    settings = fill_in(settings, run)
    _require_values(settings)
    processes = Processes(settings, run, device, chosen_trackers(log_to))
    if not processes.is_main:
        progress, say = False, lambda line: None
    plugin = fsdp_plugin()
    divided = processes.count > 1 and (shard or plugin is not None)
    recompute = recompute or (plugin is not None and bool(plugin.activation_checkpointing))
    options = Options(divided, recompute, compile, progress, say)

    def hold() -> None:
        refuse_foreign_folder(run)
        lock.enter_context(run_lock(run))

    try:
        with ExitStack() as lock:
            processes.on_main(hold)
            return _train_locked(settings, run, processes, options)
    except OSError as error:  # a full disk may show at any write, a line of the metrics too
        sentence = as_disk_full(error, run)
        if sentence is error:
            what = f"{error.strerror or error} ({error.filename or 'no file'})"
            sentence = ValueError(f"The run {str(run)!r} cannot go on: {what}.")
        raise sentence from error


def _require_values(settings: Settings) -> None:
    """A mistake in the formula or its parameters shows before the corpus is read.

    Whether a formula has values is asked exactly at the first distances, where doubles take log(0) for the minus
    infinity of a window, and in doubles at those of a sample and at powers of two. No verdict is needed to train.
    """
    import torch

    from farfield.nn.bias import Bias, bias_of

    with torch.random.fork_rng(devices=[]):
        bias = bias_of(settings.encoding, settings.heads, settings.width // settings.heads, settings.parameters)
    if not isinstance(bias, Bias):
        return
    require_defined(bias.formula, 0)
    t = torch.tensor([*range(settings.length), *(2**e for e in range(6, 21))], dtype=torch.float64)
    for head in range(settings.heads):
        bad = t[bias.formula.torch(t, bias.values_of(head)).isnan()]
        if len(bad):
            raise ValueError(f"the formula {settings.encoding} has no value at distance t = {bad.min().item():.0f}")


def corpus_of(settings: Settings) -> Corpus:
    """The corpus that a run's settings name."""
    return open_corpus(settings.corpus, split_seed=settings.split_seed, errors=settings.errors, limit=settings.limit)


def read_text(
    settings: Settings,
    splits: tuple[str, ...] = ("train", "valid"),
    *,
    stored: Path | None = None,
    progress: bool,
    say: Say | None = None,
) -> tuple[Tokenizer, dict[str, Tokens]]:
    """The tokenizer of a run and the tokens of these splits; `stored` is the tokenizer that the run has."""
    corpus = corpus_of(settings)
    if say is not None and corpus.division:
        say(corpus.division)
    if stored is not None and stored.exists():
        tokenizer = load_tokenizer(str(stored))
    else:
        tokenizer = make_tokenizer(settings.tokenizer, corpus, settings.vocabulary, cache_folder())
    return tokenizer, {split: tokenize(corpus, split, tokenizer, progress=progress) for split in splits}


def _train_locked(settings: Settings, run: Path, processes: Processes, options: Options) -> Result:
    import torch

    from farfield.nn.denormals import flush_denormals
    from farfield.training.loop import Loop
    from farfield.training.network import is_ours, model_config, model_json

    say, begun = options.say, (run / CONFIG).exists()
    if begun:
        refuse_difference(run, read_settings(run).model_dump(mode="json"), settings.model_dump(mode="json"))
        done = processes.on_main(lambda: finished_steps(run))
        if done is not None:
            say(f"The run {str(run)!r} is finished: {done} steps.")
            return Result(run, done, True, metrics=tuple(read_metrics(run)))
    start = start_of(settings, run)
    with processes.accelerator.main_process_first():
        folder = run if begun else start.folder if start is not None else None
        stored = None if folder is None else folder / TOKENIZER
        tokenizer, tokens = read_text(settings, stored=stored, progress=options.progress, say=say)
    samples = {split: Samples(read, settings.length, settings.seed, split) for split, read in tokens.items()}
    with flush_denormals(), torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        config = model_config(settings, tokenizer, tokens, start)
        if options.divided and not is_ours(config):
            raise ValueError("--shard divides this project's own decoder only: train this model without it.")
        written = model_json(config)
        checkpoint = processes.on_main(lambda: prepare(run, written, settings.steps, tokenizer, say))
        first = None if start is None else lambda: first_weights(start, tokenizer)
        model = _make_model(settings, config, processes, options, fresh=checkpoint is None, first=first)
        bar = ProgressBar(settings, 0 if checkpoint is None else checkpoint.step, visible=options.progress)
        loop = Loop(run, settings, model, samples, processes, bar, as_bytes(written), options.divided)
        if checkpoint is not None:
            loop.go_on(checkpoint, say)
        for sentence in _model_sentences(settings, model, processes, options):
            say(sentence)
        with _stop_on_signals(loop, say), processes.trackers(run, settings), closing(bar):
            loop.train()
        step, history = loop.state.step, tuple(loop.state.history)
        if step < settings.steps:
            say(f"Stopped at step {step} of {settings.steps}; go on with: farfield train --resume {run}")
            return Result(run, step, False, loop.stopped, history)
        weights = loop.weights()  # every process takes part

        def write_rest(folder: Path) -> None:
            model.generation_config.save_pretrained(folder)
            write_card(folder, settings, model, list(history), weights)

        processes.on_main(lambda: finish(run, step, lambda path: write_tensors(path, weights), write_rest))
    say(f"Finished: {step} steps, the model is in {str(run)!r}.")
    return Result(run, step, True, metrics=history)


def _make_model(
    settings: Settings,
    config: PretrainedConfig,
    processes: Processes,
    options: Options,
    *,
    fresh: bool,
    first: Callable[[], dict[str, torch.Tensor]] | None,
) -> PreTrainedModel:
    """The model of a run on its device; a fresh one has first weights, those that `first` gives or drawn ones."""
    import torch

    from farfield.training.network import load_weights, make_network

    torch.manual_seed(settings.seed)

    def empty() -> PreTrainedModel:
        return make_network(config, recompute=options.recompute, compile=options.compile)

    def begin() -> PreTrainedModel:
        model = empty()
        if first is not None:
            load_weights(model, first(), settings.start_from)
        return model

    if options.divided:
        return divide(empty, processes, (lambda: begin().state_dict()) if fresh else None)
    return (begin() if fresh else empty()).to(processes.device)


def _model_sentences(
    settings: Settings, model: PreTrainedModel, processes: Processes, options: Options
) -> Iterator[str]:
    """How large the model is, and how the formula's parameters get their values where nobody gave them."""
    from farfield.training.network import bias_of_network

    sizes = settings.model_copy(update={"vocabulary": model.config.vocab_size})
    memory = training_memory(sizes, gpus=processes.count, shard=options.divided, recompute=options.recompute)
    each = f" in each of {processes.count} processes" if processes.count > 1 else ""
    parameters = sum(p.numel() for p in model.parameters())
    size = f"{memory / 1e9:.1f} GB" if memory >= 1e9 else f"{memory / 1e6:.0f} MB"
    yield f"{parameters:,} parameters; weights, optimizer and activations take about {size}{each}."
    slopes = slopes_sentence(zoo.find(settings.encoding), settings.heads, settings.parameters)
    if slopes:
        yield f"{slopes} (--slopes gives others, or learns them)."
    for name, rule in getattr(bias_of_network(model)[1], "rules", {}).items():
        sets = "one set for all layers" if settings.shared_bias else "each layer its own"
        yield f"{name}: {rule.text}, {sets}."


@contextmanager
def _stop_on_signals(loop: Loop, say: Say) -> Iterator[None]:
    """SIGTERM, Ctrl-C and a closed terminal ask to save and leave after the current step; a second leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in (getattr(signal, name) for name in names)}
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
