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

from farfield.nn.attention.dispatch import compute
from farfield.nn.attention.problem import Problem
from farfield.nn.attention.validation import check_bias


def is_traced() -> bool:
    """Whether a compiler or a transform of torch.func watches."""
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def call_operator(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, mask: Tensor | None, windows: Sequence[int],
    scale: float, softcap: float | None, skip: bool, implementation: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The output and the log-sum-exp, through the operator, or in torch.func a function with all its rules."""
    run = attention_operator if torch.compiler.is_compiling() else _Transformed.apply
    return run(q, k, v, bias, sink, mask, list(windows), scale, softcap, skip, implementation)


def _compute(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, mask: Tensor | None, windows: Sequence[int],
    scale: float, softcap: float | None, skip: bool, implementation: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    keys = k.shape[2]
    check_bias(bias, keys)
    each = [min(w, keys) for w in windows] or [keys] * q.shape[1]
    problem = Problem(q, k, v, bias, sink, each, mask, scale, softcap, skip, bias.requires_grad)
    return compute(problem, implementation)


@torch.library.custom_op("farfield::attention", mutates_args=())
def attention_operator(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, mask: Tensor | None, windows: Sequence[int],
    scale: float, softcap: float | None, skip: bool, implementation: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The output, in memory of its own, and the log-sum-exp."""
    out, lse = _compute(q, k, v, bias, sink, mask, windows, scale, softcap, skip, implementation)
    return out.contiguous(), lse.contiguous()


@attention_operator.register_fake
def _shapes(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None, mask: Tensor | None, windows: Sequence[int],
    scale: float, softcap: float | None, skip: bool, implementation: str,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    return q.new_empty(q.shape), bias.new_empty(q.shape[:3])


def _recording() -> Any:
    """Inside of an operator torch records nothing for a gradient: let it."""
    keys, hidden = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for key in (keys.AutogradFunctionality, keys.ADInplaceOrView):
        hidden = hidden.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), hidden)


@torch.library.custom_op("farfield::attention_backward", mutates_args=())
def backward_operator(
    d_out: Tensor, d_lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None,
    mask: Tensor | None, windows: Sequence[int], scale: float, softcap: float | None, skip: bool, implementation: str,
    learned: bool,
) -> list[Tensor]:  # fmt: skip
    """The gradients of q, k and v, of the bias if it is learned, and of the sinks: the forward pass is run again."""
    with _recording(), torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (q, k, v)]
        vector = bias.detach().requires_grad_(learned)
        sinks = None if sink is None else sink.detach().requires_grad_()
        pair = _compute(
            leaves[0], leaves[1], leaves[2], vector, sinks, mask, windows, scale, softcap, skip, implementation
        )
        wanted = [*leaves, *([vector] if learned else []), *([] if sinks is None else [sinks])]
        if d_lse is None:
            grads = torch.autograd.grad(pair[0], wanted, d_out, materialize_grads=True)
        else:
            grads = torch.autograd.grad(pair, wanted, (d_out, d_lse), materialize_grads=True)
    return [x.contiguous() for x in grads]


@backward_operator.register_fake
def _gradient_shapes(
    d_out: Tensor, d_lse: Tensor | None, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, sink: Tensor | None,
    mask: Tensor | None, windows: Sequence[int], scale: float, softcap: float | None, skip: bool, implementation: str,
    learned: bool,
) -> list[Tensor]:  # fmt: skip
    wanted = [q, k, v, *([bias] if learned else []), *([] if sink is None else [sink])]
    return [x.new_empty(x.shape) for x in wanted]


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    q, k, v, bias, sink, mask, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, bias, sink, mask)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, d_out: Tensor | None, d_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    q, k, v, bias, sink, mask = ctx.saved_tensors
    learned = ctx.needs_input_grad[3]
    d_out = torch.zeros_like(q) if d_out is None else d_out
    run = _TransformedBackward.apply if torch._C._are_functorch_transforms_active() else backward_operator
    grads = run(d_out, d_lse, q, k, v, bias, sink, mask, *ctx.options, learned)
    dq, dk, dv, *others = grads
    d_bias = others.pop(0) if learned else None
    return dq, dk, dv, d_bias, others[0] if others else None, *[None] * 6


attention_operator.register_autograd(_backward, setup_context=_save)


def _over_batches(info: Any, places: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
    """vmap: more samples where nothing but q, k, v and the mask differ, else one call after the other."""
    tensors, options = given[:6], given[6:]
    size = info.batch_size
    if places[3] is None and places[4] is None:
        flat = []
        for number, (x, place) in enumerate(zip(tensors, places, strict=False)):
            if x is None or number in (3, 4):
                flat.append(x)
                continue
            x = x.unsqueeze(0).expand(size, *x.shape) if place is None else x.movedim(place, 0)
            flat.append(x.flatten(0, 1))
        out, lse = _Transformed.apply(*flat, *options)
        return (out.unflatten(0, (size, -1)), lse.unflatten(0, (size, -1))), (0, 0)
    rows = []
    for i in range(size):
        row = [x if place is None else x.select(place, i) for x, place in zip(tensors, places, strict=False)]
        rows.append(_Transformed.apply(*row, *options))
    return tuple(torch.stack(parts) for parts in zip(*rows, strict=True)), (0, 0)


class _Transformed(torch.autograd.Function):
    """The operator for torch.func, which does not take an operator's own rule for gradients."""

    forward = staticmethod(attention_operator)
    setup_context = staticmethod(_save)
    backward = staticmethod(_backward)
    vmap = staticmethod(_over_batches)


attention_operator.register_vmap(_over_batches)


def _gradients_over_batches(info: Any, places: tuple[int | None, ...], *given: Any) -> tuple[Any, Any]:
    rows = []
    for i in range(info.batch_size):
        row = [x.select(place, i) if isinstance(place, int) else x for x, place in zip(given, places, strict=True)]
        rows.append(backward_operator(*row))
    parts = [torch.stack(same) for same in zip(*rows, strict=True)]
    return tuple(parts), tuple([0] * len(parts))


class _TransformedBackward(torch.autograd.Function):
    """The same for the gradient, which has none of its own."""

    vmap = staticmethod(_gradients_over_batches)

    @staticmethod
    def forward(*given: Any) -> tuple[Tensor, ...]:
        return tuple(backward_operator(*given))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("the gradient of attention has no gradient; implementation='reference' has one")


backward_operator.register_vmap(_gradients_over_batches)
