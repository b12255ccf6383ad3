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


@pytest.fixture
def tokenizer() -> Any:
    """One word for each number below 61."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, **{str(n): n for n in range(1, 60)}, "<eos>": 60}
    made = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")


TEXTS = [{"text": " ".join(str(1 + (a * b) % 59) for b in range(12 + a % 5))} for a in range(1, 17)]


@ignore
@pytest.mark.parametrize("packing", [False, True])
def test_trl_fine_tunes_the_model(tokenizer, packing, tmp_path):
    trl = pytest.importorskip("trl")
    from datasets import Dataset

    model = tiny()
    with torch.no_grad():
        ids = tokenizer(TEXTS[0]["text"], return_tensors="pt").input_ids
        before = float(model(ids, labels=ids).loss)
    settings = trl.SFTConfig(
        output_dir=str(tmp_path), max_steps=12, per_device_train_batch_size=4, learning_rate=0.02, report_to=[],
        use_cpu=True, bf16=False, logging_steps=1, max_length=24, packing=packing, save_strategy="no",
    )  # fmt: skip
    trainer = trl.SFTTrainer(
        model=model, args=settings, train_dataset=Dataset.from_list(TEXTS), processing_class=tokenizer
    )
    trainer.train()
    with torch.no_grad():
        assert float(trainer.model(ids, labels=ids).loss) < before
    first = trainer.state.log_history[0]["loss"]
    assert abs(first - before) < 0.5, "TRL's loss is not the model's"


@ignore
def test_the_evaluation_harness_scores_as_the_model_does(tokenizer):
    harness = pytest.importorskip("lm_eval.models.huggingface")
    from lm_eval.api.instance import Instance

    model = tiny().eval()
    judge = harness.HFLM(pretrained=model, tokenizer=tokenizer, device="cpu", batch_size=2)
    pairs = [("5 6 7", " 8 9"), ("1 2", " 3"), ("11 12 13 14", " 15 16 17")]
    requests = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(pairs)]
    for (context, rest), (score, _) in zip(pairs, judge.loglikelihood(requests, disable_tqdm=True), strict=True):
        ids = tokenizer(context + rest, return_tensors="pt").input_ids
        start = len(tokenizer(context).input_ids)
        losses = model.token_losses(ids)[0, start - 1 :]
        assert abs(score + float(losses.sum())) < 1e-3


@ignore
def test_onnx_has_no_word_for_our_attention_and_torch_says_which():
    pytest.importorskip("onnxscript")
    with pytest.raises(Exception, match=r"No ONNX function found for .*farfield\.attention"):
        torch.onnx.export(tiny().eval(), (IDS,), kwargs={"use_cache": False}, dynamo=True, verbose=False)
