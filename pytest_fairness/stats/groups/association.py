"""Association between the groups of rows and the values of a column, within strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Association:
    """Association between group and value.

    Attributes:
        p_value: p-value of the null hypothesis that the values are alike in all groups of each stratum.
        cramers_v: Cramér's V without its bias in small tables, from 0 (the values are alike) to 1 (the value tells the
            group).
    """

    p_value: float
    cramers_v: float


def association(counts: NDArray[np.float64]) -> Association:
    """Return the association between group and value, by the generalised Cochran-Mantel-Haenszel test.

    With a single stratum, the statistic is Pearson's chi-square times (n - 1) / n. The expected value of the statistic
    under the null hypothesis is subtracted before Cramér's V is computed (Bergsma 2013).

    Args:
        counts: (strata, groups, values) number of rows.
    """
    from scipy.special import chdtrc

    counts = counts[counts.sum(axis=(1, 2)) > 1]
    if not counts.size:
        return Association(1.0, 0.0)
    sizes = counts.sum(axis=(1, 2))
    groups, values = counts.sum(axis=2) / sizes[:, None], counts.sum(axis=1) / sizes[:, None]
    expected = np.einsum("s,sg,sv->sgv", sizes, groups, values)
    # One group and one value are redundant, as the totals are given.
    surplus = (counts - expected).sum(axis=0)[:-1, :-1].ravel()
    covariances = [
        np.eye(shares.shape[1] - 1) * shares[:, :-1, None] - shares[:, :-1, None] * shares[:, None, :-1]
        for shares in (groups, values)
    ]
    covariance = np.einsum("s,sij,skl->ikjl", sizes**2 / (sizes - 1), *covariances).reshape(2 * [len(surplus)])
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True)) if surplus.size else 0
    if not degrees:
        return Association(1.0, 0.0)
    statistic = float(surplus @ np.linalg.pinv(covariance, hermitian=True) @ surplus)
    largest = sizes.sum() * min(counts.shape[1] - 1, counts.shape[2] - 1)
    cramers_v = np.sqrt(max(0.0, statistic - degrees) / largest)
    return Association(float(chdtrc(degrees, statistic)), min(1.0, float(cramers_v)))
