"""Text to a checked tree, and the tree read as numbers, balls, tensors, text, LaTeX and MathML."""

from farfield.formula.algebras import expanded_size, index_range
from farfield.formula.formula import Formula, constant, parse
from farfield.formula.tree import FormulaError, Node, fold, number

__all__ = ["Formula", "FormulaError", "Node", "constant", "expanded_size", "fold", "index_range", "number", "parse"]
