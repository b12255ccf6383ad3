"""The decoder: the paper's sizes, its loss in chunks, any encoding, and life among transformers."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from farfield import zoo
from farfield.nn.decoder.blocks import Dropout
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.loss import token_losses, vocabulary_loss
from farfield.nn.decoder.model import FarfieldForCausalLM
from farfield.training.settings import preset_settings

TINY: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
}


def reference_loss(hidden: torch.Tensor, weight: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The loss in one line, with all logits at once."""
    return torch.nn.functional.cross_entropy((hidden @ weight.T).float(), target, ignore_index=-100)


def tiny(encoding: str = "alibi", **changes: Any) -> FarfieldForCausalLM:
    torch.manual_seed(0)
    parameters = {"w": 6} if encoding.startswith("window") else None
    config = FarfieldConfig(**{**TINY, "encoding": encoding, "encoding_parameters": parameters, **changes})
    return FarfieldForCausalLM(config).eval()


def some_ids(rows: int, n: int) -> torch.Tensor:
    return torch.randint(61, (rows, n), generator=torch.Generator().manual_seed(n))


# --- the loss ---------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(2, 50), st.integers(1, 8), st.integers(1, 50), st.integers(0, 2**30))
def test_the_loss_in_chunks_is_exact_with_its_gradients(n: int, words: int, width: int, chunk: int, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n, width, generator=draw, dtype=torch.float64).float().requires_grad_()
    weight = (3 * torch.randn(words, width, generator=draw)).requires_grad_()
    target = torch.randint(words, (n,), generator=draw)
    target[torch.rand(n, generator=draw) < 0.2] = -100
    if (target == -100).all():
        target[0] = 0
    ours = vocabulary_loss(hidden, weight, target, chunk=chunk)
    theirs = reference_loss(hidden, weight, target)
    torch.testing.assert_close(ours, theirs)
    ours, theirs = (torch.autograd.grad(3 * loss, [hidden, weight]) for loss in (ours, theirs))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other)
    counted = target != -100
    losses = token_losses(hidden, weight, target)
    torch.testing.assert_close(losses.sum() / counted.sum(), reference_loss(hidden, weight, target).detach())
    assert (losses[~counted] == 0).all()


def test_the_loss_survives_large_logits_and_nothing_to_count() -> None:
    hidden, weight = torch.full((2, 1), 1e4), torch.tensor([[1.0], [-1.0]])
    assert vocabulary_loss(hidden, weight, torch.tensor([0, 1])).item() == pytest.approx(1e4)
    assert vocabulary_loss(hidden, weight, torch.tensor([-100, -100])).item() == 0


def test_the_loss_in_bfloat16_has_float32_gradients_for_float32_weights() -> None:
    hidden = torch.randn(50, 16, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(90, 16, requires_grad=True)
    target = torch.randint(90, (50,))
    vocabulary_loss(hidden, weight, target, chunk=7).backward()
    exact = reference_loss(hidden.detach().float(), weight.detach(), target)
    assert vocabulary_loss(hidden, weight, target).item() == pytest.approx(exact.item(), rel=2e-2)
    assert (hidden.grad.dtype, weight.grad.dtype) == (torch.bfloat16, torch.float32)


def peak_growth(code: str) -> float:
    """By how many MB the peak memory of a fresh process grows while it runs some lines."""
    before = "import re, torch; torch.set_num_threads(1)\n"
    before += (
        "def peak_memory(): return 1024 * int(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    before += "from farfield.nn.decoder.loss import vocabulary_loss\nfrom farfield.nn.decoder.model import *\n"
    before += "before = peak_memory()\n"
    return float(run_python(f"{before}{code}\nprint((peak_memory() - before) / 1e6)"))


def test_the_loss_never_holds_all_logits() -> None:
    """2,048 rows of 50,265 logits are 412 MB, and their gradient as many; a chunk is 67 MB."""
    code = "h, w = torch.randn(2048, 16, requires_grad=True), torch.randn(50265, 16, requires_grad=True)\n"
    code += "vocabulary_loss(h, w, torch.randint(50265, (2048,))).backward()"
    assert peak_growth(code) < 150


@pytest.mark.long
def test_18_times_the_length_stays_under_2_gb() -> None:
    code = "model = FarfieldForCausalLM(FarfieldConfig()).eval()\nids = torch.randint(50265, (1, 9216))\n"
    code += "with torch.no_grad(): model(ids, labels=ids)\nassert peak_memory() < 2e9"
    assert peak_growth(code) < 2000


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "millions"), [("paper-wikitext", 44.6), ("paper-base", 123.7)])
def test_the_papers_sizes(preset: str, millions: float) -> None:
    shape = preset_settings(preset).model_dump()
    config = FarfieldConfig(
        vocab_size=shape["vocabulary"],
        hidden_size=shape["width"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        intermediate_size=shape["feed_forward"],
    )
    with torch.device("meta"):
        model = FarfieldForCausalLM(config)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.1)


@pytest.mark.parametrize("encoding", [*zoo.ENCODINGS, "-sqrt(k*t)", "-t**(3/2)/7"])
def test_every_encoding_trains_and_no_token_sees_the_future(encoding: str) -> None:
    model = tiny(encoding)
    ids = some_ids(2, 11)
    loss = model(ids, labels=ids).loss
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    changed = ids.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 61
    with torch.no_grad():
        assert torch.equal(model(ids).logits[:, :7], model(changed).logits[:, :7])
    assert not math.isnan(loss.item())


def test_position_matters_to_every_encoding_but_none() -> None:
    """Causal attention without positions gives the same mean of the past in any order."""
    for encoding in ("none", "alibi", "rope", "sinusoidal", "type1"):
        model = tiny(encoding, num_hidden_layers=1)
        ids = torch.tensor([[5, 9, 3, 7]])
        swapped = torch.tensor([[9, 5, 3, 7]])
        with torch.no_grad():
            same = torch.allclose(model(ids).logits[:, -1], model(swapped).logits[:, -1], atol=1e-6)
        assert same == (encoding == "none"), encoding


def test_the_first_weights_do_not_depend_on_the_encoding() -> None:
    one, two = tiny("alibi"), tiny("kerple-log")
    assert torch.equal(one.embedding.weight, two.embedding.weight)
    assert torch.equal(one.layers[1].down.weight, two.layers[1].down.weight)


def test_learned_biases_are_shared_by_layers_or_not() -> None:
    assert [tuple(p.shape) for p in tiny("kerple-log").position.parameters()] == [(1, 4), (1, 4)]
    separate = tiny("kerple-log", shared_bias=False)
    assert [tuple(p.shape) for p in separate.position.parameters()] == [(2, 4), (2, 4)]
    separate(some_ids(1, 9), labels=some_ids(1, 9)).loss.backward()
    assert all((p.grad != 0).all() for p in separate.position.parameters())


def test_labels_are_those_of_transformers_and_shift_labels_are_moved_already() -> None:
    model, ids = tiny(), some_ids(3, 10)
    with torch.no_grad():
        output = model(ids, labels=ids)
        logits = model(ids).logits
    expected = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(output.loss, expected)
    assert "logits" not in output
    moved = model(ids[:, :-1], shift_labels=ids[:, 1:]).loss
    torch.testing.assert_close(moved, expected)
    torch.testing.assert_close(model.token_losses(ids).mean(), expected)


def test_output_comes_as_transformers_users_expect_it() -> None:
    model, ids = tiny(), some_ids(2, 6)
    with torch.no_grad():
        whole = model(ids, output_hidden_states=True)
        assert len(whole.hidden_states) == 3
        assert isinstance(model(ids, return_dict=False), tuple)
        assert torch.equal(model(ids, logits_to_keep=2).logits, whole.logits[:, -2:])
        embedded = model(inputs_embeds=model.embedding(ids)).logits
    torch.testing.assert_close(embedded, whole.logits)
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        model()


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_the_dropout_of_a_sample_does_not_depend_on_its_batch() -> None:
    model = tiny(dropout=0.3).train()
    ids, seeds = some_ids(4, 8), torch.tensor([11, 12, 13, 14])

    def loss(rows: slice) -> torch.Tensor:
        return model(ids[rows], labels=ids[rows], sample_seeds=seeds[rows]).loss.detach()

    halves = (loss(slice(0, 2)) + loss(slice(2, 4))) / 2
    torch.testing.assert_close(loss(slice(0, 4)), halves)
    torch.manual_seed(5)  # the global generator has no part in it
    assert torch.equal(loss(slice(0, 2)), loss(slice(0, 2)))
    other = model(ids, labels=ids, sample_seeds=seeds + 1).loss
    assert not torch.allclose(other, loss(slice(0, 4)))


def test_dropout_removes_the_share_it_says_and_keeps_the_mean() -> None:
    x = torch.ones(4, 100, 100)
    for seeds in ([1, 2, 3, 4], None):
        dropout = Dropout(0.1, seeds)
        first, second = dropout(x, 1), dropout(x, 2)
        assert (first == 0).float().mean().item() == pytest.approx(0.1, abs=0.01)
        assert first.mean().item() == pytest.approx(1, abs=0.01)
        assert not torch.equal(first, second)
        assert not torch.equal(first[0], first[1])
    assert Dropout(0.0, None)(x, 1) is x


# --- generation and caches --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["alibi", "type1", "kerple-power", "t5", "rope", "sinusoidal", "window", "none"])
def test_generation_with_and_without_a_cache_is_the_same(encoding: str) -> None:
    model = tiny(encoding)
    ids = some_ids(2, 5)
    options = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0, "attention_mask": torch.ones_like(ids)}
    with_cache = model.generate(ids, **options)
    assert with_cache.shape == (2, 14)
    assert torch.equal(with_cache, model.generate(ids, use_cache=False, **options))


@pytest.mark.parametrize("encoding", ["alibi", "rope", "sinusoidal", "kerple-log"])
def test_left_padding_changes_nothing(encoding: str) -> None:
    model = tiny(encoding)
    ids = some_ids(1, 7)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), ids], 1)
    mask = torch.tensor([[0] * 3 + [1] * 7])
    options = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(ids, attention_mask=torch.ones_like(ids), **options)
    assert torch.equal(model.generate(padded, attention_mask=mask, **options)[:, 3:], plain)


def test_a_mask_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"attention_mask has shape \(1, 3\); it must be \(batch, 5\)"):
        tiny()(some_ids(1, 5), attention_mask=torch.ones(1, 3))


def test_a_window_cuts_attention_and_beam_search_works() -> None:
    model = tiny(num_hidden_layers=1)
    ids = some_ids(1, 12)
    changed = ids.clone()
    changed[:, :8] = 0
    with torch.no_grad():
        assert torch.equal(model(ids, window=4).logits[:, -1], model(changed, window=4).logits[:, -1])
        assert not torch.allclose(model(ids).logits[:, -1], model(changed).logits[:, -1])
        assert torch.equal(model(ids, window=[4] * 4).logits, model(ids, window=4).logits)
    options = {"max_new_tokens": 4, "do_sample": False, "attention_mask": torch.ones_like(ids), "pad_token_id": 0}
    assert model.generate(ids, num_beams=3, **options).shape == (1, 16)


# --- among transformers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["kerple-log", "sandwich", "t5", "sinusoidal", "-log(1 + k*t)"])
def test_saved_and_loaded_it_is_the_same_model(tmp_path: Path, encoding: str) -> None:
    model = tiny(encoding)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(loaded, FarfieldForCausalLM)
    assert loaded.config.encoding == encoding
    with torch.no_grad():
        assert torch.equal(model(some_ids(2, 9)).logits, loaded(some_ids(2, 9)).logits)
    assert not loaded.training


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("order", ["farfield first", "transformers first", "model first"])
def test_a_mere_import_of_farfield_makes_the_model_known(tmp_path: Path, order: str) -> None:
    tiny("type1").save_pretrained(tmp_path)
    first, then = {
        "farfield first": ("import farfield", "from transformers import AutoModelForCausalLM, AutoConfig"),
        "transformers first": ("from transformers import AutoModelForCausalLM, AutoConfig", "import farfield"),
        "model first": (
            "from farfield.nn.decoder.model import FarfieldForCausalLM",
            "from transformers import AutoModelForCausalLM, AutoConfig",
        ),
    }[order]
    code = f"{first}\n{then}\nprint(AutoConfig.from_pretrained({str(tmp_path)!r}).encoding)\n"
    code += f"print(type(AutoModelForCausalLM.from_pretrained({str(tmp_path)!r})).__name__)"
    assert run_python(code).split() == ["type1", "FarfieldForCausalLM"]


def test_importing_farfield_imports_neither_torch_nor_transformers() -> None:
    code = (
        "import sys, farfield\nprint([m for m in ('torch', 'transformers', 'numpy', 'datasets') if m in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


def test_the_configuration_alone_needs_no_torch(tmp_path: Path) -> None:
    FarfieldConfig(**TINY).save_pretrained(tmp_path)
    code = "import sys, farfield\nfrom transformers import AutoConfig\n"
    code += (
        f"print(AutoConfig.from_pretrained({str(tmp_path)!r}).hidden_size, 'farfield.nn.decoder.model' in sys.modules)"
    )
    assert run_python(code).split() == ["32", "False"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hidden_size": 30}, "hidden_size 30 cannot be shared by 4 heads"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000"),
        ({"vocab_size": 0}, "vocab_size is 0"),
        ({"num_hidden_layers": -1}, "num_hidden_layers is -1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"encoding": "allibi"}, "alibi"),
        ({"encoding": "__import__('os')"}, "has no place in a formula"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings"),
    ],
)
def test_a_configuration_is_untrusted(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    FarfieldConfig(**TINY).save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ValueError, match=sentence):
        AutoConfig.from_pretrained(tmp_path)
