"""A mask that is found again is the right one, and what it hides stays hidden, NaN included."""

import pytest
import torch

from farfield.nn import Bias, attention, reference

INF, NAN = float("inf"), float("nan")


def right(q, k, v, bias, **options) -> None:
    torch.testing.assert_close(attention(q, k, v, bias, **options), reference(q, k, v, bias, **options)[0])


@pytest.mark.parametrize("queries", [1, 20])
def test_a_bias_that_was_written_to_is_looked_at_again(queries, draw):
    q, k, v = draw(2, 4, 20, 8, queries=queries)
    bias = Bias("alibi", 4)(20).clone()
    right(q, k, v, bias)
    bias.mul_(3)
    right(q, k, v, bias)
    bias[:, :20][1, 3] = -5.0  # through a view
    right(q, k, v, bias)
    part = bias[:, :20]
    right(q, k, v, part)
    bias.zero_()
    right(q, k, v, part)
    bias.data = torch.randn(4, 20)
    right(q, k, v, bias)


@pytest.mark.parametrize("n", [1, 20, 384, 385])
@pytest.mark.parametrize("queries", ["one", "all"])
def test_a_bias_may_be_written_to_behind_torch(queries, n, draw):
    """Through .data, numpy, memory that another process shares, and a storage that two tensors have in common."""
    q, k, v = draw(1, 2, n, 8, queries=1 if queries == "one" else n)
    memory = bytearray(8 * n)
    bias = torch.frombuffer(memory, dtype=torch.float32).view(2, n)
    twin = torch.empty(0).set_(bias.untyped_storage(), 0, (2, n))
    shared = torch.zeros(2, n).share_memory_()
    writes = (
        lambda new: bias.data.copy_(new),
        lambda new: bias.numpy().__setitem__(slice(None), new.numpy()),
        lambda new: memory.__setitem__(slice(None), new.numpy().tobytes()),
        lambda new: twin.copy_(new),
    )
    for number, write in enumerate(writes):
        right(q, k, v, bias)
        before, new = bias._version, torch.randn(2, n, generator=torch.Generator().manual_seed(number)) * 3
        write(new)
        assert bias._version == before  # so this test can fail
        assert torch.equal(bias, new)
        right(q, k, v, bias)
    right(q, k, v, shared)
    torch.from_numpy(shared.numpy()).sub_(torch.arange(float(n)))
    right(q, k, v, shared)


def test_what_is_kept_is_bounded_and_found_again(draw, monkeypatch):
    from farfield.nn.attention.flash import short

    made = []
    monkeypatch.setattr(short, "_make_mask", lambda *args, make=short._make_mask: made.append(1) or make(*args))
    monkeypatch.setattr(short, "BYTES", 40_000)
    monkeypatch.setattr(short, "_masks", {})
    q, k, v = draw(1, 2, 30, 8)
    biases = [torch.randn(2, 30) for _ in range(9)]  # 7,200 bytes each
    for _ in range(3):
        right(q, k, v, biases[0])
    assert len(made) == 1
    for bias in biases:
        right(q, k, v, bias)
    assert len(short._masks) == 5
    assert len(made) == 9


def test_a_parameter_may_be_written_to_behind_its_version(draw):
    q, k, v = draw(1, 2, 20, 8)
    bias = torch.nn.Parameter(torch.randn(2, 20), requires_grad=False)
    for part in (bias, bias[:, :20]):
        right(q, k, v, part)
        bias.data.mul_(-2)  # as averages of models do
        right(q, k, v, part)


def test_another_bias_at_the_same_address_is_another_bias(draw):
    q, k, v = draw(1, 2, 9, 8)
    memory, seen = bytearray(4 * 18), set()
    for slope in range(30):
        bias = torch.frombuffer(memory, dtype=torch.float32).view(2, 9)
        bias.copy_(-slope * torch.arange(9.0))
        del bias
        bias = torch.frombuffer(memory, dtype=torch.float32).view(2, 9)
        right(q, k, v, bias)
        seen.add((id(bias), bias.data_ptr(), bias._version))
        del bias
    assert len(seen) < 30  # all of these come again, so this test can fail


@pytest.mark.parametrize("queries", [1, 10])
def test_parts_of_one_vector_that_differ_in_their_steps_alone(queries, draw):
    q, k, v = draw(1, 2, 10, 8, queries=queries)
    whole = torch.randn(2, 40)
    parts = [whole[:, :10], whole[:, :40:4], whole[:, 1:11], whole.view(40, 2).T[:, :10], whole[:1, :10].expand(2, 10)]
    for part in parts + parts[::-1]:
        right(q, k, v, part)


def test_what_was_refused_once_is_refused_after_a_call_that_was_right(draw):
    q, k, v = draw(1, 2, 10, 8)
    for learned in (False, True):
        bias = torch.zeros(2, 10).requires_grad_(learned)
        attention(q, k, v, bias)
        for wrong in (
            (q, k[:, :, :9], v),
            (q, k, v[..., :7]),
            (q[:, :1], k, v),
            (q[0], k[0], v[0]),
            (q, k, v.double()),
        ):
            with pytest.raises(ValueError, match=r"must|divisor"):
                attention(*wrong, bias)
        for window in (0, True, 2.5):
            with pytest.raises(ValueError, match="a window of"):
                attention(q, k, v, bias, window=window)
        for bad in (NAN, INF):
            other = bias.detach().clone()
            other[1, 7] = bad
            for window in (None, 3):
                with pytest.raises(ValueError, match="head 1 at distance 7"):
                    attention(q, k, v, other.requires_grad_(learned), window=window)


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("n", [1, 6, 40, 500])
def test_what_a_query_does_not_see_cannot_reach_it(n, bad, draw):
    for queries in {1, n if n < 500 else 1}:
        for which in range(3):
            for options, hidden in (({}, 0), ({"window": max(1, n // 2)}, 0), ({}, min(2, n - 1))):
                call = list(draw(1, 2, n, 8, queries=queries))
                call[which][0, 1, 0, 3] = bad  # the first token: beyond the window of the last
                bias = Bias("alibi", 2)(n).clone()
                bias[:, n - hidden :] = -INF
                for learned in (False, True):
                    vector = bias.clone().requires_grad_(learned)
                    ours, theirs = attention(*call, vector, **options), reference(*call, vector, **options)[0]
                    assert torch.equal(ours.isnan(), theirs.isnan())
                    assert torch.equal(ours.isinf(), theirs.isinf())


def test_any_layout_scale_and_group(draw):
    for n in (1, 7, 40):
        q, k, v = draw(2, 4, n, 8, key_heads=2)
        for learned in (False, True):
            bias = Bias("alibi", 4)(n).clone().requires_grad_(learned)
            for turned in (
                lambda x: x,
                lambda x: x.mT.contiguous().mT,
                lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
            ):
                right(turned(q), turned(k), turned(v), bias, scale=0.3)
                right(turned(q), turned(k), turned(v), bias, window=3)


@pytest.mark.parametrize("learned", [False, True])
def test_what_was_kept_for_inference_serves_training(learned, draw):
    q, k, v = draw(1, 2, 11, 8)
    bias = torch.randn(2, 11, requires_grad=learned)
    with torch.inference_mode():
        before = attention(q, k, v, bias)
    out = attention(q.requires_grad_(), k, v, bias)
    torch.testing.assert_close(out, before)
    out.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("n", [9, 500])
def test_a_row_that_sees_an_infinite_key_is_no_number(n, dtype, draw):
    """torch's kernel gives 0 in float16 and bfloat16, which would pass for a result."""
    for queries in (1, n):
        q, k, v = (x.to(dtype) for x in draw(1, 2, n, 8, queries=queries))
        q[..., 3].abs_()
        k[0, :, n // 2, 3] = INF
        for learned in (False, True):
            out = attention(q, k, v, torch.zeros(2, n, requires_grad=learned))
            assert bool(out[:, :, max(0, queries - n + n // 2) :].isnan().all())
            assert bool(out[:, :, : max(0, queries - n + n // 2)].isfinite().all())
