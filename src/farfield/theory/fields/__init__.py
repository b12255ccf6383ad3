"""Receptive fields, layers, comparison, laws, design and windows, all from certified sums."""
