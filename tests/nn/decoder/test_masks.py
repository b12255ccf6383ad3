"""A mask is read by its meaning: that is what the mask of eager attention says, or the layer is refused."""

import functools
from types import SimpleNamespace

import pytest
import torch
from tiny_models import LENGTH, WORDS, tiny_model
from transformers import StaticCache
from transformers.masking_utils import (
    and_masks,
    causal_mask_function,
    chunked_causal_mask_function,
    eager_mask,
    or_masks,
    padding_mask_function,
    sliding_window_causal_mask_function,
    sliding_window_overlay,
)

from farfield.nn.attention.reference import reference
from farfield.nn.decoder.interface import attend
from farfield.nn.decoder.masks import CausalMask, HiddenAttentionError, causal_mask, parts_of
from farfield.nn.decoder.model_inputs import token_mask

IDS = torch.randint(3, WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(3))


def places(queries, keys, q_offset=0, kv_offset=0):
    return {"batch_size": 2, "q_length": queries, "kv_length": keys, "q_offset": q_offset, "kv_offset": kv_offset}


def test_the_meaning_of_a_mask_is_what_eager_attention_would_add():
    """Windows, padding, caches that slide and caches with unused memory, against transformers' own table of numbers."""
    draw = torch.Generator().manual_seed(0)

    def number(low, high):
        return int(torch.randint(low, high + 1, (), generator=draw))

    for _ in range(300):
        queries, past, dropped, unused = number(1, 9), number(0, 12), number(0, 3), number(0, 4)
        dropped = min(dropped, past)
        end = past + queries
        keys = end - dropped
        window = number(1, 14) if number(0, 1) else None
        function = causal_mask_function if window is None else sliding_window_causal_mask_function(window)
        left = torch.tensor([0, number(0, end - 1)])
        padding = torch.arange(end) >= left[:, None] if number(0, 1) else None
        how = {**places(queries, keys + unused, past, dropped), "mask_function": function, "attention_mask": padding}
        added = eager_mask(**how)[:, 0]  # 0 or the least number
        mask = causal_mask(**how)
        assert mask.shape == (2, 1, queries, keys + unused)
        meaning = mask.meaning
        assert (meaning.window, meaning.chunk, meaning.other, meaning.keys) == (window, None, "", keys)
        j = torch.arange(keys + unused)
        t = torch.arange(keys - queries, keys)[:, None] - j
        seen = (t >= 0) & (t < (window or keys))
        if meaning.padding is not None:
            real = torch.nn.functional.pad(meaning.padding, (0, unused))
            seen = seen & real[:, None, :]
        assert torch.equal((added == 0), seen.expand(added.shape))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (or_masks(causal_mask_function, sliding_window_overlay(3)), "or masks"),
        (sliding_window_overlay(3), "keys after its queries"),
        (and_masks(causal_mask_function, padding_mask_function(torch.ones(2, 9))), "padding mask function"),
        (and_masks(causal_mask_function, lambda b, h, q, k: k % 2 == 0), "lambda"),
        (functools.partial(causal_mask_function), "partial"),
        (functools.wraps(causal_mask_function)(lambda b, h, q, k: k <= q + 1), "function"),
    ],
)
def test_every_other_mask_is_refused_where_it_is_used(function, said):
    mask = causal_mask(**places(9, 9), mask_function=function)
    module, (q, k, v) = SimpleNamespace(training=False), torch.randn(3, 2, 1, 9, 4)
    with pytest.raises(HiddenAttentionError, match=said) as caught:
        attend(module, q, k, v, mask)
    assert "\n" not in str(caught.value)
    assert "attn_implementation='eager'" in str(caught.value)


def test_chunks_matter_only_past_the_first():
    chunks = chunked_causal_mask_function(8, torch.zeros(2, dtype=torch.long))
    assert causal_mask(**places(8, 8), mask_function=chunks).meaning.chunk is None
    assert causal_mask(**places(9, 9), mask_function=chunks).meaning.chunk == 8
    assert causal_mask(**places(1, 9, 8), mask_function=chunks).meaning.chunk == 8
    assert parts_of(chunks) == [("chunk", 8), ("causal", 0)]


@pytest.mark.parametrize(
    ("use", "name"),
    [
        (lambda mask: mask[:, :, :, :4], "getitem"),
        (lambda mask: mask.bool(), "bool"),
        (lambda mask: mask.to(torch.float32), "to"),
        (lambda mask: torch.zeros(2, 1, 9, 9) + mask, "add"),
        (lambda mask: torch.cat([mask, mask], -1), "cat"),
        (lambda mask: torch.nn.functional.pad(mask, (0, 1)), "pad"),
        (lambda mask: mask.all(), "all"),
        (lambda mask: torch.where(mask, 0.0, -1.0), "where"),
        (lambda mask: torch.equal(mask, mask), "equal"),
        (lambda mask: mask.tolist(), "tolist"),
        (lambda mask: mask.clone(), "clone"),
    ],
)
def test_who_computes_with_the_mask_is_refused(use, name):
    with pytest.raises(HiddenAttentionError, match=name):
        use(causal_mask(**places(9, 9)))


def test_a_mask_is_handed_on_like_one():
    padding = torch.arange(9) >= torch.tensor([[0], [2]])
    mask = causal_mask(**places(9, 9), attention_mask=padding, mask_function=sliding_window_causal_mask_function(4))
    moved = mask.to("meta", non_blocking=True)
    assert isinstance(moved, CausalMask)
    assert (moved.meaning.padding.device.type, moved.meaning.window, moved.shape) == ("meta", 4, (2, 1, 9, 9))
    assert mask.detach() is mask
    assert (mask.dim(), mask.ndim, mask.dtype, mask.size(-1), mask.requires_grad) == (4, 4, torch.bool, 9, False)
    assert mask.stride() == (0, 0, 0, 0)  # nothing of n x n is stored


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"position_bias": torch.zeros(1)}, "position_bias"),
        ({"indices": torch.zeros(1)}, "indices"),
        ({"cu_seq_lens_q": torch.tensor([0, 4, 9])}, "cu_seq_lens_q"),
        ({"output_attentions": True}, "output_attentions"),
        ({"is_causal": False}, "is_causal"),
        ({"anything": 0}, "anything"),
        ({"sliding_window": 3}, "a window of 3 tokens, and its mask none"),
        ({"attention_mask": None}, "no causal mask"),
        ({"attention_mask": torch.ones(2, 9)}, "no causal mask"),
        ({"attention_mask": causal_mask(**places(9, 8))}, "queries after its keys"),
        ({"attention_mask": causal_mask(**places(10, 10))}, "other keys"),
    ],
)
def test_every_argument_that_is_not_understood_is_refused(given, said):
    module, (q, k, v) = SimpleNamespace(training=False), torch.randn(3, 2, 1, 9, 4)
    given = {"attention_mask": causal_mask(**places(9, 9)), **given}
    with pytest.raises(HiddenAttentionError, match=said) as caught:
        attend(module, q, k, v, **given)
    assert "\n" not in str(caught.value)


def test_what_a_layer_says_twice_it_says_once():
    """A window in the mask and in the arguments; switches with the value that attention follows anyway."""
    module, (q, k, v) = SimpleNamespace(training=False), torch.randn(3, 2, 2, 9, 4)
    windowed = causal_mask(**places(9, 9), mask_function=sliding_window_causal_mask_function(4))
    given = {"position_ids": torch.arange(9)[None], "use_cache": True, "is_causal": True, "output_attentions": False}
    want, _ = reference(q, k, v, window=4)
    for more in ({}, {"sliding_window": 4}, {**given, "sliding_window": 4}):
        torch.testing.assert_close(attend(module, q, k, v, windowed, **more)[0].transpose(1, 2), want)
    plain = causal_mask(**places(9, 9))
    long = attend(module, q, k, v, plain, sliding_window=9)[0]  # a window that hides nothing
    torch.testing.assert_close(long.transpose(1, 2), reference(q, k, v)[0])


@pytest.mark.parametrize("width", [2, 7])
def test_values_may_be_narrower_or_wider_than_keys(width):
    q, k = torch.randn(2, 2, 2, 9, 4)
    v = torch.randn(2, 2, 9, width)
    out, _ = attend(SimpleNamespace(training=False), q, k, v, causal_mask(**places(9, 9)))
    seen = torch.ones(9, 9).tril().bool()
    want = (q @ k.mT / 2).masked_fill(~seen, float("-inf")).softmax(-1) @ v
    torch.testing.assert_close(out.transpose(1, 2), want)


def test_packed_texts_are_refused_and_compiled_ones_are_not_mixed_up():
    model = tiny_model("llama")
    with torch.no_grad():
        want = model(IDS, use_cache=False).logits
        model.set_attn_implementation("farfield")
        packed = torch.cat([torch.arange(18), torch.arange(LENGTH - 18)])[None].expand(2, -1)
        run = torch.compile(lambda ids, **more: model(ids, **more, use_cache=False).logits, backend="eager")
        torch.testing.assert_close(run(IDS), want, atol=1e-4, rtol=1e-4)
        for call in (lambda **more: model(IDS, **more, use_cache=False), lambda **more: run(IDS, **more)):
            with pytest.raises(ValueError, match="packed sequence"):
                call(position_ids=packed)


@pytest.mark.parametrize("kind", ["llama", "mistral"])
def test_unused_memory_of_a_static_cache_is_never_seen(kind):
    model = tiny_model(kind)
    with torch.no_grad():
        want = model(IDS, use_cache=False).logits
        model.set_attn_implementation("farfield")
        cache = StaticCache(config=model.config, max_cache_len=64)
        parts = [model(part, past_key_values=cache).logits for part in IDS.split([25, 6, *[1] * (LENGTH - 31)], 1)]
    torch.testing.assert_close(torch.cat(parts, 1), want, atol=1e-4, rtol=1e-4)


def test_a_mask_that_adds_numbers_is_no_padding():
    t = torch.arange(5)[:, None] - torch.arange(5)
    hidden = torch.zeros(1, 1, 5, 5).masked_fill(t < 0, float("-inf"))
    assert token_mask(hidden, 5, 5) is None
    assert token_mask(hidden.clamp(min=-65504), 5, 5) is None
    for wrong in (hidden.clamp(min=-9.0), hidden - 0.5, hidden.masked_fill(t == 4, -1e9)):
        with pytest.raises(ValueError, match="not causal with padding"):
            token_mask(wrong, 5, 5)
    last = hidden.clone()
    last[..., -1, :] = float("-inf")  # the last token sees nothing and nobody sees it: it alone is padding
    assert token_mask(last, 5, 5).tolist() == [[True] * 4 + [False]]
