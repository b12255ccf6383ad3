"""The command and the lines of Python that give what the page shows."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from farfield.zoo import Encoding


def command(verb: str, names: Sequence[str], values: Mapping[str, str], **options: str | int | None) -> str:
    """A line for a shell; a formula and a value are quoted, however they were typed."""
    words = ["farfield", verb, *names]
    for name, value in values.items():
        words += ["--set", f"{name}={value}"]
    for name, option in options.items():
        if option is not None:
            words += [f"--{name.rstrip('_').replace('_', '-')}", str(option)]
    return shlex.join(words)


def python(found: Encoding, text: str, values: Mapping[str, str], start: int, epsilon: str, bound: str | None) -> str:
    """Lines of Python; `bound` is the bound on the scores if a window was certified."""
    lines = ["import farfield as ff"]
    if found.formula is None:
        return "\n".join([*lines, "", f"print(ff.check({text!r}).proof)"])
    after = f", start={start}" if start else ""
    lines += ["", f"formula = ff.find({text!r}).formula.bind({dict(values)!r})", f"verdict = ff.check(formula{after})"]
    lines.append('print(verdict.verdict, *verdict.proof, sep="\\n")')
    if bound is not None:
        lines.append(f"print(ff.series(formula{after}).B())")
        lines.append(f'print(ff.trf(formula, "{epsilon}"{after}))')
        lines.append(f'print(ff.smallest_window(ff.series(formula{after}), "{epsilon}", "{bound}"))')
    return "\n".join(lines)
