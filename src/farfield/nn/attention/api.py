"""Causal attention with a bias by distance, in O(n) memory: the bias costs next to nothing.

Every query sees itself and the past. The bias is one vector for each head, `bias[h, t]` for the distance t from query
to key; nothing of size n x n is ever stored. On a CPU the flash kernel reads the vector in place (flash.py); on other
devices FlexAttention adds it to the score (flex.py). `reference.py` holds the definition.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, overload

import torch
from torch import Tensor

from farfield.nn.attention.blocks import plan, spans_of
from farfield.nn.attention.flash import Flash
from farfield.nn.attention.skip import Reach, worth

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@overload
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = ...,
    *,
    window: int | Sequence[int] | Int[Tensor, " H"] | None = ...,
    mask: Bool[Tensor, "B N"] | None = ...,
    scale: float | None = ...,
    dtype: torch.dtype | None = ...,
    skip: bool = ...,
    return_lse: Literal[False] = ...,
    path: str | None = ...,
) -> Float[Tensor, "B H M D"]: ...
@overload
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = ...,
    *,
    window: int | Sequence[int] | Int[Tensor, " H"] | None = ...,
    mask: Bool[Tensor, "B N"] | None = ...,
    scale: float | None = ...,
    dtype: torch.dtype | None = ...,
    skip: bool = ...,
    return_lse: Literal[True],
    path: str | None = ...,
) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]: ...
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = None,
    *,
    window: int | Sequence[int] | Int[Tensor, " H"] | None = None,
    mask: Bool[Tensor, "B N"] | None = None,
    scale: float | None = None,
    dtype: torch.dtype | None = None,
    skip: bool = True,
    return_lse: bool = False,
    path: str | None = None,
) -> Float[Tensor, "B H M D"] | tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """Causal attention with `bias[h, t]` added to the logit of every key at distance t from its query.

    The last query stands at the last key, so M < N is decoding with a cache. With fewer key heads than query heads,
    neighbouring query heads share one. The gradient of a learned bias is exact and takes O(n) memory too.

    window: tokens that a query sees, itself among them (keys with t < window): one number, or one for each head.
    mask: True for the real tokens of each sample, which must stand together; padding may stand before or after them.
        Padding is never seen, and its own output is 0. Distances count real tokens.
    scale: of q.k; 1/sqrt(D) unless given.
    dtype: the type to compute in (bfloat16, float16, float32, float64), if not that of q; the result has that of q.
    skip: leave out keys that provably cannot change a float32 result (skip.py). CPU only; off gives every key its turn.
    return_lse: also the log-sum-exp of each query's logits (minus infinity where it sees no key), which has a gradient.
    path: "flash" or "flex", if not by device.
    """
    windows = _check(q, k, v, bias, window, mask, dtype, path)
    kind = q.dtype
    if dtype is not None:
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    heads, keys = q.shape[1], k.shape[2]
    scale = q.shape[3] ** -0.5 if scale is None else float(scale)
    exact = torch.promote_types(q.dtype, torch.float32)  # a bias in bfloat16 would lose distances
    vector = q.new_zeros(heads, keys, dtype=exact) if bias is None else bias[:, :keys].to(exact)
    spans = spans_of(mask, q.shape[0], keys)
    if (path or ("flash" if q.device.type == "cpu" else "flex")) == "flex":
        from farfield.nn.attention.flex import flex

        out, lse = flex(q, k, v, vector, windows, mask, scale, return_lse)
    else:
        skip = skip and bias is not None and max(windows) == keys and worth(keys - q.shape[2] / 2, q.shape[2])
        reach = Reach(vector, q.dtype, vector.requires_grad) if skip else None
        pieces = plan(spans, q.shape[2], keys, windows, k.shape[1], reach)
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        out, lse = Flash.apply(q, k, v, vector, windows, pieces, reach, scale)
        if return_lse:
            lse = lse.masked_fill(_sees_nothing(vector, windows, mask, q.shape[2]), float("-inf"))
    return (out.to(kind), lse) if return_lse else out.to(kind)


def _sees_nothing(bias: Tensor, windows: list[int], mask: Tensor | None, queries: int) -> Bool[Tensor, "B H M"]:
    """The queries that are padding, or to which every key in sight has a bias of minus infinity."""
    keys = bias.shape[1]
    t = torch.arange(keys)
    seen = (bias.detach() > float("-inf")) & (t < torch.tensor(windows)[:, None])
    nearest = torch.where(seen.any(-1), seen.int().argmax(-1), keys)
    real = torch.ones(1, keys, dtype=torch.bool) if mask is None else mask
    position = real.cumsum(-1)[:, keys - queries :] - 1  # among the real tokens
    return ~real[:, None, keys - queries :] | (position[:, None] < nearest[:, None])


def _check(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    window: int | Sequence[int] | Tensor | None,
    mask: Tensor | None,
    dtype: torch.dtype | None,
    path: str | None,
) -> list[int]:
    """Refuse what cannot be meant, in one sentence; the window of each head, at most the number of keys."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise ValueError(f"{name} has the shape {tuple(x.shape)}; it must be (batch, heads, tokens, width)")
        if x.dtype not in KINDS:
            raise ValueError(f"{name} has the type {x.dtype}; it must be float64, float32, bfloat16 or float16")
    if k.shape != v.shape or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        raise ValueError(
            f"q, k and v have the shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}; "
            "they must agree in batch and width, and k and v in everything"
        )
    if not q.dtype == k.dtype == v.dtype or not q.device == k.device == v.device:
        raise ValueError(
            f"q, k and v are {q.dtype} on {q.device}, {k.dtype} on {k.device} and {v.dtype} on {v.device}; "
            "they must be alike"
        )
    heads, queries, keys = q.shape[1], q.shape[2], k.shape[2]
    if min(q.shape) < 1 or min(k.shape) < 1:
        raise ValueError(f"q and k have the shapes {tuple(q.shape)} and {tuple(k.shape)}; no dimension may be 0")
    if heads % k.shape[1]:
        raise ValueError(f"{heads} query heads cannot share {k.shape[1]} key heads evenly; give a divisor of {heads}")
    if queries > keys:
        raise ValueError(f"there are {queries} queries but only {keys} keys; every query needs its own key")
    if dtype is not None and dtype not in KINDS:
        raise ValueError(f"dtype is {dtype}; it must be float64, float32, bfloat16 or float16")
    if path not in (None, "flash", "flex"):
        raise ValueError(f"path is {path!r}; it must be 'flash', 'flex' or None to choose by device")
    if path == "flash" and q.device.type != "cpu":
        raise ValueError(f"path 'flash' is the CPU's, but q is on {q.device}; leave path out")
    if bias is not None:
        _check_bias(bias, heads, keys, q.device)
    if mask is not None and (mask.shape != (q.shape[0], keys) or mask.dtype != torch.bool):
        raise ValueError(
            f"the padding mask is {mask.dtype} of shape {tuple(mask.shape)}; "
            f"it must be bool of shape ({q.shape[0]}, {keys}): one row for each sample, True for its real tokens"
        )
    return _windows(window, heads, keys)


def _check_bias(bias: Tensor, heads: int, keys: int, device: torch.device) -> None:
    if bias.dim() != 2 or bias.shape[0] != heads:
        raise ValueError(f"the bias has the shape {tuple(bias.shape)}; it must be ({heads}, n): one row for each head")
    if bias.shape[1] < keys:
        raise ValueError(
            f"the bias covers {bias.shape[1]} distances, but there are {keys} keys; give at least {keys} distances"
        )
    if not bias.is_floating_point() or bias.device != device:
        raise ValueError(f"the bias is {bias.dtype} on {bias.device}; it must be floating point and on {device}")
    if bias.device.type == "cpu":  # elsewhere the check would make every call wait for the device
        largest = float(bias.detach()[:, :keys].amax())  # NaN if any is NaN
        if not largest < float("inf"):
            head, t = next(iter((~(bias.detach()[:, :keys] < float("inf"))).nonzero().tolist()))
            raise ValueError(
                f"the bias of head {head} at distance {t} is {float(bias[head, t])}; "
                "it must be a number, or minus infinity to hide a key"
            )


def _windows(window: int | Sequence[int] | Tensor | None, heads: int, keys: int) -> list[int]:
    if window is None:
        return [keys] * heads
    given = window.tolist() if isinstance(window, Tensor) else window
    each = list(given) if isinstance(given, Sequence) else [given] * heads
    if len(each) != heads:
        raise ValueError(f"window has {len(each)} numbers for {heads} heads; give one number, or one for each head")
    for w in each:
        if isinstance(w, bool) or int(w) != w or w < 1:
            raise ValueError(
                f"a window of {w} tokens was given; it must be a whole number of at least 1: the token itself"
            )
    return [min(int(w), keys) for w in each]
