"""Parameters of any formula are learned: where heads start, that they learn, and the verdict on what they learned."""

import pytest
import torch
from transformers import AutoModelForCausalLM

from farfield import Encoding
from farfield.nn import Bias, FarfieldConfig, FarfieldForCausalLM
from farfield.nn.learned_heads import exact, learned_heads, verdict_on

LEARNS = Encoding("-a*log(1 + p*t)", learn={"a": (0, 2), "p": "0.5:1.5 in 0.01:3"})
SIZES = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}


def test_heads_start_spread_over_the_range():
    bias = Bias(LEARNS, 8, layers=3)
    for name, (low, high) in {"a": (0, 2), "p": (0.5, 1.5)}.items():
        part = ((bias.learned[name] - low) / (high - low) * 8).floor().long()
        assert part.sort(-1).values.tolist() == [list(range(8))] * 3  # one head in each part, in every layer
    order = [bias.learned[name][0].argsort().tolist() for name in ("a", "p")]
    assert any(Bias(LEARNS, 8).learned["a"][0].argsort().tolist() != order[0] for _ in range(5))
    draw = [torch.Generator().manual_seed(3) for _ in range(2)]
    for generator in draw:
        bias.reset_parameters(generator)
        kept = bias.learned["a"].clone() if generator is draw[0] else kept
    assert torch.equal(kept, bias.learned["a"])


def test_slopes_that_are_learned_start_at_those_of_alibi():
    first = {"start": [1 / 256, 1 / 4], "least": 0.0, "values": [1 / 4, 1 / 16, 1 / 64, 1 / 256]}
    bias = Bias("-k*t", 4, parameters={"k": first}, layers=2)
    assert torch.equal(bias(30, layer=1), Bias("alibi", 4)(30))
    bias(30).sum().backward()
    assert bool((bias.learned["k"].grad[0] != 0).all())
    with pytest.raises(ValueError, match="4 values for 3 heads"):
        Bias("-k*t", 3, parameters={"k": first})


def test_a_formula_without_a_value_somewhere_in_the_range_is_refused():
    with pytest.raises(ValueError, match="has no value at t = "):
        Bias(Encoding("-a*log(1 + p*t)", learn="a=0:1, p=-1:1"), 4)
    with pytest.raises(ValueError, match="takes no parameters"):
        FarfieldForCausalLM(FarfieldConfig(**SIZES, encoding="t5", encoding_parameters={"near": 1}))


def test_a_parameter_without_bounds_may_go_anywhere():
    bias = Bias(Encoding("-a*t", learn="a=0:1 in -inf:inf"), 2)
    with torch.no_grad():
        bias.learned["a"].fill_(-3)
    assert bias(2)[0, 1].item() == 3


@pytest.mark.parametrize("shared", [True, False])
def test_a_model_keeps_what_it_learned(tmp_path, shared):
    torch.manual_seed(0)
    model = FarfieldForCausalLM(FarfieldConfig(**SIZES, encoding=LEARNS, shared_bias=shared, dropout=0.0))
    ids = torch.randint(61, (2, 20))
    rate = torch.optim.Adam(model.parameters(), lr=0.1)
    before = {name: p.detach().clone() for name, p in model.position.named_parameters()}
    assert {tuple(p.shape) for p in before.values()} == {(1 if shared else 2, 4)}
    for _ in range(3):
        rate.zero_grad()
        model(ids, labels=ids).loss.backward()
        rate.step()
    model.eval()
    want = model(ids).logits
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert torch.equal(again(ids).logits, want)
    for name, p in again.position.named_parameters():
        assert bool((p != before[name]).all())
    assert again.position.bias.rules == model.position.bias.rules
    heads = learned_heads(again.position.bias)
    assert len(heads) == 4 * (1 if shared else 2)
    for one in heads:
        assert one.verdict == ("converges" if one.values["a"] > 1 and one.values["p"] > 0 else "diverges")
        assert (one.layer is None) == shared


def test_gradient_checkpointing_changes_no_gradient():
    torch.manual_seed(0)
    model = FarfieldForCausalLM(FarfieldConfig(**SIZES, encoding=LEARNS, shared_bias=False, dropout=0.0)).train()
    ids, found = torch.randint(61, (2, 20)), []
    for state in ("disable", "enable"):  # transformers before 5.23 has only the second name
        getattr(model, f"activation_checkpointing_{state}", getattr(model, f"gradient_checkpointing_{state}"))()
        model.zero_grad()
        model(ids, labels=ids).loss.backward()
        found.append({name: p.grad.clone() for name, p in model.named_parameters()})
    for name, grad in found[0].items():
        torch.testing.assert_close(found[1][name], grad)
    assert bool((found[0]["position.bias.learned.a"] != 0).all())


def test_a_value_goes_to_the_verdict_exactly():
    formula = Bias("-a*log(1 + t)", 1, parameters={"a": 1}).formula
    just_above, one = 1 + 2**-23, 1.0  # float32's neighbours on both sides of the border
    assert verdict_on(formula, (("a", just_above),)).verdict == "converges"
    assert verdict_on(formula, (("a", one),)).verdict == "diverges"
    assert eval(exact(just_above)) == just_above
    assert verdict_on(formula, (("a", float("nan")),)) is None
