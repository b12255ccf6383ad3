"""How much of the source a task walks through: files of src/farfield, functions in them, calls.

    python benchmarks/walks.py                              check, training, attention
    python benchmarks/walks.py attention --list             also each file, with its functions and calls
    python benchmarks/walks.py --source /tmp/old/src        the same tasks in another checkout

What is counted: Python functions defined in src/farfield that are called while the task runs, in all threads, after
import. A function is one `def`, lambda or comprehension; each entry into it is a call, the resumption of a generator
too. Module and class bodies are not counted, and neither is what happens while modules are imported: a first process
runs the task and notes which modules it loads, a second one imports these and then walks, with empty caches. The tasks:

    check       farfield check "-2*log(t+1)", from the command line to the printed answer
    training    farfield.train of one step with ALiBi, preset tiny: from the settings to the finished run folder
    attention   farfield.nn.attention, forward, 2,048 tokens, 8 heads of width 64, the bias of ALiBi ready
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

Walk = Counter[tuple[str, int, str]]  # calls by file, line and name of a function


def check_task() -> Callable[[], object]:
    from farfield.cli import main

    def task() -> None:
        try:
            main(["check", "-2*log(t+1)"])
        except SystemExit as end:
            if end.code:
                raise

    return task


def training_task() -> Callable[[], object]:
    from farfield import Settings, train

    settings = Settings(encoding="alibi", corpus="python", preset="tiny", steps=1)
    folder = tempfile.TemporaryDirectory()

    def task() -> None:
        with folder as name:
            train(settings, Path(name) / "run", device="cpu", log_to="none", progress=False, say=lambda line: None)

    return task


def attention_task() -> Callable[[], object]:
    import torch

    from farfield.nn import Bias, attention

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 8, 2048, 64) for _ in range(3))
    with torch.no_grad():
        bias = Bias("alibi", 8, 64)(2048)

    def task() -> None:
        with torch.no_grad():
            attention(q, k, v, bias)

    return task


TASKS = {"check": check_task, "training": training_task, "attention": attention_task}


def walk(task: Callable[[], object], source: Path) -> Walk:
    """The calls of functions below a folder while a task runs."""
    calls: Walk = Counter()
    inside = str(source / "farfield") + os.sep

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(inside) and code.co_flags & CO_OPTIMIZED:  # no body
            calls[code.co_filename.removeprefix(inside), code.co_firstlineno, code.co_qualname] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        task()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return calls


def in_child(name: str, source: Path, modules: list[str]) -> dict[str, Any]:
    """Walk in a fresh process that has imported these modules before."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, name, "--source", str(source), "--child"]
    child = subprocess.run(
        command, input=json.dumps(modules), env=environment, capture_output=True, text=True, check=False
    )
    if child.returncode:
        sys.exit(child.stderr)
    return json.loads(child.stdout)


def child(name: str, source: Path) -> None:
    """Import, walk, and write what was walked through and which modules are loaded."""
    for module in json.load(sys.stdin):
        importlib.import_module(module)
    with contextlib.redirect_stdout(io.StringIO()):
        calls = walk(TASKS[name](), source)
    modules = sorted(module for module in sys.modules if module.split(".")[0] == "farfield")
    print(json.dumps({"modules": modules, "calls": [[*function, times] for function, times in calls.items()]}))


def main() -> None:
    """Print one line for each task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], help="all unless given")
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src", help="a folder with farfield")
    parser.add_argument("--list", action="store_true", help="each file with its functions and calls")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    source = options.source.resolve()
    if options.child:
        return child(options.tasks[0], source)
    print(f"{'task':10} {'files':>6} {'functions':>10} {'calls':>9}")
    for name in options.tasks or TASKS:
        calls = in_child(name, source, in_child(name, source, [])["modules"])["calls"]
        files = Counter(file for file, *_ in calls)
        print(f"{name:10} {len(files):6} {len(calls):10,} {sum(times for *_, times in calls):9,}")
        for file in sorted(files) if options.list else ():
            print(f"    {file:42} {files[file]:4} {sum(times for f, *_, times in calls if f == file):9,}")


if __name__ == "__main__":
    main()
