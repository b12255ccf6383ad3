"""The GPU path means the same as the definition: tested on the CPU, eager with gradients and compiled without."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield.nn import Bias, attention, reference
from farfield.nn.attention.flex import block_mask, flex
from farfield.nn.attention.validation import Problem

pytestmark = [
    pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]


@pytest.mark.parametrize(
    ("batch", "heads", "key_heads", "queries", "keys", "window"),
    [
        (1, 2, 2, 1, 1, None),
        (2, 4, 2, 130, 130, None),
        (2, 4, 4, 33, 290, 40),
        (1, 4, 1, 300, 300, [1, 128, 129, 500]),
        (1, 2, 2, 1, 257, 7),
    ],
)
def test_flex_gives_what_the_definition_gives(batch, heads, key_heads, queries, keys, window, draw):
    q, k, v = draw(
        batch, heads, keys, 16, key_heads=key_heads, queries=queries
    )  # torch: no gradients of these on a CPU
    bias = Bias("alibi", heads)(keys).clone().requires_grad_()
    mask = torch.ones(batch, keys, dtype=torch.bool)
    mask[0, : keys // 3] = False
    for padding in (None, mask):
        out, lse = attention(q, k, v, bias, window=window, mask=padding, return_lse=True, implementation="flex")
        want, want_lse = reference(q, k, v, bias, window=window, mask=padding)
        assert torch.allclose(out, want, atol=2e-6)
        assert torch.allclose(lse, want_lse, atol=2e-6)
        weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(0))
        ours, theirs = (torch.autograd.grad((o * weight).sum(), bias)[0] for o in (out, want))
        assert torch.allclose(ours, theirs, atol=2e-5)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_flex_in_half_precision_keeps_the_bias_in_float32(kind, draw):
    q, k, v = (x.to(kind) for x in draw(1, 2, 300, 16))
    bias = Bias("alibi", 2)(300)
    out = attention(q, k, v, bias, implementation="flex")
    want, _ = reference(q, k, v, bias, dtype=torch.float64)
    assert out.dtype == kind
    assert float((out - want).abs().max()) < 8 * torch.finfo(kind).eps


@settings(max_examples=30, deadline=None)
@given(
    keys=st.integers(1, 600),
    back=st.integers(0, 599),
    windows=st.lists(st.integers(1, 700), min_size=2, max_size=2),
    start=st.integers(0, 300),
)
def test_the_block_mask_leaves_out_only_blocks_that_nobody_sees(keys, back, windows, start):
    m = max(1, keys - back)
    first, last = torch.tensor([0, min(start, keys - 1)]), torch.tensor([keys, keys])
    blocks = block_mask(m, keys, windows, first, last)
    i, j = torch.arange(m)[:, None] + keys - m, torch.arange(keys)
    t = i - j
    for b in range(2):
        for h in range(2):
            seen = (t >= 0) & (t < windows[h]) & (j >= first[b]) & (i >= first[b])
            assert torch.equal(
                blocks.mask_mod(torch.tensor(b), torch.tensor(h), i - keys + m, j) & (i >= first[b]), seen
            )
            kept = blocks.to_dense()[min(b, 1), min(h, blocks.shape[1] - 1)].bool()
            kept = kept.repeat_interleave(128, 0)[:m].repeat_interleave(128, 1)[:, :keys]
            assert bool((kept | ~seen).all())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_for_inference_flex_gives_what_the_definition_gives(draw):
    q, k, v = draw(2, 4, 300, 16, key_heads=2)
    bias = Bias("type1", 4)(300)
    with torch.no_grad():
        problem = Problem(q, k, v, bias, None, [300, 40, 1, 128], None, 0.25, None, False)
        out, _ = flex(problem, fused=True)  # padded to multiples of 128
    assert torch.allclose(out, reference(q, k, v, bias, window=[300, 40, 1, 128])[0], atol=2e-6)
