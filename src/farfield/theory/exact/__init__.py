"""Exact real constants, and the precision in which their balls are computed."""
