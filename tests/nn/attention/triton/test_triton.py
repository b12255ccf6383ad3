"""The Triton kernels mean what the definition means, and build for the GPUs that people have; no GPU is needed."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable

import pytest

pytest.importorskip("triton")
SCRIPT = pathlib.Path(__file__).with_name("interpreted.py")


def interpreted(first: int, last: int, longest: int) -> str:
    changes = {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(SCRIPT), str(first), str(last), str(longest)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **changes}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_random_calls_agree_with_the_definition_forward_and_backward():
    met = interpreted(0, 14, 130)
    for option in ("learned", "sink", "cap", "padding", "window", "grouped", "decode", "lse", "bfloat16", "float16"):
        assert re.search(rf"{option} [1-9]", met), met


@pytest.mark.long
def test_two_hundred_calls_agree_with_the_definition():
    met = interpreted(100, 300, 600)
    assert re.search(r"skip [1-9]", met), met


def compiled(targets: Iterable[str], types: Iterable[str], widths: Iterable[int], fullest: bool = False) -> None:
    """Build variants, print what each takes, and refuse spills and whatever exceeds a GPU."""
    from farfield.nn.attention.triton import resources

    rows = [
        resources.compile_variant(kernel, options, target, dtype, width)
        for target, dtype, width in itertools.product(targets, types, widths)
        for kernel, options in resources.variants(fullest=fullest)
    ]
    for row in rows:
        print(row)
    assert [row for row in rows if not row.good] == []
    assert all(row.registers <= (255 if row.target.startswith("sm") else 512) for row in rows)


GPUS = ("sm80", "sm90", "sm100", "gfx942")
compiler = pytest.mark.filterwarnings("ignore")  # the compiler's own


@compiler
@pytest.mark.parametrize(("dtype", "width"), [("bf16", 64), ("fp32", 128)])
def test_every_kernel_with_all_options_builds_for_four_gpus_without_spilling(dtype, width):
    compiled(GPUS, [dtype], [width], fullest=True)


@compiler
def test_every_variant_builds_for_one_gpu_without_spilling():
    compiled(["sm90"], ["bf16"], [64])


@pytest.mark.long
@compiler
def test_every_variant_builds_for_four_gpus():
    compiled(GPUS, ["fp32", "bf16", "fp16"], [64, 128])


@compiler
def test_a_tile_that_is_too_large_is_seen_to_spill(monkeypatch):
    from farfield.nn.attention.triton import resources, sizes

    monkeypatch.setattr(resources, "keys_tiles", lambda *given: sizes.Tiles(128, 128, 4, 1))
    row = resources.compile_variant(resources.keys_kernel, {"CAPPED": False, "SKIPS": False}, "sm80", "bf16", 64)
    assert row.spilled
    assert not row.good


def test_a_call_on_a_cpu_without_the_interpreter_says_what_is_missing():
    import torch

    from farfield.nn import attention

    q = torch.randn(1, 1, 4, 8)
    with pytest.raises(ValueError, match=r"implementation 'triton' is a GPU's, but q is on cpu"):
        attention(q, q, q, implementation="triton")
