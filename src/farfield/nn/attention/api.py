"""Causal attention with a bias by distance, in O(n) memory: the bias costs next to nothing.

Every query sees itself and the past. The bias is one vector for each head, `bias[h, t]` for the distance t from query
to key; nothing of size n x n is stored beyond a few hundred tokens. `reference.py` holds the definition; on a CPU
torch's flash kernel reads the vector in place (`flash/`), on a GPU FlexAttention adds it to the score (`flex.py`).
Under torch.compile, torch.export and torch.func it is one operator (`operators.py`).

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head, T >= N distances.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Literal, overload

import torch
from torch import Tensor

from farfield.nn.attention.contract import exact_type, without_autocast
from farfield.nn.attention.flash.operator import flash
from farfield.nn.attention.flash.short import is_finite, is_short, plain, short
from farfield.nn.attention.reference import reference
from farfield.nn.attention.validation import (
    EXPERIMENTS,
    Implementation,
    Problem,
    Windows,
    check_bias,
    check_call,
    check_padding,
    implementation_for,
)  # fmt: skip
from farfield.nn.attention.validation import windows_of as windows_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@overload
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = ...,
    *,
    window: Windows = ...,
    mask: Bool[Tensor, "B N"] | None = ...,
    sink: Float[Tensor, " H"] | None = ...,
    softcap: float | None = ...,
    scale: float | None = ...,
    dtype: torch.dtype | None = ...,
    skip: bool = ...,
    return_lse: Literal[False] = ...,
    implementation: Implementation | None = ...,
) -> Float[Tensor, "B H M D"]: ...
@overload
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = ...,
    *,
    window: Windows = ...,
    mask: Bool[Tensor, "B N"] | None = ...,
    sink: Float[Tensor, " H"] | None = ...,
    softcap: float | None = ...,
    scale: float | None = ...,
    dtype: torch.dtype | None = ...,
    skip: bool = ...,
    return_lse: Literal[True],
    implementation: Implementation | None = ...,
) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]: ...
def attention(
    q: Float[Tensor, "B H M D"],
    k: Float[Tensor, "B Hk N D"],
    v: Float[Tensor, "B Hk N D"],
    bias: Float[Tensor, "H T"] | None = None,
    *,
    window: Windows = None,
    mask: Bool[Tensor, "B N"] | None = None,
    sink: Float[Tensor, " H"] | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    dtype: torch.dtype | None = None,
    skip: bool = True,
    return_lse: bool = False,
    implementation: Implementation | None = None,
) -> Float[Tensor, "B H M D"] | tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """Causal attention with `bias[h, t]` added to the logit of every key at distance t from its query.

    The last query stands at the last key, so M < N is decoding with a cache. With fewer key heads than query heads,
    neighbouring query heads share one. The gradient of a learned bias is exact and takes O(n) memory too.

    Args:
        q: The queries.
        k: The keys.
        v: The values.
        bias: One vector for each head; None is a bias of 0.
        window: Tokens that a query sees, itself among them (keys with t < window): one number, or one for each head.
        mask: True for the real tokens of each sample, which must stand together; padding may stand before or after
            them. Padding is never seen, and its own output is 0. Distances count real tokens.
        sink: One more logit of each head, without a value, in every row's denominator; may be learned.
        softcap: Scores q.k become softcap * tanh(q.k / softcap), before the bias.
        scale: Of q.k; 1/sqrt(D) unless given.
        dtype: The type to compute in (bfloat16, float16, float32, float64), if not that of q; the result has that of q.
            `contract.py` says what is computed in which type; autocast changes nothing.
        skip: Leave out keys that provably cannot change a float32 result (flash/skip.py); off gives every key its turn.
        return_lse: Also give the log-sum-exp of each query's logits (minus infinity where it sees no key), which has a
            gradient.
        implementation: "reference", "flash" (the CPU's) or "flex" (a GPU's), if not by device; "triton" is on trial.

    Returns:
        The output, in the type of q; with `return_lse` a pair of it and the log-sum-exp.
    """
    usual = dtype is None and mask is None and sink is None and softcap is None and implementation is None
    if usual and bias is not None and not return_lse and not is_traced():
        short = plain(q, k, v, bias, window, scale)
        if short is not None:
            return short
    check_call(q, k, v, bias, mask, dtype, sink, softcap)
    chosen = implementation_for(implementation, q.device)
    kind, keys = q.dtype, k.shape[2]
    if dtype is not None:
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    scale = q.shape[3] ** -0.5 if scale is None else float(scale)
    exact = exact_type(q.dtype)  # a bias in bfloat16 would lose distances
    vector = q.new_zeros(q.shape[1], keys, dtype=exact) if bias is None else bias[:, :keys].to(exact)
    sinks = None if sink is None else sink.to(exact)
    skip = skip and bias is not None
    if is_traced():
        from farfield.nn.attention.operators import call_operator

        each = [] if window is None else windows_of(window, q.shape[1], keys)
        out, lse = call_operator(q, k, v, vector, sinks, mask, each, scale, softcap, skip, chosen)
    else:
        if bias is not None:
            check_bias(bias, keys)
        windows = windows_of(window, q.shape[1], keys)
        out, lse = compute(Problem(q, k, v, vector, sinks, windows, mask, scale, softcap, skip), chosen)
    return (out.to(kind), lse) if return_lse else out.to(kind)


def is_traced() -> bool:
    """Whether a compiler or a transform of torch.func watches."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def compute(problem: Problem, implementation: str) -> tuple[Float[Tensor, "B H M D"], Float[Tensor, "B H M"]]:
    """The output and the log-sum-exp, by one of the implementations."""
    with without_autocast(problem.q.device.type):
        if problem.mask is not None:
            check_padding(problem.mask)
        if implementation == "flash" and is_short(problem):
            out, lse = short(problem)
            if is_finite(out, lse):
                return out, lse
            implementation = "reference"  # NaN in a token may have reached rows before it, or a sum was too large
        if implementation == "flash":
            return flash(problem)
        if implementation == "flex":
            from farfield.nn.attention.flex import flex

            return flex(problem)
        if implementation in EXPERIMENTS:
            return importlib.import_module(EXPERIMENTS[implementation]).attention(problem)
        q, k, v, bias, sink, windows, mask, scale, softcap, _ = problem
        return reference(q, k, v, bias, window=windows, mask=mask, sink=sink, softcap=softcap, scale=scale)
