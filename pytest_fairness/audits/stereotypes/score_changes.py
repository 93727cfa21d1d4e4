"""Changes between two runs: of a mean score, and of the largest gap between groups' mean scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from pytest_fairness.audits.comparisons import comparison, group_reversal
from pytest_fairness.audits.stereotypes.score_estimates import PERMUTATIONS
from pytest_fairness.audits.stereotypes.scores import Scores
from pytest_fairness.records import Comparison, Json, Reversal
from pytest_fairness.stats.arrays import Bools, Floats, Ints
from pytest_fairness.stats.groups import distance_measures
from pytest_fairness.stats.groups.change_error import change_error
from pytest_fairness.stats.resampling import randomness, significance
from pytest_fairness.stats.resampling.relabelling import RunCells

SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of scores."""


@dataclass(frozen=True)
class PooledScores:
    """The scores of two runs together, the current run first; a column is a case, or a case and a group.

    Attributes:
        current, baseline: scores of the two runs.
        column: (n,) column number of each score.
        values: (n,) scores.
        cells: (n,) cell number of each score; a cell is a column within a stratum.
        is_current: (n,) whether the score belongs to the current run.
    """

    current: Scores
    baseline: Scores
    column: Ints
    values: Floats
    cells: Ints
    is_current: Bools

    @classmethod
    def of(cls, current: Scores, baseline: Scores) -> PooledScores:
        """Return the scores of both runs together, with the same cell numbers in both runs."""
        column = np.concatenate([current.column, baseline.column])
        keys = list(zip(column.tolist(), (*current.strata, *baseline.strata), strict=True))
        numbers = {key: number for number, key in enumerate(sorted({*keys}))}
        return cls(
            current=current,
            baseline=baseline,
            column=column,
            values=np.concatenate([current.values, baseline.values]),
            cells=np.array([numbers[key] for key in keys], dtype=np.int64),
            is_current=np.repeat([True, False], [len(current.values), len(baseline.values)]),
        )

    @property
    def is_linear(self) -> bool:
        """Return whether the value is a mean or a difference between two means, so that all scores can be compared.

        Its expected value is the same for each number of scores.
        """
        return len(self.current.groups) <= 2

    def means(self, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the column means of both runs, each (cuts, columns), for random cuts to equal size.

        There is a single row of all scores if the value is linear. A cell has the same weight in both runs.
        """
        if self.is_linear:
            totals = self._run_cells.sums(self._columns)
            return self._means(totals[0][None]), self._means(totals[1][None])
        first, second = self._run_cells.cuts(SUBSAMPLES, random)
        sums = [
            np.concatenate([cut[None].astype(np.float64) @ self._columns for cut in run]) for run in (first, second)
        ]
        return self._means(sums[0]), self._means(sums[1])

    def means_after_swaps(self, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the column means of both runs, each (draws, columns), after random exchange of scores between runs.

        The draws are the null distribution: they show which means occur if the runs do not differ.
        """
        first, second = self._run_cells.sums_after_swaps(self._columns, PERMUTATIONS, random)
        return self._means(first), self._means(second)

    def error(self, weights: Floats) -> tuple[float, float | None]:
        """Return the standard error of Σ weight × change of the column's mean, and its degrees of freedom.

        Args:
            weights: (columns,) weight of each column.
        """
        runs = self.column * 2 + self.is_current
        shares = weights[self.column] / np.bincount(runs, minlength=2 * len(weights))[runs]
        return change_error(self.values, self.is_current, self.cells, np.where(self.is_current, shares, -shares))

    def group_error(self, weights: Floats) -> tuple[float, float | None]:
        """Return the standard error of Σ weight × change of the group's mean, and its degrees of freedom.

        Args:
            weights: (groups,) weight of each group.
        """
        cases = len(self.current.cases)
        return self.error(np.tile(weights, cases) / cases)

    @cached_property
    def _run_cells(self) -> RunCells:
        return RunCells.of(self.is_current, self.cells, equal_size=not self.is_linear)

    @cached_property
    def _columns(self) -> Floats:
        """Return a table with a row for each score; shape (n, 2 × columns).

        The first half of a row has a 1 in the score's column, the second half has the score in this column.
        """
        belongs = np.eye(len(self.current.columns))[self.column]
        return np.hstack([belongs, belongs * self.values[:, None]])

    def _means(self, sums: Floats) -> Floats:
        """Return the column means of each draw, shape (draws, columns), from the draws' (draws, 2 × columns) sums.

        A draw's sums are the sums of the rows of `_columns` over the drawn scores.
        """
        number = len(self.current.columns)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums[:, number:] / sums[:, :number], dtype=np.float64)


def mean_change(runs: PooledScores, added: float | None, seed: str) -> Comparison:
    """Return the change of the mean score (the mean of all column means).

    Args:
        runs: scores of both runs.
        added: how many zeros, and equally many ones, are added to the scores of each column if the standard error is 0
            without them, as with equal scores; `None` for scores without bounds: nothing is added.
        seed: text that seeds all random draws.
    """
    random = randomness.generator(f"{seed}/compare")
    current, baseline = runs.means(random)
    value = float(np.nanmean(current.mean(axis=-1) - baseline.mean(axis=-1)))
    swapped = runs.means_after_swaps(random)
    null = swapped[0].mean(axis=-1) - swapped[1].mean(axis=-1)
    columns = len(runs.current.columns)
    error, degrees = runs.error(np.full(columns, 1 / columns))
    return comparison(
        value,
        standard_error=error or math.hypot(*(run.mean_error(added) for run in (runs.current, runs.baseline))),
        p_value=significance.p_value(null[~np.isnan(null)], value, exact=False),
        degrees_of_freedom=degrees,
        details={"moved": _means_of_both_runs(runs.current.cases, runs.current.means(), runs.baseline.means())},
    )


def gap_change(runs: PooledScores, added: float | None, seed: str) -> Comparison:
    """Return the growth of the largest gap between groups' means; see `stats.groups.distance_measures`.

    Args:
        runs: scores of both runs.
        added: how many zeros, and equally many ones, are added to the scores of each column if the standard error is 0
            without them, as with equal scores; `None` for scores without bounds: nothing is added.
        seed: text that seeds all random draws.
    """
    random = randomness.generator(f"{seed}/compare")
    drawn = [runs.current.group_means(run) for run in runs.means(random)]
    swapped = [runs.current.group_means(run) for run in runs.means_after_swaps(random)]
    current, baseline = (run.mean(axis=0) for run in drawn)
    number = len(current)
    share = float(runs.is_current.mean()) if runs.is_linear else 0.5
    # The weights of the runs make the direction of the gap independent of its change.
    pattern = share * current + (1 - share) * baseline
    measure = distance_measures.largest_difference(tuple(combinations(range(number), 2)))
    size, gradient = measure.signed(pattern), measure.gradient(pattern)
    signed_error, degrees = runs.group_error(gradient)
    error = signed_error
    if number > 2:
        variances = [runs.group_error(own)[0] ** 2 for own in np.eye(number)]
        error = distance_measures.growth_error(
            size, current, baseline, np.diag(variances), randomness.generator(f"{seed}/error")
        )
    error = error or math.hypot(*(run.gap_error(added) for run in (runs.current, runs.baseline)))
    value = float(np.nanmean(size(drawn[0]) - size(drawn[1])))
    null = size(swapped[0]) - size(swapped[1])
    groups = runs.current.groups
    means = [run.group_means(run.means()) for run in (runs.current, runs.baseline)]
    return comparison(
        value,
        standard_error=error,
        p_value=significance.p_value(null[~np.isnan(null)], value, exact=False),
        degrees_of_freedom=degrees,
        details={
            "moved": _means_of_both_runs(groups, *means),
            "along_pattern": [float((current - baseline) @ gradient), signed_error or error],
            "either_side": distance_measures.direction_unknown(2 * float(measure.size(pattern)), signed_error or error),
        },
        reversal=_reversal(groups, current, baseline, swapped[0] - swapped[1]),
    )


def _reversal(groups: Sequence[str], current: Floats, baseline: Floats, swapped: Floats) -> Reversal | None:
    """Return the reversal of the largest gap between groups; `None` if the gap was not reversed.

    The largest gap is between the two groups whose means differ most in the current run. The gap is reversed if the
    group that is now higher was lower in the baseline.

    Args:
        groups: names of the groups.
        current, baseline: (groups,) means of the two runs.
        swapped: (draws, groups) changes of the means after random exchange of scores between the runs.
    """
    high, low = distance_measures.most_different(current, tuple(combinations(range(len(current)), 2)))
    present, earlier = float(current[high] - current[low]), float(baseline[high] - baseline[low])
    if not (present > 0 > earlier):
        return None
    null = np.ptp(swapped, axis=-1)
    p_value = significance.p_value(null[~np.isnan(null)], float(np.ptp(current - baseline)), exact=False)
    return group_reversal(groups[high], groups[low], present, earlier, p_value)


def _means_of_both_runs(names: Sequence[str], current: Floats, baseline: Floats) -> list[dict[str, Json]]:
    """Return each name with its mean in both runs; the name with the largest change comes first."""
    order = sorted(
        range(len(names)), key=lambda place: (-round(abs(float(current[place] - baseline[place])), 12), place)
    )
    return [{"name": names[place], "now": float(current[place]), "then": float(baseline[place])} for place in order]
