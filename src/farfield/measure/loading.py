"""From what a person types to a model and a text: a run folder, a saved folder or a hub id; a corpus and its tokens."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data import durable
from farfield.measure.models import Model, as_model
from farfield.measure.text import Text, spread
from farfield.reading import read_json
from farfield.training.runfolder import CONFIG, FINISHED, MODEL, TOKENIZER, read_config, read_settings

if TYPE_CHECKING:
    from farfield.training.settings import Settings

WEIGHTS = (MODEL, "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


def load_model(name: str, training_length: int | None = None, *, device: str | None = None) -> Model:
    """Load a model to measure.

    Args:
        name: A run folder, a folder of `save_pretrained`, or an id on the Hugging Face hub.
        training_length: Tokens of a training sample, for models that do not say it.
        device: Where to compute, such as "cpu" or "cuda:1"; a GPU if there is one unless given.

    Returns:
        The model, on that device.

    Raises:
        ValueError: If there is no such model, or it cannot be loaded.
    """
    import torch

    from farfield.training.devices import chosen_device

    place = chosen_device(device)
    network, identity = load_network(name, dtype=torch.float32 if place.type == "cpu" else "auto")
    model = as_model(network.to(place), name, training_length)
    model.identity = identity
    return model


def load_network(name: str, *, dtype: Any = "auto") -> tuple[Any, dict[str, str]]:
    """A causal language model of a folder or of the hub, whole and as it was saved, and what tells it from others.

    Its own code is never run.

    Raises:
        ValueError: If there is none, it cannot be loaded, tensors are missing, or the weights are not those that its
            run noted when it ended.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    import farfield.nn.decoder.model  # noqa: F401 - makes our models known to transformers

    folder = Path(name).expanduser()
    if not folder.exists() and is_path(name):
        raise ValueError(f"There is no folder {name!r}.")
    identity = _identity_of(folder) if folder.exists() else {}
    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # what it would warn about is refused below
    try:
        network, report = AutoModelForCausalLM.from_pretrained(
            str(folder) if folder.exists() else name, dtype=dtype, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # whatever transformers, the hub or a broken file raises
        raise ValueError(_cannot_load(name, folder.exists(), error)) from None
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
    missing = sorted(report["missing_keys"])
    if missing:
        raise ValueError(
            f"The model {name!r} is not whole: {len(missing)} of its tensors are missing, {missing[0]!r} among them."
        )
    if not folder.exists() and (commit := getattr(network.config, "_commit_hash", None)):
        identity = {"model": name, "weights": str(commit)}
    return network.eval(), identity


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


def _identity_of(folder: Path) -> dict[str, str]:
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


def settings_of(name: str) -> Settings | None:
    """The settings of a run, if this is the folder of one of ours."""
    folder = Path(name).expanduser()
    if not (folder / CONFIG).exists() or not isinstance(read_config(folder).get("training"), dict):
        return None
    return read_settings(folder)


def load_text(
    model: Model,
    corpus: str | None = None,
    *,
    split: str = "test",
    tokens: int | None = None,
    segment: int | None = None,
    tokenizer: str | None = None,
    progress: bool = False,
) -> Text:
    """The tokens of a split for this model.

    Args:
        model: What `load_model` or `as_model` gives.
        corpus: `python`, a path, or a data set of the hub; the one that a run was trained on unless given.
        split: "train", "valid" or "test".
        tokens: At most so many to be scored; all unless given.
        segment: Take the tokens in segments of so many, spread evenly over the split; all in a row unless given.
        tokenizer: `bytes`, a tokenizer.json, or a name on the hub; the model's own unless given.
        progress: Show how far it is.

    Returns:
        The tokens, and what they are.

    Raises:
        ValueError: If there is no such corpus or tokenizer, or the tokenizer does not fit the model.
    """
    from farfield.data.corpus import open_corpus
    from farfield.data.tokenizer import byte_tokenizer, load_tokenizer, vocabulary_size
    from farfield.data.tokens import tokenize
    from farfield.training.text import corpus_of

    settings = settings_of(model.name)
    if corpus is None and settings is None:
        raise ValueError(f"Which text? {model.name!r} does not say what it was trained on: give --corpus.")
    if settings is not None and corpus in (None, settings.corpus):
        source = corpus_of(settings)
    else:
        assert corpus is not None
        source = open_corpus(corpus)
    folder = Path(model.name).expanduser()
    if tokenizer is None and folder.exists() and not (folder / TOKENIZER).exists():
        raise ValueError(f"{model.name!r} has no {TOKENIZER}: give --tokenizer (bytes, a tokenizer.json, or a hub id).")
    chosen = (
        byte_tokenizer()
        if tokenizer == "bytes"
        else load_tokenizer(tokenizer or str(folder if folder.exists() else model.name))
    )
    size = vocabulary_size(chosen)
    if size > model.words:
        raise ValueError(f"The tokenizer has {size} words, but {model.name} knows only {model.words}.")
    read = tokenize(source, split, chosen, progress=progress)
    ids = spread(read.ids, tokens, segment)
    about = {"corpus": source.name, "split": split, "sha256": read.sha256}
    return Text(ids, {**about, "segments": len(ids), "segment": ids.shape[1] - 1})
