"""Bounded families: the bounds of rows by brute force, the three answers, and what is no bounded family."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from farfield import (
    check,
    compare,
    design,
    examine,
    find,
    law,
    leak,
    model_reach,
    nn,
    parse,
    reach,
    series,
    trf,
    windows,
)
from farfield.formula import FormulaError
from farfield.theory.fields.windows import WorstCase
from farfield.zoo import BOUNDED

ORACLE = json.loads((Path(__file__).parents[2] / "oracles" / "bounded_families.json").read_text())
ROWS = 2000


@pytest.mark.parametrize("name", BOUNDED)
def test_every_entry_has_the_answer_of_the_table(name) -> None:
    row = ORACLE[name]
    family, member = check(name), check(name, parameters=row["set"])
    assert (None if family.condition is None else str(family.condition)) == row["condition"]
    assert member.answer == row["answer"]
    assert family.answer == row["answer"]
    expected = {"windowed": "converges", "disperses": "diverges", "neither": "not-applicable"}[row["answer"]]
    assert member.verdict == expected
    assert BOUNDED[name].source
    assert member.latex()
    json.dumps(member.json())


def members(name: str, rng: np.random.Generator, n: int, adversarial: str | None, j: int) -> np.ndarray:
    """A bias of row n - 1 by distance, chosen from the class as its own description says, not by its formula."""
    p = {k: float(Fraction(v)) for k, v in ORACLE[name]["set"].items()}
    t = np.arange(n)
    near_low = np.where(t < j, 0.0, 1.0)  # near keys take the low end, far ones the high end
    pick = near_low if adversarial == "worst" else 1 - near_low if adversarial == "best" else rng.uniform(size=n)
    if name == "fox":
        if adversarial is None:  # gates between the query and the key, one by one
            return np.concatenate([[0.0], np.cumsum(np.log(rng.uniform(p["low"], p["high"], n - 1)))])
        return t * np.log(p["low"] + pick * (p["high"] - p["low"]))
    if name in ("cable", "rwkv"):
        if adversarial is None:
            return -np.concatenate([[0.0], np.cumsum(rng.uniform(p["low"], p["high"], n - 1))])
        return -t * (p["high"] - pick * (p["high"] - p["low"]))
    if name == "dape":
        return -p["k"] * t + p["m"] * (2 * pick - 1)
    if name == "mlp":
        return -p["s"] * t + p["m"] * (2 * pick - 1)
    if name == "bipe":
        return -p["k"] * np.floor(t / (1 + pick * (p["m"] - 1)))
    assert name in ("streaming-llm", "window-sink")
    return np.where(t < p["w"], 0.0, -np.inf)


WINDOWED = ["fox", "cable", "rwkv", "dape", "mlp", "bipe", "streaming-llm", "window-sink"]


def test_two_thousand_rows_stay_below_the_bound_and_attain_it() -> None:
    """Random members, lengths, logits and windows; a quarter of them adversaries, which attain the bound."""
    rng = np.random.default_rng(0)
    cases = {name: WorstCase(find(name).formula.bind(ORACLE[name]["set"])) for name in WINDOWED}
    bounds: dict[tuple[str, int, Fraction], float] = {}
    attained = dict.fromkeys(WINDOWED, 0.0)
    for number in range(ROWS):
        name = WINDOWED[number % len(WINDOWED)]
        j, m = int(rng.choice([1, 2, 5, 11, 23])), Fraction(int(rng.integers(0, 5)), 2)
        adversary = (None, "worst", None, "best")[(number // len(WINDOWED)) % 4]
        n = 3000 if adversary == "worst" else int(rng.integers(j + 1, 400))
        bias = members(name, rng, n, adversary, j)
        t = np.arange(n)
        content = float(m) * (np.where(t < j, -1.0, 1.0) if adversary == "worst" else rng.uniform(-1, 1, n))
        sink = ORACLE[name]["set"].get("s") if BOUNDED[name].formula.sink is not None else None
        z = math.exp(float(Fraction(sink))) if sink is not None else 0.0
        weights = np.exp(bias + content)
        share = weights[j:].sum() / (z + weights.sum())
        key = (name, j, m)
        if key not in bounds:
            bounds[key] = float(cases[name].share(j, m).mid())
        bound = bounds[key]
        assert share <= bound * (1 + 1e-9) + 1e-12, (name, j, m, share, bound)
        if adversary == "worst" and bound > 0:
            attained[name] = max(attained[name], share / bound)
    assert all(ratio == pytest.approx(1, abs=1e-6) for ratio in attained.values()), attained


@pytest.mark.parametrize("name", WINDOWED)
def test_the_field_is_the_smallest_window_of_the_worst_member(name) -> None:
    row = ORACLE[name]["set"]
    worst = WorstCase(find(name).formula.bind(row))
    for epsilon in ("0.3", "0.01"):
        tokens = trf(name, epsilon, parameters=row)
        assert float(worst.share(tokens).mid()) < float(epsilon)
        if tokens > 1:
            assert float(worst.share(tokens - 1).mid()) >= float(epsilon)
        window = windows(name, epsilon, "1", 1, parameters=row).heads[0].tokens
        assert window is not None
        assert window >= tokens or BOUNDED[name].formula.sink is not None


def test_rows_of_interpolated_alibi_disperse() -> None:
    """No key of a row of n holds more than exp(2M + k*l)/n, whatever the logits."""
    rng = np.random.default_rng(1)
    k, length, m = 1 / 8, 64, 1.0
    for n in (10, 100, 1000, 5000):
        t = np.arange(n)
        logits = -k * t * length / max(length, n) + rng.uniform(-m, m, n)
        assert (np.exp(logits) / np.exp(logits).sum()).max() <= math.exp(2 * m + k * length) / n


def test_one_member_is_the_bias_itself() -> None:
    assert trf("upper: -t/16; lower: -t/16", "0.01") == trf("-t/16", "0.01") == 74
    assert (
        windows("upper: -t/16 + 1; lower: -t/16 - 1", "0.01", "2", 1).heads[0].tokens
        == windows("-t/16", "0.01", "3", 1).heads[0].tokens
    )


ANSWERS = {
    "upper: 0; lower: t*log(1/2)": ("diverges", "neither"), "upper: 0; lower: -t/4": ("diverges", "neither"),
    "upper: 1; lower: -1": ("diverges", "disperses"), "upper: 0; lower: -log(t + 1)/log(65)": ("diverges", "disperses"),
    "upper: -log(1 + t)/2; lower: -2*log(1 + t)": ("diverges", "neither"),
    "upper: -3/2*log(1 + t); lower: -2*log(1 + t)": ("converges", "windowed"),
    "upper: -2*log(1 + t) + 9; lower: -2*log(1 + t) - 9": ("converges", "windowed"),
    "upper: -log(1 + t)/4; lower: -log(1 + t)": ("diverges", "disperses"),
    "upper: -log(1 + t)/4; lower: -3/4*log(1 + t)": ("diverges", "disperses"),
    "0": ("diverges", "disperses"), "-log(1 + t)": ("diverges", "disperses"), "-t/16": ("converges", "windowed"),
    "0; sink: 3": ("diverges", "disperses"), "-t/8; sink: 0": ("converges", "windowed"),
    "upper: -t*tanh(1/4); lower: -t*tanh(1)": ("converges", "windowed"),
    "upper: -(1 + sin(t))*log(t + 1); lower: -9*t": ("undecided", None),
}  # fmt: skip


@pytest.mark.parametrize("text", ANSWERS)
def test_answers(text) -> None:
    verdict = check(text)
    assert (verdict.verdict, verdict.answer) == ANSWERS[text]


@pytest.mark.parametrize("name", ["rope", "sinusoidal"])
def test_rotations_get_a_sentence_with_a_proof(name) -> None:
    verdict = check(name)
    assert verdict.verdict == "not-applicable"
    assert verdict.answer == "disperses"
    assert "1 - w/n" in verdict.proof[-1]


REFUSED = {
    "between(1, -1)": "upper:", "-k*i": "you wrote i", "sink(1) - t": "sink:", "upper: 1": "lower:",
    "upper: -1; lower: 1": "above", "upper: 1; lower: t": "above", "-t; sink: t": "does not depend",
    "weight: 2; lower: 1": "is written", "lower: -t": "an upper",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_bounded_family_ends_in_one_sentence(text) -> None:
    with pytest.raises(FormulaError, match=REFUSED[text]) as caught:
        check(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["upper: -k*t + m; lower: -k*t - m", "upper: t*log(high); lower: t*log(low); sink: s", "-k*t; sink: s"]
)
def test_text_and_markup_go_round(text) -> None:
    formula = parse(text)
    assert parse(formula.text()) == formula
    assert formula.latex()
    assert formula.mathml()
    assert formula.is_bounded_family
    with pytest.raises(ValueError, match="needs one bias"):
        formula.float(1.0, {"k": 1, "m": 1, "low": 1, "high": 1, "s": 1, "l": 1})


def test_families_are_compared_by_their_upper_bounds() -> None:
    result = compare("upper: -t/16 + 3; lower: -t/16 - 3", "-2*log(1 + t)")
    assert result.smaller == "a"
    assert "upper bound" in result.proof[0]


def test_the_command_tells_the_worst_case(capsys) -> None:
    from farfield.cli import main

    with pytest.raises(SystemExit) as end:
        main(["check", "fox", "--set", "low=1/2", "--set", "high=9/10", "--epsilon", "0.01"])
    assert end.value.code in (0, None)
    out = " ".join(capsys.readouterr().out.split())
    assert "all but 1 % of the weight within 59 tokens" in out
    assert "receptive field in tokens, in the worst case over the family, for each epsilon 0.01" in out


ORDERS = {  # of two classes, or a class and a bias: whose worst case is the smaller as epsilon -> 0
    ("upper: -t/16 + 1; lower: -t/16 - 1", "-t/16"): "b", ("-t/16", "-t/16; sink: 3"): "b",
    ("-t/16", "upper: -t/16 + 1/100; lower: -t/16 - 1/100; sink: -3"): "a", ("upper: -t/16; lower: -t/8", "-t/16"): "b",
    ("upper: -t/16 + 1; lower: -t/16 - 1", "upper: -t/16 + 2; lower: -t/16 - 1"): "a",
    ("upper: 1; lower: -1", "-t"): "b",
    ("upper: -t/8 + 1; lower: -t/8 - 1", "-t/8 - sqrt(t)"): "b", ("upper: -t; lower: -t*cosh(1)", "-t"): "b",
    ("upper: -t/16 + 1; lower: -t/16 - 1", "upper: -t/16 + 1; lower: -t/16 - 1"): "equal",
    ("where(t < 16, 0, -inf); sink: 1", "where(t < 16, 0, -inf)"): "limit",
}  # fmt: skip


@pytest.mark.parametrize("pair", ORDERS, ids=str)
def test_the_order_of_classes_is_that_of_their_worst_cases(pair) -> None:
    result = compare(*pair)
    assert result.smaller == ORDERS[pair]
    if result.smaller in ("a", "b") and "upper: 1; lower: -1" not in pair:  # which has no field at all
        small, large = (trf(text, "1e-30") for text in (pair if result.smaller == "a" else pair[::-1]))
        assert small <= large


def test_reach_and_leak_are_those_of_the_worst_row() -> None:
    """By brute force: near keys at the lower end, far keys at the upper one."""
    text, n = "upper: -t/16 + 1; lower: -t/16 - 1", 200
    t = np.arange(n)
    shares = []
    for j in range(n):
        weights = np.exp(-t / 16 + np.where(t < j, -1, 1))
        shares.append(weights[j:].sum() / weights.sum())
    for epsilon in ("0.3", "0.01", "1e-4"):
        assert reach(text, epsilon, n) == next(j for j, share in enumerate(shares) if share < float(epsilon))
    for j in (10, 64, 150):
        result = leak(text, j, n)
        assert result.low <= result.high
        assert float(result) == pytest.approx(shares[j], rel=1e-9)
        assert leak("-t/16", j, n) < result
    assert windows("upper: 1; lower: -1", "0.01", "1", 1, context=1000).heads[0].tokens == 1000


def test_what_needs_one_bias_says_what_to_ask_instead() -> None:
    for ask in (series, law, lambda text: model_reach(text, "0.01", 3), lambda text: nn.Bias(text, 2)):
        with pytest.raises(ValueError, match=r"needs one bias, and .* is a bounded family .*: -t/16 \+ 1$"):
            ask("upper: -t/16 + 1; lower: -t/16 - 1")
    with pytest.raises(ValueError, match=r"design needs one bias.*: t\*log\(high\)$"):
        design("fox", 100, parameters={"low": "1/2"})
    with pytest.raises(ValueError, match="starts at distance 0, not at 3"):
        trf("upper: -t/16 + 1; lower: -t/16 - 1", "0.01", start=3)


def test_the_commands_answer_for_classes(capsys) -> None:
    from farfield.cli import main

    def said(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(list(words))
        assert end.value.code in (0, None)
        return " ".join(capsys.readouterr().out.split())

    asked = ("--context", "100", "--train-length", "64", "--test-length", "640", "--layers", "3", "--epsilon", "0.01")
    out = said("check", "upper: -t/16 + 1; lower: -t/16 - 1", *asked)
    assert re.search(r"0.01 0.01 in 100 leak \W+ 106 92 0.121 ", out)
    assert "leak from 64 to 640 tokens, in the worst case: 0.1212" in out
    assert "computed for one bias" in out
    out = said("check", "dape", "--heads", "2", "--set", "m=1", "--epsilon", "0.01", "--json")
    assert [head["trf"] for head in json.loads(out)["heads"]][1] == [{"epsilon": "0.01", "tokens": "1689"}]
    out = said("compare", "upper: -t/16 + 1; lower: -t/16 - 1", "-t/16", "--epsilon", "0.01")
    assert "106 74" in out
    assert "is the worst case over a bounded family" in out


CHECKED = [
    "upper: -t/16 + 1; lower: -t/16 - 1", "upper: -3/2*log(1 + t); lower: -2*log(1 + t)",
    "upper: -t; lower: -t*cosh(1); sink: 3", "upper: max(-t, -sqrt(t)); lower: -2*t",
]  # fmt: skip


@pytest.mark.parametrize("name", [*WINDOWED, *CHECKED])
def test_the_checker_proves_the_bound_for_every_member(name) -> None:
    formula = find(name).formula.bind(ORACLE[name]["set"] if name in ORACLE else {})
    verdict = check(formula)
    assert verdict.verdict == "converges"
    assert verdict.proven
    assert examine(formula, "converges", verdict.certificate)
    assert not examine(formula, "diverges", verdict.certificate)


@pytest.mark.parametrize(
    "text",
    [
        "upper: -log(1 + t)/2; lower: -2*log(1 + t)", "upper: 1; lower: -1",
        "upper: -2*log(1 + t) + 5*log(log(t + 3)); lower: -2*log(1 + t)", "upper: t/1000 - 2*log(1 + t); lower: -t",
    ],
)  # fmt: skip
def test_the_checker_refuses_a_bound_that_some_member_exceeds(text) -> None:
    certificate = check("-2*log(1 + t)").certificate
    assert examine(parse("-2*log(1 + t)"), "converges", certificate)
    assert examine(parse("upper: -2*log(1 + t); lower: -3*log(1 + t)"), "converges", certificate)
    assert not examine(parse(text), "converges", certificate)
