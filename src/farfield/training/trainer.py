"""transformers' `Trainer`, made to keep its promises: exact resume, verified checkpoints, a stop before bad updates.

What is changed, and why:

* batches come from `data.numbers_of`, a pure function of (seed, step, rank), so the loader has no state to restore;
* a checkpoint goes through `checkpoint.save_checkpoint`, in safetensors and JSON, never pickle;
* the loss of every step is agreed on by all processes before the update, together with the wish to stop (a signal may
  reach one process earlier than another), and a loss or gradient that is not finite stops the run there;
* the mean loss between two lines of `metrics.jsonl` survives a resume.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch.utils.data import DataLoader, Dataset, Sampler
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, TrainerCallback

from farfield.data import durable
from farfield.data.tokens import Samples, numbers_of
from farfield.training.checkpoint import save_checkpoint
from farfield.training.runfolder import FAILURE, METRICS, MODEL, STATE, write_tensors
from farfield.training.settings import Settings


class NonFiniteError(ValueError):
    """A loss or a gradient was infinite or not a number; no update was made with it."""


def inverse_square_root(update: int, warmup: int) -> float:
    """The share of the peak learning rate at an update (counted from 1): linear up to `warmup`, then 1/sqrt."""
    warmup = max(1, warmup)
    return min(update / warmup, math.sqrt(warmup / update))


class _BatchNumbers(Sampler[list[int]]):
    """The numbers of the samples of each micro-batch of this process, for the whole run."""

    def __init__(self, steps: int, accumulate: int, **layout: int) -> None:
        self.steps, self.accumulate, self.layout = steps, accumulate, layout

    def __len__(self) -> int:
        return self.steps * self.accumulate

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.steps):
            for micro_step in range(self.accumulate):
                yield list(numbers_of(step, micro_step, **self.layout))


class _SamplesOfRun(Dataset[dict[str, Any]]):
    """`Samples` as torch wants them."""

    def __init__(self, samples: Samples, count: int) -> None:
        self.samples, self.count = samples, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> dict[str, Any]:
        return self.samples[number]


def collate(samples: list[dict[str, np.ndarray]]) -> dict[str, torch.Tensor]:
    """One batch from samples of equal length."""
    return {name: torch.from_numpy(np.stack([sample[name] for sample in samples])) for name in samples[0]}


class RunTrainer(Trainer):
    """Trains one run folder; `stop` is set by a signal, and the run then saves and leaves."""

    optimizer: Any
    lr_scheduler: Any
    control: Any

    def __init__(
        self,
        model: Any,
        args: TrainingArguments,
        *,
        run: Path,
        settings: Settings,
        train: Samples,
        valid: Samples,
        about: dict[str, Any],
        checkpoint_files: dict[str, bytes],
        callbacks: list[TrainerCallback],
    ) -> None:
        self.run, self.settings, self.samples, self.valid = run, settings, train, valid
        self.about, self.checkpoint_files = about, checkpoint_files
        self.stop = 0  # the number of the signal that asked for it
        self.stopped = 0
        self._loss_sum, self._loss_count, self._handled = 0.0, 0, -1
        self._step_loss = self._gradient_norm = math.nan
        self._tokens_before, self._clock = 0, time.monotonic()
        count = settings.steps * settings.batch
        super().__init__(model=model, args=args, train_dataset=_SamplesOfRun(train, count), callbacks=callbacks)
        self.remove_callback(PrinterCallback)
        self.model.config.use_cache = True  # Trainer switches it off, and it would be saved so

    # --- batches ------------------------------------------------------------------------------------------------------

    def get_train_dataloader(self) -> DataLoader:
        numbers = _BatchNumbers(
            self.settings.steps,
            self.args.gradient_accumulation_steps,
            rank=self.args.process_index,
            batch=self.settings.batch,
            micro_batch=self.args.per_device_train_batch_size,
            world=self.args.world_size,
        )
        return DataLoader(self.train_dataset, batch_sampler=numbers, collate_fn=collate)

    # --- the update ---------------------------------------------------------------------------------------------------

    def create_optimizer(self, model: Any = None) -> torch.optim.Optimizer:
        """Adam with decoupled weight decay on every parameter, which is what the authors' code (fairseq) does."""
        if self.optimizer is None:
            settings = self.settings
            self.optimizer = torch.optim.AdamW(
                [p for p in self.model.parameters() if p.requires_grad],
                lr=settings.learning_rate,
                betas=settings.betas,
                eps=settings.epsilon,
                weight_decay=settings.weight_decay,
                fused=True,
            )
        return self.optimizer

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        if self.lr_scheduler is None:
            warmup = self.settings.warmup
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(
                optimizer or self.optimizer, lambda done: inverse_square_root(done + 1, warmup)
            )
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _clip_grad_norm(self, model: Any) -> Any:
        """Clip; and, with every process, agree on the loss of the step and on whether to go on."""
        norm = super()._clip_grad_norm(model)
        report = torch.stack([self._tr_loss.double(), torch.tensor(float(self.stop > 0), device=self._tr_loss.device)])
        if self.args.world_size > 1:
            torch.distributed.all_reduce(report)
        loss, stopping = report.tolist()
        self._step_loss, self._gradient_norm = loss / self.args.world_size, float(norm)
        self.stopped = (self.stop or 15) if stopping else 0
        if not (math.isfinite(self._step_loss) and math.isfinite(self._gradient_norm)):
            self._fail()
        return norm

    def _fail(self) -> None:
        step = self.state.global_step + 1
        what = "gradient" if math.isfinite(self._step_loss) else "loss"
        bad = [name for name, p in self.model.named_parameters() if p.grad is not None and not p.grad.isfinite().all()]
        message = (
            f"The {what} is not finite at step {step} of {str(self.run)!r} (loss {self._step_loss}, gradient norm "
            f"{self._gradient_norm}): the update was not made; {FAILURE} has the details."
        )
        if self.is_world_process_zero():
            first = (step - 1) * self.settings.batch
            details = {
                "message": message,
                "step": step,
                "loss": str(self._step_loss),
                "gradient_norm": str(self._gradient_norm),
                "learning_rate": self._get_learning_rate(),
                "samples": [first, first + self.settings.batch - 1],
                "parameters_with_bad_gradients": bad,
                "encoding": self.settings.encoding,
            }
            durable.replace_file(self.run / FAILURE, json.dumps(details, indent=1).encode())
        raise NonFiniteError(message)

    # --- after each update --------------------------------------------------------------------------------------------

    def _maybe_log_save_evaluate(self, tr_loss: Any, *_: Any, learning_rate: float | None = None, **__: Any) -> None:
        step, settings = self.state.global_step, self.settings
        if step == self._handled:  # Trainer calls once more at the end of an epoch
            return
        self._handled = step
        tr_loss.zero_()
        self._loss_sum += self._step_loss
        self._loss_count += 1
        last = step == settings.steps
        if step % settings.log_every == 0 or last:
            self.log(
                {
                    "loss": self._loss_sum / self._loss_count,
                    "learning_rate": learning_rate if learning_rate is not None else self._get_learning_rate(),
                    "gradient_norm": self._gradient_norm,
                    "tokens": step * settings.batch * settings.length,
                    "tokens_per_second": self._speed(step),
                }
            )
            self._loss_sum, self._loss_count = 0.0, 0
        if step % settings.evaluate_every == 0 or last:
            self.evaluate()
        if self.stopped:
            self.control.should_training_stop = True
        if step % settings.save_every == 0 or last or self.stopped:
            self._save_checkpoint(self.model, None)

    def _speed(self, step: int) -> float:
        now, tokens = time.monotonic(), step * self.settings.batch * self.settings.length
        speed = (tokens - self._tokens_before) / max(now - self._clock, 1e-9)
        self._tokens_before, self._clock = tokens, now
        return round(speed, 1)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "train_runtime" in logs:  # Trainer's own summary at the end, which counts one session only
            return
        line = {"step": self.state.global_step, **logs}
        self.state.log_history.append(line)
        if self.is_world_process_zero():
            with (self.run / METRICS).open("a") as file:
                file.write(json.dumps(line) + "\n")
        self.control = self.callback_handler.on_log(self.args, self.state, self.control, logs)

    @torch.no_grad()
    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        """The loss on the first `evaluate_tokens` of valid, in pieces of the training length that do not overlap."""
        model, length = self.model, self.settings.length
        ids = self.valid.tokens.ids
        count = max(1, min(self.settings.evaluate_tokens, len(ids) - 1) // length)
        mine = range(self.args.process_index, count, self.args.world_size)
        model.eval()
        at_once = max(1, 4096 // length)
        total = torch.zeros(2, dtype=torch.float64, device=self.args.device)
        for start in range(0, len(mine), at_once):
            rows = [ids[i * length : i * length + length + 1].astype(np.int64) for i in mine[start : start + at_once]]
            batch = torch.from_numpy(np.stack(rows)).to(self.args.device)
            loss = model(input_ids=batch[:, :-1], shift_labels=batch[:, 1:], use_cache=False).loss
            total += torch.tensor([float(loss) * len(rows), len(rows)], dtype=torch.float64, device=total.device)
        model.train()
        if self.args.world_size > 1:
            torch.distributed.all_reduce(total)
        loss = float(total[0] / total[1])
        metrics = {"valid_loss": loss, "valid_perplexity": math.exp(min(loss, 700.0))}
        self.log(dict(metrics))
        return metrics

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        step = self.state.global_step
        if self.is_world_process_zero():
            files: dict[str, Callable[[Path], None]] = {
                MODEL: lambda path: write_tensors(path, self.model.state_dict()),
                "optimizer.safetensors": lambda path: write_tensors(path, self._optimizer_state()),
                "random.safetensors": lambda path: write_tensors(path, _random_state()),
                STATE: lambda path: self.state.save_to_json(str(path)),
            }
            for name, data in self.checkpoint_files.items():
                files[name] = lambda path, data=data: path.write_bytes(data)  # type: ignore[misc]
            about = {**self.about, "loss_sum": self._loss_sum.hex(), "loss_count": self._loss_count}
            save_checkpoint(self.run, step, files, about, keep=self.settings.keep)
        if self.args.world_size > 1:
            torch.distributed.barrier()

    def _optimizer_state(self) -> dict[str, torch.Tensor]:
        states = self.optimizer.state
        return {
            f"{name}.{key}": value
            for name, parameter in self.model.named_parameters()
            for key, value in states.get(parameter, {}).items()
        }

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        weights = load_file(Path(resume_from_checkpoint) / MODEL)
        self.model.load_state_dict(weights, strict=True)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        saved = load_file(Path(checkpoint) / "optimizer.safetensors")
        state: dict[int, dict[str, torch.Tensor]] = {}
        trained = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        for number, (name, _) in enumerate(trained):
            state[number] = {
                key: saved[f"{name}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"{name}.{key}" in saved
            }
        whole = self.optimizer.state_dict()
        self.optimizer.load_state_dict({"state": {n: s for n, s in state.items() if s}, **_only(whole, "param_groups")})
        done = self.state.global_step
        self.lr_scheduler.last_epoch = done
        for group, base in zip(self.optimizer.param_groups, self.lr_scheduler.base_lrs, strict=True):
            group["lr"] = base * inverse_square_root(done + 1, self.settings.warmup)
        self.lr_scheduler._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def _load_scaler(self, checkpoint: str | None) -> None:
        """There is none: float32 and bfloat16 need no scaling of the loss."""

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            _set_random_state(load_file(Path(checkpoint) / "random.safetensors"))

    def resume_counts(self, about: dict[str, Any], step: int) -> None:
        """Take up the running mean of the loss where a checkpoint left it."""
        self._loss_sum, self._loss_count = float.fromhex(about["loss_sum"]), int(about["loss_count"])
        self._handled = step
        self._tokens_before = step * self.settings.batch * self.settings.length


def _only(table: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: table[name] for name in names}


def _random_state() -> dict[str, torch.Tensor]:
    """The state of every generator that anything in the process may draw from."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    assert name == "MT19937"
    state = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys).astype(np.int64)),
        "numpy_rest": torch.tensor([position, has_gauss, cached], dtype=torch.float64),
        "python": torch.tensor([version, *words], dtype=torch.int64),
        "python_gauss": torch.tensor([math.nan if gauss is None else gauss], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        state |= {f"cuda.{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    return state


@contextmanager
def generators_kept() -> Iterator[None]:
    """Give the process its random generators back as they were: transformers seeds all of them."""
    before = _random_state()
    try:
        yield
    finally:
        _set_random_state(before)


def _set_random_state(state: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(state["torch"])
    position, has_gauss, cached = state["numpy_rest"].tolist()
    np.random.set_state(("MT19937", state["numpy"].numpy().astype(np.uint32), int(position), int(has_gauss), cached))
    version, *words = state["python"].tolist()
    gauss = state["python_gauss"].item()
    random.setstate((version, tuple(words), None if math.isnan(gauss) else gauss))
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if f"cuda.{i}" in state:
            torch.cuda.set_rng_state(state[f"cuda.{i}"], i)
