"""Ratio of two groups' odds, where the counts of a document are no independent draws."""

from __future__ import annotations

import math

import numpy as np

from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.groups import stratified_difference
from pytest_fairness.stats.resampling import significance


def odds_ratio(
    counts: Floats, marked: Bools, strata: Ints, draws: int, random: np.random.Generator
) -> tuple[float | None, list[float] | None, float | None]:
    """Return the odds ratio of the marked over the unmarked group, its 95 % interval and its two-sided p-value.

    The interval draws documents anew within cells; the test permutes labels within strata. A number that is not
    defined, as a group has a count of 0, is `None`.

    Args:
        counts: (documents, 2) occurrences, and all other words.
        marked: (documents,) whether the document is of the marked group.
        strata: (documents,) number of the document's stratum.
        draws: how many resamples and relabellings to draw.
        random: the source of randomness.
    """
    sums = counts[marked].sum(axis=0), counts[~marked].sum(axis=0)
    observed = float(_log_ratio(sums[0][None], sums[1][None])[0])
    if not math.isfinite(observed):
        return None, None, None
    both = np.concatenate([counts * marked[:, None], counts * ~marked[:, None]], axis=1)
    resampled = stratified_difference.resampled(both, strata * 2 + marked, draws, random)
    drawn = np.concatenate([_log_ratio(sums[:, :2], sums[:, 2:]) for sums in resampled])
    low, high = (float(np.quantile(drawn, end, method="nearest")) for end in (0.025, 0.975))
    relabelled, exact = stratified_difference.relabelled(counts, marked, strata, draws, random)
    null = _log_ratio(relabelled, counts.sum(axis=0) - relabelled)
    tails = [significance.p_value(side * null, side * observed, exact=exact) for side in (1, -1)]
    interval = [math.exp(low), math.exp(high)] if math.isfinite(low) and math.isfinite(high) else None
    return math.exp(observed), interval, min(1.0, 2 * min(tails))


def _log_ratio(first: Floats, second: Floats) -> Floats:
    """Return the (draws,) log odds ratios of (draws, 2) sums; not finite where a sum is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(first[:, 0] / first[:, 1]) - np.log(second[:, 0] / second[:, 1]))
