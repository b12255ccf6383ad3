"""The Triton kernels mean what the definition means, and build for the GPUs that people have; no GPU is needed."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import torch

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


GPUS = {
    "sm80": (("cuda", 80, 32), 163 << 10),  # with the shared memory of a program
    "sm90": (("cuda", 90, 32), 227 << 10),
    "sm100": (("cuda", 100, 32), 227 << 10),
    "gfx942": (("hip", "gfx942", 64), 64 << 10),
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
OF_THE_INPUTS = {"Q", "K", "V", "Out", "DOut", "DQ", "DK", "DV"}  # other tensors are float32, or tables of int32
TABLES = {"Windows", "Start", "End", "First", "Last"}


def variants(every: bool) -> Iterator[tuple[Any, dict[str, bool]]]:
    """Each kernel with all of its options, or with each choice of them."""
    from farfield.experiments.triton import backward, forward

    for kernel, names in (
        (forward.forward_kernel, ("SINKS", "CAPPED", "SKIPS")),
        (backward.shift_kernel, ("WITH_LSE",)),
        (backward.keys_kernel, ("CAPPED", "SKIPS")),
        (backward.queries_kernel, ("CAPPED", "SKIPS", "LEARNED")),
    ):
        for chosen in itertools.product((False, True), repeat=len(names)):
            if every or all(chosen):
                yield kernel, dict(zip(names, chosen, strict=True))


def shared_memory(kernel: Any, options: dict[str, bool], gpu: str, dtype: str, width: int) -> int:
    """Build a kernel for a GPU that need not be there; the bytes of shared memory that it takes."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from farfield.experiments.triton.launch import padded, tile_of

    tile = tile_of(padded(width), TYPES[dtype])
    sizes = {"GROUP": 1, "D": width, "DP": padded(width), "BM": tile["BM"], "BN": tile["BN"], "PRECISION": "ieee"}
    constants = {name: value for name, value in {**sizes, **options}.items() if name in kernel.arg_names}
    signature, divisible = {}, {}
    for place, name in enumerate(kernel.arg_names):
        stride = re.fullmatch("[a-z]_[a-z]", name)
        if name in constants:
            signature[name] = "constexpr"
        elif stride or name in ("H", "M", "N"):
            signature[name] = "i32"
        elif name in ("scale", "cap", "limit"):
            signature[name] = "fp32"
        else:
            signature[name] = "*i32" if name in TABLES else f"*{dtype}" if name in OF_THE_INPUTS else "*fp32"
        if stride or signature[name].startswith("*"):  # as torch's memory and shapes are
            divisible[place,] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=divisible)
    how = {"num_warps": tile["num_warps"], "num_stages": tile["num_stages"]}
    return triton.compile(source, target=GPUTarget(*GPUS[gpu][0]), options=how).metadata.shared


def build(gpus: Iterable[str], types: Iterable[str], widths: Iterable[int], every: bool) -> None:
    for gpu, dtype, width in itertools.product(gpus, types, widths):
        for kernel, options in variants(every):
            assert shared_memory(kernel, options, gpu, dtype, width) <= GPUS[gpu][1], (kernel, options, gpu, dtype)


compiler = pytest.mark.filterwarnings("ignore")  # the compiler's own


@compiler
@pytest.mark.parametrize(
    ("gpu", "dtype", "width"),
    [("sm80", "fp32", 128), ("sm90", "bf16", 64), ("sm100", "bf16", 128), ("gfx942", "fp32", 64)],
)
def test_every_kernel_with_all_options_builds(gpu, dtype, width):
    build([gpu], [dtype], [width], every=False)


@pytest.mark.long
@compiler
def test_every_variant_builds_for_four_gpus():
    build(GPUS, TYPES, [64, 128, 256], every=True)


def test_a_call_on_a_cpu_without_the_interpreter_says_what_is_missing():
    from farfield.nn import attention

    q = torch.randn(1, 1, 4, 8)
    with pytest.raises(ValueError, match=r"implementation 'triton' is a GPU's, but q is on cpu"):
        attention(q, q, q, implementation="triton")
