"""Mutation testing: change one token of a module at a time and see whether the tests notice.

    python benchmarks/mutants.py                                  every mutant of every module: a night
    python benchmarks/mutants.py theory/checker --sample 20       20 mutants of each module below theory/checker
    python benchmarks/mutants.py --sample 5 --tests 7347ec9       the same kind of sample with the tests of a commit

cosmic-ray (the extra `mutants`) makes the mutants and runs the tests, in a copy of the working tree. mutants.toml names
the tests of each module and the mutants that no test can kill, each with its reason. A mutant that survives and is not
listed there is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import TestOutcome

ROOT = Path(__file__).resolve().parents[1]
TABLE = tomllib.loads((ROOT / "benchmarks/mutants.toml").read_text(encoding="utf-8"))
COPIED = ("src", "tests", "proofs", "pyproject.toml")
COMPARISONS = "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Lt_GtE LtE_Gt Gt_LtE GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is"
ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul LShift_RShift RShift_LShift"
SETS = "BitOr_BitAnd BitAnd_BitOr"
NAMES = [
    "ZeroIterationForLoop",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "AddNot",
    "ExceptionReplacer",
    "NumberReplacer",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_USub",
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS.split()),
    *(f"ReplaceBinaryOperator_{pair}" for pair in (ARITHMETIC + " " + SETS).split()),
]


class SkipRefusal(Operator):
    """Never refuse: the condition of an `if` that only raises, or returns None or False, becomes False."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where the operator applies."""
        if node.type == "if_stmt" and re.match(r"\s*(raise\b|return( None| False)?\s*$)", node.children[3].get_code()):
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The statement that refuses nothing."""
        node.children[1] = parso.parse(" False")
        return node

    @classmethod
    def examples(cls) -> tuple[()]:
        """cosmic-ray's own tests would read them."""
        return ()


OPERATORS = {name: get_operator(f"core/{name}")() for name in NAMES} | {"SkipRefusal": SkipRefusal()}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: str  # below src/farfield
    operator: str
    occurrence: int  # of what the operator changes
    line: str
    column: int
    variant: int  # of several changes at one place

    def rank(self, seed: int) -> str:
        """Its place in the order from which samples are taken; other lines of the module do not change it."""
        text = f"{seed}|{self.module}|{self.operator}|{self.line}|{self.column}|{self.variant}"
        return hashlib.sha256(text.encode()).hexdigest()

    def code(self, source: str) -> str:
        """The whole module, changed."""
        code: str = mutate_code(source, OPERATORS[self.operator], self.occurrence)
        return code

    def after(self, source: str) -> str:
        """What becomes of the line, and of those that the change joins with it."""
        old, new = source.splitlines(), self.code(source).splitlines()
        first = next((i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y), 0)
        last = next((i for i, (x, y) in enumerate(zip(old[::-1], new[::-1], strict=False)) if x != y), 0)
        return " ".join(line.strip() for line in new[first : len(new) - last])


def mutants(module: str) -> Iterator[Mutant]:
    """Every mutant of a module."""
    source = (ROOT / "src/farfield" / module).read_text(encoding="utf-8")
    lines, nodes = source.splitlines(), list(ast_nodes(get_ast(source)))
    for name, operator in OPERATORS.items():
        occurrence = 0
        for node in nodes:
            for variant, (start, _) in enumerate(operator.mutation_positions(node)):
                if not _is_annotation(node):
                    yield Mutant(module, name, occurrence, lines[start[0] - 1].strip(), start[1], variant)
                occurrence += 1


def _is_annotation(node: Any) -> bool:
    """Whether a node stands in an annotation, which nobody evaluates."""
    while node.parent is not None:
        parent = node.parent
        if parent.type in ("tfpdef", "annassign") and node is parent.children[1 if parent.type == "annassign" else -1]:
            return True
        if parent.type == "funcdef" and node is parent.annotation:
            return True
        node = parent
    return False


# ---------------------------------------------------------------------------------------------------- one run
class Copy:
    """A copy of the working tree in which one module at a time is changed."""

    def __init__(self, tests: str):
        self.place = Path(tempfile.mkdtemp(prefix="mutants-"))
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.place / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, self.place / name)
        if tests:
            shutil.rmtree(self.place / "tests")
            archive = subprocess.run(["git", "-C", ROOT, "archive", tests, "tests"], check=True, capture_output=True)
            subprocess.run(["tar", "-x", "-C", self.place], input=archive.stdout, check=True)

    def run(self, tests: list[str], timeout: float) -> tuple[bool, str]:
        """(whether the tests pass, what they printed)."""
        os.chdir(self.place)
        os.environ["PYTHONPATH"] = str(self.place / "src")
        files = [test for test in tests if (self.place / test.partition("::")[0]).exists()]
        command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider --no-header --tb=line {' '.join(files)}"
        outcome, output = run_tests(command, timeout)
        return outcome == TestOutcome.SURVIVED, output

    def kills(self, mutant: Mutant, tests: list[str], timeout: float) -> bool:
        """Whether the tests notice a mutant."""
        path = self.place / "src/farfield" / mutant.module
        original = path.read_text(encoding="utf-8")
        path.write_text(mutant.code(original), encoding="utf-8")
        try:
            return not self.run(tests, timeout)[0]
        finally:
            path.write_text(original, encoding="utf-8")


def drawn(module: str, options: argparse.Namespace) -> list[Mutant]:
    """The mutants of a module that tests should kill, or a sample of them."""
    source = (ROOT / "src/farfield" / module).read_text(encoding="utf-8")
    every = sorted(mutants(module), key=lambda mutant: mutant.rank(options.seed))
    others = (m for m in every if not reason(m, source, TABLE["equivalent"]))
    return list(itertools.islice(others, options.sample or None))


def survivors(chosen: list[Mutant], commit: str) -> list[Mutant]:
    """Those of some mutants that live, in a copy of their own."""
    copy, limits, result = Copy(commit), {}, []
    try:
        for mutant in chosen:
            tests = tests_of(mutant.module)
            if tuple(tests) not in limits:
                start = time.monotonic()
                passed, output = copy.run(tests, 3600)
                if not passed:
                    raise SystemExit(f"{', '.join(tests)}: fails without a mutant\n{output[-3000:]}")
                limits[tuple(tests)] = 60 + 4 * (time.monotonic() - start)
            if not copy.kills(mutant, tests, limits[tuple(tests)]):
                result.append(mutant)
    finally:
        shutil.rmtree(copy.place)
    return result


def reason(mutant: Mutant, source: str, equivalents: list[dict[str, str]]) -> str:
    """Why no test can kill a mutant, if mutants.toml says so."""
    for entry in equivalents:
        if not fnmatch(mutant.module, entry["module"]) or not fnmatch(mutant.operator, entry.get("operator", "*")):
            continue
        if re.search(entry["before"], mutant.line) and re.search(entry.get("after", ""), mutant.after(source)):
            return entry["reason"]
    return ""


def tests_of(module: str) -> list[str]:
    """The tests that should notice a mutant of a module, the quickest first."""
    return next((tests for pattern, tests in TABLE["tests"].items() if fnmatch(module, pattern)), [])


def main() -> int:
    """Run the mutants that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("below", nargs="*", default=[""], help="modules or folders below src/farfield")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each module; all, if it is left out")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--tests", default="", help="a commit whose tests are run; those of the working tree otherwise")
    parser.add_argument("--jobs", type=int, default=1, help="mutants that are tested at once")
    parser.add_argument("--part", default="1/1", help="2/12: the second of twelve runs that share the mutants")
    parser.add_argument("--count", action="store_true", help="only count the mutants")
    options = parser.parse_args()
    source = ROOT / "src/farfield"
    names = [str(path.relative_to(source)) for path in sorted(source.rglob("*.py")) if path.name != "__init__.py"]
    names = [n for n in names if tests_of(n) and any(n.startswith(below) for below in options.below)]
    part, parts = map(int, options.part.split("/"))
    chosen = [mutant for name in names for mutant in drawn(name, options)][part - 1 :: parts]
    counts = Counter(mutant.module for mutant in chosen)
    if options.count:
        print("\n".join(f"{name}: {count}" for name, count in counts.items()), f"\n{len(chosen)} mutants")
        return 0
    with ProcessPoolExecutor(options.jobs) as pool:
        shares = [chosen[i :: options.jobs] for i in range(options.jobs)]
        lived = [m for job in [pool.submit(survivors, share, options.tests) for share in shares] for m in job.result()]
    for name, count in counts.items():
        mine = [mutant for mutant in lived if mutant.module == name]
        print(f"{name}: {count - len(mine)} of {count} killed")
        code = (source / name).read_text(encoding="utf-8")
        print("".join(f"  survived: {m.operator}\n    - {m.line}\n    + {m.after(code)}\n" for m in mine), end="")
    print(f"{len(chosen) - len(lived)} of {len(chosen)} mutants killed")
    return int(bool(lived))


if __name__ == "__main__":
    sys.exit(main())
