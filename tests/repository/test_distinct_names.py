"""No two public classes and no two modules have one name and different meanings."""

import ast
from collections import defaultdict
from pathlib import Path

import farfield

PACKAGE = Path(farfield.__file__).parent
# The checker shares nothing with the prover, and calls the same things by the same names.
TWINS = {"Atom", "constants", "intervals", "monomials"}
PER_ROOM = {"figures"}  # one in each room that draws


def names():
    """Public classes and modules with the files that define them; a verb may be called like what it shows."""
    places = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = path.relative_to(PACKAGE)
        if path.stem != "__init__" and inside.parts[0] != "commands":
            places[path.stem].add(str(inside))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(str(inside))
    return {name: where for name, where in places.items() if not name.startswith("_")}


def test_a_name_means_one_thing():
    clashes = {name: sorted(where) for name, where in names().items() if len(where) > 1}
    new = {name: where for name, where in clashes.items() if name not in TWINS | PER_ROOM}
    assert not new, f"one name for several things: {new}"


def test_the_twins_are_those_of_checker_and_prover():
    for name in TWINS:
        rooms = {place.split("/")[1] for place in names()[name]}
        assert "checker" in rooms
        assert len(rooms) == 2


def test_names_say_what_they_are():
    """Names of which nobody can tell what they hold: whatever was found, told or shown has a word of its own."""
    riddles = {"found", "Found", "Told", "Shown", "Judged", "first_does"}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = {ast.Name: "id", ast.arg: "arg", ast.ClassDef: "name", ast.FunctionDef: "name"}.get(type(node))
            assert name is None or getattr(node, name) not in riddles, f"{path}:{node.lineno}"
