"""Receptive fields are exact: oracle, ties, brute force, heads, layers, and what nonsense gets."""

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import check, compare, design, law, windows, zoo
from farfield.formula import parse
from farfield.theory.errors import DivergenceError, UndecidedError
from farfield.theory.fields.layers import layer, model_reach
from farfield.theory.fields.receptive import digits, exact_epsilon, leak, reach, trf
from farfield.theory.sums.weight import Weight

ORACLE = json.loads((Path(__file__).parents[2] / "oracles" / "trf.json").read_text(encoding="utf-8"))["series"]
VALUES = [(c["bias"], epsilon, tokens) for c in ORACLE for epsilon, tokens in c["trf"].items()]
PROPERTY = settings(deadline=None, derandomize=True, max_examples=60)


def by_hand(text, epsilon, terms=20_000):
    """The definition itself, on so many terms that the rest does not matter."""
    with ctx.workprec(128):
        weight = Weight(parse(text))
        tails = [arb(0)]
        for t in range(terms - 1, -1, -1):
            tails.append(tails[-1] + weight(t))
        tails.reverse()
        bound = arb(fmpq(epsilon.numerator, epsilon.denominator)) * tails[0]
        return next(j for j, tail in enumerate(tails) if tail < bound)


@pytest.mark.parametrize("case", ORACLE, ids=lambda c: c["name"])
def test_every_value_of_the_oracle(case):
    result = {row["epsilon"]: row["tokens"] for row in trf(case["bias"], list(case["trf"])).json()}
    assert result == case["trf"]


def test_type_1_as_printed_at_one_thousandth_is_608():
    assert trf("type1-paper", 1e-3) == 608


@pytest.mark.parametrize("digits_", [13, 15, 18, 24])
def test_power_laws_far_beyond_any_sum_of_terms(digits_):
    """For 1/(t+1)**2 the tail is the trigamma function at j + 1, and B is pi**2/6."""
    epsilon = Fraction(1, 10**digits_)
    j = trf("-2*log(t+1)", epsilon)
    with ctx.workprec(400):
        bound = arb.pi() ** 2 / 6 * arb(fmpq(1, 10**digits_))
        assert arb(2).zeta(arb(j) + 1) < bound
        assert not arb(2).zeta(arb(j)) < bound


TIES = [
    ("weight: 2**(-t)", "1/2", 2),
    ("weight: 2**(-t)", "0.25", 3),
    ("weight: 0.1**t", "1e-12", 13),
    ("-log(2)*t", "0.125", 4),
    ("-log(10)/2*t", "0.1", 3),
    ("-t*log(2)/1000", "1/1024", 10_001),
    ("where(t < 512, 0, -inf)", "0.5", 257),
    ("where(t < 512, log(3)/7, -inf)", "0.25", 385),
    ("where(t < 4, -t*log(2), -inf)", "1/15", 4),
    ("where(t < 3, 0, -t*log(2))", "1/52", 6),
    ("-log(t+1) - log(t+2)", "0.125", 8),
    ("weight: 1/(t**2+3*t+2)", "1e-9", 10**9),
]


@pytest.mark.parametrize(("text", "epsilon", "tokens"), TIES)
def test_ties_are_decided_exactly(text, epsilon, tokens):
    """tail(j) = epsilon*B is not below epsilon*B."""
    assert trf(text, epsilon) == tokens


def test_beside_a_tie_the_answer_is_one_less():
    """1/((t+1)*(t+2)) has tail(j) = 1/(j+1): a tie at every epsilon = 1/n."""
    assert trf("-log(t+1) - log(t+2)", "1e-9") == 10**9
    assert trf("-log(t+1) - log(t+2)", "1.0000000001e-9") == 10**9 - 1


@PROPERTY
@given(
    st.fractions(min_value=Fraction(1, 100), max_value=4, max_denominator=100),
    st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(99, 100), max_denominator=10**6),
)
def test_alibi_has_the_closed_form(k, epsilon):
    """floor(ln(1/epsilon)/k) + 1, and the products of shares add up."""
    n = trf("alibi", epsilon, parameters={"k": k})
    with ctx.workprec(256):
        exact = -arb(fmpq(epsilon.numerator, epsilon.denominator)).log() / arb(fmpq(k.numerator, k.denominator))
        assert n == int(exact.floor().unique_fmpz()) + 1
    assert trf("alibi", epsilon * epsilon, parameters={"k": k}) in (2 * n - 1, 2 * n)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.sampled_from(
        [
            "-{k}*t",
            "-{k}*t**1.3",
            "-3*{k}*sqrt(t)",
            "-log(3+{k}*t)**2 - t/100",
            "where(t<9, {k}*t, -{k}*t)",
            "-t/9+sin({k}*t)",
        ]
    ),
    st.fractions(min_value=Fraction(1, 10), max_value=3, max_denominator=30),
    st.sampled_from(["0.9", "0.5", "0.11", "0.01", "0.003"]),
)
def test_trf_is_what_the_definition_says(pattern, k, epsilon):
    text = pattern.replace("{k}", f"({k})")
    assert trf(text, epsilon) == by_hand(text, Fraction(epsilon), 3000)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    st.sampled_from([c["bias"] for c in ORACLE if "1.01" not in c["bias"]]),
    st.floats(min_value=1e-9, max_value=0.99),
    st.floats(min_value=1e-9, max_value=0.99),
)
def test_trf_does_not_rise_with_epsilon_nor_with_a_scale(text, one, other):
    small, large = sorted((one, other))
    assert trf(text, small) >= trf(text, large)
    if not text.startswith("where"):
        assert trf(f"{text} + 3", large) == trf(text, large)


def test_the_same_series_under_other_names():
    for epsilon in ("0.3", "0.01", "1e-6"):
        assert trf("kerple-log", epsilon, parameters={"p": 2, "a": 1}) == trf("type1-paper", epsilon)
        assert trf("kerple-log", epsilon, parameters={"p": "1.5", "a": "1/4"}) == trf("-1.5*log(t+4)", epsilon)
        assert trf("kerple-power", epsilon, parameters={"p": 1, "a": "1/8"}) == trf(
            "alibi", epsilon, parameters={"k": "1/8"}
        )
        assert trf("-2*log(t)", epsilon, start=1) == trf("-2*log(t+1)", epsilon) + 1


def test_oscillating_and_stepped_weights():
    assert trf("-t/12 + sin(t)", "1e-6") == by_hand("-t/12 + sin(t)", Fraction(1, 10**6), 1500)
    assert trf("-floor(t/3)/4", "1e-3") == by_hand("-floor(t/3)/4", Fraction(1, 1000), 1500)
    assert trf("-2*floor(log(t+1))", "0.1") > 5
    assert trf("-2*log(t+1) + sin(t)", "0.1") == by_hand("-2*log(t+1) + sin(t)", Fraction(1, 10), 30_000)
    with pytest.raises(UndecidedError, match="could not be decided"):
        trf("-2*log(t+1) + sin(t)", "1e-9")


def test_a_field_of_a_thousand_digits_is_written_out():
    (row,) = trf("-1.001*log(t+1)", ["1e-2"]).json()
    assert len(row["tokens"]) > 1900
    assert row["tokens"].isdigit()
    assert digits(10**5000) == "1" + "0" * 5000
    with pytest.raises(UndecidedError, match="digits"):
        trf("-log(t+2)-2*log(log(t+2))", "1e-9")


# ---------------------------------------------------------------------------------------------------- finite contexts
def test_reach_within_a_context():
    assert reach("none", 0.5, 10) == 6
    assert reach("inverse", 0.5, 9216, parameters={"k": 1}) < reach("inverse", 0.5, 100_000, parameters={"k": 1})
    for n in (600, 1000, 3000, 100_000):
        assert reach("alibi", 0.01, n, parameters={"k": "1/256"}) <= trf("alibi", 0.01, parameters={"k": "1/256"})
    assert reach("alibi", 0.01, 10**6, parameters={"k": "1/256"}) == trf("alibi", 0.01, parameters={"k": "1/256"})
    assert reach("window", 0.5, 100, parameters={"w": 512}) == 51
    assert reach("-log(t+1)", "0.1", 1) == 1


@pytest.mark.parametrize(
    ("name", "mean", "worst"),
    [
        ("alibi", 0.019, 0.135),
        ("type2", 0.052, 0.294),
        ("type1", 0.072, 0.282),
        ("sandwich", 0.110, 0.425),
        ("inverse-log", 0.398, 0.683),
        ("inverse", 0.491, 0.696),
    ],
)
def test_the_leak_orders_the_papers_encodings_by_their_damage(name, mean, worst):
    result = leak(name, 512, 9216, heads=8)
    assert result == pytest.approx(mean, abs=6e-4)
    assert max(result.heads) == pytest.approx(worst, abs=6e-4)


def test_leak_is_the_share_beyond_the_training_length():
    assert leak("none", 512, 9216) == pytest.approx(1 - 512 / 9216)
    assert leak("window", 512, 9216, parameters={"w": 512}) == 0
    assert leak("kerple-log", 512, 10**12, parameters={"p": "1.01", "a": 1}) > 0.7
    with pytest.raises(ValueError, match="below the training length"):
        leak("none", 512, 100)


# ---------------------------------------------------------------------------------------------------- heads and layers
MODELS = [  # 8 heads, 6 layers: smallest and largest head, mixture, union bound, convolution, with residual 1/2
    ("alibi", "0.1", {}, 8, (5, 590, 181, 3265, 810, 493)),
    ("alibi", "0.01", {}, 8, (10, 1179, 666, 6649, 1535, 1141)),
    ("type1", "0.1", {}, 8, (12, 1615, 376, 14509, 2945, 1389)),
    ("type2", "0.01", {}, 8, (19, 2467, 1236, 13843, 3008, 2198)),
    ("type1-paper", "0.01", {}, 1, (61, 61, 61, 2185, 379, 189)),
    ("window", "0.01", {"w": 512}, 1, (507, 507, 507, 3067, 2358, 1795)),
]


@pytest.mark.parametrize(("name", "epsilon", "given_", "heads", "wanted"), MODELS)
def test_layers_and_models(name, epsilon, given_, heads, wanted):
    result = layer(name, epsilon, heads, parameters=given_)
    model = model_reach(name, epsilon, 6, heads, parameters=given_)
    half = model_reach(name, epsilon, 6, heads, residual="0.5", parameters=given_)
    tokens = [h.tokens for h in result.heads]
    got = (min(tokens), result.largest, result.mixture, model.union_bound, model.tokens, half.tokens)
    assert got == wanted
    assert model.union_bound >= model.tokens


def test_l_times_the_field_is_no_bound():
    assert model_reach("type1-paper", "0.01", 6).tokens > 6 * (61 - 1) + 1


def test_windows_add_up():
    assert model_reach("window", "1e-18", 6, parameters={"w": 512}).tokens == 6 * 511 + 1


def test_one_layer_is_the_layer_itself():
    assert model_reach("alibi", "0.01", 1, parameters={"k": "1/16"}).tokens == trf(
        "alibi", "0.01", parameters={"k": "1/16"}
    )


def test_parameters_of_heads():
    assert [h.parameters["k"] for h in layer("alibi", "0.1", 8).heads] == zoo.slopes(8)
    given_ = {"p": ["1.5", "2"], "a": "0.5"}
    assert layer("kerple-log", "0.1", parameters=given_).heads[1].parameters == {"p": "2", "a": "0.5"}
    assert [h.tokens for h in layer("-k*t", "0.01", 2).heads] == [h.tokens for h in layer("alibi", "0.01", 2).heads]
    assert [h.tokens for h in layer("-k*t", "0.01", parameters={"k": [1, "1/16"]}).heads] == [5, 74]
    with pytest.raises(ValueError, match="3 values for 2 heads"):
        layer("kerple-log", "0.1", 2, parameters={"p": [1, 2, 3], "a": 1})
    with pytest.raises(ValueError, match="from 1 to 4096"):
        layer("alibi", "0.1", 10**6)


def test_a_leak_is_a_number_with_its_enclosure():
    result = leak("alibi", 512, 9216, parameters={"k": "1/256"})
    assert isinstance(result, float)
    assert result.low <= result <= result.high
    assert result.high - result.low < 1e-15
    exact = (math.exp(-2) - math.exp(-36)) / (1 - math.exp(-36))  # 1 - (1 - e^-2)/(1 - e^-36)
    assert result.low - 1e-15 <= exact <= result.high + 1e-15
    again = pickle.loads(pickle.dumps(result))
    assert (again, again.enclosure) == (result, result.enclosure)
    assert leak("-m*t", 64, 512, parameters={"m": 1}) == pytest.approx(math.exp(-64))


NAMES = [
    "start",
    "width",
    "heads",
    "reach",
    "context",
    "layers",
    "weight",
    "epsilon",
    "budget",
    "parameters",
    "encoding",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_may_be_called_like_an_argument(name):
    text, given_ = f"-{name}*t", {name: "1/16"}
    assert check(text, parameters=given_).verdict == "converges"
    assert trf(text, "0.01", parameters=given_) == 74
    assert reach(text, "0.01", 512, parameters=given_) == 74
    assert leak(text, 64, 512, parameters=given_) == pytest.approx(math.exp(-4), rel=1e-6)
    assert layer(text, "0.01", parameters=given_).largest == 74
    assert model_reach(text, "0.01", 1, parameters=given_).tokens == 74
    assert law(text, parameters=given_) == "about 16*ln(1/epsilon)"
    assert design(text, 74).parameter == name
    assert windows(text, "0.01", 0, parameters=given_).heads[0].tokens == 74
    assert compare(text, "-t", parameters=given_).smaller == "b"


@pytest.mark.parametrize("ask", [
    lambda p: check("-k*t", parameters=p),
    lambda p: trf("-k*t", 0.1, parameters=p),
    lambda p: reach("-k*t", 0.1, 9, parameters=p),
    lambda p: leak("-k*t", 5, 9, parameters=p),
    lambda p: layer("-k*t", 0.1, parameters=p),
    lambda p: model_reach("-k*t", 0.1, 2, parameters=p),
    lambda p: law("-k*t", parameters=p),
    lambda p: windows("-k*t", 0.1, 1, parameters=p),
    lambda p: compare("-k*t", "-t", parameters=p),
    lambda p: design("-k*t", 9, parameters=p),
])  # fmt: skip
def test_an_unknown_parameter_is_one_sentence(ask):
    with pytest.raises(ValueError, match="parameter 'slope'") as caught:
        ask({"slope": 1})
    assert "\n" not in str(caught.value)


def test_a_table_of_fields():
    table = trf("type1-paper", ["0.1", "0.01"])
    assert list(table) == [("0.1", 6), ("0.01", 61)]
    assert len(trf("type1-paper")) == 7
    assert "<td>61</td>" in table._repr_html_()


# ---------------------------------------------------------------------------------------------------- nonsense
@pytest.mark.parametrize("epsilon", [0, 1, -0.5, 2, "abc", "nan", "inf", None, True, "", "1e-99999", "1/0", math.nan])
def test_an_epsilon_that_is_no_share_gets_one_sentence(epsilon):
    with pytest.raises(ValueError, match="epsilon must") as caught:
        trf("alibi", epsilon, parameters={"k": 1})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("context", [0, -1, 2.5, "9", None])
def test_a_context_that_is_no_length_gets_one_sentence(context):
    with pytest.raises(ValueError, match="context must be a whole number"):
        reach("none", 0.1, context)


@pytest.mark.parametrize("name", ["inverse", "none", "inverse-log", "sandwich"])
def test_a_divergent_encoding_has_no_receptive_field(name):
    row = zoo.find(name).heads(8)[7]
    with pytest.raises(DivergenceError, match="diverges"):
        trf(name, 0.1, parameters=row)


def test_epsilon_is_the_decimal_that_was_typed():
    assert exact_epsilon(0.1) == Fraction(1, 10)
    assert exact_epsilon("1e-12") == Fraction(1, 10**12)


@pytest.mark.long
def test_six_hundred_random_parameter_sets():
    """Six families, a hundred sets each, against the definition term by term."""
    random = Random(1)
    families = [
        "-{a}*t",
        "-{a}*t**1.4",
        "-4*{a}*t**0.6",
        "-{a}*log(t+{b})**3",
        "-{a}*t - {b}*log(t+1)",
        "{b}*log(t+1) - {a}*t",
    ]
    for pattern in families:
        for _ in range(100):
            a, b = Fraction(random.randint(20, 300), 100), Fraction(random.randint(100, 400), 100)
            epsilon = Fraction(random.randint(1, 900), 1000) / 10 ** random.randint(0, 4)
            text = pattern.replace("{a}", f"({a})").replace("{b}", f"({b})")
            assert trf(text, epsilon) == by_hand(text, epsilon, 3000), (text, epsilon)


def test_a_field_of_hundreds_of_digits_takes_few_comparisons(monkeypatch):
    """Newton's method comes back from far beyond: -t**0.003 took 7,473 certified sums, and two are enough."""
    from farfield.theory.fields import receptive

    asked = []
    below = receptive.below
    monkeypatch.setattr(receptive, "below", lambda *args, **more: (asked.append(args[1]), below(*args, **more))[1])
    tokens = receptive.trf("-t**0.003", "0.01")
    assert len(receptive.digits(tokens)) == 859
    assert asked == [tokens, tokens - 1]
