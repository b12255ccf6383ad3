"""The network leak against rollouts that are written out: every row of every layer, in fractions or in doubles."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest

import farfield as ff
from farfield.theory.errors import UndecidedError

GRID = [
    ("alibi", 16, 200, 4, {}),
    ("type1", 16, 200, 3, {}),
    ("inverse", 64, 1152, 6, {}),
    ("sandwich", 16, 150, 2, {"width": 24}),
    ("where(t < 9, -k*t, -inf)", 16, 100, 5, {}),
    ("-0.3*t + 2*cos(t/3)", 10, 64, 3, {}),
    ("0.01*t", 7, 40, 2, {}),
    ("none", 1, 30, 3, {}),
]


def rollout(rows: list[list[np.ndarray]], m: int, n: int, residual: float = 0.0) -> float:
    """The share beyond m of the last of n tokens: a matrix for each layer, from the last to the first."""
    reached = np.zeros(n)
    reached[-1] = 1
    for heads in reversed(rows):
        layer = np.zeros((n, n))
        for weights in heads:
            for i in range(n):
                row = weights[: i + 1][::-1]
                layer[i, : i + 1] += row / row.sum() / len(heads)
        reached = residual * reached + (1 - residual) * reached @ layer
    return float(reached[: n - m].sum())


def weights(encoding: str, n: int, heads: int = 4, width: int = 64, window: int | None = None) -> list[np.ndarray]:
    known = ff.find(encoding)
    assert known.formula is not None
    distances, result = np.arange(n, dtype=float), []
    for row in known.heads(heads, width=width):
        bias = np.broadcast_to(np.asarray(known.formula.bind(row).array(distances), dtype=float), (n,))
        weight = np.exp(bias)
        result.append(np.where(distances < (window or n), weight, 0))
    return result


@pytest.mark.parametrize(("encoding", "m", "n", "layers", "how"), GRID)
@pytest.mark.parametrize("residual", [0, 0.25])
def test_it_is_the_rollout(encoding, m, n, layers, how, residual):
    expected = rollout([weights(encoding, n, **how)] * layers, m, n, residual)
    share = ff.network_leak(encoding, m, n, layers=layers, heads=4, residual=residual, **how)
    assert share == pytest.approx(expected, abs=1e-12)
    assert share.low <= share <= share.high
    assert share.high - share.low < 1e-14


@pytest.mark.parametrize(("encoding", "m", "n", "layers", "how"), GRID)
def test_one_layer_has_the_leak(encoding, m, n, layers, how):
    deep = ff.network_leak(encoding, m, n, layers=layers, heads=4, **how)
    assert deep.layers[0] == pytest.approx(ff.leak(encoding, m, n, heads=4, **how), abs=1e-15)
    assert [*deep.layers] == sorted(deep.layers), "each layer reaches further"


def test_the_enclosure_holds_the_exact_share():
    """Windows have rational shares: three layers of windows of 3, 2 and 5 tokens, as fractions."""
    n, m, windows = 9, 4, (3, 2, 5)
    reached = [Fraction(0)] * (n - 1) + [Fraction(1)]
    for window in reversed(windows):
        sent = [Fraction(0)] * n
        for i, mass in enumerate(reached):
            keys = range(max(0, i - window + 1), i + 1)
            for j in keys:
                sent[j] += mass / len(keys)
        reached = sent
    exact = sum(reached[: n - m], Fraction(0))
    share = ff.network_leak("none", m, n, windows=list(windows))
    assert Fraction(share.low) <= exact <= Fraction(share.high)
    assert exact > 0


def test_a_stack_of_windows_and_encodings():
    stack = ["alibi", "inverse", "type1"]
    windows = [8, None, 20]
    rows = [weights(e, 90, window=w) for e, w in zip(stack, windows, strict=True)]
    share = ff.network_leak(stack, 16, 90, heads=4, windows=windows)
    assert share == pytest.approx(rollout(rows, 16, 90), abs=1e-12)
    assert share != pytest.approx(rollout(rows[::-1], 16, 90), abs=1e-3), "the order of the layers matters here"


def test_windows_of_w_reach_no_further_than_they_can():
    """L layers of windows of w tokens see L*(w - 1) + 1 tokens: beyond that nothing leaks, one token less leaks."""
    assert ff.network_leak("none", 7 * 4 + 1, 200, layers=4, windows=8).high < 1e-20
    assert ff.network_leak("none", 7 * 4, 200, layers=4, windows=8).low > 0


def test_a_long_text_costs_no_more_than_its_training_length():
    share = ff.network_leak("-2*log(t + 1)", 64, 10**9, layers=6)
    shorter = ff.network_leak("-2*log(t + 1)", 64, 10**7, layers=6)
    assert shorter < share < shorter + 1e-6


@pytest.mark.parametrize("by", ["window", "slope"])
@pytest.mark.parametrize("heads", [None, 4])
def test_a_design_keeps_the_bound_and_its_neighbour_breaks_it(by, heads):
    parameters = {"k": "1/64"} if by == "window" and heads is None else {}
    design = ff.design_network("alibi", 0.05, 64, 1152, layers=6, heads=heads, by=by, parameters=parameters)

    def leak(value):
        if by == "window":
            return ff.network_leak("alibi", 64, 1152, layers=6, heads=heads, windows=int(value), parameters=parameters)
        slopes = [value * x["k"] for x in ff.find("alibi").heads(heads)] if heads else value
        return ff.network_leak("alibi", 64, 1152, layers=6, heads=heads, parameters={"k": slopes})

    assert design.leak == pytest.approx(leak(design.value), abs=1e-12)
    assert leak(design.value) <= 0.05 < leak(design.beyond)
    assert design.parameter == ("window" if by == "window" else "k")


def test_a_design_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="no slope k"):
        ff.design_network("none", 0.05, 8, 64, layers=2, by="slope")
    with pytest.raises(ValueError, match="no k up to"):
        ff.design_network("log(k + t)", 0.001, 8, 64, layers=2, by="slope")
    everything = ff.design_network("alibi", 0.999, 8, 64, layers=1, heads=2)
    assert (everything.value, everything.beyond) == (64, None)


def test_it_survives_pickling():
    share = ff.network_leak("alibi", 8, 40, layers=2, heads=2)
    again = pickle.loads(pickle.dumps(share))
    assert (again, again.enclosure, again.layers) == (share, share.enclosure, share.layers)


@pytest.mark.parametrize(
    ("arguments", "how", "sentence"),
    [
        (("alibi", 8, 4), {"layers": 2}, "must not be below the training length"),
        (("alibi", 8, 40), {}, "needs the number of layers"),
        (("alibi", 8, 40), {"layers": 3, "windows": [4, 4]}, "differ"),
        (("alibi", 8, 40), {"layers": 0}, "number of layers must be"),
        (("alibi", 8, 40), {"layers": 2, "windows": 0}, "window must be"),
        (("alibi", 8, 40), {"layers": 2, "residual": 1}, "residual share"),
        (("kerple-log", 8, 40), {"layers": 2}, "p"),
        (("rope", 8, 40), {"layers": 2}, "rope"),
        (("upper: -k*t + 1; lower: -k*t", 8, 40), {"layers": 2, "heads": 2}, "network leak"),
    ],
)
def test_what_cannot_be_answered_is_said(arguments, how, sentence):
    with pytest.raises((ValueError, UndecidedError), match=sentence):
        ff.network_leak(*arguments, **how)
