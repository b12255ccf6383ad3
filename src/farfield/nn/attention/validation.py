"""What a call of attention may be given: everything else is refused here, in one sentence, before anything is computed.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

import torch
from torch import Tensor

Implementation = Literal["reference", "flash", "triton", "flex"]
IMPLEMENTATIONS: tuple[str, ...] = get_args(Implementation)
Windows: TypeAlias = int | Sequence[int] | Tensor | None
KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
KIND_NAMES = "float64, float32, bfloat16 or float16"


def first_gradient_only(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward pass that is no graph itself refuses to be part of one, instead of passing for a constant."""

    @functools.wraps(backward)
    def checked(ctx: Any, *grads: Tensor | None) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                'attention has no gradient of a gradient; give implementation="reference", which has one'
            )
        return backward(ctx, *grads)

    return checked


def check_call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    dtype: torch.dtype | None,
    sink: Tensor | None = None,
    softcap: float | None = None,
) -> None:
    """Refuse tensors that do not fit together; reads shapes and types only, never a value."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.dim() != 4:
            raise ValueError(f"{name} has the shape {tuple(x.shape)}; it must be (batch, heads, tokens, width)")
        if x.dtype not in KINDS:
            raise ValueError(f"{name} has the type {x.dtype}; it must be {KIND_NAMES}")
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
        raise ValueError(f"dtype is {dtype}; it must be {KIND_NAMES}")
    if bias is not None:
        _check_shape(bias, heads, keys, q.device)
    if sink is not None and (sink.shape != (heads,) or not sink.is_floating_point() or sink.device != q.device):
        raise ValueError(
            f"the sink is {sink.dtype} of shape {tuple(sink.shape)} on {sink.device}; "
            f"it must be floating point of shape ({heads},) on {q.device}: one logit for each head"
        )
    if softcap is not None and not 0 < softcap < float("inf"):
        raise ValueError(f"softcap is {softcap}; it must be a positive number, or None")
    if mask is not None and (mask.shape != (q.shape[0], keys) or mask.dtype != torch.bool):
        raise ValueError(
            f"the padding mask is {mask.dtype} of shape {tuple(mask.shape)}; "
            f"it must be bool of shape ({q.shape[0]}, {keys}): one row for each sample, True for its real tokens"
        )


def _check_shape(bias: Tensor, heads: int, keys: int, device: torch.device) -> None:
    if bias.dim() != 2 or bias.shape[0] != heads:
        raise ValueError(f"the bias has the shape {tuple(bias.shape)}; it must be ({heads}, n): one row for each head")
    if bias.shape[1] < keys:
        raise ValueError(
            f"the bias covers {bias.shape[1]} distances, but there are {keys} keys; give at least {keys} distances"
        )
    if not bias.is_floating_point() or bias.device != device:
        raise ValueError(f"the bias is {bias.dtype} on {bias.device}; it must be floating point and on {device}")


def check_bias(bias: Tensor, keys: int) -> None:
    """Refuse NaN and infinity at distances below `keys`; on a CPU alone: elsewhere every call would wait."""
    if bias.device.type != "cpu":
        return
    given = bias.detach()[:, :keys]
    if not float(given.amax()) < float("inf"):  # NaN if any is NaN
        head, t = next(iter((~(given < float("inf"))).nonzero().tolist()))
        raise ValueError(
            f"the bias of head {head} at distance {t} is {float(given[head, t])}; "
            "it must be a number, or minus infinity to hide a key"
        )


def chosen_implementation(asked: str | None, device: torch.device) -> str:
    """The implementation to use: the one asked for, or that of the device."""
    if asked is None:
        return "flash" if device.type == "cpu" else "triton" if device.type == "cuda" and has_triton() else "flex"
    if asked not in IMPLEMENTATIONS:
        known = ", ".join(map(repr, IMPLEMENTATIONS))
        raise ValueError(f"implementation is {asked!r}; it must be one of {known}, or None to choose by device")
    if asked == "flash" and device.type != "cpu":
        raise ValueError(f"implementation 'flash' is the CPU's, but q is on {device}; leave implementation out")
    if asked == "triton" and not has_triton():
        raise ValueError("implementation 'triton' needs the package triton: pip install 'farfield[triton]'")
    if asked == "triton" and device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        raise ValueError(f"implementation 'triton' is a GPU's, but q is on {device}; leave implementation out")
    return asked


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed."""
    return importlib.util.find_spec("triton") is not None


def windows_of(window: Windows, heads: int, keys: int) -> list[int]:
    """The window of each head, at most the number of keys."""
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
