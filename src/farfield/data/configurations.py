"""The configuration of a model: from a folder, a file, or the Hugging Face hub, of which nothing else is fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from farfield.models.inspection import read_configuration

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def configuration_of(model: str) -> dict[str, Any]:
    """The configuration in a folder or file, or of a model on the hub: only its config.json, and no code.

    Raises:
        ValueError: If there is none, in one sentence.
    """
    place = Path(model).expanduser()
    if place.exists():
        return read_configuration(place)
    if not _HUB_ID.fullmatch(model) or model.endswith(".json"):
        raise ValueError(f"there is no folder or file {model[:100]!r}")
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ValueError(
            f"there is no folder {model!r}; to ask the Hugging Face hub for it: pip install huggingface_hub"
        ) from None
    try:
        return read_configuration(hf_hub_download(model, "config.json"))
    except Exception as error:  # whatever the hub, the network or a broken file raises
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = (lines or [type(error).__name__])[0][:200]
        raise ValueError(
            f"there is no folder {model!r}, and no configuration of this name could be had from the "
            f"Hugging Face hub: {reason}"
        ) from None
