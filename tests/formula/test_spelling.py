"""Expressions as text, LaTeX, MathML and Coq, and the sentences that carry them."""

import contextlib
import math
import pickle
import re
from collections import defaultdict
from itertools import product
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farfield import check, compare
from farfield.formula import number, parse, tree
from farfield.formula.algebras import float_value
from farfield.formula.functions import CALLS, OPERATORS, primitive
from farfield.formula.spelling import LATEX, MATHML, TEXT, join, say
from farfield.formula.tree import Node, T
from farfield.theory.coq.terms import spell
from farfield.theory.errors import OutsideCoqError

NAMES = [
    "wwb",
    "wwq",
    "b",
    "q",
    "h",
    "r",
    "s",
    "o",
    "lambda_",
    "gamma",
    "k_max",
    "a1",
    "b_t",
    "order",
    "apply",
    "start",
]


def assert_sound(step):
    """Balanced LaTeX, well-formed markup, and the same words in all three."""
    latex, markup, words = step.latex(), step.html(), str(step)
    depth = 0
    for c in latex:
        depth += (c == "{") - (c == "}")
        assert depth >= 0
    assert depth == 0
    assert latex.count("$") % 2 == 0
    assert latex.count(r"\left") == latex.count(r"\right")
    tree = ElementTree.fromstring(f"<p>{markup}</p>")
    assert {e.tag for e in tree.iter()} <= {
        "p", "math", "mrow", "mi", "mn", "mo", "msup", "msub", "mfrac", "msqrt", "mtext", "mtable", "mtr", "mtd",
        "munderover",
    }  # fmt: skip
    assert "`" not in words
    assert "wwb(" not in words


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("formula", ["-{}*t", "-{}*log(1 + t)", "where(t < 5, {}, -t**{})", "weight: exp(-{}*t)"])
def test_a_parameter_may_have_any_name(name, formula):
    verdict = check(formula.replace("{}", name), start=1)
    for step in (*verdict.steps, verdict.headline):
        assert_sound(step)
    plain = check(formula.replace("{}", "zz"), start=1)
    assert [re.sub(rf"\b{name}\b(?!\()", "zz", step) for step in verdict.proof] == plain.proof or name in "bqhrsO"
    assert verdict.latex().replace(_latex(name), "#") == plain.latex().replace(r"\mathrm{zz}", "#") or len(name) == 1


def _latex(name):
    return parse(name).latex()


def test_what_the_issue_saw():
    latex = check("-wwb*t").latex()
    assert r"$r(t) = -\mathrm{wwb} \, t$: converges if and only if $\mathrm{wwb} > 0$." in latex
    assert r"\item if $\mathrm{wwb} > 0$: $\ln\left(b(t)\right) = -\mathrm{wwb} \, t$, so" in latex


@pytest.mark.parametrize(
    "formula",
    ["-2*log(t + 1)", "weight: abs(cos(t))/(t + 1)", "(cos(t) - 1)*3", "sandwich", "kerple-log", "window", "t5", "rope",
     "weight: sin(t)**2/(t+1)+exp(-t)", "-(3+sin(t))*log(t+1)", "-log(t+3)-log(log(t+3))", "-tanh(k*t)*t"],
)  # fmt: skip
def test_every_kind_of_proof_is_spelt_soundly(formula):
    verdict = check(formula)
    for step in (*verdict.steps, verdict.headline):
        assert_sound(step)
    assert verdict._repr_html_().count("<li>") == len(verdict.proof)
    assert pickle.loads(pickle.dumps(verdict)) == verdict


def test_a_comparison_is_spelt_soundly():
    result = compare("-2*log(t + 1)", "-log(t + 1)**2")
    for step in result.steps:
        assert_sound(step)
    assert ElementTree.fromstring(f"<div>{result._repr_html_()}</div>") is not None


def test_a_name_that_is_markup_is_text():
    result = compare("-t", "-2*t", names=("<script>", "$x_1 & y$"))
    assert "<script>" not in result._repr_html_()
    assert r"\$x\_1 \& y\$" in result.steps[0].latex()


def test_the_condition_carries_its_cases():
    condition = check("-p*log(1 + a*t)").condition
    assert [[TEXT.write(relation) for relation in case] for case in condition.cases["converges"]] == [
        ["a > 0", "p > 1"]
    ]
    assert condition.latex() == r"converges if and only if $a > 0$ and $p > 1$ (it is undefined if $a < 0$)"
    assert pickle.loads(pickle.dumps(condition)).cases == condition.cases


NUMBERS = st.fractions(-5, 5, max_denominator=9)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(NUMBERS, min_size=1, max_size=4), st.lists(NUMBERS, min_size=1, max_size=3))
def test_what_is_built_is_worth_what_it_says(terms, factors):
    """Sums and products made by hand have the value that their parts give, and parse back to it."""
    total = tree.total(tree.fraction(x) for x in terms)
    product = tree.product(tree.fraction(x) for x in factors)
    for node, value in (
        (total, sum(terms)),
        (product, _product(factors)),
        (tree.negative(product), -_product(factors)),
    ):
        assert parse(TEXT.write(node)).float(0) == pytest.approx(float(value), rel=1e-12, abs=1e-12)
        assert "--" not in TEXT.write(node)


def _product(values):
    result = 1
    for value in values:
        result *= value
    return result


def test_words_next_to_each_other_are_one_piece():
    sentence = say("so ", "it ", tree.relation(T, ">=", number(3)), "", " holds")
    assert sentence.parts[0] == "so it "
    assert str(sentence) == "so it t >= 3 holds"
    assert str(join([T, "x", say(number(1))], ", ")) == "t, x, 1"
    assert sentence.mathml()[0] == {"words": "so it "}


# ---------------------------------------------------------------------------------------------------- brackets
RENDERINGS = {
    "text": TEXT.write,
    "LaTeX": LATEX.write,
    "MathML": MATHML.write,
    "Coq": lambda node: spell(primitive(node), {name: name for name in "abcdefg"})[0],
}
FORMS = {**OPERATORS, **CALLS, "where": 4, "sum": 1}


def made_of(op, *parts):
    """An operation of the grammar applied to these parts."""
    if op == "sum":
        return Node("sum", (parts[0], number(1), number(3)), "j")
    return Node(op, parts, "<" if op == "where" else "")


def nested():
    """Every operation in every place of every other one, with the names a, b, c, ... from left to right."""
    for outer, inner in product(FORMS, FORMS):
        for place in range(FORMS[outer]):
            names = [Node("name", (), name) for name in "abcdefg"]
            inside = made_of(inner, *names[place : place + FORMS[inner]])
            yield made_of(outer, *names[:place], inside, *names[place + FORMS[inner] :][: FORMS[outer] - place - 1])


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_what_is_written_alike_is_the_same_function(rendering):
    """A missing bracket would make two expressions one; those that are written alike have the same value anywhere."""
    points = [dict(zip("abcdefg", values, strict=True)) for values in ((3, 7, 2, 5, 4, 9, 6), (-2, 3, -5, 2, 7, -3, 4))]
    written = defaultdict(list)
    for node in nested():
        with contextlib.suppress(OutsideCoqError):
            written[str(RENDERINGS[rendering](node))].append(node)
    assert len(written) > 0.8 * sum(1 for _ in nested()) or rendering == "Coq"
    for text, nodes in written.items():
        for point in points:
            values = {round(float_value(node, point), 9) for node in nodes}
            assert len(values) == 1 or all(math.isnan(v) for v in values), (text, nodes)
