"""What a call of attention may be given: everything else is refused here, in one sentence, before anything is computed.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Implementation = Literal["reference", "flash", "flex", "triton"]
IMPLEMENTATIONS: tuple[str, ...] = get_args(Implementation)
EXPERIMENTS = {"triton": "farfield.experiments.triton"}  # modules that nobody imports until they are named
Windows: TypeAlias = int | Sequence[int] | Tensor | None
KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
KIND_NAMES = "float64, float32, bfloat16 or float16"


class Problem(NamedTuple):
    """A call after validation: what every implementation is given."""

    q: Float[Tensor, "B H M D"]
    k: Float[Tensor, "B Hk N D"]
    v: Float[Tensor, "B Hk N D"]
    bias: Float[Tensor, "H N"]  # float32, or float64 with float64 inputs
    sink: Float[Tensor, " H"] | None  # of the same type as the bias
    windows: list[int]
    mask: Bool[Tensor, "B N"] | None
    scale: float
    softcap: float | None
    skip: bool

    def with_unit_stride(self) -> Problem:
        """The same with q, k and v whose last dimension is dense, as kernels want it."""
        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (self.q, self.k, self.v))
        return self._replace(q=q, k=k, v=v, bias=self.bias.contiguous())


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
    values = bias.detach()[:, :keys]
    if not float(values.amax()) < float("inf"):  # NaN if any is NaN
        head, t = next(iter((~(values < float("inf"))).nonzero().tolist()))
        raise ValueError(
            f"the bias of head {head} at distance {t} is {float(values[head, t])}; "
            "it must be a number, or minus infinity to hide a key"
        )


def check_padding(mask: Bool[Tensor, "B N"]) -> None:
    """Refuse padding between the real tokens of a sample."""
    begins = mask & ~torch.nn.functional.pad(mask, (1, 0))[:, :-1]
    gaps = begins.sum(-1) > 1
    if bool(gaps.any()):
        raise ValueError(
            f"the padding mask of sample {int(gaps.int().argmax())} has gaps; the real tokens of a sample must stand "
            "together, with padding before or after them"
        )


def implementation_for(name: str | None, device: torch.device) -> str:
    """The implementation to use: the one that is named, or that of the device."""
    if name is None:
        return "flash" if device.type == "cpu" else "flex"
    if name not in IMPLEMENTATIONS:
        allowed = ", ".join(map(repr, IMPLEMENTATIONS))
        raise ValueError(f"implementation is {name!r}; it must be one of {allowed}, or None to choose by device")
    if name == "flash" and device.type != "cpu":
        raise ValueError(f"implementation 'flash' is the CPU's, but q is on {device}; leave implementation out")
    return name


def windows_of(window: Windows, heads: int, keys: int) -> list[int]:
    """The window of each head, at most the number of keys."""
    if window is None:
        return [keys] * heads
    numbers = window.tolist() if isinstance(window, Tensor) else window
    each = list(numbers) if isinstance(numbers, Sequence) else [numbers] * heads
    if len(each) != heads:
        raise ValueError(f"window has {len(each)} numbers for {heads} heads; give one number, or one for each head")
    for w in each:
        if isinstance(w, bool) or int(w) != w or w < 1:
            raise ValueError(
                f"a window of {w} tokens was given; it must be a whole number of at least 1: the token itself"
            )
    return [min(int(w), keys) for w in each]
