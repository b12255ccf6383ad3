"""Names of models, encodings and folders are never read as formulas."""

from __future__ import annotations

import pytest

from farfield import check, compare, find, trf, windows
from farfield.models.names import FAMILIES, family_of
from farfield.zoo import ENCODINGS

# What each name leads to: an encoding of the zoo, or None for a sentence.
NAMES: dict[str, str | None] = {
    "bloom": "alibi", "BLOOM": "alibi", "bloomz": "alibi", "bloom-560m": "alibi", "bigscience/bloom": "alibi",
    "bigscience/bloomz-7b1": "alibi", "mpt": "alibi", "MPT-7B": "alibi", "mosaicml/mpt-30b-instruct": "alibi",
    "falcon-rw": "alibi", "tiiuae/falcon-rw-1b": "alibi", "baichuan-13b": "alibi", "Baichuan2-13B-Chat": "alibi",
    "jais": "alibi", "core42/jais-13b": "alibi", "btlm-3b-8k": "alibi", "replit-code-v1-3b": "alibi",
    "llama": "rope", "Llama-2-7b-hf": "rope", "meta-llama/Llama-3.1-8B": "rope", "codellama": "rope",
    "tinyllama": "rope", "vicuna": "rope", "alpaca": "rope", "qwen": "rope", "qwen2.5": "rope", "Qwen/Qwen3-8B": "rope",
    "mixtral": "rope", "mistralai/Mixtral-8x7B-v0.1": "rope", "falcon-7b": "rope", "tiiuae/falcon-40b": "rope",
    "gemma-2b": "rope", "pythia": "rope", "EleutherAI/pythia-70m": "rope", "gpt-neox": "rope", "gpt_neox": "rope",
    "gpt-j": "rope", "gptj": "rope", "gpt-j-6b": "rope", "phi-2": "rope", "phi4": "rope", "olmo": "rope",
    "OLMo-2-7B": "rope", "smollm": "rope", "yi": "rope", "yi-34b": "rope", "command-r": "rope", "stablelm": "rope",
    "internlm2": "rope", "chatglm3": "rope", "baichuan-7b": "rope", "granite-3.1-8b": "rope", "dbrx": "rope",
    "rotary": "rope", "yarn": "rope", "t5-small": "t5", "flan-t5": "t5", "google/flan-t5-xl": "t5", "mt5": "t5",
    "byt5": "t5", "nope": "none", "NoPE": "none", "gpt neox": "rope",
    "gemma": None, "gemma2-9b": None, "google/gemma-2-9b": None, "gemma-3-4b": None, "mistral": None, "gpt-oss": None,
    "mistral-7b-v0.1": None, "openai/gpt-oss-20b": None, "gpt2": None, "gpt-2": None, "openai-community/gpt2": None,
    "gpt-neo": None, "gpt3": None, "gpt-4": None, "claude": None, "gemini": None, "opt": None, "opt-125m": None,
    "starcoder": None, "starcoder2": None, "phi-3-mini-4k-instruct": None, "phi3": None, "olmo3": None, "fox": "fox",
    "smollm3": None, "llama4": None, "Llama-4-Scout": None, "command-a": None, "exaone-4.0": None, "deepseek": None,
    "deepseek-ai/DeepSeek-V3": None, "kimi": None, "bert": None, "roberta": None, "mamba": None, "jamba": None,
    "rwkv": "rwkv", "retnet": "retnet", "xpos": "xpos", "cable": "cable", "fire": "fire", "cope": "cope",
    "dape": "dape", "bipe": "bipe",
    "streaming-llm": "streaming-llm", "kerple": None, "falcon": None, "baichuan": None, "swin-t": None, "vit-t": None,
    "step-1": None, "transformer-xl": None, "xlnet": None,
    # misspelt, unknown, and paths
    "blom": None, "lama": None, "mistrall": None, "alibbi": None, "falkon": None, "qwn": None, "t-few": None,
    "my-model": None, "mymodel": None, "acme/super-model": None, "runs/mine": None, "runs/t": None, "./runs/mine": None,
    "../t": None, "/tmp/t": None, "~/models/x": None, "config.json": None, "runs/bloom/t": None, "runs/": None,
    "model": None, "attention": None, "position": None, "bias": None, "n": None, "-k*n": None, "-k*d": None,
    "-log(1 + n)": None, "-k*dist": None, "-a*m**p": None, "k": None, "-c": None, "-k*lag": None, "gpt": None,
    "lex": None, "grok-1": None,
}  # fmt: skip


def test_there_are_enough_names() -> None:
    assert len(NAMES) >= 150


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_never_read_as_a_formula(name: str) -> None:
    wanted = NAMES[name]
    if wanted is None and name not in ENCODINGS:
        with pytest.raises(ValueError, match=r".") as caught:
            check(name)
        assert "\n" not in str(caught.value)
    elif wanted is not None:
        result = find(name)
        assert result.name == wanted
        assert result.text == find(wanted).text
        assert "(" in result.asked or (name == wanted and result.source)  # with its source


@pytest.mark.parametrize("wrong", ["-k*n", "runs/mine", "gpt-oss", "-log(1 + n)"])
def test_no_function_reads_them(wrong: str) -> None:
    for ask in (lambda: trf(wrong, "0.1"), lambda: windows(wrong, "0.1", "1", 4), lambda: compare(wrong, "alibi")):
        with pytest.raises(ValueError, match=r"distance is called t|not a formula"):
            ask()


def test_the_sentence_says_how_the_distance_is_called() -> None:
    with pytest.raises(ValueError, match=r"the distance is called t; you wrote n \(column 4\)"):
        check("-k*n")


def test_a_folder_that_is_called_like_a_model_is_a_folder(tmp_path, monkeypatch) -> None:
    (tmp_path / "runs" / "bloom").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="path"):
        find("runs/bloom")


@pytest.mark.parametrize(
    "formula", ["-k*t", "a-t", "alpha - t", "k/t", "log(t)-t", "-alpha*t", "0", "pi", "2-t", "beta-gamma*t", "-2", "t"]
)
def test_formulas_stay_formulas(formula: str) -> None:
    assert find(formula).asked == ""


def test_every_family_has_a_source_and_an_encoding_that_exists() -> None:
    for family in FAMILIES:
        assert family.source
        assert family.encoding is None or family.encoding in ENCODINGS
        assert family.position


def test_the_most_particular_family_wins() -> None:
    for name, wanted in {"llama-4-scout": "Llama 4", "gemma-2-2b": "Gemma 2", "falcon-rw-7b": "Falcon-RW"}.items():
        family = family_of(name)
        assert family is not None
        assert family.name == wanted
