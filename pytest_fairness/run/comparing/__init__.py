"""Comparison of measurements with their baselines."""
