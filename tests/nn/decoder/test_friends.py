"""PEFT and torch's compilers with our model: with the library itself, left out where it is missing."""

from typing import Any

import pytest
import torch

from farfield.nn import FarfieldConfig, FarfieldForCausalLM

IDS = torch.randint(1, 61, (2, 20), generator=torch.Generator().manual_seed(1))
ignore = pytest.mark.filterwarnings("ignore")  # the libraries' own


def tiny(**more: Any) -> FarfieldForCausalLM:
    torch.manual_seed(0)
    sizes = {"vocab_size": 61, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return FarfieldForCausalLM(FarfieldConfig(**sizes, intermediate_size=48, pad_token_id=0, dropout=0.0, **more))


@ignore
@pytest.mark.parametrize("kind", ["lora", "prompt", "prefix"])
def test_peft_tunes_the_model(kind):
    peft = pytest.importorskip("peft")
    config = {
        "lora": lambda: peft.LoraConfig(task_type="CAUSAL_LM", r=4),  # default targets
        "prompt": lambda: peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
        "prefix": lambda: peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    }[kind]()
    model = peft.get_peft_model(tiny(), config)
    learned = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=0.05)
    losses = []
    for _ in range(8):
        loss = model(input_ids=IDS, attention_mask=torch.ones_like(IDS), labels=IDS).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    assert losses[-1] < losses[0]
    out = model.eval().generate(input_ids=IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=3, do_sample=False)
    assert out.shape[1] == 23


@ignore
def test_the_model_compiles_in_one_graph_and_is_exported():
    model = tiny().eval()
    with torch.no_grad():
        want = model(IDS, use_cache=False).logits
        run = torch.compile(lambda ids: model(ids, use_cache=False).logits, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(run(IDS), want)

        class Logits(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                return self.model(ids, use_cache=False).logits

        program = torch.export.export(Logits(), (IDS,))
        torch.testing.assert_close(program.module()(IDS), want)
