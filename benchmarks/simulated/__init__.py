"""Pretended models whose bias is known, to count how often verdicts are wrong."""
