"""The doors that every model of transformers opens, opened with transformers itself."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    DynamicCache,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    StaticCache,
)

from farfield.nn import (
    FarfieldConfig,
    FarfieldDecoder,
    FarfieldForCausalLM,
    FarfieldForSequenceClassification,
    add_bias,
)

TINY: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 16, "pad_token_id": 0,
}  # fmt: skip
OTHERS: dict[str, Any] = {
    "vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "pad_token_id": 0, "head_dim": 8,
}  # fmt: skip
IDS = torch.randint(1, 61, (2, 20), generator=torch.Generator().manual_seed(1))


def tiny(encoding: str = "alibi", **more: Any) -> FarfieldForCausalLM:
    torch.manual_seed(0)
    return FarfieldForCausalLM(FarfieldConfig(**TINY, encoding=encoding, dropout=0.0, **more)).eval()


@pytest.mark.parametrize("training", [False, True])
def test_the_loss_after_a_cache_is_the_loss_of_the_whole_text(training):
    model = tiny().train(training)
    logits = model(IDS).logits
    cache = DynamicCache()
    model(IDS[:, :8], past_key_values=cache)
    torch.testing.assert_close(model(IDS[:, 8:12], past_key_values=cache).logits, logits[:, 8:12])
    rest = model(IDS[:, 12:], past_key_values=cache, labels=IDS[:, 12:])
    torch.testing.assert_close(rest.loss, cross_entropy(logits[:, 12:-1].flatten(0, 1), IDS[:, 13:].flatten()))
    assert rest.logits is None  # which is what saves the memory


def test_a_cache_with_gradient_checkpointing_is_filled_once():
    model = tiny().train()
    getattr(model, "activation_checkpointing_enable", model.gradient_checkpointing_enable)()  # before 5.23: the latter
    cache = DynamicCache()
    model(IDS[:, :8], past_key_values=cache).logits.sum().backward()
    assert cache.get_seq_length() == 8


def test_labels_that_name_no_word_are_one_sentence():
    for bad in (61, -7):
        with pytest.raises(ValueError, match=f"a label is {bad}; it must be from 0 to 60, or -100"):
            tiny()(IDS, labels=torch.full_like(IDS, bad))


@pytest.mark.parametrize("encoding", ["alibi", "rope", "sinusoidal"])
def test_packed_texts_are_what_they_are_alone(encoding):
    model = tiny(encoding)
    positions = torch.cat([torch.arange(7), torch.arange(12), torch.arange(1)])[None].expand(2, -1)
    alone = [model(IDS[:, a:b]).logits for a, b in ((0, 7), (7, 19), (19, 20))]
    torch.testing.assert_close(model(IDS, position_ids=positions).logits, torch.cat(alone, 1))
    bounds = torch.tensor([0, 7, 19, 20], dtype=torch.int32)
    torch.testing.assert_close(model(IDS[:1], cu_seq_lens_q=bounds).logits, torch.cat(alone, 1)[:1])
    with pytest.raises(TypeError, match="'cu_seq_lens'"):
        model(IDS[:1], cu_seq_lens=bounds)
    plain = torch.arange(20)[None].expand(2, -1)
    torch.testing.assert_close(model(IDS, position_ids=plain).logits, model(IDS).logits)
    with pytest.raises(ValueError, match="begin again at 0"):
        model(IDS, position_ids=plain * 2)


def test_what_trainers_and_pipelines_hand_over_is_taken():
    model = tiny()
    whole = model(IDS, labels=IDS)
    part = model(IDS, labels=IDS, num_items_in_batch=76, cache_position=torch.arange(20), token_type_ids=0 * IDS)
    torch.testing.assert_close(part.loss, whole.loss * 38 / 76)
    out = model(IDS, output_attentions=True, output_hidden_states=True)
    assert len(out.attentions) == 2
    assert len(out.hidden_states) == 3
    torch.testing.assert_close(out.attentions[0].sum(-1), torch.ones(2, 4, 20))
    assert not bool(out.attentions[1].triu(1).any())
    with pytest.raises(ValueError, match="leave output_attentions out for long texts"):
        model(IDS[:1].repeat(1, 500), output_attentions=True)


def test_masks_of_four_dimensions_are_causal_with_padding_or_refused():
    model = tiny()
    padding = torch.arange(20) >= torch.tensor([0, 6])[:, None]
    causal = torch.ones(20, 20, dtype=torch.bool).tril()
    four = (causal & padding[:, None])[:, None]
    want = model(IDS, attention_mask=padding.long()).logits
    for mask in (four, torch.zeros(four.shape).masked_fill(~four, torch.finfo(torch.float32).min)):
        torch.testing.assert_close(model(IDS, attention_mask=mask).logits[padding], want[padding])
    with pytest.raises(ValueError, match="is not causal with padding"):
        model(IDS, attention_mask=torch.ones_like(four))


@pytest.mark.parametrize("encoding", ["alibi", "kerple-log", "rope"])
def test_static_caches_generate_the_same(encoding):
    model = tiny(encoding)
    want = model.generate(IDS, max_new_tokens=5, do_sample=False)
    cache = StaticCache(config=model.config, max_cache_len=40)
    assert torch.equal(model.generate(IDS, max_new_tokens=5, do_sample=False, past_key_values=cache), want)


def test_a_sliding_cache_is_a_window():
    from transformers.cache_utils import DynamicSlidingWindowLayer

    model = tiny()
    cache = DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(sliding_window=6) for _ in range(2)]
    parts = [model(IDS[:, a:b], past_key_values=cache).logits for a, b in ((0, 9), (9, 10), (10, 20))]
    torch.testing.assert_close(torch.cat(parts, 1), model(IDS, window=6).logits)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="transformers moves offloaded caches by CUDA's streams")
@pytest.mark.parametrize("name", ["offloaded", "offloaded_static"])
def test_offloaded_caches_generate_the_same(name):
    model = tiny().cuda()
    want = model.generate(IDS.cuda(), max_new_tokens=5, do_sample=False)
    assert torch.equal(model.generate(IDS.cuda(), max_new_tokens=5, do_sample=False, cache_implementation=name), want)


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_cache_generates():
    pytest.importorskip("optimum.quanto")
    model = tiny()
    options = {"cache_implementation": "quantized", "cache_config": {"backend": "quanto", "nbits": 4}}
    assert model.generate(IDS, max_new_tokens=5, do_sample=False, **options).shape == (2, 25)


def test_weights_that_a_checkpoint_lacks_are_drawn(tmp_path: Path):
    tiny().save_pretrained(tmp_path)
    config = FarfieldConfig.from_pretrained(tmp_path)
    for encoding in ("kerple-log", "t5"):
        config.encoding = encoding
        loaded = AutoModelForCausalLM.from_pretrained(tmp_path, config=config)
        for p in loaded.position.parameters():
            assert float(p.detach().abs().max()) <= 2
    with torch.device("meta"):
        model = FarfieldForCausalLM(FarfieldConfig(**TINY, encoding="kerple-log"))
    model.to_empty(device="cpu").init_weights()
    for name, p in model.named_parameters():
        assert float(p.detach().abs().max()) <= 2, name


def test_auto_classes_and_a_classifier(tmp_path: Path):
    model = tiny()
    model.save_pretrained(tmp_path)
    base = AutoModel.from_pretrained(tmp_path)
    assert type(base) is FarfieldDecoder
    torch.testing.assert_close(base(IDS).last_hidden_state, model.hidden_states(IDS))
    judge = AutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=3).eval()
    assert type(judge) is FarfieldForSequenceClassification
    out = judge(IDS, labels=torch.tensor([0, 2]))
    torch.testing.assert_close(out.loss, cross_entropy(out.logits, torch.tensor([0, 2])))
    right = torch.cat([IDS[:, :9], 0 * IDS[:, 9:]], 1)  # padding on the right
    torch.testing.assert_close(judge(right, attention_mask=(right > 0).long()).logits, judge(IDS[:, :9]).logits)
    torch.testing.assert_close(judge(right).logits, judge(IDS[:, :9]).logits)


def test_continuous_batching_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="continuous batching"):
        tiny().generate_batch([[1, 2]])


# --- our attention in other models ------------------------------------------------------------------------------------


def test_llama_with_our_attention_is_llama_and_takes_a_bias_a_window_and_a_sink():
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**OTHERS)).eval()
    mask = (torch.arange(20) >= torch.tensor([0, 6])[:, None]).long()
    plain = model(IDS, attention_mask=mask).logits
    model.set_attn_implementation("farfield")
    torch.testing.assert_close(model(IDS, attention_mask=mask).logits[mask.bool()], plain[mask.bool()])
    want = model.generate(IDS, max_new_tokens=4, do_sample=False)
    whole = model(want[:, :-1]).logits
    assert torch.equal(want[:, 20:], whole[:, 19:].argmax(-1))
    for options in ({"encoding": "alibi"}, {"encoding": "none", "window": 3}, {"encoding": "none", "sink": True}):
        changed = add_bias(model, **options)(IDS).logits
        assert not torch.allclose(changed[:, 5:], plain[:, 5:], atol=1e-4)
    assert sum("sink" in name for name, _ in model.named_parameters()) == 2


def test_gpt_oss_keeps_its_sinks_and_windows():
    torch.manual_seed(0)
    config = GptOssConfig(**OTHERS, sliding_window=5, num_local_experts=2, num_experts_per_tok=1)
    model = GptOssForCausalLM(config).eval()
    for layer in model.model.layers:
        torch.nn.init.normal_(layer.self_attn.sinks)
    model.set_attn_implementation("eager")
    want = model(IDS).logits
    model.set_attn_implementation("farfield")
    torch.testing.assert_close(model(IDS).logits, want, atol=1e-5, rtol=1e-4)
