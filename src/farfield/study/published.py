"""The paper's numbers, as data: perplexities at 512 to 9216 tokens, and relative inference times.

They are copied from the tables of the paper into `published.json`. Its models are trained on 512 tokens and far larger
than what two cores can train, so what is compared is the ratio to the value at the training length.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def published() -> dict[str, Any]:
    """The tables of the paper."""
    return json.loads((files("farfield.study") / "published.json").read_text(encoding="utf-8"))


def published_perplexities(data_set: str | None, encoding: str) -> list[float] | None:
    """The paper's perplexities of an encoding on one of its data sets, at 512 to 9216 tokens."""
    tables = (published()[group].get(data_set, {}) for group in ("sufficiency", "necessity"))
    return next((table[encoding] for table in tables if encoding in table), None)


# In which of its tables the paper has an encoding.
GROUPS: dict[str, str] = {
    name: group for group in ("sufficiency", "necessity") for table in published()[group].values() for name in table
}
