"""Permutation and sign-flip tests: seeded draws, relabelled units, permuted means, p-values."""
