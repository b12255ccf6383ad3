"""Attention in torch's compilers and transforms: one graph, an exported program, vmap, no gradient of a gradient."""

import pytest
import torch

from farfield.nn import Bias, attention, reference


@pytest.fixture
def call(draw):
    q, k, v = draw(2, 4, 70, 16, key_heads=2)
    return q, k, v, Bias("alibi", 4)(70).clone()


def compiled(function):
    return torch.compile(function, fullgraph=True, backend="aot_eager")


def test_it_compiles_without_a_graph_break_forward_and_backward(call):
    sink = torch.randn(4)
    mask = torch.arange(70) >= torch.tensor([0, 9])[:, None]

    def both(q, k, v, bias, sink):
        return attention(q, k, v, bias, window=[5, 70, 70, 33], mask=mask, sink=sink, softcap=20.0, return_lse=True)

    results = []
    for function in (both, compiled(both)):
        leaves = [x.detach().clone().requires_grad_() for x in (*call, sink)]
        out, lse = function(*leaves)
        loss = out.square().sum() + lse.masked_fill(~mask[:, None], 0).sum()
        results.append((out, lse, *torch.autograd.grad(loss, leaves)))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_operators_keep_torchs_own_rules(call):
    from farfield.nn.attention.operators import attention_operator

    q, k, v, bias = (x[..., :9, :].contiguous() if x.dim() == 4 else x[:, :9].contiguous() for x in call)
    given = (q.requires_grad_(), k, v, bias.requires_grad_(), None, None, [], 0.25, None, True, "flash")
    torch.library.opcheck(attention_operator, given)


def test_it_is_exported_as_one_operator(call):
    class Layer(torch.nn.Module):
        def forward(self, q, k, v, bias):
            return attention(q, k, v, bias, window=40)

    program = torch.export.export(Layer(), call)
    assert sum("farfield.attention" in str(node.target) for node in program.graph.nodes) == 1
    torch.testing.assert_close(program.module()(*call), attention(*call, window=40))


def test_vmap_over_batches_biases_and_gradients(call):
    q, k, v, bias = call
    many = [torch.stack([x, 2 * x, -x]) for x in (q, k, v)]
    for ours, rows in (
        (torch.vmap(attention, in_dims=(0, 0, 0, None))(*many, bias), [bias] * 3),
        (torch.vmap(attention)(*many, torch.stack([bias, 2 * bias, 0 * bias])), [bias, 2 * bias, 0 * bias]),
    ):
        for i, row in enumerate(rows):
            torch.testing.assert_close(ours[i], attention(*(x[i] for x in many), row))
    grad = torch.func.grad(lambda b: attention(q, k, v, b).square().sum())(bias)
    leaf = bias.clone().requires_grad_()
    torch.testing.assert_close(grad, torch.autograd.grad(attention(q, k, v, leaf).square().sum(), leaf)[0])
    each = torch.vmap(torch.func.grad(lambda x: attention(x, k, v, bias).square().sum()))(many[0])
    leaf = many[0][1].clone().requires_grad_()
    torch.testing.assert_close(each[1], torch.autograd.grad(attention(leaf, k, v, bias).square().sum(), leaf)[0])


def test_a_gradient_of_a_gradient_is_refused_and_the_definition_has_it(call):
    q, k, v, bias = (x.detach().clone().requires_grad_() for x in call)
    for made in (
        attention(q, k, v, bias).square().sum(),
        attention(q, k, v, bias).sum(),
    ):
        with pytest.raises(RuntimeError, match="no gradient of a gradient"):
            torch.autograd.grad(made, q, create_graph=True)
    out = attention(q, k, v, bias, implementation="reference")
    torch.autograd.grad(out.square().sum(), q, create_graph=True)[0].sum().backward()
    assert q.grad is not None


@pytest.mark.parametrize("n", [40, 384, 500, 1100])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("which", ["k", "v", "q"])
def test_what_is_not_finite_stays_where_the_definition_leaves_it(n, bad, which, draw):
    tensors = dict(zip("qkv", draw(1, 2, n, 8), strict=True))
    tensors[which][0, 1, n - 20, 3] = bad
    bias = Bias("alibi", 2)(n)
    for learned in (False, True):
        vector = bias.clone().requires_grad_(learned)
        ours, theirs = attention(*tensors.values(), vector), reference(*tensors.values(), vector)[0]
        assert torch.equal(ours.isnan(), theirs.isnan())
        assert torch.equal(ours.isinf(), theirs.isinf())
        assert bool(ours[:, :, : n - 20].isfinite().all())


@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_what_is_skipped_is_small_against_the_values_that_were_touched(size, draw):
    """An outlier among far values: the row's output moves by no more than 2^-23 of the largest value it touched."""
    n = 2500
    q, k, v = draw(1, 2, n, 16)
    v[:, :, 7] *= size
    bias = Bias("alibi", 2, parameters={"k": [0.05, 0.5]})(n)
    exact = reference(q, k, v, bias, dtype=torch.float64)[0]
    ours, full = attention(q, k, v, bias), attention(q, k, v, bias, skip=False)
    far = slice(n - 500, n)  # rows of which most heads touch nothing near token 7
    largest = float(v[:, :, 1000:].norm(dim=-1).max())
    assert (
        float((ours - exact)[:, 1, far].abs().max()) <= float((full - exact)[:, 1, far].abs().max()) + 2**-23 * largest
    )
    assert float((ours - full)[:, :, far].abs().max()) <= 2e-6 * largest
