"""Seeded randomness."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: str) -> np.random.Generator:
    """Return a random generator seeded by a text, which is the same on every machine and in every process."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
