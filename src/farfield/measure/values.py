"""What a stored result may hold: each type of number has its bounds, which are checked where a file is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, Strict

Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
Positive = Annotated[float, Strict(), Field(allow_inf_nan=False, gt=0, le=1e300)]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Count = Annotated[int, Strict(), Field(ge=0, lt=2**62)]
Length = Annotated[int, Strict(), Field(ge=1, lt=2**40)]
Name = Annotated[str, Field(max_length=1000)]
Verdict = Literal["converges", "diverges", "mixed", "undecided", "not-applicable"]
WithError = tuple[Number, Number | None]  # a number and its standard error, if that is known
Change = tuple[Annotated[Number, Field(gt=-1)], Number | None]  # of a perplexity, which stays positive


class Value(BaseModel):
    """A part of a stored result: frozen, and checked when it is made, with all that is inside."""

    model_config = ConfigDict(frozen=True, revalidate_instances="always")


@dataclass(frozen=True)
class Timing:
    """One way to infer, with one window (None for full length)."""

    protocol: Name
    window: Length | None
    tokens: Length
    seconds: Positive
    perplexity: Positive

    @property
    def per_token(self) -> float:
        return self.seconds / self.tokens
