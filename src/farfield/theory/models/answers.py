"""What is proven about one layer: windowed, disperses or neither, each with its reason."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from farfield.theory.budget import answer_in_time
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.windows import smallest_window, weights_of
from farfield.theory.models.described import Layer
from farfield.theory.verdict.convergence import check
from farfield.zoo import Value, find

USELESS = 15.0  # a bound on the logits beyond which e^{2M} says nothing about texts of any length that exists


@dataclass(frozen=True)
class Answer:
    """What the theorem says of a layer.

    Attributes:
        kind: "windowed", "disperses", "neither" or "undecided".
        why: the reason, in one sentence.
        windows: tokens that each head must keep, certified for the bound on the logits; empty where none was asked.
    """

    kind: str
    why: str
    windows: tuple[int, ...] = ()


def answer(layer: Layer, epsilon: str | float | Fraction, logit_bound: str | float | Fraction | None) -> Answer:
    """What is proven about a layer, for a share epsilon and a bound on |q.k|*scale where one is known."""
    if layer.window is not None:
        what = "chunk" if layer.chunks else "window"
        return Answer("windowed", f"exact: no key outside the {what} of {layer.window:,} tokens has any weight")
    if layer.position == "alibi":
        return _alibi(layer, epsilon, logit_bound)
    if layer.log_temperature:
        return Answer(
            "neither",
            "its logits grow with the logarithm of the row, so that a far key may keep its share in rows of any "
            "length: no window serves every length, and attention need not disperse",
        )
    if layer.position in ("rope", "none", "learned", "sinusoidal", "t5"):
        return Answer("disperses", _dispersion(layer, logit_bound))
    return _formula(layer, epsilon, logit_bound)


def _alibi(layer: Layer, epsilon: str | float | Fraction, logit_bound: str | float | Fraction | None) -> Answer:
    why = "the weights exp(-k*t) have a finite sum for every slope k > 0, so one window serves all lengths"
    if logit_bound is None:
        return Answer("windowed", f"{why}; how wide it must be depends on the logits (--logit-bound)")
    windows = tuple(_alibi_window(k, str(epsilon), str(logit_bound)) for k in layer.slopes)
    said = f"{min(windows):,} to {max(windows):,} tokens by head"
    return Answer("windowed", f"{why}: {said}, for |q.k|*scale <= {logit_bound} and a share of {epsilon}", windows)


@cache
def _alibi_window(k: Value, epsilon: str, logit_bound: str) -> int:
    return smallest_window(weights_of("alibi", parameters={"k": k}), epsilon, logit_bound)


def _formula(layer: Layer, epsilon: str | float | Fraction, logit_bound: str | float | Fraction | None) -> Answer:
    encoding = find(layer.position)
    verdict = check(encoding)
    said = str(verdict.condition or verdict.verdict)
    names = set(encoding.formula.parameters) if encoding.formula else set()
    rows = [dict(row) for row in layer.rows] or encoding.heads(layer.heads, width=layer.width)
    if verdict.verdict != "converges":
        no = ", so no window serves all lengths" if verdict.verdict == "diverges" else ""
        why = f"the sum of the weights of {layer.position}: {said}{no}"
        if no and all(set(row) == names and check(encoding, parameters=row).answer == "disperses" for row in rows):
            return Answer("disperses", f"{why}; with bounded logits the share of every key tends to 0 as the row grows")
        return Answer("undecided", why)
    if verdict.condition is not None and "if and only if" in said:
        open_ = sorted(names - set(rows[0]))
        if open_:
            learned = f"{', '.join(open_)} {'are' if len(open_) > 1 else 'is'} learned (farfield receptive shows it)"
            return Answer("undecided", f"the sum of the weights of {layer.position} {said}, and {learned}")
        bad = [str(n) for n, row in enumerate(rows, 1) if check(encoding, parameters=row).verdict != "converges"]
        if bad:
            why = f"the sum of the weights of {layer.position} {said}: not so in head {', '.join(bad)}"
            return Answer("undecided", f"{why}, so no window serves all lengths")
    if logit_bound is None or any(set(row) != names for row in rows):
        return Answer(
            "windowed", f"the sum of the weights of {layer.position} {said}, so one window serves all lengths"
        )
    try:
        with answer_in_time():
            windows = tuple(smallest_window(weights_of(encoding, parameters=row), epsilon, logit_bound) for row in rows)
    except (DivergenceError, UndecidedError) as error:
        return Answer("undecided", str(error))
    return Answer("windowed", f"the sum of the weights of {layer.position} {said}", windows)


def _dispersion(layer: Layer, logit_bound: str | float | Fraction | None) -> str:
    bound = "M"
    why = "nothing by distance adds up: "
    if layer.position == "t5":
        why = "the bias is the same for all distances beyond the last bucket: "
    if logit_bound is not None:
        bound = str(logit_bound)
    said = (
        f"{why}with |q.k|*scale <= {bound} no key of a row of n holds more than {_share(bound)}, "
        "and no window serves all lengths"
    )
    if layer.soft_cap is not None and logit_bound is None:
        size = math.exp(min(2 * layer.soft_cap, 700))
        if layer.soft_cap > USELESS:
            said += (
                f"; the soft cap gives M = {layer.soft_cap:g}, that is {size:.0e}/n, of no use: "
                "only a measured bound, or one kept at run time, says something"
            )
        else:
            said += f"; the soft cap gives M = {layer.soft_cap:g}, that is {size:.3g}/n"
    return said


def _share(bound: str) -> str:
    if bound == "M":
        return "e^(2M)/n"
    value = math.exp(min(2 * float(Fraction(bound)), 700))
    vacuous = ", which says nothing below that length" if value > 1e6 else ""
    return f"{value:.3g}/n{vacuous}"
