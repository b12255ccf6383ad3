"""What a run is: its settings, checked and frozen, and the presets they start from.

The paper's two configurations (its table "Configurations"), one that two cores train in minutes, and one for tests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Size = Annotated[int, Field(ge=1, le=1 << 20)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]

OLD_NAMES = {"tokeniser": "tokenizer"}  # of settings, in run folders of earlier versions


class Settings(BaseModel):
    """Everything that decides a run's result; two runs with equal settings give the same model, bit for bit."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    encoding: Annotated[str, Field(min_length=1, max_length=4000)]
    parameters: dict[str, float | list[float]] = {}
    corpus: Annotated[str, Field(min_length=1, max_length=4000)] = "python"
    tokenizer: Annotated[str, Field(min_length=1, max_length=4000)] = "bpe"
    vocabulary: Annotated[int, Field(ge=2, le=1 << 20)]
    errors: Literal["strict", "replace"] = "strict"
    split_seed: Seed = 0
    limit: Annotated[int, Field(ge=1)] | None = None  # bytes of training text

    layers: Annotated[int, Field(ge=1, le=1000)]
    width: Size
    heads: Size
    feed_forward: Size
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    shared_bias: bool = True

    length: Size
    batch: Count  # samples of one update, over all processes
    micro_batch: Count | None = None  # samples that a process holds at once; None: batch / processes
    steps: Count
    learning_rate: Annotated[float, Field(gt=0)]
    warmup: Annotated[int, Field(ge=0)]
    weight_decay: Annotated[float, Field(ge=0)] = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: Annotated[float, Field(gt=0)] = 1e-8
    clip: Annotated[float, Field(gt=0)] = 1.0
    seed: Seed = 0
    precision: Literal["float32", "bfloat16"] = "float32"

    save_every: Count
    keep: Annotated[int, Field(ge=1, le=1000)] = 2
    log_every: Count = 10
    evaluate_every: Count
    evaluate_tokens: Count = 65_536

    @model_validator(mode="before")
    @classmethod
    def _as_stored(cls, given: Any) -> Any:
        """JSON has no tuples, and earlier versions had other names."""
        if not isinstance(given, dict):
            return given
        given = with_new_names(given)
        return {**given, "betas": tuple(given["betas"])} if isinstance(given.get("betas"), list) else given

    def identity(self) -> dict[str, Any]:
        """What a digest of the settings is made of: the first version's table, so that it outlives new versions."""
        old = {new: name for name, new in OLD_NAMES.items()}
        return {old.get(name, name): value for name, value in self.model_dump(mode="json").items()}

    @model_validator(mode="after")
    def _fit_together(self) -> Settings:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        if self.micro_batch is not None and self.batch % self.micro_batch:
            raise ValueError(f"batch {self.batch} must be a multiple of micro_batch {self.micro_batch}")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas {self.betas} must be from 0 to below 1")
        return self


def with_new_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A table of an earlier version with the names of this one."""
    return {OLD_NAMES.get(name, name): value for name, value in fields.items()}


_PAPER = {
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

PRESETS: dict[str, dict[str, Any]] = {
    # the paper on WikiText-103
    "paper-wikitext": {"layers": 6, "width": 512, "heads": 8, "feed_forward": 2048, "micro_batch": 8, **_PAPER},
    # the paper on the other data sets
    "paper-base": {"layers": 12, "width": 768, "heads": 12, "feed_forward": 3072, "micro_batch": 4, **_PAPER},
    # minutes on two cores, and the paper's effect is plain to see
    "small": {
        "layers": 3,
        "width": 128,
        "heads": 4,
        "feed_forward": 512,
        "vocabulary": 2048,
        "length": 64,
        "batch": 16,
        "steps": 900,
        "learning_rate": 2e-3,
        "warmup": 100,
        "save_every": 300,
        "evaluate_every": 300,
        "evaluate_tokens": 16_384,
    },
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
        "learning_rate": 2e-3,
        "warmup": 5,
        "save_every": 5,
        "log_every": 1,
        "evaluate_every": 10,
        "evaluate_tokens": 256,
        "limit": 200_000,
    },
}


def preset_settings(preset: str, **changes: Any) -> Settings:
    """The settings of a preset with these changes; a change of None means the preset's own value."""
    if preset not in PRESETS:
        raise ValueError(f"There is no preset {preset!r}: choose from {', '.join(PRESETS)}.")
    given = {name: value for name, value in changes.items() if value is not None}
    fields = {**PRESETS[preset], **given}
    if "batch" in given and "micro_batch" not in given and fields.get("micro_batch"):
        fields["micro_batch"] = _divisor(given["batch"], fields["micro_batch"])
    return settings_from(fields, f"the options over the preset {preset}")


def settings_from(fields: Any, where: str) -> Settings:
    """Settings from untrusted fields; a mistake is one sentence that says which field, and where."""
    if not isinstance(fields, Mapping):
        raise ValueError(f"The settings in {where} are not a table of names and values.")
    try:
        return Settings(**{str(name): value for name, value in fields.items()})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            sentence = f"There is no setting {name!r}"
        elif first["type"] == "missing":
            sentence = f"The setting {name!r} is missing"
        else:
            reason = first["msg"].removeprefix("Value error, ")
            sentence = f"The setting {name} is {_shown(first['input'])}: {reason}" if name else reason.capitalize()
        raise ValueError(f"{sentence} (in {where}).") from None


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What changed between two tables of settings, one short line for each."""
    return [
        f"{name}: {_shown(before.get(name))} before, {_shown(now.get(name))} now"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 120 else text[:117] + "..."


def _divisor(number: int, most: int) -> int:
    return next((d for d in range(min(number, most), 0, -1) if number % d == 0), 1)
