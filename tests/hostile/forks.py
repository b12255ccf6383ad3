"""Runs commands in processes with limits: imports once what they need, then forks a process for each.

It reads one JSON object a line: `{"arguments": [...], "cwd", "environment", "seconds", "megabytes", "file_size",
"process", "copies"}`, and answers with one: `{"status", "out", "err", "cpu", "megabytes"}`. A process that uses more
processor time than `seconds` is ended by the system (status -24), one that asks for more memory gets none.
"""

import json
import os
import resource
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from farfield.cli import main


def child(order: dict[str, Any], out: int, err: int) -> None:
    """What the forked process does: one command, with its limits."""
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.chdir(order.get("cwd", "."))
    for name, value in order.get("environment", {}).items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (order.get("megabytes", 1500) << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (order.get("seconds", 20), order.get("seconds", 20) + 1))
    if order.get("file_size") is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (order["file_size"], order["file_size"]))
    if order.get("process") is not None:
        os.getpid = lambda: order["process"]
    sys.argv = ["farfield", *order["arguments"]]
    main(order["arguments"])


def forked(order: dict[str, Any], out: int, err: int) -> int:
    """Start a process for one command, and give its number."""
    process = os.fork()
    if process:
        return process
    status: Any = 0
    try:
        child(order, out, err)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)


def start(order: dict[str, Any]) -> Any:
    """How a command ended; with `copies`, how each of so many at once did."""
    if order.get("copies"):
        alone = {**order, "copies": None}
        with ThreadPoolExecutor(order["copies"]) as threads:
            return list(threads.map(start, [alone] * order["copies"]))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        _, ended, used = os.wait4(forked(order, out.fileno(), err.fileno()), 0)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read(200_000).decode(errors="replace"))
    return {
        "status": os.waitstatus_to_exitcode(ended),
        "out": said[0],
        "err": said[1],
        "cpu": round(used.ru_utime + used.ru_stime, 2),
        "megabytes": used.ru_maxrss >> 10,
    }


if __name__ == "__main__":
    for verb in ("check", "compare", "design", "window", "inspect", "zoo", "explore"):
        import_module(f"farfield.commands.{verb}")
    import matplotlib

    matplotlib.use("Agg")
    import_module("matplotlib.pyplot")
    if "torch" in sys.argv:
        import transformers.models.auto.modeling_auto  # noqa: F401

        import farfield.measure
        import farfield.nn.decoder.model
        import farfield.training.run  # noqa: F401
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(start(json.loads(line))), flush=True)
