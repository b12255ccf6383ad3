"""`farfield.nn.attention` is a module that is called as its function, for compilers and transforms too."""

import copy
import functools
import inspect
import pickle
import subprocess
import sys

import pytest
import torch

import farfield.nn.attention
from farfield.nn import Bias
from farfield.nn import attention as imported
from farfield.nn.attention.api import attention as function


@pytest.fixture
def call(draw):
    return *draw(2, 4, 40, 16), Bias("alibi", 4)(40).clone()


def test_it_is_a_module_with_its_submodules_and_can_be_called(call):
    module = farfield.nn.attention
    assert inspect.ismodule(module)
    assert imported is module is sys.modules["farfield.nn.attention"]
    assert module.attention is function
    assert inspect.ismodule(module.validation)
    assert torch.equal(module(*call, window=7), function(*call, window=7))
    assert inspect.signature(module) == inspect.signature(function)


@pytest.mark.parametrize(
    "way",
    [
        lambda *call: farfield.nn.attention(*call, window=7),
        lambda *call: imported(*call, window=7),
        lambda *call: function(*call, window=7),
    ],
)
def test_a_compiler_follows_every_way_to_call_it_without_a_break(way, call):
    leaves = [x.requires_grad_() for x in call]
    out = torch.compile(way, fullgraph=True, backend="aot_eager")(*leaves)
    torch.testing.assert_close(out, function(*leaves, window=7))
    for ours, theirs in zip(*(torch.autograd.grad(x.sum(), leaves) for x in (out, way(*leaves))), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_what_wraps_it_is_compiled_as_what_it_is(call):
    @functools.wraps(imported)
    def negative(*args):
        return -imported(*args)

    out = torch.compile(lambda *given: negative(*given), fullgraph=True, backend="eager")(*call)
    torch.testing.assert_close(out, -function(*call))
    marks = [name for name in vars(torch.vmap(imported)) if "script_if_tracing" in name]
    assert marks == []


def test_it_is_copied_and_pickled_by_name():
    assert copy.deepcopy({"attend": imported})["attend"] is imported
    assert pickle.loads(pickle.dumps(imported)) is imported


def test_it_is_a_module_whatever_is_asked_for_first():
    code = "import inspect, farfield.nn as nn; nn.reference; a = nn.attention; assert inspect.ismodule(a) and a.api; "
    code += "import farfield.nn.attention as b; from farfield.nn import attention as c; assert a is b is c"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert run.returncode == 0, run.stderr.decode()
