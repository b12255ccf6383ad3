"""The bounded cache in models: the same text as the full cache, in memory that does not grow, with a certificate."""

import json
import warnings

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    MptConfig,
    MptForCausalLM,
)

import farfield
from farfield.cli import main
from farfield.nn.cache.cache import LEAST
from farfield.nn.cache.certificate import CertificateError, CertificateWarning
from farfield.nn.cache.heads import grouped
from farfield.nn.cache.streaming import change_of_loss, stream_losses
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM


def decoder(encoding="alibi", heads=4, seed=0, scale=1.0, **more):
    torch.manual_seed(seed)
    config = FarfieldConfig(
        vocab_size=97, hidden_size=16 * heads, num_hidden_layers=2, num_attention_heads=heads, intermediate_size=64,
        encoding=encoding, pad_token_id=0, **more,
    )  # fmt: skip
    model = FarfieldForCausalLM(config).eval()
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.inward.weight *= scale
    return model


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


def written(model, ids, cache, **options):
    return model.generate(ids, past_key_values=cache, do_sample=False, max_new_tokens=40, **options)


# ------------------------------------------------------------------------------------------------ the same text
@pytest.mark.filterwarnings("ignore:head . of layer . needs a window")
@pytest.mark.parametrize("encoding", ["alibi", "type2", "kerple-power", "-sqrt(k*t)"])
def test_with_epsilon_1e_6_the_text_is_that_of_the_full_cache(encoding):
    model = decoder(encoding, scale=2.0)
    ids = tokens(1, 700)
    cache = farfield.BoundedCache(model, 1e-6)
    ours = written(model, ids, cache)
    assert torch.equal(ours, written(model, ids, DynamicCache()))
    assert cache.certificate().holds
    assert cache.get_seq_length() == 739
    assert encoding != "alibi" or any(r.share > 0 for r in cache.certificate().rows)  # something was dropped


def test_chunks_steps_and_one_call_agree():
    model = decoder(scale=2.0)
    ids = tokens(2, 640)
    with torch.no_grad():
        full = model(ids, use_cache=False).logits
        for plan in ([640], [1] * 20 + [300] + [1] * 20 + [300], [333, 1, 306]):
            cache = farfield.BoundedCache(model, 1e-3)
            out, a = [], 0
            for size in plan:
                out.append(model(ids[:, a : a + size], past_key_values=cache).logits)
                a += size
            assert float((torch.cat(out, 1) - full).abs().max()) < 1e-3
            assert 0 < cache.certificate().worst.share <= 1e-3


def test_left_padding_changes_nothing():
    model = decoder(scale=2.0)
    short, pad = tokens(1, 290, seed=5), 30
    ids = torch.cat([torch.cat([torch.zeros(1, pad, dtype=torch.long), short], 1), tokens(1, 320)])
    mask = (ids > 0).long()
    both = written(model, ids, farfield.BoundedCache(model, 1e-4), attention_mask=mask)
    alone = written(model, short, farfield.BoundedCache(model, 1e-4))
    assert torch.equal(both[:1, pad:], alone)
    chunked = written(model, ids, farfield.BoundedCache(model, 1e-4), attention_mask=mask, prefill_chunk_size=20)
    assert torch.equal(both, chunked)


def test_padding_after_the_tokens_is_refused():
    model = decoder()
    mask = torch.ones(1, 8, dtype=torch.long)
    mask[0, -2:] = 0
    with pytest.raises(ValueError, match="padding_side = 'left'"):
        model(tokens(1, 8), attention_mask=mask, past_key_values=farfield.BoundedCache(model))


def test_beam_search_finds_the_same():
    model = decoder(scale=2.0)
    ids = tokens(2, 330)
    found = [written(model, ids, c, num_beams=3) for c in (farfield.BoundedCache(model, 1e-6), DynamicCache())]
    assert torch.equal(*found)


def test_a_text_can_go_on():
    model = decoder(scale=2.0)
    ids = tokens(1, 400)
    cache = farfield.BoundedCache(model, 1e-6)
    first = written(model, ids, cache)
    again = torch.cat([first, tokens(1, 20, seed=9)], 1)
    assert torch.equal(written(model, again, cache), written(model, again, DynamicCache()))
    cache.reset()
    assert cache.get_seq_length() == 0
    assert torch.equal(written(model, ids, cache), first)


def test_tokens_cannot_be_taken_back():
    cache = farfield.BoundedCache(decoder())
    with pytest.raises(ValueError, match="cannot take tokens back"):
        cache.crop(-1)


def test_bfloat16():
    model = decoder(scale=2.0).to(torch.bfloat16)
    ids = tokens(1, 400)
    with torch.no_grad():
        cache = farfield.BoundedCache(model, 1e-3)
        for a in range(0, 400, 100):
            ours = model(ids[:, a : a + 99], past_key_values=cache).logits
            ours = torch.cat([ours, model(ids[:, a + 99 : a + 100], past_key_values=cache).logits], 1)
        full = model(ids, use_cache=False).logits[:, -100:]
    assert float((ours - full).float().abs().mean()) < 0.02
    assert cache.certificate().holds


# ------------------------------------------------------------------------------------------------ memory, windows
def test_memory_stays_constant():
    model = decoder("-k*t", encoding_parameters={"k": [0.5, 0.25, 0.2, 0.1]})
    cache = farfield.BoundedCache(model, 1e-2)
    sizes = []
    with torch.no_grad():
        for _ in range(6):
            for part in tokens(1, 600).split(200, 1):
                model(part, past_key_values=cache)
            sizes.append(cache.bytes())
    assert len(set(sizes)) == 1
    assert cache.get_seq_length() == 3600
    assert all(r.window == LEAST for r in cache.certificate().rows)


def test_windows_before_inference_are_those_of_the_theorem():
    cache = farfield.BoundedCache(decoder(heads=8), "0.01", logit_bound=5)
    kept = [r.window for r in cache.certificate().rows[:8]]
    assert kept == [117, 117, 117, 468, 468, 935, 1869, 3737]  # 30, 59, 117, 234, 468 in two buffers


def test_heads_share_a_buffer_if_it_costs_little():
    assert [(g.heads, g.ring.window) for g in grouped([10, 900, 200, 700, 5000])] == [
        ([4], 5000), ([1, 3], 900), ([0, 2], 200),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------ policies
def fed(policy, bound="0"):
    cache = farfield.BoundedCache(loud(), "0.02", logit_bound=bound, policy=policy)
    go_on(cache, 300)
    return cache


def loud():
    return decoder("-t/2", heads=2, scale=4.0)


@torch.no_grad()
def go_on(cache, n):
    model = loud()
    for part in tokens(1, n).split(1, 1):
        model(part, past_key_values=cache)


def test_over_epsilon_it_warns_once():
    with pytest.warns(CertificateWarning, match="more than epsilon = 0.02") as told:
        cache = fed("warn")
    assert len(told) == 1
    assert not cache.certificate().holds
    assert cache.certificate().worst.over > 0


def test_over_epsilon_it_widens():
    cache = fed("widen")
    before = farfield.BoundedCache(loud(), "0.02", logit_bound=0).certificate()
    after = cache.certificate()
    assert all(a.window > b.window for a, b in zip(after.rows, before.rows, strict=True))
    go_on(cache, 300)
    later = cache.certificate()
    # from then on it holds, but for the few tokens that ask for still more
    assert sum(r.over for r in later.rows) < 1.2 * sum(r.over for r in after.rows)
    assert not later.holds  # what was lost before is not forgotten


def test_over_epsilon_it_stops():
    with pytest.raises(CertificateError, match="may have lost a share"):
        fed("stop")
    cache = fed("stop", bound="90")  # a bound that is large enough
    assert cache.certificate().holds


def test_measured_windows_hold_without_any_bound():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = decoder(scale=2.0)
        cache = farfield.BoundedCache(model, 1e-3, policy="stop")
        with torch.no_grad():
            for part in tokens(1, 1500).split(500, 1):
                model(part, past_key_values=cache)
    assert cache.certificate().holds


def test_the_certificate_is_a_table():
    cache = fed("widen")
    table = cache.certificate()
    assert [(r.layer, r.head) for r in table.rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert table.worst.share == max(r.share for r in table.rows)
    assert "not for the network as a whole" in str(table)
    assert json.loads(json.dumps(table.json()))["tokens"] == 300


# ------------------------------------------------------------------------------------------------ BLOOM and MPT
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
        model(tokens(1, 8), past_key_values=farfield.BoundedCache(model))


# ------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: farfield.BoundedCache(decoder("rope")), "needs a bias by distance"),
        (lambda: farfield.BoundedCache(decoder("sinusoidal")), "needs a bias by distance"),
        (lambda: farfield.BoundedCache(decoder("t5")), "needs a bias by distance"),
        (lambda: farfield.BoundedCache(decoder("inverse")), "no window is enough at every length"),
        (lambda: farfield.BoundedCache(decoder(), 2), "strictly between 0 and 1"),
        (lambda: farfield.BoundedCache(decoder(), policy="hope"), "it must be one of widen, warn, stop"),
        (lambda: farfield.BoundedCache(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1))), "not 'gpt2'"),
        (lambda: farfield.bound(decoder("none")), "no window is enough"),
    ],
)
def test_what_cannot_be_certified_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_a_divergent_encoding_needs_a_context_and_is_held_to_it():
    model = decoder("inverse")
    cache = farfield.BoundedCache(model, 0.5, context=400)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CertificateWarning)
        ours = model(tokens(1, 400), past_key_values=cache).logits
        full = model(tokens(1, 400), use_cache=False).logits
        assert 0 < float((ours - full).abs().max()) < 0.1
        assert 0 < cache.certificate().worst.share <= 0.5
        with pytest.raises(ValueError, match="at most 400 tokens"):
            model(tokens(1, 1), past_key_values=cache)


def test_another_batch_is_refused():
    model = decoder()
    cache = farfield.BoundedCache(model)
    model(tokens(1, 4), past_key_values=cache)
    with pytest.raises(ValueError, match="make a new cache"):
        model(tokens(2, 4), past_key_values=cache)
    with pytest.raises(ValueError, match="has its own windows"):
        model(tokens(1, 4), past_key_values=cache, window=3)


# ------------------------------------------------------------------------------------------------ the whole network
def test_the_loss_of_a_stream_is_the_loss_of_the_text():
    model = decoder(scale=2.0)
    ids = tokens(1, 700)[0]
    whole = float(model.token_losses(ids[None]).double().mean())
    streamed = float(torch.cat([*stream_losses(model, ids, DynamicCache(), chunk=64)]).double().mean())
    assert streamed == pytest.approx(whole, rel=1e-6)
    found = change_of_loss(model, ids, 1e-3)
    assert found.full == pytest.approx(whole, rel=1e-6)
    assert abs(found.change) < 1e-4
    assert "measured on this text" in str(found)
    assert found.certificate.holds


def test_bloom_streams_too():
    model = farfield.bound(bloom(), 1e-3)
    assert abs(change_of_loss(model, tokens(1, 600)[0], 1e-3, chunk=100).change) < 1e-3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder of a tiny model, trained."""
    from farfield.training.run import train
    from farfield.training.settings import preset_settings

    folder = tmp_path_factory.mktemp("run")
    train(preset_settings("tiny", encoding="alibi", corpus="python"), folder, progress=False, log_to="none")
    return folder


def told(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    assert end.value.code in (0, None)
    return capsys.readouterr()


def test_the_command_writes_on(run, capsys):
    prompt = "def far(field):\n    return " * 30
    ours = told(capsys, "generate", run, "--prompt", prompt, "--epsilon", "1e-6", "--tokens", "20", "--json")
    full = told(capsys, "generate", run, "--prompt", prompt, "--full", "--tokens", "20", "--json")
    ours, full = json.loads(ours.out), json.loads(full.out)
    assert ours["text"] == full["text"]
    assert ours["certificate"]["holds"]
    assert "not for the network as a whole" in ours["certificate"]["scope"]
    shown = told(capsys, "generate", run, "--prompt", "x = ", "--tokens", "5")
    assert "not for the network as a whole" in " ".join(shown.err.split())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["/no/such/run", "--prompt", "x"], "there is no folder"),
        (["RUN"], "either with --prompt or with --prompt-file"),
        (["RUN", "--prompt", "x", "--tokens", "0"], "it must be at least 1"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(["generate", *arguments])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["each", "one", "groups"])
def test_heads_of_falcon_are_cut_as_falcon_cuts_them(kind):
    from transformers import FalconConfig
    from transformers.models.falcon.modeling_falcon import FalconAttention

    from farfield.nn.cache.bounded import falcon_heads

    options = {
        "each": {"multi_query": False},
        "one": {"multi_query": True},
        "groups": {"new_decoder_architecture": True, "num_kv_heads": 3},
    }[kind]
    sizes = {"hidden_size": 24, "num_attention_heads": 6, "num_hidden_layers": 1, "vocab_size": 11}
    module = FalconAttention(FalconConfig(**sizes, alibi=True, **options), 0)
    mixed = module.query_key_value(torch.randn(2, 5, 24))
    for ours, theirs in zip(falcon_heads(module, mixed), module._split_heads(mixed), strict=True):
        assert torch.equal(ours, theirs.transpose(1, 2).expand(-1, 6, -1, -1))
