"""The command and the lines of Python that give what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from farfield.explorer.question import Question
from farfield.theory.fields.receptive import EPSILONS, exact_epsilon
from farfield.zoo import Encoding


def code(found: Encoding, text: str, values: Mapping[str, str], q: Question, verdict: str) -> dict[str, str]:
    """The lines behind an encoding: `command`, `python` and, where a window is certified, `window`."""
    usual = exact_epsilon(q.epsilon) in [exact_epsilon(e) for e in EPSILONS]
    epsilon, start = (None if usual else q.epsilon), q.start or None
    out = {"command": _command("check", [text], values, from_=start, epsilon=epsilon)}
    out["python"] = _python(found, text, values, q, verdict == "converges")
    if verdict == "converges" and not q.start:
        out["window"] = _command("window", [text], values, heads=1, logit_bound=q.bound, epsilon=q.epsilon)
    return out


def design_code(text: str, values: Mapping[str, str], reach: int, epsilon: str) -> dict[str, str]:
    """The lines behind a designed value."""
    family = f"family = ff.find({text!r}).formula.bind({dict(values)!r})"
    return {
        "command": _command("design", [text], values, reach=reach, epsilon=epsilon),
        "python": f'import farfield as ff\n\n{family}\nprint(ff.design(family, {reach}, "{epsilon}").text)',
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


def _python(found: Encoding, text: str, values: Mapping[str, str], q: Question, converges: bool) -> str:
    if found.formula is None:
        return f"import farfield as ff\n\nprint(ff.check({text!r}).proof)"
    after = f", start={q.start}" if q.start else ""
    out = ["import farfield as ff", "", f"formula = ff.find({text!r}).formula.bind({dict(values)!r})"]
    out += [f"verdict = ff.check(formula{after})", 'print(verdict.verdict, *verdict.proof, sep="\\n")']
    if converges:
        out.append(f"print(ff.series(formula{after}).B())")
        out.append(f'print(ff.trf(formula, "{q.epsilon}"{after}))')
        out.append(f'print(ff.smallest_window(ff.series(formula{after}), "{q.epsilon}", "{q.bound}"))')
    return "\n".join(out)
