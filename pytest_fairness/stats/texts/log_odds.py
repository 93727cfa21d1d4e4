"""Weighted log-odds ratio with an informative Dirichlet prior.

Monroe, Colaresi and Quinn 2008, "Fightin' Words", equations 16 to 22.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats

Sizes = tuple[Floats, Floats, float]
"""Totals of the first sample, of the second sample and of the prior."""


def log_odds(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> tuple[Floats, Floats]:
    """Return the natural log-odds ratio of every word between two samples, and its approximate variance.

    Args:
        first, second: (..., words) counts.
        prior: (words,) the prior's counts, each above 0.
        sizes: totals of both samples, (...) each, and of the prior, where the counts are not of all their words;
            `None` for the sums of the counts.

    Returns:
        (..., words) log-odds ratio, positive where `first` uses the word more; and its variance.
        Both are NaN for a vocabulary of one word, which allows no contrast.
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
    """Return (..., words) log-odds ratios in units of their standard deviation; arguments as in `log_odds`."""
    ratio, variance = log_odds(first, second, prior, sizes)
    scores: Floats = ratio / np.sqrt(variance)
    return scores
