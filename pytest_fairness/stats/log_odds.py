"""Weighted log-odds ratio with an informative Dirichlet prior.

Monroe, Colaresi and Quinn 2008, "Fightin' Words", equations 16 to 22.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


Sizes = tuple[Floats, Floats, float]
"""Totals of the first sample, the second one and the prior."""


def log_odds(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> tuple[Floats, Floats]:
    """Log-odds ratio of every word between two samples, natural logarithm, and its approximate variance.

    Args:
        first, second: (..., words) counts.
        prior: (words,) the prior's counts, each above 0.
        sizes: totals of both samples, (...) each, and of the prior, where the counts are not of all their words;
            `None` for the sums of the counts.

    Returns:
        (..., words) log-odds ratio, positive where `first` uses the word more; and its variance.
        Both are NaN where the vocabulary has one word only: no contrast is possible.
    """
    first_size, second_size, mass = sizes or (first.sum(axis=-1), second.sum(axis=-1), float(prior.sum()))

    def logit(counts: Floats, size: Floats) -> Floats:
        odds: Floats = (counts + prior) / (np.asarray(size)[..., None] + mass - counts - prior)
        return np.log(odds)

    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = logit(first, first_size) - logit(second, second_size)
    if prior.shape[-1] < 2:
        ratio = np.full_like(ratio, np.nan)
    return ratio, 1 / (first + prior) + 1 / (second + prior)


def z_scores(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> Floats:
    """Log-odds ratios in units of their standard deviation; shapes as in `log_odds`."""
    ratio, variance = log_odds(first, second, prior, sizes)
    scores: Floats = ratio / np.sqrt(variance)
    return scores
