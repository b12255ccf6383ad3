"""The explorer inside a browser: Pyodide runs this module, and JavaScript asks it instead of a server.

There is no numpy there. What numpy does elsewhere, the weights at many distances in double precision, is done by
page/floats.js, which reads the same expression.
"""

from __future__ import annotations

import json
import time
from array import array
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from farfield.explorer.question import read
from farfield.explorer.replies import refusal, reply
from farfield.formula import Formula
from farfield.formula.tree import Node
from farfield.theory.verdict import horizon

Tree = list["str | float | Tree"]

if not hasattr(time, "thread_time"):  # a browser's Python has one thread, and no clock for it
    time.thread_time = time.process_time


def begin(weights: Callable[[str, bool, int, int], Any]) -> None:
    """Take the weights from a function of JavaScript: (expression as JSON, is it the weight, start, terms)."""

    def evaluate(formula: Formula, start: int, terms: int) -> array[float]:
        return array("d", weights(json.dumps(tree(formula.node)), formula.weight, start, terms).to_bytes())

    horizon.evaluate = evaluate


def respond(kind: str, fields: str) -> str:
    """The reply to a question whose fields are a JSON list of pairs, as JSON; a mistake is {"error": ...}."""
    try:
        question = read(kind, [(name, value) for name, value in json.loads(fields)])
    except ValueError as error:
        return json.dumps(refusal(error))
    answer, fault = reply(question)
    if fault:
        print(fault)  # on the browser's console
    return json.dumps(answer, allow_nan=False)


def tree(node: Node) -> Tree:
    """An expression as plain lists: its operation, its value if it has one, and its arguments."""
    if isinstance(node.value, Fraction):
        return ["number", float(node.value)]
    return [node.op, *([] if node.value == "" else [str(node.value)]), *(tree(a) for a in node.args)]
