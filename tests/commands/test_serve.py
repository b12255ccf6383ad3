"""A run folder behind `transformers serve`, started as docs/howto/serve-a-model.md says, asked by OpenAI's client."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "serve-a-model.md"
PROMPT = "def farfield(t):\n    return"
openai = pytest.importorskip("openai", reason="the extra serve has the client")
pytest.importorskip("fastapi", reason="the extra serve has the server")
pytest.importorskip("transformers.cli.serving.completion", reason="/v1/completions came with transformers 5.6")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from farfield import Settings, train

    folder = tmp_path_factory.mktemp("serve") / "alibi"
    settings = Settings(preset="tiny", encoding="-k*t", parameters={"k": 0.25})
    train(settings, folder, progress=False, log_to="none", say=lambda sentence: None)
    return folder


@pytest.fixture(scope="module")
def client(run):
    """A client of the page's server, whose cache takes no text of more than 100 tokens: so it shows itself."""
    script = re.search(r"```python no-run\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert "epsilon=1e-3)" in script
    (run.parent / "serve.py").write_text(script.replace("epsilon=1e-3)", "epsilon=1e-3, context=100)"))
    start = re.search(r"^python (serve\.py serve .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[1]
    with socket.create_server(("localhost", 0)) as free:
        port = free.getsockname()[1]
    words = start.replace("runs/type1", str(run)).replace("8000", str(port)).split()
    with (
        (run.parent / "log").open("w") as log,
        subprocess.Popen([sys.executable, *words], cwd=run.parent, stdout=log, stderr=subprocess.STDOUT) as server,
    ):
        for _ in range(600):
            if "Application startup complete" in (run.parent / "log").read_text() or server.poll() is not None:
                break
            time.sleep(0.2)
        assert server.poll() is None, (run.parent / "log").read_text()
        with openai.OpenAI(base_url=f"http://localhost:{port}/v1", api_key="none", max_retries=0, timeout=300) as asker:
            yield asker
        server.send_signal(signal.SIGINT)
        server.wait(60)


def written(run, stop=None):
    """What the model writes by itself, with every key."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    import farfield  # noqa: F401 - makes the model known

    model, tokenizer = AutoModelForCausalLM.from_pretrained(run), AutoTokenizer.from_pretrained(run)
    ids = tokenizer(PROMPT, return_tensors="pt", return_token_type_ids=False)
    done = model.generate(**ids, max_new_tokens=30, do_sample=False, stop_strings=stop, tokenizer=tokenizer)
    return tokenizer.decode(done[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)


def test_the_page_of_the_server_is_true(client, run):
    ask = {"model": str(run), "max_tokens": 30, "temperature": 0}
    answer = client.completions.create(prompt=PROMPT, **ask)
    assert answer.choices[0].text == written(run)
    assert answer.usage.completion_tokens == 30
    parts = [part.choices[0].text for part in client.completions.create(prompt=PROMPT, stream=True, **ask)]
    assert "".join(parts) == answer.choices[0].text
    assert len(parts) > 10
    stop = [answer.choices[0].text[3:6]]
    short = client.completions.create(prompt=PROMPT, stop=stop, **ask).choices[0]
    assert short.finish_reason == "stop"
    assert short.text == written(run, stop)
    assert len(short.text) < len(answer.choices[0].text)


def test_the_servers_cache_is_the_bounded_one(client, run):
    ask = {"model": str(run), "max_tokens": 5, "temperature": 0}
    assert client.completions.create(prompt="x" * 90, **ask).usage.total_tokens == 95
    with pytest.raises(openai.InternalServerError):
        client.completions.create(prompt="x" * 120, **ask)
    again = client.with_options(max_retries=2)  # the server has closed the connection of the request that failed
    assert again.completions.create(prompt="x" * 90, **ask).usage.total_tokens == 95
    sentence = "made for texts of at most 100 tokens"
    for _ in range(100):  # the log is written after the answer
        if sentence in (run.parent / "log").read_text():
            return
        time.sleep(0.1)
    pytest.fail((run.parent / "log").read_text())
