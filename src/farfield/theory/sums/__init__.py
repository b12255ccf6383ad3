"""Certified sums of weights: heads, tails and the whole, as enclosures."""
