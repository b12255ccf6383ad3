"""Numbers are of the weights that lie there: damaged or missing ones are refused, changed ones measured anew."""

import json
import shutil

import numpy as np
import pytest
import torch
from folders import DEEP, hollow, pipe, reconfigured, safetensors, shortened, turned, unnoted, written
from safetensors.torch import load_file, save_file

from farfield.cli import main

pytestmark = pytest.mark.hostile("weights that are not what they say")


def without(count):
    def kept(tensors):
        return dict(sorted(tensors.items())[: len(tensors) - count if count > 0 else -count])

    return turned(kept)


def flipped(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    for place in range(len(data) - 4000, len(data), 10):
        data[place] ^= 255
    path.write_bytes(data)


def tensor(start, end):
    """What the header of a safetensors file says of these numbers."""
    return {"dtype": "F32", "shape": [end - start], "data_offsets": [4 * start, 4 * end]}


DAMAGE = {
    "one tensor missing": without(1),
    "all but three missing": without(-3),
    "one missing, no digest": unnoted(without(1)),
    "all but three missing, no digest": unnoted(without(-3)),
    "flipped bytes": flipped,
    "half the weights": shortened("model.safetensors"),
    "half the weights, no digest": unnoted(shortened("model.safetensors")),
    "empty weights": written("model.safetensors", b""),
    "weights are text": unnoted(written("model.safetensors", b"hello")),
    "weights with a header of 2^60 bytes": unnoted(safetensors(b"", b"", 2**60)),
    "weights with a header of a billion bytes": unnoted(safetensors(b"{}", b"", 10**9)),
    "weights whose tensors overlap": unnoted(safetensors({"a": tensor(0, 8), "b": tensor(4, 12)})),
    "weights beyond their end": unnoted(safetensors({"a": tensor(0, 1 << 40)})),
    "weights of a type that is none": unnoted(safetensors({"a": {**tensor(0, 16), "dtype": "F7"}})),
    "weights with a deep header": unnoted(safetensors(DEEP)),
    "weights that are not there": unnoted(hollow("model.safetensors", 1 << 40)),
    "weights are a pipe": pipe("model.safetensors"),
    "weights of more layers": unnoted(reconfigured(lambda fields: fields.update(num_hidden_layers=1))),
    "digest is deep": written("finished.json", DEEP),
    "digest is a list": written("finished.json", b"[1]"),
    "digest is half": shortened("finished.json"),
    "digest of others": written("finished.json", b'{"step": 3, "sha256": "00"}'),
    "digest is a table": written("finished.json", b'{"step": 3, "sha256": {}}'),
    "configuration is deep": written("config.json", DEEP),
    "configuration is half": shortened("config.json"),
    "configuration is empty": written("config.json", b""),
    "configuration is a list": written("config.json", b"[]"),
    "configuration is a pipe": pipe("config.json"),
    "configuration has a huge number": written("config.json", b'{"hidden_size": 1' + b"0" * 309 + b"}"),
}  # fmt: skip
VERBS = {
    "evaluate": ("evaluate", "--lengths", "1x", "--out"),
    "receptive": ("receptive",),
    "speed": ("speed",),
    "needle": ("needle", "--trials", "1"),
    "generate": ("generate", "--prompt", "the cat"),
}


@pytest.fixture
def model(run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_models_are_refused_in_every_verb(model, tmp_path, damage, sentence, attacks):
    DAMAGE[damage](model)
    for verb, options in VERBS.items():
        extra = (tmp_path / "out",) if verb == "evaluate" else ()
        said = sentence(options[0], model, *options[1:], *extra)
        assert "model" in said
    attacks(len(VERBS))


def perplexity(folder, out, capsys):
    with pytest.raises(SystemExit) as end:
        main(["evaluate", str(folder), "--lengths", "1x", "--tokens", "400", "--out", str(out), "--json"])
    assert not end.value.code
    return json.loads(capsys.readouterr().out)[0]["perplexity"]


def other_weights(folder, seed=1):
    tensors = load_file(folder / "model.safetensors")
    torch.manual_seed(seed)
    save_file(
        {n: x + torch.randn_like(x) for n, x in tensors.items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    (folder / "finished.json").unlink(missing_ok=True)


def test_new_weights_are_measured_anew(model, tmp_path, capsys):
    before = perplexity(model, tmp_path / "out", capsys)
    other_weights(model)
    assert perplexity(model, tmp_path / "out", capsys) > 1.5 * before


def test_a_changed_configuration_is_measured_anew(model, tmp_path, capsys):
    before = perplexity(model, tmp_path / "out", capsys)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "encoding": "none"}))
    after = perplexity(model, tmp_path / "out", capsys)
    assert after != before
    assert after == perplexity(model, tmp_path / "again", capsys)


def test_the_same_weights_are_not_measured_twice(model, tmp_path, capsys, monkeypatch):
    before = perplexity(model, tmp_path / "out", capsys)
    monkeypatch.setattr("farfield.measure.perplexity.measure", lambda *a, **k: pytest.fail("measured again"))
    assert perplexity(model, tmp_path / "out", capsys) == before


def test_networks_of_the_user_are_never_mixed_up(model, tmp_path):
    from farfield.measure import as_model, evaluate, load_model
    from farfield.measure.text import Text

    text = Text(np.arange(200) % 97, {})
    first = load_model(str(model)).network
    other_weights(model)
    second = load_model(str(model)).network
    scores = [
        evaluate(as_model(net, "mine", 16), text, "1x", out=tmp_path / "out").rows[0].loss
        for net in (first, second, first)
    ]
    assert scores[0] == scores[2] != scores[1]


ROWS = [
    b"", b"{}", DEEP, b'{"about": 1}', b"HALF", b'{"about": "SAME", "rows": [1]}', b'{"about": "SAME", "rows": {}}',
    b'{"about": "SAME", "rows": [{}]}', b'{"about": "SAME", "rows": [{"length": "x"}]}',
    b'{"about": "SAME", "rows": [{"blocks": 3}]}',
]  # fmt: skip


@pytest.mark.parametrize("data", ROWS, ids=range(len(ROWS)))
def test_damaged_results_are_measured_anew(model, tmp_path, capsys, data):
    before = perplexity(model, tmp_path / "out", capsys)
    (path,) = (tmp_path / "out").glob("evaluation-*.json")
    kept = json.loads(path.read_bytes())
    if data == b"HALF":
        data = path.read_bytes()[: path.stat().st_size // 2]
    elif b"SAME" in data:
        table = json.loads(data)
        if isinstance(table["rows"], list):
            table["rows"] = [
                {**kept["rows"][0], **row} if row else row for row in table["rows"] if isinstance(row, dict)
            ] or [1]
        data = json.dumps({**table, "about": kept["about"]}).encode()
    path.write_bytes(data)
    assert perplexity(model, tmp_path / "out", capsys) == before
