"""One run: settings in, a trained model in a run folder out, and nothing lost when it is killed.

A run folder holds `config.json` (the model's configuration and the run's settings), `metrics.jsonl`, the tokenizer,
`checkpoints/`, and once it is finished `model.safetensors` and a model card, `README.md`; any Hugging Face user can
load it. `train` starts a run or goes on with it; `resume` goes on with what the folder says.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield import zoo
from farfield.data.durable import as_disk_full
from farfield.data.tokenizer import end_token, tokenizer_digest, vocabulary_size
from farfield.data.tokens import Samples, Tokens
from farfield.training.checkpoint import run_lock
from farfield.training.processes import Processes
from farfield.training.runfolder import (
    CONFIG,
    TOKENIZER,
    ChangedRunError,
    as_bytes,
    finish,
    finished_steps,
    prepare,
    read_metrics,
    read_settings,
    refuse_difference,
    write_tensors,
)
from farfield.training.settings import Settings, difference
from farfield.training.text import read_text

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import TrainerCallback

    from farfield.training.trainer import RunTrainer

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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def resume(run: str | Path, *, progress: bool = True, log_to: str = "auto", say: Say = _say) -> Result:
    """Go on with a run by what its folder says."""
    return train(read_settings(Path(run)), run, progress=progress, log_to=log_to, say=say)


def train(
    settings: Settings, run: str | Path, *, progress: bool = True, log_to: str = "auto", say: Say = _say
) -> Result:
    """Train in a run folder: start, or go on from the newest checkpoint that verifies.

    If the folder belongs to a run with other settings, another formula, tokenizer or corpus, this is refused.
    """
    run = Path(run)
    zoo.find(settings.encoding)  # a mistake in the formula shows before the corpus is read
    processes = Processes()
    if not processes.is_main:
        progress, say = False, _say_nothing
    try:
        with ExitStack() as held:
            processes.on_main_process(lambda: held.enter_context(run_lock(run)))
            return _train_locked(settings, run, processes, progress, log_to, say)
    except OSError as error:  # a full disk may show at any write, a line of the metrics too
        raise _as_sentence(error, run) from error


def _train_locked(settings: Settings, run: Path, processes: Processes, progress: bool, log_to: str, say: Say) -> Result:
    if (run / CONFIG).exists():
        refuse_difference(run, read_settings(run).model_dump(mode="json"), settings.model_dump(mode="json"))
        if (done := finished_steps(run)) is not None:
            say(f"The run {str(run)!r} is finished: {done} steps.")
            return Result(run, done, True, metrics=tuple(read_metrics(run)))
    with processes.main_process_first():
        stored = run / TOKENIZER if (run / CONFIG).exists() else None
        tokenizer, tokens = read_text(settings, stored=stored, progress=progress)
    return _train(settings, run, tokenizer, tokens, processes, progress, log_to, say)


def _as_sentence(error: OSError, run: Path) -> Exception:
    sentence = as_disk_full(error, run)
    if sentence is not error:
        return sentence
    return ValueError(f"The run {str(run)!r} cannot go on: {error.strerror or error} ({error.filename or 'no file'}).")


def _say_nothing(line: str) -> None:
    return


def _train(
    settings: Settings,
    run: Path,
    tokenizer: Tokenizer,
    tokens: dict[str, Tokens],
    processes: Processes,
    progress: bool,
    log_to: str,
    say: Say,
) -> Result:
    import torch

    from farfield.nn.decoder.model import FarfieldForCausalLM
    from farfield.nn.denormals import flush_denormals
    from farfield.training.modelcard import write_card
    from farfield.training.progress import ProgressBar
    from farfield.training.trainer import generators_kept

    samples = {split: Samples(read, settings.length, settings.seed, split) for split, read in tokens.items()}
    with flush_denormals(), generators_kept():
        torch.manual_seed(settings.seed)
        model = FarfieldForCausalLM(model_config(settings, tokenizer, _identity(settings, tokenizer, tokens)))
        model.config.training["identity"]["values"] = model.position.values()
        config = model_json(model)
        checkpoint = processes.on_main_process(lambda: prepare(run, config, tokenizer, say))
        bar = ProgressBar(settings, shown=progress)
        trainer = _trainer(model, settings, run, as_bytes(config), samples, processes, bar, log_to)
        done = 0 if checkpoint is None else checkpoint.step
        if checkpoint is not None:
            say(f"Going on from step {done} of {settings.steps}.")
            trainer.resume_counts(checkpoint.about, done)
            _note_other_machine(checkpoint.about, trainer.about, say)
        if done < settings.steps:
            say(processes.on_main_process(lambda: _expectation(trainer, settings.steps - done)))
        with _stop_on_signals(trainer, say), closing(bar):
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint.folder))
        step, history = trainer.state.global_step, trainer.state.log_history
        if step < settings.steps:
            say(f"Stopped at step {step} of {settings.steps}; go on with: farfield train --resume {run}")
            return Result(run, step, False, trainer.stopped, tuple(history))

        def write_rest(folder: Path) -> None:
            trainer.model.generation_config.save_pretrained(folder)
            write_card(folder, settings, trainer.model, history)

        processes.on_main_process(
            lambda: finish(run, step, lambda path: write_tensors(path, trainer.model.state_dict()), write_rest)
        )
    say(f"Finished: {step} steps, the model is in {str(run)!r}.")
    return Result(run, step, True, metrics=tuple(history))


def _identity(settings: Settings, tokenizer: Tokenizer, tokens: dict[str, Tokens]) -> dict[str, Any]:
    """What the names in the settings stand for today."""
    return {
        "formula": zoo.find(settings.encoding).text,
        "tokenizer": tokenizer_digest(tokenizer),
        "corpus": {split: read.sha256 for split, read in tokens.items()},
    }


def model_config(settings: Settings, tokenizer: Tokenizer, identity: dict[str, Any]) -> Any:
    """The model's configuration for these settings, with the settings themselves inside."""
    from farfield.nn.decoder.config import FarfieldConfig

    end = end_token(tokenizer)
    return FarfieldConfig(
        vocab_size=vocabulary_size(tokenizer),
        hidden_size=settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        intermediate_size=settings.feed_forward,
        max_position_embeddings=settings.length,
        dropout=settings.dropout,
        encoding=settings.encoding,
        encoding_parameters=settings.parameters or None,
        shared_bias=settings.shared_bias,
        bos_token_id=end and end[1],
        eos_token_id=end and end[1],
        training={"settings": settings.model_dump(mode="json"), "identity": identity},
    )


def model_json(model: Any) -> dict[str, Any]:
    """The `config.json` of a model, as `save_pretrained` would write it."""
    fields = {**model.config.to_dict(), "architectures": [type(model).__name__], "dtype": "float32", "use_cache": True}
    return json.loads(json.dumps(fields, sort_keys=True))


def _trainer(
    model: Any,
    settings: Settings,
    run: Path,
    config: bytes,
    samples: dict[str, Samples],
    processes: Processes,
    bar: TrainerCallback,
    log_to: str,
) -> RunTrainer:
    import torch
    from transformers import TrainingArguments

    from farfield.training.progress import loggers
    from farfield.training.trainer import RunTrainer

    micro_batch, accumulate = processes.share(settings)
    arguments = TrainingArguments(
        output_dir=str(run),
        max_steps=settings.steps,
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=accumulate,
        learning_rate=settings.learning_rate,
        max_grad_norm=settings.clip,
        seed=settings.seed % (1 << 32),
        bf16=settings.precision == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        eval_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        ddp_find_unused_parameters=False,
        average_tokens_across_devices=False,
        disable_tqdm=True,
        report_to=loggers(log_to) if processes.is_main else "none",
        run_name=run.name,
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # more than one GPU: torchrun, not DataParallel
    return RunTrainer(
        model,
        arguments,
        run=run,
        settings=settings,
        train=samples["train"],
        valid=samples["valid"],
        about={"torch": torch.__version__, "threads": torch.get_num_threads(), "device": str(arguments.device)},
        checkpoint_files={CONFIG: config},
        callbacks=[bar],
    )


def _expectation(trainer: RunTrainer, steps: int) -> str:
    """What the run will take, measured."""
    from farfield.training.estimate import measure

    micro_batch, accumulate = trainer.args.per_device_train_batch_size, trainer.args.gradient_accumulation_steps
    return measure(trainer.model.config, trainer.settings, micro_batch, accumulate, steps).sentence


def _note_other_machine(before: dict[str, Any], now: dict[str, Any], say: Say) -> None:
    changes = difference({name: before.get(name) for name in now}, now)
    if changes:
        say(f"Other circumstances than before ({'; '.join(changes)}): the last bits of the result may differ.")


@contextmanager
def _stop_on_signals(trainer: RunTrainer, say: Say) -> Iterator[None]:
    """SIGTERM and Ctrl-C ask the run to save and leave after the current step; a second one leaves at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watched = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.getsignal(number) for number in watched}

    def ask(number: int, frame: object) -> None:
        trainer.stop = number
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
