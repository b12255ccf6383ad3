"""One run: settings in, a trained model in a run folder out, and nothing lost when it is killed.

A run folder holds `config.json` (the model's configuration and the run's settings), `metrics.jsonl`, the tokeniser,
`checkpoints/`, and once it is finished `model.safetensors` and a model card, `README.md`; any Hugging Face user can
load it. `train` starts a run or goes on with it; `resume` goes on with what the folder says.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from farfield import durable, zoo
from farfield import tokeniser as tokenisers
from farfield.checkpoint import Checkpoint, newest_checkpoint, run_lock
from farfield.corpus import open_corpus
from farfield.data import Samples, Tokens, cache_folder, tokenise
from farfield.presets import Settings, difference, settings_from

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from farfield.trainer import RunTrainer

CONFIG, TOKENISER, MODEL, FINISHED = "config.json", "tokenizer.json", "model.safetensors", "finished.json"
Say = Callable[[str], None]
T = TypeVar("T")


class ChangedRunError(ValueError):
    """A run folder was started with something else; the message says what differs."""


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


def read_settings(run: Path) -> Settings:
    """The settings in a run's `config.json`, which is untrusted input."""
    config = _read_config(run)
    training = config.get("training")
    if not isinstance(training, dict):
        raise ValueError(f"{str(run / CONFIG)!r} has no settings of a run (no table called 'training').")
    return settings_from(training.get("settings"), str(run / CONFIG))


def train(
    settings: Settings, run: str | Path, *, progress: bool = True, log_to: str = "auto", say: Say = _say
) -> Result:
    """Train in a run folder: start, or go on from the newest checkpoint that verifies.

    If the folder belongs to a run with other settings, another formula, tokeniser or corpus, this is refused.
    """
    run = Path(run)
    processes = _Processes()
    if not processes.first:
        progress, say = False, lambda line: None
    with ExitStack() as held:
        processes.first_does(lambda: held.enter_context(run_lock(run)) or True)
        return _train(settings, run, processes, progress, log_to, say)


def _train(settings: Settings, run: Path, processes: _Processes, progress: bool, log_to: str, say: Say) -> Result:
    encoding = zoo.find(settings.encoding)
    if (run / CONFIG).exists():
        _refuse_difference(run, read_settings(run).model_dump(mode="json"), settings.model_dump(mode="json"))
        if (done := _finished(run)) is not None:
            say(f"The run {str(run)!r} is finished: {done} steps.")
            return Result(run, done, True, metrics=tuple(read_metrics(run)))

    with processes.first_goes_ahead():
        corpus = open_corpus(
            settings.corpus, split_seed=settings.split_seed, errors=settings.errors, limit=settings.limit
        )
        tokeniser = _tokeniser(settings, corpus, run)
        tokens = {split: _whole_tokens(corpus, split, tokeniser, progress) for split in ("train", "valid")}
    train_samples = Samples(tokens["train"], settings.length, settings.seed)
    valid_samples = Samples(tokens["valid"], settings.length, settings.seed, "valid")

    import torch

    from farfield.nn.model import FarfieldForCausalLM

    with denormals_flushed(), torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(settings.seed)
        identity = {
            "formula": encoding.text,
            "values": [{k: str(v) for k, v in head.items()} for head in _values(encoding, settings)],
            "tokeniser": tokenisers.digest(tokeniser),
            "corpus": {split: found.sha256 for split, found in tokens.items()},
        }
        model = FarfieldForCausalLM(model_config(settings, tokeniser, identity))
        config = model_json(model)
        checkpoint = processes.first_does(lambda: _prepare(run, config, tokeniser, say))
        trainer = _trainer(model, settings, run, config, processes, progress, log_to, (train_samples, valid_samples))
        _announce(settings, model, trainer, checkpoint, say)
        with _stop_on_signals(trainer, say):
            if checkpoint is not None:
                trainer.resume_counts(checkpoint.about, checkpoint.step)
                _note_other_machine(checkpoint.about, trainer.about, say)
            processes.first_does(lambda: _write_metrics(run, checkpoint))
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint.folder))
        step = trainer.state.global_step
        if step < settings.steps:
            say(f"Stopped at step {step} of {settings.steps}; go on with: farfield train --resume {run}")
            return Result(run, step, False, trainer.stopped, tuple(trainer.state.log_history))
        processes.first_does(lambda: _finish(run, trainer, tokeniser, settings))
    say(f"Finished: {step} steps, the model is in {str(run)!r}.")
    return Result(run, step, True, metrics=tuple(trainer.state.log_history))


# --- what a run folder says -------------------------------------------------------------------------------------------


def _read_config(run: Path) -> dict[str, Any]:
    path = run / CONFIG
    if not path.exists():
        raise ValueError(f"{str(run)!r} is not a run folder: it has no {CONFIG}.")
    try:
        if path.stat().st_size > 1 << 20:
            raise ValueError("longer than 1 MB")
        config = json.loads(path.read_bytes())
        if not isinstance(config, dict):
            raise ValueError("not a table")
        return config
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as a configuration: {error}.") from None


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """The lines of a run's `metrics.jsonl`; a last line that a kill cut off is left out."""
    lines = []
    path = run / "metrics.jsonl"
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        try:
            lines.append(json.loads(line))
        except ValueError:
            continue
    return lines


def model_config(settings: Settings, tokeniser: Tokenizer, identity: dict[str, Any]) -> Any:
    """The model's configuration for these settings, with the settings themselves inside."""
    from farfield.nn.config import FarfieldConfig

    end = tokenisers.end_token(tokeniser)
    return FarfieldConfig(
        vocab_size=tokenisers.size_of(tokeniser),
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
    """The `config.json` of a model, as `save_pretrained` will write it."""
    fields = {**model.config.to_dict(), "architectures": [type(model).__name__], "dtype": "float32", "use_cache": True}
    return json.loads(json.dumps(fields, sort_keys=True))


def _refuse_difference(run: Path, before: dict[str, Any], now: dict[str, Any]) -> None:
    changes = difference(before, now)
    if changes:
        raise ChangedRunError(
            f"The run in {str(run)!r} was started with something else ({'; '.join(changes)}): "
            "give it back what it had, or choose another folder."
        )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration without nesting, and without what an update of transformers changes."""
    flat = {name: value for name, value in config.items() if name not in ("training", "transformers_version")}
    training = config.get("training")
    for part in ("settings", "identity"):
        table = training.get(part) if isinstance(training, dict) else None
        flat |= {f"{part}.{name}": value for name, value in table.items()} if isinstance(table, dict) else {}
    return flat


def _finished(run: Path) -> int | None:
    """The number of steps, if the finished model is there and whole."""
    try:
        done = json.loads((run / FINISHED).read_bytes())
        with (run / MODEL).open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == done["sha256"]
        return int(done["step"]) if whole else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _prepare(run: Path, config: dict[str, Any], tokeniser: Tokenizer, say: Say) -> Checkpoint | None:
    """Check that the folder is of this run, find its newest checkpoint, and write what every run folder has."""
    if (run / CONFIG).exists():
        _refuse_difference(run, _flat(_read_config(run)), _flat(config))
    checkpoint = newest_checkpoint(run, say)
    if checkpoint is not None:
        saved = json.loads((checkpoint.folder / CONFIG).read_bytes())
        _refuse_difference(run, _flat(saved), _flat(config))
    (run / "failure.json").unlink(missing_ok=True)
    (run / FINISHED).unlink(missing_ok=True)
    if not (run / CONFIG).exists():
        tokenisers.for_transformers(tokeniser).save_pretrained(run)
        durable.replace_file(run / TOKENISER, tokeniser.to_str().encode())
        durable.replace_file(run / CONFIG, _as_bytes(config))
    return checkpoint


def _as_bytes(config: dict[str, Any]) -> bytes:
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def _write_metrics(run: Path, checkpoint: Checkpoint | None) -> None:
    """The metrics up to the checkpoint: what a killed process wrote after it will be written again."""
    lines = []
    if checkpoint is not None:
        lines = json.loads((checkpoint.folder / "trainer_state.json").read_bytes())["log_history"]
    durable.replace_file(run / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())


def _finish(run: Path, trainer: RunTrainer, tokeniser: Tokenizer, settings: Settings) -> None:
    """Put the finished model beside its configuration; the note that it is finished comes last."""
    import shutil

    from safetensors.torch import save_file

    from farfield.modelcard import write_card

    staged = run / ".model.staged"
    try:
        weights = {name: value.contiguous() for name, value in trainer.model.state_dict().items()}
        save_file(weights, staged, metadata={"format": "pt"})
        durable.sync_file(staged)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    with staged.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    durable.rename(staged, run / MODEL)
    trainer.model.generation_config.save_pretrained(run)
    write_card(run, settings, trainer.model, trainer.state.log_history)
    done = {"step": trainer.state.global_step, "sha256": sha256}
    durable.replace_file(run / FINISHED, json.dumps(done).encode())
    shutil.rmtree(run / "trainer_output", ignore_errors=True)


# --- parts of a run ---------------------------------------------------------------------------------------------------


def _tokeniser(settings: Settings, corpus: Any, run: Path) -> Tokenizer:
    """The run's own tokeniser if it has one already, else the one that the settings name."""
    if (run / CONFIG).exists() and (run / TOKENISER).exists():
        return tokenisers.load_tokeniser(str(run / TOKENISER))
    return tokenisers.make_tokeniser(settings.tokeniser, corpus, settings.vocabulary, cache_folder())


def _whole_tokens(corpus: Any, split: str, tokeniser: Tokenizer, progress: bool) -> Tokens:
    import shutil

    tokens = tokenise(corpus, split, tokeniser, progress=progress)
    if not tokens.verify():  # the cache was damaged since: make it again
        shutil.rmtree(tokens.path.parent)
        tokens = tokenise(corpus, split, tokeniser, progress=progress)
    return tokens


def _values(encoding: zoo.Encoding, settings: Settings) -> list[dict[str, Any]]:
    return [] if encoding.formula is None else encoding.values(settings.heads, settings.width // settings.heads)


def _trainer(
    model: Any,
    settings: Settings,
    run: Path,
    config: dict[str, Any],
    processes: _Processes,
    progress: bool,
    log_to: str,
    samples: tuple[Samples, Samples],
) -> RunTrainer:
    import torch
    from transformers import TrainingArguments

    from farfield.progress import ProgressBar, loggers
    from farfield.trainer import RunTrainer

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
        report_to=loggers(log_to) if processes.first else "none",
        run_name=run.name,
    )
    arguments._n_gpu = min(1, arguments.n_gpu)  # more than one GPU: torchrun, not DataParallel
    about = {"torch": torch.__version__, "threads": torch.get_num_threads(), "device": str(arguments.device)}
    trainer = RunTrainer(
        model,
        arguments,
        run=run,
        settings=settings,
        train=samples[0],
        valid=samples[1],
        about=about,
        checkpoint_files={CONFIG: _as_bytes(config)},
        callbacks=[ProgressBar(settings)] if progress else [],
    )
    from transformers.trainer_callback import PrinterCallback

    trainer.remove_callback(PrinterCallback)
    return trainer


def _announce(settings: Settings, model: Any, trainer: RunTrainer, checkpoint: Checkpoint | None, say: Say) -> None:
    from farfield.estimate import measure

    done = 0 if checkpoint is None else checkpoint.step
    if done:
        say(f"Going on from step {done} of {settings.steps}.")
    if trainer.is_world_process_zero():
        micro_batch = trainer.args.per_device_train_batch_size
        accumulate = trainer.args.gradient_accumulation_steps
        say(measure(model.config, settings, micro_batch, accumulate, settings.steps - done).sentence)


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


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Treat numbers below 1e-38 as zero, which keeps the CPU's kernels fast, and leave the process as it was found."""
    import torch

    tiny = torch.tensor([1e-40])
    already = bool((tiny * 1.0 == 0).all())
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(already)


class _Processes:
    """The processes that share a run: one, or as many as torchrun or accelerate started."""

    def __init__(self) -> None:
        self.count, self.rank = 1, 0
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            import torch
            from accelerate import PartialState

            state = PartialState(cpu=not torch.cuda.is_available())
            self.count, self.rank = state.num_processes, state.process_index

    @property
    def first(self) -> bool:
        return self.rank == 0

    def first_does(self, work: Callable[[], T]) -> T:
        """Let the first process do something, and give all of them its result, or its error."""
        if self.count == 1:
            return work()
        import torch.distributed

        outcome: list[Any] = [None, None]
        if self.first:
            try:
                outcome[0] = work()
            except Exception as error:
                outcome[1] = error if isinstance(error, ValueError) else RuntimeError(str(error))
        torch.distributed.broadcast_object_list(outcome, src=0)
        if outcome[1] is not None:
            raise outcome[1]
        return outcome[0]

    @contextmanager
    def first_goes_ahead(self) -> Iterator[None]:
        """The first process does the work that fills a cache; the others then find it filled."""
        if self.count > 1 and not self.first:
            self.first_does(lambda: None)
        try:
            yield
        except Exception as error:
            if self.count > 1 and self.first:
                failed = error
                self.first_does(lambda: _raise(failed))
            raise
        if self.count > 1 and self.first:
            self.first_does(lambda: None)

    def share(self, settings: Settings) -> tuple[int, int]:
        """How many samples a process holds at once, and how many times in one update."""
        if settings.batch % self.count:
            raise ValueError(f"A batch of {settings.batch} samples cannot be shared by {self.count} processes.")
        mine = settings.batch // self.count
        most = min(mine, settings.micro_batch or mine)
        micro_batch = next(size for size in range(most, 0, -1) if mine % size == 0)
        return micro_batch, mine // micro_batch


def _raise(error: Exception) -> None:
    raise error
