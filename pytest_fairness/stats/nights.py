"""Evidence of many runs that a value got worse: a test that stays valid however often one looks.

All runs since a baseline are compared with this baseline, so that its sampling error is part of every change: D_i = X_i
- B, with Var(X_i) = s² / n_i and Var(B) = s² / m for n_i and m answers. For each run k, the likelihood ratio of a
worsening that begins at k against no change, with a half-normal prior on its size, is a martingale if nothing changed.
So is the weighted sum E over all k, of sudden shifts and of linear drifts, whose weights sum to 1. By Ville's
inequality, E ever reaches 1 / alpha with probability alpha at most (Ville 1939; Ramdas et al. 2023, Statistical
Science 38, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from pytest_fairness.stats import intervals
from pytest_fairness.stats.resampling import Floats

SHIFT_SCALE = 2.0
"""Standard deviation of the prior on a sudden shift, in tolerances."""
DRIFT_SCALE = 0.02
"""Standard deviation of the prior on a drift, in tolerances a run: 2 tolerances in 100 runs."""
HALF_OF_PRIOR = 100
"""Number of runs within which a change begins with a prior probability of one half."""
DRIFTS = 0.35
"""Prior probability that a worsening is a drift."""
RUNS_A_YEAR = 250
LEAST_ERROR = 1e-6
"""Smallest standard error of an answer, in tolerances, that the evidence assumes."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one run since the baseline, with its standard error; a positive change is a worsening.

    Attributes:
        answers, baseline_answers: numbers of answers of the run and of the baseline that were compared.
        part: number of the part of the units that was measured; runs of one part share the baseline's answers.
    """

    value: float
    error: float
    answers: float
    baseline_answers: float
    part: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of several runs that a value got worse since the baseline.

    Attributes:
        e_value: E of the module's docstring.
        first: place of the run from which a worsening is likeliest, from 0.
        drift: whether the likeliest worsening is a drift, not a sudden shift.
        worsening: the likeliest worsening, at the last run.
        highest: upper 95 % confidence bound of the last `window` runs' worsening against the baseline alone.
        level, level_error: worsening of the last `window` runs together against the baseline and the runs before them.
        window: fewest runs that can exclude a worsening of twice the tolerance or, if none can, with the least error.
    """

    e_value: float
    first: int
    drift: bool
    worsening: float
    highest: float
    level: float
    level_error: float
    window: int


def evidence(changes: Sequence[Change], tolerance: float, parts: int = 1, gap: float = 0.0) -> Evidence:
    """Return the evidence of the changes of at least one run, in the order of the runs.

    Args:
        changes: changes; a gap between groups has a sign, and is tested on each side by itself.
        tolerance: largest acceptable worsening.
        parts: number of runs that together measure all units once.
        gap: for changes towards the group that was behind in the baseline, the gap there: up to it, nothing gets worse.
            It is subtracted from the worsening, its bound and the level.
    """
    count = len(changes)
    answers, baseline = (
        np.array([getattr(change, name) for change in changes], dtype=np.float64)
        for name in ("answers", "baseline_answers")
    )
    # The variance of one answer is estimated from all runs, because that of one run may rest on few units.
    variance = float(np.mean(np.array([change.error for change in changes]) ** 2 / (1 / answers + 1 / baseline)))
    unit = tolerance or float(np.sqrt(variance * (1 / answers[0] + 1 / baseline[0]))) or 1.0
    variance = max(variance, (LEAST_ERROR * unit) ** 2)
    values, parts_asked = (np.array([getattr(change, name) for change in changes]) for name in ("value", "part"))
    members = [(parts_asked == part).astype(np.float64) for part in np.unique(parts_asked)]
    precisions, of_baseline = answers / variance, baseline / variance
    shifts, shift_errors, of_shifts = _worsenings(_shifts, values, precisions, of_baseline, members, SHIFT_SCALE * unit)
    drifts, _, of_drifts = _worsenings(_drifts, values, precisions, of_baseline, members, DRIFT_SCALE * unit)
    runs = np.arange(count)
    # The prior weights of all runs to come sum to 1: H / (k + H) / (k + 1 + H) = H / (k + H) - H / (k + 1 + H).
    weights = np.log(HALF_OF_PRIOR / (runs + HALF_OF_PRIOR) / (runs + 1 + HALF_OF_PRIOR))
    logs = np.concatenate([of_shifts + weights + np.log(1 - DRIFTS), of_drifts + weights + np.log(DRIFTS)])
    likeliest = int(np.argmax(logs))
    first, drift = likeliest % count, likeliest >= count

    by_size = shift_errors[::-1]
    precise = np.flatnonzero(by_size <= max(tolerance / intervals.quantile(0.95), float(by_size.min())))
    window = min(count, max(parts, int(precise[0]) + 1))
    # The parts of the baseline have independent errors.
    error = float(np.sqrt(1 / precisions[-window:].sum() + 1 / of_baseline[-window:].mean() / min(parts, window)))
    return Evidence(
        float(np.exp(min(np.logaddexp.reduce(logs), 700.0))),
        first,
        drift,
        float(drifts[first] * (count - first) if drift else shifts[first]) - gap,
        float(np.average(values[-window:], weights=precisions[-window:])) + intervals.quantile(0.95) * error - gap,
        float(shifts[count - window]) - gap,
        float(shift_errors[count - window]),
        window,
    )


Sums = Callable[[Floats], tuple[Floats, Floats]]
"""Function that returns, for each run k, the sums of h x and of h² x over the runs from k on, where h is the pattern of
a worsening that begins at k."""


def _shifts(numbers: Floats) -> tuple[Floats, Floats]:
    """Return the sums for h = 1."""
    sums = np.cumsum(numbers[::-1])[::-1]
    return sums, sums


def _drifts(numbers: Floats) -> tuple[Floats, Floats]:
    """Return the sums for h = 1, 2, 3 and so on."""
    once = np.cumsum(np.cumsum(numbers[::-1]))[::-1]
    return once, 2 * np.cumsum(once[::-1])[::-1] - once


def _worsenings(
    sums: Sums, values: Floats, precisions: Floats, of_baseline: Floats, members: Sequence[Floats], scale: float
) -> tuple[Floats, Floats, Floats]:
    """Return the estimate, standard error and log likelihood ratio of a worsening from each run on.

    `precisions` are the inverse variances of the runs, `of_baseline` those of the baseline; `members` has a row of 0
    and 1 for each part; `scale` is the standard deviation of the prior.
    """
    score, (_, information) = sums(precisions * values)[0], sums(precisions)
    for member in members:
        own = precisions * member
        # The shared error of a part adds a matrix of rank one to the covariance (Sherman and Morrison 1950).
        factor = 1 / (float((of_baseline * member).sum() / member.sum()) + own.sum())
        of_part, _ = sums(own)
        score = score - factor * of_part * (own * values).sum()
        information = information - factor * of_part**2
    variance, estimate = 1 / information, score / information
    z = estimate * scale / np.sqrt(variance * (variance + scale**2))
    ratios = np.log(2) - np.log1p(scale**2 / variance) / 2 + z**2 / 2 + log_ndtr(z)
    return estimate, np.sqrt(variance), ratios


def false_failures_a_year(errors: Sequence[tuple[float, float, float]]) -> float:
    """Return how often unchanged items fail in a year of nightly runs if each run is judged by itself.

    `errors` holds the standard error of the change, the tolerance and the alpha of each item.
    """
    chances = (min(alpha, intervals.upper_tail(tolerance / error)) for error, tolerance, alpha in errors if error > 0)
    return RUNS_A_YEAR * sum(chances)
