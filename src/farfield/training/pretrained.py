"""Models that exist: loaded whole, as they were saved, told from others by digests; and runs that start from one."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data import durable
from farfield.data.tokenizer import tokenizer_digest
from farfield.reading import read_json
from farfield.training.runfolder import CONFIG, FINISHED, MODEL, TOKENIZER, read_config, read_settings
from farfield.training.settings import Settings, settings_from

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer
    from transformers import PretrainedConfig, PreTrainedModel

# What a model is, which a run that starts from it cannot change.
FIXED = ("encoding", "parameters", "shared_bias", "layers", "width", "heads", "feed_forward", "tokenizer", "vocabulary")
WEIGHTS = (MODEL, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Without transformers' warnings and bars."""
    from transformers.utils import logging

    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def load_network(name: str, *, dtype: torch.dtype | str = "auto") -> tuple[PreTrainedModel, dict[str, str]]:
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
    if not folder.exists() and isinstance(stored := try_to_load_from_cache(name, CONFIG), str):
        identity = {"model": name, "weights": Path(stored).parent.name}  # the hub's commit
    return network.eval(), identity


def _refuse_whole_numbers(folder: Path, network: PreTrainedModel) -> None:
    """Stop where weights were kept as whole numbers: transformers would take them for the weights all the same."""
    from safetensors import safe_open

    floating = {name for name, values in network.named_parameters() if values.is_floating_point()}
    for file in folder.glob("*.safetensors"):
        with safe_open(file, "pt") as tensors:
            for tensor in floating & set(tensors.keys()):
                if not (dtype := tensors.get_slice(tensor).get_dtype()).startswith(("F", "BF")):
                    raise ValueError(f"The model {str(folder)!r} is damaged: its tensor {tensor!r} is of type {dtype}.")


def _has_more_layers(network: PreTrainedModel, spare: list[str]) -> bool:
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
    texts = {"weights": json.dumps(digests, sort_keys=True), "config": config}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def read_other_config(folder: Path) -> PretrainedConfig:
    """The configuration of a model that is not the project's decoder, from the folder that holds it."""
    from transformers import AutoConfig

    try:
        with quiet_transformers():
            return AutoConfig.from_pretrained(str(folder), trust_remote_code=False)
    except Exception as error:  # whatever transformers makes of a stranger's file
        raise ValueError(f"The configuration in {str(folder)!r} cannot be read: {str(error).splitlines()[0]}") from None


# --- a run that starts from a model -----------------------------------------------------------------------------------


def fill_in(settings: Settings, run: Path) -> Settings:
    """The settings of a run that starts from a model: what is not given is as it was there.

    A preset that is given fills in all that does not make the model. A run that was begun already goes on by what its
    own folder says, so that it no longer needs the other.

    Raises:
        ValueError: If there is no such model, or something else is asked for than it has.
    """
    if settings.start_from is None:
        return settings
    options = settings.given()
    if (run / CONFIG).exists():
        return settings_from({**read_settings(run).model_dump(mode="json"), **options}, "the options")
    if not _folder(settings).exists():
        raise ValueError(f"There is no folder {settings.start_from!r} to start from.")
    identity_of(_folder(settings))  # refuses what is not finished, or damaged
    model = _settings_of_model(_folder(settings), settings)
    for name in FIXED:
        if name in options and options[name] != model[name]:
            raise ValueError(
                f"The model in {settings.start_from!r} has {name} {model[name]!r}, not {options[name]!r}: a run that "
                "starts from it keeps what makes the model."
            )
    others = settings.model_dump(mode="json") if "preset" in settings.model_fields_set else model
    return settings_from({**others, **options, **{name: model[name] for name in FIXED}}, "the options")


def _settings_of_model(folder: Path, settings: Settings) -> dict[str, Any]:
    """The settings of the model in a folder: of its run, or what they would be where `farfield replace` made it."""
    if isinstance(read_config(folder).get("training"), dict):
        return read_settings(folder).model_dump(mode="json")
    if not was_replaced(folder):
        raise ValueError(
            f"The model in {str(folder)!r} is neither of a finished run nor made by `farfield replace`, which gives a "
            "model an encoding to go on with."
        )
    config = read_other_config(folder)
    how, width = config.farfield, config.hidden_size
    inner = (getattr(config, name, None) for name in ("intermediate_size", "n_inner", "ffn_hidden_size"))
    made = {
        "encoding": how["encoding"],
        "parameters": how["parameters"],
        "shared_bias": how["shared"],
        "layers": config.num_hidden_layers,
        "width": width,
        "heads": config.num_attention_heads,
        "feed_forward": next((size for size in inner if size), 4 * width),
        "tokenizer": str(folder / TOKENIZER),
        "vocabulary": config.vocab_size,
    }
    return settings.model_dump(mode="json") | made


def was_replaced(folder: Path) -> bool:
    """Whether the model in a folder is one that `farfield replace` made, and not the project's decoder."""
    return isinstance(read_config(folder).get("farfield"), dict)


@dataclass(frozen=True)
class Start:
    """The model that a run starts, or started, from.

    Attributes:
        folder: Where it is, or was.
        digests: Of its weights and configuration, as they were noted when the run began.
        replaced: The folder with its configuration, if that is not the project's decoder.
    """

    folder: Path
    digests: dict[str, str]
    replaced: Path | None


def start_of(settings: Settings, run: Path) -> Start | None:
    """What a run starts from; None if it starts afresh. One that was begun goes by what its own folder says."""
    if settings.start_from is None:
        return None
    folder = _folder(settings)
    if not (run / CONFIG).exists():
        if not (folder / TOKENIZER).exists():
            raise ValueError(f"The model in {settings.start_from!r} has no {TOKENIZER}: its text cannot be read.")
        return Start(folder, identity_of(folder), folder if was_replaced(folder) else None)
    training = read_config(run).get("training")
    identity = training.get("identity") if isinstance(training, dict) else None
    digests = identity.get("start") if isinstance(identity, dict) else None
    return Start(folder, digests if isinstance(digests, dict) else {}, run if was_replaced(run) else None)


def first_weights(start: Start, tokenizer: Tokenizer) -> dict[str, torch.Tensor]:
    """The weights that a run starts from, if they are those that were noted when it began."""
    import torch

    network, identity = load_network(str(start.folder), dtype=torch.float32)
    if identity != start.digests:
        raise ValueError(
            f"The model in {str(start.folder)!r} is another than when this run was begun: choose a new --out."
        )
    trained = (getattr(network.config, "training", None) or {}).get("identity") or {}
    if trained.get("tokenizer") not in (None, tokenizer_digest(tokenizer)):
        raise ValueError(f"The {TOKENIZER} in {str(start.folder)!r} is not the one that its model was trained with.")
    return network.state_dict()


def _folder(settings: Settings) -> Path:
    return Path(str(settings.start_from)).expanduser()
