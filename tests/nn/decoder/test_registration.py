"""`import farfield` makes our models known to transformers, and can never break an import of it."""

import subprocess
import sys

import pytest

BEFORE = """
import importlib.abc, sys
class Broken(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in {names}:
            raise {error}("this version does not fit")
if {names}:
    sys.meta_path.insert(0, Broken())
import farfield
assert not any(name.split(".")[0] in ("torch", "transformers") for name in sys.modules), "import farfield is not light"
from transformers import AutoConfig, AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel
small = GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=11)
assert type(AutoModelForCausalLM.from_config(small)) is GPT2LMHeadModel
from farfield.nn.decoder import registration
"""


def outcome(names: tuple[str, ...], error: str, after: str) -> subprocess.CompletedProcess[str]:
    code = BEFORE.format(names=names, error=error) + after
    return subprocess.run([sys.executable, "-W", "error::ImportWarning", "-c", code], capture_output=True, text=True)


def test_our_models_are_known_after_a_mere_import() -> None:
    done = outcome((), "", "assert AutoConfig.for_model('farfield').model_type == 'farfield', registration.failure\n")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("error", ["ImportError", pytest.param("RuntimeError", marks=pytest.mark.long)])
def test_what_goes_wrong_in_ours_does_not_concern_transformers(error: str) -> None:
    """A version of transformers that our modules cannot be imported with: GPT-2 works, and the cause is kept."""
    ours = ("farfield.nn.decoder.config", "farfield.nn.decoder.model")
    done = outcome(ours, error, "assert 'does not fit' in str(registration.failure)\n")
    assert done.returncode == 0, done.stderr


def test_transformers_first_and_farfield_later_is_the_same() -> None:
    code = (
        "from transformers import AutoConfig, AutoModelForCausalLM\nimport farfield\nAutoConfig.for_model('farfield')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
