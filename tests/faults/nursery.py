"""Starts training processes by the dozen, and kills them where it is told to.

Importing torch and transformers takes seconds, a tiny run less than one. So this process imports once and forks a real
process for each run, or several that share one. It reads one JSON object a line: `{"run", "settings", "kill",
"processes", "means"}`, and answers with one: how the process ended. `kill` is null, `{"seconds": s}` (SIGKILL from
outside after s seconds), `{"operation": n, "when": "before" | "during" | "after"}` (the process kills itself with
SIGKILL at its n-th write, sync or rename), or `{"lines": n, "signal": s}` (a signal from outside once the metrics have
n lines); `rank` says which of several processes it happens to. When one of them dies, the others are ended as torchrun
does. `file_size` limits every file of the process.
"""

import json
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers.models.auto.modeling_auto  # noqa: F401

import farfield.nn.decoder.model
import farfield.training.loop
from farfield.data import durable
from farfield.training import run as training
from farfield.training.settings import preset_settings


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
                    for file in path.iterdir() if path.is_dir() else [path]:
                        os.truncate(file, file.stat().st_size // 2)
                die()

        return operation

    durable.write_file = wrapped("write", durable.write_file, lambda path, data: path)
    durable.sync_file = wrapped("sync", durable.sync_file, lambda path: None)
    durable.sync_folder = wrapped("sync", durable.sync_folder, lambda path: None)
    durable.rename = wrapped("rename", durable.rename, lambda old, new: None)
    durable.write_with = wrapped("write", durable.write_with, lambda write, path: path)


def train_here(order: dict[str, Any], rank: int, port: int) -> None:
    """What the forked process does: one run, start to end."""
    run = Path(order["run"])
    if order["processes"] > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(order["processes"])}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with open(f"{run}.said", "a") as said:
        os.dup2(said.fileno(), 2)
    if order["kill"] and "operation" in order["kill"] and rank == order["kill"].get("rank", 0):
        count_operations(order["kill"], Path(f"{run}.operations"))
    if order["file_size"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_size"], order["file_size"]))
    settings = preset_settings("tiny", **order["settings"])
    result = training.train(settings, run, progress=False, log_to="none", **order["means"])
    if result.signal:
        os._exit(128 + result.signal)


def lines_of(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def ended(child: int) -> bool:
    """Whether a process is over, without taking its status away."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def forked(order: dict[str, Any], rank: int, port: int) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        train_here(order, rank, port)
        status = 0
    except ValueError as error:
        print(error, file=sys.stderr, flush=True)
        status = 2
    finally:
        os._exit(status)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def start(order: dict[str, Any]) -> dict[str, Any]:
    began, port = time.monotonic(), free_port()
    children = [forked(order, rank, port) for rank in range(order["processes"])]
    kill = order["kill"]
    child = children[(kill or {}).get("rank", 0)]
    if kill and "seconds" in kill:
        while time.monotonic() - began < kill["seconds"] and not ended(child):
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    elif kill and "signal" in kill:
        while lines_of(Path(order["run"]) / "metrics.jsonl") < kill["lines"]:
            time.sleep(0.001)
        os.kill(child, kill["signal"])
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
    patience = time.monotonic() + (5.0 if statuses[0] else 60.0)
    for other in set(children) - {child}:
        while not ended(other) and time.monotonic() < patience:
            time.sleep(0.01)
        if not ended(other):
            os.kill(other, signal.SIGKILL)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]))
    return {"status": statuses[0], "others": statuses[1:], "seconds": time.monotonic() - began}


if __name__ == "__main__":
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):  # nohup and & may have them ignored
        signal.signal(one, signal.SIG_DFL)
    assert farfield.nn.decoder.model
    assert farfield.training.loop
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(start(json.loads(line))), flush=True)
