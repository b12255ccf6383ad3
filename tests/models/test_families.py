"""Every family that people run: what is measured equals what full attention matrices give, or ends in one sentence."""

import importlib.util
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, T5Config, T5ForConditionalGeneration

import farfield
from farfield.measure import Text, as_model, by_attention, by_gradient, evaluate, truncation
from farfield.measure.transformers_models import HiddenAttentionError

_spec = importlib.util.spec_from_file_location("tiny_families", Path(__file__).parent / "families.py")
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
FAMILIES, WORDS = _module.FAMILIES, _module.WORDS
tiny = cache(_module.tiny)
N = 48
TEXT = Text(np.random.default_rng(0).integers(3, WORDS, 4 * N + 1), {"name": "random"})
WINDOWED = ("mistral", "gemma2", "gemma3", "gpt-oss", "phi3", "llama4", "cohere2", "exaone4")
NOT_BY_MASK = ("falcon-rotary", "falcon-new", "llama4", "opt")  # OPT counts its positions by the mask
BIASED = ("bloom", "mpt", "falcon-alibi")


def model_of(name):
    return as_model(tiny(name), name, training_length=N)


def first_chunk():
    return torch.from_numpy(TEXT.chunks(N, 1)[0][:-1])[None]


@cache
def matrices(name):
    """The attention weights of every layer, (H, N, N), from the model's own code, in float64."""
    if name == "falcon-alibi":
        return falcon_matrices()
    with torch.no_grad():
        weights = tiny(name, "eager")(input_ids=first_chunk(), output_attentions=True).attentions
    return [layer[0].double() for layer in weights]


def falcon_matrices():
    """By hand: with eager attention transformers adds Falcon's bias twice, once in the mask; with its default once."""
    network, result = tiny("falcon-alibi"), []

    def seen(module, arguments, given):
        mixed = module.query_key_value(arguments[0] if arguments else given["hidden_states"])
        q, k, _ = (x.transpose(1, 2)[0].double() for x in module._split_heads(mixed))
        slopes = torch.tensor([2.0 ** (-2 * h) for h in range(1, 5)], dtype=torch.float64)
        distance = torch.arange(N)[:, None] - torch.arange(N)
        logits = (q @ k.mT - slopes[:, None, None] * distance) / 8**0.5
        result.append(logits.masked_fill(distance < 0, float("-inf")).softmax(-1))

    hooks = [block.self_attention.register_forward_pre_hook(seen, with_kwargs=True) for block in network.transformer.h]
    with torch.no_grad():
        network(input_ids=first_chunk())
    for hook in hooks:
        hook.remove()
    return result


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_is_that_of_full_matrices(name):
    measured = by_attention(model_of(name), TEXT, N, chunks=1, burn_in=0, epsilons=("0.1",))
    for layer, weights in enumerate(matrices(name)):
        heads = weights.shape[0]
        mass = torch.stack([torch.stack([weights[h].diagonal(-t).sum() for t in range(N)]) for h in range(heads)]) / N
        assert np.abs(mass.numpy() - measured.mass[layer]).max() < 1e-5
        for h in range(heads):
            for i in range(0, N, 7):  # the field of a row: the keys beyond it hold at most a tenth of the whole row
                row = weights[h, i, : i + 1].flip(0)
                lost = row.sum() - row.cumsum(0)
                field = int((lost >= 0.1).sum()) + 1
                assert measured.counts[0, layer, h, field] > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_are_those_of_the_model_itself(name):
    measured = by_gradient(model_of(name), TEXT, N, outputs=1)
    ids = torch.from_numpy(TEXT.chunks(N, 1)[0])
    network = tiny(name)
    x = network.get_input_embeddings()(ids[None, :-1]).detach().requires_grad_(True)
    with torch.enable_grad():
        logits = network(inputs_embeds=x, use_cache=False).logits[0, -1]
        (gradient,) = torch.autograd.grad(torch.nn.functional.cross_entropy(logits, ids[-1]), x)
    norms = gradient[0].double().norm(dim=-1).flip(0)
    assert np.abs((norms / norms.sum()).numpy() - measured.shares[0]).max() < 1e-5


@pytest.mark.parametrize("name", FAMILIES)
def test_truncation_keeps_its_identity_and_bounds(name):
    result = truncation(model_of(name), TEXT, N, windows=[4, 20], chunks=1)
    assert result.violations() < 1e-5
    for bound in ("paper", "sharper", "certificate"):
        assert (result.largest["delta"] <= result.largest[bound] * (1 + 1e-5) + 1e-6).all(), bound
    lost = np.zeros_like(result.largest["lost"])
    for layer, weights in enumerate(matrices(name)):
        for w, j in enumerate((4, 20)):
            t = torch.arange(N)[:, None] - torch.arange(N)
            lost[layer, :, w] = weights.masked_fill(t < j, 0.0).sum(-1)[:, max(j, N // 2) :].amax(-1).numpy()
    assert np.abs(lost - result.largest["lost"]).max() < 1e-5


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in (*BIASED, *NOT_BY_MASK)])
def test_a_window_is_that_of_a_mask(name):
    """The model's own code with a mask of four dimensions is the oracle."""
    network, ids = tiny(name, "eager"), first_chunk()
    t = torch.arange(N)[:, None] - torch.arange(N)
    mask = torch.zeros(1, 1, N, N).masked_fill((t < 0) | (t >= 8), torch.finfo(torch.float32).min)
    with torch.no_grad():
        wanted = network(input_ids=ids, attention_mask=mask, use_cache=False).logits
        model = model_of(name)
        got = model.logits(model.states(ids, 8))
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()


@pytest.mark.parametrize("name", FAMILIES)
def test_evaluation_gives_the_losses_of_the_model(name, tmp_path):
    result = evaluate(model_of(name), TEXT, [N], window=8, protocols=("non-overlapping",), out=tmp_path)
    chunks = TEXT.chunks(N, 4)
    losses = []
    for ids in chunks:
        with torch.no_grad():
            logits = tiny(name)(input_ids=torch.from_numpy(ids[:-1])[None]).logits[0].double()
        losses.append(torch.nn.functional.cross_entropy(logits, torch.from_numpy(ids[1:]), reduction="none"))
    wanted = float(torch.cat(losses).mean().exp())
    assert result.of("non-overlapping")[0].perplexity == pytest.approx(wanted, rel=1e-5)
    windowed = result.of("windowed")[0]
    assert 0 <= windowed.extra["lost_mass"] <= windowed.extra["certified_lost_mass"] * (1 + 1e-6) + 1e-6


def test_mpt_goes_on_beyond_its_table():
    """An MPT with a longer table and the same weights is the oracle."""
    short = tiny("mpt")
    config = AutoConfig.for_model("mpt", **{**FAMILIES["mpt"][1], "max_seq_len": 256})
    long = AutoModelForCausalLM.from_config(config).eval()
    long.load_state_dict(short.state_dict())
    ids = torch.from_numpy(TEXT.ids.reshape(-1)[:150])[None]
    model = as_model(short, "mpt")
    with torch.no_grad():
        wanted = long.base_model(input_ids=ids).last_hidden_state
        assert (model.states(ids) - wanted).abs().max() < 1e-4
    got = by_gradient(model, TEXT, 96, outputs=1).shares
    assert np.abs(got - by_gradient(as_model(long, "long"), TEXT, 96, outputs=1).shares).max() < 1e-5
    assert by_attention(model, TEXT, 96, chunks=1).mass.sum() == pytest.approx(8, rel=1e-5)
    assert len(evaluate(model, TEXT, [64, 96, 192], protocols=("non-overlapping",)).rows) == 3


def test_falcon_beyond_256_tokens_is_followed_to_the_bit():
    """Falcon rounds its bias to bfloat16 by the position of the key, which shows from the 257th on."""
    model = model_of("falcon-alibi")
    ids = torch.from_numpy(np.random.default_rng(3).integers(3, WORDS, 600))[None]
    seen = []
    with torch.no_grad():
        own = model.states(ids)
        with model.watching(lambda layer, inputs: seen.append(inputs.key_bias)):
            ours = model.states(ids)
    assert all(x is not None and float(x.abs().max()) > 0 for x in seen)
    assert (own - ours).abs().max() < 1e-4 * own.abs().max()


def test_1x_is_the_length_before_yarn():
    model = as_model(tiny("llama-yarn"), "yarn")
    assert model.training_length == 64
    assert "original training length of 64" in model.stretched
    result = evaluate(model, TEXT, ["1x"], protocols=("non-overlapping",))
    assert result.training_length == 64
    assert model.stretched in result.notes


@pytest.mark.parametrize("name", WINDOWED)
def test_a_model_with_windows_keeps_no_more_than_these_and_loses_nothing(name):
    network = _module.tiny(name)  # its own copy: bound changes it
    ids = torch.from_numpy(TEXT.ids.reshape(-1)[:60])[None]
    with torch.no_grad():
        wanted = network(input_ids=ids, use_cache=False).logits
    farfield.bound(network, 1e-2)
    with torch.no_grad():
        parts = [network(input_ids=ids[:, :40], use_cache=True)]
        cache = network.bounded_cache
        for i in range(40, 60):
            parts.append(network(input_ids=ids[:, i : i + 1], past_key_values=cache, use_cache=True))
    got = torch.cat([part.logits for part in parts], 1)
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()
    certificate = cache.certificate()
    assert certificate.holds
    assert certificate.worst.share == 0
    full = DynamicCache()
    with torch.no_grad():
        network(input_ids=ids, past_key_values=full, use_cache=True)
    whole = sum(x.numel() * x.element_size() for layer in full.layers for x in (layer.keys, layer.values))
    assert cache.bytes() < 0.75 * whole
    with pytest.raises(ValueError, match="does not apply"):
        farfield.bound(network, 1e-2, logit_bound=3)


def test_falcon_with_alibi_takes_a_bounded_cache():
    network = _module.tiny("falcon-alibi")
    ids = torch.from_numpy(TEXT.ids.reshape(-1)[:64])[None]
    with torch.no_grad():
        wanted = network(input_ids=ids, use_cache=False).logits
    farfield.bound(network, "1e-6")
    with torch.no_grad():
        got = network(input_ids=ids).logits
    assert (got - wanted).abs().max() < 1e-4 * wanted.abs().max()
    assert network.bounded_cache.certificate().holds
    out = network.generate(ids, max_new_tokens=400, do_sample=False)
    certificate = network.bounded_cache.certificate()
    assert out.shape[1] == 464
    assert certificate.holds
    assert min(row.window for row in certificate.rows) < 464


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in (*WINDOWED, *BIASED)])
def test_what_cannot_be_bounded_ends_in_one_sentence(name):
    with pytest.raises(ValueError, match="bounded cache knows") as caught:
        farfield.bound(tiny(name), 1e-2)
    assert "\n" not in str(caught.value)


def test_an_encoder_decoder_ends_in_one_sentence(tmp_path):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    network = T5ForConditionalGeneration(T5Config(vocab_size=WORDS, **sizes))
    with pytest.raises(ValueError, match="encoder-decoder"):
        as_model(network, "t5")
    network.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r".") as caught:
        farfield.measure.load_model(str(tmp_path))
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="bounded cache"):
        farfield.bound(network)


def test_attention_that_is_not_what_it_seems_is_refused():
    """A family whose attention does something that ours does not know is found out before it is measured."""
    network = _module.tiny("llama")
    for layer in network.model.layers:
        own = layer.self_attn.o_proj.forward
        layer.self_attn.o_proj.forward = lambda x, own=own, a=layer.self_attn: (
            own(x) * (2.0 if a.config._attn_implementation == "farfield-measured" else 1.0)
        )
    with pytest.raises(HiddenAttentionError, match="cannot be followed"):
        by_attention(as_model(network, "odd", training_length=N), TEXT, N, chunks=1)


@pytest.mark.parametrize("name", FAMILIES)
def test_windows_of_a_saved_model(name, tmp_path, capsys):
    from farfield.cli import main

    tiny(name).config.save_pretrained(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["inspect", str(tmp_path), "--json", "--logit-bound", "2"])
    assert end.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert told["known"]
    windows = [layer["window"] for layer in told["layers"]]
    assert (16 in windows) == (name in WINDOWED)
    assert all(bool(layer["certified_windows"]) == (name in BIASED) for layer in told["layers"])
