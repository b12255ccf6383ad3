"""The certificate of a bounded cache as a table, and what is raised or warned when it exceeds epsilon."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SCOPE = "certified for each attention layer by itself, not for the network as a whole"


class CertificateWarning(UserWarning):
    """A token may have lost more attention than the epsilon that was chosen."""


class CertificateError(RuntimeError):
    """The policy "stop": a token may have lost more attention than the epsilon that was chosen."""


@dataclass(frozen=True)
class CertificateRow:
    """What is certain about one head: no token lost more than `share` of its attention.

    Its output is within `change` plus `rounding` of exact attention to every key: what dropped keys moved, and what the
    kernel's arithmetic can have moved besides; None where attention is the model's own.
    """

    layer: int
    head: int
    window: int
    share: float
    change: float
    over: int  # tokens whose certified share exceeded epsilon
    rounding: float | None = None


@dataclass(frozen=True)
class CertificateTable:
    """The certificate of a cache: a row for each layer and head, both counted from 1."""

    epsilon: float
    tokens: int
    rows: list[CertificateRow]

    @property
    def worst(self) -> CertificateRow:
        """The head with the largest certified share."""
        return max(self.rows, key=lambda row: row.share)

    @property
    def holds(self) -> bool:
        """Whether every token of every head is certified to have lost at most epsilon."""
        return all(row.over == 0 for row in self.rows)

    def json(self) -> dict[str, Any]:
        """The table for a program."""
        rows = [asdict(row) for row in self.rows]
        return {"epsilon": self.epsilon, "tokens": self.tokens, "holds": self.holds, "scope": SCOPE, "heads": rows}

    def __str__(self) -> str:
        lines = [f"{'layer':>5} {'head':>5} {'window':>8} {'share <=':>10} {'change <=':>10} {'over':>6}"]
        lines += [f"{r.layer:5} {r.head:5} {r.window:8} {r.share:10.2e} {r.change:10.2e} {r.over:6}" for r in self.rows]
        said = "holds" if self.holds else "was exceeded"
        lines += [f"epsilon {self.epsilon:g} {said} over {self.tokens} tokens; {SCOPE}"]
        if (rounding := max((r.rounding or 0.0 for r in self.rows), default=0.0)) > 0:
            lines += [f"rounding can have moved no output by more than {rounding:.2e} besides"]
        return "\n".join(lines)
