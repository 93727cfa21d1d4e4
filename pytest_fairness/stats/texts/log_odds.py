"""Weighted log-odds ratio of words between two samples, with an informative Dirichlet prior.

See Monroe, Colaresi and Quinn 2008, "Fightin' Words", equations 16 to 22.
"""

from __future__ import annotations

import numpy as np

from pytest_fairness.stats.arrays import Floats

Sizes = tuple[Floats, Floats, float]
"""Total word counts: of the first sample, of the second sample and of the prior."""


def log_odds(first: Floats, second: Floats, prior: Floats, sizes: Sizes | None = None) -> tuple[Floats, Floats]:
    """Return the natural log-odds ratio of each word between two samples, and its approximate variance.

    Args:
        first, second: (..., words) counts of the words in the two samples.
        prior: (words,) counts of the prior, each above 0.
        sizes: totals of both samples and of the prior, needed if the counts do not include all words; `None` to use the
            sums of the counts.

    Returns:
        log-odds ratios, positive if `first` uses the word more, and their variances, both of shape (..., words). The
        ratios are NaN for a vocabulary of one word, which has no other words to be compared with.
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
    """Return each word's log-odds ratio divided by its standard deviation, shape (..., words).

    Args:
        first, second: (..., words) counts of the words in the two samples.
        prior: (words,) counts of the prior, each above 0.
        sizes: totals of both samples and of the prior; `None` to use the sums of the counts.
    """
    ratio, variance = log_odds(first, second, prior, sizes)
    return np.asarray(ratio / np.sqrt(variance))
