"""What a run is: one table of settings, which is the command line, the API and the run's `config.json`.

    from farfield import Settings, train
    train(Settings(encoding="type1", corpus="python", preset="tiny"), "runs/type1")

A preset fills in what is not given: the paper's two configurations (its table "Configurations"), one that two cores
train in minutes, a longer one, one with the paper's lengths, and one for tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from farfield import zoo
from farfield.zoo.learned import learned_rule

Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Size = Annotated[int, Field(ge=1, le=1 << 20)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Name = Annotated[str, Field(min_length=1, max_length=4000)]
Value = Annotated[float | str | list[float | str] | dict[str, Any], Field(union_mode="left_to_right")]

_PAPER = {
    "tokenizer": "bpe",
    "dropout": 0.1,
    "vocabulary": 50_265,
    "length": 512,
    "batch": 128,
    "steps": 50_000,
    "learning_rate": 5e-4,
    "warmup": 4_000,
    "save_every": 1_000,
    "log_every": 100,
    "evaluate_every": 1_000,
    "evaluate_tokens": 262_144,
}
# What each preset says otherwise than `Settings` itself, whose values are those of "small".
PRESETS: dict[str, dict[str, Any]] = {
    # the paper on WikiText-103
    "paper-wikitext": {"layers": 6, "width": 512, "heads": 8, "feed_forward": 2048, "micro_batch": 8, **_PAPER},
    # the paper on the other data sets
    "paper-base": {"layers": 12, "width": 768, "heads": 12, "feed_forward": 3072, "micro_batch": 4, **_PAPER},
    # minutes on two cores, and the paper's effect is plain to see
    "small": {},
    # deeper and twice as long: what results/ has of four texts
    "long": {"layers": 8, "steps": 2_800},
    # the paper's lengths, heads and layers, with little width: ten minutes of one core
    "geometry": {"width": 128, "heads": 8, "feed_forward": 128, "length": 512, "batch": 4, "steps": 2_000},
    # seconds: for tests
    "tiny": {
        "layers": 2,
        "width": 32,
        "heads": 2,
        "feed_forward": 64,
        "vocabulary": 257,
        "tokenizer": "bytes",
        "length": 16,
        "batch": 4,
        "steps": 20,
        "warmup": 5,
        "save_every": 5,
        "log_every": 1,
        "evaluate_every": 10,
        "evaluate_tokens": 256,
        "limit": 200_000,
        "dropout": 0.1,
        "learning_rate": 2e-3,
    },
}
OLD_NAMES = {"tokeniser": "tokenizer"}  # of settings, in run folders of earlier versions
LATER = {"schedule", "start_from"}  # settings that earlier versions did not have


@Parameter(name="*")
class Settings(BaseModel):
    """Everything that decides a run's result; two runs with equal settings give the same model, bit for bit."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    encoding: Annotated[str, Field(max_length=4000), Parameter(allow_leading_hyphen=True, show_default=False)] = ""
    """A name from the zoo (`farfield zoo`) or a formula such as "-k*t"."""
    parameters: Annotated[Mapping[str, Value], Parameter(parse=False)] = {}
    """Values for the formula's parameters: a number, a constant such as "1/16", one for each head, or a range to learn
    it in, {"start": [0, 2], "least": 0, "most": null, "spread": true}."""
    corpus: Name = "python"
    """`python` (the standard library's source), a file or folder, a data set of the hub, hub:OWNER/NAME[:CONFIG]."""
    preset: Annotated[str, Field(exclude=True, repr=False)] = "small"
    """Fills in what is not given, sizes and schedule: tiny, small, long, geometry, paper-wikitext or paper-base."""

    start_from: Annotated[Name | None, Parameter(name="--from")] = None
    """Start from the weights of the finished run in this folder; what is not given is as it was there."""

    tokenizer: Annotated[Name, Parameter(alias="--tokeniser")] = "bytes"
    """`bytes`, `bpe` (trained on the corpus), the path of a tokenizer.json, or a tokenizer on the hub."""
    vocabulary: Annotated[int, Field(ge=2, le=1 << 20)] = 2048
    """Words of the BPE."""
    errors: Literal["strict", "replace"] = "strict"
    """What to do about invalid UTF-8: `strict` refuses it, `replace` goes on."""
    split_seed: Seed = 0
    """Decides the splits of text that names none."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Bytes of training text to read at most."""

    layers: Annotated[int, Field(ge=1, le=1000)] = 6
    """Layers of the decoder."""
    width: Size = 96
    """Width of the hidden states."""
    heads: Size = 4
    """Attention heads."""
    feed_forward: Size = 96
    """Width of the feed-forward layers."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Share of values that dropout removes."""
    shared_bias: bool = True
    """One set of learned parameters of the encoding for all layers, or one for each."""

    length: Size = 64
    """Tokens in a training sample."""
    batch: Count = 16
    """Samples in one update, over all processes."""
    micro_batch: Count | None = None
    """Samples that a process holds in memory at once; all of its share unless given."""
    steps: Count = 1400
    """Number of updates."""
    learning_rate: Annotated[float, Field(gt=0)] = 3e-3
    """Peak learning rate."""
    warmup: Annotated[int, Field(ge=0)] = 300
    """Updates until the peak."""
    schedule: Literal["inverse-square-root", "cosine"] = "inverse-square-root"
    """How the learning rate falls after its peak."""
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    """Decoupled weight decay."""
    betas: Annotated[tuple[float, float], Parameter(negative="")] = (0.9, 0.98)
    """Adam's two rates of forgetting."""
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    """Adam's epsilon."""
    clip: Annotated[float, Field(gt=0)] = 1.0
    """The largest norm of a gradient."""
    seed: Seed = 0
    """Decides the first weights, the batches and the dropout."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the model."""

    save_every: Count = 300
    """Steps between checkpoints."""
    keep: Annotated[int, Field(ge=1, le=1000)] = 2
    """Checkpoints that are kept."""
    log_every: Count = 10
    """Steps between two lines of metrics.jsonl."""
    evaluate_every: Count = 300
    """Steps between evaluations on valid."""
    evaluate_tokens: Count = 16_384
    """Tokens of valid in an evaluation."""

    @model_validator(mode="before")
    @classmethod
    def _from_stored(cls, fields: Any) -> Any:
        """JSON has no tuples, earlier versions had other names, and an `Encoding` is its formula and what it learns."""
        if not isinstance(fields, dict):
            return fields
        if isinstance(fields.get("encoding"), zoo.Encoding):
            text, learns = fields["encoding"].written()
            fields = {**fields, "encoding": text, "parameters": {**learns, **fields.get("parameters", {})}}
        fields = with_new_names(fields)
        return {**fields, "betas": tuple(fields["betas"])} if isinstance(fields.get("betas"), list) else fields

    @model_validator(mode="after")
    def _fill_in_and_fit(self) -> Settings:
        if self.preset not in PRESETS:
            raise ValueError(f"there is no preset {self.preset!r}: choose from {', '.join(PRESETS)}")
        filled = {name: value for name, value in PRESETS[self.preset].items() if name not in self.model_fields_set}
        # which leaves `model_fields_set` to what was given, and makes two spellings of one run equal
        self.__dict__.update(filled, preset=Settings.model_fields["preset"].default)
        if "micro_batch" in filled:
            self.__dict__["micro_batch"] = _divisor(self.batch, filled["micro_batch"])
        for name, value in self.parameters.items():
            if isinstance(value, Mapping):
                learned_rule(name, value)
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        if self.micro_batch is not None and self.batch % self.micro_batch:
            raise ValueError(f"batch {self.batch} must be a multiple of micro_batch {self.micro_batch}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas {self.betas} must be from 0 to below 1")
        return self

    def sizes(self) -> dict[str, Any]:
        """The sizes of the model, by their names in its configuration."""
        return {
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.feed_forward,
            "max_position_embeddings": self.length,
        }

    def given(self) -> dict[str, Any]:
        """What was given, without what a preset filled in."""
        return self.model_dump(mode="json", include=self.model_fields_set)

    def identity(self) -> dict[str, Any]:
        """What a digest of the settings is made of: the first version's table, so that it outlives new versions."""
        old = {new: name for name, new in OLD_NAMES.items()}
        usual = {name for name in LATER if getattr(self, name) == Settings.model_fields[name].default}
        return {old.get(name, name): value for name, value in self.model_dump(mode="json", exclude=usual).items()}


def with_new_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A table of an earlier version with the names of this one."""
    return {OLD_NAMES.get(name, name): value for name, value in fields.items()}


def preset_settings(preset: str, **changes: Any) -> Settings:
    """The settings of a preset with these changes; a change of None means the preset's own value."""
    try:
        return Settings(preset=preset, **{name: value for name, value in changes.items() if value is not None})
    except ValidationError as error:
        where = f"the options over the preset {preset}" if preset in PRESETS else "the options"
        raise ValueError(mistake(error, where)) from None


def settings_from(fields: Any, where: str) -> Settings:
    """Settings from a stored table, which is untrusted: whole, and of the right types without conversion."""
    if not isinstance(fields, Mapping):
        raise ValueError(f"The settings in {where} are not a table of names and values.")
    missing = [name for name in Settings.model_fields if name not in {"preset", *LATER, *with_new_names(fields)}]
    if missing:
        raise ValueError(f"The setting {missing[0]!r} is missing (in {where}).")
    if fields["encoding"] == "":
        raise ValueError(f"The setting encoding is empty (in {where}).")
    try:
        return Settings.model_validate({str(name): value for name, value in fields.items()}, strict=True)
    except ValidationError as error:
        raise ValueError(mistake(error, where)) from None


def mistake(error: ValidationError, where: str) -> str:
    """One sentence about what is wrong with settings: which one, and where."""
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"There is no setting {name!r} (in {where})."
    reason = first["msg"].removeprefix("Value error, ")
    sentence = f"The setting {name} is {_short(first['input'])}: {reason}" if name else reason[:1].upper() + reason[1:]
    return f"{sentence} (in {where})."


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What changed between two tables of settings, one short line for each."""
    return [
        f"{name}: {_short(before.get(name))} before, {_short(now.get(name))} now"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def _short(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else text[:117] + "..."


def _divisor(number: int, most: int) -> int:
    return next((d for d in range(min(number, most), 0, -1) if number % d == 0), 1)
