"""`inspect`: how far a model looks, layer by layer, from its configuration alone, and what of that is proven."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from farfield.models.attention_layers import LENGTHS, DescribedModel, Layer, exact_reach
from farfield.models.layer_answers import LayerAnswer, Number, layer_answer
from farfield.models.model_types import TYPES, describe
from farfield.models.names import POSITIONS
from farfield.reading import read_json
from farfield.theory.errors import UndecidedError
from farfield.theory.fields.layers import model_reach
from farfield.theory.fields.receptive import exact_epsilon
from farfield.theory.fields.windows import exact_bound

LARGEST_FILE = 4 << 20  # bytes of a configuration
LONGEST_CONVOLUTION = 20_000  # tokens of the local part up to which the convolution is done
_CLAIM = {
    "windowed": "weights with a finite sum, so that one window serves all lengths (proven)",
    "disperses": "see everything before: no window serves all lengths, "
    "and with bounded logits attention disperses (proven)",
    "neither": "are neither windowed nor bound to disperse (proven)",
    "undecided": "are not decided",
}


@dataclass(frozen=True)
class Inspection:
    """What a configuration says about how far the model looks.

    Attributes:
        name: of the model.
        model: its layers; None if its architecture is not known.
        answers: what is proven about each layer.
        reach: tokens that the local layers reach together, exactly.
        spread: tokens within which all but epsilon of the local layers' even spread lies, by convolution.
        unknown: the fields of a configuration whose architecture is not known.
        notes: what else a reader should know.
    """

    name: str
    model: DescribedModel | None
    answers: tuple[LayerAnswer, ...] = ()
    reach: int | None = None
    spread: int | None = None
    epsilon: str = "0.01"
    unknown: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """How far it looks, and what is proven."""
        if self.model is not None:
            return f"{self.name}: {_how_far(self.model, self.answers, self.reach)}"
        kind = (self.unknown or {}).get("model_type")
        which = " (the configuration has no model_type)" if kind is None else ""
        named = "the architecture" if kind is None else f"the architecture {str(kind)[:60]!r}"
        return f"{self.name}: {named} is not known{which}, so nothing is claimed about how far it looks."

    def cache_bytes(self, tokens: int, windows: bool = True) -> int:
        """Bytes of keys and values of one text; with the model's windows and the certified ones, or without any."""
        assert self.model is not None
        total = self.model.cache_bytes(tokens, windows)
        for layer, result in zip(self.model.layers, self.answers, strict=True) if windows else ():
            if result.windows:  # each kept head serves its group of queries: the widest of them decides
                group = layer.heads // layer.key_heads
                widest = [max(result.windows[h * group : (h + 1) * group]) for h in range(layer.key_heads)]
                needed = sum(min(tokens, w) for w in widest) * 2 * layer.width
                total -= (self.model.bytes_per_number or 2) * (layer.cache_numbers(tokens) - needed)
        return total

    def _repr_html_(self) -> str:
        """The layers and what is proven of them, for a notebook."""
        from farfield.models.presentation import html

        return html(self)

    def groups(self) -> list[tuple[list[Layer], LayerAnswer]]:
        """Layers that are alike, with their common answer, in the order of their first."""
        groups: dict[tuple[Layer, LayerAnswer], list[Layer]] = {}
        for layer, result in zip(self.model.layers if self.model else (), self.answers, strict=True):
            groups.setdefault((replace(layer, number=0), result), []).append(layer)
        return [(layers, result) for (_, result), layers in groups.items()]

    def json(self) -> dict[str, Any]:
        """Everything as plain data."""
        about = {"name": self.name, "sentence": self.sentence, "known": self.model is not None}
        if (m := self.model) is None:
            return {**about, "fields": dict(self.unknown or {}), "notes": list(self.notes)}
        layers = []
        for layer, result in zip(m.layers, self.answers, strict=True):
            fields = asdict(replace(layer, slopes=(), rows=()))
            fields = {name: fields[name] for name in fields if name not in ("number", "slopes", "rows", "compressed")}
            proven = {"answer": result.kind, "why": result.why, "certified_windows": list(result.windows) or None}
            layers.append({"layer": layer.number, **fields, **proven})
        return {
            **about,
            "architecture": m.kind,
            "training_length": m.training_length,
            "claimed_length": m.claimed_length,
            "scaling": m.scaling and {**asdict(m.scaling), "claim": m.scaling.sentence(m.claimed_length)},
            "local_layers": len(m.local),
            "local_reach": self.reach,
            "local_spread": {"epsilon": self.epsilon, "tokens": self.spread},
            "cache_bytes": {
                str(n): {"windows": self.cache_bytes(n), "full": self.cache_bytes(n, False)} for n in LENGTHS
            },
            "bytes_per_number": m.bytes_per_number or 2,
            "layers": layers,
            "assumed": m.assumed,
            "notes": list(self.notes),
        }

    def figure(self, path: str | Path | None = None) -> Any:
        """The layers and what each sees as a figure; with a path, written as its ending says."""
        from farfield.models.presentation import layers_figure

        if self.model is None:
            raise ValueError(f"there is nothing to draw: {self.sentence}")
        return layers_figure(self, path)


def inspect(
    model: str | Path | Mapping[str, Any],
    *,
    logit_bound: Number | None = None,
    epsilon: Number = "0.01",
    name: str | None = None,
) -> Inspection:
    """What a model's configuration says about how far it looks, and what of that is proven.

    Args:
        model: a configuration, a file `config.json`, or a folder that holds one. No code of the model is run.
        logit_bound: the largest |q.k|*scale, where it is known; then windows are certified where there are any.
        epsilon: the share of attention that such a window may lose.
        name: what to call the model.

    Raises:
        ValueError: If there is no configuration, or it makes no sense.
    """
    share = str(epsilon)
    exact_epsilon(epsilon)
    if logit_bound is not None:
        exact_bound(logit_bound)
    config = model if isinstance(model, Mapping) else read_configuration(model)
    called = name or (str(config.get("_name_or_path") or "the model") if isinstance(model, Mapping) else _short(model))
    inner, notes = _text_part(config)
    kind = inner.get("model_type")
    if not isinstance(kind, str) or kind not in TYPES:
        if "auto_map" in config:
            notes.append("it brings code of its own (auto_map), which is never run")
        return Inspection(called, None, unknown=_cut(inner), notes=tuple(notes))
    try:
        described = describe(inner)
    except (TypeError, AttributeError, KeyError):
        raise ValueError(f"the configuration of {called} makes no sense for the architecture {kind!r}") from None
    results: dict[Layer, LayerAnswer] = {}
    for layer in described.layers:
        alike = replace(layer, number=0)
        if alike not in results:
            results[alike] = layer_answer(layer, share, logit_bound)
    answers = tuple(results[replace(layer, number=0)] for layer in described.layers)
    local, notes = described.local, [*notes, *_notes(described)]
    reach = exact_reach(local) if local else None
    return Inspection(called, described, answers, reach, _spread(local, share), share, None, tuple(notes))


def read_configuration(path: str | Path) -> dict[str, Any]:
    """The configuration in a file, or in the file config.json of a folder."""
    place = Path(path).expanduser()
    if place.is_dir():
        place = place / "config.json"
    if not place.exists():
        raise ValueError(f"there is no configuration {str(place)!r}")
    return read_json(place, LARGEST_FILE)


def _short(path: str | Path) -> str:
    place = Path(path).expanduser()
    return place.parent.name if place.name == "config.json" and place.parent.name else place.name or str(path)


_NESTED = {"gemma3": "gemma3_text", "llama4": "llama4_text"}  # whose text part may leave its own type out


def _text_part(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """The part that describes the language model, in models that also see or hear."""
    inner = config.get("text_config")
    if not isinstance(inner, Mapping):
        return config, []
    outer = str(config.get("model_type"))
    kind = inner.get("model_type", _NESTED.get(outer))
    shared = {k: config[k] for k in ("torch_dtype", "dtype") if k in config and k not in inner}
    return {**shared, **inner, "model_type": kind}, [f"of the {outer} model only the text part is described"]


def _cut(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an unknown configuration as they stand, long ones cut."""
    return {str(k)[:60]: v if len(text := str(v)) <= 80 else f"{text[:77]}..." for k, v in list(config.items())[:200]}


def _notes(m: DescribedModel) -> list[str]:
    notes = []
    if m.kind == "t5":
        notes.append("only the self-attention of the decoder is described; encoder and cross-attention see everything")
    if m.assumed:
        fields = ", ".join(f"{k} = {str(v)[:40]}" for k, v in m.assumed.items())
        notes.append(f"not in the configuration, taken from the published class: {fields}")
    for name, value in m.unread.items():
        notes.append(f"the field {name} = {str(value)[:40]} is not known for {m.kind} and was not read")
    if m.bytes_per_number is None:
        notes.append("the configuration does not say how numbers are stored; bytes are told for 2 bytes each")
    if m.scaling is not None:
        notes.append(m.scaling.sentence(m.claimed_length))
        if m.training_length is None:
            notes.append("the configuration does not say how long the texts were before the stretching")
    if any(layer.compressed for layer in m.layers):
        notes.append("the cache is told in its compressed form; a program that expands it keeps more")
    return notes


def _how_far(m: DescribedModel, answers: tuple[LayerAnswer, ...], reach: int | None) -> str:
    count, local = len(m.layers), m.local
    spans = sorted({layer.window or 0 for layer in local})
    if len(local) == count:
        how = "chunk" if all(layer.chunks for layer in local) else "window"
        return f"all {count} layers see a {how} of {spans[-1]:,} tokens, so none sees beyond {reach:,} tokens (exact)."
    parts = []
    if local:
        span = f"{spans[0]:,}" if len(spans) == 1 else f"{spans[0]:,} to {spans[-1]:,}"
        parts.append(f"{len(local)} of {count} layers see {span} tokens each, {reach:,} together (exact)")
    rest = [(layer, result.kind) for layer, result in zip(m.layers, answers, strict=True) if layer.window is None]
    for kind, number in Counter(kind for _, kind in rest).items():
        names = " and ".join(sorted({POSITIONS.get(x.position, x.position) for x, each in rest if each == kind}))
        who = f"all {count} layers have" if number == count else f"{number} have"
        parts.append(f"{who} {names} and {_CLAIM[kind]}")
    end = f" The training length is {m.training_length:,} tokens." if m.training_length else ""
    return "; ".join(parts) + "." + end


def _spread(local: tuple[Layer, ...], epsilon: str) -> int | None:
    """The convolution of even windows, where all are alike and it is not too long."""
    windows = {layer.window for layer in local}
    if len(windows) != 1 or any(layer.chunks for layer in local) or exact_reach(local) > LONGEST_CONVOLUTION:
        return None
    try:
        return model_reach("window", epsilon, len(local), parameters={"w": str(windows.pop())}).tokens
    except UndecidedError:
        return None
