"""Baseline files: read, write, compare, decide."""
