"""Model folders of strangers: every verb that takes one answers, or says in one sentence what is wrong."""

import json
import shutil

import pytest
from folders import DEEP, link, pipe, reconfigured, turned, written

pytestmark = pytest.mark.hostile("model folders of strangers")
CONFIG = {  # a field of the configuration, and what a stranger writes there
    "hidden_size": [0, -1, 10**12, "64", None, 3, 1.5, [64], True],
    "num_hidden_layers": [0, -1, 10**9, "2", None, 2.5],
    "num_attention_heads": [0, -1, 7, 10**9, None, "4"],
    "intermediate_size": [0, -1, 10**13, None],
    "vocab_size": [0, -1, 10, 10**12, None],
    "max_position_embeddings": [float("nan"), float("inf"), 0, -1, 10**15, None, "far"],
    "encoding": ["", "nan", "__import__('os').system('touch canary')", "-t**", "albi", "t**t**t", 5, None,
                 ["alibi"], "a" * 9000],
    "encoding_parameters": [{"k": 1}, {"zz": 1}, "k=1", [1], {"k": "1/0"}, {"k": float("nan")}],
    "model_type": ["", "gpt-nine", None, 5, "../../etc", "bloom"],
    "auto_map": [{"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Config"}, 5],
    "architectures": [["EvilForCausalLM"], "x", None, [5]],
    "tie_word_embeddings": ["yes", None, False],
    "dtype": ["float7", 5, "bfloat16"],
    "layer_norm_eps": [float("nan"), float("inf"), -1, "x"],
    "initializer_range": [float("nan"), -1, None],
    "quantization_config": [{"quant_method": "evil"}, 5],
}  # fmt: skip
FIELDS = [(name, value) for name, values in CONFIG.items() for value in values]
EVIL = "open('canary', 'w').write('run')\nraise SystemExit(0)\n"


@pytest.fixture
def model(run_folder, tmp_path):
    shutil.copytree(run_folder, tmp_path / "model")
    (tmp_path / "model" / "finished.json").unlink()
    return tmp_path / "model"


def held(ended, folder):
    """An answer or one sentence; nothing of the folder was run."""
    assert ended["status"] in (0, 2), ended
    assert "Traceback" not in ended["err"], ended["err"]
    if ended["status"] == 2:
        last = [line for line in ended["err"].splitlines() if line.startswith("farfield: ")]
        assert len(last) == 1, ended["err"]
        assert len(last[0]) < 1500
    assert not (folder / "canary").exists()
    assert not (folder.parent / "canary").exists()


def asked(torch_forks, verb, model):
    calls = {
        "generate": ["generate", model, "--prompt", "the cat", "--tokens", "2"],
        "inspect": ["inspect", model],
        "window": ["window", model],
        "evaluate": ["evaluate", model, "--lengths", "8", "--tokens", "16", "--quiet"],
        "needle": ["needle", model, "--trials", "1", "--distances", "1"],
        "receptive": ["receptive", model, "--tokens", "16"],
        "speed": ["speed", model, "--lengths", "8"],
        "replace": ["replace", model, "--encoding", "-k*t", "--out", model.parent / "replaced"],
        "train": ["train", "--from", model, "--steps", "1", "--out", model.parent / "further", "--quiet"],
    }
    return torch_forks(*calls[verb], cwd=str(model.parent), megabytes=4000, seconds=30)


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=[f"{n}={str(v)[:20]}" for n, v in FIELDS])
def test_a_hostile_configuration(torch_forks, model, name, value, attacks):
    path = model / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    (model / "evil.py").write_text(EVIL)
    for verb in ("generate", "inspect", "needle"):
        held(asked(torch_forks, verb, model), model)
    attacks(3)


def without_field(name):
    return reconfigured(lambda fields: fields.pop(name))


def tokenizer_part(part, value):
    def change(model):
        path = model / "tokenizer.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), part: value}))

    return change


def decoder(value):
    return tokenizer_part("decoder", value)


FOLDERS = {
    **{f"no {name}": without_field(name) for name in ("hidden_size", "vocab_size", "model_type", "encoding")},
    "tokenizer is empty": written("tokenizer.json", b""),
    "tokenizer is deep": written("tokenizer.json", DEEP),
    "tokenizer is a pipe": pipe("tokenizer.json"),
    "tokenizer is /dev/zero": link("tokenizer.json", "/dev/zero"),
    "tokenizer settings are a list": written("tokenizer_config.json", b"[]"),
    "tokenizer settings are deep": written("tokenizer_config.json", DEEP),
    "tokenizer of a class": written(
        "tokenizer_config.json", b'{"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.T", null]}}'
    ),
    "tokenizer of pure Python": lambda model: [
        (model / "tokenizer.json").unlink(),
        (model / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}'),
    ],
    "tokenizer whose decoder grows": decoder({"type": "Replace", "pattern": {"Regex": "."}, "content": "x" * 10**6}),
    "tokenizer whose decoder doubles": decoder(
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 60}
    ),
    "tokenizer with a prefix that no word has": tokenizer_part("model", {
        "type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]], "continuing_subword_prefix": "####",
    }),
    "tokenizer that merges in a circle": tokenizer_part("model", {
        "type": "BPE", "vocab": {"a": 0, "##": 1}, "merges": [["a", "##"]] * 3, "continuing_subword_prefix": "##",
    }),
    "tokenizer that names its model twice": lambda model: (model / "tokenizer.json").write_bytes(
        b'{"model": {"type": "BPE", "vocab": {}, "merges": []},' + (model / "tokenizer.json").read_bytes()[1:]
    ),
    "configuration that names its width twice": lambda model: (model / "config.json").write_bytes(
        b'{"hidden_size": 8,' + (model / "config.json").read_bytes()[1:]
    ),
    "configuration with a mark of its bytes": lambda model: (model / "config.json").write_bytes(
        b"\xef\xbb\xbf" + (model / "config.json").read_bytes()
    ),
    "settings of generation are half": written("generation_config.json", b'{"max_new'),
    "settings of generation are absurd": written(
        "generation_config.json", b'{"num_beams": -5, "eos_token_id": "x", "temperature": -1}'
    ),
    "weights are /dev/zero": link("model.safetensors", "/dev/zero"),
    "weights are a pickle": lambda model: (model / "model.safetensors").rename(model / "pytorch_model.bin"),
    "weights of another type": turned(lambda t: {n: x.long() for n, x in t.items()}),
    "weights are not finite": turned(lambda t: {n: x.fill_(float("nan")) for n, x in t.items()}),
    "weights of other shapes": turned(lambda t: {n: x.repeat(2, *[1] * (x.ndim - 1)) for n, x in t.items()}),
    "weights with more tensors": turned(lambda t: {**t, "evil.weight": next(iter(t.values())).clone()}),
    "an index of files elsewhere": written(
        "model.safetensors.index.json", b'{"metadata": {}, "weight_map": {"x": "../../etc/passwd"}}'
    ),
    "configuration links to itself": link("config.json", "config.json"),
}  # fmt: skip
DAMAGED = [name for name in FOLDERS if name.startswith("weights ")]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_hostile_folder(torch_forks, model, name, attacks):
    FOLDERS[name](model)
    (model / "evil.py").write_text(EVIL)
    for verb in ("generate", "evaluate", "inspect", "window", "needle"):
        ended = asked(torch_forks, verb, model)
        held(ended, model)
        # weights are not looked at by these two
        assert name not in DAMAGED or ended["status"] == 2 or verb in ("inspect", "window"), (verb, ended)
    attacks(5)


@pytest.mark.long
@pytest.mark.parametrize("name", [*FOLDERS, *range(len(FIELDS))])
def test_a_hostile_folder_in_every_other_verb(torch_forks, model, name):
    FOLDERS.get(name, lambda folder: reconfigured(lambda fields: fields.update([FIELDS[name]]))(folder))(model)
    (model / "evil.py").write_text(EVIL)
    for verb in ("evaluate", "receptive", "speed", "replace", "train"):
        ended = asked(torch_forks, verb, model)
        held(ended, model)
        assert name not in DAMAGED or ended["status"] == 2, (verb, ended)


def test_weights_that_are_not_finite_are_no_number(torch_forks, model):
    FOLDERS["weights are not finite"](model)
    assert torch_forks.refusal("evaluate", model, "--lengths", "8", "--tokens", "16", megabytes=4000)
