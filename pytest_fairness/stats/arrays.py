"""Type aliases of numpy arrays, and conversions of names and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NameT = TypeVar("NameT", bound=str | tuple[str, bool])


def numbered(names: Sequence[NameT]) -> tuple[tuple[NameT, ...], Ints]:
    """Return the sorted distinct names, and each name's index among them: b, a, b gives (a, b) and 1, 0, 1."""
    different = tuple(sorted({*names}))
    places = {name: place for place, name in enumerate(different)}
    return different, np.array([places[name] for name in names], dtype=np.int64)


def number_or_none(cell: float) -> float | None:
    """Return a number, or `None` for NaN."""
    return None if math.isnan(cell) else float(cell)
