"""A causal language model from a folder or from the hub: whole, as it was saved, and with what tells it from others."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from farfield.data import durable
from farfield.reading import read_json
from farfield.training.runfolder import CONFIG, FINISHED, MODEL, read_config

WEIGHTS = (MODEL, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without transformers' warnings and bars."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()


def load_network(name: str, *, dtype: Any = "auto") -> tuple[Any, dict[str, str]]:
    """A causal language model of a folder or of the hub, whole and as it was saved, and what tells it from others.

    Its own code is never run.

    Raises:
        ValueError: If there is none, it cannot be loaded, tensors are missing, or the weights are not those that its
            run noted when it ended.
    """
    from huggingface_hub import try_to_load_from_cache
    from transformers import AutoModelForCausalLM

    import farfield.nn.decoder.model  # noqa: F401 - makes our models known to transformers
    from farfield.nn.decoder.config import FarfieldConfig

    folder = Path(name).expanduser()
    if not folder.exists() and is_path(name):
        raise ValueError(f"There is no folder {name!r}.")
    identity = identity_of(folder) if folder.exists() else {}
    try:
        with quiet_transformers():  # what it would warn about is refused below
            network, report = AutoModelForCausalLM.from_pretrained(
                str(folder) if folder.exists() else name, dtype=dtype, trust_remote_code=False, output_loading_info=True
            )
    except Exception as error:  # whatever transformers, the hub or a broken file raises
        raise ValueError(_cannot_load(name, folder.exists(), error)) from None
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(
            f"The model {name!r} is not whole: {len(missing)} of its tensors are missing, {missing[0]!r} among them."
        )
    spare = sorted(report["unexpected_keys"])
    if spare and (isinstance(network.config, FarfieldConfig) or _has_more_layers(network, spare)):
        raise ValueError(
            f"The model {name!r} is not what its configuration says: its weights hold {len(spare)} tensors for which "
            f"it has no place, {spare[0]!r} among them."
        )
    for tensor, values in network.named_parameters():
        if values.is_floating_point() and not bool(values.isfinite().all()):
            raise ValueError(f"The model {name!r} is damaged: its tensor {tensor!r} holds values that are not finite.")
    if folder.exists():
        _refuse_whole_numbers(folder, network)
    if not folder.exists() and isinstance(kept := try_to_load_from_cache(name, CONFIG), str):
        identity = {"model": name, "weights": Path(kept).parent.name}  # the hub's commit
    return network.eval(), identity


def _refuse_whole_numbers(folder: Path, network: Any) -> None:
    """Stop where weights were kept as whole numbers: transformers would take them for the weights all the same."""
    from safetensors import safe_open

    floating = {name for name, values in network.named_parameters() if values.is_floating_point()}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            for tensor in floating & set(tensors.keys()):
                if not (dtype := tensors.get_slice(tensor).get_dtype()).startswith(("F", "BF")):
                    raise ValueError(f"The model {str(folder)!r} is damaged: its tensor {tensor!r} is of type {dtype}.")


def _has_more_layers(network: Any, spare: list[str]) -> bool:
    """Whether tensors that found no place are of layers beyond the last one of the configuration."""
    layers = getattr(network.config, "num_hidden_layers", None)
    numbers = [int(number) for tensor in spare for number in re.findall(r"\.(\d{1,9})\.", f".{tensor}.")]
    return isinstance(layers, int) and any(number >= layers for number in numbers)


def is_path(name: str) -> bool:
    """Whether a text names a folder, existing or not, rather than a model of the hub: the hub is then not asked."""
    first, slash, rest = name.partition("/")
    usual = first in ("runs", "study", "models", "checkpoints", "out", "output", "outputs", "results")
    return name.startswith(("/", ".", "~")) or "/" in rest or bool(slash and (usual or Path(first).is_dir()))


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is a file; a model is a run folder, a saved folder, or a hub id.")
    config = read_config(folder)  # one sentence if there is none
    if not any((folder / file).exists() for file in WEIGHTS):
        if isinstance(config.get("training"), dict):
            raise ValueError(
                f"The run in {str(folder)!r} is not finished: it has no {MODEL} yet. "
                f"Go on with: farfield train --resume {folder}"
            )
        raise ValueError(f"{str(folder)!r} holds no weights ({MODEL}).")


def _cannot_load(name: str, is_folder: bool, error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reason = lines[-1] if type(error).__name__.startswith("Strict") and lines else (lines or [type(error).__name__])[0]
    if is_folder:
        return f"The model in {name!r} cannot be loaded: {reason}"
    return f"There is no folder {name!r}, and no model of this name could be had from the Hugging Face hub: {reason}"


def identity_of(folder: Path) -> dict[str, str]:
    """The digests of a folder's weights and configuration as they are; refuses weights that are not those noted."""
    _check_folder(folder)
    files = sorted(folder.glob("*.safetensors")) + sorted(folder.glob("*.bin"))
    digests = {file.name: durable.sha256_of(file) for file in files}
    if (folder / FINISHED).exists():
        noted = read_json(folder / FINISHED).get("sha256")
        if digests.get(MODEL) != noted:
            raise ValueError(
                f"The weights {str(folder / MODEL)!r} are not those with which the run ended ({FINISHED} has another "
                "sha256): they were damaged or exchanged."
            )
    config = json.dumps(read_config(folder), sort_keys=True)
    whole = json.dumps(digests, sort_keys=True)
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (("weights", whole), ("config", config))}
