"""What a window can cost: the windows of theory.md, the bound itself, and where there is no window."""

import json
import math
import random
from fractions import Fraction

import pytest

from farfield.cli import main
from farfield.formula import parse
from farfield.theory.fields.windows import (
    largest_share,
    log_sums,
    smallest_window,
    weights_of,
    windows,
)


def run(*arguments):
    """A command that succeeds."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code in (0, None)


def tokens(encoding, epsilon, logit_bound, heads=None, **options):
    return [h.tokens for h in windows(encoding, epsilon, logit_bound, heads, **options).heads]


def test_the_widest_head_of_alibi_needs_3737_tokens():
    result = windows("alibi", "0.01", 5, 8)
    assert [h.tokens for h in result.heads] == [30, 59, 117, 234, 468, 935, 1869, 3737]
    assert (result.cache_tokens, result.full_tokens) == (7449, 262_144)


@pytest.mark.parametrize(
    ("encoding", "parameters", "expected"),
    [
        ("-k*t", {"k": "1/16"}, [74, 106, 138, 202, 330]),
        ("-k*t", {"k": "1/256"}, [1179, 1689, 2201, 3225, 5273]),
        ("-2*log(t + 1)", {}, [61, 445, 3287, 179_409, 534_808_635]),
        ("-log(t + 1)**2", {}, [9, 14, 20, 40, 113]),
        ("-sqrt(t)", {}, [41, 74, 117, 229, 553]),
    ],
)
def test_windows_for_logits_within_0_1_2_4_8(encoding, parameters, expected):
    weights = weights_of(encoding, parameters=parameters)
    assert [smallest_window(weights, "0.01", m) for m in (0, 1, 2, 4, 8)] == expected


def test_one_token_less_is_not_enough():
    for encoding in ("-t/16", "-sqrt(t)/2", "-log(t + 1)**2", "-1.5*log(1 + t/3)"):
        weights = weights_of(encoding)
        for m, epsilon in ((0.5, "0.1"), (3, "1e-4"), (7, "0.5")):
            w = smallest_window(weights, epsilon, m)
            bound = Fraction(epsilon)
            assert float(largest_share(weights, w, m).upper()) <= float(bound)
            assert w == 1 or float(largest_share(weights, w - 1, m).lower()) > float(bound)


def test_a_tie_is_enough():
    assert (
        smallest_window(weights_of("-k*t", parameters={"k": "log(2)"}), "1/8", 0) == 3
    )  # tail(3) is exactly 1/8 of the sum


def test_scores_attain_the_bound():
    """Theorem A is sharp: near scores at -M, far ones at +M, in a row that is long enough."""
    r, m, window, n = -1 / 16, 2.0, 40, 4000
    weight = [math.exp(r * t + (m if t >= window else -m)) for t in range(n)]
    bound = float(largest_share(weights_of("-t/16"), window, 2))
    assert sum(weight[window:]) / sum(weight) == pytest.approx(bound, rel=1e-12)


def test_random_scores_stay_within_the_bound():
    rng = random.Random(8)
    for _ in range(200):
        k, m, window, n = rng.randint(20, 1000) / 1024, rng.uniform(0, 6), rng.randint(1, 80), rng.randint(1, 300)
        weight = [math.exp(-k * t + rng.uniform(-m, m)) for t in range(n)]
        share = sum(weight[window:]) / sum(weight)
        assert share <= float(
            largest_share(weights_of("-k*t", parameters={"k": Fraction(k)}), window, Fraction(m)).upper()
        )


def test_a_context_shortens_windows_and_gives_divergent_encodings_one():
    assert tokens("inverse-paper", "0.1", 1) == [None]
    result = tokens("inverse-paper", "0.1", 1, context=1000)
    assert result[0] is not None
    assert result[0] < 1000
    assert tokens("alibi", "0.01", 5, 8, context=32_768)[-1] == 3737
    assert tokens("alibi", "0.01", 5, 8, context=2000)[-1] == 2000  # all of it
    unlimited = smallest_window(weights_of("-2*log(t + 1)"), "0.01", 2)
    assert smallest_window(weights_of("-2*log(t + 1)", 5000), "0.01", 2) < unlimited


def test_no_useful_window_is_said_plainly(capsys):
    run("window", "inverse")
    assert "No window exists" in " ".join(capsys.readouterr().out.split())
    run("window", "type1")
    shown = " ".join(capsys.readouterr().out.split())
    assert "No useful window" in shown
    assert "354,944,652" in shown


def test_the_command_prints_one_object(capsys):
    run("window", "alibi", "--heads", "8", "--logit-bound", "5", "--epsilon", "0.01", "--json")
    told = json.loads(capsys.readouterr().out)
    assert max(told["windows"]) == 3737
    assert (told["cache_tokens"], told["full_tokens"]) == (7449, 262_144)
    assert "not for a network as a whole" in told["scope"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["window", "rope"], "rope has no bias"),
        (["window", "alibi", "--epsilon", "2"], "epsilon must lie strictly between 0 and 1"),
        (["window", "alibi", "--logit-bound", "many"], "the logit bound must be a number"),
        (["window", "alibi", "--logit-bound", "1e999999999"], "the logit bound must be a number"),
        (["window", "alibi", "--logit-bound", "-1"], "the logit bound must lie from 0"),
        (["window", "kerple-power"], "leaves the parameters"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_sums_are_rounded_the_safe_way():
    for window in (1, 7, 400, 100_000):
        sums = log_sums(weights_of("-t/256"), window)
        exact_head = math.log(-math.expm1(-window / 256)) - math.log(-math.expm1(-1 / 256))
        exact_tail = -window / 256 - math.log(-math.expm1(-1 / 256))
        assert exact_head - 1e-3 < sums.head < exact_head
        assert exact_tail < sums.tail < exact_tail + 1e-3
    assert log_sums(weights_of("where(t < 5, 0, -inf)"), 5).tail < -900  # nothing lies beyond


def test_our_windows_are_shorter_than_the_threshold_rule():
    """The Forgetting Transformer drops keys whose bias is below -(2M + ln n) + ln epsilon: the same guarantee."""
    for encoding, ratio in (("-t/256", 0.59), ("-log(3 + t/256)**2", 0.5), ("-sqrt(t)/2", 0.68)):
        ours = smallest_window(weights_of(encoding), "0.01", 5)
        bias = parse(encoding)
        least = bias.float(0) + math.log(0.01) - 2 * 5 - math.log(32_768)
        theirs = next(t for t in range(10**6) if bias.float(t) < least)
        assert ours / theirs <= ratio, (encoding, ours, theirs)
