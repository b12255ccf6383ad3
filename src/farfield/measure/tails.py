"""Interventions: the bias of a trained model beyond its training length m is replaced, and nothing else.

A tail is a formula in t, the distance, and

    m   the training length,
    r   the bias as it was trained, at t,
    c   the bias at the last distance that was trained, m - 1,
    k   ALiBi's slope of the head, or the model's own parameter of that name,

so that "r - 2*log(t/m)" gives the weights beyond m another factor (t/m)**-2. Three words stand for formulas: "cut" for
-inf, which is a window of m tokens; "constant" for c; and the name of an encoding, such as "alibi", for its bias moved
so that it goes on from c. What results is one formula again, so its verdict and its leak are those of any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from farfield import zoo
from farfield.formula import Formula, parse
from farfield.formula.tree import Node, number, substitute
from farfield.measure.models import FarfieldModel, Model

WORDS = {"cut": "-inf", "constant": "c"}
NAMES = ("t", "m", "r", "c", "k")


def tail_formula(bias: Formula, tail: str, training_length: int) -> Formula:
    """The formula of a bias that is as trained up to the training length, and the tail from there on.

    Args:
        bias: As it was trained.
        tail: A word, the name of an encoding, or a formula in `NAMES`. The parameters of an encoding get the prefix
            "tail_" in the result.
        training_length: m, at least 1.

    Raises:
        ValueError: If the tail is no formula, or has names of its own.
    """
    trained = Node("log", (bias.node,)) if bias.weight else bias.node
    last = number(training_length - 1)
    nodes = {"m": number(training_length), "r": trained, "c": substitute(trained, {"t": last})}
    word = WORDS.get(tail.strip(), tail.strip())
    if word in zoo.ENCODINGS:
        other = _of_encoding(word)
        nodes |= {"other": other, "other_last": substitute(other, {"t": last})}
        word = "c + other - other_last"
    elif word != "-inf":
        unknown = sorted(parse(word).node.free() - set(NAMES))
        if unknown:
            raise ValueError(
                f"The tail {tail.strip()[:60]!r} has the name {unknown[0]!r}: it may have t, m (the training length), "
                "r (the bias as trained), c (the bias at m - 1) and k (the head's slope)."
            )
    changed = parse(f"where(t < m, r, {word})")
    return Formula(substitute(changed.node, nodes))


def _of_encoding(name: str) -> Node:
    """The bias of an encoding, its parameters with a prefix; one sentence if it has none before training."""
    encoding = zoo.find(name)
    formula = encoding.formula
    if formula is None or set(formula.parameters) - set(encoding.heads(1)[0]):
        raise ValueError(f"The tail cannot go on as {name!r}: it has no bias that is known before training.")
    node = Node("log", (formula.node,)) if formula.weight else formula.node
    return substitute(node, {p: Node("name", value=f"tail_{p}") for p in formula.parameters})


@contextmanager
def replaced_tail(model: Model, tail: str) -> Iterator[None]:
    """A context in which a model's bias beyond its training length is the tail; its weights stay.

    Args:
        model: One of ours whose encoding is a bias with a formula.
        tail: See the head of this file.

    Raises:
        ValueError: If the model has no such bias, or the tail is none.
    """
    if not isinstance(model, FarfieldModel) or model.formula_of(0, 0) is None or model.training_length is None:
        raise ValueError(f"There is no tail to replace: {model.no_formula()}.")
    position = model.network.position
    bias = position.bias
    fixed = {**_values("alibi", "", model), **bias.fixed}
    if tail.strip() in zoo.ENCODINGS:
        fixed |= _values(tail.strip(), "tail_", model)
    changed = bias.with_formula(tail_formula(bias.formula, tail, model.training_length), fixed)
    try:
        position.bias = changed
        yield
    finally:
        position.bias = bias


def _values(name: str, prefix: str, model: Model) -> dict[str, float | list[float]]:
    """The parameters of an encoding as a model of this shape has them."""
    from farfield.nn.bias import Bias

    return {prefix + p: v for p, v in Bias(name, model.heads, model.width // model.heads).fixed.items()}
