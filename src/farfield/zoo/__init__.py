"""Every named encoding, one formula each, and how each head gets its parameters."""

from farfield.formula.formula import Parameters, Value
from farfield.zoo.encoding import (
    MOST_HEADS,
    SLOPE,
    WIDTH,
    Encoding,
    Fixed,
    Parameter,
    PerHead,
    number,
    require_parameters,
    slopes,
)  # fmt: skip
from farfield.zoo.finding import ENCODINGS, bound_formula, find, register
from farfield.zoo.learned import Learned
from farfield.zoo.named import BOUNDED, T5_BUCKET, T5_BUCKETS

__all__ = [
    "BOUNDED", "ENCODINGS", "MOST_HEADS", "SLOPE", "T5_BUCKET", "T5_BUCKETS", "WIDTH", "Encoding", "Fixed", "Learned",
    "Parameter", "Parameters", "PerHead", "Value", "bound_formula", "find", "number", "register", "require_parameters",
    "slopes",
]  # fmt: skip
