"""`inspect` on published configurations, on broken ones, and against transformers' own reading of them."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

import farfield
from farfield.data.configurations import configuration_of
from farfield.models.attention_layers import Layer, exact_reach
from farfield.models.model_types import TYPES

_spec = importlib.util.spec_from_file_location("configurations", Path(__file__).parent / "configurations.py")
assert _spec is not None
assert _spec.loader is not None
published = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(published)
PUBLISHED = published.PUBLISHED


def test_there_are_enough() -> None:
    assert len(PUBLISHED) >= 40
    assert set(published.SEEN) <= {row.hub for row in PUBLISHED}
    assert sum("remembered" not in row.source for row in PUBLISHED) >= 30
    assert len({row.hub for row in PUBLISHED}) == len(PUBLISHED)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.hub)
def test_a_published_configuration_is_read_right(row) -> None:
    result = farfield.inspect(row.config, name=row.hub)
    model = result.model
    assert model is not None
    assert len(model.layers) == row.layers
    assert Counter(x.window for x in model.local) == row.windows
    assert {(x.heads, x.key_heads, x.width) for x in model.layers} == {row.heads}
    assert Counter(x.position for x in model.layers) == row.positions
    assert model.cache_bytes(32_768) == row.mebibytes[0] * 2**20
    assert model.cache_bytes(32_768, windows=False) == row.mebibytes[1] * 2**20
    assert model.training_length == row.trained
    kinds = {x.kind for x in result.answers}
    assert kinds <= {"windowed", "disperses", "neither"}
    assert result.sentence.startswith(row.hub)
    json.dumps(result.json())


def test_certified_windows_of_bloom_equal_those_of_alibi() -> None:
    bloom = next(row.config for row in PUBLISHED if row.hub == "bigscience/bloom-560m")
    result = farfield.inspect(bloom, logit_bound="5", epsilon="0.01")
    theirs = farfield.windows("alibi", "0.01", "5", 16)
    assert list(result.answers[0].windows) == [h.tokens for h in theirs.heads]
    kept = sum(min(32_768, h.tokens or 0) for h in theirs.heads)
    assert result.cache_bytes(32_768) == 24 * kept * 2 * 64 * 2
    assert result.cache_bytes(32_768, windows=False) == 3072 * 2**20


def test_the_slopes_of_falcon_are_divided_by_the_root_of_the_width() -> None:
    """Falcon scales the bias together with the scores: windows are sqrt(64) = 8 times wider than ALiBi's."""
    falcon = next(row.config for row in PUBLISHED if row.hub == "tiiuae/falcon-rw-1b")
    result = farfield.inspect(falcon, logit_bound="0", epsilon="0.01")
    wanted = [farfield.trf("-k*t/8", "0.01", parameters={"k": k}) for k in farfield.find("alibi").heads(32)[0].values()]
    assert result.answers[0].windows[0] == wanted[0]


def test_the_sentence_says_how_far_and_what_is_proven() -> None:
    by = {row.hub: farfield.inspect(row.config, name=row.hub).sentence for row in PUBLISHED}
    assert "beyond 131,041 tokens (exact)" in by["mistralai/Mistral-7B-v0.1"]
    assert "12 of 24 layers see 128 tokens each, 1,525 together (exact)" in by["openai/gpt-oss-20b"]
    assert "finite sum" in by["bigscience/bloom"]
    assert "disperses" in by["meta-llama/Llama-3.1-8B"]
    assert "8,192 tokens each, 8,192 together" in by["meta-llama/Llama-4-Scout-17B-16E"]
    assert "neither" in by["meta-llama/Llama-4-Scout-17B-16E"]


def test_logits_that_grow_with_the_logarithm_of_the_row_are_neither() -> None:
    """The first Qwen multiplies its queries by log(i)/log(8192) beyond 8192 tokens."""
    qwen = next(row.config for row in PUBLISHED if row.hub == "Qwen/Qwen-1_8B")
    assert {x.kind for x in farfield.inspect(qwen).answers} == {"neither"}
    assert {x.kind for x in farfield.inspect({**qwen, "use_logn_attn": False}).answers} == {"disperses"}


def test_dynamic_scaling_begins_where_the_stated_length_ends() -> None:
    result = farfield.inspect(next(row.config for row in PUBLISHED if row.hub.startswith("internlm/")))
    assert "dynamic NTK scaling stretches the training length of 32,768 tokens 2 times to 65,536" in " ".join(
        result.notes
    )


def test_fields_about_attention_that_are_not_read_are_named() -> None:
    result = farfield.inspect(
        {**GOOD, "sliding_window": 128, "local_attention_every": 2, "alibi": True, "vocab_size": 9}
    )
    notes = " ".join(result.notes)
    for name in ("sliding_window = 128", "local_attention_every = 2", "alibi = True"):
        assert f"the field {name} is not known for llama and was not read" in notes
    assert "vocab_size" not in notes
    for row in PUBLISHED:
        assert not any("was not read" in note for note in farfield.inspect(row.config).notes), row.hub


def test_chunks_of_llama_4_follow_its_layer_types() -> None:
    kinds = ["chunked_attention", "full_attention"]
    text = {**GOOD, "model_type": "llama4_text", "layer_types": kinds, "no_rope_layers": [1, 1], "head_dim": 16}
    result = farfield.inspect(text)
    assert [(x.window, x.position) for x in result.model.layers] == [(8192, "rope"), (None, "rope")]


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [("inverse", "disperses"), ("inverse-log", "disperses"), ("-log(1 + t)", "disperses"), ("t", "undecided"),
     ("type1", "windowed"), ("kerple-log", "undecided"), ("none", "disperses")],
)  # fmt: skip
def test_a_formula_of_our_own_has_one_of_the_three_answers(encoding, kind) -> None:
    result = farfield.inspect({**GOOD, "model_type": "farfield", "encoding": encoding})
    assert {x.kind for x in result.answers} == {kind}
    assert ("not decided" in result.sentence) == (kind == "undecided")


def test_a_soft_cap_is_called_useless() -> None:
    gemma = next(row.config for row in PUBLISHED if row.hub == "google/gemma-2-2b")
    result = farfield.inspect(gemma)
    why = next(x.why for x in result.answers if x.kind == "disperses")
    assert "of no use" in why
    assert "3e+43" in why  # e^100


@pytest.mark.parametrize(
    ("windows", "reach"),
    [((4,), 4), ((4, 4), 7), ((1, 1), 1), ((2, 5, 3), 8)],
)
def test_the_reach_of_windows_is_that_of_masks(windows, reach) -> None:
    """The product of the masks of the layers is the oracle."""
    import numpy as np

    n = 32
    mask = np.eye(n, dtype=int)
    for w in windows:
        distance = np.arange(n)[:, None] - np.arange(n)[None]
        mask = ((distance >= 0) & (distance < w)).astype(int) @ mask
    assert exact_reach([Layer(1, "rope", 1, 1, 8, window=w) for w in windows]) == reach == (mask[-1] > 0).sum()


def test_the_reach_of_chunks_is_that_of_masks() -> None:
    import numpy as np

    n, c = 32, 8
    mask = np.eye(n, dtype=int)
    for _ in range(3):
        i, j = np.arange(n)[:, None], np.arange(n)[None]
        mask = ((i >= j) & (i // c == j // c)).astype(int) @ mask
    assert exact_reach([Layer(1, "rope", 1, 1, 8, window=c, chunks=True)] * 3) == c == (mask > 0).sum(1).max()


def test_slopes_that_are_learned_or_given_are_not_taken_for_alibis() -> None:
    ours = {"model_type": "farfield", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
    learned = {"start": [0.1, 1.0], "least": None, "most": None, "spread": True}
    usual = farfield.inspect({**ours, "encoding": "alibi"}, logit_bound="1")
    assert usual.model.layers[0].slopes[0] == Fraction(1, 4)
    assert usual.json()["layers"][0]["answer"] == "windowed"
    open_ = farfield.inspect({**ours, "encoding": "alibi", "encoding_parameters": {"k": learned}})
    assert open_.model.layers[0].position == "-k*t"
    assert open_.json()["layers"][0]["answer"] == "undecided"
    bad = farfield.inspect({**ours, "encoding": "alibi", "encoding_parameters": {"k": "-1"}})
    assert bad.json()["layers"][0]["answer"] == "undecided"
    assert "not so in head 1, 2, 3, 4" in bad.json()["layers"][0]["why"]
    some = farfield.inspect({**ours, "encoding": "-k*t", "encoding_parameters": {"k": ["1", "1/2", "0", "-1"]}})
    assert "not so in head 3, 4" in some.json()["layers"][0]["why"]
    own = farfield.inspect({**ours, "encoding": "-k*t", "encoding_parameters": {"k": [1, 2, 3, 4]}}, logit_bound="1")
    assert own.json()["layers"][0]["certified_windows"][0] > own.json()["layers"][0]["certified_windows"][3]
    kerple = farfield.inspect({**ours, "encoding": "kerple-log"}).json()["layers"][0]
    assert kerple["answer"] == "undecided"
    assert "p > 1" in kerple["why"]
    how = {"family": "llama", "encoding": "-a*t", "parameters": {"a": "1/2"}, "shared": True}
    replaced = farfield.inspect({**ours, "model_type": "farfield-replaced", "farfield": how})
    assert replaced.json()["layers"][0]["answer"] == "windowed"
    with pytest.raises(ValueError, match="names no encoding"):
        farfield.inspect({**ours, "model_type": "farfield-replaced", "farfield": 3})


UNKNOWN = [
    {"model_type": "mamba", "state_size": 16},
    {},
    {"model_type": 7},
    {"hidden_size": 5},
    {"model_type": "x" * 999},
]


@pytest.mark.parametrize("config", UNKNOWN)
def test_unknown_architectures_are_reported_field_by_field(config) -> None:
    result = farfield.inspect(config)
    assert result.model is None
    assert "not known" in result.sentence
    assert set(result.json()["fields"]) == set(config)
    with pytest.raises(ValueError, match="nothing to draw"):
        result.figure()


def test_code_of_a_model_is_never_run(tmp_path) -> None:
    code = tmp_path / "modeling_evil.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    auto = {"AutoConfig": "modeling_evil.Config", "AutoModelForCausalLM": "modeling_evil.Model"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": auto}))
    result = farfield.inspect(tmp_path)
    assert any("never run" in note for note in result.notes)
    assert not (tmp_path / "ran").exists()


GOOD = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
BROKEN = [
    {"num_hidden_layers": None}, {"num_hidden_layers": -3}, {"num_hidden_layers": "two"}, {"num_hidden_layers": 1e30},
    {"num_attention_heads": 5}, {"num_key_value_heads": 3}, {"num_attention_heads": True}, {"rope_scaling": "yarn"},
    {"rope_scaling": {"type": "yarn", "factor": "x"}}, {"max_position_embeddings": [1]},
    {"model_type": "gpt_oss", "layer_types": ["sliding_attention"]}, {"model_type": "gpt_neo", "attention_types": 5},
    {"model_type": "gemma2", "layer_types": ["odd", "full_attention"]}, {"model_type": "mpt", "attn_config": 7},
    {"model_type": "mpt", "attn_config": {"alibi": False}}, {"model_type": "exaone4", "sliding_window": 4,
                                                            "sliding_window_pattern": "XX"},
    {"model_type": "llama4_text", "no_rope_layers": [2, 1]}, {"model_type": "farfield", "encoding": 3},
    {"model_type": "deepseek_v3"}, {"hidden_size": float("nan")}, {"num_hidden_layers": 10**6},
    {"model_type": "mistral", "sliding_window": -5}, {"model_type": "mistral", "sliding_window": "4096"},
    {"model_type": "mistral", "sliding_window": 4096.5}, {"model_type": "mistral", "sliding_window": 10**12},
    {"num_hidden_layers": 10**9}, {"model_type": "qwen2", "use_sliding_window": "yes", "sliding_window": 4},
    {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 4, "max_window_layers": "x"},
    {"model_type": "gemma3_text", "sliding_window_pattern": 2.5, "num_key_value_heads": 4},
    {"model_type": "gemma3_text", "sliding_window_pattern": [6], "num_key_value_heads": 4},
    {"model_type": "gpt_neo", "num_layers": 2, "num_heads": 4, "attention_types": [[["global"], 10**12]]},
    {"model_type": "gpt_neo", "num_layers": 2, "num_heads": 4, "attention_types": [[["global"], -2]]},
    {"model_type": "bloom", "num_attention_heads": 10**9, "hidden_size": 10**9},
    {"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 3},
    {"model_type": "mpt", "attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 3}},
    {"model_type": "mpt", "attn_config": {"attn_type": ["x"]}}, {"rope_scaling": {"type": ["yarn"]}},
    {"rope_scaling": {"rope_type": "yarn", "factor": float("inf")}}, {"rope_parameters": []},
    {"model_type": "llama4_text", "no_rope_layers": [[1], [0]]}, {"model_type": "llama4_text", "no_rope_layers": "10"},
    {"model_type": "gemma2", "attn_logit_softcapping": -50}, {"model_type": "gemma2", "layer_types": [{}, []]},
    {"model_type": "gemma2", "layer_types": ["chunked_attention", "full_attention"]}, {"head_dim": 0.5},
    {"model_type": "farfield", "encoding": "(" * 500}, {"model_type": "t5", "num_layers": 10**9},
    {"model_type": "deepseek_v3", "kv_lora_rank": 4, "num_hidden_layers": 10**9}, {"num_attention_heads": 10**9},
]  # fmt: skip


@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_a_broken_configuration_ends_in_one_sentence(change) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        farfield.inspect({**GOOD, **change})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "3", '"x"', "[" * 5000])
def test_a_broken_file_ends_in_one_sentence(tmp_path, text) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=r"config\.json"):
        farfield.inspect(tmp_path)


def test_every_known_architecture_reads_or_says_what_is_missing() -> None:
    for kind in TYPES:
        try:
            assert farfield.inspect({"model_type": kind}).model is not None
        except ValueError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_the_hub_is_asked_for_the_configuration_only(tmp_path, monkeypatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked = []

    def download(repo: str, file: str) -> str:
        asked.append((repo, file))
        (tmp_path / file).write_text(json.dumps(GOOD))
        return str(tmp_path / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert configuration_of("owner/some-model") == GOOD
    assert asked == [("owner/some-model", "config.json")]
    monkeypatch.setattr(hub, "hf_hub_download", lambda *_: (_ for _ in ()).throw(OSError("no network\nat all")))
    with pytest.raises(ValueError, match="no network"):
        configuration_of("owner/other")
    with pytest.raises(ValueError, match="no folder or file"):
        configuration_of("./nothing/here")


def test_the_command_prints_json_and_draws(tmp_path, capsys) -> None:
    from farfield.cli import main

    (tmp_path / "config.json").write_text(json.dumps(next(r.config for r in PUBLISHED if "20b" in r.hub)))
    with pytest.raises(SystemExit) as end:
        main(["inspect", str(tmp_path), "--json", "--figure", str(tmp_path / "layers.png")])
    assert end.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    assert told["local_reach"] == 12 * 127 + 1
    assert told["scaling"]["original"] == 4096
    assert (tmp_path / "layers.png").stat().st_size > 5000
    assert not (tmp_path / "layers.svg").exists()
