"""The long attacks, for FARFIELD_MINUTES (60 unless set): `pytest -m long tests/hostile/test_long.py`."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

MINUTES = float(os.environ.get("FARFIELD_MINUTES", "60"))


@pytest.mark.long
@pytest.mark.parametrize("door", ["grammar", "json", "query", "certificate"])
def test_a_door_is_fuzzed(door):
    """Ten minutes each with atheris, where it is installed."""
    pytest.importorskip("atheris")
    program = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, str(program), door, str(int(60 * min(MINUTES, 10)))],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr[-2000:])
    assert done.returncode == 0, done.stderr[-4000:]


def memory(process):
    """Resident megabytes of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


@pytest.mark.long
def test_the_explorer_under_load_outlives_its_workers(run, tmp_path):
    """Six askers, a worker killed every few seconds, silent connections: it answers at the end, in flat memory."""
    running = run(tmp_path, "--seconds", "20")
    end, draw = time.monotonic() + 60 * MINUTES, random.Random(1)
    counts, wrong = {}, []
    texts = ["alibi", "type1", "-t**0.001", "-2*log(t+1)", "sandwich", "-floor(t**1000)", "nan", "(" * 500, "-exp(t)"]
    children = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")

    def ask(seed):
        own = random.Random(seed)
        while time.monotonic() < end:
            kind = own.choice(["verdict", "fields", "window", "design", "heads", "condition"])
            try:
                answer = running.get(f"/api/{kind}", [("f", own.choice(texts))])
            except TimeoutError:  # of this test's own patience, on a busy machine
                counts["late"] = counts.get("late", 0) + 1
                continue
            counts[answer.status] = counts.get(answer.status, 0) + 1
            if answer.status not in (200, 400, 503, 504) or (answer.status != 200 and "\n" in answer.data["error"]):
                wrong.append((answer.status, answer.body[:200]))

    askers = [threading.Thread(target=ask, args=(seed,), daemon=True) for seed in range(6)]
    for asker in askers:
        asker.start()
    time.sleep(30)
    before, killed = memory(running.process.pid), 0
    while time.monotonic() < end:
        time.sleep(draw.uniform(1, 5))
        workers = children.read_text().split()
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(int(draw.choice(workers)), signal.SIGKILL)
            killed += 1
    for asker in askers:
        asker.join(120)
    grown = memory(running.process.pid) - before
    print(f"answers {counts}, {killed} workers killed, memory grown by {grown} MB, wrong: {wrong[:5]}")
    assert wrong == []
    assert running.ask("verdict", ("f", "alibi"))["verdict"]["verdict"] == "converges"
    assert grown < 50


@pytest.mark.long
def test_a_million_tokens_go_through_the_bounded_cache(run_folder):
    """In memory that does not grow, and within epsilon."""
    import torch

    import farfield
    from farfield.measure import load_model

    model = load_model(str(run_folder)).network
    cache = farfield.BoundedCache(model, "1e-3")
    torch.manual_seed(1)
    total, chunk = int(os.environ.get("FARFIELD_TOKENS", "1000000")), 1024
    sizes = []
    with torch.no_grad():
        for begin in range(0, total, chunk):
            ids = torch.randint(0, 256, (1, min(chunk, total - begin)))
            out = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            assert torch.isfinite(out.logits).all()
            sizes.append((cache.bytes(), memory(os.getpid())))
    certificate = cache.certificate()
    print(f"{certificate.tokens:,} tokens, holds: {certificate.holds}, cache {sizes[2][0]} to {sizes[-1][0]} bytes, "
          f"process {sizes[2][1]} to {sizes[-1][1]} MB")  # fmt: skip
    assert certificate.tokens == total
    assert certificate.holds
    assert sizes[-1][0] <= 1.5 * sizes[2][0]
    assert sizes[-1][1] - sizes[2][1] < 200
