"""Text to a checked tree, and the tree as numbers, balls, tensors, text, LaTeX and MathML."""

from farfield.formula.algebras import expanded_size, index_range
from farfield.formula.formula import Formula, constant, parse, parse_relations
from farfield.formula.tree import FormulaError, Node, number

__all__ = [
    "Formula", "FormulaError", "Node", "constant", "expanded_size", "index_range", "number", "parse", "parse_relations",
]  # fmt: skip
