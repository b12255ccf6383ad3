"""The largest logits on a text, and windows that are certified for them."""

import json

import numpy as np
import pytest
import torch
from transformers import BloomConfig, BloomForCausalLM

from farfield.measure import Text, as_model
from farfield.measure.attended import largest_logits


def small():
    torch.manual_seed(0)
    network = BloomForCausalLM(BloomConfig(vocab_size=300, hidden_size=32, n_layer=2, n_head=4)).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim > 1:
                parameter.mul_(5)
    return network


def test_they_are_those_of_the_full_matrices():
    network = small()
    ids = np.random.default_rng(0).integers(1, 300, 41)
    seen = []
    model = as_model(network, "bloom", 40)
    with torch.no_grad(), model.watching(lambda layer, inputs: seen.append(inputs)):
        model.states(torch.from_numpy(ids[:-1])[None])
    wanted = []
    for inputs in seen:
        scores = (inputs.q[0].double() @ inputs.k[0].double().mT * inputs.scale).abs()
        wanted.append(float(scores.tril().max()))
    assert largest_logits(model, Text(ids, {}), 40) == pytest.approx(wanted, rel=1e-6)


def test_inspect_takes_its_bound_from_a_text(tmp_path, capsys):
    from farfield.cli import main

    small().save_pretrained(tmp_path / "model")
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog. " * 400)
    arguments = ["--weights", "--corpus", str(tmp_path / "text.txt"), "--tokenizer", "bytes", "--length", "64"]
    with pytest.raises(SystemExit) as end:
        main(["inspect", str(tmp_path / "model"), *arguments, "--json"])
    assert end.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert told["layers"][0]["certified_windows"]
    assert any("largest logit on 64 tokens" in note for note in told["notes"])
