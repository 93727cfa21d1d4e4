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
    used = present.sum(axis=1) >= min(2, rows.shape[1])
    pseudo = np.where(used[:, None], rows, np.nan)
    if present[used].all():
        return pseudo
    units, (left, right) = int(used.sum()), _normal_equations(rows[used])
    without = left.sum(axis=0) - left + 1 / rows.shape[1]
    if np.linalg.matrix_rank(without, hermitian=True).min() < rows.shape[1]:
        return np.full(rows.shape, np.nan)
    effects = np.linalg.solve(left.sum(axis=0) + 1 / rows.shape[1], right.sum(axis=0))
    left_out = np.linalg.solve(without, (right.sum(axis=0) - right)[:, :, None])[:, :, 0]
    levels = np.nanmean(rows[used] - effects, axis=1, keepdims=True)
    pseudo[used] = levels + units * effects - (units - 1) * left_out
    return pseudo


def contributions(rows: Floats) -> Floats:
    """Return each row's contributions to the estimated column means, for tests by random signs of the rows.

    Only differences between columns have a meaning. If the columns do not differ, a row with the opposite signs is as
    likely as the row, also if only few rows have a number in a column, whose pseudo-values would all be alike.

    Args:
        rows: (units, columns) numbers for which `complete_rows` returns numbers, too.

    Returns:
        (used units, columns) numbers; for a table without missing numbers, the deviations from the row's mean.
    """
    used = rows[(~np.isnan(rows)).sum(axis=1) >= min(2, rows.shape[1])]
    if not np.isnan(used).any():
        return np.asarray(used - used.mean(axis=1, keepdims=True))
    left, right = _normal_equations(used)
    return np.asarray(len(used) * np.linalg.solve(left.sum(axis=0) + 1 / rows.shape[1], right.T).T)


def _normal_equations(rows: Floats) -> tuple[Floats, Floats]:
    """Return both sides of the normal equations of the column effects, which add up to 0, for each row.

    Returns:
        (units, columns, columns) and (units, columns) numbers; their sums over the rows are the equations.
    """
    own = (~np.isnan(rows)).astype(np.float64)
    left = own[:, :, None] * (np.eye(rows.shape[1]) - own[:, None, :] / own.sum(axis=1)[:, None, None])
    return left, np.where(own > 0, rows - np.nanmean(rows, axis=1, keepdims=True), 0.0)
