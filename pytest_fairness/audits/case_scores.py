"""Scores of answers by case and group: estimates, and changes between two runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np

from pytest_fairness.audits.unit_audit import comparison, group_reversal
from pytest_fairness.probes.stereotype import Case
from pytest_fairness.records import Answer, Answers, Comparison, Evidence, Measurement, Reversal
from pytest_fairness.stats import gaps, intervals, resampling
from pytest_fairness.stats.gaps import change_error
from pytest_fairness.stats.resampling import Bools, Floats, Ints, RunCells
from pytest_fairness.stats.unit_tables import TAIL

# Scores of answers by case and group, with their means and gaps.

Column = tuple[str, str]
"""Case and group; the group is empty if the answers of a case are not split by group."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer, 0..1, or without bounds if the audit's class attribute `added` is `None`.

    Tests permute groups, or runs, only within a stratum. If `repeated`, answers with the same text count as
    repetitions.
    """

    column: Column
    stratum: str
    value: float
    text: str
    repeated: bool = False


@dataclass(frozen=True)
class Scores:
    """The scores of one run; (n,) arrays have one entry for each score.

    Attributes:
        columns: sorted pairs of case and group; each case has every group. Without a comparison, the group is empty.
        column: (n,) column number.
        values: (n,) scores.
        strata: (n,) stratum.
    """

    columns: tuple[Column, ...]
    column: Ints
    values: Floats
    strata: tuple[str, ...]

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scores:
        """Sort the scores; a cell (a column in one stratum) whose answers all repeat one answer has one score."""
        cells: dict[tuple[Column, str], list[Score]] = {}
        for score in sorted(scores, key=lambda score: (score.column, score.stratum, score.text, score.value)):
            cells.setdefault((score.column, score.stratum), []).append(score)
        kept = [score for own in cells.values() for score in (own[:1] if _repeats_one_answer(own) else own)]
        columns = tuple(sorted({score.column for score in kept}))
        return cls(
            columns=columns,
            column=np.array([columns.index(score.column) for score in kept], dtype=np.int64),
            values=np.array([score.value for score in kept]),
            strata=tuple(score.stratum for score in kept),
        )

    @property
    def cases(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case for case, _ in self.columns))

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({group for _, group in self.columns}))

    def of_cases(self, cases: Sequence[str]) -> Scores:
        numbers_of_columns = [number for number, (case, _) in enumerate(self.columns) if case in cases]
        mask = np.isin(self.column, numbers_of_columns)
        numbers = {number: place for place, number in enumerate(numbers_of_columns)}
        return replace(
            self,
            columns=tuple(self.columns[number] for number in numbers_of_columns),
            column=np.array([numbers[int(number)] for number in self.column[mask]], dtype=np.int64),
            values=self.values[mask],
            strata=tuple(stratum for stratum, own in zip(self.strata, mask, strict=True) if own),
        )

    def of_column(self, column: Column) -> Floats:
        return np.asarray(self.values[self.column == self.columns.index(column)])

    def grid(self, numbers: Floats) -> Floats:
        """Reshape numbers (..., columns) to (..., cases, groups)."""
        return numbers.reshape(*numbers.shape[:-1], len(self.cases), len(self.groups))

    def means(self) -> Floats:
        """Return the mean score of each column."""
        return np.array([self.of_column(column).mean() for column in self.columns])

    def errors(self, added: float | None) -> Floats:
        """Return the standard error of each column's mean.

        `added` zeros, and equally many ones, are added to a column's scores; see `gaps.bounded_error`. Nothing is added
        to scores without bounds (`None`).
        """
        own = [self.of_column(column) for column in self.columns]
        if added is None:
            return gaps.sample_errors(own)
        return np.array([gaps.bounded_error(scores, added) for scores in own])

    def mean_error(self, added: float | None) -> float:
        """Return the standard error of the mean of all column means, for this fixed set of columns."""
        errors = self.errors(added)
        return float(np.sqrt((errors**2).sum()) / len(errors))

    def group_means(self, column_means: Floats) -> Floats:
        """Return the groups' means over cases, (..., groups), from column means (..., columns)."""
        return np.asarray(self.grid(column_means).mean(axis=-2))

    def gap(self, column_means: Floats) -> Floats:
        """Return the largest minus the smallest group mean, for each row of column means."""
        return np.asarray(np.ptp(self.group_means(column_means), axis=-1))

    def group_errors(self, added: float | None) -> Floats:
        return np.asarray(np.sqrt((self.grid(self.errors(added)) ** 2).sum(axis=0)) / len(self.cases))

    def gap_error(self, added: float | None) -> float:
        """Return the standard error of the difference between the two groups that differ most."""
        by_group, groups = self.group_errors(added), self.group_means(self.means())
        return math.hypot(by_group[groups.argmax()], by_group[groups.argmin()])


def _repeats_one_answer(cell: Sequence[Score]) -> bool:
    return len(cell) > 1 and all(score.repeated for score in cell) and len({score.text for score in cell}) == 1


# An item's scored answers, and its complete cases (cases with enough scored answers).

MINIMUM_RESPONSES = 8
"""Smallest number of scored answers of a group, case or category; see `ScoredAnswers.with_too_few_answers`."""
MINIMUM_OF_A_CASE = 2
"""A case counts in its category only if it has at least this number of scored answers of each group."""


@dataclass(frozen=True)
class ScoredAnswers:
    """The scored answers of an item.

    Attributes:
        scores: scores of the answers that have a score.
        scored: number of scored answers by column (case and group), including repeated answers.
        n, missing: number of usable and of missing answers, by group if groups are compared, otherwise by case.
        groups: groups that are compared; empty if the item compares no groups.
    """

    scores: Scores
    scored: Counter[Column]
    n: Mapping[str, int]
    missing: Mapping[str, int]
    groups: tuple[str, ...]

    def complete_cases(self, cases: Sequence[Case]) -> list[str]:
        """Return the sorted names of the cases that, with their opposites, have enough scored answers of each group.

        Without the opposite, a model that gives the same answers for both cases would not have the value 0.5.
        """
        groups = self.groups or ("",)
        enough = {
            case.name for case in cases if all(self.scored[case.name, group] >= MINIMUM_OF_A_CASE for group in groups)
        }
        opposites = {case.name: case.opposite for case in cases}
        return sorted(name for name in enough if opposites[name] not in opposites or opposites[name] in enough)

    def with_too_few_answers(
        self, labels: Mapping[str, str], cases: Sequence[Case], complete: Sequence[str]
    ) -> dict[str, int]:
        """Return the scored answers of each group that has fewer than `MINIMUM_RESPONSES`.

        If the item does not compare groups, each of its cases is counted or, in an item for a category, all cases
        together.
        """
        if self.groups:
            counts = {group: sum(self.scored[name, group] for name in complete) for group in self.groups}
        elif "case" in labels:
            counts = {case.name: self.scored[case.name, ""] for case in cases}
        else:
            counts = {labels["category"]: sum(self.scored[name, ""] for name in complete)}
        return {name: count for name, count in counts.items() if count < MINIMUM_RESPONSES}


def sorted_answers(answers: Answers) -> list[Answer]:
    return sorted(answers, key=lambda answer: (sorted(answer.labels.items()), answer.trial, answer.text or ""))


def stratum_of(answer: Answer, column: Column) -> str:
    """Return the stratum: all labels of the answer but case, category and, if groups are compared, group."""
    of_column = {"case", "category", "group"} if column[1] else {"case", "category"}
    return "; ".join(f"{name}={label}" for name, label in sorted(answer.labels.items()) if name not in of_column)


# Estimates from scores, with standard error, test and interval: the mean, and the gap between groups' means.

PERMUTATIONS = 1999
"""Number of random draws of a permutation test."""


def mean_estimate(scores: Scores, added: float, neutral: float | None) -> Measurement:
    """Return the mean of the cases' mean scores, tested against `neutral`, the mean of a model without preference.

    For the standard error, `added` zeros and ones are added to a case's scores; see `gaps.bounded_error`.
    """
    value, error = float(scores.means().mean()), scores.mean_error(added)
    shrunken = float(
        np.mean([gaps.shrunken_mean_and_error(scores.of_column(column), added)[0] for column in scores.columns])
    )
    size = gaps.effective_size(shrunken, error)
    return Measurement(
        value=value,
        interval=intervals.wilson(value * size, size, intervals.quantile(1 - TAIL)),
        standard_error=error,
        p_value=None if neutral is None else intervals.upper_tail((value - neutral) / error),
        n={},
        missing={},
        details={"effective_size": size},
        evidence=Evidence(effective_size=size),
    )


def gap_estimate(scores: Scores, added: float | None, alpha: float, beta: float, seed: str) -> Measurement:
    """Return the largest gap between groups, tested by permutation within case and stratum, without numbers of answers.

    For `added`, see `Scores.errors`. The lower bound at `alpha`, and the upper one at `beta`, are details.
    """
    column_means = scores.means()
    value = float(scores.gap(column_means))
    null = _permuted_gaps(scores, PERMUTATIONS, resampling.generator(f"{seed}/measure"))
    lower, upper = _gap_bounds(scores, added, alpha, beta)
    low, high = _gap_bounds(scores, added, TAIL, TAIL)
    return Measurement(
        value=value,
        interval=(low, high if added is None else min(1.0, high)),
        standard_error=scores.gap_error(added),
        p_value=resampling.p_value(null, value, exact=False),
        n={},
        missing={},
        details={
            "groups": dict(zip(scores.groups, scores.group_means(column_means).tolist(), strict=True)),
            "bounds": {"lower": lower, "upper": upper},
        },
        evidence=Evidence(bounds=(lower, upper)),
    )


def _gap_bounds(scores: Scores, added: float | None, alpha: float, beta: float) -> tuple[float, float]:
    by_group, groups = scores.group_errors(added), scores.group_means(scores.means())
    pairs = list(combinations(range(len(groups)), 2))
    errors = np.array([math.hypot(by_group[first], by_group[second]) for first, second in pairs])
    differences = np.array([groups[first] - groups[second] for first, second in pairs])
    return gaps.largest_bounds(differences, errors, alpha, beta)


def _permuted_gaps(scores: Scores, count: int, random: np.random.Generator) -> Floats:
    """Return the (count,) gaps after random permutations of groups within case and stratum."""
    blocks: dict[tuple[str, str], list[int]] = {}
    for place, (number, stratum) in enumerate(zip(scores.column, scores.strata, strict=True)):
        blocks.setdefault((scores.columns[number][0], stratum), []).append(place)
    dealt = np.empty((count, len(scores.values)), dtype=np.int64)
    for places in blocks.values():
        dealt[:, places] = random.permuted(np.tile(scores.column[places], (count, 1)), axis=1)
    sums = np.stack([np.where(dealt == number, scores.values, 0).sum(axis=1) for number in range(len(scores.columns))])
    sizes = np.bincount(scores.column, minlength=len(scores.columns))
    return scores.gap((sums / sizes[:, None]).T)


# Changes between two runs: of a mean score, and of the largest gap between groups' mean scores.

SUBSAMPLES = 20
"""Number of random cuts to equal size that are averaged if two runs have different numbers of scores."""


@dataclass(frozen=True)
class PooledScores:
    """The scores of two runs together, the current run first; a column is a case, or a case and a group.

    Attributes:
        current, baseline: scores of the two runs.
        column: (n,) column number of each score.
        values: (n,) scores.
        cells: (n,) cell number of each score, the same in both runs; a cell is a column within a stratum.
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
        """Return whether the value is a mean or a difference of two: its expected value does not depend on the size."""
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
        """Return the (draws, columns) means of both runs after random exchange of scores: the null distribution."""
        first, second = self._run_cells.sums_after_swaps(self._columns, PERMUTATIONS, random)
        return self._means(first), self._means(second)

    def error(self, weights: Floats) -> tuple[float, float | None]:
        """Return the standard error of Σ weight × change of the column's mean, and its degrees of freedom."""
        runs = self.column * 2 + self.is_current
        shares = weights[self.column] / np.bincount(runs, minlength=2 * len(weights))[runs]
        return change_error(self.values, self.is_current, self.cells, np.where(self.is_current, shares, -shares))

    def group_error(self, weights: Floats) -> tuple[float, float | None]:
        """Return the standard error of Σ weight × change of the group's mean, and its degrees of freedom."""
        cases = len(self.current.cases)
        return self.error(np.tile(weights, cases) / cases)

    @cached_property
    def _run_cells(self) -> RunCells:
        return RunCells.of(self.is_current, self.cells, equal_size=not self.is_linear)

    @cached_property
    def _columns(self) -> Floats:
        """Return the (n, 2 × columns) table of each score's column: a 1 in the first half, the score in the second."""
        belongs = np.eye(len(self.current.columns))[self.column]
        return np.hstack([belongs, belongs * self.values[:, None]])

    def _means(self, sums: Floats) -> Floats:
        """Return the (draws, columns) means from the (draws, 2 × columns) sums of rows of `_columns`."""
        number = len(self.current.columns)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums[:, number:] / sums[:, :number], dtype=np.float64)


def mean_change(runs: PooledScores, added: float | None, seed: str) -> Comparison:
    """Return the change of the mean score (the mean of all column means).

    `added` zeros and ones are added to each column if its standard error is 0 without them, as with equal scores;
    nothing is added to scores without bounds (`None`).
    """
    random = resampling.generator(f"{seed}/compare")
    current, baseline = runs.means(random)
    value = float(np.nanmean(current.mean(axis=-1) - baseline.mean(axis=-1)))
    swapped = runs.means_after_swaps(random)
    null = swapped[0].mean(axis=-1) - swapped[1].mean(axis=-1)
    columns = len(runs.current.columns)
    error, degrees = runs.error(np.full(columns, 1 / columns))
    moved = _means_of_both_runs(runs.current.cases, runs.current.means(), runs.baseline.means())
    return comparison(
        value,
        standard_error=error or math.hypot(*(run.mean_error(added) for run in (runs.current, runs.baseline))),
        p_value=resampling.p_value(null[~np.isnan(null)], value, exact=False),
        degrees_of_freedom=degrees,
        details={"moved": [part._asdict() for part in moved]},
        contributors=_worst(moved),
    )


def gap_change(runs: PooledScores, added: float | None, seed: str) -> Comparison:
    """Return the growth of the largest gap between groups' means; see `stats.gaps.DistanceMeasure`, `mean_change`."""
    random = resampling.generator(f"{seed}/compare")
    drawn = [runs.current.group_means(run) for run in runs.means(random)]
    swapped = [runs.current.group_means(run) for run in runs.means_after_swaps(random)]
    current, baseline = (run.mean(axis=0) for run in drawn)
    number = len(current)
    share = float(runs.is_current.mean()) if runs.is_linear else 0.5
    # The weights of the runs make the direction of the gap independent of its change.
    pattern = share * current + (1 - share) * baseline
    measure = gaps.largest_difference(tuple(combinations(range(number), 2)))
    size, gradient = measure.signed(pattern), measure.gradient(pattern)
    signed_error, degrees = runs.group_error(gradient)
    error = signed_error
    if number > 2:
        variances = [runs.group_error(own)[0] ** 2 for own in np.eye(number)]
        error = gaps.growth_error(size, current, baseline, np.diag(variances), resampling.generator(f"{seed}/error"))
    error = error or math.hypot(*(run.gap_error(added) for run in (runs.current, runs.baseline)))
    value = float(np.nanmean(size(drawn[0]) - size(drawn[1])))
    null = size(swapped[0]) - size(swapped[1])
    groups = runs.current.groups
    moved = _means_of_both_runs(groups, *(run.group_means(run.means()) for run in (runs.current, runs.baseline)))
    along = float((current - baseline) @ gradient), signed_error or error
    either_side = gaps.direction_unknown(2 * float(measure.size(pattern)), along[1])
    return comparison(
        value,
        standard_error=error,
        p_value=resampling.p_value(null[~np.isnan(null)], value, exact=False),
        degrees_of_freedom=degrees,
        details={
            "moved": [part._asdict() for part in moved],
            "along_pattern": list(along),
            "either_side": either_side,
        },
        evidence=Evidence(other_change=along, either_side=either_side),
        reversal=_reversal(groups, current, baseline, swapped[0] - swapped[1]),
        contributors=_worst(moved),
    )


def _reversal(groups: Sequence[str], current: Floats, baseline: Floats, swapped: Floats) -> Reversal | None:
    """Return the reversal of the largest gap: the higher of the two groups that differ most now was lower before."""
    high, low = gaps.most_different(current, tuple(combinations(range(len(current)), 2)))
    present, earlier = float(current[high] - current[low]), float(baseline[high] - baseline[low])
    if not (present > 0 > earlier):
        return None
    null = np.ptp(swapped, axis=-1)
    p_value = resampling.p_value(null[~np.isnan(null)], float(np.ptp(current - baseline)), exact=False)
    return group_reversal(groups[high], groups[low], present, earlier, p_value)


class Moved(NamedTuple):
    name: str
    now: float
    then: float


def _worst(moved: Sequence[Moved]) -> list[str]:
    """Return at most three of the means that became worse; if none did, of those that changed most."""
    worse = [part for part in moved if part.now > part.then] or moved
    return [f"{part.name} {part.then:.2f} to {part.now:.2f}" for part in worse[:3]]


def _means_of_both_runs(names: Sequence[str], current: Floats, baseline: Floats) -> list[Moved]:
    """Return each name with its mean in both runs; the largest change comes first."""
    order = sorted(
        range(len(names)), key=lambda place: (-round(abs(float(current[place] - baseline[place])), 12), place)
    )
    return [Moved(names[place], float(current[place]), float(baseline[place])) for place in order]
