"""The bounded cache in models: the same text as the full cache, in memory that does not grow, with a certificate."""

import json
import warnings

import pytest
import torch
from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

import farfield
from farfield.cli import main
from farfield.nn.cache.cache import LEAST
from farfield.nn.cache.certificate import CertificateError, CertificateWarning
from farfield.nn.cache.ring import rings_of
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
    assert [(ring.heads, ring.window) for ring in rings_of([10, 900, 200, 700, 5000])] == [
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
        (lambda: farfield.BoundedCache(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1))), "'gpt2' must be"),
        (lambda: farfield.bound(GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=1))), "not 'gpt2'"),
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
        (["/no/such/run", "--prompt", "x"], "There is no folder"),
        (["RUN"], "either with --prompt or with --prompt-file"),
        (["RUN", "--prompt", "x", "--tokens", "0"], "it must be at least 1"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(["generate", *arguments])
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err
