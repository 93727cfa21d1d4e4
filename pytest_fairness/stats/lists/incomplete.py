"""Tables with missing numbers: which columns can be compared, and complete rows that stand for incomplete ones.

If only complete rows were used, a column with few numbers would hide what the other columns show. Column means are
therefore estimated by least squares from all rows with at least two numbers: a number is the sum of an effect of its
row, an effect of its column, and noise. The jackknife then gives each row a complete row of pseudo-values, whose means
are the estimates and whose variation gives their errors (Tukey 1958; Efron and Stein 1981).
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats


def compared_columns(rows: Floats, needed: int, minimum: int) -> list[int]:
    """Return the columns that have enough numbers to be compared, at least two columns.

    A number counts if its row has a number in another compared column, too. A column has enough numbers if they are
    `needed`, or half as many as those of the fullest column, and at least `minimum`.

    Args:
        rows: (units, columns) numbers; NaN for a missing number.
        needed: number of units that is enough in any case.
        minimum: number of units that a column must have in any case.
    """
    columns = list(range(rows.shape[1]))
    present = ~np.isnan(rows)
    while len(columns) > 2:
        own = present[:, columns]
        counts = own[own.sum(axis=1) >= 2].sum(axis=0)
        fewest = int(np.argmin(counts))
        if counts[fewest] >= max(minimum, min(needed, int(counts.max()) // 2)):
            break
        del columns[fewest]
    return columns


def complete_rows(rows: Floats) -> Floats:
    """Return rows of pseudo-values for the rows with at least two numbers, and rows of NaN for the others.

    A table without missing numbers is returned unchanged. All rows of the result are NaN if the columns cannot be
    compared, because some have no row in common with the others.

    Args:
        rows: (units, columns) numbers of at least two columns; NaN for a missing number.
    """
    present = ~np.isnan(rows)
    used = present.sum(axis=1) >= 2
    pseudo = np.full(rows.shape, np.nan)
    pseudo[present.all(axis=1)] = rows[present.all(axis=1)]
    if present[used].all():
        return pseudo
    own, filled = present[used].astype(np.float64), np.where(present, rows, 0.0)[used]
    sizes = own.sum(axis=1, keepdims=True)
    columns, units = rows.shape[1], len(own)
    # Normal equations of the column effects, which add up to 0, without the row effects; summed over the rows.
    left = own[:, :, None] * (np.eye(columns) - own[:, None, :] / sizes[:, :, None])
    right = own * (filled - filled.sum(axis=1, keepdims=True) / sizes)
    without = left.sum(axis=0) - left + 1 / columns
    if np.linalg.matrix_rank(without, hermitian=True).min() < columns:
        return np.full(rows.shape, np.nan)
    effects = np.linalg.solve(left.sum(axis=0) + 1 / columns, right.sum(axis=0))
    left_out = np.linalg.solve(without, (right.sum(axis=0) - right)[:, :, None])[:, :, 0]
    levels = ((filled - own * effects).sum(axis=1, keepdims=True)) / sizes
    pseudo[used] = levels + units * effects - (units - 1) * left_out
    return pseudo
