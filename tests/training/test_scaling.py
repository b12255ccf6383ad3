"""The cost model: its sizes are those of real models, its constants those that were measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from farfield.training.scaling import (
    CACHE_SLACK,
    KEPT_BYTES,
    PROCESSORS,
    Processor,
    Sizes,
    cache_bytes,
    decoding_seconds,
    mean_keys,
    parameters,
    training_cost,
    training_flops,
    training_memory,
)
from farfield.training.settings import preset_settings

MEASURED = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
PAPER = preset_settings("paper-wikitext", encoding="alibi")
SMALL = Sizes(vocabulary=10, layers=2, width=8, heads=2, feed_forward=16, length=4, batch=3, steps=5)


@pytest.mark.parametrize(
    "entry", json.loads((MEASURED / "training.json").read_text())["training"], ids=lambda e: e["size"]
)
def test_parameters_are_those_of_the_measured_models(entry: dict) -> None:
    assert parameters(Sizes(**entry["shape"], batch=1, steps=1)) == entry["parameters"]["ours"]


def test_a_causal_row_sees_half_of_its_keys() -> None:
    assert mean_keys(4) == (1 + 2 + 3 + 4) / 4
    assert mean_keys(5, window=2) == (1 + 2 + 2 + 2 + 2) / 5
    assert mean_keys(4, window=100) == mean_keys(4)


def test_the_arithmetic_counted_product_by_product() -> None:
    """Every matrix product of a forward pass, counted by torch; the backward pass takes twice as much."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    V, L, D, F, n = 101, 2, 16, 48, 32
    x = torch.randn(n, D)
    with FlopCounterMode(display=False) as counter:
        for _ in range(L):
            q, k, v = (x @ torch.randn(D, D) for _ in range(3))
            x = (torch.softmax(q @ k.T, -1) @ v) @ torch.randn(D, D)  # all n x n pairs: twice the causal ones
            x = torch.relu(x @ torch.randn(D, F)) @ torch.randn(F, D)
        x @ torch.randn(D, V)
    run = Sizes(vocabulary=V, layers=L, width=D, heads=2, feed_forward=F, length=n)
    norms_and_biases = parameters(run) - (V * D + L * (4 * D * D + 2 * D * F))
    ours = training_flops(run) - 6 * n * norms_and_biases - 12 * L * D * n * (mean_keys(n) - n)
    assert ours == 3 * counter.get_total_flops()


def test_a_window_and_recomputing_change_the_arithmetic_as_they_should() -> None:
    assert training_flops(SMALL, window=1) < training_flops(SMALL)
    assert training_flops(SMALL, recompute=True) == pytest.approx(4 / 3 * training_flops(SMALL))


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_layer_keeps_what_autograd_saves(precision: str) -> None:
    import torch

    from farfield.nn.decoder.config import FarfieldConfig
    from farfield.nn.decoder.model import FarfieldForCausalLM

    rows, n, D, F = 5, 96, 64, 256

    def saved(layers: int) -> int:
        config = FarfieldConfig(
            vocab_size=300,
            num_hidden_layers=layers,
            hidden_size=D,
            num_attention_heads=2,
            intermediate_size=F,
            max_position_embeddings=n,
        )
        model = FarfieldForCausalLM(config).train()
        sizes, alive = {}, []
        fixed = {p.untyped_storage().data_ptr() for p in model.parameters()}

        def keep(tensor: torch.Tensor) -> torch.Tensor:
            storage = tensor.untyped_storage()
            if storage.data_ptr() not in fixed and rows * n in (tensor.shape[0], tensor.shape[0] * n):
                sizes[storage.data_ptr()] = storage.nbytes()  # shapes that grow with the tokens: no weights
            alive.append(tensor)
            return tensor

        ids = torch.randint(300, (rows, n))
        with (
            torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"),
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        ):
            model(input_ids=ids, shift_labels=ids, sample_seeds=torch.arange(rows), use_cache=False)
        return sum(sizes.values())

    per_width, per_inner = KEPT_BYTES[precision]
    measured = (saved(3) - saved(1)) / 2 / (rows * n)
    assert measured == pytest.approx(per_width * D + per_inner * F, rel=0.03)


def test_the_core_sustains_what_was_measured() -> None:
    for entry in json.loads((MEASURED / "training.json").read_text())["training"]:
        run = Sizes(**entry["shape"], batch=1, steps=1)
        per_token = training_flops(run) / (run.batch * run.length * run.steps)
        sustained = per_token * entry["tokens_per_second"]["ours"]
        assert sustained == pytest.approx(PROCESSORS["cpu"].float32, rel=0.35)


def test_caches_take_what_was_measured() -> None:
    decoding = json.loads((MEASURED / "decoding.json").read_text())
    last = decoding["points"][-1]
    windows = [30, 59, 117, 234, 468, 935, 1869, 3737]  # farfield window alibi --heads 8, docs/cache.md
    assert cache_bytes(PAPER, last["position"]) == last["rival_bytes"]
    ours = cache_bytes(PAPER, last["position"], windows)
    assert ours == pytest.approx(last["ours_bytes"], rel=0.01)
    assert cache_bytes(PAPER, 10**7, windows) == ours
    assert cache_bytes(PAPER, 20, windows) == cache_bytes(PAPER, 20)
    assert CACHE_SLACK >= 1


def test_hours_and_dollars_follow_from_the_arithmetic() -> None:
    machine = Processor(bfloat16=2e6, float32=1e6, utilisation=0.5, memory=1, bandwidth=1e3, dollars_per_hour=7.0)
    cost = training_cost(SMALL, machine)
    assert cost.gpu_hours == pytest.approx(cost.flops / 1e6 / 3600)
    assert cost.dollars == pytest.approx(7 * cost.gpu_hours)
    assert training_cost(replace(SMALL, precision="float32"), machine).gpu_hours == pytest.approx(2 * cost.gpu_hours)
    assert training_cost(SMALL, machine, utilisation=0.25).gpu_hours == pytest.approx(2 * cost.gpu_hours)
    assert training_cost(SMALL, machine, dollars_per_hour=14.0).dollars == pytest.approx(2 * cost.dollars)
    assert decoding_seconds(SMALL, 4, machine) == pytest.approx((2 * parameters(SMALL) + cache_bytes(SMALL, 4)) / 1e3)


def test_costs_add_up() -> None:
    one = training_cost(SMALL)
    large = training_cost(PAPER)
    both = 3 * one + large
    assert both.flops == pytest.approx(3 * one.flops + large.flops)
    assert both.dollars == pytest.approx(3 * one.dollars + large.dollars)
    assert both.memory_bytes == large.memory_bytes


def test_sharding_and_recomputing_save_memory() -> None:
    whole = training_memory(PAPER)
    assert training_memory(PAPER, gpus=8, shard=True) < whole
    assert training_memory(PAPER, recompute=True) < whole
    assert training_memory(PAPER, gpus=8) == whole  # the micro-batch stays, and each GPU holds every weight


def test_mistakes_are_told_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="no processor 'abacus'"):
        training_cost(PAPER, "abacus")
    with pytest.raises(ValueError, match=r"utilisation is 1\.5"):
        training_cost(PAPER, utilisation=1.5)
    with pytest.raises(ValueError, match="layers is 0"):
        Sizes(vocabulary=10, layers=0, width=8, heads=2, feed_forward=16, length=4)
    with pytest.raises(ValueError, match="precision is 'float8'"):
        Sizes(vocabulary=10, layers=1, width=8, heads=2, feed_forward=16, length=4, precision="float8")
    with pytest.raises(ValueError, match="2 windows were given for 8 heads"):
        cache_bytes(PAPER, 100, [1, 2])
    with pytest.raises(ValueError, match="gpus is 0"):
        training_cost(PAPER, gpus=0)


def test_the_model_needs_no_torch() -> None:
    code = "import sys, farfield.training.scaling; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
