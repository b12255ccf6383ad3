"""Three answers for a bias, or for a bounded family of biases: windowed, disperses, neither, each with its proof.

With upper bound E(t) and lower bound e(t):

- *Windowed*: one window serves all rows, lengths and inputs. By the envelope theorem it is enough that exp(E(t)) has a
  finite sum; a family that has E among its members has a window only then.
- *Disperses*: with logits within +-M, no key keeps its share as the row grows. It is enough that E is bounded above and
  that exp(e(t)) has no finite sum: a share is at most exp(2M + sup E)/(sum of exp(e)), which tends to 0; if e is
  bounded from below too, this is a constant times exp(2M)/n.
- *Neither*: some members have no window, and some keep a share on one key for ever.

proofs/Envelope.v has the theorems (envelope, class_windowed_iff, dispersion, log_temperature_is_neither).
"""

from __future__ import annotations

from dataclasses import replace

from farfield.formula import Formula, Node, tree
from farfield.formula.spelling import Sentence, say
from farfield.theory.checker.evaluation import Evaluator
from farfield.theory.checker.families import Family
from farfield.theory.checker.monomials import UNIT, compare
from farfield.theory.errors import EmptyRegionError
from farfield.theory.verdict.verdict import Verdict
from farfield.zoo import Encoding

SHARE = "e^(2M)"
EVEN = say(
    f"the bias is bounded from both sides: with logits within +-M no key of a row of n holds more than a constant "
    f"times {SHARE}/n, so attention disperses and no window serves all lengths"
)


def _slow(why: str) -> Sentence:
    return say(
        f"{why}: with logits within +-M the share of any key is at most {SHARE} times the largest weight over the sum "
        "of the row, which tends to 0, so attention disperses and no window serves all lengths"
    )


def without_bias(named: Encoding) -> Verdict:
    """The answer where there is no bias by distance at all: rotations, absolute positions, temperatures."""
    if named.theorem is not None:
        answer, why = named.theorem
        return Verdict(named.name, "not-applicable", steps=(say(why),), answer=answer)
    steps = (
        say(f"{named.name}: {named.note}"),
        say(
            f"a logit is at most M in size, whatever the distance: no key of a row of n holds more than {SHARE}/n "
            "(dispersion), so no bias by distance cuts anything off"
        ),
        say(
            "equal logits, which the content may bring about, spread attention evenly: the keys beyond any window w "
            "hold 1 - w/n of a row of n, so no window serves all lengths"
        ),
    )
    return Verdict(named.name, "not-applicable", steps=steps, answer="disperses")


def answer_for(verdict: Verdict, formula: Formula, assumptions: tuple[Node, ...]) -> Verdict:
    """The verdict on one bias whose sum diverges, with the answer that follows from it."""
    above, below = bounded(formula, assumptions)
    if not above:
        return verdict
    why = EVEN if below else _slow("r(t) is bounded from above and the sum diverges")
    return replace(verdict, answer="disperses", steps=(*verdict.steps, why))


def bounded(formula: Formula, assumptions: tuple[Node, ...] = ()) -> tuple[bool, bool]:
    """Whether a bias is shown to be bounded from above, and from below, for all parameters."""
    node = formula.primitive.node

    def grows(evaluator: Evaluator) -> int:
        """1 or -1 where the bias grows without bound, 0 where it does not."""
        if formula.weight:
            value = evaluator.size_without_waves(node).log
        else:
            bias = evaluator.value_or_none(node)
            if bias is None:
                return -1
            value = bias
        if not value or compare(value[0][0], UNIT) <= 0:
            return 0
        return evaluator.calculus.sign(value) or 2

    mine = [one for one in assumptions if one.free() <= set(formula.parameters)]
    try:
        sides = Family(formula).results(grows, mine)
    except EmptyRegionError:
        return False, False
    return not sides & {1, 2, None}, not sides & {-1, 2, None}


def family_verdict(formula: Formula, upper: Verdict, lower: Verdict, assumptions: tuple[Node, ...]) -> Verdict:
    """The verdict on a bounded family, from those on its two bounds."""
    ends = ((name, bound.node) for name, bound in (("E", formula.upper_bound), ("e", formula.lower_bound)))
    steps = [say("in every row the bias of a key at distance t lies between e(t) and E(t):")]
    steps += [say(tree.relation(tree.apply(name), "=", node)) for name, node in ends]
    if formula.sink is not None:
        steps.append(say("the sink adds ", tree.call("exp", formula.sink), " to the denominator of every row"))
    steps += [say("for E: ", step) for step in upper.steps]
    answer, why = _answer(formula, upper.verdict, lower.verdict, assumptions)
    sink = None if formula.sink is None else Formula(formula.sink).text()
    steps += why
    bounds = {"upper": formula.upper_bound.text(), "lower": formula.lower_bound.text(), "sink": sink}
    return replace(upper, formula=formula.text(), steps=tuple(steps), answer=answer, bounds=bounds, horizon=None)


def _answer(
    formula: Formula, upper: str, lower: str, assumptions: tuple[Node, ...]
) -> tuple[str | None, tuple[Sentence, ...]]:
    if upper == "converges":
        parts = "that tail, e's head and the sink" if formula.sink is not None else "that tail and e's head"
        return "windowed", (
            say("by the envelope theorem one window serves every member, row, length and input with bounded logits"),
            say(f"the share beyond j is at most E's tail over the sum of {parts}"),
        )
    if upper != "diverges":
        return None, ()
    above, below = bounded(formula.upper_bound, assumptions)[0], bounded(formula.lower_bound, assumptions)[1]
    if above and below:
        return "disperses", (EVEN,)
    if above and lower == "diverges":
        return "disperses", (_slow("E(t) is bounded from above and the sum of exp(e(t)) diverges"),)
    if lower == "converges":
        return "neither", (
            say("the member r = E has no window, because its sum diverges"),
            say("the member r = e keeps a share on the nearest key in rows of every length, because its sum is finite"),
        )
    return None, ()
