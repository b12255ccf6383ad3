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
    inspection = inspect(config, logit_bound=q.bound or None, epsilon=q.epsilon)
    out: dict[str, Any] = {
        "sentence": inspection.sentence,
        "known": inspection.model is not None,
        "notes": list(inspection.notes),
    }
    if inspection.model is None:
        return out | {"fields": [[name, str(value)] for name, value in (inspection.unknown or {}).items()]}
    whole, bars = presentation.bars(inspection)
    headings, rows = presentation.layer_table(inspection)
    return out | {
        "layers": {"headings": headings, "rows": rows},
        "sentences": presentation.sentences(inspection),
        "cache": {
            "title": presentation.CACHE_TITLE,
            "headings": presentation.CACHE_HEADINGS,
            "rows": presentation.cache_rows(inspection),
        },
        "figure": {
            "whole": whole,
            "trained": inspection.model.training_length,
            "bars": [[bar.layer, bar.tokens, bar.kind, bar.label] for bar in bars],
        },
        "command": "farfield inspect config.json" + (f" --logit-bound {q.bound} --epsilon {q.epsilon}" * bool(q.bound)),
    }
