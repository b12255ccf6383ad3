"""The training loop: updates, evaluation, metrics, checkpoints, over one process or many.

Nothing in it has a state of its own but the number of updates done and the losses since the last line of metrics: the
samples, their dropout and the learning rate are functions of the settings and the step. So a run that is resumed does
exactly what an undisturbed one does.

The mean over the tokens of an update is exact however it is cut: each micro-batch counts by its tokens. Before an
update all processes agree on its loss, on whether everything is finite, and on whether one of them was asked to stop.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from farfield.data import durable
from farfield.data.samples import Samples, micro_batches
from farfield.nn.bias import Bias
from farfield.training.checkpoint import About, Checkpoint
from farfield.training.network import bias_of_network, load_state, mean_loss, optimizer_of, save_state, weights_of
from farfield.training.processes import Processes, gather_weights, local_part
from farfield.training.reporting import ProgressBar
from farfield.training.runfolder import CONFIG, FAILURE, METRICS, STATE, Line, checkpoint_state
from farfield.training.settings import Settings, difference

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class NonFiniteError(ValueError):
    """A loss or a gradient was infinite or not a number; no update was made with it."""


def inverse_square_root(update: int, warmup: int) -> float:
    """Linear up to `warmup`, then 1/sqrt (the paper's); updates count from 1."""
    warmup = max(1, warmup)
    return min(update / warmup, math.sqrt(warmup / update))


def cosine(update: int, warmup: int, steps: int) -> float:
    """Linear up to `warmup`, then half a cosine down to 0 after the last update; updates count from 1."""
    warmup = max(1, warmup)
    if update <= warmup:
        return update / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (update - warmup) / (steps + 1 - warmup)))


def learning_rate(settings: Settings, update: int) -> float:
    """The learning rate of an update of a run."""
    if settings.schedule == "cosine":
        return settings.learning_rate * cosine(update, settings.warmup, settings.steps)
    return settings.learning_rate * inverse_square_root(update, settings.warmup)


@dataclass
class RunState:
    """How far a run is: updates done, the lines of metrics, and the losses since the last line."""

    step: int = 0
    history: list[Line] = field(default_factory=list)
    loss_sum: float = 0.0
    loss_count: int = 0


@dataclass
class Loop:
    """Trains one run folder; `stop` is set by a signal, and the run then saves and leaves."""

    run: Path
    settings: Settings
    model: PreTrainedModel  # as the user knows it; `forward` is what is called: the same, or wrapped by DDP
    samples: dict[str, Samples]
    processes: Processes
    bar: ProgressBar
    config: bytes
    divided: bool = False
    state: RunState = field(default_factory=RunState)
    stop: int = 0  # the number of the signal that asked for it
    stopped: int = 0

    def __post_init__(self) -> None:
        alone = self.processes.count == 1 or self.divided
        self.forward: nn.Module = self.model if alone else self.processes.accelerator.prepare(self.model)
        self.optimizer = optimizer_of(self.model, self.settings)

    @property
    def about(self) -> About:
        """What the last bits of a result depend on, beside the settings."""
        return {
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "device": self.processes.device.type,
            "processes": self.processes.count,
            "divided": self.divided,
        }

    def go_on(self, checkpoint: Checkpoint, say: Callable[[str], None]) -> None:
        """Put the run where a checkpoint left it."""
        about, step, steps = checkpoint.about, checkpoint.step, self.settings.steps
        state = RunState(step, *checkpoint_state(checkpoint, steps))
        load_state(self, checkpoint.folder, step)
        self.state = state
        say(f"Going on from step {step} of {steps}.")
        changes = difference(about, {**about, **{name: now for name, now in self.about.items() if name in about}})
        if changes:
            say(f"Other circumstances than before ({'; '.join(changes)}): the last bits of the result may differ.")

    def train(self) -> None:
        """Update after update, to the last or until someone asks to stop."""
        settings, state, pace = self.settings, self.state, self.bar.pace
        clock, tokens = time.monotonic(), state.step * settings.batch * settings.length
        self.model.train()
        while state.step < settings.steps and not self.stopped:
            with pace.timed("step"):
                loss, norm, rate = self._update()
            state.step += 1
            state.loss_sum, state.loss_count = state.loss_sum + loss, state.loss_count + 1
            last = state.step == settings.steps
            if state.step % settings.log_every == 0 or last:
                now, done = time.monotonic(), state.step * settings.batch * settings.length
                speed = round((done - tokens) / max(now - clock, 1e-9), 1)
                self.bar.loss = state.loss_sum / state.loss_count
                self._log(
                    loss=self.bar.loss, learning_rate=rate, gradient_norm=norm, tokens=done, tokens_per_second=speed
                )
                state.loss_sum, state.loss_count, clock, tokens = 0.0, 0, now, done
            if state.step % settings.evaluate_every == 0 or last:
                with pace.timed("evaluation"):
                    loss = self.evaluate()
                self._log(valid_loss=loss, valid_perplexity=math.exp(min(loss, 700.0)))
            if state.step % settings.save_every == 0 or last or self.stopped:
                with pace.timed("save"):
                    self.save()
            self.bar.moved(state.step)

    # --- one update ---------------------------------------------------------------------------------------------------

    def _update(self) -> tuple[float, float, float]:
        """Forward, backward, clip, agree, step; the loss, the norm of the gradient, and the learning rate."""
        accelerator, rate = self.processes.accelerator, learning_rate(self.settings, self.state.step + 1)
        total = torch.zeros((), device=self.processes.device)
        for batch, divisor, synchronised in self._micro_batches():
            with synchronised:
                with self._arithmetic():
                    loss = mean_loss(self.forward, self.model.config, batch)
                loss = loss / divisor if divisor else loss * 0.0
                accelerator.backward(loss)
            total += loss.detach()
        norm = accelerator.clip_grad_norm_(self.forward.parameters(), self.settings.clip)
        norm = float(norm.full_tensor() if self.divided else norm)
        loss = self._agreed(total)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            self._fail(loss, norm, rate)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.divided and isinstance(bias := bias_of_network(self.model)[1], Bias):
            bias.keep_in_range()  # the forward pass sees copies of divided parameters
        return loss, norm, rate

    def _micro_batches(self) -> Iterator[tuple[dict[str, torch.Tensor], float, AbstractContextManager[None]]]:
        """The micro-batches of this process at this step; what to divide each mean loss by; when to exchange gradients.

        The processes' gradients are averaged, so a micro-batch of n samples counts n * processes / batch. One that is
        empty reads the update's first sample and counts nothing: the others wait for this process.
        """
        settings, count = self.settings, self.processes.count
        first = self.state.step * settings.batch
        parts = micro_batches(settings.batch, settings.micro_batch, count, self.processes.rank)
        for place, part in enumerate(parts):
            numbers = [first + number for number in part] or [first]
            wait = place < len(parts) - 1 and not self.divided
            synchronised = self.processes.accelerator.no_sync(self.forward) if wait else nullcontext()
            divisor = settings.batch / (len(part) * count) if part else 0.0
            yield self._batch([self.samples["train"][number] for number in numbers]), divisor, synchronised

    def _batch(self, samples: list[dict[str, np.ndarray]]) -> dict[str, torch.Tensor]:
        return {
            name: torch.from_numpy(np.stack([sample[name] for sample in samples])).to(self.processes.device)
            for name in samples[0]
        }

    def _arithmetic(self) -> AbstractContextManager[None]:
        return torch.autocast(self.processes.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16")

    def _agreed(self, total: torch.Tensor) -> float:
        """The mean loss over the processes; and, in the same message, whether one of them was asked to stop."""
        stop = torch.tensor(float(self.stop > 0), device=total.device)
        loss, stopping = self.processes.sum(torch.stack([total.double(), stop.double()])).tolist()
        self.stopped = (self.stop or 15) if stopping else 0
        return loss / self.processes.count

    def _fail(self, loss: float, norm: float, rate: float) -> None:
        step, batch = self.state.step + 1, self.settings.batch
        message = (
            f"The {'gradient' if math.isfinite(loss) else 'loss'} is not finite at step {step} of {str(self.run)!r} "
            f"(loss {loss}, gradient norm {norm}): the update was not made; {FAILURE} has the details."
        )
        parameters = list(self.model.named_parameters())
        bad = [name for name, p in parameters if p.grad is not None and not local_part(p.grad).isfinite().all()]
        everywhere = {name for names in self.processes.everyone(lambda: bad) for name in names}
        details = {
            "message": message,
            "step": step,
            "loss": str(loss),
            "gradient_norm": str(norm),
            "learning_rate": rate,
            "samples": [(step - 1) * batch, step * batch - 1],
            "parameters_with_bad_gradients": [name for name, _ in parameters if name in everywhere],
            "encoding": self.settings.encoding,
        }
        if self.processes.is_main:
            durable.replace_file(self.run / FAILURE, json.dumps(details, indent=1).encode())
        raise NonFiniteError(message)

    # --- around the updates -------------------------------------------------------------------------------------------

    @torch.no_grad()
    def evaluate(self) -> float:
        """The loss on the first `evaluate_tokens` of valid, in pieces of the training length that do not overlap."""
        length, ids = self.settings.length, self.samples["valid"].tokens.ids
        count = max(1, min(self.settings.evaluate_tokens, len(ids) - 1) // length)
        mine = range(self.processes.rank, count, self.processes.count)
        at_once = max(1, 4096 // length)
        most = -(-count // self.processes.count)  # pieces of the process that has most: where weights are divided,
        total = torch.zeros(2, dtype=torch.float64, device=self.processes.device)  # all must go on as long as it does
        self.model.eval()
        for start in range(0, most if self.divided else len(mine), at_once):
            rows = mine[start : start + at_once]
            pieces = [ids[i * length : i * length + length + 1].astype(np.int64) for i in (rows or [0])]
            batch = torch.from_numpy(np.stack(pieces)).to(self.processes.device)
            with self._arithmetic():
                pair = {"input_ids": batch[:, :-1], "shift_labels": batch[:, 1:]}
                loss = mean_loss(self.model, self.model.config, pair)
            total += torch.tensor([float(loss) * len(rows), len(rows)], dtype=torch.float64, device=total.device)
        self.model.train()
        if self.divided:
            self.model.reshard()
        total = self.processes.sum(total)
        return float(total[0] / total[1])

    def _log(self, **values: float) -> None:
        """One line of metrics, and the same to the trackers."""
        line = {"step": self.state.step, **values}
        self.state.history.append(line)
        if self.processes.is_main:
            durable.append_line(self.run / METRICS, json.dumps(line))
        self.processes.accelerator.log(values, step=self.state.step)

    def weights(self) -> dict[str, torch.Tensor]:
        """All weights, on the main process at least; every process takes part."""
        return gather_weights(self.model) if self.divided else weights_of(self.model)

    def save(self) -> None:
        """A checkpoint of everything that the rest of the run depends on."""
        state = self.state
        place = json.dumps({"global_step": state.step, "log_history": state.history}, indent=1)
        files = {CONFIG: lambda path: path.write_bytes(self.config), STATE: lambda path: path.write_text(place)}
        about = {**self.about, "loss_sum": state.loss_sum.hex(), "loss_count": state.loss_count}
        save_state(self, files, about)
