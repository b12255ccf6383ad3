"""What is written for Coq is the function itself: Coq computes our own values at the distances 0 to 20."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from subprocess import CompletedProcess

import pytest
from blocks import EVERY
from flint import arb, ctx

from farfield.formula import Formula, parse
from farfield.formula.functions import DERIVED, FUNCTIONS, OPERATORS
from farfield.theory.coq.files import file_text
from farfield.theory.coq.terms import fraction, weight_term
from farfield.theory.errors import OutsideCoqError

SOME = (0, 1, 2, 4, 5, 7, 8, 9, 20)  # both sides of wherever a term below changes its sign or its piece
# every operation and function of the grammar, at arguments that cross 0 where it has a value there
TERMS = {
    "+": ["t + 5/3"], "-": ["7/2 - t"], "*": ["(t - 7/2)*t"], "/": ["(t - 7/2)/(t + 1/3)"], "neg": ["-t"],
    "**": [
        "t**t", "t**(t/2)", "t**(1/2)", "t**2", "(t - 9/2)**3", "(t - 9/2)**(-2)", "(t + 2)**(-4/3)", "0**t", "2**t",
        "(-2)**t", "(-1)**t", "(2/3)**(t - 5)", "0**floor(t/2)", "t**0", "t**pi", "(t/2)**t",
    ],
    "exp": ["exp((7 - t)/2)"], "log": ["log(t + 1/3)"], "sqrt": ["sqrt(t)"], "sin": ["sin(t - 5)"],
    "cos": ["cos(t - 5)"], "abs": ["abs(t - 9/2)"], "floor": ["floor((t - 5)/2)"], "min": ["min(t, 9/2)"],
    "max": ["max(t, 9/2)"], "tanh": ["tanh(t/9 - 1)"], "sigmoid": ["sigmoid(t - 7)"], "softplus": ["softplus(t - 7)"],
    "relu": ["relu(t - 7)"], "log1p": ["log1p(t)"], "log2": ["log2(t + 1)"], "log10": ["log10(t + 1)"],
    "expm1": ["expm1(t/9 - 1)"], "cosh": ["cosh(t/9 - 1)"], "sinh": ["sinh(t/9 - 1)"], "tan": ["tan(t/9)"],
    "mod": ["mod(t, 4)", "mod(t - 16/3, 7/2)"], "pi": ["pi*t"], "sum": ["sum(j*t, j, 1, 4)", "sum(j*t, j, 2, 1)"],
    "where": [f"where(t {relation} 7, t/2, -t)" for relation in ("<", "<=", ">", ">=")],
}  # fmt: skip
BIASES = ["-t**t", "-t", "where(t < 7, -t, -inf)", "where(t <= 7, -t, -inf) - t", "where(t > 7, -inf, 0) + log(t + 1)"]


def within(formula: Formula, t: int) -> tuple[str, str, str]:
    """A little below the weight, a little above it, and above that, as numbers of Coq."""
    with ctx.workprec(200):
        value = formula.weight_ball(arb(t))
        about = Fraction(0 if abs(value) < 1e-30 else value.mid().str(40, radius=False))
    slack = Fraction(1, 10**6) * max(1, abs(about))
    return tuple(fraction((about + k * slack).limit_denominator(10**9))[0] for k in (-1, 1, 2))  # type: ignore[return-value]


@EVERY
def test_every_function_is_written_as_itself(
    check_file: Callable[[str, str], CompletedProcess[str]], every: bool
) -> None:
    """One file with the values of each term; a control that claims a little more is refused."""
    assert set(TERMS) == {*OPERATORS, *FUNCTIONS, *DERIVED, "pi", "where", "sum"}
    goals = []
    for text in [*(f"weight: {text}" for texts in TERMS.values() for text in texts), *BIASES]:
        formula = parse(text)
        term = weight_term(formula)
        sides = []
        for t in range(21) if every else SOME:
            low, high, higher = within(formula, t)
            here = f"({term.replace('INR t', str(t))})"
            sides.append(f"({low} <= {here} <= {high})")
        values = " /\\ ".join(sides)
        goals.append(f"Goal {values}.\nProof. repeat split; numeric 60%positive. Qed.")
        goals.append(f"Goal {higher} <= {here}.\nProof. numeric 60%positive. Fail Qed. Abort.")
    text = file_text(["\n".join(goals)])
    done = check_file("terms", text)
    line = done.stderr.partition("line ")[2].partition(",")[0]
    assert done.returncode == 0, f"{text.splitlines()[max(int(line) - 2, 0) : int(line)]} {done.stderr[-300:]}"


@pytest.mark.parametrize("text", ["weight: (0-2)**t/9**t", "weight: (1-t)**(2*t)", "weight: 3 + cos(t)**t"])
def test_a_power_of_something_negative_is_not_written_as_another_function(text: str) -> None:
    """Coq's Rpower has no such values: (0-2)**t would be 1 there."""
    with pytest.raises(OutsideCoqError, match="may be negative"):
        weight_term(parse(text))
