"""What the functions of the API give back: it prints as a sentence, shows in a notebook, and refuses nonsense."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import farfield as ff
from farfield.formula import FormulaError

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "intermediate_size": 64, "vocab_size": 99,
}  # fmt: skip
K = {"k": "1/16"}
RESULTS: dict[str, Callable[[], Any]] = {
    "a verdict": lambda: ff.check("-2*log(t + 1)"),
    "a condition": lambda: ff.check("-wwb*t - r*log(t + 1)"),
    "no verdict": lambda: ff.check("rope"),
    "undecided": lambda: ff.check("-(1 + sin(t))*log(t + 1)"),
    "a bounded family": lambda: ff.check("upper: -t/16 + 1; lower: -t/16 - 1"),
    "fields": lambda: ff.trf("type1", ["0.1", "1e-6"], parameters=K),
    "a comparison": lambda: ff.compare("alibi", "type1", parameters=K),
    "an inspection": lambda: ff.inspect(CONFIG, name="<b>mine</b>"),
    "an unknown model": lambda: ff.inspect({"model_type": "no<such>", "rope_theta": 3}),
}


class Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_reads_well(name: str) -> None:
    result = RESULTS[name]()
    page = Balanced()
    markup = result._repr_html_()
    page.feed(markup)
    assert page.open == []
    assert "<b>" not in markup
    assert "such>" not in markup
    for text in (str(result), repr(result)):
        assert "Node(" not in text
        assert " at 0x" not in text


@pytest.mark.parametrize("name", [name for name in RESULTS if name != "an unknown model"])
def test_a_result_travels_to_another_process(name: str) -> None:
    result = RESULTS[name]()
    assert pickle.loads(pickle.dumps(result)) == result


def test_encodings_travel_too() -> None:
    """Named ones could not: their rules are functions without a name."""
    mine = ff.Encoding("mine", "-a*t", learn={"a": (0, 1)})
    for encoding in (*ff.ENCODINGS.values(), ff.find("-k*t**2"), mine):
        assert pickle.loads(pickle.dumps(encoding)) == encoding
        assert copy.deepcopy(encoding) == encoding


def test_results_print_what_they_say() -> None:
    lines = str(ff.check("-2*log(t + 1)")).splitlines()
    assert lines[0] == "r(t) = -2*log(t + 1): converges"
    assert lines[-1].endswith("the sum of b(t) over t >= 0 converges")
    assert str(ff.trf("type1-paper", ["1e-2"])).splitlines()[1].split() == ["1e-2", "61"]
    assert str(ff.compare("alibi", "type1", parameters=K)).startswith("alibi has the smaller receptive field")
    assert repr(ff.parse("-k*t")) == "Formula('-k*t')"
    assert "<function" not in repr(ff.find("alibi"))
    assert "sandwich" in repr(ff.ENCODINGS)


ONE_VALUE: dict[str, Callable[[Any], Any]] = {
    "check": lambda given: ff.check("alibi", parameters=given),
    "trf": lambda given: ff.trf("alibi", 0.01, parameters=given),
    "reach": lambda given: ff.reach("alibi", 0.01, 512, parameters=given),
    "law": lambda given: ff.law("alibi", parameters=given),
    "compare": lambda given: ff.compare("alibi", "type1", parameters=given),
    "series": lambda given: ff.series("alibi", parameters=given),
    "design": lambda given: ff.design("-k*t - m*t", 99, parameters={"m": given["k"]} if given != "k=1" else given),
}
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "leak": lambda given: ff.leak("alibi", 64, 512, parameters=given),
    "layer": lambda given: ff.layer("alibi", 0.01, parameters=given),
    "model_reach": lambda given: ff.model_reach("alibi", 0.01, 2, parameters=given),
    "windows": lambda given: ff.windows("alibi", 0.01, 5, parameters=given),
}


@pytest.mark.parametrize("name", ONE_VALUE)
def test_a_list_for_the_heads_is_refused_where_one_head_is_asked_for(name: str) -> None:
    """trf gave the field of the first head without a word."""
    with pytest.raises(ValueError, match=r"one (value|number)"):
        ONE_VALUE[name]({"k": ["1/2", "1/4"]})


@pytest.mark.parametrize("name", SEVERAL)
def test_a_list_for_the_heads_is_taken_where_heads_are_asked_for(name: str) -> None:
    assert SEVERAL[name]({"k": ["1/2", "1/4"]})


@pytest.mark.parametrize("name", ONE_VALUE | SEVERAL)
@pytest.mark.parametrize("value", [True, None, {}, 1j, "hello", float("nan"), float("inf")])
def test_what_is_no_number_is_refused_in_a_sentence(name: str, value: Any) -> None:
    with pytest.raises((ValueError, FormulaError), match="must be"):
        (ONE_VALUE | SEVERAL)[name]({"k": value})


@pytest.mark.parametrize("name", ONE_VALUE | SEVERAL)
def test_parameters_are_a_table(name: str) -> None:
    with pytest.raises(ValueError, match="table"):
        (ONE_VALUE | SEVERAL)[name]("k=1")


def test_numbers_of_numpy_are_numbers() -> None:
    assert ff.trf("alibi", 0.01, parameters={"k": np.float64(0.0625)}) == 74
    assert ff.trf("alibi", 0.01, parameters={"k": np.float32(0.0625)}) == 74
    assert ff.trf("-k*t/16", 0.01, parameters={"k": np.int64(1)}) == 74


def test_the_width_of_a_head_reaches_every_function() -> None:
    """An encoding whose slope is one over the width of a head: 1/16 at 16, 1/64 at 64."""
    slope = ff.Fixed(lambda width: 1 / width, "1/width")
    mine = ff.Encoding("mine", "-d*t", (ff.Parameter("d", "d > 0", slope),))
    at = {width: {"d": f"1/{width}"} for width in (16, 64)}
    for width, given in at.items():
        assert ff.trf(mine, 0.01, width=width) == ff.trf("-d*t", 0.01, parameters=given)
        assert ff.reach(mine, 0.01, 99, width=width) == ff.reach("-d*t", 0.01, 99, parameters=given)
        assert ff.leak(mine, 64, 512, width=width) == ff.leak("-d*t", 64, 512, parameters=given)
        assert ff.law(mine, width=width) == ff.law("-d*t", parameters=given)
        assert ff.layer(mine, 0.01, 2, width=width).mixture == ff.trf("-d*t", 0.01, parameters=given)
        assert ff.model_reach(mine, 0.1, 2, width=width) == ff.model_reach("-d*t", 0.1, 2, parameters=given)
        assert ff.windows(mine, 0.01, 1, width=width).heads[0].tokens == (
            ff.windows("-d*t", 0.01, 1, parameters=given).heads[0].tokens
        )
        assert ff.series(mine, width=width).tail(5).mid() == ff.series("-d*t", parameters=given).tail(5).mid()
        assert ff.compare(mine, "-t/32", width=width).smaller == ("a" if width == 16 else "b")
    other = ff.Encoding("other", "-d*t - k*t", (ff.Parameter("d", "d > 0", slope),))
    assert ff.design(other, 30, width=16).value < ff.design(other, 30, width=64).value
