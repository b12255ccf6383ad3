"""The largest logits that a model has on a text: what a window certified for them rests on."""

from __future__ import annotations

from dataclasses import replace

import torch

from farfield.measure.inputs import AttentionInputs
from farfield.measure.models import Model
from farfield.measure.segments import Text


def largest_logits(model: Model, text: Text, length: int, *, chunks: int = 1) -> list[float]:
    """The largest |q.k|*scale of each layer, over all heads, queries and keys before them, on chunks of a text."""
    largest = [0.0] * model.layers

    def visit(layer: int, inputs: AttentionInputs) -> None:
        bare = replace(inputs, bias=None, window=None, own=None, chunk=None, key_bias=None)
        for _, _, logits in bare.logits(0, 0, None):
            largest[layer] = max(largest[layer], float(logits[logits.isfinite()].abs().max()))

    with torch.inference_mode(), model.watching(visit):
        for ids in text.chunks(length, chunks):
            model.states(torch.from_numpy(ids[:-1])[None].to(model.device))
    return largest
