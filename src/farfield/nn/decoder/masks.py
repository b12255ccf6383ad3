"""The mask that a model of transformers asks for, by its meaning: padding, a window, chunks; never n x n numbers.

transformers describes a mask by a function of two positions, made of a few functions of its own. Which ones it is made
of is read from the function itself (the code that it runs, and what it was made with), so the meaning is that of the
mask of `attn_implementation="eager"`. A layer that asks for anything else is refused where it attends.

Shapes: B samples, M queries, N keys.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from transformers.masking_utils import causal_mask_function

if TYPE_CHECKING:
    from jaxtyping import Bool

_FILE = causal_mask_function.__code__.co_filename
_HARMLESS = {"__get__", "__repr__", "dim", "is_floating_point", "numel", "size", "stride"}  # read no number


class HiddenAttentionError(ValueError):
    """The attention of a model cannot be followed: it asks for something that ours does not do."""

    def __init__(self, what: str, instead: str = "; use attn_implementation='eager'") -> None:
        super().__init__(what + instead)
        self.what = what


class Meaning(NamedTuple):
    """What the queries of a call may see: keys up to themselves, within a window and a chunk, that are no padding."""

    keys: int  # up to the last query; keys after them are memory of a static cache that is not used yet
    places: int  # for keys
    padding: Bool[Tensor, "B N"] | None = None  # true for real tokens
    window: int | None = None  # tokens that a query sees, itself among them
    chunk: int | None = None  # a query sees keys of its own chunk of so many tokens only
    other: str = ""  # what the mask asks for besides


class CausalMask(Tensor):
    """A meaning with the shape of a mask: it is handed on like one, but who computes with it is refused."""

    meaning: Meaning

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = function.__name__, kwargs or {}
        if name in _HARMLESS:
            return super().__torch_function__(function, types, args, given)
        if name == "detach":  # for a layer that is computed again
            return args[0]
        if name == "to" and not isinstance(args[1], torch.dtype):  # another device
            padding = args[0].meaning.padding
            moved = None if padding is None else padding.to(*args[1:], **given)
            return causal_mask_of(args[0].meaning._replace(padding=moved), args[0].shape)
        raise HiddenAttentionError(
            f"the attention of this model cannot be followed: it computes with its mask ({name})"
        )


def causal_mask_of(meaning: Meaning, shape: Any) -> Any:
    """A mask of this meaning; for a compiler, which knows no tensors of our own, the meaning alone."""
    if torch.compiler.is_compiling():
        return meaning
    mask = torch.ones((), dtype=torch.bool).expand(shape).as_subclass(CausalMask)
    mask.meaning = meaning
    return mask


def causal_mask(
    *, batch_size: int, kv_length: int, kv_offset: int = 0, mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None, q_length: int | None = None, q_offset: int | Tensor = 0,
    cache_position: Tensor | None = None, **how: Any,
) -> Any:  # fmt: skip
    """What transformers calls for a mask; `how` says how others should write it down, never what it means."""
    if cache_position is not None:  # transformers up to 5.3 says in its own way where the queries stand
        q_length, q_offset = len(cache_position), cache_position[0]
    assert q_length is not None
    end = int(q_offset) + q_length
    keys = end - kv_offset
    parts = [("causal", 0)] if mask_function is causal_mask_function else parts_of(mask_function)
    windows, chunks = ([size for name, size in parts if name == kind] for kind in ("window", "chunk"))
    others = [name for name, _ in parts if name not in ("causal", "window", "chunk")]
    if not others and (("causal", 0) not in parts or keys > kv_length):
        others = ["keys after its queries" if keys <= kv_length else "queries after its keys"]
    padding = None
    if attention_mask is not None:
        padding = attention_mask[:, kv_offset : kv_offset + keys].bool()
        padding = torch.nn.functional.pad(padding, (0, keys - padding.shape[1]))
        padding = None if not torch.compiler.is_compiling() and bool(padding.all()) else padding
    meaning = Meaning(
        keys, kv_length, padding,
        window=min(windows) if windows else None,
        chunk=min(chunks) if chunks and end > min(chunks) else None,  # up to its end, the first chunk is all there is
        other=", ".join(others),
    )  # fmt: skip
    return causal_mask_of(meaning, (batch_size, 1, q_length, kv_length))


@torch.compiler.disable  # a compiler cannot see what a function was made with
def parts_of(function: Any) -> list[tuple[str, int]]:
    """What a mask function is made of: "causal", "window" and "chunk" with their sizes, or the name of another."""
    code = getattr(function, "__code__", None)
    name = code.co_qualname.split(".")[0] if code is not None and code.co_filename == _FILE else repr(function)
    made_with = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    if name == "causal_mask_function":
        return [("causal", 0)]
    if name == "sliding_window_overlay":
        return [("window", made_with[0])]
    if name == "chunked_overlay":
        return [("chunk", made_with[0])]
    if name == "and_masks":
        return [part for each in made_with[0] for part in parts_of(each)]
    # Compiled models always ask for packed texts; they are none if each row is one text, whose positions count on.
    if name == "packed_sequence_mask_function" and not bool(made_with[0].any()):
        return []
    if name == "remap_positions_for_packed_sequence" and all(part != "chunk" for part, _ in parts_of(made_with[0])):
        return parts_of(made_with[0])
    return [(name.replace("_", " "), 0)]
