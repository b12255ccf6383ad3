"""No two public classes have one name and different meanings."""

import ast
from collections import defaultdict
from pathlib import Path

import farfield

PACKAGE = Path(farfield.__file__).parent


def test_a_class_name_means_one_thing():
    places = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(str(path.relative_to(PACKAGE)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}
