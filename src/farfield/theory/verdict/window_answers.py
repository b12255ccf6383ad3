"""Three answers for a bias, or for a class of biases: windowed, disperses, neither, each with its proof.

- *Windowed*: one window serves all rows, lengths and inputs. By the envelope theorem it is enough that exp(E(t)) has a
  finite sum, E the upper envelope; a class with tight ends has a window only then.
- *Disperses*: with logits within +-M, no key keeps its share as the row grows. It is enough that E is bounded above and
  that exp(e(t)) has no finite sum: a share is at most exp(2M + sup E)/(sum of exp(e)), which tends to 0; if e is
  bounded from below too, this is a constant times exp(2M)/n.
- *Neither*: some members have no window, and some keep a share on one key for ever.

proofs/Envelope.v has the theorems (envelope, class_windowed_iff, dispersion, log_temperature_is_neither).
"""

from __future__ import annotations

from dataclasses import dataclass

from farfield.formula import Formula, Node
from farfield.formula.sentence import Sentence, say
from farfield.formula.tree import T, number, substitute
from farfield.theory.errors import UndecidedError
from farfield.theory.verdict import reader
from farfield.theory.verdict.envelopes import ROW, Envelope, PartEnds

SHARE = "e^(2M)"


@dataclass(frozen=True)
class WindowAnswer:
    """One of "windowed", "disperses", "neither", or None where none is proven; and the steps."""

    kind: str | None
    steps: tuple[Sentence, ...] = ()


def of_formula(formula: Formula, verdict: str) -> WindowAnswer:
    """The answer for an ordinary bias whose series was judged."""
    if verdict == "converges":
        return WindowAnswer("windowed", (say("so one window serves all rows, lengths and inputs with bounded logits"),))
    if verdict != "diverges":
        return WindowAnswer(None)
    if bounded(formula.node) and not formula.weight:
        return WindowAnswer("disperses", (_even(),))
    if formula.parameters or reader.compare(formula.primitive, _ZERO).limit not in ("-inf", "constant", "bounded"):
        return WindowAnswer(None)
    return WindowAnswer("disperses", (_slow("r(t) is bounded from above and the sum diverges"),))


_ZERO = Formula(number(0))


def _even() -> Sentence:
    return say(
        f"the bias is bounded from both sides: with logits within +-M no key of a row of n holds more than a constant "
        f"times {SHARE}/n, so attention disperses and no window serves all lengths"
    )


def _slow(why: str) -> Sentence:
    return say(
        f"{why}: with logits within +-M the share of any key is at most {SHARE} times the largest weight over the sum "
        "of the row, which tends to 0, so attention disperses and no window serves all lengths"
    )


def no_bias(name: str, why: str) -> WindowAnswer:
    """The answer where there is no bias by distance at all: rotations, absolute positions."""
    steps = (
        say(f"{name}: {why}"),
        say(
            f"a logit is at most M in size, whatever the distance: no key of a row of n holds more than {SHARE}/n "
            "(dispersion), so no bias by distance cuts anything off"
        ),
        say(
            "equal logits, which the content may bring about, spread attention evenly: the keys beyond any window w "
            "hold 1 - w/n of a row of n, so no window serves all lengths"
        ),
    )
    return WindowAnswer("disperses", steps)


def bounded(node: Node, positive: frozenset[str] = frozenset()) -> bool:
    """Whether a bias is bounded from both sides, by its form alone: t only where it cannot carry far."""
    if node.op == "-inf":
        return False
    if "t" not in node.free() or node.op in ("sin", "cos", "tanh", "sigmoid", "atan", "erf"):
        return True
    if node.op == "where":
        return all(bounded(b, positive) for b in node.args[2:])
    if node.op == "sum":
        return bounded(node.args[0], positive)
    if node.op == "exp" and PartEnds(positive).sign(node.args[0]) == -1:
        return True
    if node.op in ("*", "/", "neg") and _ratio(node):
        return True
    if node.op == "/":
        return bounded(node.args[0], positive) and "t" not in node.args[1].free()
    if node.op in ("+", "-", "*", "neg", "min", "max", "abs", "floor", "exp"):
        return all(bounded(a, positive) for a in node.args)
    return False


def _ratio(node: Node) -> bool:
    """Whether a product is a constant times t over max(..., t + ...): such a ratio lies between 0 and 1."""
    above: list[Node] = []
    below: list[Node] = []
    todo = [(node, True)]
    while todo:
        part, up = todo.pop()
        if part.op == "neg":
            todo.append((part.args[0], up))
        elif part.op in ("*", "/"):
            todo += [(part.args[0], up), (part.args[1], up == (part.op == "*"))]
        elif "t" in part.free():
            (above if up else below).append(part)
    if above != [T] or len(below) != 1 or below[0].op != "max":
        return False
    more = [Node("+", (T, number(1))), Node("+", (number(1), T))]
    return any(x == T or x in more for x in below[0].args)


def of_class(
    result: Envelope, upper: str, lower: str, node: Node, positive: frozenset[str] = frozenset()
) -> WindowAnswer:
    """The answer for a class of biases.

    Args:
        result: Its envelopes.
        upper: The verdict on the upper envelope; "diverges" where nothing bounds the class.
        lower: The verdict on the lower one; "converges" where nothing does (nothing is then known of it).
        node: The class itself.
        positive: Parameters that are known to be positive.
    """
    if upper == "converges" and result.lower is None and result.sink is None:
        return WindowAnswer(None)  # nothing keeps the nearest keys from vanishing beside the others
    if upper == "converges":
        word = " and the sink" if result.sink is not None else ""
        return WindowAnswer("windowed", (
            say("by the envelope theorem one window serves every member, row, length and input with bounded logits"),
            say(f"the share beyond j is at most E's tail over the sum of that tail, e's head{word}"),
        ))  # fmt: skip
    if result.upper is not None and result.lower is not None:
        above = bounded(result.upper.node, positive) or _tops(result.upper)
        if above and (bounded(result.lower.node, positive) or _bottoms(result.lower)):
            return WindowAnswer("disperses", (_even(),))
        if above and lower == "diverges":
            return WindowAnswer("disperses", (_slow("E(t) is bounded from above and the sum of exp(e(t)) diverges"),))
    if (
        upper == "diverges"
        and result.tight
        and result.upper is not None
        and result.lower is not None
        and lower == "converges"
    ):
        return WindowAnswer("neither", (
            say("the member r = E has no window, because its sum diverges"),
            say("the member r = e keeps a share on the nearest key in rows of every length, because its sum is finite"),
        ))  # fmt: skip
    return _by_temperature(node)


def _tops(formula: Formula) -> bool:
    return not formula.parameters and reader.compare(formula.primitive, _ZERO).limit in ("-inf", "constant", "bounded")


def _bottoms(formula: Formula) -> bool:
    return not formula.parameters and reader.compare(formula.primitive, _ZERO).limit in ("constant", "bounded")


def _by_temperature(node: Node) -> WindowAnswer:
    """Bounds that depend on the row alone and open faster than its logarithm: one key may hold all, or none."""
    if "t" in node.free():
        return WindowAnswer(None)
    try:
        result = PartEnds(frozenset()).of(substitute(node, {ROW: T}))
    except UndecidedError:
        return WindowAnswer(None)
    if result.low is None or result.high is None or Formula(result.high).parameters:
        return WindowAnswer(None)
    width, least = Formula(Node("-", (result.high, result.low))), Formula(Node("log", (Node("+", (T, number(1))),)))
    if not result.tight or reader.compare(width, least).limit != "+inf":
        return WindowAnswer(None)
    return WindowAnswer("neither", (
        say("in row i the bias may be anything within bounds whose width is ", substitute(width.node, {"t": _I}),
            ", which grows faster than log(i + 1)"),
        say("let one key, as far away as the row allows, have the upper bound and all others the lower: its share "
            "tends to 1, so there is no window, and attention does not disperse"),
    ))  # fmt: skip


_I = Node("name", (), ROW)
