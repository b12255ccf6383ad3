"""What a record of a study must hold: what is read from one has its type and its size, or the record is left out."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, Strict, ValidationError, model_validator

Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
Positive = Annotated[float, Strict(), Field(allow_inf_nan=False, gt=0, le=1e300)]
Count = Annotated[int, Strict(), Field(ge=0, lt=2**62)]
Length = Annotated[int, Strict(), Field(ge=1, lt=2**40)]
Word = Annotated[str, Field(max_length=1000)]
Verdict = Literal["converges", "diverges", "mixed", "undecided", "not-applicable"]
WithError = tuple[Number, Number | None]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]


class LengthFields(BaseModel):
    length: Length
    change: Number
    change_error: Number | None
    rise: Number
    rise_error: Number | None
    answer: Word


class ExtrapolationFields(BaseModel):
    training_length: Length
    level: Number
    lengths: Annotated[list[LengthFields], Field(min_length=1)]
    context_gain: WithError | None = None


class CutFields(BaseModel):
    change: WithError


class InterventionFields(BaseModel):
    tail: Word
    leak: Share | None
    verdict: Verdict
    change: WithError


class AnswerFields(BaseModel):
    """What is said of the trained model, and of the untrained one beside it."""

    extrapolation: ExtrapolationFields
    damage: WithError
    cut: CutFields
    interventions: list[InterventionFields]


class ControlFields(AnswerFields):
    erf: list[dict[str, Count]]


class HorizonFields(BaseModel):
    tokens: Count
    certain: Annotated[bool, Strict()]


class HeadFields(BaseModel):
    layer: Length
    head: Length
    parameters: dict[str, Any] | None
    verdict: Verdict
    horizon: HorizonFields | None
    leak: Share | None
    trf: dict[str, Count | None]
    trf_of_rows: dict[str, Count | None]
    erf: dict[str, Count]


class PaperFields(BaseModel):
    field: list[Number]
    epsilon: list[Number]


class ReceptiveFields(BaseModel):
    length: Length
    burn_in: Count
    queries: Count
    mass: list[Number]
    paper: PaperFields


class TruncationFields(BaseModel):
    length: Length
    windows: list[Length]
    delta: list[Number]
    lost: list[Number]
    sharper: list[Number]
    paper: list[Number]


class TestFields(BaseModel):
    tokens: Length
    segments: Length
    segment: Length


class TimeFields(BaseModel):
    training: Number
    measuring: Number
    processor_training: Number
    processor_measuring: Number


class RecordFields(AnswerFields):
    """A record, as far as it is read."""

    corpus: Word
    encoding: Word
    seed: Count
    stands_for: Word | None = None
    training_length: Length
    lengths: Annotated[list[Length], Field(min_length=1)]
    perplexity: dict[Literal["non-overlapping", "sliding"], list[Positive | None]]
    stderr: list[Number | None]
    blocks: list[list[Number]]
    test: TestFields
    heads: list[HeadFields]
    control: ControlFields
    receptive: ReceptiveFields
    truncation: TruncationFields
    parameters: Count
    training: list[dict[str, Number]]
    seconds: TimeFields
    machine: dict[str, Word | Count]

    @model_validator(mode="after")
    def _sizes(self) -> RecordFields:
        count = len(self.lengths)
        plain = self.perplexity["non-overlapping"]
        columns: list[list[Any]] = [
            plain,
            self.perplexity["sliding"],
            self.stderr,
            self.blocks,
            self.extrapolation.lengths,
        ]
        curves = [self.truncation.delta, self.truncation.lost, self.truncation.sharper, self.truncation.paper]
        wrong = [
            any(len(column) != count for column in columns),
            plain[0] is None or plain[-1] is None,
            sorted(set(self.lengths)) != self.lengths,
            len({len(block) for block in self.blocks}) > 1,
            self.training_length != self.extrapolation.training_length,
            len(self.control.erf) != len(self.heads),
            any(set(own.erf) != set(other) for own, other in zip(self.heads, self.control.erf, strict=False)),
            any(set(head.erf) != set(head.trf) or set(head.erf) != set(head.trf_of_rows) for head in self.heads),
            any(len(curve) != len(self.truncation.windows) for curve in curves),
            len(self.receptive.paper.field) != len(self.receptive.paper.epsilon),
            any("step" not in line for line in self.training),
        ]
        if any(wrong):
            raise ValueError("the parts of the record do not fit together")
        return self


def fits(record: dict[str, Any]) -> bool:
    """Whether a record has what is read from it, with as many numbers as lengths."""
    try:
        RecordFields.model_validate(record)
    except (ValidationError, KeyError, RecursionError):
        return False
    return True
