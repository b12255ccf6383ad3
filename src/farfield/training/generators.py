"""The state of every random generator that anything in the process may draw from, as tensors.

Training itself draws nothing from them: batches and dropout are functions of the seed and the sample. They are saved
and restored all the same, and a process gets its own back when a run is over.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def random_state() -> dict[str, torch.Tensor]:
    """The generators of torch, NumPy and Python as they stand."""
    version, words, gauss = random.getstate()
    name, keys, position, has_gauss, cached = np.random.get_state()
    assert name == "MT19937"
    state = {
        "torch": torch.get_rng_state(),
        "numpy": torch.from_numpy(np.asarray(keys).astype(np.int64)),
        "numpy_rest": torch.tensor([position, has_gauss, cached], dtype=torch.float64),
        "python": torch.tensor([version, *words], dtype=torch.int64),
        "python_gauss": torch.tensor([math.nan if gauss is None else gauss], dtype=torch.float64),
    }
    if torch.cuda.is_available():
        state |= {f"cuda.{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())}
    return state


def set_random_state(state: dict[str, torch.Tensor]) -> None:
    """Put the generators where they stood."""
    torch.set_rng_state(state["torch"])
    position, has_gauss, cached = state["numpy_rest"].tolist()
    np.random.set_state(("MT19937", state["numpy"].numpy().astype(np.uint32), int(position), int(has_gauss), cached))
    version, *words = state["python"].tolist()
    gauss = state["python_gauss"].item()
    random.setstate((version, tuple(words), None if math.isnan(gauss) else gauss))
    for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        if f"cuda.{i}" in state:
            torch.cuda.set_rng_state(state[f"cuda.{i}"], i)


@contextmanager
def generators_kept() -> Iterator[None]:
    """Give the process its random generators back as they were."""
    before = random_state()
    try:
        yield
    finally:
        set_random_state(before)
