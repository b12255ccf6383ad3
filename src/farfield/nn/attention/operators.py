"""Attention as one operator of torch: what torch.compile, torch.export, torch.vmap and torch.func see of it.

Outside of these the same code is called directly, which is faster. The operator knows shapes (its fake rule), its
gradient (a second operator) and batches of batches (its vmap rule); the gradient has no gradient of its own.

Shapes: B samples, H query heads, Hk key heads, M queries, N keys, D width of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from farfield.nn.attention.api import compute
from farfield.nn.attention.validation import Problem, check_bias

CALL = (  # the arguments of both operators, in torch's language; `options` below are those after the six tensors
    "Tensor q, Tensor k, Tensor v, Tensor bias, Tensor? sink, Tensor? mask, SymInt[] windows, float scale, "
    "float? softcap, bool skip, str implementation"
)


def call_operator(*call: Any) -> tuple[Tensor, Tensor]:
    """The output and the log-sum-exp, through the operator, or in torch.func a function with all its rules."""
    return (attention_operator if torch.compiler.is_compiling() else _Transformed.apply)(*call)


def _compute(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, mask: Tensor | None, windows: Sequence[int],
    scale: float, softcap: float | None, skip: bool, implementation: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    keys = k.shape[2]
    check_bias(bias, keys)
    each = [min(w, keys) for w in windows] or [keys] * q.shape[1]
    return compute(Problem(q, k, v, bias, sink, each, mask, scale, softcap, skip), implementation)


@torch.library.custom_op("farfield::attention", mutates_args=(), schema=f"({CALL}) -> (Tensor, Tensor)")
def attention_operator(*call: Any) -> tuple[Tensor, Tensor]:
    """The output, in memory of its own, and the log-sum-exp."""
    out, lse = _compute(*call)
    return out.contiguous(), lse.contiguous()


@attention_operator.register_fake
def _shapes(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, *others: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), bias.new_empty(q.shape[:3])


def _recording() -> Any:
    """Inside of an operator torch records nothing for a gradient: let it."""
    keys, hidden = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for key in (keys.AutogradFunctionality, keys.ADInplaceOrView):
        hidden = hidden.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), hidden)


@torch.library.custom_op(
    "farfield::attention_backward", mutates_args=(),
    schema=f"(Tensor d_out, Tensor? d_lse, bool learned, {CALL}) -> Tensor[]",
)  # fmt: skip
def backward_operator(d_out: Tensor, d_lse: Tensor | None, learned: bool, *call: Any) -> list[Tensor]:
    """The gradients of q, k and v, of the bias if it is learned, and of the sinks: the forward pass is run again."""
    q, k, v, bias, sink, *options = call
    with _recording(), torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        vector = bias.detach().requires_grad_(learned)
        sinks = None if sink is None else sink.detach().requires_grad_()
        pair = _compute(leaves[0], leaves[1], leaves[2], vector, sinks, *options)
        wanted = [*leaves, *([vector] if learned else []), *([] if sinks is None else [sinks])]
        outputs, grads = ((pair[0],), (d_out,)) if d_lse is None else (pair, (d_out, d_lse))
        return [x.contiguous() for x in torch.autograd.grad(outputs, wanted, grads, materialize_grads=True)]


@backward_operator.register_fake
def _gradient_shapes(d_out: Tensor, d_lse: Tensor | None, learned: bool, *call: Any) -> list[Tensor]:
    q, k, v, bias, sink = call[:5]
    wanted = [q, k, v, *([bias] if learned else []), *([] if sink is None else [sink])]
    return [x.new_empty(x.shape) for x in wanted]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.windows, ctx.scale, ctx.softcap, ctx.skip, ctx.implementation = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    learned = ctx.needs_input_grad[3]
    d_out = torch.zeros_like(ctx.saved_tensors[0]) if d_out is None else d_out
    run = _TransformedBackward.apply if torch._C._are_functorch_transforms_active() else backward_operator
    options = (ctx.windows, ctx.scale, ctx.softcap, ctx.skip, ctx.implementation)
    dq, dk, dv, *others = run(d_out, d_lse, learned, *ctx.saved_tensors, *options)
    d_bias = others.pop(0) if learned else None
    return dq, dk, dv, d_bias, others[0] if others else None, *[None] * 6


attention_operator.register_autograd(_backward, setup_context=_save)


def _over_batches(info: Any, places: tuple[int | None, ...], *call: Any) -> tuple[Any, Any]:
    """vmap: more samples where nothing but q, k, v and the mask differ, else one call after the other."""
    size, (q, k, v, bias, sink, mask, *options) = info.batch_size, call
    if places[3] is None and places[4] is None:

        def flat(x: Tensor | None, place: int | None) -> Tensor | None:
            if x is None:
                return None
            return (x.expand(size, *x.shape) if place is None else x.movedim(place, 0)).flatten(0, 1)

        many = flat(q, places[0]), flat(k, places[1]), flat(v, places[2]), bias, sink, flat(mask, places[5])
        out, lse = _Transformed.apply(*many, *options)
        return (out.unflatten(0, (size, -1)), lse.unflatten(0, (size, -1))), (0, 0)
    return _one_by_one(_Transformed.apply, size, places, call)


def _one_by_one(run: Any, size: int, places: tuple[int | None, ...], call: tuple[Any, ...]) -> tuple[Any, Any]:
    """The results of one call for each entry of a batch, stacked."""
    rows = []
    for i in range(size):
        row = [x.select(p, i) if isinstance(p, int) else x for x, p in zip(call, places, strict=True)]
        rows.append(run(*row))
    parts = tuple(torch.stack(same) for same in zip(*rows, strict=True))
    return parts, tuple([0] * len(parts))


class _Transformed(torch.autograd.Function):
    """The operator for torch.func, which does not take an operator's own rule for gradients."""

    forward = staticmethod(attention_operator)
    setup_context = staticmethod(_save)
    backward = staticmethod(_backward)
    vmap = staticmethod(_over_batches)


attention_operator.register_vmap(_over_batches)


def _gradients_over_batches(info: Any, places: tuple[int | None, ...], *call: Any) -> tuple[Any, Any]:
    return _one_by_one(backward_operator, info.batch_size, places, call)


class _TransformedBackward(torch.autograd.Function):
    """The same for the gradient, which has none of its own."""

    vmap = staticmethod(_gradients_over_batches)

    @staticmethod
    def forward(*call: Any) -> tuple[Tensor, ...]:
        return tuple(backward_operator(*call))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("the gradient of attention has no gradient; implementation='reference' has one")


backward_operator.register_vmap(_gradients_over_batches)
