"""The server answers its own page and nobody else, and a hostile text gets a sentence and nothing more."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from farfield.explorer import server

FARFIELD = Path(sys.executable).with_name("farfield")
HOSTILE = json.loads((Path(__file__).parents[1] / "oracles" / "hostile.json").read_text(encoding="utf-8"))
LEGAL = {"t**t**t**t**t**t", "exp(exp(exp(exp(exp(t)))))"}
DOOR = pytest.mark.hostile("the explorer's door")
PAGE = ("/", "/explorer.js", "/explorer.css", "/icon.svg", "/api/start")


def explore(*arguments):
    return subprocess.run(
        [FARFIELD, "explore", "--no-browser", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def refused(done):
    """One sentence on stderr, status 2."""
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("farfield: ")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


# ------------------------------------------------------------------------------------------------ hostile texts
@DOOR
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_formula_gets_a_sentence(explorer, text):
    for kind in ("verdict", "condition", "design"):
        answer = explorer.get(f"/api/{kind}", [("f", text)])
        if text in LEGAL and answer.status == 200:
            assert answer.data["verdict"] is None or answer.data["verdict"]["verdict"] in ("diverges", "undecided")
            continue
        assert answer.status == 400
        assert "\n" not in answer.data["error"]
        assert len(answer.data["error"]) < 300
    assert list(explorer.folder.iterdir()) == [], "a hostile text was executed"


@pytest.mark.hostile("the explorer's door", len(HOSTILE))
def test_a_hostile_text_as_a_value_gets_a_sentence(explorer):
    for text in HOSTILE:
        answer = explorer.get("/api/verdict", [("f", "alibi"), ("set", f"0.k={text}")])
        assert answer.status == 400, text
        assert "\n" not in answer.data["error"]
    assert list(explorer.folder.iterdir()) == []


# ------------------------------------------------------------------------------------------------ who may ask, and how
@DOOR
@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", ""]
)
def test_another_host_is_refused(explorer, host):
    for path in PAGE:
        answer = explorer.get(path, headers={"Host": host.format(port=explorer.port)})
        assert answer.status in (400, 421)
        assert b"Farfield explorer" not in answer.body


@DOOR
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_another_origin_is_refused(explorer, origin):
    answer = explorer.get("/api/start", headers={"Origin": origin.format(port=explorer.port)})
    assert answer.status == 403
    assert "own page" in answer.data["error"]


def test_its_own_host_and_origin_are_answered(explorer):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{explorer.port}"
        assert explorer.get("/api/start", headers={"Host": host, "Origin": f"http://{host}"}).status == 200


@DOOR
def test_a_page_elsewhere_cannot_embed_its_answers(explorer):
    assert explorer.get("/api/start", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert explorer.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status == 200  # a link to the page is no harm


@DOOR
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_only_get_is_known(explorer, method):
    for path in PAGE:
        assert explorer.get(path, method=method).status == 405


@DOOR
def test_long_queries_are_refused(explorer):
    assert explorer.get("/api/verdict", [("f", "t" * 9000)]).status == 414
    assert explorer.get("/api/verdict", [("set", "0.k=1")] * 100).status == 400
    with contextlib.suppress(ConnectionError):  # it may hang up before all of it is sent
        assert explorer.get("/" + "a" * 200_000).status >= 400
    assert explorer.get("/").status == 200


@DOOR
@pytest.mark.parametrize(
    "path",
    ["/../server.py", "/%2e%2e/server.py", "/page/index.html", "/index.html", "/api/", "/api/x/y", "/etc/passwd"],
)
def test_there_is_nothing_else(explorer, path):
    answer = explorer.get(path)
    assert answer.status in (400, 404)
    assert b"import" not in answer.body


@pytest.mark.parametrize("path", [*PAGE, "/nothing", "/api/verdict?f=nan", "/api/verdict?f=alibi"])
def test_every_answer_carries_the_policy(explorer, path):
    headers = explorer.get(path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_the_page_asks_no_other_host_and_has_nothing_inline():
    page = Path(__file__).parents[2] / "src" / "farfield" / "explorer" / "page"
    for path in page.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
        assert "http:" not in text
        assert "https:" not in text
        assert "innerHTML" not in text
        assert "eval(" not in text
    html = (page / "index.html").read_text(encoding="utf-8")
    assert " style=" not in html
    assert "<style" not in html
    assert html.count("<script") == html.count('<script type="module" src="')


# ------------------------------------------------------------------------------------------------ slow formulas
SLOW = [("f", "sandwich"), ("set", "0.d=512"), ("context", "65536")]  # its certified window takes half a minute


@DOOR
def test_a_slow_question_is_cut_off(run, tmp_path):
    answer = run(tmp_path).get("/api/window", SLOW)
    assert answer.status == 504
    assert "no answer within 5 seconds" in answer.data["error"]


@DOOR
def test_slow_questions_hold_up_nobody(run, tmp_path):
    running = run(tmp_path, "--seconds", "15")
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(running.get("/api/window", SLOW)), daemon=True) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    between = [running.ask("verdict", ("f", name))["verdict"]["verdict"] for name in ("alibi", "type1", "inverse")]
    assert not answers, "the quick ones came first"
    assert between == ["converges", "converges", "diverges"]
    for thread in threads:
        thread.join(60)
    assert [a.status for a in answers] == [504, 504]
    assert all("cut off" in a.data["error"] for a in answers)
    assert running.ask("verdict", ("f", "alibi"))["verdict"]["verdict"] == "converges"


def test_an_open_connection_is_answered_at_once():
    """With Nagle's algorithm every answer after the first would wait 40 ms for an acknowledgement."""
    with server.listen(0) as own:
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


# ------------------------------------------------------------------------------------------------ the command
def test_ctrl_c_ends_it_and_its_workers(run, tmp_path):
    running = run(tmp_path)
    assert running.ask("verdict", ("f", "alibi"))["name"] == "alibi"
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    if not children.exists():
        pytest.skip("this system does not list a process's children")
    workers = children.read_text().split()
    assert len(workers) == 4
    running.process.send_signal(signal.SIGINT)
    _, err = running.process.communicate(timeout=60)
    assert running.process.returncode == 0
    assert "Traceback" not in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in workers)


def test_a_used_port_gets_a_sentence(explorer):
    assert "is used by another program" in refused(explore("--port", str(explorer.port)))


def test_an_impossible_port_gets_a_sentence():
    assert "from 0 to 65535" in refused(explore("--port", "65536"))


def test_an_impossible_limit_gets_a_sentence():
    assert "up to 3600 seconds" in refused(explore("--port", "0", "--seconds", "0"))


def test_a_missing_study_gets_a_sentence(tmp_path):
    assert "there is no study folder" in refused(explore("--study", str(tmp_path / "none"), "--port", "0"))
    assert "cannot be read" in refused(explore("--study", str(tmp_path), "--port", "0"))


def test_it_brings_no_torch():
    code = "import farfield.explorer.server, farfield.explorer.replies, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
