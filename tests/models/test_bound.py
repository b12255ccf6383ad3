"""BLOOM, MPT and Falcon taken apart: what they do with a bounded cache is what their own code does."""

import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM, DynamicCache, MptConfig, MptForCausalLM

import farfield
from farfield.nn import change_of_loss


def bloom(heads=4):
    torch.manual_seed(1)
    config = BloomConfig(
        vocab_size=97, hidden_size=8 * heads, n_layer=2, n_head=heads, bos_token_id=1, eos_token_id=None, pad_token_id=0
    )
    return strong(BloomForCausalLM(config).eval())


def mpt(heads=4):
    torch.manual_seed(1)
    config = MptConfig(
        vocab_size=97,
        d_model=8 * heads,
        n_layers=2,
        n_heads=heads,
        max_seq_len=48,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    return strong(MptForCausalLM(config).eval())


def strong(model):
    """Weights large enough that attention matters to the choice of a word."""
    with torch.no_grad():
        for p in model.parameters():
            p *= 3
    return model


def tokens(batch, n, seed=3):
    return torch.randint(1, 97, (batch, n), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("make", [bloom, mpt])
@pytest.mark.parametrize("heads", [4, 6])
def test_bloom_and_mpt_write_the_same(make, heads):
    model = make(heads)
    ids = tokens(2, 24)
    ids[0, :5] = 0
    options = {"attention_mask": (ids > 0).long(), "max_new_tokens": 20, "do_sample": False}
    plain = model.generate(ids, use_cache=True, **options)
    names = list(model.state_dict())
    assert farfield.bound(model, 1e-6) is model
    assert torch.equal(model.generate(ids, **options), plain)
    assert model.bounded_cache.certificate().tokens == 43
    assert torch.equal(
        model.generate(ids, num_beams=2, **options), model.generate(ids, num_beams=2, use_cache=False, **options)
    )
    assert torch.equal(model.generate(ids, past_key_values=DynamicCache(), **options), plain)  # others still can
    assert list(model.state_dict()) == names


def test_bloom_drops_keys_and_says_so():
    model = farfield.bound(bloom(), 1e-3)
    ids = tokens(1, 700)
    with torch.no_grad():
        full = model(ids, use_cache=False).logits
        cache = farfield.BoundedCache(model, 1e-3)
        ours = torch.cat([model(part, past_key_values=cache).logits for part in ids.split([600, 1, 99], 1)], 1)
    assert 0 < cache.certificate().worst.share <= 1e-3
    assert float((ours - full).abs().max()) < 1e-3 * float(full.abs().max())


def test_mpt_goes_on_past_its_longest_text():
    model = mpt()
    ids = tokens(1, 100)  # more than max_seq_len = 48
    with pytest.raises(RuntimeError):
        model(ids, use_cache=True)
    farfield.bound(model, 1e-4)
    longer = model.generate(ids, max_new_tokens=60, do_sample=False, prefill_chunk_size=32)
    assert longer.shape == (1, 160)
    with torch.no_grad():
        assert model(longer).logits.shape == (1, 160, 97)
    assert model.bounded_cache.get_seq_length() == 160
    farfield.bound(model, 1e-2)  # again, with another epsilon
    with torch.no_grad():
        model(longer)
    assert model.bounded_cache.limit == 1e-2
    wide = mpt()
    wide.config.max_seq_len = 512  # what transformers writes if its table is longer
    assert torch.equal(longer, wide.generate(ids, max_new_tokens=60, do_sample=False, use_cache=True))


def test_bloom_without_bound_says_what_to_do():
    model = bloom()
    with pytest.raises(ValueError, match=r"farfield\.bound"):
        farfield.BoundedCache(model)
    cache = farfield.BoundedCache(farfield.bound(bloom()))
    with pytest.raises(ValueError, match=r"farfield\.bound"):  # made for another model
        model(tokens(1, 8), past_key_values=cache)


def test_bloom_streams_too():
    model = farfield.bound(bloom(), 1e-3)
    assert abs(change_of_loss(model, tokens(1, 600)[0], 1e-3, chunk=100).change) < 1e-3


@pytest.mark.parametrize("kind", ["each", "one", "groups"])
def test_heads_of_falcon_are_cut_as_falcon_cuts_them(kind):
    from transformers import FalconConfig
    from transformers.models.falcon.modeling_falcon import FalconAttention

    from farfield.models.networks.adapters import adapt

    options = {
        "each": {"multi_query": False},
        "one": {"multi_query": True},
        "groups": {"new_decoder_architecture": True, "num_kv_heads": 3},
    }[kind]
    sizes = {"hidden_size": 24, "num_attention_heads": 6, "num_hidden_layers": 1, "vocab_size": 11}
    module = FalconAttention(FalconConfig(**sizes, alibi=True, **options), 0)
    mixed = module.query_key_value(torch.randn(2, 5, 24))
    theirs = [x.transpose(1, 2).expand(-1, 6, -1, -1) for x in module._split_heads(mixed)]
    assert adapt(module) == [module]
    for mine, own in zip(module.heads(mixed), theirs, strict=True):
        assert torch.equal(mine.repeat_interleave(6 // mine.shape[1], 1), own)
