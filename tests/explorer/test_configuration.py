"""A pasted config.json gets what `farfield inspect` says of it, from the server too, or one sentence."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from farfield.explorer.question import LONGEST_CONFIGURATION, read
from farfield.explorer.replies import answer

FARFIELD = Path(sys.executable).with_name("farfield")
MISTRAL = {
    "model_type": "mistral", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "sliding_window": 4096, "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
}  # fmt: skip
BLOOM = {"model_type": "bloom", "n_layer": 4, "n_head": 8, "hidden_size": 64, "seq_length": 2048}


def ask(config, **more):
    text = config if isinstance(config, str) else json.dumps(config)
    return json.loads(json.dumps(answer(read("inspect", [("config", text), *more.items()]))))


def post(explorer, body, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", explorer.port, timeout=60)
    connection.request("POST", "/api/inspect", body if isinstance(body, bytes) else json.dumps(body), headers=headers)
    found = connection.getresponse()
    status, data = found.status, json.loads(found.read())
    connection.close()
    return status, data


@pytest.mark.parametrize("config", [MISTRAL, BLOOM], ids=["mistral", "bloom"])
def test_the_page_says_what_the_command_says(config, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    printed = subprocess.run(
        [FARFIELD, "inspect", "config.json"],
        cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "500"},
    ).stdout  # fmt: skip
    found = ask(config)
    said = found["sentence"].removeprefix("the model: ")
    for words in (said, *found["sentences"], *found["notes"]):
        assert words in printed
    for row in (*found["layers"]["rows"], *found["cache"]["rows"]):
        assert all(cell in printed for cell in row)
    assert [bar[0] for bar in found["figure"]["bars"]] == list(range(1, len(found["figure"]["bars"]) + 1))


def test_a_bound_on_the_logits_certifies_windows():
    assert "how wide" in ask(BLOOM)["figure"]["bars"][0][3]
    found = ask(BLOOM, bound="2", epsilon="0.05")
    assert found["figure"]["bars"][0][3] == "windowed: window"
    assert "--logit-bound 2 --epsilon 0.05" in found["command"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "paste the config.json"), ("hello {", "cannot be read as JSON"), ("[1, 2]", "a table of JSON"),
        ("[" * 100 + "]" * 100, "nested deeper"), ('{"model_type": "llama", "num_hidden_layers": 1e999}', "too large"),
        ('{"model_type": "llama"}', "has no num_attention_heads"),
        ('{"model_type": "llama", "n": ' + "9" * 30 + "}", "64 bits"),
        ('{"model_type": "llama", "num_attention_heads": "four"}', "must be a whole number"),
        ("x" * (LONGEST_CONFIGURATION + 1), "at most 262,144 characters"),
    ],
)  # fmt: skip
def test_what_is_no_configuration_gets_one_sentence(text, said):
    with pytest.raises(ValueError, match=said) as caught:
        ask(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_an_unknown_architecture_is_listed_field_by_field():
    found = ask({"model_type": "<b>new</b>", "auto_map": {"AutoModel": "own.py"}, "layers": [1, 2]})
    assert not found["known"]
    assert "is not known, so nothing is claimed" in found["sentence"]
    assert found["fields"][2] == ["layers", "[1, 2]"]
    assert any("never run" in note for note in found["notes"])


def test_the_server_takes_a_configuration_and_nothing_else(explorer):
    status, data = post(explorer, [["config", json.dumps(MISTRAL)]])
    assert (status, data) == (200, json.loads(json.dumps(ask(MISTRAL))))
    assert explorer.get("/api/inspect").status == 405
    assert explorer.get("/api/verdict", [("f", "alibi")], method="POST").status == 405
    for body in (
        b"no JSON",
        b"\xff",
        {"config": "x"},
        [["config"]],
        [["config", 7]],
        [["f", "alibi"]],
        [["config", "{"]],
    ):
        status, data = post(explorer, body)
        assert status == 400, body
        assert "\n" not in data["error"]
    status, data = post(explorer, [["config", "x" * (3 << 20)]])
    assert status == 400
    assert "at most" in data["error"]
    assert post(explorer, [["config", "{}"]], Origin="https://evil.example")[0] == 403
