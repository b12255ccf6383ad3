"""Text to a checked tree, and the tree read as numbers, balls, tensors, text and LaTeX."""

from farfield.formula.formula import Formula, constant, parse
from farfield.formula.tree import FormulaError, Node, expanded_size, fold, index_range, number

__all__ = ["Formula", "FormulaError", "Node", "constant", "expanded_size", "fold", "index_range", "number", "parse"]
