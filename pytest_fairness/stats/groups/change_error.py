"""Standard error of the change of a weighted sum between two runs, from the variances within cells.

A cell is a group within a stratum.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints


def change_error(values: Floats, current: Bools, cells: Ints, coefficients: Floats) -> tuple[float, float | None]:
    """Return the standard error of sum(coefficients × values), for values that vary by chance within cells.

    Differences between cells do not add to the error: a question that is always refused has the variance 0. The
    variance of a cell is pooled over both runs. If a cell has only one value in each run, the variance is half the
    squared difference of the two values: an unbiased estimate if nothing changed.

    Args:
        values: (n,) value of each answer, of both runs.
        current: (n,) whether the answer belongs to the current run.
        cells: (n,) cell number of each answer, from 0.
        coefficients: (n,) factor of each value. Within a cell, the factors of one run are positive, and the factors of
            the other run are negative. Answers that are left out have the factor 0.

    Returns:
        the standard error, and its degrees of freedom (Satterthwaite 1946). The result is 0 and `None` if the variances
        of all cells are 0.
    """
    groups = cells * 2 + current
    sizes = np.bincount(groups, minlength=2 * (int(cells.max()) + 1)).astype(np.float64)
    centres = np.bincount(groups, values, len(sizes)) / np.maximum(sizes, 1)
    squares = np.bincount(cells, (values - centres[groups]) ** 2)
    pairs = sizes.reshape(-1, 2)
    degrees = np.maximum(pairs - 1, 0).sum(axis=1)
    single = (pairs == 1).all(axis=1)
    between = np.diff(centres.reshape(-1, 2), axis=1)[:, 0] ** 2 / 2
    squares, degrees = np.where(single, between, squares), np.where(single, 1.0, degrees)
    variances = squares / np.maximum(degrees, 1) * np.bincount(cells, coefficients**2)
    total = float(variances.sum())
    if total <= 0:
        return 0.0, None
    return float(np.sqrt(total)), total**2 / float((variances**2 / np.maximum(degrees, 1)).sum())
