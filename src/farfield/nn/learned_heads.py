"""What each head learned, with the verdict on its series: the values go to `check` exactly as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from farfield.formula import Formula, FormulaError
from farfield.theory.verdict.convergence import Verdict, check

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LearnedHead:
    """One head: the layer that it is in (None where all layers share it), its formula, and the parameters of it."""

    layer: int | None
    head: int
    formula: Formula
    values: dict[str, float]

    @property
    def verdict(self) -> str:
        """The verdict on the head's series."""
        verdict = verdict_on(self.formula, tuple(sorted(self.values.items())))
        return "undecided" if verdict is None else verdict.verdict

    def json(self) -> dict[str, Any]:
        return {"layer": self.layer, "head": self.head, "parameters": self.values, "verdict": self.verdict}

    def cells(self) -> list[str]:
        """Layer, head and values as the cells of a table."""
        layer = "all" if self.layer is None else str(self.layer)
        return [layer, str(self.head), *(f"{v:.6g}" for v in self.values.values())]


def learned_heads(bias: Any, weights: Mapping[str, Tensor] | None = None) -> list[LearnedHead]:
    """Every head of a bias that learns its parameters, counted from 1; none if nothing is learned by a formula.

    Args:
        bias: A `Bias`, a `T5Bias` or None.
        weights: The learned parameters by their names, where the module holds only a share of them.
    """
    rules = getattr(bias, "rules", {})
    if not rules:
        return []
    learned_values = {}
    for name, rule in rules.items():
        p = bias.learned[name] if weights is None else weights[name]
        numbers = p.detach().double().cpu()
        if (rule.least, rule.most) != (None, None):
            numbers = numbers.clamp(rule.least, rule.most)
        learned_values[name] = numbers.tolist()
    sets = len(next(iter(learned_values.values())))
    rows = []
    for layer in range(sets):
        for head in range(bias.heads):
            fixed = {name: v if isinstance(v, float) else v[head] for name, v in bias.fixed.items()}
            values = fixed | {name: sets_of[layer][head] for name, sets_of in learned_values.items()}
            rows.append(LearnedHead(None if sets == 1 else layer + 1, head + 1, bias.formula, values))
    return rows


@cache
def verdict_on(formula: Formula, values: tuple[tuple[str, float], ...]) -> Verdict | None:
    """The verdict on a formula with these values, exactly; None if it has none."""
    try:
        return check(formula, parameters={name: exact(value) for name, value in values})
    except (FormulaError, ValueError, OverflowError):  # also a value that is no number
        return None


def exact(value: float) -> str:
    """A double as the constant that it is, in few enough digits for a formula."""
    above, below = value.as_integer_ratio()
    return str(above) if below == 1 else f"{above}/2**{below.bit_length() - 1}"
