"""Small models, ours and of transformers, and a text of random tokens."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from farfield.measure import Model, Text, as_model
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM

WORDS = 61


def our_model(encoding: str = "alibi", heads: int = 4, layers: int = 2, length: int = 16, **more: Any) -> Model:
    """A model of ours with random weights, large enough that attention is far from flat."""
    torch.manual_seed(0)
    config = FarfieldConfig(
        vocab_size=WORDS,
        hidden_size=32,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=48,
        max_position_embeddings=length,
        encoding=encoding,
        **more,
    )
    network = FarfieldForCausalLM(config)
    with torch.no_grad():
        for layer in network.layers:
            layer.attention.inward.weight.mul_(2.5)
    return as_model(network, encoding)


def gpt2(length: int = 32) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        n_embd=32, n_layer=2, n_head=4, n_positions=length, vocab_size=WORDS, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config).eval()


def llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(2)
    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=WORDS,
        max_position_embeddings=32,
        bos_token_id=0,
        eos_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def bloom() -> Any:
    from transformers import BloomConfig, BloomForCausalLM

    torch.manual_seed(3)
    return BloomForCausalLM(
        BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=WORDS, bos_token_id=0, eos_token_id=0)
    ).eval()


def theirs(kind: str) -> Model:
    network = {"gpt2": gpt2, "llama": llama, "bloom": bloom}[kind]()
    return as_model(network, kind, 32)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A little of Python's own source: all of it takes a second to read, and every command would."""
    folder = tmp_path_factory.mktemp("corpus")
    source = Path(argparse.__file__).read_text()
    for number, split in enumerate(("train", "valid", "test")):
        (folder / f"{split}.txt").write_text(source[20_000 * number : 20_000 * (number + 1)])
    return folder


@pytest.fixture
def text() -> Callable[[int], Text]:
    def make(tokens: int, seed: int = 0) -> Text:
        ids = np.random.default_rng(seed).integers(0, WORDS, tokens + 1)
        return Text(ids, {"corpus": "random", "split": "test", "tokens": tokens, "seed": seed})

    return make
