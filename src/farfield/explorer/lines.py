"""The command and the lines of Python that give what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from farfield.explorer.question import Question
from farfield.theory.fields.receptive import EPSILONS, exact_epsilon
from farfield.zoo import Encoding


def code(encoding: Encoding, text: str, values: Mapping[str, str], q: Question, verdict: str) -> dict[str, str]:
    """The lines behind an encoding: `command`, `python` and, where a window is certified, `window`."""
    usual = exact_epsilon(q.epsilon) in [exact_epsilon(e) for e in EPSILONS]
    epsilon, start = (None if usual else q.epsilon), q.start or None
    out = {"command": _command("check", [text], values, from_=start, epsilon=epsilon)}
    out["python"] = _python(encoding, text, values, q, verdict == "converges")
    if verdict == "converges" and not q.start:
        out["window"] = _command("window", [text], values, heads=1, logit_bound=q.bound, epsilon=q.epsilon)
    return out


def design_code(text: str, values: Mapping[str, str], reach: int, epsilon: str) -> dict[str, str]:
    """The lines behind a designed value."""
    return {
        "command": _command("design", [text], values, reach=reach, epsilon=epsilon),
        "python": f'import farfield as ff\n\nprint(ff.design({text!r}, {reach}, "{epsilon}"{_given(values)}).text)',
    }


def _command(verb: str, names: Sequence[str], values: Mapping[str, str], **options: str | int | None) -> str:
    """A line for a shell; a formula and a value are quoted, however they were typed."""
    words = ["farfield", verb, *names]
    for name, value in values.items():
        words += ["--set", f"{name}={value}"]
    for name, option in options.items():
        if option is not None:
            words += [f"--{name.rstrip('_').replace('_', '-')}", str(option)]
    return shlex.join(words)


def _python(encoding: Encoding, text: str, values: Mapping[str, str], q: Question, converges: bool) -> str:
    more = (f", start={q.start}" if q.start else "") + (_given(values) if encoding.formula is not None else "")
    out = ["import farfield as ff", "", f"verdict = ff.check({text!r}{more})"]
    out.append('print(verdict.verdict, *verdict.proof, sep="\\n")')
    if converges and encoding.formula is not None and encoding.formula.is_class:
        out.append(f'print(ff.trf({text!r}, "{q.epsilon}"{more}))')
        out.append(f'print(ff.windows({text!r}, "{q.epsilon}", "{q.bound}", 1{more}).heads[0].tokens)')
    elif converges:
        out.append(f"weights = ff.series({text!r}{more})")
        out.append("print(weights.B())")
        out.append(f'print(ff.trf({text!r}, "{q.epsilon}"{more}))')
        out.append(f'print(ff.smallest_window(weights, "{q.epsilon}", "{q.bound}"))')
    return "\n".join(out)


def _given(values: Mapping[str, str]) -> str:
    """The argument that gives parameters their values."""
    return f", parameters={dict(values)!r}" if values else ""
