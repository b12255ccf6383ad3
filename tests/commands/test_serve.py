"""`farfield serve`, asked by the client that people use."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farfield.commands.serve import read

openai = pytest.importorskip("openai", reason="the extra test has it")
PROMPT = "def farfield(t):\n    return"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from farfield import Settings, train

    folder = tmp_path_factory.mktemp("serve") / "alibi"
    settings = Settings(preset="tiny", encoding="-k*t", parameters={"k": 0.25})
    train(settings, folder, progress=False, log_to="none", say=lambda sentence: None)
    return folder


@pytest.fixture(scope="module")
def address(run):
    command = [sys.executable, "-m", "farfield", "serve", str(run), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert "is served at http://127.0.0.1:" in said
        yield said.split(" at ")[1].split()[0]
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0


@pytest.fixture
def client(address):
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=300) as opened:
        yield opened


def test_it_says_which_model_it_has(client, run):
    assert [model.id for model in client.models.list()] == [str(run)]


def test_a_completion_has_its_certificate(client, run):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    done = client.completions.create(model=str(run), prompt=PROMPT, max_tokens=40, temperature=0)
    [choice] = done.choices
    assert choice.finish_reason in ("length", "stop")
    assert done.usage.completion_tokens <= 40
    assert choice.certificate["holds"] is True
    assert choice.certificate["epsilon"] == pytest.approx(1e-3)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(run), AutoTokenizer.from_pretrained(run)
    ids = tokenizer(PROMPT, return_tensors="pt", return_token_type_ids=False)
    alone = model.generate(**ids, max_new_tokens=40, do_sample=False)[0, ids["input_ids"].shape[1] :]
    assert choice.text == tokenizer.decode(alone, skip_special_tokens=True)


def test_several_prompts_tokens_and_seeds(client, run):
    ask = {"model": str(run), "max_tokens": 12, "seed": 3}
    one = client.completions.create(prompt=["def ", [100, 101, 102]], **ask)
    two = client.completions.create(prompt=["def ", [100, 101, 102]], **ask)
    assert [c.text for c in one.choices] == [c.text for c in two.choices]
    assert [c.index for c in one.choices] == [0, 1]


def test_a_stream_gives_the_same_text(client, run):
    ask = {"model": str(run), "prompt": PROMPT, "max_tokens": 30, "temperature": 0}
    whole = client.completions.create(**ask).choices[0]
    parts = [part.choices[0] for part in client.completions.create(**ask, stream=True)]
    assert "".join(part.text for part in parts) == whole.text
    assert parts[-1].finish_reason == whole.finish_reason
    assert parts[-1].certificate["holds"] is True
    assert len(parts) > 3


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"prompt": ""}, "the prompt has no tokens"),
        ({"prompt": [10**9]}, "there is no token"),
        ({"max_tokens": 0}, "max_tokens is a whole number"),
        ({"temperature": 2, "n": 2}, "n can only be 1 here"),
        ({"logprobs": 5}, "logprobs are not given here"),
        ({"stream": True, "prompt": ["a", "b"]}, "a stream has one prompt"),
    ],
)
def test_a_mistake_is_one_sentence(client, run, wrong, sentence):
    with pytest.raises(openai.BadRequestError, match=sentence):
        client.completions.create(**{"model": str(run), "prompt": "x", **wrong})


def test_another_host_is_turned_away(address):
    host = address.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("GET", "/v1/models", headers={"Host": "evil.example"})
    assert connection.getresponse().status == 400
    connection.close()


@pytest.mark.parametrize(
    "body",
    [[], {}, {"prompt": 3}, {"prompt": []}, {"prompt": [[]]}, {"prompt": "x", "stop": [""]}, {"prompt": "x", "zz": 1},
     {"prompt": "x", "top_p": "much"}, {"prompt": "x", "seed": 1.5}, {"prompt": [True]}, {"prompt": ["x"] * 65}],
)  # fmt: skip
def test_what_is_no_request_is_refused(body):
    with pytest.raises(ValueError, match=r"\w"):
        read(json.loads(json.dumps(body)))


def test_a_folder_that_does_not_exist_fails_at_once(tmp_path: Path):
    command = [sys.executable, "-m", "farfield", "serve", str(tmp_path / "nothing")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2
    assert "there is no folder" in done.stderr
