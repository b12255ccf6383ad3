"""The operations of the language, the functions that others can express, and the tables that give each a meaning.

Every meaning of a formula (doubles, balls, LaTeX, expansions at infinity, ...) is a table with one rule for each
operation in `OPERATIONS`. It is made with `rule_table`, which refuses a table that lacks a rule: a new function cannot
be imported, let alone judged, before every table knows it. A function in `DERIVED` needs no rule anywhere, because it
is expanded before evaluation; a table may still have a better one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import TypeVar

from farfield.formula.tree import Node, substitute

Rule = TypeVar("Rule")

OPERATORS = {"+": 2, "-": 2, "*": 2, "/": 2, "neg": 1, "**": 2}  # how many arguments each takes
FUNCTIONS = {"exp": 1, "log": 1, "sqrt": 1, "sin": 1, "cos": 1, "abs": 1, "floor": 1, "min": 2, "max": 2}
DERIVED = {  # the first argument is called t here, the second m
    "tanh": "1 - 2/(exp(2*t) + 1)",
    "sigmoid": "1/(1 + exp(-t))",
    "softplus": "log(1 + exp(t))",
    "relu": "max(t, 0)",
    "log1p": "log(1 + t)",
    "log2": "log(t)/log(2)",
    "log10": "log(t)/log(10)",
    "expm1": "exp(t) - 1",
    "cosh": "(exp(t) + exp(-t))/2",
    "sinh": "(exp(t) - exp(-t))/2",
    "tan": "sin(t)/cos(t)",
    "mod": "t - m*floor(t/m)",
}
CALLS = {**FUNCTIONS, **dict.fromkeys(DERIVED, 1), "mod": 2}
OPERATIONS = (*OPERATORS, *FUNCTIONS)
WAVES = ("sin", "cos")
SWITCHES = ("where", "min", "max", "abs")  # made of branches
COMPARISONS = ("<", "<=", ">", ">=")
RELATIONS = ("=", "!=", *COMPARISONS, "->")
STATEMENTS = (*RELATIONS, "apply", "order", "...")  # parts of a proof, not of a formula
ROUGH = (*WAVES, *SWITCHES, "floor")  # may turn or jump again and again
RULE_TABLES: dict[str, Mapping[str, object]] = {}  # by name


def rule_table(name: str, rules: Mapping[str, Rule], others: Iterable[str] = ()) -> dict[str, Rule]:
    """A table with a rule for every operation, and for what else it has to know.

    Args:
        name: what the table gives, for the error and for the test that goes through all tables.
        rules: one rule for each operation; derived functions may have one.
        others: parts of a formula beside the operations that must have a rule, such as "where" and "sum".
    """
    needed = (*OPERATIONS, *others)
    missing = [op for op in needed if op not in rules]
    unknown = [op for op in rules if op not in needed and op not in DERIVED]
    if missing or unknown:
        what = f"has no rule for {', '.join(missing)}" if missing else f"has rules for the unknown {', '.join(unknown)}"
        raise TypeError(f"the table {name!r} of rules {what}")
    RULE_TABLES[name] = rules
    return dict(rules)


@cache
def definition(name: str) -> Node:
    """The expression in t (and m) that a derived function stands for."""
    from farfield.formula.grammar import Parser

    return Parser(DERIVED[name]).whole()


def expand(node: Node) -> Node:
    """A derived function applied to an argument, written out."""
    return substitute(definition(node.op), dict(zip("tm", node.args, strict=False)))


@lru_cache(maxsize=4096)
def primitive(node: Node) -> Node:
    """The expression with every derived function written out, and (-2)**t as cos(pi*t)*2**t."""
    args = tuple(primitive(a) for a in node.args)
    if args != node.args:
        node = replace(node, args=args)
    if node.op == "**" and node.args[0].op == "neg" and node.args[1].free() and is_whole(node.args[1]):
        size, exponent = node.args[0].args[0], node.args[1]
        if not any(n.op != "number" and n.op != "/" for n in size.walk()):
            turn = Node("cos", (Node("*", (Node("pi"), exponent)),))
            return turn if size.value == 1 else Node("*", (turn, Node("**", (size, exponent))), column=node.column)
    return expand(node) if node.op in DERIVED else node


def is_whole(node: Node) -> bool:
    """Whether an expression is plainly a whole number, as the distance t is one."""
    if node.op == "number":
        return isinstance(node.value, Fraction) and node.value.denominator == 1
    if node.op in ("+", "-", "*", "neg"):
        return all(is_whole(a) for a in node.args)
    return node.op == "floor" or (node.op == "name" and node.value == "t")
