"""What is proven about one layer: windowed, disperses or neither, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from farfield.models.attention_layers import Layer
from farfield.theory.budget import answer_in_time
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.windows import smallest_window, weights_of
from farfield.theory.verdict.convergence import check
from farfield.zoo import Value, find

USELESS = 15.0  # a bound on the logits beyond which e^{2M} says nothing about texts of any length that exists
Number = str | float | Fraction


@dataclass(frozen=True)
class LayerAnswer:
    """What the theorem says of a layer.

    Attributes:
        kind: "windowed", "disperses", "neither" or "undecided".
        why: the reason, in one sentence.
        windows: tokens that each head must keep, certified for the bound on the logits; empty where none was asked.
    """

    kind: str
    why: str
    windows: tuple[int, ...] = ()


def layer_answer(layer: Layer, epsilon: Number, logit_bound: Number | None) -> LayerAnswer:
    """What is proven about a layer, for a share epsilon and a bound on |q.k|*scale where one is known."""
    if layer.window is not None:
        what = "chunk" if layer.chunks else "window"
        return LayerAnswer("windowed", f"exact: no key outside the {what} of {layer.window:,} tokens has any weight")
    if layer.position == "alibi":
        return _alibi(layer, epsilon, logit_bound)
    if layer.log_temperature:
        return LayerAnswer(
            "neither",
            "its logits grow with the logarithm of the row, so that a far key may keep its share in rows of any "
            "length: no window serves every length, and attention need not disperse",
        )
    if layer.position in ("rope", "none", "learned", "sinusoidal", "t5"):
        return LayerAnswer("disperses", _dispersion(layer, logit_bound))
    return _formula(layer, epsilon, logit_bound)


def _alibi(layer: Layer, epsilon: Number, logit_bound: Number | None) -> LayerAnswer:
    why = "the weights exp(-k*t) have a finite sum for every slope k > 0, so one window serves all lengths"
    if logit_bound is None:
        return LayerAnswer("windowed", f"{why}; how wide it must be depends on the logits (--logit-bound)")
    windows = tuple(_alibi_window(k, str(epsilon), str(logit_bound)) for k in layer.slopes)
    span = f"{min(windows):,} to {max(windows):,} tokens by head"
    return LayerAnswer("windowed", f"{why}: {span}, for |q.k|*scale <= {logit_bound} and a share of {epsilon}", windows)


@cache
def _alibi_window(k: Value, epsilon: str, logit_bound: str) -> int:
    return smallest_window(weights_of("alibi", parameters={"k": k}), epsilon, logit_bound)


def _formula(layer: Layer, epsilon: Number, logit_bound: Number | None) -> LayerAnswer:
    encoding = find(layer.position)
    verdict = check(encoding)
    condition = str(verdict.condition or verdict.verdict)
    total = f"the sum of the weights of {layer.position}"
    names = set(encoding.formula.parameters) if encoding.formula else set()
    rows = [dict(row) for row in layer.rows] or encoding.heads(layer.heads, width=layer.width)
    if verdict.verdict != "converges":
        no = ", so no window serves all lengths" if verdict.verdict == "diverges" else ""
        why = f"{total}: {condition}{no}"
        if no and all(set(row) == names and check(encoding, parameters=row).answer == "disperses" for row in rows):
            return LayerAnswer(
                "disperses", f"{why}; with bounded logits the share of every key tends to 0 as the row grows"
            )
        return LayerAnswer("undecided", why)
    if verdict.condition is not None and "if and only if" in condition:
        if learned := sorted(names - set(rows[0])):
            are = "are" if len(learned) > 1 else "is"
            why = f"{', '.join(learned)} {are} learned (farfield receptive shows it)"
            return LayerAnswer("undecided", f"{total} {condition}, and {why}")
        bad = [str(n) for n, row in enumerate(rows, 1) if check(encoding, parameters=row).verdict != "converges"]
        if bad:
            why = f"{total} {condition}: not so in head {', '.join(bad)}, so no window serves all lengths"
            return LayerAnswer("undecided", why)
    if logit_bound is None or any(set(row) != names for row in rows):
        return LayerAnswer("windowed", f"{total} {condition}, so one window serves all lengths")
    try:
        with answer_in_time():
            windows = tuple(smallest_window(weights_of(encoding, parameters=row), epsilon, logit_bound) for row in rows)
    except (DivergenceError, UndecidedError) as error:
        return LayerAnswer("undecided", str(error))
    return LayerAnswer("windowed", f"{total} {condition}", windows)


def _dispersion(layer: Layer, logit_bound: Number | None) -> str:
    why = "nothing by distance adds up"
    if layer.position == "t5":
        why = "the bias is the same for all distances beyond the last bucket"
    share = "e^(2M)/n"
    if logit_bound is not None:
        size = math.exp(min(2 * float(Fraction(logit_bound)), 700))
        share = f"{size:.3g}/n{', which says nothing below that length' if size > 1e6 else ''}"
    bound = "M" if logit_bound is None else logit_bound
    sentence = (
        f"{why}: with |q.k|*scale <= {bound} no key of a row of n holds more than {share}, "
        "and no window serves all lengths"
    )
    if layer.soft_cap is None or logit_bound is not None:
        return sentence
    size = math.exp(min(2 * layer.soft_cap, 700))
    capped = f"{sentence}; the soft cap gives M = {layer.soft_cap:g}, that is "
    if layer.soft_cap <= USELESS:
        return f"{capped}{size:.3g}/n"
    return f"{capped}{size:.0e}/n, of no use: only a measured bound, or one kept at run time, says something"
