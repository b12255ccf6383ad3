"""What a run folder holds, read with suspicion and written to last.

`config.json` is the model's configuration with the run's settings and identity (formula, tokenizer, corpus) inside; a
copy goes into every checkpoint. A run goes on only if all of them say the same.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data import durable
from farfield.data.tokenizer import for_transformers
from farfield.reading import parse_json, read_bytes, read_json
from farfield.training.checkpoint import LOCK, Checkpoint, DamagedCheckpointError, newest_checkpoint
from farfield.training.settings import LATER, Settings, difference, settings_from, with_new_names

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

CONFIG = "config.json"
METRICS = "metrics.jsonl"
TOKENIZER = "tokenizer.json"
MODEL = "model.safetensors"
FINISHED = "finished.json"
FAILURE = "failure.json"
STATE = "trainer_state.json"
Line = dict[str, float]  # of the metrics: the step, and what was measured there
LARGEST_METRICS = 1 << 28  # bytes: more than a million lines


class ChangedRunError(ValueError):
    """A run folder was started with something else; the message says what differs."""


def read_settings(run: Path) -> Settings:
    """The settings in a run's `config.json`, which is untrusted input."""
    training = read_config(run).get("training")
    if not isinstance(training, dict):
        raise ValueError(f"{str(run / CONFIG)!r} has no settings of a run (no table called 'training').")
    return settings_from(training.get("settings"), str(run / CONFIG))


def read_config(run: Path) -> dict[str, Any]:
    """The table in a run's `config.json`."""
    path = run / CONFIG
    if not path.exists():
        raise ValueError(f"{str(run)!r} is not a run folder: it has no {CONFIG}.")
    return read_json(path, 1 << 20)


def read_metrics(run: Path) -> list[Line]:
    """The lines of a run's `metrics.jsonl`; a line that a kill cut off is left out."""
    lines = []
    path = run / METRICS
    for data in read_bytes(path, LARGEST_METRICS).splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            lines.append(parse_json(data))
    numbers = (int, float)  # the file is untrusted
    return [line for line in lines if isinstance(line, dict) and all(isinstance(x, numbers) for x in line.values())]


def refuse_difference(run: Path, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Stop where a run would go on with something other than it was started with."""
    changes = difference(before, now)
    if changes:
        raise ChangedRunError(
            f"The run in {str(run)!r} was started with something else ({'; '.join(changes)}): "
            "give it back what it had, or choose another folder."
        )


def refuse_other_run(run: Path, before: Mapping[str, object], now: Mapping[str, object]) -> None:
    """The same for whole configurations; what only one of two versions of transformers writes does not count."""
    old, new = flat(before), flat(now)
    common = {name for name in {*old, *new} if "." in name or (name in old and name in new)}
    refuse_difference(run, {name: old.get(name) for name in common}, {name: new.get(name) for name in common})


def flat(config: Mapping[str, object]) -> dict[str, object]:
    """A configuration without nesting, and without what an update of transformers changes."""
    table = {name: value for name, value in config.items() if name not in ("training", "transformers_version")}
    training = config.get("training")
    for part in ("settings", "identity"):
        inner = training.get(part) if isinstance(training, dict) else None
        added = {key: Settings.model_fields[key].default for key in LATER} if part == "settings" else {}
        inner = {**added, **with_new_names(inner)} if isinstance(inner, dict) else {}
        table |= {f"{part}.{name}": value for name, value in inner.items()}
    return table


def as_bytes(config: Mapping[str, object]) -> bytes:
    """A configuration as it stands in the file."""
    return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()


def finished_steps(run: Path) -> int | None:
    """The number of steps, if the finished model is there and whole."""
    try:
        done = read_json(run / FINISHED)
        return int(done["step"]) if durable.sha256_of(run / MODEL) == done["sha256"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refuse_foreign_folder(run: Path) -> None:
    """Stop before anything is written into a folder that is neither empty nor a run's."""
    if not run.is_dir():
        return
    if (run / CONFIG).exists():
        read_settings(run)
        return
    # a run that was killed before it had written its configuration
    begun = {LOCK, TOKENIZER, "tokenizer_config.json", "special_tokens_map.json"}
    names = {entry.name for entry in run.iterdir() if not entry.name.endswith(".staged")}
    if names and not (LOCK in names and names <= begun):
        raise ValueError(
            f"The folder {str(run)!r} is not empty, and not the folder of a run (it holds {sorted(names)[0]!r} and no "
            f"{CONFIG}): choose a new one for --out."
        )


def prepare(
    run: Path, config: Mapping[str, object], steps: int, tokenizer: Tokenizer, say: Callable[[str], None]
) -> Checkpoint | None:
    """Check that the folder is of this run, find its newest checkpoint, and write what every run folder has."""
    durable.remove_staged(run)
    if (run / CONFIG).exists():
        refuse_other_run(run, read_config(run), config)
    checkpoint = newest_checkpoint(run, say)
    lines = []
    if checkpoint is not None:
        refuse_other_run(run, read_config(checkpoint.folder), config)
        lines = checkpoint_state(checkpoint, steps)[0]
    (run / FAILURE).unlink(missing_ok=True)
    (run / FINISHED).unlink(missing_ok=True)
    if not (run / CONFIG).exists():
        durable.replace_files(run, for_transformers(tokenizer).save_pretrained)
        durable.replace_file(run / TOKENIZER, tokenizer.to_str().encode())
        durable.replace_file(run / CONFIG, as_bytes(config))
    # the metrics up to the checkpoint: what a killed process wrote after it will be written again
    durable.replace_file(run / METRICS, "".join(json.dumps(line) + "\n" for line in lines).encode())
    return checkpoint


def checkpoint_state(checkpoint: Checkpoint, steps: int) -> tuple[list[Line], float, int]:
    """The metrics up to a checkpoint, and the sum and count of the losses since their last line; if that can be."""
    where, step, about = f"The checkpoint {checkpoint.folder.name}", checkpoint.step, checkpoint.about
    if not 1 <= step <= steps:
        raise DamagedCheckpointError(f"{where} is of step {step}, but the run has {steps} steps.")
    try:
        place = read_json(checkpoint.folder / STATE)
        history, loss, count = place["log_history"], float.fromhex(str(about["loss_sum"])), int(about["loss_count"])
        possible = place["global_step"] == step and all(1 <= int(line["step"]) <= step for line in history)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedCheckpointError(f"{where} does not say where the run stood ({STATE}: {error}).") from None
    if not possible:
        raise DamagedCheckpointError(f"{where} contradicts itself: its {STATE} is of another step than {step}.")
    return history, loss, count


def finish(run: Path, step: int, write_model: Callable[[Path], None], write_rest: Callable[[Path], None]) -> None:
    """Put the finished model into the folder, then the rest; the note that it is finished comes last."""
    staged = durable.staged_name(run / MODEL)
    try:
        durable.write_with(write_model, staged)
        durable.sync_file(staged)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sha256 = durable.sha256_of(staged)
    durable.rename(staged, run / MODEL)
    durable.replace_files(run, write_rest)
    durable.replace_file(run / FINISHED, json.dumps({"step": step, "sha256": sha256}).encode())


def write_tensors(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    """A safetensors file that others may read as any file of the user's: safetensors itself makes it private."""
    from safetensors.torch import save_file

    save_file({name: value.contiguous() for name, value in tensors.items()}, path, metadata={"format": "pt"})
    mask = os.umask(0)
    os.umask(mask)
    path.chmod(0o666 & ~mask)
