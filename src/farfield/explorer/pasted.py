"""The answer for a pasted config.json: what `farfield inspect` says of it, as plain data for the page."""

from __future__ import annotations

from typing import Any

from farfield.explorer.question import Question
from farfield.reading import parse_json
from farfield.theory.models import presentation
from farfield.theory.models.inspection import inspect


def inspected(q: Question) -> dict[str, Any]:
    """One sentence, the layers, the cache, the bars of the figure and the notes; of an unknown model its fields."""
    if not q.configuration.strip():
        raise ValueError("paste the config.json of a model first")
    try:
        config = parse_json(q.configuration)
    except ValueError as error:
        raise ValueError(f"this cannot be read as JSON: {error}") from None
    if not isinstance(config, dict):
        raise ValueError('a configuration is a table of JSON, such as {"model_type": "llama", ...}')
    found = inspect(config, logit_bound=q.bound or None, epsilon=q.epsilon)
    out: dict[str, Any] = {"sentence": found.sentence, "known": found.model is not None, "notes": list(found.notes)}
    if found.model is None:
        return out | {"fields": [[name, str(value)] for name, value in (found.unknown or {}).items()]}
    whole, bars = presentation.bars(found)
    headings, rows = presentation.layer_table(found)
    return out | {
        "layers": {"headings": headings, "rows": rows},
        "sentences": presentation.sentences(found),
        "cache": {
            "title": presentation.CACHE_TITLE,
            "headings": presentation.CACHE_HEADINGS,
            "rows": presentation.cache_rows(found),
        },
        "figure": {
            "whole": whole,
            "trained": found.model.training_length,
            "bars": [[bar.layer, bar.tokens, bar.kind, bar.label] for bar in bars],
        },
        "command": "farfield inspect config.json" + (f" --logit-bound {q.bound} --epsilon {q.epsilon}" * bool(q.bound)),
    }
