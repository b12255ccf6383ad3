"""Every function of the language in every table of rules: one that lacks it cannot be imported, and none is wrong."""

import importlib
import pkgutil
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import mpmath
import pytest
from flint import acb, arb, arb_series, ctx

import farfield.formula
import farfield.theory
from farfield.formula import parse
from farfield.formula.algebras import ball_value, evaluate, exact_value, float_value
from farfield.formula.functions import DERIVED, FUNCTIONS, OPERATIONS, RULE_TABLES, primitive, rule_table
from farfield.formula.spelling import CALL
from farfield.formula.tree import Node

for package in (farfield.formula, farfield.theory):  # every table registers itself when its module is imported
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)

# what each operation is, in another library, and arguments at which it is defined (as text, exact)
TRUTH = {
    "+": (lambda x, y: x + y, [("3/4", "2"), ("-5", "1/3")]),
    "-": (lambda x, y: x - y, [("3/4", "2"), ("-5", "1/3")]),
    "*": (lambda x, y: x * y, [("3/4", "2"), ("-5", "1/3")]),
    "/": (lambda x, y: x / y, [("3/4", "2"), ("-5", "1/3")]),
    "neg": (lambda x: -x, [("3/4",), ("-5",)]),
    "**": (lambda x, y: x**y, [("3/4", "2"), ("-5", "3"), ("7/2", "-5/3"), ("2", "pi")]),
    "exp": (mpmath.exp, [("3/4",), ("-5",), ("0",)]),
    "log": (mpmath.log, [("3/4",), ("5",), ("1",)]),
    "sqrt": (mpmath.sqrt, [("3/4",), ("5",), ("4",)]),
    "sin": (mpmath.sin, [("3/4",), ("-5",), ("pi/6",)]),
    "cos": (mpmath.cos, [("3/4",), ("-5",), ("pi/6",)]),
    "abs": (abs, [("3/4",), ("-5",)]),
    "floor": (mpmath.floor, [("3/4",), ("-5/2",), ("4",)]),
    "min": (min, [("3/4", "2"), ("-5", "1/3")]),
    "max": (max, [("3/4", "2"), ("-5", "1/3")]),
    "tanh": (mpmath.tanh, [("3/4",), ("-5",), ("1/1000",)]),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), [("3/4",), ("-5",), ("50",)]),
    "softplus": (lambda x: mpmath.log(1 + mpmath.exp(x)), [("3/4",), ("-5",), ("50",)]),
    "relu": (lambda x: max(x, 0), [("3/4",), ("-5",)]),
    "log1p": (lambda x: mpmath.log(1 + x), [("3/4",), ("-1/2",), ("1/1000",)]),
    "log2": (lambda x: mpmath.log(x, 2), [("3/4",), ("8",)]),
    "log10": (mpmath.log10, [("3/4",), ("1000",)]),
    "expm1": (mpmath.expm1, [("3/4",), ("-5",), ("1/1000",)]),
    "cosh": (mpmath.cosh, [("3/4",), ("-5",)]),
    "sinh": (mpmath.sinh, [("3/4",), ("-5",), ("1/1000",)]),
    "tan": (mpmath.tan, [("3/4",), ("-5",)]),
    "mod": (lambda x, y: x - y * mpmath.floor(x / y), [("7/2", "2"), ("-5", "3"), ("8", "4")]),
}
CASES = [(op, args) for op, (_, all_args) in TRUTH.items() for args in all_args]
ALL = [*OPERATIONS, *DERIVED]
NODES = {text: parse(text).node for _, args in CASES for text in args}
BITS = 200


def applied(op, args):
    return Node(op, tuple(NODES[a] for a in args))


def moved(op, args, by="t"):
    """The operation at arguments that move with t: x + t*0.01 or x + 1/t."""
    step = {"t": "({}) + t/100", "1/t": "({}) + 1/t", "still": "({})"}[by]
    return Node(op, (parse(step.format(args[0])).node, *(NODES[a] for a in args[1:])))


def truth(op, args):
    with mpmath.workprec(BITS):
        values = [mpmath.mpf(str(ball_value(NODES[a], {}).mid().str(60, radius=False))) for a in args]
        return arb(mpmath.nstr(TRUTH[op][0](*values), 50))


def near(value, op, args, tolerance=1e-12):
    exact = truth(op, args)
    return abs(arb(value) - exact) <= arb(tolerance) * (1 + abs(exact))


def overlaps(value, op, args):
    return abs(value - truth(op, args)) < arb("1e-40") * (1 + abs(truth(op, args)))


def test_every_operation_is_tested_here():
    assert set(TRUTH) == set(ALL)


# ------------------------------------------------------------------------------------- what a table says of a value
def check_doubles(op, args):
    assert near(float_value(applied(op, args), {}), op, args)


def check_rationals(op, args):
    value = exact_value(applied(op, args), {})
    assert value is None or near(float(value), op, args)
    assert value is not None or op not in ("+", "-", "*", "/", "neg", "abs", "floor", "min", "max", "relu")


def check_balls(op, args):
    with ctx.workprec(BITS):
        assert overlaps(ball_value(applied(op, args), {}), op, args)


def check_guarded(op, args):
    from farfield.theory.verdict.convergence import _GUARDED

    with ctx.workprec(BITS):
        assert overlaps(evaluate(applied(op, args), {}, _GUARDED), op, args)


def check_numpy(op, args):
    import numpy as np

    from farfield.formula.libraries import array_value

    node = Node(op, (Node("+", (NODES[args[0]], Node("name", (), "t"))), *(NODES[a] for a in args[1:])))
    assert near(float(array_value(node, False, {"t": np.zeros(1)})[0]), op, args)


def check_torch(op, args):
    torch = pytest.importorskip("torch")
    from farfield.formula.libraries import torch_value

    names = {f"x{i}": torch.tensor(float_value(NODES[a], {}), dtype=torch.float64) for i, a in enumerate(args)}
    tensors = Node(op, tuple(Node("name", (), n) for n in names))
    t = torch.zeros(3, dtype=torch.float64)
    for node in (tensors, applied(op, args)):
        assert all(near(x, op, args) for x in torch_value(node, False, {"t": t, **names}).tolist())


def check_sympy(op, args):
    sympy = pytest.importorskip("sympy")
    from farfield.formula.libraries import sympy_value

    assert near(str(sympy.N(sympy_value(applied(op, args)), 30)), op, args)


def check_text(op, args):
    node = applied(op, args)
    formula = farfield.formula.Formula(node)
    assert parse(formula.text()).node == node or op == "neg"  # -5 is spelt as it is typed
    assert near(parse(formula.text()).float(0), op, args)


def check_spelling(how):
    def check(op, args):
        arity = len(args)
        spelt = {str(how(Node(f, tuple(Node("name", (), n) for n in "ab"[:arity])))) for f in ALL if _arity(f) == arity}
        assert len(spelt) == sum(_arity(f) == arity for f in ALL), "two operations are spelt alike"

    return check


def check_coq(op, args):
    """Here only that each is spelt in its own way: tests/proofs lets Coq compare every one with its value."""
    from farfield.theory.coq.terms import spell as spell_in_coq
    from farfield.theory.errors import OutsideCoqError

    def spell(node):
        try:
            return spell_in_coq(primitive(node), {"a": "a", "b": "b"})
        except OutsideCoqError as error:
            return str(error)

    check_spelling(spell)(op, args)
    assert spell(parse("t").node) == ("INR t", CALL)


def _arity(op):
    return len(TRUTH[op][1][0])


def check_series(op, args):
    from farfield.theory.errors import NotSmoothError
    from farfield.theory.sums.weight import compiled

    node = moved(op, args)
    call = compiled(node)
    with ctx.workprec(BITS):
        here = ball_value(node, {"t": 1})
        assert abs(call(arb(1), False) - here) < 1e-40
        try:
            jet = call(arb_series([arb(1), arb(1)], 8), False)
            box = call(acb(1), True)
        except NotSmoothError:
            assert op in ("abs", "floor", "min", "max", "relu", "mod")
            return
        h = arb(1) / 8
        there = ball_value(node, {"t": arb(9) / 8})
        sums = sum((jet[i] * h**i for i in range(8)), arb(0)) if isinstance(jet, arb_series) else jet
        assert abs(sums - there) < 1e-12 * (1 + abs(there))
        assert abs(box.real - here) < 1e-30 * (1 + abs(here)) or box.real.is_nan()


def check_ranges(op, args):
    from farfield.theory.exact.intervals import RANGES, Interval

    assert_range_holds(moved(op, args), RANGES, Interval(arb(0), arb(4)))


def assert_range_holds(node, algebra, t):
    """The range over t from 0 to 4 holds the value at each of these distances, and is no wider than it must be."""
    with ctx.workprec(BITS):
        whole = evaluate(node, {"t": t}, algebra)
        for t in range(5):
            value = ball_value(node, {"t": t})
            assert whole.low <= value.upper()
            assert value.lower() <= whole.high
        assert (whole.high - whole.low) < 10**4


def growing(op, args):
    """The operation at arguments that tend to a constant, and at ones that grow, where it is defined for them."""
    yield moved(op, args, "1/t")
    if op not in ("tan",):
        yield Node(op, (parse("log(t)").node, *(NODES[a] for a in args[1:])))


def check_monotone(op, args):
    from farfield.theory.checker.families import far
    from farfield.theory.verdict.corners import _MONOTONE

    node = primitive(moved(op, args))
    if node.op != op:  # derived: made of monotone parts or not
        return
    for i in range(len(args)):
        if far(lambda evaluator, i=i: _MONOTONE[op](evaluator, node, i)):
            values = [ball_value(Node(op, _with(args, i, k)), {}) for k in range(5)]
            steps = [b - a for a, b in pairwise(values)]
            assert not (any(s > 0 for s in steps) and any(s < 0 for s in steps)), (op, i)


def _with(args, i, k):
    return tuple(parse(f"({a}) + {k}/7").node if j == i else NODES[a] for j, a in enumerate(args))


def check_shape(op, args, inside=lambda node: node):
    from farfield.theory.sums import shapes

    for text in ("t + 3", "log(t + 3)", "5*(t + 3)**1.5"):
        node = inside(primitive(Node(op, (parse(text).node, *(NODES[a] for a in args[1:])))))
        shape = shapes.shape_of_node(node)
        if shape is not None:
            with ctx.workprec(BITS):
                for t in (20, 60, 1000):
                    assert abs(_shape_at(shape, t) - ball_value(node, {"t": t})) < 1e-30, (node, shape)


def _shape_at(shape, t):
    from farfield.theory.exact.constants import ball
    from farfield.theory.sums.shapes import Log, LogLog, LogPolynomial, Power

    def atom(a):
        if a is None:
            return arb(1)
        if isinstance(a, Power):
            return (t + ball(a.shift)) ** ball(a.exponent)
        if isinstance(a, Log):
            return (ball(a.scale) * (t + ball(a.shift))).log() ** ball(a.exponent)
        if isinstance(a, LogLog):
            return (ball(a.scale) * (t + ball(a.shift))).log().log()
        assert isinstance(a, LogPolynomial)
        return (sum((ball(c) * t**i for i, c in enumerate(a.lower)), arb(0)) + arb(t) ** len(a.lower)).log()

    return sum((ball(c) * atom(a) for a, c in shape.items()), arb(0))


def check_log_shape(op, args):
    check_shape(op, args, lambda node: Node("log", (node,)))


def check_direction(op, args):
    from farfield.theory.sums.branches import direction

    node = primitive(moved(op, args))
    way = direction(node, 0)
    if way is not None:
        values = [ball_value(node, {"t": t}) for t in range(0, 40, 3)]
        assert all(not (b - a) * way < 0 for a, b in pairwise(values))


def check_checkers_expansions(op, args):
    """Value, sign and logarithm at a distance far out, of arguments that stand still, fall and grow."""
    from farfield.theory.checker.evaluation import Evaluator
    from farfield.theory.checker.expansions import Calculus
    from farfield.theory.checker.monomials import Domain
    from farfield.theory.errors import UnknownError

    for node in (applied(op, args), *growing(op, args)):
        with ctx.workprec(BITS):
            calculus = Calculus(Domain.between(10**6, 10**6), 4, 12)
            evaluator, true = Evaluator(calculus), ball_value(node, {"t": 10**6})
            assert_holds(calculus.range(evaluator.value(primitive(node))), true)
            try:
                assert evaluator.sign(primitive(node)) == (1 if true > 0 else -1)
                size = evaluator.size_without_waves(primitive(node)).log
            except UnknownError:
                assert op in ("sin", "cos", "floor", "mod", "relu", "min", "max", "log", "abs") or true.contains(0)
                continue
            assert_holds(calculus.range(size), abs(true).log(), 1e-4)


def assert_holds(held, true, width=1e-4):
    assert held.low <= true <= held.high or (held.low - 1e-50 <= true <= held.high + 1e-50)
    assert held.high - held.low < width * max(1, abs(true)) or held.high - held.low <= 1


CHECKS = {
    "doubles": check_doubles,
    "rationals": check_rationals,
    "balls": check_balls,
    "balls with guards": check_guarded,
    "numpy": check_numpy,
    "torch": check_torch,
    "sympy": check_sympy,
    "text": check_text,
    "LaTeX": check_spelling(lambda node: farfield.formula.Formula(node).latex()),
    "MathML": check_spelling(lambda node: farfield.formula.Formula(node).mathml()),
    "Coq": check_coq,
    "real and complex balls, power series": check_series,
    "ranges": check_ranges,
    "monotone in an argument, the others held": check_monotone,
    "shape": check_shape,
    "shape of a logarithm": check_log_shape,
    "direction": check_direction,
    "checker: expansions": check_checkers_expansions,
}


def test_every_table_is_tested_here():
    assert set(CHECKS) == set(RULE_TABLES)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize(("op", "args"), CASES, ids=lambda x: x if isinstance(x, str) else ",".join(x))
def test_an_operation_means_the_same_in_every_table(op, args, name):
    CHECKS[name](op, args)


# ------------------------------------------------------------------------------------- what is missing is said
def test_a_table_without_a_rule_is_refused_by_name():
    with pytest.raises(TypeError, match=r"'half' of rules has no rule for .*log"):
        rule_table("half", dict.fromkeys(["+", "-", "*", "/", "neg", "**", "exp"]))
    with pytest.raises(TypeError, match="unknown cbrt"):
        rule_table("more", dict.fromkeys([*OPERATIONS, "cbrt"]))
    assert "half" not in RULE_TABLES
    assert "more" not in RULE_TABLES


@pytest.fixture
def copy(tmp_path):
    """A copy of the package in which a function can be added, and a way to run code in it."""
    unread = shutil.ignore_patterns("__pycache__", ".mypy_cache", "page")
    shutil.copytree(Path(farfield.__file__).parent, tmp_path / "farfield", ignore=unread)

    def run(change, code):
        path = tmp_path / "farfield/formula/functions.py"
        before, after = change
        text = path.read_text(encoding="utf-8")
        assert text.count(before) == 1
        path.write_text(text.replace(before, after), encoding="utf-8")
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


def test_a_function_that_the_tables_lack_cannot_be_imported(copy):
    done = copy(('FUNCTIONS = {"exp": 1,', 'FUNCTIONS = {"cbrt": 1, "exp": 1,'), "import farfield.formula")
    assert done.returncode == 1
    assert "TypeError: the table 'doubles' of rules has no rule for cbrt" in done.stderr


def test_a_derived_function_is_one_line(copy):
    line = '    "cbrt": "t**(1/3)",\n    "tanh"'
    code = (
        "import farfield as ff; f = ff.parse('-cbrt(t + 1)'); "
        "print(f, f.latex(), f.float(7), ff.check(f).verdict, ff.trf('-cbrt(t + 1)', 0.01))"
    )
    done = copy(('    "tanh"', line), code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == r"-cbrt(t + 1) -\operatorname{cbrt}\left(t + 1\right) -2.0 converges 607"


def test_a_derived_function_is_written_out_with_its_argument():
    assert parse("tanh(k*t)").primitive.text() == "1 - 2/(exp(2*(k*t)) + 1)"
    assert parse("relu(log1p(t))").primitive.text() == "max(log(1 + t), 0)"
    assert parse("-k*t").primitive is not None


def test_derived_functions_cannot_blow_a_formula_up():
    from farfield.formula import FormulaError

    with pytest.raises(FormulaError, match="parts"):
        parse("cosh(" * 20 + "t" + ")" * 20)
    with pytest.raises(FormulaError, match="deep"):
        parse("softplus(" * 35 + "t" + ")" * 35)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("-1.2*tanh(1)*log(t+1)", "diverges"),  # once "proved" to converge by a rule for sqrt
        ("-1.4*tanh(1)*log(t+1)", "converges"),
        ("-tanh(t)*log(t+1)", "diverges"),
        ("-2*tanh(t)*log(t+1)", "converges"),
        ("-softplus(t/10)", "converges"),
        ("-softplus(-t)", "diverges"),
        ("-relu(t - 100)", "converges"),
        ("-relu(100 - t)", "diverges"),
        ("weight: sigmoid(-t)", "converges"),
        ("weight: sigmoid(-log(t+1))", "diverges"),
        ("weight: 1 - tanh(t)", "converges"),
        ("weight: expm1(1/(t+1)**2)", "converges"),
        ("weight: expm1(1/(t+1))", "diverges"),
        ("-log2(t+1)", "converges"),
        ("-0.69*log2(t+1)", "diverges"),
        ("-2.3*log10(t+1)", "diverges"),
        ("-2.31*log10(t+1)", "converges"),
        ("-2*log1p(t)", "converges"),
        ("weight: 1/cosh(t/1000)", "converges"),
        ("-sinh(1/(t+1))", "diverges"),
        ("-t*tan(1/(t+1))", "diverges"),
        ("-t**2*tan(1/(t+1))", "converges"),
        ("-log(cosh(t))", "converges"),
        ("where(mod(t, 4) < 1, 0, -inf)", "diverges"),
        ("where(mod(t, 4) < 1, -2*log(t+1), -inf)", "converges"),
        ("where(mod(t, 4) < 1, -log(t+1), -2*log(t+1))", "diverges"),
        ("where(mod(t, 3) >= 1, -t, -2*log(t+1))", "converges"),
        ("-mod(t, 5)*log(t+1)", "diverges"),
        ("-(2 + mod(t, 5))*log(t+1)", "converges"),
    ],
)
def test_derived_functions_are_judged_by_what_they_are(text, verdict):
    assert farfield.check(text).verdict == verdict


@pytest.mark.parametrize("name", ["erf", "gamma", "atan"])
def test_a_function_that_left_the_language_says_so(name):
    with pytest.raises(farfield.formula.FormulaError, match=rf"the function '{name}' left the language"):
        parse(f"-{name}(t)*log(t + 1)")
    assert parse(f"-{name}*t").parameters == (name,)  # a parameter may have the name


def test_the_number_of_functions_is_what_the_page_of_the_language_says():
    assert len(FUNCTIONS) + len(DERIVED) == len({*FUNCTIONS, *DERIVED})
