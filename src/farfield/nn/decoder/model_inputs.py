"""What a call of the model may be given: masks of two and four dimensions, packed texts, labels.

Shapes: B samples, N tokens, S texts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

IGNORED = -100
LEAST = torch.finfo(torch.float16).min  # what a mask adds to hide a key, at most
PACKING = {"cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx"}  # of flash attention and others
OF_GENERATION = {"tokenizer", "assistant_tokenizer"}  # of stop strings: `generate` hands them on to every model


def token_mask(attention_mask: Tensor | None, new: int, keys: int) -> Tensor | None:
    """Padding as a (batch, keys) table of booleans, or None where there is none."""
    if attention_mask is None:
        return None
    if attention_mask.ndim == 4 and attention_mask.shape[2] == new and attention_mask.shape[3] >= keys:
        return _padding_of(attention_mask[..., :keys], new)
    if attention_mask.ndim != 2 or attention_mask.shape[1] < keys:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; it must be (batch, {keys}), 1 for each token "
            f"and 0 for padding, or (batch, 1, {new}, {keys}), a causal mask."
        )
    mask = attention_mask[:, :keys].bool()
    return None if not torch.compiler.is_compiling() and bool(mask.all()) else mask


def _padding_of(mask: Tensor, new: int) -> Tensor | None:
    """The padding that a causal mask of four dimensions holds; one sentence if it hides anything else."""
    seen = mask == 0 if mask.is_floating_point() else mask.bool()
    keys = mask.shape[3]
    real = seen.any(1).any(1)  # seen by any query
    causal = torch.arange(keys, device=mask.device) <= torch.arange(keys - new, keys, device=mask.device)[:, None]
    expected = causal & real[:, None, :]
    rows = real[:, keys - new :, None]  # what padding sees does not matter
    hidden = mask <= LEAST if mask.is_floating_point() else ~seen
    if not bool((((seen == expected[:, None]) | ~rows[:, None]) & (seen | hidden)).all()):
        raise ValueError(
            "the attention mask of four dimensions is not causal with padding; this model takes no other pattern: "
            "give packed texts by position_ids, and a window by `window`"
        )
    return None if bool(real.all()) else real


class Packed(NamedTuple):
    """Several texts in one row: where each token goes if every text gets a row of its own."""

    row: Tensor  # (tokens,): of the padded batch
    column: Tensor
    mask: Tensor  # (S, longest)

    def apart(self, x: Tensor) -> Tensor:
        """(B, N, ...) to (S, longest, ...), 0 for padding."""
        out = x.new_zeros(*self.mask.shape, *x.shape[2:])
        out[self.row, self.column] = x.flatten(0, 1)
        return out

    def together(self, x: Tensor, like: Tensor) -> Tensor:
        """Back again."""
        return x[self.row, self.column].unflatten(0, like.shape[:2])


def packed_texts(position_ids: Tensor | None, mask: Tensor | None, past: int) -> Packed | None:
    """The texts of a batch whose positions begin again within a row; None where every row is one text."""
    if position_ids is None or position_ids.ndim != 2 or torch.compiler.is_compiling():
        return None
    step = position_ids[:, 1:] - position_ids[:, :-1]
    new = step != 1
    if mask is not None:
        real = mask[:, mask.shape[1] - position_ids.shape[1] :]
        new = new & real[:, 1:] & real[:, :-1]
    if not bool(new.any()):
        return None
    begins = torch.nn.functional.pad(new, (1, 0), value=True)
    if bool((position_ids[:, 1:][new] != 0).any()):
        raise ValueError("position_ids must count up by one within a text and begin again at 0 with the next one")
    if past or mask is not None:
        raise ValueError("packed position_ids come without a cache and without padding: give one text a row instead")
    flat = begins.flatten()
    row = flat.cumsum(0) - 1
    first = flat.nonzero()[:, 0]
    column = torch.arange(len(flat), device=flat.device) - first[row]
    lengths = torch.bincount(row)
    return Packed(row, column, torch.arange(int(lengths.max()), device=flat.device) < lengths[:, None])


def packed_positions(position_ids: Tensor | None, packing: dict[str, Any]) -> Tensor | None:
    """Positions that begin again with each packed text of one row, if only the bounds of the texts are given."""
    if unknown := sorted(packing.keys() - PACKING - OF_GENERATION):
        raise TypeError(f"the model got an unexpected argument {unknown[0]!r}")
    bounds = packing.get("cu_seq_lens_q")
    if position_ids is not None or bounds is None:
        return position_ids
    place = torch.arange(int(bounds[-1]), device=bounds.device)
    return (place - bounds[torch.searchsorted(bounds, place, right=True) - 1])[None]


def check_targets(targets: Tensor, words: int) -> None:
    """Refuse labels that name no word."""
    if torch.compiler.is_compiling() or targets.device.type != "cpu":
        return  # elsewhere the check would make every step wait; the device says it in its own way
    bad = (targets != IGNORED) & ((targets < 0) | (targets >= words))
    if bool(bad.any()):
        raise ValueError(
            f"a label is {int(targets[bad][0])}; it must be from 0 to {words - 1}, or {IGNORED} for what does not count"
        )
