"""The paper's numbers, as data: perplexities at 512 to 9216 tokens, and relative inference times.

They are copied from the tables of the paper into `published.json`. Its models are trained on 512 tokens and far larger
than what two cores can train, so what is compared is the ratio to the value at the training length.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

# Which of our corpora stands for which data set of the paper, by a word in its name.
STANDS_FOR = {
    "wikitext": "wikitext-103",
    "wikibook": "wikibook",
    "book": "books",
    "github": "github",
    "python": "github",
}


@cache
def published() -> dict[str, Any]:
    """The tables of the paper."""
    return json.loads((files("farfield.study") / "published.json").read_text(encoding="utf-8"))


def data_set(corpus: str) -> str | None:
    """The paper's data set that a corpus stands for; None if there is none."""
    return next((name for word, name in STANDS_FOR.items() if word in corpus.lower()), None)


def sufficiency(corpus: str, encoding: str) -> list[float] | None:
    """The row of an encoding in the paper's tables of sufficiency."""
    return published()["sufficiency"].get(data_set(corpus), {}).get(encoding)


def necessity(corpus: str, encoding: str) -> list[float] | None:
    """The row of an encoding in the paper's table of necessity."""
    return published()["necessity"].get(data_set(corpus), {}).get(encoding)


# In which of its tables the paper has an encoding.
GROUPS: dict[str, str] = {
    name: group for group in ("sufficiency", "necessity") for table in published()[group].values() for name in table
}
