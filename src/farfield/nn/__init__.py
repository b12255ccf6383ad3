"""The formula in PyTorch: the bias of each head, and attention that takes it in O(n) memory."""

from farfield.nn.attention import attention
from farfield.nn.bias import Bias, T5Bias, bias_of
from farfield.nn.denormals import flush_denormals
from farfield.nn.positions import Rope, Sinusoidal
from farfield.nn.reference import reference

__all__ = ["Bias", "Rope", "Sinusoidal", "T5Bias", "attention", "bias_of", "flush_denormals", "reference"]
