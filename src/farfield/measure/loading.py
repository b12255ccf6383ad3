"""From what a person types to a model and a text: a run folder, a saved folder or a hub id; a corpus and its tokens."""

from __future__ import annotations

from pathlib import Path

from farfield.measure.models import Model, as_model
from farfield.measure.text import Text, spread
from farfield.training.pretrained import load_network
from farfield.training.runfolder import CONFIG, TOKENIZER, read_config, read_settings


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

    from farfield.training.processes import chosen_device

    place = chosen_device(device)
    network, identity = load_network(name, dtype=torch.float32 if place.type == "cpu" else "auto")
    model = as_model(network.to(place), name, training_length)
    model.identity = identity
    return model


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
    from farfield.training.run import corpus_of

    folder = Path(model.name).expanduser()
    ours = (folder / CONFIG).exists() and isinstance(read_config(folder).get("training"), dict)
    settings = read_settings(folder) if ours else None
    if settings is not None and corpus in (None, settings.corpus):
        source = corpus_of(settings)
    elif corpus is not None:
        source = open_corpus(corpus)
    else:
        raise ValueError(f"Which text? {model.name!r} does not say what it was trained on: give --corpus.")
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
