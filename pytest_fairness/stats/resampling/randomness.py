"""Random generators that are seeded by a text."""

from __future__ import annotations

import hashlib

import numpy as np


def generator(seed: str) -> np.random.Generator:
    """Return a random generator seeded by a text; the same text gives the same numbers on every machine."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(seed.encode()).digest()[:16], "big"))
