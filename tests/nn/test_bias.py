"""A bias is its formula, for every head, in float32, and there is no second definition of any encoding."""

import ast
import math
import pathlib

import pytest
import torch

import farfield
from farfield import zoo
from farfield.formula import FormulaError, parse
from farfield.nn import Bias, Rope, Sinusoidal, T5Bias, attention, bias_of

SOURCE = pathlib.Path(farfield.__file__).parent
ADDITIVE = [name for name, e in zoo.ENCODINGS.items() if e.formula is not None and name != "t5"]


def make(name: str, heads: int = 12, **options) -> Bias:
    return Bias(name, heads, 16, {"w": 5} if name.startswith("window") else None, **options)


@pytest.mark.parametrize("name", ADDITIVE)
def test_every_head_is_the_formula_of_the_zoo_rounded_once(name):
    module = make(name)
    bias = module(50)
    assert bias.dtype == torch.float32
    formula = zoo.ENCODINGS[name].formula
    for head in range(12):
        for t in (0, 1, 2, 7, 49):
            want = formula.float(t, module.values_of(head))
            got = float(bias[head, t].detach())
            assert got == want or math.isclose(got, want, rel_tol=2.0**-23, abs_tol=1e-12)


def test_alibi_has_the_slopes_of_its_authors_for_twelve_heads():
    slopes = -Bias("alibi", 12)(2)[:, 1].double()
    want = [2.0**-e for e in (1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5)]
    assert torch.allclose(slopes, torch.tensor(want, dtype=torch.float64), rtol=1e-7)


@pytest.mark.parametrize("name", ADDITIVE)
def test_distances_from_an_offset_are_those_of_the_whole(name):
    module = make(name)
    whole = module(200)
    assert torch.equal(module(30, offset=170), whole[:, 170:])
    assert torch.equal(module(1, offset=63), whole[:, 63:64])


def test_a_model_in_bfloat16_keeps_every_distance_apart():
    module = Bias("alibi", 8).to(torch.bfloat16)
    bias = module(100_000)
    assert bias.dtype == torch.float32
    assert bool((bias[:, 1:] < bias[:, :-1]).all())
    learned = Bias("kerple-power", 2).to(torch.bfloat16)
    assert learned(3).dtype == torch.float32


@pytest.mark.parametrize("make", [lambda: Bias("kerple-power", 4, layers=2), lambda: T5Bias(4)])
def test_learned_parameters_stay_float32_in_a_model_of_a_narrower_type(make):
    """kerple-power's bias at 10,000 moved by several per cent when its exponent was rounded to bfloat16."""
    module = make()
    with torch.no_grad():
        for p in module.parameters():
            p.uniform_(0.1, 1.7)
    before, want = {name: p.detach().clone() for name, p in module.named_parameters()}, module(10_000).detach()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), module)
    for convert in (
        lambda m: m.to(torch.bfloat16),
        lambda m: m.half(),
        lambda m: m.bfloat16(),
        lambda m: m.to("cpu", torch.float16),
        lambda m: m.type(torch.float16),
        lambda m: m.to(torch.zeros((), dtype=torch.bfloat16)),
    ):
        convert(model.float())
        assert model[0].weight.dtype.itemsize == 2
        for name, p in module.named_parameters():
            assert p.dtype == torch.float32
            assert torch.equal(p, before[name])
        assert torch.equal(module(10_000), want)
        assert all(p.dtype == torch.float32 for p in module.state_dict().values())
    module(5).sum().backward()
    assert all(p.grad.dtype == torch.float32 for p in module.parameters())
    assert all(p.dtype == torch.float64 for p in model.double()[1].parameters())
    assert all(p.device.type == "meta" and p.dtype == torch.float64 for p in module.half().to("meta").parameters())


def test_a_bias_that_is_made_in_a_narrow_type_learns_in_float32():
    torch.set_default_dtype(torch.bfloat16)
    try:
        modules = Bias("kerple-power", 4), T5Bias(4)
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(p.dtype == torch.float32 for module in modules for p in module.parameters())


def test_learned_parameters_start_where_the_zoo_says_and_stay_in_range():
    module = Bias("kerple-power", 64)
    low, high = module.learned["p"].min().item(), module.learned["p"].max().item()
    least = torch.tensor(0.01).item()  # in float32
    assert least <= low < 0.3
    assert 1.7 < high <= 2
    rate = torch.optim.SGD(module.parameters(), 1e3)
    for sign in (1, -1):
        rate.zero_grad()
        (sign * module(20).sum()).backward()
        rate.step()
        module(20)
        assert least <= module.learned["p"].min().item() <= module.learned["p"].max().item() <= 2
        assert module.learned["a"].min().item() >= least
    rate.zero_grad()
    module(20).sum().backward()
    assert bool((module.learned["a"].grad != 0).all())  # a parameter on the edge still learns


def test_one_set_for_all_layers_or_one_for_each():
    shared, own = Bias("kerple-log", 4), Bias("kerple-log", 4, layers=3)
    assert shared.learned["p"].shape == (1, 4)
    assert torch.equal(shared(9, layer=0), shared(9, layer=2))
    assert own.learned["p"].shape == (3, 4)
    assert not torch.equal(own(9, layer=0), own(9, layer=2))


def test_a_typed_formula_is_a_first_class_citizen():
    assert torch.equal(Bias("-k*t", 6)(40), Bias("alibi", 6)(40))
    assert torch.equal(Bias("-c*t", 2, parameters={"c": ["2**(-1/2)", 1]})(3)[1], torch.tensor([0.0, -1.0, -2.0]))
    learned = Bias("-sqrt(c*t)", 3, parameters={"c": {"start": (0.5, 1), "least": 0.01}})
    learned(7).sum().backward()
    assert bool(learned.learned["c"].grad.isfinite().all())  # the derivative at t = 0 is 0, not nan
    assert learned.values_of(2)["c"] == learned.learned["c"][0, 2].item()


def test_gradients_reach_the_parameters_through_attention_by_finite_differences():
    module = Bias("kerple-power", 2).double()
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 9, 4, dtype=torch.float64)

    def call(a, p):
        t = torch.arange(9, dtype=torch.float64).expand(2, 9)
        return attention(q, k, v, module.formula.torch(t, {"a": a[:, None], "p": p[:, None]}))

    a, p = (module.learned[name][0].detach().clone().requires_grad_() for name in ("a", "p"))
    assert torch.autograd.gradcheck(call, (a, p))
    assert module(9).dtype == torch.float64
    attention(q, k, v, module(9)).square().sum().backward()
    direct = torch.autograd.grad(call(a, p).square().sum(), (a, p))
    assert torch.allclose(module.learned["a"].grad[0], direct[0])
    assert torch.allclose(module.learned["p"].grad[0], direct[1])


def test_what_is_no_bias_has_none():
    assert bias_of("rope", 4) is None
    assert bias_of("sinusoidal", 4) is None
    assert isinstance(bias_of("t5", 4), T5Bias)
    assert isinstance(bias_of("alibi", 4), Bias)


def test_t5_buckets_are_those_of_its_authors():
    modeling = pytest.importorskip("transformers.models.t5.modeling_t5")
    module = T5Bias(2)
    module.table.data = torch.arange(32.0).expand(1, 2, 32).clone()
    t = torch.arange(2000)
    want = modeling.T5Attention._relative_position_bucket(-t, bidirectional=False, num_buckets=32, max_distance=128)
    assert torch.equal(module(2000)[0].detach(), want.float())
    assert torch.equal(module(100, offset=50), module(150)[:, 50:])
    assert float(module(5000).detach()[0, 128:].unique()) == 31


def test_sinusoidal_positions_are_those_of_the_paper():
    table = Sinusoidal(8)(torch.arange(50))
    assert table.shape == (50, 8)
    for position in (0, 1, 49):
        for i in range(4):
            angle = position / 10_000 ** (2 * i / 8)
            assert float(table[position, 2 * i]) == pytest.approx(math.sin(angle), abs=1e-7)
            assert float(table[position, 2 * i + 1]) == pytest.approx(math.cos(angle), abs=1e-7)


def test_rotated_products_depend_on_the_distance_alone():
    torch.manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 16, dtype=torch.float64)
    rope = Rope()
    at = [float((rope(q, torch.tensor([i])) * rope(k, torch.tensor([i - 5]))).sum()) for i in (5, 6, 1000, 100_000)]
    assert at == pytest.approx([at[0]] * 4, abs=1e-5)
    assert torch.equal(rope(q, torch.tensor([0])), q)
    each = torch.tensor([[3], [9]])
    both = rope(q.expand(2, 1, 1, 16), each)
    assert torch.equal(both[1:], rope(q, each[1]))


def test_an_odd_width_cannot_hold_pairs():
    with pytest.raises(ValueError, match="the width is 7"):
        Sinusoidal(7)(torch.arange(3))


def torch_modules() -> list[pathlib.Path]:
    """Every module of the library that can compute with torch."""
    return [p for p in SOURCE.rglob("*.py") if "import torch" in p.read_text()]


def test_no_encoding_is_written_twice():
    """No module beside the zoo holds an encoding's formula as text, or a function named after one."""
    formulas = {e.formula.text(): name for name, e in zoo.ENCODINGS.items() if e.formula is not None}
    del formulas["0"]  # the number zero is not an encoding
    named = {"alibi", "kerple", "sandwich", "type1", "type2"}
    for path in torch_modules():
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                assert not named & set(node.name.lower().split("_")), f"{path}: {node.name}"
                assert node.name not in ("slopes", "get_slopes"), f"{path}: {node.name}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "t" in node.value:
                try:
                    formula = parse(node.value)
                except FormulaError:
                    continue
                assert formula.text() not in formulas, f"{path}: {node.value} is {formulas.get(formula.text())}"
