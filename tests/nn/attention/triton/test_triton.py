"""The Triton kernels mean what the definition means, and build for the GPUs that people have; no GPU is needed."""

import os
import pathlib
import re
import subprocess
import sys

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


def compiled(quick: bool, **chosen: list) -> None:
    from farfield.nn.attention.triton import resources

    rows = []
    for target in resources.TARGETS:
        for dtype in chosen["types"]:
            for width in chosen["widths"]:
                for kernel, options in resources.variants(fullest=quick):
                    if not quick or kernel.fn.__name__ in ("forward_kernel", "queries_kernel"):
                        rows.append(resources.compile_variant(kernel, options, target, dtype, width))
    for row in rows:
        print(row)
    assert {row.target for row in rows} == {"sm80", "sm90", "sm100", "gfx942"}
    assert [row for row in rows if not row.good] == []
    assert all(row.registers <= (255 if row.target.startswith("sm") else 512) for row in rows)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_the_fullest_kernels_build_for_four_gpus_without_spilling():
    compiled(True, types=["bf16"], widths=[64])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_every_variant_builds_for_four_gpus():
    compiled(False, types=["fp32", "bf16", "fp16"], widths=[64, 128])


def test_a_call_on_a_cpu_without_the_interpreter_says_what_is_missing():
    import torch

    from farfield.nn import attention

    q = torch.randn(1, 1, 4, 8)
    with pytest.raises(ValueError, match=r"implementation 'triton' is a GPU's, but q is on cpu"):
        attention(q, q, q, implementation="triton")
