"""What a verdict is: a value with its proof, its certificate and its renderings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from farfield.formula import Formula, parse, tree
from farfield.formula.spelling import Sentence, say
from farfield.formula.tree import T
from farfield.theory.checker.claims import Certificate
from farfield.theory.coq.files import file_text, verdict_block
from farfield.theory.verdict.conditions import FamilyCertificate, ParameterCondition
from farfield.theory.verdict.horizon import Horizon

B = tree.apply("b")


@dataclass(frozen=True)
class Verdict:
    """What is proven about a series, and the proof."""

    formula: str
    verdict: str  # "converges", "diverges", "undecided", "not-applicable"
    condition: ParameterCondition | None = None  # for open parameters
    steps: tuple[Sentence, ...] = ()  # the proof
    certificate: Certificate | None = field(default=None, repr=False)
    cases: FamilyCertificate | None = field(default=None, repr=False)  # with open parameters: what is claimed of each
    horizon: Horizon | None = None
    start: int = 0
    proven: tuple[str, ...] = ()  # what the checker has proven, for all distances
    answer: str | None = None  # "windowed", "disperses" or "neither", where one is proven
    bounds: dict[str, str | None] | None = None  # of a bounded family: its upper and lower bound, its sink

    @property
    def proof(self) -> list[str]:
        """The steps of the proof as plain text."""
        return [str(step) for step in self.steps]

    @property
    def headline(self) -> Sentence:
        """The formula and what is said of it, in one line."""
        if self.verdict == "not-applicable":
            return say(f"{self.formula}: the theorem does not apply")
        formula = parse(self.formula)
        left = tree.apply("b" if formula.weight else "r")
        words = self.verdict if self.condition is None else self.condition.sentence
        return say(tree.relation(left, "=", formula.node), ": ", words)

    def __str__(self) -> str:
        return "\n".join([f"{self.headline}", *(f"{n:4}. {step}" for n, step in enumerate(self.steps, 1))])

    def latex(self) -> str:
        """The verdict and its proof as LaTeX."""
        items = [rf"  \item {step.latex()}" for step in self.steps]
        return "\n".join([self.headline.latex() + ".", r"\begin{enumerate}", *items, r"\end{enumerate}"])

    def _repr_html_(self) -> str:
        """The verdict and its proof for a notebook."""
        items = "".join(f"<li>{step.html()}</li>" for step in self.steps)
        return f"<p>{self.headline.html()}</p><ol>{items}</ol>"

    def figure(self, path: str | Path | None = None, *, terms: int = 4096) -> Any:
        """The weights and their partial sums as a figure; with a path, written as its ending says."""
        from farfield.theory.figures import weights_figure

        if self.verdict == "not-applicable" or (formula := parse(self.formula)).parameters:
            raise ValueError(f"a figure needs a formula without open parameters, not {self.formula}")
        return weights_figure(formula, str(self.headline), path, start=self.start, terms=terms)

    def coq(self) -> str:
        """A file for the proof assistant Coq whose theorem is this verdict; ValueError says why there is none."""
        return file_text([self.coq_block()])

    def coq_block(self) -> str:
        """The definitions and theorems of that file, to be joined with others."""
        words = None if self.condition is None else str(self.condition)
        return verdict_block(self.formula, self.verdict, words, self.certificate, self.start)

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        claim = self.certificate or self.cases
        return {
            "formula": self.formula,
            "verdict": self.verdict,
            "condition": None if self.condition is None else str(self.condition),
            "proof": self.proof,
            "certificate": None if claim is None else claim.json(),
            "horizon": None if self.horizon is None else self.horizon.json(),
            "from": self.start,
            "checked": {"proven": list(self.proven)},
            "answer": self.answer,
            "bounds": self.bounds,
        }


Settle = Callable[[Formula, int], Verdict]  # the verdict on a part from a distance on; UndecidedError if there is none


def conclusion(verdict: str, start: int) -> Sentence:
    """The last step of a proof."""
    return say("the sum of ", B, " over ", tree.relation(T, ">=", tree.fraction(start)), f" {verdict}")
