"""Attention is what its definition says, for every encoding, shape, window and padding, and in O(n) memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from farfield import zoo
from farfield.nn import attention, bias_of, reference

INF = float("inf")
ADDITIVE = [name for name, e in zoo.ENCODINGS.items() if e.formula is not None]


def bias_named(name: str, heads: int, n: int, width: int = 64) -> Tensor:
    torch.manual_seed(1)
    module = bias_of(name, heads, width, {"w": 5} if name.startswith("window") else None)
    assert module is not None
    return module(n).detach()


def rms(x: Tensor) -> float:
    return float(x.double().pow(2).mean().sqrt())


@pytest.mark.parametrize("name", ADDITIVE)
def test_error_is_at_most_that_of_the_dense_float32_path(name, draw):
    for n in (1, 37, 301, 900):
        q, k, v = draw(2, 4, n, 64)
        bias = bias_named(name, 4, n)
        exact, exact_lse = reference(q, k, v, bias, dtype=torch.float64)
        dense, _ = reference(q, k, v, bias)
        out, lse = attention(q, k, v, bias, return_lse=True)
        assert rms(out - exact) <= rms(dense - exact) + 1e-12
        assert float((out - exact).abs().max()) < 3e-6
        assert torch.allclose(lse.double(), exact_lse, rtol=1e-6, atol=3e-6)


@st.composite
def calls(draw: st.DrawFn) -> dict:
    keys = draw(st.integers(1, 90))
    key_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    windows = st.sampled_from([1, 2, keys, keys + 7]) | st.integers(1, 40)
    padding = st.integers(0, 30)
    return {
        "batch": draw(st.integers(1, 3)),
        "key_heads": key_heads,
        "heads": key_heads * group,
        "keys": keys,
        "queries": draw(st.integers(1, keys) | st.just(keys)),
        "width": draw(st.sampled_from([1, 3, 8, 16])),
        "window": draw(st.none() | windows | st.lists(windows, min_size=key_heads * group, max_size=key_heads * group)),
        "padding": draw(st.none() | st.lists(st.tuples(padding, padding), min_size=3, max_size=3)),
        "encoding": draw(st.none() | st.sampled_from(ADDITIVE)),
        "seed": draw(st.integers(0, 999)),
    }


def padding_mask(case: dict) -> Tensor | None:
    if case["padding"] is None:
        return None
    mask = torch.ones(case["batch"], case["keys"], dtype=torch.bool)
    for row, (left, right) in zip(mask, case["padding"], strict=False):
        row[: min(left, case["keys"])] = False
        row[max(0, case["keys"] - right) :] = False
    return mask


@settings(max_examples=100, deadline=None)
@given(calls())
def test_any_shape_window_and_padding_gives_what_the_definition_gives(checked, case):
    torch.manual_seed(case["seed"])
    shape = (case["batch"], case["key_heads"], case["keys"], case["width"])
    q = torch.randn(case["batch"], case["heads"], case["queries"], case["width"], dtype=torch.float64)
    k, v = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    bias = None
    if case["encoding"] is not None:
        bias = bias_named(case["encoding"], case["heads"], case["keys"], 8).double().requires_grad_()
    leaves = [x.requires_grad_() for x in (q, k, v)] + ([] if bias is None else [bias])
    mask = padding_mask(case)
    out, lse = checked(attention.attention)(q, k, v, bias, window=case["window"], mask=mask, return_lse=True)
    want, want_lse = checked(reference)(q, k, v, bias, window=case["window"], mask=mask)
    assert torch.allclose(out, want, atol=1e-12)
    assert torch.allclose(lse, want_lse, atol=1e-12)
    weights = torch.randn_like(out), torch.randn_like(lse).masked_fill(want_lse == -INF, 0)
    for with_lse in (False, True):
        losses = []
        for o, norm in ((out, lse), (want, want_lse)):
            loss = (o * weights[0]).sum()
            if with_lse:
                loss = loss + (norm.masked_fill(norm == -INF, 0) * weights[1]).sum()
            losses.append(torch.autograd.grad(loss, leaves, retain_graph=True, materialize_grads=True))
        for ours, theirs in zip(*losses, strict=True):
            assert torch.allclose(ours, theirs, atol=1e-10)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_every_implementation_can_be_asked_for_and_gives_the_same(draw):
    q, k, v = draw(2, 4, 90, 16, key_heads=2)
    bias, mask = bias_named("alibi", 4, 90), torch.arange(90) >= torch.tensor([0, 20])[:, None]
    want, lse = reference(q, k, v, bias, window=[90, 7, 1, 40], mask=mask)
    for implementation in ("reference", "flash", "flex", None):
        out, norm = attention(
            q, k, v, bias, window=[90, 7, 1, 40], mask=mask, return_lse=True, implementation=implementation
        )
        assert torch.allclose(out, want, atol=2e-6)
        assert torch.allclose(norm, lse, atol=2e-6)


def test_a_window_of_j_tokens_is_the_token_itself_and_the_j_minus_1_before_it(draw):
    q, k, v = draw(1, 1, 12, 4)
    assert torch.equal(attention(q, k, v, window=1), v)
    for j in (1, 2, 5, 12, 40):
        out = attention(q, k, v, window=j)
        for i in range(12):
            seen = slice(max(0, i - j + 1), i + 1)
            weight = (q[0, 0, i] @ k[0, 0, seen].T / 2).softmax(-1)
            assert torch.allclose(out[0, 0, i], weight @ v[0, 0, seen], atol=1e-6)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("name", ["alibi", "type2", "none"])
def test_nothing_after_a_token_changes_its_output_by_one_bit(name, skip, draw):
    n = 1700
    q, k, v = draw(2, 4, n, 16)
    bias = bias_named(name, 4, n)
    before = attention(q, k, v, bias, skip=skip)
    for at in (1, 191, 700, 1023, 1690):
        for size in (1.0, 300.0):
            later = [torch.cat([x[:, :, :at], size * torch.randn_like(x[:, :, at:])], 2) for x in (q, k, v)]
            assert torch.equal(attention(*later, bias, skip=skip)[:, :, :at], before[:, :, :at])


def test_another_sample_of_the_batch_changes_nothing_by_one_bit(draw):
    q, k, v = draw(2, 4, 1500, 16)
    bias = bias_named("alibi", 4, 1500)
    before = attention(q, k, v, bias)[0]
    for x in (q, k, v):
        x[1] *= 30
    assert torch.equal(attention(q, k, v, bias)[0], before)


@pytest.mark.parametrize("window", [1, 17, 512, [3, 200, 900, 5000]])
def test_nothing_before_the_window_changes_the_output_by_one_bit(window, draw):
    n, at = 1300, 600
    q, k, v = draw(1, 4, n, 16)
    bias = bias_named("type1", 4, n)
    before = attention(q, k, v, bias, window=window)
    k[:, :, :at], v[:, :, :at] = 1e4 * torch.randn_like(k[:, :, :at]), 1e4 * torch.randn_like(v[:, :, :at])
    after = attention(q, k, v, bias, window=window)
    for head, j in enumerate([window] * 4 if isinstance(window, int) else window):
        first = at + j - 1  # the first row whose window begins at `at` or later
        assert torch.equal(after[:, head, first:], before[:, head, first:])


def test_each_padded_sample_is_what_it_is_alone_and_padding_may_hold_anything(draw):
    q, k, v = (x.requires_grad_() for x in draw(3, 2, 300, 16))
    bias = bias_named("alibi", 2, 300)
    mask = torch.zeros(3, 300, dtype=torch.bool)
    mask[0, 100:], mask[1, :250], mask[2, 299:] = True, True, True
    with torch.no_grad():
        for x in (q, k, v):
            x.masked_fill_(~mask[:, None, :, None], float("nan"))
    out = attention(q, k, v, bias, mask=mask)
    assert float(out.detach().masked_fill(mask[:, None, :, None], 0).abs().sum()) == 0
    out.masked_select(mask[:, None, :, None]).sum().backward()
    for b, real in enumerate((slice(100, 300), slice(0, 250), slice(299, 300))):
        alone = attention(*(x[b : b + 1, :, real] for x in (q, k, v)), bias)
        assert torch.allclose(out[b, :, real], alone[0], atol=1e-6)
        assert float(k.grad[b].masked_fill(mask[b, :, None], 0).abs().sum()) == 0


def test_decoding_token_by_token_gives_what_one_pass_gives(draw):
    q, k, v = draw(1, 6, 230, 16, key_heads=2)
    bias = bias_named("type2", 6, 230)
    whole = attention(q, k, v, bias, window=100)
    for i in (0, 1, 150, 229):
        step = attention(q[:, :, i : i + 1], k[:, :, : i + 1], v[:, :, : i + 1], bias, window=100)
        assert torch.allclose(step, whole[:, :, i : i + 1], atol=1e-6)
    assert torch.allclose(attention(q[:, :, 200:], k, v, bias, window=100), whole[:, :, 200:], atol=1e-6)


def test_a_row_to_which_every_key_is_hidden_gives_zero(draw):
    q, k, v = draw(1, 1, 5, 4)
    bias = torch.tensor([[-INF, -INF, 0.0, 0.0, 0.0]])
    out, lse = attention(q, k, v, bias, return_lse=True)
    assert torch.equal(out[0, 0, :2], torch.zeros(2, 4))
    assert lse[0, 0].isneginf().tolist() == [True, True, False, False, False]
    assert torch.allclose(out, reference(q, k, v, bias)[0], atol=1e-6)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_every_type_keeps_its_own_precision_forward_and_backward(kind, draw):
    n = 400
    q, k, v = (x.to(kind).requires_grad_() for x in draw(1, 4, n, 32, key_heads=2))
    # at distance 399 bfloat16 knows only even numbers: the bias must not pass through it
    bias = bias_named("alibi", 4, n).requires_grad_()
    out = attention(q, k, v, bias, window=[n, n, 33, 1])
    want, _ = reference(q, k, v, bias, window=[n, n, 33, 1], dtype=torch.float64)
    assert out.dtype == kind
    step = torch.finfo(kind).eps
    assert float((out - want).detach().abs().max()) < 4 * max(step, 2e-7)
    weight = torch.randn_like(want)
    for ours, theirs in zip(
        torch.autograd.grad((out.double() * weight).sum(), (q, k, v, bias), retain_graph=True),
        torch.autograd.grad((want * weight).sum(), (q, k, v, bias)),
        strict=True,
    ):
        assert float((ours - theirs).abs().max()) < 20 * max(step, 2e-7) * (1 + float(theirs.abs().max()))
    fixed = torch.autograd.grad(attention(q, k, v, bias.detach()).sum(), q)[0]
    assert fixed.dtype == kind


def test_the_type_to_compute_in_can_be_chosen_and_the_result_keeps_that_of_q(draw):
    q, k, v = draw(1, 2, 50, 16)
    bias = bias_named("alibi", 2, 50)
    exact, _ = reference(q, k, v, bias, dtype=torch.float64)
    rough = attention(q, k, v, bias, dtype=torch.bfloat16)
    fine = attention(q.bfloat16(), k.bfloat16(), v.bfloat16(), bias, dtype=torch.float32)
    assert rough.dtype == torch.float32
    assert fine.dtype == torch.bfloat16
    assert 1e-4 < float((rough - exact).abs().max()) < 0.05


def test_any_layout_of_memory_will_do(draw):
    q, k, v = draw(2, 4, 130, 16)
    bias = bias_named("alibi", 4, 130)
    want = attention(q, k, v, bias)
    by_token = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
    by_column = [x.mT.contiguous().mT for x in (q, k, v)]
    wider = [torch.cat([x, x], -1)[..., ::2].clone() * 0 + x for x in (q, k, v)]
    for layout in (by_token, by_column, wider):
        assert torch.equal(attention(*layout, bias), want)
    far = bias_named("alibi", 4, 500)
    assert torch.equal(attention(q, k, v, far), want)
    assert torch.equal(attention(q, k, v, torch.stack([far, far], -1)[..., 0]), want)


class Largest(TorchDispatchMode):
    """The largest piece of memory that any operation returns."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else [out]:
            if isinstance(x, Tensor):
                self.numbers = max(self.numbers, x.untyped_storage().nbytes() // x.element_size())
        return out


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("options", [{}, {"skip": False}, {"window": 300}])
def test_no_tensor_of_n_times_n_numbers_is_ever_made(learned, options, draw):
    n, heads, width = 4096, 2, 8
    q, k, v = (x.requires_grad_() for x in draw(1, heads, n, width))
    bias = bias_named("type2", heads, n).requires_grad_(learned)
    with Largest() as seen:
        attention(q, k, v, bias, **options).sum().backward()
    tile = 3 * 256 * (256 + 1024)
    assert seen.numbers <= max(heads * n * width, tile, 2 * heads * (n + 1))
    assert seen.numbers < n * n / 10


def test_learned_bias_has_exact_gradients_by_finite_differences(draw, monkeypatch):
    from farfield.nn.attention.flash import diagonals

    monkeypatch.setattr(diagonals, "ROWS", 3)  # many tiles, full and partial
    monkeypatch.setattr(diagonals, "KEYS", 4)
    q, k, v = (x.requires_grad_() for x in draw(2, 4, 11, 3, key_heads=2, queries=9, dtype=torch.float64))
    bias = bias_named("kerple-log", 4, 13, 3).double().requires_grad_()
    mask = torch.ones(2, 11, dtype=torch.bool)
    mask[1, :3] = False

    def call(q, k, v, bias):
        out, lse = attention(q, k, v, bias, window=[11, 2, 5, 11], mask=mask, return_lse=True)
        return out, lse.masked_fill(lse == -INF, 0)

    assert torch.autograd.gradcheck(call, (q, k, v, bias))
    assert torch.autograd.gradcheck(lambda q, k, v: call(q, k, v, bias.detach())[0], (q, k, v))


@pytest.mark.parametrize("window", [None, 300, [1, 40, 700, 2000]])
def test_gradients_over_many_tiles_agree_with_the_dense_reference(window, draw):
    n = 1400
    q, k, v = (x.requires_grad_() for x in draw(1, 4, n, 16, key_heads=4))
    bias = bias_named("type1", 4, n).requires_grad_()
    out = attention(q, k, v, bias, window=window, skip=False)
    want, _ = reference(q, k, v, bias, window=window, dtype=torch.float64)
    dense, _ = reference(q, k, v, bias, window=window)
    weight = torch.randn_like(out)
    ours, exact, rough = (
        torch.autograd.grad((o * weight.to(o.dtype)).sum(), (q, k, v, bias)) for o in (out, want, dense)
    )
    for a, b, c in zip(ours, exact, rough, strict=True):
        assert rms(a - b) <= 2.5 * rms(c - b) + 1e-9  # weights come back from the log-sum-exp, not from memory
