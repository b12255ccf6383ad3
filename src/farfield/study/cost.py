"""What a study is going to cost, said before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from farfield import zoo
from farfield.study.plan import Cell, Plan
from farfield.training.scaling import PROCESSORS, Cost, training_cost
from farfield.zoo.head_parameters import said_slopes

GPU = "a100"


def cost_of(cells: Sequence[Cell], gpu: str = GPU) -> Cost:
    """The training of all cells together."""
    total = Cost(0.0, 0.0, 0, 0.0)
    for cell in cells:
        total = total + training_cost(cell.settings, gpu=gpu)
    return total


def sentences(plan: Plan, todo: Sequence[Cell]) -> list[str]:
    """How many runs there are, how many are left, and for the paper's sizes what they take on a GPU."""
    parts = [(len(plan.encodings), "encoding"), (len(plan.corpora), "corpus"), (len(plan.seeds), "seed")]
    words = " x ".join(f"{n} {name if n == 1 else 'corpora' if name == 'corpus' else name + 's'}" for n, name in parts)
    done = len(plan.cells) - len(todo)
    said = [f"{words}: {_runs(len(plan.cells))}" + (f", {done} of them done already." if done else ".")]
    uses_slopes = [cell for cell in plan.cells if said_slopes(zoo.find(cell.encoding), 1, cell.settings.parameters)]
    if uses_slopes:
        first = uses_slopes[0]
        slopes = said_slopes(zoo.find(first.encoding), first.settings.heads, first.settings.parameters)
        said.append(f"{slopes}, in every formula with a k (--slopes gives others, or learns them).")
    if todo and plan.preset.startswith("paper"):
        cost = cost_of(todo)
        processor = PROCESSORS[GPU]
        said.append(
            f"Training them takes about {cost.gpu_hours:,.0f} GPU-hours on {GPU.upper()}s in "
            f"{todo[0].settings.precision} ({cost.flops:.1e} FLOP at {processor.utilisation:.0%} of the peak), "
            f"{cost.memory_bytes / 1e9:.0f} GB on each, and about ${cost.dollars:,.0f} at "
            f"${processor.dollars_per_hour:g} an hour (docs/scaling.md)."
        )
    return said


def _runs(count: int) -> str:
    return f"{count} run" if count == 1 else f"{count} runs"
