"""A run that starts from the weights of a finished one: what it takes over from it, and how they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from farfield.data.tokenizer import tokenizer_digest
from farfield.training.pretrained import identity_of, load_network
from farfield.training.runfolder import CONFIG, TOKENIZER, read_config, read_settings
from farfield.training.settings import Settings, settings_from

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# What a model is, which a run that starts from it cannot change.
KEPT = ("encoding", "parameters", "shared_bias", "layers", "width", "heads", "feed_forward", "tokenizer", "vocabulary")


def filled_in(settings: Settings, run: Path) -> Settings:
    """The settings of a run that starts from a model: what is not given is as it was there.

    A preset that is given fills in all that does not make the model. A run that was begun already goes on by what its
    own folder says, so that it no longer needs the other.

    Raises:
        ValueError: If there is no such model, or something else is asked for than it has.
    """
    if settings.start_from is None:
        return settings
    given = settings.given()
    if (run / CONFIG).exists():
        return settings_from({**read_settings(run).model_dump(mode="json"), **given}, "the options")
    if not _folder(settings).exists():
        raise ValueError(f"There is no folder {settings.start_from!r} to start from.")
    identity_of(_folder(settings))  # refuses what is not finished, or damaged
    own = _own_settings(_folder(settings), settings)
    for name in KEPT:
        if name in given and given[name] != own[name]:
            raise ValueError(
                f"The model in {settings.start_from!r} has {name} {own[name]!r}, not {given[name]!r}: a run that "
                "starts from it keeps what makes the model."
            )
    others = settings.model_dump(mode="json") if "preset" in settings.model_fields_set else own
    return settings_from({**others, **given, **{name: own[name] for name in KEPT}}, "the options")


def _own_settings(folder: Path, given: Settings) -> dict[str, Any]:
    """The settings of the model in a folder: of its run, or what they would be where `farfield replace` made it."""
    if isinstance(read_config(folder).get("training"), dict):
        return read_settings(folder).model_dump(mode="json")
    if not other_folder(folder):
        raise ValueError(
            f"The model in {str(folder)!r} is neither of a finished run nor made by `farfield replace`, which gives a "
            "model an encoding to go on with."
        )
    from farfield.training.network import read_other_config

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
    return given.model_dump(mode="json") | made


def other_folder(folder: Path) -> bool:
    """Whether the model in a folder is one that `farfield replace` made."""
    return isinstance(read_config(folder).get("farfield"), dict)


def other_model(settings: Settings, run: Path) -> Path | None:
    """The folder with the configuration of a run's model, if that is not the project's decoder."""
    if settings.start_from is None:
        return None
    folder = run if (run / CONFIG).exists() else _folder(settings)
    return folder if other_folder(folder) else None


def origin(settings: Settings, run: Path) -> dict[str, str] | None:
    """The digests of the model that a run starts, or started, from."""
    if settings.start_from is None:
        return None
    if not (run / CONFIG).exists():
        return identity_of(_folder(settings))
    training = read_config(run).get("training")
    identity = training.get("identity") if isinstance(training, dict) else None
    noted = identity.get("start") if isinstance(identity, dict) else None
    return noted if isinstance(noted, dict) else {}


def stored_tokenizer(settings: Settings, run: Path) -> Path | None:
    """The tokenizer that a run has already: its own, or that of the model it starts from."""
    if (run / CONFIG).exists():
        return run / TOKENIZER
    if settings.start_from is None:
        return None
    path = _folder(settings) / TOKENIZER
    if not path.exists():
        raise ValueError(f"The model in {settings.start_from!r} has no {TOKENIZER}: its text cannot be read.")
    return path


def first_weights(settings: Settings, noted: dict[str, str], tokenizer: Tokenizer) -> dict[str, Any]:
    """The weights that a run starts from, if they are those that were noted when it began."""
    import torch

    where = settings.start_from
    network, identity = load_network(str(_folder(settings)), dtype=torch.float32)
    if identity != noted:
        raise ValueError(f"The model in {where!r} is another than when this run was begun: choose a new --out.")
    known = (getattr(network.config, "training", None) or {}).get("identity") or {}
    if known.get("tokenizer") not in (None, tokenizer_digest(tokenizer)):
        raise ValueError(f"The {TOKENIZER} in {where!r} is not the one that its model was trained with.")
    return network.state_dict()


def fit(model: Any, weights: dict[str, Any], where: str | None) -> None:
    """Put weights into a model that has the same names and shapes.

    Raises:
        ValueError: With the first that differs.
    """
    own = model.state_dict()
    for name in sorted({*own, *weights}):
        shapes = [tuple(table[name].shape) if name in table else None for table in (own, weights)]
        if shapes[0] != shapes[1]:
            said = ["no such tensor" if shape is None else f"{shape}" for shape in shapes]
            raise ValueError(f"The weights in {where!r} do not fit: {name} is {said[1]} there and {said[0]} here.")
    model.load_state_dict(weights)


def _folder(settings: Settings) -> Path:
    return Path(str(settings.start_from)).expanduser()
