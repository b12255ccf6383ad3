"""Compiles every kernel for GPUs that need not be there, and says what each takes: registers, shared memory, spills.

    python -m farfield.nn.attention.triton.resources                   the usual widths and types, all variants
    python -m farfield.nn.attention.triton.resources --quick           the plain and the fullest variant of each
    python -m farfield.nn.attention.triton.resources --fullest         each kernel once, with all options
    python -m farfield.nn.attention.triton.resources --json FILE

It ends with an error if a variant does not build, exceeds the shared memory of its GPU, or spills registers in a tile
of the usual sizes (heads up to 128 wide).
"""

from __future__ import annotations

import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from farfield.nn.attention.triton.backward import keys_kernel, queries_kernel, shift_kernel
from farfield.nn.attention.triton.decode import join_kernel, split_kernel
from farfield.nn.attention.triton.forward import forward_kernel
from farfield.nn.attention.triton.sizes import (
    SHIFT_ROWS,
    Tiles,
    decode_tiles,
    forward_tiles,
    keys_tiles,
    padded,
    queries_tiles,
)

TARGETS = {
    "sm80": (GPUTarget("cuda", 80, 32), 163 << 10),
    "sm90": (GPUTarget("cuda", 90, 32), 227 << 10),
    "sm100": (GPUTarget("cuda", 100, 32), 227 << 10),
    "gfx942": (GPUTarget("hip", "gfx942", 64), 64 << 10),
}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
INTEGERS = {"H", "M", "N", "splits", "widest", "size", "first_rows"}
FLOATS = {"scale", "cap", "limit"}
TABLES = {"Windows": "*i32", "Start": "*i32", "End": "*i32", "First": "*i32", "Last": "*i32"}
INPUTS = {"Q", "K", "V", "Out", "DOut", "DQ", "DK", "DV"}  # in the type of the inputs; other tensors are float32


@dataclass(frozen=True)
class Usage:
    """One compiled variant."""

    kernel: str
    target: str
    dtype: str
    width: int
    options: str
    registers: int
    shared: int
    limit: int
    spilled: int  # bytes a thread

    @property
    def good(self) -> bool:
        """Whether it fits, without spilling at the usual widths."""
        return self.shared <= self.limit and (self.spilled == 0 or self.width > 128)


def variants(quick: bool = False, fullest: bool = False) -> Iterator[tuple[Any, dict[str, bool]]]:
    """Each kernel with each of its options; the quick way with none and with all of them, or with all of them only."""
    for kernel, names in (
        (forward_kernel, ("SINKS", "CAPPED", "SKIPS")),
        (split_kernel, ("CAPPED",)),
        (join_kernel, ("SINKS",)),
        (shift_kernel, ("WITH_LSE",)),
        (keys_kernel, ("CAPPED", "SKIPS")),
        (queries_kernel, ("CAPPED", "SKIPS", "LEARNED")),
    ):
        for chosen in itertools.product((False, True), repeat=len(names)):
            if all(chosen) or (not fullest and (not quick or not any(chosen))):
                yield kernel, dict(zip(names, chosen, strict=True))


def tiles_of(kernel: Any, width: int, dtype: torch.dtype, learned: bool, amd: bool) -> Tiles:
    """The tile that the kernel would be called with."""
    if kernel is forward_kernel:
        return forward_tiles(width, dtype, amd)
    if kernel is keys_kernel:
        return keys_tiles(width, dtype, amd)
    if kernel is queries_kernel:
        return queries_tiles(width, dtype, learned, amd)
    return decode_tiles(1, width, dtype) if kernel is split_kernel else Tiles(SHIFT_ROWS, 32, 4, 3)


def compile_variant(kernel: Any, options: dict[str, bool], target: str, dtype: str, width: int) -> Usage:
    """Build one variant and read what it takes."""
    gpu, limit = TARGETS[target]
    tiles = tiles_of(kernel, padded(width), TYPES[dtype], options.get("LEARNED", False), gpu.backend == "hip")
    constants: dict[str, Any] = {
        "GROUP": 1, "D": width, "DP": padded(width), "BM": tiles.rows, "BN": tiles.keys, "BS": 64, "PRECISION": "ieee",
        **options,
    }  # fmt: skip
    constants = {name: value for name, value in constants.items() if name in kernel.arg_names}
    signature, divisible = {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name in FLOATS:
            signature[name] = "fp32"
        elif name in INTEGERS or re.fullmatch("[a-z]_[a-z]", name):
            signature[name] = "i32"
        else:
            signature[name] = TABLES.get(name, f"*{dtype}" if name in INPUTS else "*fp32")
        if signature[name].startswith("*") or re.fullmatch("[a-z]_[a-z]", name):  # as torch's memory and shapes are
            divisible[place,] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=divisible)
    built = triton.compile(source, target=gpu, options={"num_warps": tiles.warps, "num_stages": tiles.stages})
    registers, spilled = (_amd if gpu.backend == "hip" else _nvidia)(built)
    said = " ".join(name for name, on in options.items() if on) or "plain"
    return Usage(
        kernel.fn.__name__, target, dtype, width, said, registers, built.metadata.shared, limit, spilled
    )  # fmt: skip


def _nvidia(built: Any) -> tuple[int, int]:
    """Registers and bytes of stack, of which these kernels use none but for spilling, from the binary itself."""
    tool = pathlib.Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    match = re.search(r"REG:(\d+) STACK:(\d+)", text)
    assert match is not None, text
    return int(match[1]), int(match[2])


def _amd(built: Any) -> tuple[int, int]:
    """Vector registers and bytes of scratch memory, from the assembly's own notes."""
    text = built.asm["amdgcn"]
    numbers = [re.search(rf"\.{name}:\s+(\d+)", text) for name in ("vgpr_count", "private_segment_fixed_size")]
    assert None not in numbers, text[-2000:]
    return tuple(int(match[1]) for match in numbers if match is not None)  # type: ignore[return-value]


def main() -> int:
    """Compile, print, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--fullest", action="store_true", help="every kernel once, with all options")
    parser.add_argument("--targets", nargs="+", choices=TARGETS, default=list(TARGETS))
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--widths", nargs="+", type=int, default=[64, 128])
    parser.add_argument("--kernels", nargs="+", help="by name; all unless given")
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    rows = []
    print(f"{'kernel':16} {'target':7} {'type':5} {'width':>5} {'registers':>9} {'shared':>7} {'spilled':>7}  options")
    for target, dtype, width in itertools.product(given.targets, given.types, given.widths):
        for kernel, options in variants(given.quick, given.fullest):
            if given.kernels and kernel.fn.__name__ not in given.kernels:
                continue
            row = compile_variant(kernel, options, target, dtype, width)
            rows.append(row)
            print(
                f"{row.kernel:16} {row.target:7} {row.dtype:5} {row.width:5} {row.registers:9} {row.shared:7} "
                f"{row.spilled:7}  {row.options}{'' if row.good else '   TOO MUCH'}",
                flush=True,
            )
    bad = [row for row in rows if not row.good]
    print(f"{len(rows)} variants built, {len(bad)} of them take too much")
    if given.json:
        given.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
