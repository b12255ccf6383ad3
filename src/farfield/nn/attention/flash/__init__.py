"""Attention on torch's CPU flash kernel: how the work is cut, what may be skipped, and who computes what."""
