"""A model in bfloat16 or float16: what its encoding learned stays float32, loaded, converted or trained."""

import pytest
import torch
from safetensors import safe_open
from tiny_models import tiny_model
from transformers import AutoModelForCausalLM

from farfield.nn import FarfieldConfig, FarfieldForCausalLM, add_bias, replace

IDS = torch.randint(3, 60, (2, 20), generator=torch.Generator().manual_seed(0))


def ours(encoding):
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = FarfieldConfig(**sizes, intermediate_size=48, max_position_embeddings=16, encoding=encoding, dropout=0.0)
    model = FarfieldForCausalLM(config).eval()
    with torch.no_grad():
        for p in model.position.parameters():
            p.uniform_(0.1, 1.7)
    return model


def theirs(_):
    return replace(tiny_model("llama"), "-a*t**p", parameters={"a": {"start": (0.1, 1)}, "p": {"start": (0.3, 1)}})


MAKERS = [(ours, "kerple-power"), (ours, "t5"), (theirs, "")]


def learned(model):
    parts = ("bias.learned", "bias.table")
    return {name: p.detach().clone() for name, p in model.named_parameters() if any(part in name for part in parts)}


def same(model, before):
    now = learned(model)
    assert now.keys() == before.keys()
    assert now
    for name, p in now.items():
        assert p.dtype == torch.float32, name
        assert torch.equal(p, before[name]), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("make", "encoding"), MAKERS)
def test_loading_in_a_narrow_type_rounds_no_parameter_of_the_encoding(make, encoding, dtype, tmp_path):
    model = make(encoding)
    before = learned(model)
    model.save_pretrained(tmp_path / "wide")
    narrow = AutoModelForCausalLM.from_pretrained(tmp_path / "wide", dtype=dtype).eval()
    assert narrow.dtype == dtype
    assert narrow.get_input_embeddings().weight.dtype == dtype
    same(narrow, before)
    narrow.save_pretrained(tmp_path / "narrow")  # and a file of the narrow model holds them as they are
    with safe_open(tmp_path / "narrow" / "model.safetensors", "pt") as file:
        for name, p in before.items():
            assert torch.equal(file.get_tensor(name), p)
    for kind in ("auto", dtype, torch.float32):
        again = AutoModelForCausalLM.from_pretrained(tmp_path / "narrow", dtype=kind).eval()
        assert again.dtype == (dtype if kind == "auto" else kind)
        same(again, before)
    assert torch.equal(again.to(dtype)(IDS).logits, narrow(IDS).logits)


@pytest.mark.parametrize("convert", ["half", "bfloat16"])
@pytest.mark.parametrize(("make", "encoding"), MAKERS)
def test_converting_and_training_round_none_either(make, encoding, convert):
    model = make(encoding)
    before = learned(model)
    same(getattr(model, convert)(), before)
    model.load_state_dict(model.state_dict())
    same(model, before)
    model.float().train()
    rate = torch.optim.SGD(model.parameters(), lr=0.01)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(IDS, labels=IDS).loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if name in before}
    assert all(g is not None and g.dtype == torch.float32 for g in grads.values())
    rate.step()
    after = learned(model)
    for name, p in before.items():
        torch.testing.assert_close(after[name], p - 0.01 * grads[name], rtol=1e-6, atol=0.0)


def test_a_sink_that_was_added_stays_float32():
    model = add_bias(tiny_model("llama"), "alibi", sink=True)
    model.to(torch.bfloat16)
    assert model.model.embed_tokens.weight.dtype == torch.bfloat16
    layers = [layer.self_attn.farfield_bias for layer in model.model.layers]
    assert [layer.sink.dtype for layer in layers] == [torch.float32] * 2
    assert model(IDS).logits.dtype == torch.bfloat16


def test_nothing_is_added_to_a_model_whose_attention_stays_its_own():
    for kind in ("bloom", "falcon"):
        model = tiny_model(kind)
        before = model(IDS).logits
        with pytest.raises(ValueError, match="does not hand the attention"):
            add_bias(model, "alibi")
        assert torch.equal(model(IDS).logits, before)
