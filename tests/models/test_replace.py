"""Another encoding in the models that people have: attention without positions plus a bias, and no more."""

import copy
import importlib
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, LlamaConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.utils import logging

from farfield import Encoding, bound
from farfield.cli import main
from farfield.data.tokenizer import byte_tokenizer
from farfield.nn import Bias, replace

logging.set_verbosity_error()
logging.disable_progress_bar()
WORDS, N, FORMULA = 97, 40, "-2*log(1 + k*t)"
BASE = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FALCON = {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": False,
          "attention_dropout": 0.1}  # fmt: skip
MODELS = {
    "gpt2": {"vocab_size": WORDS, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "llama": BASE,
    "mistral": {**BASE, "sliding_window": 8},
    "qwen2": {**BASE, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1},
    "qwen3": {**BASE, "head_dim": 16},
    "phi": BASE,
    "phi3": {**BASE, "sliding_window": 8},
    "olmo": BASE,
    "olmo2": {**BASE, "attention_dropout": 0.1},
    "gpt_neox": {name: value for name, value in BASE.items() if name != "num_key_value_heads"},
    "bloom": {"vocab_size": WORDS, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"vocab_size": WORDS, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    "falcon": {**FALCON, "multi_query": True},
    "falcon-new": {**FALCON, "new_decoder_architecture": True, "num_kv_heads": 2},
    "falcon-alibi": {**FALCON, "alibi": True, "multi_query": False, "parallel_attn": False, "bias": True},
}
IDS = torch.randint(3, WORDS, (2, N), generator=torch.Generator().manual_seed(0))


def made(name, **changes):
    """A tiny model, with weights so large that attention is far from flat."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[name.split("-")[0]](**{**MODELS[name], **changes}))
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim > 1:
                p.mul_(6)
    return model.eval()


@torch.no_grad()
def reference(name, model, bias, monkeypatch):
    """The model's own code in float64: dense attention, no rotation, no embedding of positions, the bias as a mask."""
    kind = name.split("-")[0]
    code = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    model = copy.deepcopy(model).double()
    model.set_attn_implementation("eager")
    t = torch.arange(N)[:, None] - torch.arange(N)
    dense = bias.double()[:, t.clamp(min=0)].masked_fill(t < 0, -1e30)[None]
    if hasattr(code, "apply_rotary_pos_emb"):
        monkeypatch.setattr(code, "apply_rotary_pos_emb", lambda q, k, *_, **__: (q, k))
    if kind == "gpt2":
        model.transformer.wpe.weight.data.zero_()
    if kind == "bloom":
        model.transformer.build_alibi_tensor = lambda *_, **__: dense[0].repeat(len(IDS), 1, 1)
        return model(IDS, attention_mask=torch.ones_like(IDS)).logits
    if kind == "mpt":
        model.transformer.build_mpt_alibi_tensor = lambda *_, **__: dense[0]
        if hasattr(code, "_prepare_4d_causal_attention_mask"):  # before transformers 5.2, and not in float64
            monkeypatch.setattr(code, "_prepare_4d_causal_attention_mask", lambda *_: (t < 0)[None, None])
        return model(IDS).logits
    if kind == "falcon":
        model.transformer.use_alibi = False
        if hasattr(code, "create_causal_mask"):
            monkeypatch.setattr(code, "create_causal_mask", lambda *_, **__: dense)
        else:  # before transformers 5.2
            model.transformer._update_causal_mask = lambda *_, **__: dense
        return model(IDS).logits
    return model(IDS, attention_mask=dense).logits


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_attention_has_the_bias_and_no_other_positions(name, monkeypatch, tmp_path):
    model = made(name)
    before, weights = model(IDS).logits, {key: p.clone() for key, p in model.state_dict().items()}
    with monkeypatch.context() as patch:
        want = reference(name, model, Bias(FORMULA, 4)(N), patch)
    new = replace(model, FORMULA)
    got = new(IDS).logits
    assert (got - want).abs().max() < 1e-5
    assert (got - before).abs().max() > 0.01  # the control: its own positions said something
    assert torch.equal(model(IDS).logits, before)  # the old model is as it was
    assert all(torch.equal(p, weights[key]) for key, p in new.state_dict().items())
    new.save_pretrained(tmp_path)
    again, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert type(again) is type(new)
    assert torch.equal(again.eval()(IDS).logits, got)
    start = again(IDS[:, :30], use_cache=True)
    rest = again(IDS[:, 30:], past_key_values=start.past_key_values).logits
    torch.testing.assert_close(rest, got[:, 30:], atol=1e-5, rtol=0)
    mask = torch.cat([IDS.new_zeros(2, 5), torch.ones_like(IDS)], 1)
    padded = again(torch.cat([IDS.new_zeros(2, 5), IDS], 1), attention_mask=mask).logits
    torch.testing.assert_close(padded[:, 5:], got, atol=1e-5, rtol=0)
    assert again.generate(IDS, max_new_tokens=30, do_sample=False, pad_token_id=0, eos_token_id=None).shape == (2, 70)


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_without_a_bias_one_layer_does_not_see_the_order(name):
    """With a bias of 0 the last token's answer is the same for any order of those before it; in the old model not."""
    layers = next(key for key in ("num_hidden_layers", "n_layer", "n_layers") if key in MODELS[name])
    model = made(name, **{layers: 1})
    mixed = torch.cat([IDS[:, :-1][:, torch.randperm(N - 1)], IDS[:, -1:]], 1)
    new = replace(model, "none")
    torch.testing.assert_close(new(mixed).logits[:, -1], new(IDS).logits[:, -1], atol=2e-6, rtol=0)
    assert (model(mixed).logits[:, -1] - model(IDS).logits[:, -1]).abs().max() > 1e-3
    biased = replace(model, FORMULA)
    assert (biased(mixed).logits[:, -1] - biased(IDS).logits[:, -1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_a_file_names_its_tensors_as_the_family_does(name, tmp_path):
    """So that every version of transformers that reads the family's files reads ours, too."""
    model = made(name)
    new = replace(model, FORMULA)
    model.save_pretrained(tmp_path / "old")
    new.save_pretrained(tmp_path / "new")
    old, own = (load_file(tmp_path / kind / "model.safetensors") for kind in ("old", "new"))
    assert own.keys() == {key for key in old if not key.endswith("wpe.weight")}
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "new").eval()
    again.save_pretrained(tmp_path / "again")
    assert load_file(tmp_path / "again" / "model.safetensors").keys() == own.keys()
    assert torch.equal(again(IDS).logits, new(IDS).logits)


@torch.no_grad()
def test_either_name_of_a_tensor_is_read(tmp_path):
    """GPT-NeoX's last layer is `embed_out` in transformers 5.0, and `lm_head` in later versions."""
    new = replace(made("gpt_neox"), FORMULA)
    new.save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    (last,) = (key for key in tensors if key.startswith(("embed_out", "lm_head")))
    own = next(key for key in new.state_dict() if key.startswith(("embed_out", "lm_head")))
    for written in {"embed_out.weight", own}:
        rest = {key: value for key, value in tensors.items() if key != last}
        save_file({**rest, written: tensors[last]}, tmp_path / "model.safetensors", metadata={"format": "pt"})
        again, report = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
        assert not report["missing_keys"]
        assert torch.equal(again.eval()(IDS).logits, new(IDS).logits)


@pytest.mark.parametrize("name", ["llama", "gpt2", "mpt"])
def test_what_is_learned_learns_and_is_kept(name, tmp_path):
    encoding = Encoding("-a*log(1 + p*t)", learn={"a": (0, 2), "p": "0.5:1.5 in 0.01:3"})
    new = replace(made(name), encoding, shared=False).train()
    assert new.farfield_bias.learned["a"].shape == (2, 4)
    rate = torch.optim.Adam(new.parameters(), lr=0.01)
    first = {key: p.detach().clone() for key, p in new.farfield_bias.named_parameters()}
    losses = []
    for _ in range(4):
        loss = new(IDS, labels=IDS).loss
        rate.zero_grad()
        loss.backward()
        rate.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert all(bool((p != first[key]).all()) for key, p in new.farfield_bias.named_parameters())
    new.eval().save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    assert torch.equal(again(IDS).logits, new(IDS).logits)
    back = replace(again, "alibi")  # and another in its place
    assert back.config.encoding == "alibi"
    assert not list(back.farfield_bias.parameters())


def test_a_model_in_bfloat16_stays_so():
    new = replace(made("gpt2").bfloat16(), "-k*t")
    assert new(IDS).logits.dtype == torch.bfloat16


def test_what_cannot_be_replaced_is_one_sentence(tmp_path):
    small = LlamaConfig(**BASE)
    for model, words in (
        (AutoModelForSequenceClassification.from_config(small), "LlamaForSequenceClassification cannot be replaced"),
        (AutoModelForCausalLM.from_config(CONFIG_MAPPING["gemma"](**{**BASE, "head_dim": 8})), "'gemma' cannot be"),
        (torch.nn.Linear(2, 2), "Linear cannot be replaced"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            replace(model, "-k*t")
        assert "GPT-2, Llama, Mistral, Qwen, Phi, OLMo, GPT-NeoX, BLOOM, MPT, Falcon" in str(caught.value)
    for encoding, words in (("rope", "no bias by distance"), ("-a*t", "needs a value"), ("albi", "alibi")):
        with pytest.raises(ValueError, match=words):
            replace(made("llama"), encoding)
    replace(made("llama"), "-k*t").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["model_type"] == "farfield-replaced"
    for broken in (
        None,
        {"family": "llama"},
        {**config["farfield"], "family": "t5"},
        {**config["farfield"], "shared": 1},
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, "farfield": broken}))
        with pytest.raises(ValueError, match="farfield"):
            AutoModelForCausalLM.from_pretrained(tmp_path)


def call(*words):
    try:
        main([str(word) for word in words])
    except SystemExit as end:
        return end.code
    return 0


def test_the_command_and_what_follows_it(tmp_path, capsys):
    from transformers import PreTrainedTokenizerFast

    made("llama", vocab_size=300).save_pretrained(tmp_path / "old")
    PreTrainedTokenizerFast(tokenizer_object=byte_tokenizer()).save_pretrained(tmp_path / "old")
    (tmp_path / "text.txt").write_text("all work and no play makes a dull text, " * 200)
    assert call("replace", tmp_path / "old", "--encoding", "-k*t", "--out", tmp_path / "new") == 0
    said = capsys.readouterr().out
    assert "k: ALiBi's slopes, 1/4 ... 1/256." in said
    assert "must be trained further" in said
    assert call("replace", tmp_path / "old", "--encoding", "-k*t", "--out", tmp_path / "new") == 2
    assert "exists already" in capsys.readouterr().err
    heads = ["--set", "a=1/2,1/4,max(1/8, 1/9),0", "--device", "cpu"]
    assert call("replace", tmp_path / "old", "--encoding", "-a*t", "--out", tmp_path / "own", *heads) == 0
    own = AutoModelForCausalLM.from_pretrained(tmp_path / "own").farfield_bias
    assert own(3)[:, 1].tolist() == [-0.5, -0.25, -0.125, 0]
    capsys.readouterr()
    text = ["--corpus", tmp_path / "text.txt", "--split", "train", "--quiet", "--json"]
    assert call("evaluate", tmp_path / "new", "--lengths", "16,32", *text) == 0
    assert json.loads(capsys.readouterr().out)
    assert call("receptive", tmp_path / "new", "--length", "32", "--chunks", "1", "--outputs", "0", *text) == 0
    measured = json.loads(capsys.readouterr().out)["attention"][0]
    assert measured["encoding"] == "-k*t"
    assert measured["heads"][0]["trf"] is not None
    assert call("generate", tmp_path / "new", "--prompt", "all work", "--tokens", "3", "--json") == 0
    written = json.loads(capsys.readouterr().out)
    assert written["certificate"]["holds"]
    assert call("generate", tmp_path / "new", "--prompt", "all work", "--tokens", "3", "--full", "--json") == 0
    assert json.loads(capsys.readouterr().out)["text"] == written["text"]
    assert call("inspect", tmp_path / "new", "--json") == 0
    assert "-k*t" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["llama", "gpt2", "bloom", "falcon-new"])
@torch.no_grad()
def test_its_cache_can_be_bounded(name):
    model = replace(made(name), "-k*t", parameters={"k": ["1/2", "1/3", "1/4", "1/5"]})
    ids = torch.randint(3, WORDS, (2, 320), generator=torch.Generator().manual_seed(1))
    whole = model(ids).logits
    bound(model, 1e-4)
    parts = [model(ids[:, :310]).logits]
    cache = model.bounded_cache
    parts += [model(ids[:, i : i + 1], past_key_values=cache).logits for i in range(310, 320)]
    torch.testing.assert_close(torch.cat(parts, 1), whole, atol=1e-5, rtol=0)
    assert cache.certificate().holds
    assert {row.window for row in cache.certificate().rows} == {256}
    mask = torch.cat([ids.new_zeros(2, 5), torch.ones_like(ids)], 1)
    padded = model(torch.cat([ids.new_zeros(2, 5), ids], 1), attention_mask=mask).logits[:, 5:]
    torch.testing.assert_close(padded, whole, atol=1e-5, rtol=0)
    usual = model(ids, use_cache=False).logits
    torch.testing.assert_close(usual, whole, atol=1e-6, rtol=0)  # and the usual way is still open


@pytest.mark.parametrize("name", ["bloom", "falcon", "gpt_neox"])
def test_its_attention_can_be_measured(name):
    import numpy as np

    from farfield.measure import Text, as_model, by_attention

    text = Text(np.random.default_rng(0).integers(3, WORDS, 4 * 32 + 1), {"name": "random"})
    model = as_model(replace(made(name), Encoding("-a*t", learn="a=0.1:0.5")), name)
    found = by_attention(model, text, 32, chunks=1)
    assert len(found.learned) == 4
    assert {one.verdict for one in found.learned} == {"converges"}
    assert found.trf[0][1][3] is not None
