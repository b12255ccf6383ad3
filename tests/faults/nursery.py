"""Starts training processes by the dozen, and kills them where it is told to.

Importing torch and transformers takes seconds, a tiny run less than one. So this process imports once and forks a real
process for each run. It reads one JSON object a line: `{"run", "settings", "kill"}`, and answers with one: how the
process ended. `kill` is null, `{"seconds": s}` (SIGKILL from outside after s seconds), `{"operation": n, "when":
"before" | "during" | "after"}` (the process kills itself with SIGKILL at its n-th write, sync or rename), or `{"lines":
n, "signal": s}` (a signal from outside once the metrics have n lines). `file_size` limits every file of the process.
"""

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers.models.auto.modeling_auto  # noqa: F401

import farfield.nn.decoder.model
import farfield.training.assembly
from farfield.data import durable
from farfield.training import estimate
from farfield.training import run as training
from farfield.training.settings import preset_settings

torch.set_num_threads(1)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def count_operations(kill: dict[str, Any], log: Path) -> None:
    """Wrap every write, sync and rename, so that the chosen one is the last."""
    done = 0

    def wrapped(name: str, call: Callable[..., None], target: Callable[..., Path | None]) -> Callable[..., None]:
        def operation(*arguments: Any) -> None:
            nonlocal done
            done += 1
            last = done == kill["operation"]  # decided now: a rename syncs, which counts too
            with log.open("a") as file:
                file.write(f"{done} {name}\n")
            if last and kill["when"] == "before":
                die()
            call(*arguments)
            if last:
                path = target(*arguments)
                if kill["when"] == "during" and path is not None:
                    os.truncate(path, path.stat().st_size // 2)
                die()

        return operation

    durable.write_file = wrapped("write", durable.write_file, lambda path, data: path)
    durable.sync_file = wrapped("sync", durable.sync_file, lambda path: None)
    durable.sync_folder = wrapped("sync", durable.sync_folder, lambda path: None)
    durable.rename = wrapped("rename", durable.rename, lambda old, new: None)
    durable.write_with = wrapped("write", durable.write_with, lambda write, path: path)


def train_here(order: dict[str, Any]) -> None:
    """What the forked process does: one run, start to end."""
    run = Path(order["run"])
    with open(f"{run}.said", "a") as said:
        os.dup2(said.fileno(), 2)
    # the measurement before the start says nothing here and takes as long as the run
    estimate.measure = lambda *_: estimate.Estimate(0, 0.0, 0, 0.0)
    if order["kill"] and "operation" in order["kill"]:
        count_operations(order["kill"], Path(f"{run}.operations"))
    if order["file_size"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_size"], order["file_size"]))
    result = training.train(preset_settings("tiny", **order["settings"]), run, progress=False, log_to="none")
    if result.signal:
        os._exit(128 + result.signal)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ended(child: int) -> bool:
    """Whether a process is over, without taking its status away."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def start(order: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            train_here(order)
            status = 0
        except ValueError as error:
            print(error, file=sys.stderr, flush=True)
            status = 2
        finally:
            os._exit(status)
    kill = order["kill"]
    if kill and "seconds" in kill:
        while time.monotonic() - began < kill["seconds"] and not ended(child):
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    elif kill and "signal" in kill:
        while lines_of(Path(order["run"]) / "metrics.jsonl") < kill["lines"]:
            time.sleep(0.001)
        os.kill(child, kill["signal"])
    _, status = os.waitpid(child, 0)
    return {"status": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - began}


if __name__ == "__main__":
    assert farfield.nn.decoder.model
    assert farfield.training.assembly
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(start(json.loads(line))), flush=True)
